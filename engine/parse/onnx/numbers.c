/* Operators whose meaning depends on the type of their numbers: arithmetic, order, casts. Whole
 * numbers of 8 and 16 bits, which our operators take as quantized ones only, are computed as s32,
 * unsigned ones of 32 and 64 bits as s64: exact, but for u64 from 2^63 on where order counts. */
#include <math.h>

#include "engine/parse/onnx/onnx_impl.h"
#include "engine/parse/onnx/quantized.h"

uint32_t ifd_onnx_widened(struct ifd_builder *b, uint32_t x)
{
    const uint32_t small = IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_U16) | IFD_BIT(IFD_S16);
    const uint32_t large = IFD_BIT(IFD_U32) | IFD_BIT(IFD_U64);
    const uint32_t bit = IFD_BIT(ifd_build_desc(b, x)->dtype);
    return (small & bit) != 0   ? ifd_build_cast(b, x, IFD_S32)
           : (large & bit) != 0 ? ifd_build_cast(b, x, IFD_S64)
                                : x;
}

static uint32_t arithmetic(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y)
{
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    return ifd_build_cast(
        b, ifd_build_binary(b, op, ifd_onnx_widened(b, x), ifd_onnx_widened(b, y)), dtype);
}

static bool is_real(const struct ifd_builder *b, uint32_t x)
{
    return ifd_build_desc(b, x)->dtype == IFD_F32;
}

uint32_t ifd_onnx_compared(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y)
{
    const struct ifd_desc output = {.dtype = IFD_BOOL};
    const uint32_t operands[2] = {ifd_onnx_widened(b, x), ifd_onnx_widened(b, y)};
    return ifd_build_node(b, op, operands, 2, &output, NULL);
}

uint32_t ifd_onnx_selected(struct ifd_builder *b, uint32_t condition, uint32_t x, uint32_t y)
{
    const struct ifd_desc output = {.dtype = ifd_build_desc(b, x)->dtype};
    return ifd_build_node(b, IFD_OP_SELECT, (const uint32_t[]){condition, x, y}, 3, &output, NULL);
}

/* ---- of one tensor ---- */

uint32_t ifd_onnx_magnitude(struct ifd_builder *b, uint32_t x)
{
    return is_real(b, x)
               ? ifd_build_unary(b, IFD_OP_ABS, x)
               : ifd_build_binary(b, IFD_OP_MAXIMUM, x, ifd_build_unary(b, IFD_OP_NEG, x));
}

static uint32_t whole_unary(struct ifd_builder *b, enum ifd_op op, uint32_t x)
{
    switch ((int)op) {
    case IFD_OP_ABS:
        return ifd_onnx_magnitude(b, x);
    case IFD_OP_RELU:
        return ifd_build_with(b, IFD_OP_MAXIMUM, x, 0);
    case IFD_OP_SIGN:
        return ifd_build_with(b, IFD_OP_MINIMUM, ifd_build_with(b, IFD_OP_MAXIMUM, x, -1), 1);
    default:
        return ifd_build_unary(b, op, x);
    }
}

void ifd_onnx_unary(struct ifd_onnx_call *call, int op)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = call->input[0];
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    const bool is_own = desc.dtype == IFD_F32 || desc.quant.count == 1;
    call->output[0] =
        is_own ? ifd_build_unary(b, (enum ifd_op)op, x)
               : ifd_build_cast(b, whole_unary(b, (enum ifd_op)op, ifd_onnx_widened(b, x)),
                                desc.dtype);
}

static uint32_t cast_as(struct ifd_onnx_call *call, uint32_t x, int64_t type)
{
    struct ifd_builder *b = call->b;
    enum ifd_dtype dtype = IFD_F32;
    if (ifd_onnx_is_narrow(type)) {
        return ifd_onnx_narrowed(call, x, type);
    }
    if (!ifd_onnx_port_dtype(type, &dtype)) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "a cast to element type %lld", (long long)type);
    }
    if (dtype == IFD_STR || ifd_build_desc(b, x)->dtype == IFD_STR) {
        dtype = ifd_onnx_is_real(dtype) ? IFD_F32 : dtype;
        return ifd_onnx_text_cast(b, x, dtype);
    }
    x = ifd_build_cast(b, x, dtype); /* rounds, where the type is a narrow one of floats */
    return ifd_onnx_is_real(dtype) ? ifd_build_cast(b, x, IFD_F32) : x;
}

