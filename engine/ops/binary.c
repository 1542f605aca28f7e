/* Functions of two tensors, element by element with broadcasting: arithmetic, minimum, maximum.
 *
 * Quantized addition and subtraction bring both inputs to twice the larger scale with 20 (8-bit)
 * or 15 (s16) more bits, add, and scale to the output, rounding twice each time; multiplication
 * scales the product once. s16 with scales that are powers of two may instead shift one input to
 * the scale of the other (an option of the file). */
#include "engine/ops/even.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_add, ifd_op_mul;

#define TYPES_FLOAT_INT (IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))

/* ---- shape rules ---- */

static enum ifd_code binary_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *a = in->input[0].desc;
    const struct ifd_desc *b = in->input[1].desc;
    code = ifd_infer_dtype(def, in, 1, IFD_BIT(a->dtype), err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, a->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_binary_attrs *attrs = in->attrs;
    if (attrs->activation != IFD_ACT_NONE && a->dtype != IFD_F32 &&
        !ifd_dtype_is_quantized(a->dtype)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: activation %d on type %s", def->name,
                        attrs->activation, ifd_dtype_name(a->dtype));
    }
    struct ifd_shape shape;
    if (!ifd_shape_broadcast(&a->shape, &b->shape, &shape)) {
        return ifd_fail(err, IFD_INVALID, "%s: shapes %s and %s do not broadcast", def->name,
                        ifd_shape_text(&a->shape).s, ifd_shape_text(&b->shape).s);
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/** binary_infer, and all three operands quantized per tensor if the type is a quantized one. */
static enum ifd_code arithmetic_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = binary_infer(in, output, err);
    if (code != IFD_OK || !ifd_dtype_is_quantized(output[0].dtype)) {
        return code;
    }
    code = ifd_infer_per_tensor(def, "input 0", in->input[0].desc, err);
    if (code == IFD_OK) {
        code = ifd_infer_per_tensor(def, "input 1", in->input[1].desc, err);
    }
    return code == IFD_OK ? ifd_infer_per_tensor(def, "output 0", &output[0], err) : code;
}

static enum ifd_code fail_scales(const struct ifd_infer *in, const struct ifd_desc *output,
                                 struct ifd_err *err)
{
    return ifd_fail(err, IFD_UNSUPPORTED,
                    "%s: scales %g and %g of the inputs and %g of the output are too far apart",
                    in->def->name, (double)in->input[0].desc->quant.scale[0],
                    (double)in->input[1].desc->quant.scale[0], (double)output[0].quant.scale[0]);
}

static bool rounds_even(const struct ifd_binary_attrs *attrs)
{
    return attrs->rounds_even;
}

/* Of the types, only 8 bits; of the operators, add and mul. */
static enum ifd_code even_infer(const struct ifd_infer *in, const struct ifd_desc *output,
                                struct ifd_err *err)
{
    if (in->def != &ifd_op_add && in->def != &ifd_op_mul) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: rounds_even", in->def->name);
    }
    return ifd_even_infer(in, output, err);
}

/* ---- walking ---- */

