/* How far answers are from the expected ones. */
#include "tests/golden/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DETECTIONS_MAX 1024

bool golden_number(const struct ifd_tensor *tensor, size_t i, double *ret_number)
{
    switch (tensor->dtype) {
    case IFD_F32:
        *ret_number = (double)((const float *)tensor->data)[i];
        return true;
    case IFD_S8:
        *ret_number = ((const int8_t *)tensor->data)[i];
        return true;
    case IFD_U8:
    case IFD_BOOL:
        *ret_number = ((const uint8_t *)tensor->data)[i];
        return true;
    case IFD_S16:
        *ret_number = ((const int16_t *)tensor->data)[i];
        return true;
    case IFD_S32:
        *ret_number = ((const int32_t *)tensor->data)[i];
        return true;
    case IFD_S64:
        *ret_number = (double)((const int64_t *)tensor->data)[i];
        return true;
    case IFD_F64:
        *ret_number = ((const double *)tensor->data)[i];
        return true;
    default:
        return false;
    }
}

size_t golden_count(const struct ifd_tensor *tensor)
{
    const size_t bytes = ifd_dtype_bytes(tensor->dtype);
    return bytes > 0 ? tensor->bytes / bytes : 0;
}

/* Of a tensor whose type was checked. */
static double number(const struct ifd_tensor *tensor, size_t i)
{
    double value = NAN;
    (void)golden_number(tensor, i, &value);
    return value;
}

static bool is_same_kind(const struct ifd_tensor *got, const struct ifd_tensor *want)
{
    return got->dtype == want->dtype && got->shape.rank == want->shape.rank &&
           got->bytes == want->bytes &&
           memcmp(got->shape.dim, want->shape.dim, got->shape.rank * sizeof(got->shape.dim[0])) ==
               0;
}

/* Same types and shapes, something to compare, and all of it numbers. */
static bool is_comparable(const struct ifd_port *port, const struct ifd_tensor *got,
                          const struct ifd_tensor *want)
{
    double first = 0;
    if (!is_same_kind(got, want)) {
        printf("  output \"%s\": %s of %zu bytes, expected %s of %zu bytes\n", port->name,
               ifd_dtype_name(got->dtype), got->bytes, ifd_dtype_name(want->dtype), want->bytes);
        return false;
    }
    if (golden_count(want) == 0 || !golden_number(want, 0, &first)) {
        printf("  output \"%s\": %zu elements of type %s cannot be compared\n", port->name,
               golden_count(want), ifd_dtype_name(want->dtype));
        return false;
    }
    return true;
}

/* INFINITY where one of the two is no finite number, unless the other is the same. */
static double difference(double got, double want)
{
    if (isfinite(got) && isfinite(want)) {
        return fabs(got - want);
    }
    return (isnan(got) && isnan(want)) || got == want ? 0 : INFINITY;
}

struct differences {
    double largest, mean;
    double range; /* of the expected tensor's finite numbers; 0: they are all equal */
};

static struct differences compare(const struct ifd_tensor *got, const struct ifd_tensor *want)
{
    struct differences ret = {0};
    double low = INFINITY, high = -INFINITY;
    const size_t count = golden_count(want);
    for (size_t i = 0; i < count; i++) {
        const double w = number(want, i);
        const double d = difference(number(got, i), w);
        if (isfinite(w)) {
            low = fmin(low, w);
            high = fmax(high, w);
        }
        ret.largest = fmax(ret.largest, d);
        ret.mean += d / (double)count;
    }
    ret.range = high > low ? high - low : 0;
    return ret;
}

static double of_range(double d, const struct differences *differences)
{
    return differences->range > 0 ? d / differences->range : d;
}

/* Detection j of got beside detection i of want: the largest difference of box, class and score. */
static double detection_gap(const struct ifd_tensor *got, size_t j, const struct ifd_tensor *want,
                            size_t i)
{
    double d = difference(number(&got[1], j), number(&want[1], i));
    d = fmax(d, difference(number(&got[2], j), number(&want[2], i)));
    for (size_t c = 0; c < 4; c++) {
        d = fmax(d, difference(number(&got[0], j * 4 + c), number(&want[0], i * 4 + c)));
    }
    return d;
}

/* Outputs boxes [1,k,4], classes [1,k], scores [1,k], count [1]: every expected detection has a
 * partner, in order except among scores that differ by no more than the limit. */
static double detection_difference(const struct ifd_tensor *got, const struct ifd_tensor *want,
                                   double limit)
{
    const size_t k = golden_count(&want[1]);
    bool used[DETECTIONS_MAX] = {false};
    double largest = difference(number(&got[3], 0), number(&want[3], 0));
    if (k > DETECTIONS_MAX || golden_count(&want[0]) != 4 * k || golden_count(&want[2]) != k ||
        golden_count(&want[3]) != 1) {
        return INFINITY;
    }
    for (size_t i = 0; i < k; i++) {
        double best = INFINITY;
        size_t best_at = k;
        for (size_t j = 0; j < k; j++) {
            const double d = used[j] ? INFINITY : detection_gap(got, j, want, i);
            if (d < best) {
                best = d;
                best_at = j;
            }
        }
        if (best_at == k ||
            !(difference(number(&want[2], best_at), number(&want[2], i)) <= limit)) {
            return INFINITY;
        }
        used[best_at] = true;
        largest = fmax(largest, best);
    }
    return largest;
}

