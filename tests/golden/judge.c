/* How far answers are from the expected ones. */
#include "tests/golden/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double golden_number(const struct ifd_tensor *tensor, size_t i)
{
    switch (tensor->dtype) {
    case IFD_F32:
        return (double)((const float *)tensor->data)[i];
    case IFD_S8:
        return ((const int8_t *)tensor->data)[i];
    case IFD_U8:
    case IFD_BOOL:
        return ((const uint8_t *)tensor->data)[i];
    case IFD_S16:
        return ((const int16_t *)tensor->data)[i];
    case IFD_S32:
        return ((const int32_t *)tensor->data)[i];
    case IFD_S64:
        return (double)((const int64_t *)tensor->data)[i];
    case IFD_F64:
        return ((const double *)tensor->data)[i];
    default:
        return NAN;
    }
}

size_t golden_count(const struct ifd_tensor *tensor)
{
    return tensor->bytes / ifd_dtype_bytes(tensor->dtype);
}

static bool same_kind(const struct ifd_tensor *got, const struct ifd_tensor *want)
{
    return got->dtype == want->dtype && got->shape.rank == want->shape.rank &&
           got->bytes == want->bytes &&
           memcmp(got->shape.dim, want->shape.dim, got->shape.rank * sizeof(got->shape.dim[0])) ==
               0;
}

/* Largest difference; of the expected tensor's range if relative. NaN matches NaN only. */
static double difference(const struct ifd_tensor *got, const struct ifd_tensor *want, bool of_range)
{
    double largest = 0, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < golden_count(want); i++) {
        const double w = golden_number(want, i), g = golden_number(got, i);
        if (isnan(w) != isnan(g)) {
            return INFINITY;
        }
        low = w < low ? w : low;
        high = w > high ? w : high;
        const double d = fabs(g - w);
        largest = d > largest ? d : largest;
    }
    if (!of_range || largest == 0) {
        return largest;
    }
    return high > low ? largest / (high - low) : largest;
}

/* Outputs boxes [1,k,4], classes [1,k], scores [1,k], count [1]: every expected detection must have one of its own. */
static double detection_difference(const struct ifd_tensor *got, const struct ifd_tensor *want,
                                   double max_abs)
{
    const size_t k = golden_count(&want[1]);
    bool used[1024] = {false};
    double largest = difference(&got[3], &want[3], false);
    if (k > 1024) {
        return INFINITY;
    }
    for (size_t i = 0; i < k; i++) {
        double best = INFINITY;
        size_t best_at = 0;
        for (size_t j = 0; j < k; j++) {
            double d = fabs(golden_number(&got[1], j) - golden_number(&want[1], i));
            d = fmax(d, fabs(golden_number(&got[2], j) - golden_number(&want[2], i)));
            for (size_t c = 0; c < 4; c++) {
                d = fmax(d, fabs(golden_number(&got[0], j * 4 + c) -
                                 golden_number(&want[0], i * 4 + c)));
            }
            if (!used[j] && d < best) {
                best = d;
                best_at = j;
            }
        }
        used[best_at] = true;
        /* In order, or among scores that are as good as equal. */
        const double moved = fabs(golden_number(&want[2], best_at) - golden_number(&want[2], i));
        largest = fmax(largest, fmax(best, moved > max_abs ? INFINITY : 0));
    }
    return largest;
}

/* Where the largest of n numbers is. */
static size_t best_of(const struct ifd_tensor *tensor, size_t first, size_t n)
{
    size_t best = first;
    for (size_t i = first; i < first + n; i++) {
        best = golden_number(tensor, i) > golden_number(tensor, best) ? i : best;
    }
    return best;
}

/* Is the most probable class of every sample the expected one? True for what is no list of probabilities. */
static bool keeps_best(const struct ifd_tensor *got, const struct ifd_tensor *want)
{
    const size_t n = want->shape.rank == 2 ? (size_t)want->shape.dim[1] : 0;
    for (size_t first = 0; n > 1 && first + n <= golden_count(want); first += n) {
        double sum = 0;
        for (size_t i = first; i < first + n; i++) {
            sum += golden_number(want, i);
        }
        if (fabs(sum - 1) < 1e-3 && best_of(got, first, n) != best_of(want, first, n)) {
            return false;
        }
    }
    return true;
}

bool golden_judge(const struct ifd_model_info *info, const struct ifd_tensor *got,
                  const struct ifd_tensor *want, uint32_t count,
                  const struct golden_tolerance *tolerance, double *ret_largest)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!same_kind(&got[i], &want[i])) {
            printf("  output \"%s\": %s of %zu bytes, expected %s of %zu bytes\n",
                   info->output[i].name, ifd_dtype_name(got[i].dtype), got[i].bytes,
                   ifd_dtype_name(want[i].dtype), want[i].bytes);
            *ret_largest = INFINITY;
            return false;
        }
    }
    if (strcmp(tolerance->kind, "detections") == 0) {
        if (count != 4) {
            return false;
        }
        *ret_largest = fmax(*ret_largest, detection_difference(got, want, tolerance->limit));
        return *ret_largest <= tolerance->limit;
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool of_range = strcmp(tolerance->kind, "of_range") == 0;
        *ret_largest = fmax(*ret_largest, difference(&got[i], &want[i], of_range));
        if (tolerance->keeps_best && !keeps_best(&got[i], &want[i])) {
            printf("  output \"%s\": another class is best\n", info->output[i].name);
            *ret_largest = INFINITY;
        }
    }
    return *ret_largest <= tolerance->limit;
}
