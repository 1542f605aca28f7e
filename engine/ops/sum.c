/* Sums and differences of two tensors, and squares of differences.
 *
 * Quantized ones bring both inputs to twice the larger scale with 20 (8-bit), 15 (s16) or 7
 * (squares) more bits, add, and scale to the output, rounding twice each time. s16 with scales that
 * are powers of two may instead shift one input to the scale of the other (an option of the file).
 */
#include "engine/ops/binary.h"
#include "engine/ops/even.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_sub, ifd_op_squared_difference;

/* ---- the scales ---- */

/** LiteRT aborts where the factor of an input is 0, and except in SUB where that of the sum is no
 *  number. */
static enum ifd_code check_positive(const struct ifd_infer *in, const struct ifd_desc *output,
                                    struct ifd_err *err)
{
    static const char *const what[] = {"input 0", "input 1", "output 0"};
    for (uint32_t i = 0; i < 3; i++) {
        const struct ifd_desc *desc = i < 2 ? in->input[i].desc : output;
        if ((i < 2 || in->def != &ifd_op_sub) && ifd_ref_scale(desc) == 0) {
            return ifd_fail(err, IFD_INVALID, "%s: %s has scale 0, expected a positive one",
                            in->def->name, what[i]);
        }
    }
    return IFD_OK;
}

/* ---- add, sub ---- */

enum { SQUARE_LEFT_SHIFT = 7 };

/** Factors of a sum: inputs << left to a common scale, sum to the output. */
struct sum_factors {
    int left;
    struct ifd_multiplier a, b, y;
    /* SUB by a factor above 1: LiteRT shifts to the right by a negative number; where all of its
     * loops do so alike, a sign is left, -1 or 1 */
    bool is_sign;
};

/** squares: the sum is squared first. */
static struct sum_factors sum_factors(const struct ifd_desc *a, const struct ifd_desc *b,
                                      const struct ifd_desc *y, int left, bool squares)
{
    const float larger = ifd_ref_scale(a) > ifd_ref_scale(b) ? ifd_ref_scale(a) : ifd_ref_scale(b);
    const double common = 2.0 * (double)larger;
    const double fine = ldexp((double)ifd_ref_scale(y), squares ? 2 * left : left);
    const double factor = squares ? common * common / fine : common / fine;
    return (struct sum_factors){.left = left,
                                .a = ifd_multiplier((double)ifd_ref_scale(a) / common),
                                .b = ifd_multiplier((double)ifd_ref_scale(b) / common),
                                .y = ifd_multiplier(factor)};
}

static int sum_left_shift(enum ifd_dtype dtype)
{
    return dtype == IFD_S16 ? 15 : 20;
}

/** The factor of the sum must be below 1 in LiteRT, except in SUB. Where the scale of the output is
 *  normal, results saturate instead (scaled_down); where it is denormal, the operator is refused.
 */
static enum ifd_code sum_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_binary_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_binary_arithmetic_infer(in, output, err);
    if (code != IFD_OK || !ifd_dtype_is_quantized(output[0].dtype) || attrs->rounds_even) {
        return code;
    }
    code = check_positive(in, output, err);
    const float a = ifd_ref_scale(in->input[0].desc), b = ifd_ref_scale(in->input[1].desc),
                y = ifd_ref_scale(&output[0]);
    const double larger = (double)(a > b ? a : b);
    const bool is_square = def == &ifd_op_squared_difference;
    const double most = is_square ? ldexp((double)y, 2 * SQUARE_LEFT_SHIFT - 2)
                                  : ldexp((double)y, sum_left_shift(output[0].dtype) - 1);
    if (code == IFD_OK && !isnormal(y) && def != &ifd_op_sub &&
        !((is_square ? larger * larger : larger) < most)) {
        return ifd_fail(err, IFD_INVALID,
                        "%s: output 0 has scale %g, too small for inputs of scale %g and %g",
                        def->name, (double)y, (double)a, (double)b);
    }
    return code;
}

#define SUM_LIMIT (1 << 20) /* beyond every type */

static int32_t scaled_up(int32_t x, int left, struct ifd_multiplier factor)
{
    return ifd_requantize_double(x * (1 << left), factor);
}

/** A factor of 1 or more saturates: ADD of LiteRT aborts, and SUB has no one answer. */
static int32_t scaled_down(int32_t x, struct ifd_multiplier factor)
{
    const int64_t high = ifd_fixed_mul_high(x, factor.fraction);
    return factor.shift <= 0
               ? ifd_requantize_double(x, factor)
               : ifd_ref_clamp(high * (INT64_C(1) << (factor.shift < 31 ? factor.shift : 31)),
                               -SUM_LIMIT, SUM_LIMIT);
}

static int32_t add_quant(int32_t a, int32_t b, const void *context)
{
    const struct sum_factors *factors = context;
    const int32_t sum =
        scaled_up(a, factors->left, factors->a) + scaled_up(b, factors->left, factors->b);
    return scaled_down(sum, factors->y);
}

static int32_t sub_quant(int32_t a, int32_t b, const void *context)
{
    const struct sum_factors *factors = context;
    const int32_t sum =
        scaled_up(a, factors->left, factors->a) - scaled_up(b, factors->left, factors->b);
    return factors->is_sign ? ifd_fixed_shift_any(ifd_fixed_mul_high(sum, factors->y.fraction),
                                                  -factors->y.shift)
                            : scaled_down(sum, factors->y);
}

/** Right shifts that bring s16 inputs with power-of-two scales to the output's scale; one of
 *  them is 0. */
struct sum_shifts {
    int a, b;
};

