/* Comparisons and logic of two tensors, element by element with broadcasting. The result is
 * bool.
 *
 * Quantized numbers of different scales are brought to 2^8 times their real value before they
 * are compared, with double rounding, as LiteRT's reference kernels do. */
#include <string.h>

#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/text.h"

extern const struct ifd_op_def ifd_op_equal, ifd_op_not_equal;

/* Fraction bits of a quantized number while it is compared. */
#define LEFT_SHIFT 8

static enum ifd_code bool_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(in->input[0].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_BOOL, err);
    }
    return code == IFD_OK ? ifd_infer_broadcast(def, in, output, err) : code;
}

/* ---- comparisons ---- */

static enum ifd_code compare_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = bool_infer(in, output, err);
    for (uint32_t i = 0; code == IFD_OK && i < 2; i++) {
        const struct ifd_desc *input = in->input[i].desc;
        if (!ifd_dtype_is_quantized(input->dtype)) {
            break;
        }
        code = ifd_infer_any_scale(def, i == 0 ? "input 0" : "input 1", input, err);
        const bool is_stored =
            input->dtype == IFD_S16 && def != &ifd_op_equal && def != &ifd_op_not_equal;
        if (code == IFD_OK && !is_stored && input->quant.scale[0] == 0) { /* LiteRT aborts */
            code = ifd_fail(err, IFD_INVALID, "%s: input %u has scale 0, expected a positive one",
                            def->name, i);
        }
    }
    return code;
}

/* -1, 0, 1: how element i of a compares to element k of b; 2 if they are not ordered (NaN). */
struct comparison {
    enum ifd_dtype dtype;
    int32_t zero_a, zero_b;
    struct ifd_multiplier a, b;
    bool is_real;   /* LiteRT's compiler gives no one answer (scaled) */
    bool is_stored; /* s16 that is ordered: LiteRT takes no scales then */
    double scale_a, scale_b;
};

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int order_f32(float a, float b)
{
    return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

static int order_f64(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* Of scales above 1 LiteRT shifts to the right by a negative number, as x86 does: what is left are
 * signs, -1 or 1 (ifd_shifts_alike). */
static int32_t scaled(int32_t x, struct ifd_multiplier factor)
{
    return ifd_fixed_shift_any(ifd_fixed_mul_high(x * (1 << LEFT_SHIFT), factor.fraction),
                               -factor.shift);
}

static int compare(const struct comparison *c, const void *a, int64_t i, const void *b, int64_t k)
{
    switch ((int)c->dtype) {
    case IFD_F32:
        return order_f32(((const float *)a)[i], ((const float *)b)[k]);
    case IFD_S64:
        return order(((const int64_t *)a)[i], ((const int64_t *)b)[k]);
    case IFD_S32:
        return order(((const int32_t *)a)[i], ((const int32_t *)b)[k]);
    case IFD_BOOL:
        return order(((const uint8_t *)a)[i] != 0, ((const uint8_t *)b)[k] != 0);
    case IFD_STR:
        return order(ifd_text_order(((const struct ifd_str *)a)[i], ((const struct ifd_str *)b)[k]),
                     0);
    default:
        if (c->is_stored) {
            return order(((const int16_t *)a)[i], ((const int16_t *)b)[k]);
        }
        if (c->is_real) {
            return order_f64(c->scale_a * (ifd_ref_load(c->dtype, a, (size_t)i) - c->zero_a),
                             c->scale_b * (ifd_ref_load(c->dtype, b, (size_t)k) - c->zero_b));
        }
        return order(scaled(ifd_ref_load(c->dtype, a, (size_t)i) - c->zero_a, c->a),
                     scaled(ifd_ref_load(c->dtype, b, (size_t)k) - c->zero_b, c->b));
    }
}

enum { EQUAL = 2, NOT_EQUAL = 13 };

/* accepted: bit 0 for less, bit 1 for equal, bit 2 for greater, bit 3 for not ordered. */
static void compare_all(const struct ifd_ref_call *call, uint32_t accepted)
{
    struct comparison c = {.dtype = call->in[0]->dtype};
    if (ifd_dtype_is_quantized(c.dtype)) {
        c.zero_a = ifd_ref_zero_point(call->in[0]);
        c.zero_b = ifd_ref_zero_point(call->in[1]);
        c.scale_a = (double)ifd_ref_scale(call->in[0]);
        c.scale_b = (double)ifd_ref_scale(call->in[1]);
        c.is_stored = c.dtype == IFD_S16 && accepted != EQUAL && accepted != NOT_EQUAL;
        c.a = ifd_multiplier(c.scale_a);
        c.b = ifd_multiplier(c.scale_b);
        const int bits = LEFT_SHIFT + (c.dtype == IFD_S16 ? 15 : 8);
        c.is_real = !ifd_shifts_alike(c.a, bits) || !ifd_shifts_alike(c.b, bits);
    }
    uint8_t *y = call->output[0];
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const int result =
            compare(&c, call->input[0], walk.offset[0], call->input[1], walk.offset[1]);
        y[walk.done] = accepted >> (result + 1) & 1;
    }
}

/* ---- logic ---- */

static void logic_all(const struct ifd_ref_call *call, bool is_and)
{
    const uint8_t *a = call->input[0];
    const uint8_t *b = call->input[1];
    uint8_t *y = call->output[0];
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const bool x = a[walk.offset[0]] != 0;
        const bool z = b[walk.offset[1]] != 0;
        y[walk.done] = is_and ? x && z : x || z;
    }
}

/* ---- definitions ---- */

#define TYPES_ORDERED (IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64) | IFD_DTYPES_QUANT)

#define TYPES_EQUAL (TYPES_ORDERED | IFD_BIT(IFD_BOOL) | IFD_BIT(IFD_STR))

/* X(name, shape rule, types of the inputs, function, its argument) */
#define BOOLEAN(X)                                                                                 \
    X(equal, compare_infer, TYPES_EQUAL, compare_all, EQUAL)                                       \
    X(not_equal, compare_infer, TYPES_EQUAL, compare_all, NOT_EQUAL)                               \
    X(less, compare_infer, TYPES_ORDERED, compare_all, 1)                                          \
    X(less_equal, compare_infer, TYPES_ORDERED, compare_all, 3)                                    \
    X(greater, compare_infer, TYPES_ORDERED, compare_all, 4)                                       \
    X(greater_equal, compare_infer, TYPES_ORDERED, compare_all, 6)                                 \
    X(logical_and, bool_infer, IFD_BIT(IFD_BOOL), logic_all, true)                                 \
    X(logical_or, bool_infer, IFD_BIT(IFD_BOOL), logic_all, false)

#define DEFINE(op, rule, types, function, argument)                                                \
    static enum ifd_code op##_ref(const struct ifd_ref_call *call, struct ifd_err *err)            \
    {                                                                                              \
        (void)err;                                                                                 \
        function(call, argument);                                                                  \
        return IFD_OK;                                                                             \
    }                                                                                              \
    const struct ifd_op_def ifd_op_##op = {.name = #op,                                            \
                                           .min_inputs = 2,                                        \
                                           .max_inputs = 2,                                        \
                                           .outputs = 1,                                           \
                                           .dtypes = (types),                                      \
                                           .batch = IFD_BATCH_ELEMENTWISE,                         \
                                           .is_elementwise = true,                                 \
                                           .infer = (rule),                                        \
                                           .ref = op##_ref};

BOOLEAN(DEFINE)