void ifd_onnx_cast(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = cast_as(call, call->input[0], ifd_onnx_int(call, "to", 0));
}

/* The reader has turned floats of other sizes into f32: their bits are gone. */
void ifd_onnx_bit_cast(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const int64_t type = ifd_onnx_int(call, "to", 0);
    const struct ifd_desc *in = ifd_build_desc(b, call->input[0]);
    struct ifd_desc output = {.dtype = IFD_F32};
    if (!ifd_onnx_port_dtype(type, &output.dtype) ||
        (ifd_onnx_is_real(output.dtype) && output.dtype != IFD_F32) ||
        ifd_dtype_bytes(output.dtype) != ifd_dtype_bytes(in->dtype)) {
        (void)ifd_build_fail(b, IFD_UNSUPPORTED, "the bits of %s as element type %lld",
                             ifd_dtype_name(in->dtype), (long long)type);
        return;
    }
    call->output[0] = ifd_build_node(b, IFD_OP_BITCAST, call->input, 1, &output, NULL);
}

void ifd_onnx_cast_like(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const enum ifd_dtype dtype = ifd_build_desc(call->b, call->input[1])->dtype;
    const int64_t type = ifd_onnx_narrow_type(call, 1);
    call->output[0] =
        type != 0 ? ifd_onnx_narrowed(call, call->input[0], type)
        : dtype == IFD_STR || ifd_build_desc(call->b, call->input[0])->dtype == IFD_STR
            ? ifd_onnx_text_cast(call->b, call->input[0], dtype)
            : ifd_build_cast(call->b, call->input[0], dtype);
}

void ifd_onnx_is_nan(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const uint32_t x = call->input[0];
    call->output[0] = ifd_onnx_compared(call->b, IFD_OP_NOT_EQUAL, x, x);
}

void ifd_onnx_is_inf(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const bool above = ifd_onnx_int(call, "detect_positive", 1) != 0;
    const bool below = ifd_onnx_int(call, "detect_negative", 1) != 0;
    const uint32_t x = call->input[0];
    const uint32_t end = ifd_build_number(b, IFD_F32, above ? HUGE_VAL : -HUGE_VAL);
    const uint32_t nothing = ifd_build_number(b, IFD_F32, NAN); /* equals no number */
    call->output[0] =
        ifd_onnx_compared(b, IFD_OP_EQUAL, above && below ? ifd_build_unary(b, IFD_OP_ABS, x) : x,
                          above || below ? end : nothing);
}

void ifd_onnx_clip(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    uint32_t x = call->input[0];
    const uint32_t low = ifd_onnx_input(call, 1), high = ifd_onnx_input(call, 2);
    const bool is_constant = (low == IFD_NONE || ifd_build_content(b, low).size > 0) &&
                             (high == IFD_NONE || ifd_build_content(b, high).size > 0);
    if (is_real(b, x) && is_constant) {
        double min = ifd_onnx_f32(call, "min", -HUGE_VAL);
        double max = ifd_onnx_f32(call, "max", HUGE_VAL);
        min = low == IFD_NONE ? min : ifd_build_number_of(b, low, "the lower bound");
        max = high == IFD_NONE ? max : ifd_build_number_of(b, high, "the upper bound");
        call->output[0] = ifd_build_clamp(b, x, min, max);
        return;
    }
    x = low == IFD_NONE ? x : arithmetic(b, IFD_OP_MAXIMUM, x, low);
    call->output[0] = high == IFD_NONE ? x : arithmetic(b, IFD_OP_MINIMUM, x, high);
}

/* ---- of two tensors and more ---- */

/* Before opset 7 the second operand lay along the dimensions from an axis on. */
static uint32_t old_operand(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = ifd_build_desc(b, call->input[0])->shape;
    struct ifd_shape y = ifd_build_desc(b, call->input[1])->shape;
    const int64_t axis = ifd_onnx_int(call, "axis", -1);
    const uint32_t at = axis < 0 ? 0 : ifd_build_axis(b, axis, x.rank);
    if (call->opset >= 7 || axis < 0 || at + y.rank > x.rank) {
        return call->input[1];
    }
    for (uint32_t end = x.rank - at; y.rank < end;) {
        y.dim[y.rank++] = 1;
    }
    return ifd_build_reshape(b, call->input[1], y.dim, y.rank);
}

