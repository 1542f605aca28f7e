#include "tests/fuzz/same.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/tensor/half.h"
#include "tests/fuzz/fuzz.h"

#define WILD 1e6 /* rounded by 0.06 */

static uint32_t next(uint32_t *random)
{
    *random ^= *random << 13; /* xorshift */
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return *random;
}

static bool is_float(enum ifd_dtype dtype)
{
    return dtype == IFD_F32 || dtype == IFD_F16 || dtype == IFD_BF16 || dtype == IFD_F64 ||
           dtype == IFD_C64;
}

/* ---- content ---- */

static void put_element(enum ifd_dtype dtype, uint8_t *at, uint32_t random)
{
    const float f = ((float)(random % 4097) - 2048.0F) / 1024.0F; /* -2 … 2 */
    const double d = f;
    const float pair[2] = {f, -f};
    const int64_t small = (int64_t)(random % 5) - 1;
    const struct ifd_str text = {"text", random % 5};
    switch (dtype) {
    case IFD_F32:
        memcpy(at, &f, sizeof(f));
        break;
    case IFD_F64:
        memcpy(at, &d, sizeof(d));
        break;
    case IFD_C64:
        memcpy(at, pair, sizeof(pair));
        break;
    case IFD_F16:
    case IFD_BF16:
        random &= 0xbfff; /* below 2 */
        memcpy(at, &random, 2);
        break;
    case IFD_BOOL:
        *at = random & 1;
        break;
    case IFD_STR:
        memcpy(at, &text, sizeof(text));
        break;
    case IFD_S32:
    case IFD_S64:
    case IFD_U32:
    case IFD_U64:
        memcpy(at, &small, ifd_dtype_bytes(dtype));
        break;
    default:
        memcpy(at, &random, ifd_dtype_bytes(dtype));
        break;
    }
}

void fuzz_fill(struct ifd_tensor *tensor, size_t count, uint32_t seed)
{
    uint8_t *at = tensor->data;
    uint32_t random = seed | 1;
    const uint32_t kind = next(&random) % 8;
    if (kind < 2 && tensor->dtype != IFD_STR) {
        memset(at, (int)kind, tensor->bytes);
        return;
    }
    for (size_t i = 0; i < count; i++, at += ifd_dtype_bytes(tensor->dtype)) {
        put_element(tensor->dtype, at, next(&random));
    }
}

bool fuzz_move(struct ifd_tensor *tensor, uint32_t seed)
{
    uint32_t random = seed | 1;
    if (tensor->dtype != IFD_F32) {
        return false;
    }
    float *at = tensor->data;
    for (size_t i = 0; i < tensor->bytes / sizeof(*at); i++) {
        at[i] += (next(&random) & 1 ? at[i] : -at[i]) / 4096;
        at[i] += at[i] == 0 ? (next(&random) & 1 ? 1e-5F : -1e-5F) : 0;
    }
    return tensor->bytes > 0;
}

/* ---- distance ---- */

/* Of one number_at. */
static size_t number_bytes(enum ifd_dtype dtype)
{
    return dtype == IFD_C64 ? sizeof(float) : ifd_dtype_bytes(dtype);
}

/* Element i as a number; of C64 the real and the imaginary part, one behind the other. */
static double number_at(const struct ifd_tensor *t, size_t i)
{
    const uint8_t *data = t->data;
    switch (t->dtype) {
#define CASE(id, type)                                                                             \
    case IFD_##id:                                                                                 \
        return (double)((const type *)t->data)[i]
        CASE(F32, float);
        CASE(C64, float);
        CASE(F64, double);
        CASE(S8, int8_t);
        CASE(U8, uint8_t);
        CASE(BOOL, uint8_t);
        CASE(S16, int16_t);
        CASE(U16, uint16_t);
        CASE(S32, int32_t);
        CASE(U32, uint32_t);
        CASE(S64, int64_t);
        CASE(U64, uint64_t);
#undef CASE
    case IFD_F16:
        return (double)ifd_f32_from_f16(((const uint16_t *)(const void *)data)[i]);
    case IFD_BF16:
        return (double)ifd_f32_from_bf16(((const uint16_t *)(const void *)data)[i]);
    default:
        __builtin_trap();
    }
}

bool fuzz_is_wild(enum ifd_dtype dtype, struct ifd_bytes content)
{
    const struct ifd_tensor tensor = {
        .dtype = dtype, .data = (void *)(uintptr_t)content.data, .bytes = content.size};
    bool is_wild = false;
    for (size_t i = 0; is_float(dtype) && i < content.size / number_bytes(dtype); i++) {
        const double number = number_at(&tensor, i);
        is_wild = is_wild || !isfinite(number) || number > WILD;
    }
    return is_wild;
}

static double distance_of_texts(const struct ifd_tensor *a, const struct ifd_tensor *b)
{
    const struct ifd_str *x = a->data, *y = b->data;
    for (size_t i = 0; i < a->bytes / sizeof(*x); i++) {
        if (x[i].size != y[i].size ||
            (x[i].size > 0 && memcmp(x[i].data, y[i].data, x[i].size) != 0)) {
            return 1;
        }
    }
    return 0;
}

double fuzz_distance(const struct ifd_tensor *a, const struct ifd_tensor *b)
{
    const bool floats = is_float(a->dtype);
    const size_t size = number_bytes(a->dtype);
    double largest = 0, worst = 0;
    bool is_bounded = true; /* what b's kernel made */
    bool is_same = true;    /* where one has a number, both have */
    MUST(a->dtype == b->dtype && a->bytes == b->bytes);
    if (a->dtype == IFD_STR) {
        return distance_of_texts(a, b);
    }
    for (size_t i = 0; i < a->bytes / size; i++) {
        const double x = number_at(a, i), y = number_at(b, i);
        if (isfinite(x) && isfinite(y)) {
            largest = fabs(y) > largest ? fabs(y) : largest;
            worst = fabs(x - y) > worst ? fabs(x - y) : worst;
        } else {
            is_bounded = is_bounded && isfinite(y);
            is_same = is_same && !isfinite(x) && !isfinite(y);
        }
    }
    /* Which zeros an infinite number meets in a sum is a kernel's to choose. */
    if (is_bounded && !is_same) {
        return INFINITY;
    }
    /* vectors of 32-bit Arm take such numbers for 0, and fast exponentials end with them; a sum may
     * have many */
    if (floats && worst < 1024 * (double)FLT_MIN) {
        return 0;
    }
    return floats ? worst / (largest > 0 ? largest : worst) : worst;
}

double fuzz_tolerance(enum ifd_dtype dtype)
{
    switch (dtype) {
    case IFD_F16:
        return 1e-2;
    case IFD_BF16:
        return 1e-1;
    default:
        return is_float(dtype) ? 2e-4 : 0;
    }
}