static void walk_begin(struct ifd_walk *walk, const struct ifd_ref_call *call)
{
    ifd_walk_init(walk, &call->out[0]->shape);
    ifd_walk_broadcast(walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(walk, 1, &call->in[1]->shape);
}

static void walk_f32(const struct ifd_ref_call *call, float (*fn)(float, float))
{
    const struct ifd_binary_attrs *attrs = call->attrs;
    float min = 0;
    float max = 0;
    ifd_ref_act_range_f32(attrs->activation, &min, &max);
    const float *a = call->input[0];
    const float *b = call->input[1];
    float *y = call->output[0];
    struct ifd_walk walk;
    for (walk_begin(&walk, call); walk.left > 0; ifd_walk_next(&walk)) {
        y[walk.done] = ifd_ref_clamp_f32(fn(a[walk.offset[0]], b[walk.offset[1]]), min, max);
    }
}

static int64_t load_int(enum ifd_dtype dtype, const void *data, int64_t i)
{
    return dtype == IFD_S64 ? ((const int64_t *)data)[i] : ifd_ref_load(dtype, data, (size_t)i);
}

/** fn of stored integers; results of s32 and s64 wrap around. */
static void walk_int(const struct ifd_ref_call *call, int64_t (*fn)(int64_t, int64_t))
{
    const enum ifd_dtype dtype = call->out[0]->dtype;
    struct ifd_walk walk;
    for (walk_begin(&walk, call); walk.left > 0; ifd_walk_next(&walk)) {
        const int64_t y = fn(load_int(dtype, call->input[0], walk.offset[0]),
                             load_int(dtype, call->input[1], walk.offset[1]));
        if (dtype == IFD_S64) {
            ((int64_t *)call->output[0])[walk.done] = y;
        } else {
            ifd_ref_store(dtype, call->output[0], walk.done, (int32_t)(uint32_t)(uint64_t)y);
        }
    }
}

/** Quantized numbers without their zero points, through fn, with the output's zero point,
 *  clamped. */
static void walk_quant(const struct ifd_ref_call *call,
                       int32_t (*fn)(int32_t, int32_t, const void *), const void *context)
{
    const struct ifd_binary_attrs *attrs = call->attrs;
    const struct ifd_desc *out = call->out[0];
    int32_t min = 0;
    int32_t max = 0;
    ifd_ref_act_range_quant(attrs->activation, out, &min, &max);
    const int32_t zero_a = ifd_ref_zero_point(call->in[0]);
    const int32_t zero_b = ifd_ref_zero_point(call->in[1]);
    const int64_t zero_y = ifd_ref_zero_point(out);
    struct ifd_walk walk;
    for (walk_begin(&walk, call); walk.left > 0; ifd_walk_next(&walk)) {
        const int32_t a = ifd_ref_load(out->dtype, call->input[0], (size_t)walk.offset[0]) - zero_a;
        const int32_t b = ifd_ref_load(out->dtype, call->input[1], (size_t)walk.offset[1]) - zero_b;
        ifd_ref_store(out->dtype, call->output[0], walk.done,
                      ifd_ref_clamp(fn(a, b, context) + zero_y, min, max));
    }
}

/* ---- add, sub ---- */

/** Factors of a sum: inputs << left to a common scale, sum to the output. */
struct sum_factors {
    int left;
    struct ifd_multiplier a, b, y;
};

/** False if the output's scale is so small that the sum's factor is 1 or more. squares: the sum
 *  is squared first. */
static bool sum_factors(const struct ifd_desc *a, const struct ifd_desc *b,
                        const struct ifd_desc *y, int left, bool squares, struct sum_factors *ret)
{
    const float larger = ifd_ref_scale(a) > ifd_ref_scale(b) ? ifd_ref_scale(a) : ifd_ref_scale(b);
    const double common = 2.0 * (double)larger;
    const double fine = ldexp((double)ifd_ref_scale(y), squares ? 2 * left : left);
    const double factor = squares ? common * common / fine : common / fine;
    *ret = (struct sum_factors){.left = left};
    return (factor < 1.0 || squares) &&
           ifd_multiplier_from_real((double)ifd_ref_scale(a) / common, &ret->a) &&
           ifd_multiplier_from_real((double)ifd_ref_scale(b) / common, &ret->b) &&
           ifd_multiplier_from_real(factor, &ret->y);
}

static int sum_left_shift(enum ifd_dtype dtype)
{
    return dtype == IFD_S16 ? 15 : 20;
}

static int32_t scaled_up(int32_t x, int left, struct ifd_multiplier factor)
{
    return ifd_requantize_double(x * (1 << left), factor);
}

static int32_t add_quant(int32_t a, int32_t b, const void *context)
{
    const struct sum_factors *factors = context;
    const int32_t sum =
        scaled_up(a, factors->left, factors->a) + scaled_up(b, factors->left, factors->b);
    return ifd_requantize_double(sum, factors->y);
}

static int32_t sub_quant(int32_t a, int32_t b, const void *context)
{
    const struct sum_factors *factors = context;
    const int32_t sum =
        scaled_up(a, factors->left, factors->a) - scaled_up(b, factors->left, factors->b);
    return ifd_requantize_double(sum, factors->y);
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
    return ret->a >= 0 && ret->b >= 0 && ret->a <= 15 && ret->b <= 15 &&
           (ret->a == 0 || ret->b == 0);
}

static int32_t add_shifted(int32_t a, int32_t b, const void *context)
{
    const struct sum_shifts *shifts = context;
    return ifd_fixed_shift_right(a, shifts->a) + ifd_fixed_shift_right(b, shifts->b);
}

static int32_t sub_shifted(int32_t a, int32_t b, const void *context)
{
    const struct sum_shifts *shifts = context;
    return ifd_fixed_shift_right(a, shifts->a) - ifd_fixed_shift_right(b, shifts->b);
}

static enum ifd_code sum_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    const enum ifd_code code = arithmetic_infer(in, output, err);
    struct sum_factors factors;
    if (code == IFD_OK && rounds_even(in->attrs)) {
        return even_infer(in, output, err);
    }
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype) &&
        !sum_factors(in->input[0].desc, in->input[1].desc, &output[0],
                     sum_left_shift(output[0].dtype), false, &factors)) {
        return fail_scales(in, output, err);
    }
    return code;
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
    struct sum_factors factors;
    if (dtype == IFD_F32) {
        walk_f32(call, kernels->real);
    } else if (!ifd_dtype_is_quantized(dtype)) {
        walk_int(call, kernels->integer);
    } else if (sum_shifts(call, &shifts)) {
        walk_quant(call, kernels->shifted, &shifts);
    } else if (sum_factors(call->in[0], call->in[1], call->out[0], sum_left_shift(dtype), false,
                           &factors)) {
        walk_quant(call, kernels->quant, &factors);
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
    if (rounds_even(call->attrs)) {
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

/* ---- mul ---- */

static double product_factor(const struct ifd_desc *a, const struct ifd_desc *b,
                             const struct ifd_desc *y)
{
    return (double)(ifd_ref_scale(a) * ifd_ref_scale(b) /
                    ifd_ref_scale(y)); /* in float, as TFLite has it */
}

static enum ifd_code product_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const enum ifd_code code = arithmetic_infer(in, output, err);
    struct ifd_multiplier factor;
    if (code == IFD_OK && rounds_even(in->attrs)) {
        return even_infer(in, output, err);
    }
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype) &&
        !ifd_multiplier_from_real(product_factor(in->input[0].desc, in->input[1].desc, &output[0]),
                                  &factor)) {
        return fail_scales(in, output, err);
    }
    return code;
}