/** True if scale's exponent of 2 is within 0.001 of an integer; writes that integer. */
static bool power_of_two(float scale, int *ret_exponent)
{
    const double exponent = log2((double)scale);
    *ret_exponent = (int)lround(exponent);
    return fabs(exponent - round(exponent)) < 1e-3;
}

/** True if the sum is to be computed with shifts alone: the option is set, and the scales allow
 *  it. */
static bool sum_shifts(const struct ifd_ref_call *call, struct sum_shifts *ret)
{
    const struct ifd_binary_attrs *attrs = call->attrs;
    int a = 0;
    int b = 0;
    int y = 0;
    if (call->out[0]->dtype != IFD_S16 || !attrs->pot_scale_int16 ||
        !power_of_two(ifd_ref_scale(call->in[0]), &a) ||
        !power_of_two(ifd_ref_scale(call->in[1]), &b) ||
        !power_of_two(ifd_ref_scale(call->out[0]), &y)) {
        return false;
    }
    *ret = (struct sum_shifts){y - a, y - b};
    return ret->a >= 0 && ret->b >= 0 && (ret->a == 0 || ret->b == 0);
}

/** x / 2^shift as LiteRT has it of 16 bits. From 16 on x86's SIMD shifts leave the sign, and what
 *  is rounded has the low bits of a mask that counts modulo 64. */
static int32_t shifted_s16(int32_t x, int shift)
{
    if (shift < 16) {
        return ifd_fixed_shift_right(x, shift);
    }
    const int32_t mask = (int16_t)(uint16_t)((UINT64_C(1) << (shift & 63)) - 1);
    const int32_t is_negative = x < 0;
    return ((x & mask) > (mask >> 1) + is_negative) - is_negative;
}

static int32_t add_shifted(int32_t a, int32_t b, const void *context)
{
    const struct sum_shifts *shifts = context;
    return shifted_s16(a, shifts->a) + shifted_s16(b, shifts->b);
}

static int32_t sub_shifted(int32_t a, int32_t b, const void *context)
{
    const struct sum_shifts *shifts = context;
    return shifted_s16(a, shifts->a) - shifted_s16(b, shifts->b);
}

/** The three forms of one sum. */
struct sum_kernels {
    float (*real)(float, float);
    int64_t (*integer)(int64_t, int64_t);
    int32_t (*quant)(int32_t, int32_t, const void *);
    int32_t (*shifted)(int32_t, int32_t, const void *);
};

static void sum(const struct ifd_ref_call *call, const struct sum_kernels *kernels)
{
    const enum ifd_dtype dtype = call->out[0]->dtype;
    struct sum_shifts shifts;
    if (dtype == IFD_F32) {
        ifd_binary_map_f32(call, kernels->real);
    } else if (!ifd_dtype_is_quantized(dtype)) {
        ifd_binary_map_int(call, kernels->integer);
    } else if (sum_shifts(call, &shifts)) {
        ifd_binary_map_quant(call, kernels->shifted, &shifts);
    } else {
        struct sum_factors factors =
            sum_factors(call->in[0], call->in[1], call->out[0], sum_left_shift(dtype), false);
        const int bits = factors.left + (dtype == IFD_S16 ? 15 : 8); /* of a sum */
        factors.is_sign = factors.y.shift > 0 && ifd_shifts_alike(factors.y, bits);
        ifd_binary_map_quant(call, kernels->quant, &factors);
    }
}

static float add_f32(float a, float b)
{
    return a + b;
}

static int64_t add_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static float sub_f32(float a, float b)
{
    return a - b;
}

static int64_t sub_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static enum ifd_code add_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    static const struct sum_kernels kernels = {add_f32, add_int, add_quant, add_shifted};
    const struct ifd_binary_attrs *attrs = call->attrs;
    if (attrs->rounds_even) {
        ifd_even_add(call);
    } else {
        sum(call, &kernels);
    }
    return IFD_OK;
}

static enum ifd_code sub_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    static const struct sum_kernels kernels = {sub_f32, sub_int, sub_quant, sub_shifted};
    sum(call, &kernels);
    return IFD_OK;
}

/* ---- squared difference ---- */

static float squared_difference_f32(float a, float b)
{
    return (a - b) * (a - b);
}

static int64_t squared_difference_int(int64_t a, int64_t b)
{
    const uint64_t difference = (uint64_t)a - (uint64_t)b;
    return (int64_t)(difference * difference);
}

static int32_t squared_difference_quant(int32_t a, int32_t b, const void *context)
{
    const struct sum_factors *factors = context;
    const int32_t difference =
        scaled_up(a, factors->left, factors->a) - scaled_up(b, factors->left, factors->b);
    return ifd_requantize_double(difference * difference, factors->y);
}

static enum ifd_code squared_difference_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const enum ifd_dtype dtype = call->out[0]->dtype;
    if (dtype == IFD_F32) {
        ifd_binary_map_f32(call, squared_difference_f32);
    } else if (!ifd_dtype_is_quantized(dtype)) {
        ifd_binary_map_int(call, squared_difference_int);
    } else {
        const struct sum_factors factors =
            sum_factors(call->in[0], call->in[1], call->out[0], SQUARE_LEFT_SHIFT, true);
        ifd_binary_map_quant(call, squared_difference_quant, &factors);
    }
    return IFD_OK;
}

DEFINE_BINARY(add, sum_infer, BINARY_NUMBERS | IFD_DTYPES_QUANT, true, NULL)
DEFINE_BINARY(sub, sum_infer, BINARY_NUMBERS | IFD_DTYPES_QUANT, true, NULL)
DEFINE_BINARY(squared_difference, sum_infer, IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S8),
              false, NULL)
