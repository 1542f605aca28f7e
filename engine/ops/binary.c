/* Functions of two tensors, element by element with broadcasting: what all of them share, products,
 * quotients, powers, minimum and maximum. Sums are sum.c's. A quantized product is scaled once. */
#include "engine/ops/binary.h"
#include "engine/ops/even.h"
#include "engine/ops/quotient.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_add, ifd_op_mul;

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

enum ifd_code ifd_binary_arithmetic_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                          struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_desc *a = in->input[0].desc, *b = in->input[1].desc;
    enum ifd_code code = binary_infer(in, output, err);
    const bool is_quantized = code == IFD_OK && ifd_dtype_is_quantized(output[0].dtype);
    enum ifd_code (*const check)(const struct ifd_op_def *, const char *, const struct ifd_desc *,
                                 struct ifd_err *) =
        rounds_even(in->attrs) ? ifd_infer_per_tensor : ifd_infer_any_scale;
    if (is_quantized) {
        code = check(def, "input 0", a, err);
    }
    if (is_quantized && code == IFD_OK) {
        code = check(def, "input 1", b, err);
    }
    if (is_quantized && code == IFD_OK) {
        code = check(def, "output 0", &output[0], err);
    }
    if (code == IFD_OK && rounds_even(in->attrs)) {
        return even_infer(in, output, err);
    }
    const struct ifd_binary_attrs *attrs = in->attrs;
    return is_quantized && code == IFD_OK
               ? ifd_infer_act_bounds(def, attrs->activation, &output[0], err)
               : code;
}

/* ---- walking ---- */

static void walk_begin(struct ifd_walk *walk, const struct ifd_ref_call *call)
{
    ifd_walk_init(walk, &call->out[0]->shape);
    ifd_walk_broadcast(walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(walk, 1, &call->in[1]->shape);
}

void ifd_binary_map_f32(const struct ifd_ref_call *call, float (*fn)(float, float))
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

void ifd_binary_map_int(const struct ifd_ref_call *call, int64_t (*fn)(int64_t, int64_t))
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

void ifd_binary_map_quant(const struct ifd_ref_call *call,
                          int32_t (*fn)(int32_t, int32_t, const void *), const void *context)
{
    const struct ifd_binary_attrs *attrs = call->attrs;
    const struct ifd_desc *out = call->out[0];
    int32_t min = 0;
    int32_t max = 0;
    ifd_ref_act_range_quant(attrs->activation, out, &min, &max);
    const int32_t zero_a = ifd_ref_zero_point(call->in[0]);
    const int32_t zero_b = ifd_ref_zero_point(call->in[1]);
    const int32_t zero_y = ifd_ref_zero_point(out);
    struct ifd_walk walk;
    for (walk_begin(&walk, call); walk.left > 0; ifd_walk_next(&walk)) {
        const int32_t a = ifd_ref_load(out->dtype, call->input[0], (size_t)walk.offset[0]) - zero_a;
        const int32_t b = ifd_ref_load(out->dtype, call->input[1], (size_t)walk.offset[1]) - zero_b;
        ifd_ref_store(out->dtype, call->output[0], walk.done,
                      ifd_ref_clamp(ifd_fixed_add(fn(a, b, context), zero_y), min, max));
    }
}

/* ---- mul ---- */

static double product_factor(const struct ifd_desc *a, const struct ifd_desc *b,
                             const struct ifd_desc *y)
{
    return (double)(ifd_ref_scale(a) * ifd_ref_scale(b) /
                    ifd_ref_scale(y)); /* in float, as TFLite has it */
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
        ifd_binary_map_f32(call, mul_f32);
    } else if (!ifd_dtype_is_quantized(dtype)) {
        ifd_binary_map_int(call, mul_int);
    } else if (rounds_even(call->attrs)) {
        ifd_even_mul(call);
    } else {
        const struct ifd_multiplier factor =
            ifd_multiplier(product_factor(call->in[0], call->in[1], call->out[0]));
        ifd_binary_map_quant(call, mul_quant, &factor);
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

/* In float, as TFLite has it. */
static double quotient_factor(const struct ifd_desc *a, const struct ifd_desc *b,
                              const struct ifd_desc *y)
{
    return (double)(ifd_ref_scale(a) / (ifd_ref_scale(b) * ifd_ref_scale(y)));
}

static int32_t div_quant(int32_t a, int32_t b, const void *context)
{
    const struct ifd_multiplier *factor = context;
    return ifd_quotient(a, b, *factor);
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
        ifd_binary_map_f32(call, real);
        return IFD_OK;
    }
    const size_t count = ifd_ref_elements(divisor);
    for (size_t i = 0; i < count; i++) {
        if (load_int(divisor->dtype, call->input[1], (int64_t)i) == 0) {
            return ifd_fail(err, IFD_INVALID, "division by zero: element %zu of input 1", i);
        }
    }
    ifd_binary_map_int(call, integer);
    return IFD_OK;
}

static enum ifd_code div_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    if (!ifd_dtype_is_quantized(call->out[0]->dtype)) {
        return divide(call, div_f32, div_int, err);
    }
    const struct ifd_multiplier factor =
        ifd_multiplier(quotient_factor(call->in[0], call->in[1], call->out[0]));
    ifd_binary_map_quant(call, div_quant, &factor);
    return IFD_OK;
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

/* Through doubles, as in LiteRT: what 32 bits do not hold is the lowest number. */
static int64_t pow_s32(int64_t base, int64_t exponent)
{
    const double power = pow((double)base, (double)exponent);
    return power > INT32_MIN && power <= INT32_MAX ? (int64_t)power : INT32_MIN;
}

/* LiteRT multiplies, and so wraps, only by one exponent for all elements. */
static enum ifd_code pow_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *exponent = &call->in[1]->shape;
    const bool wraps =
        call->out[0]->dtype == IFD_S64 ||
        (ifd_ref_elements(call->in[1]) == 1 && !ifd_shape_equal(&call->in[0]->shape, exponent));
    if (call->out[0]->dtype == IFD_F32) {
        ifd_binary_map_f32(call, powf);
    } else {
        ifd_binary_map_int(call, wraps ? pow_int : pow_s32);
    }
    return IFD_OK;
}