static float mul_f32(float a, float b)
{
    return a * b;
}

static int64_t mul_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int32_t mul_quant(int32_t a, int32_t b, const void *context)
{
    const struct ifd_multiplier *factor = context;
    return ifd_requantize_double(a * b, *factor);
}

static enum ifd_code mul_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const enum ifd_dtype dtype = call->out[0]->dtype;
    if (dtype == IFD_F32) {
        walk_f32(call, mul_f32);
    } else if (!ifd_dtype_is_quantized(dtype)) {
        walk_int(call, mul_int);
    } else if (rounds_even(call->attrs)) {
        ifd_even_mul(call);
    } else {
        const struct ifd_multiplier factor =
            ifd_multiplier(product_factor(call->in[0], call->in[1], call->out[0]));
        walk_quant(call, mul_quant, &factor);
    }
    return IFD_OK;
}

/* ---- div, floor_mod ---- */

static float div_f32(float a, float b)
{
    return a / b;
}

static int64_t div_int(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)(0u - (uint64_t)a) : a / b; /* the least number by -1 wraps */
}

static float floor_mod_f32(float a, float b)
{
    const float remainder = fmodf(a, b);
    return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

static int64_t floor_mod_int(int64_t a, int64_t b)
{
    const int64_t remainder = b == -1 ? 0 : a % b;
    return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

static float floor_div_f32(float a, float b)
{
    return floorf(a / b);
}

static int64_t floor_div_int(int64_t a, int64_t b)
{
    if (b == -1) {
        return (int64_t)(0u - (uint64_t)a);
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/** fn, unless an integer divisor is 0. */
static enum ifd_code divide(const struct ifd_ref_call *call, float (*real)(float, float),
                            int64_t (*integer)(int64_t, int64_t), struct ifd_err *err)
{
    const struct ifd_desc *divisor = call->in[1];
    if (divisor->dtype == IFD_F32) {
        walk_f32(call, real);
        return IFD_OK;
    }
    const size_t count = ifd_ref_elements(divisor);
    for (size_t i = 0; i < count; i++) {
        if (load_int(divisor->dtype, call->input[1], (int64_t)i) == 0) {
            return ifd_fail(err, IFD_INVALID, "division by zero: element %zu of input 1", i);
        }
    }
    walk_int(call, integer);
    return IFD_OK;
}

static enum ifd_code div_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return divide(call, div_f32, div_int, err);
}

static enum ifd_code floor_mod_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return divide(call, floor_mod_f32, floor_mod_int, err);
}

static enum ifd_code floor_div_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return divide(call, floor_div_f32, floor_div_int, err);
}

/* ---- pow, atan2 ---- */

/* Modulo 2^64. Negative exponents: powers of 1 and -1 as they are, others truncated to 0. */
static int64_t pow_int(int64_t base, int64_t exponent)
{
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    uint64_t result = 1;
    uint64_t square = (uint64_t)base;
    for (; exponent > 0; exponent >>= 1) {
        result *= (exponent & 1) != 0 ? square : 1;
        square *= square;
    }
    return (int64_t)result;
}

static enum ifd_code pow_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->out[0]->dtype == IFD_F32) {
        walk_f32(call, powf);
    } else {
        walk_int(call, pow_int);
    }
    return IFD_OK;
}