void ifd_onnx_binary(struct ifd_onnx_call *call, int op)
{
    const uint32_t layer = op == IFD_OP_MUL ? ifd_onnx_dynamic_product(call) : IFD_NONE;
    call->output[0] = layer != IFD_NONE
                          ? layer
                          : arithmetic(call->b, (enum ifd_op)op, call->input[0], old_operand(call));
}

/* Before opset 7 a list of slopes lay along the channels. */
static uint32_t whole_prelu(struct ifd_builder *b, uint32_t x, uint32_t slope)
{
    const uint32_t zero =
        ifd_build_cast(b, ifd_build_number(b, IFD_S64, 0), ifd_build_desc(b, x)->dtype);
    const uint32_t is_below = ifd_onnx_compared(b, IFD_OP_LESS, x, zero);
    return ifd_onnx_selected(b, is_below, arithmetic(b, IFD_OP_MUL, x, slope), x);
}

void ifd_onnx_prelu(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = ifd_build_desc(b, call->input[0])->shape;
    struct ifd_shape slope = ifd_build_desc(b, call->input[1])->shape;
    uint32_t y = call->input[1];
    if (call->opset < 7 && slope.rank == 1 && x.rank > 2 && slope.dim[0] == x.dim[1]) {
        for (uint32_t d = 2; d < x.rank; d++) {
            slope.dim[slope.rank++] = 1;
        }
        y = ifd_build_reshape(b, y, slope.dim, slope.rank);
    }
    call->output[0] = is_real(b, call->input[0])
                          ? ifd_build_binary(b, IFD_OP_PRELU, call->input[0], y)
                          : whole_prelu(b, call->input[0], y);
}

void ifd_onnx_compare(struct ifd_onnx_call *call, int op)
{
    call->output[0] =
        ifd_onnx_compared(call->b, (enum ifd_op)op, call->input[0], old_operand(call));
}

static uint32_t fold_inputs(struct ifd_onnx_call *call, enum ifd_op op)
{
    uint32_t y = call->input[0];
    for (uint32_t i = 1; i < call->input_count; i++) {
        y = arithmetic(call->b, op, y, call->input[i]);
    }
    return y;
}

void ifd_onnx_fold_inputs(struct ifd_onnx_call *call, int op)
{
    call->output[0] = fold_inputs(call, (enum ifd_op)op);
}

void ifd_onnx_mean(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] =
        ifd_build_with(call->b, IFD_OP_MUL, fold_inputs(call, IFD_OP_ADD), 1.0 / call->input_count);
}

void ifd_onnx_where(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = ifd_onnx_selected(call->b, call->input[0], call->input[1], call->input[2]);
}

/* A power has the type of its base; where one of both is a float, it is computed as one. */
void ifd_onnx_power(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    uint32_t x = call->input[0];
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const bool as_real = is_real(b, x) || is_real(b, call->input[1]);
    x = as_real ? ifd_build_cast(b, x, IFD_F32) : ifd_onnx_widened(b, x);
    const uint32_t exponent = ifd_build_cast(b, old_operand(call), ifd_build_desc(b, x)->dtype);
    const struct ifd_bytes content = ifd_build_content(b, exponent);
    const double number = as_real && content.size == sizeof(float)
                              ? ifd_build_number_of(b, exponent, "the exponent")
                              : NAN;
    const uint32_t square =
        number == 2 || number == 3 ? ifd_build_binary(b, IFD_OP_MUL, x, x) : IFD_NONE;
    const uint32_t y = number == 2     ? square
                       : number == 3   ? ifd_build_binary(b, IFD_OP_MUL, square, x)
                       : number == 0.5 ? ifd_build_unary(b, IFD_OP_SQRT, x)
                                       : ifd_build_binary(b, IFD_OP_POW, x, exponent);
    call->output[0] = ifd_build_cast(b, y, dtype);
}