static enum ifd_code atan2_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_binary_map_f32(call, atan2f);
    return IFD_OK;
}

/* ---- minimum, maximum ---- */

/** Stored numbers are compared: scales and zero points do not count, as in LiteRT. */
static enum ifd_code order_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const enum ifd_code code = binary_infer(in, output, err);
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
        ifd_binary_map_f32(call, minimum_f32);
    } else {
        ifd_binary_map_int(call, minimum_int);
    }
    return IFD_OK;
}

static enum ifd_code maximum_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->out[0]->dtype == IFD_F32) {
        ifd_binary_map_f32(call, maximum_f32);
    } else {
        ifd_binary_map_int(call, maximum_int);
    }
    return IFD_OK;
}

/* ---- definitions ---- */

const struct ifd_attr_def ifd_binary_attr_defs[IFD_BINARY_ATTRS] = {
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

/* Of stored numbers: scales and zero points do not count, as in LiteRT. */
#define STORED (IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16))

DEFINE_BINARY(mul, ifd_binary_arithmetic_infer, BINARY_NUMBERS | IFD_DTYPES_QUANT, true, NULL)
DEFINE_BINARY(div, ifd_binary_arithmetic_infer, BINARY_NUMBERS | IFD_DTYPES_QUANT, true, NULL)
DEFINE_BINARY(floor_mod, binary_infer, BINARY_NUMBERS | STORED, false, NULL)
DEFINE_BINARY(floor_div, binary_infer, BINARY_NUMBERS | STORED, false, NULL)
DEFINE_BINARY(pow, binary_infer, BINARY_NUMBERS, false, NULL)
DEFINE_BINARY(atan2, binary_infer, IFD_BIT(IFD_F32), false, NULL)
DEFINE_BINARY(minimum, order_infer, BINARY_NUMBERS | IFD_DTYPES_QUANT, false, minimum_bounds)
DEFINE_BINARY(maximum, order_infer, BINARY_NUMBERS | IFD_DTYPES_QUANT, false, maximum_bounds)