static enum ifd_code atan2_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    walk_f32(call, atan2f);
    return IFD_OK;
}

/* ---- minimum, maximum ---- */

/** Stored numbers are compared, so all quantizations must be equal. */
static enum ifd_code order_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const enum ifd_code code = binary_infer(in, output, err);
    if (code == IFD_OK && (!ifd_quant_equal(in->input[0].desc, in->input[1].desc) ||
                           !ifd_quant_equal(in->input[0].desc, &output[0]))) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: inputs and output are quantized differently",
                        def->name);
    }
    const struct ifd_binary_attrs *attrs = in->attrs;
    if (code == IFD_OK && attrs->activation != IFD_ACT_NONE) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: activation %d", def->name, attrs->activation);
    }
    return code;
}

static float minimum_f32(float a, float b)
{
    return a < b ? a : b;
}

static int64_t minimum_int(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static float maximum_f32(float a, float b)
{
    return a > b ? a : b;
}

static int64_t maximum_int(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum ifd_code minimum_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->out[0]->dtype == IFD_F32) {
        walk_f32(call, minimum_f32);
    } else {
        walk_int(call, minimum_int);
    }
    return IFD_OK;
}

static enum ifd_code maximum_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->out[0]->dtype == IFD_F32) {
        walk_f32(call, maximum_f32);
    } else {
        walk_int(call, maximum_int);
    }
    return IFD_OK;
}

/* ---- squared difference ---- */

enum { SQUARE_LEFT_SHIFT = 7 };