/* The remainder has the sign of the divisor, with "fmod" that of x. */
void ifd_onnx_modulo(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_onnx_widened(b, call->input[0]), y = ifd_onnx_widened(b, call->input[1]);
    const enum ifd_dtype dtype = ifd_build_desc(b, call->input[0])->dtype;
    if (ifd_onnx_int(call, "fmod", 0) == 0) {
        call->output[0] = ifd_build_cast(b, ifd_build_binary(b, IFD_OP_FLOOR_MOD, x, y), dtype);
        return;
    }
    /* |x| mod |y| with the sign of x */
    const uint32_t magnitude[2] = {ifd_onnx_magnitude(b, x), ifd_onnx_magnitude(b, y)};
    const uint32_t rest = ifd_build_binary(b, IFD_OP_FLOOR_MOD, magnitude[0], magnitude[1]);
    const uint32_t is_below =
        ifd_onnx_compared(b, IFD_OP_LESS, x, ifd_build_number(b, ifd_build_desc(b, x)->dtype, 0));
    const uint32_t signed_rest =
        ifd_onnx_selected(b, is_below, ifd_build_unary(b, IFD_OP_NEG, rest), rest);
    call->output[0] = ifd_build_cast(b, signed_rest, dtype);
}

/* By less than 0, or by more than there are bits: copies of the sign alone. */
static uint32_t shifted_right(struct ifd_builder *b, uint32_t x, uint32_t count)
{
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const uint32_t has_sign =
        IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64);
    const double last = 8 * (double)ifd_dtype_bytes(dtype) - 1;
    const uint32_t zero = ifd_build_cast(b, ifd_build_number(b, IFD_S32, 0), dtype);
    const uint32_t most = ifd_build_cast(b, ifd_build_number(b, IFD_S32, last), dtype);
    const uint32_t is_outside =
        ifd_build_binary(b, IFD_OP_LOGICAL_OR, ifd_onnx_compared(b, IFD_OP_LESS, count, zero),
                         ifd_onnx_compared(b, IFD_OP_GREATER, count, most));
    const uint32_t fill =
        (has_sign & IFD_BIT(dtype)) != 0 ? ifd_build_binary(b, IFD_OP_RIGHT_SHIFT, x, most) : zero;
    return ifd_onnx_selected(b, is_outside, fill,
                             ifd_build_binary(b, IFD_OP_RIGHT_SHIFT, x, count));
}

/* To the left by a power of 2. */
void ifd_onnx_bit_shift(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const uint32_t x = call->input[0], count = call->input[1];
    if (!ifd_onnx_text_is(call, "direction", "LEFT", false)) {
        call->output[0] = shifted_right(b, x, count);
        return;
    }
    const uint32_t two = ifd_build_number(b, IFD_S64, 2);
    const uint32_t power = ifd_build_binary(b, IFD_OP_POW, two, ifd_build_cast(b, count, IFD_S64));
    const uint32_t y = ifd_build_binary(b, IFD_OP_MUL, ifd_build_cast(b, x, IFD_S64), power);
    call->output[0] = ifd_build_cast(b, y, ifd_build_desc(b, x)->dtype);
}

void ifd_onnx_bitwise(struct ifd_onnx_call *call, int op)
{
    call->output[0] = ifd_build_binary(call->b, (enum ifd_op)op, call->input[0], call->input[1]);
}

uint32_t ifd_onnx_inverted(struct ifd_builder *b, uint32_t x)
{
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const uint32_t ones = ifd_build_cast(b, ifd_build_number(b, IFD_S64, -1), dtype);
    return ifd_build_binary(b, IFD_OP_BITWISE_XOR, x, ones);
}

void ifd_onnx_bitwise_not(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = ifd_onnx_inverted(call->b, call->input[0]);
}

void ifd_onnx_cumsum(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_cumsum_attrs attrs = {
        .axis = ifd_build_int_of(b, call->input[1], "the axis"),
        .exclusive = ifd_onnx_int(call, "exclusive", 0) != 0,
        .reverse = ifd_onnx_int(call, "reverse", 0) != 0,
    };
    const uint32_t x = ifd_onnx_widened(b, call->input[0]);
    call->output[0] = ifd_build_cast(b, ifd_build_node(b, IFD_OP_CUMSUM, &x, 1, NULL, &attrs),
                                     ifd_build_desc(b, call->input[0])->dtype);
}