/* Index of the largest of n numbers from first on. */
static size_t best_of(const struct ifd_tensor *tensor, size_t first, size_t n)
{
    size_t best = first;
    for (size_t i = first; i < first + n; i++) {
        best = number(tensor, i) > number(tensor, best) ? i : best;
    }
    return best;
}

/* Do these n numbers add up to 1? Those of 8 bits are rounded one by one. */
static bool are_probabilities(const struct ifd_port *port, const struct ifd_tensor *tensor,
                              size_t first, size_t n)
{
    const struct ifd_quant *quant = &port->desc.quant;
    const double scale = quant->count > 0 ? (double)quant->scale[0] : 1;
    const double zero = quant->count > 0 && quant->zero_point ? quant->zero_point[0] : 0;
    double sum = 0;
    for (size_t i = first; i < first + n; i++) {
        const double p = (number(tensor, i) - zero) * scale;
        if (!(p >= 0)) {
            return false;
        }
        sum += p;
    }
    return fabs(sum - 1) < (quant->count > 0 ? 0.1 : 1e-3);
}

/* Is the most probable class of every sample the expected one? True for tensors that are no lists
 * of probabilities. */
static bool keeps_best(const struct ifd_port *port, const struct ifd_tensor *got,
                       const struct ifd_tensor *want)
{
    const size_t n = want->shape.rank == 2 ? (size_t)want->shape.dim[1] : 0;
    for (size_t first = 0; n > 1 && first + n <= golden_count(want); first += n) {
        if (are_probabilities(port, want, first, n) &&
            number(want, best_of(got, first, n)) != number(want, best_of(want, first, n))) {
            printf("  output \"%s\": sample %zu: another class is best\n", port->name, first / n);
            return false;
        }
    }
    return true;
}

static bool judge_numbers(const struct ifd_port *port, const struct ifd_tensor *got,
                          const struct ifd_tensor *want, const struct golden_tolerance *tolerance,
                          double *ret_largest)
{
    const struct differences differences = compare(got, want);
    const bool is_relative = strcmp(tolerance->kind, "of_range") == 0;
    const double largest =
        is_relative ? of_range(differences.largest, &differences) : differences.largest;
    const double mean = of_range(differences.mean, &differences);
    *ret_largest = fmax(*ret_largest, largest);
    if (tolerance->mean_limit > 0 && !(mean <= tolerance->mean_limit)) {
        printf("  output \"%s\": mean difference %g of the range, limit %g\n", port->name, mean,
               tolerance->mean_limit);
        return false;
    }
    return largest <= tolerance->limit && keeps_best(port, got, want);
}

bool golden_has_outputs(const struct ifd_model_info *info, const char *const *names, size_t count)
{
    bool ok = count > 0 && count == info->output_count;
    for (size_t i = 0; ok && i < count; i++) {
        ok = names[i] && strcmp(names[i], info->output[i].name) == 0;
    }
    for (uint32_t i = 0; !ok && i < info->output_count; i++) {
        printf("  output %u of %zu expected is \"%s\"\n", i, count, info->output[i].name);
    }
    return ok;
}

bool golden_judge(const struct ifd_model_info *info, const struct ifd_tensor *got,
                  const struct ifd_tensor *want, uint32_t count,
                  const struct golden_tolerance *tolerance, double *ret_largest)
{
    const bool is_detections = strcmp(tolerance->kind, "detections") == 0;
    if (!is_detections && strcmp(tolerance->kind, "lsb") != 0 &&
        strcmp(tolerance->kind, "of_range") != 0) {
        printf("  unknown kind of tolerance \"%s\"\n", tolerance->kind);
        return false;
    }
    if (count == 0 || count != info->output_count || (is_detections && count != 4)) {
        printf("  %u outputs of a model with %u, expected %s\n", count, info->output_count,
               is_detections ? "4" : "all of 1 or more");
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < count; i++) {
        ok &= is_comparable(&info->output[i], &got[i], &want[i]);
    }
    if (!ok) {
        *ret_largest = INFINITY;
        return false;
    }
    if (is_detections) {
        *ret_largest = fmax(*ret_largest, detection_difference(got, want, tolerance->limit));
        return *ret_largest <= tolerance->limit;
    }
    for (uint32_t i = 0; i < count; i++) {
        ok &= judge_numbers(&info->output[i], &got[i], &want[i], tolerance, ret_largest);
    }
    return ok;
}