static enum ifd_code square_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const enum ifd_code code = arithmetic_infer(in, output, err);
    struct sum_factors factors;
    if (code == IFD_OK && rounds_even(in->attrs)) {
        return even_infer(in, output, err);
    }
    if (code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype) &&
        !sum_factors(in->input[0].desc, in->input[1].desc, &output[0], SQUARE_LEFT_SHIFT, true,
                     &factors)) {
        return fail_scales(in, output, err);
    }
    return code;
}

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
    struct sum_factors factors;
    if (dtype == IFD_F32) {
        walk_f32(call, squared_difference_f32);
    } else if (!ifd_dtype_is_quantized(dtype)) {
        walk_int(call, squared_difference_int);
    } else if (sum_factors(call->in[0], call->in[1], call->out[0], SQUARE_LEFT_SHIFT, true,
                           &factors)) {
        walk_quant(call, squared_difference_quant, &factors);
    }
    return IFD_OK;
}

/* ---- definitions ---- */

static const struct ifd_attr_def binary_attrs[] = {
    {"activation", IFD_ATTR_ENUM, offsetof(struct ifd_binary_attrs, activation), IFD_ACT_NONE,
     IFD_ACT_NONE, IFD_ACT_RELU6},
    {"pot_scale_int16", IFD_ATTR_BOOL, offsetof(struct ifd_binary_attrs, pot_scale_int16), 0, 0, 1},
    {"rounds_even", IFD_ATTR_BOOL, offsetof(struct ifd_binary_attrs, rounds_even), 0, 0, 1},
};

static bool minimum_bounds(const void *attrs, const float *number, float *ret_min, float *ret_max)
{
    (void)attrs;
    *ret_min = -INFINITY;
    *ret_max = number ? *number : INFINITY;
    return number && !isnan(*number);
}

static bool maximum_bounds(const void *attrs, const float *number, float *ret_min, float *ret_max)
{
    (void)attrs;
    *ret_min = number ? *number : -INFINITY;
    *ret_max = INFINITY;
    return number && !isnan(*number);
}

/* X(name, shape rule, types of the inputs, applies an activation, bounds) */
#define BINARY(X)                                                                                  \
    X(add, sum_infer, TYPES_FLOAT_INT | IFD_DTYPES_QUANT, true, NULL)                              \
    X(sub, sum_infer, TYPES_FLOAT_INT | IFD_DTYPES_QUANT, true, NULL)                              \
    X(mul, product_infer, TYPES_FLOAT_INT | IFD_DTYPES_QUANT, true, NULL)                          \
    X(div, binary_infer, TYPES_FLOAT_INT, true, NULL)                                              \
    X(floor_mod, binary_infer, TYPES_FLOAT_INT, false, NULL)                                       \
    X(floor_div, binary_infer, TYPES_FLOAT_INT, false, NULL)                                       \
    X(pow, binary_infer, TYPES_FLOAT_INT, false, NULL)                                             \
    X(atan2, binary_infer, IFD_BIT(IFD_F32), false, NULL)                                          \
    X(minimum, order_infer, TYPES_FLOAT_INT | IFD_DTYPES_QUANT, false, minimum_bounds)             \
    X(maximum, order_infer, TYPES_FLOAT_INT | IFD_DTYPES_QUANT, false, maximum_bounds)             \
    X(squared_difference, square_infer, IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S8),     \
      false, NULL)

#define DEFINE(op, rule, types, activates, bounds_fn)                                              \
    const struct ifd_op_def ifd_op_##op = {.name = #op,                                            \
                                           .min_inputs = 2,                                        \
                                           .max_inputs = 2,                                        \
                                           .outputs = 1,                                           \
                                           .attrs = binary_attrs,                                  \
                                           .attr_count =                                           \
                                               sizeof(binary_attrs) / sizeof(binary_attrs[0]),     \
                                           .attrs_bytes = sizeof(struct ifd_binary_attrs),         \
                                           .dtypes = (types),                                      \
                                           .batch = IFD_BATCH_ELEMENTWISE,                         \
                                           .can_alias = true,                                      \
                                           .is_elementwise = true,                                 \
                                           .infer = (rule),                                        \
                                           .ref = op##_ref,                                        \
                                           .bounds = (bounds_fn),                                  \
                                           .applies_activation = (activates)};

BINARY(DEFINE)
