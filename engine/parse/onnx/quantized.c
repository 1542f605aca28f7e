/* Quantized operators in floats, where they have no form on stored numbers (stored.c). Sums of
 * products are sums of whole numbers, which are exact up to 2^24, and are scaled once and rounded
 * to the even neighbour, as ONNX Runtime does; the others lie between a dequantization and a
 * quantization. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"
#include "engine/parse/onnx/quantized.h"

#define TINY 1e-37 /* keeps a division by the scale of all zeros away from 0 / 0 */

struct ifd_onnx_quant ifd_onnx_quant_at(const struct ifd_onnx_call *call, uint32_t i)
{
    return (struct ifd_onnx_quant){ifd_onnx_input(call, i), ifd_onnx_input(call, i + 1)};
}

bool ifd_onnx_describe(struct ifd_builder *b, const struct ifd_onnx_quant *q, struct ifd_desc *ret)
{
    const struct ifd_bytes scale = ifd_build_content(b, q->scale);
    const bool has_zero = q->zero_point != IFD_NONE;
    const enum ifd_dtype dtype = has_zero ? ifd_build_desc(b, q->zero_point)->dtype : IFD_U8;
    if ((dtype != IFD_U8 && dtype != IFD_S8) || scale.size != sizeof(float) ||
        ifd_build_desc(b, q->scale)->dtype != IFD_F32 ||
        (has_zero && ifd_build_content(b, q->zero_point).size == 0)) {
        return false;
    }
    float *scales = ifd_arena_take(b->graph->arena, sizeof(*scales));
    int32_t *zero_points = ifd_arena_take(b->graph->arena, sizeof(*zero_points));
    if (!scales || !zero_points) {
        b->code = ifd_arena_fail(b->graph->arena, sizeof(*scales), b->err);
        return false;
    }
    memcpy(scales, scale.data, sizeof(*scales));
    *zero_points = has_zero ? (int32_t)ifd_build_number_of(b, q->zero_point, "the zero point") : 0;
    ret->dtype = dtype;
    ret->quant = (struct ifd_quant){.scale = scales, .zero_point = zero_points, .count = 1};
    return isnormal(*scales) && *scales > 0;
}

uint32_t ifd_onnx_along(struct ifd_builder *b, uint32_t list, uint32_t rank, int64_t axis)
{
    const struct ifd_shape shape = ifd_build_desc(b, list)->shape;
    size_t count = 0;
    if (rank > 1 && shape.rank == rank) {
        return list;
    }
    if (!ifd_shape_elements(&shape, &count) || count == 1) {
        return ifd_build_reshape(b, list, NULL, 0);
    }
    int64_t dim[IFD_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dim[ifd_build_axis(b, axis, rank)] = (int64_t)count;
    return ifd_build_reshape(b, list, dim, rank);
}

/* Stored numbers as floats: those that stepped() cast, where it made them, else a cast. */
static uint32_t as_floats(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_node *cast = ifd_onnx_made_by(b, x, IFD_OP_CAST);
    const struct ifd_node *clamp = cast ? ifd_onnx_made_by(b, cast->input[0], IFD_OP_CLAMP) : NULL;
    const struct ifd_node *add = clamp ? ifd_onnx_made_by(b, clamp->input[0], IFD_OP_ADD) : NULL;
    const bool is_whole = add && ifd_onnx_made_by(b, add->input[0], IFD_OP_ROUND) &&
                          ifd_build_content(b, add->input[1]).size > 0;
    const struct ifd_clamp_attrs *range = clamp ? clamp->attrs : NULL;
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const bool fits = is_whole && dtype == IFD_U8 && range->min == 0 && range->max == 255;
    return fits ? cast->input[0] : ifd_build_cast(b, x, IFD_F32);
}

/* x as numbers without its zero point. */
static uint32_t centred(struct ifd_builder *b, uint32_t x, uint32_t zero_point, int64_t axis)
{
    const uint32_t rank = ifd_build_desc(b, x)->shape.rank;
    const uint32_t real = as_floats(b, x);
    if (zero_point == IFD_NONE) {
        return real;
    }
    const uint32_t zero = ifd_build_cast(b, ifd_onnx_along(b, zero_point, rank, axis), IFD_F32);
    return ifd_build_binary(b, IFD_OP_SUB, real, zero);
}

uint32_t ifd_onnx_dequantize(struct ifd_builder *b, uint32_t x, struct ifd_onnx_quant q,
                             int64_t axis)
{
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    struct ifd_desc described = {0};
    const struct ifd_desc output = {.dtype = IFD_F32};
    if (desc.quant.count == 1 && ifd_onnx_describe(b, &q, &described) &&
        described.dtype == desc.dtype && ifd_quant_same(&described.quant, &desc.quant)) {
        return ifd_build_node(b, IFD_OP_DEQUANTIZE, &x, 1, &output, NULL);
    }
    const uint32_t scale = ifd_onnx_along(b, q.scale, desc.shape.rank, axis);
    return ifd_build_binary(b, IFD_OP_MUL, centred(b, x, q.zero_point, axis), scale);
}

/* Whole numbers as stored ones, with what is known of their meaning. */
static uint32_t narrowed(struct ifd_builder *b, uint32_t x, const struct ifd_onnx_quant *q)
{
    struct ifd_desc output = {
        .dtype = q->zero_point == IFD_NONE ? IFD_U8 : ifd_build_desc(b, q->zero_point)->dtype};
    struct ifd_desc described = {0};
    if (ifd_onnx_describe(b, q, &described)) {
        output = described;
    }
    if (output.dtype == IFD_S8 || output.dtype == IFD_S16) { /* NaN is the lowest number */
        static const float one = 1;
        static const int32_t none = 0;
        static const struct ifd_quantize_attrs attrs = {.rounds_even = true};
        output.quant = (struct ifd_quant){.scale = &one, .zero_point = &none, .count = 1};
        return ifd_build_node(b, IFD_OP_QUANTIZE, &x, 1, &output, &attrs);
    }
    const float most = ifd_dtype_bytes(output.dtype) == 1 ? 255 : 65535;
    const uint32_t clamped = ifd_build_clamp(b, x, 0, most); /* NaN is 0 */
    return ifd_build_node(b, IFD_OP_CAST, &clamped, 1, &output, NULL);
}

/* x / scale, or x * scale, rounded, plus the zero point. */
static uint32_t stepped(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t scale,
                        const struct ifd_onnx_quant *q, int64_t axis)
{
    const uint32_t rank = ifd_build_desc(b, x)->shape.rank;
    const uint32_t steps = ifd_build_unary(
        b, IFD_OP_ROUND, ifd_build_binary(b, op, x, ifd_onnx_along(b, scale, rank, axis)));
    if (q->zero_point == IFD_NONE) {
        return narrowed(b, steps, q);
    }
    const uint32_t zero = ifd_build_cast(b, ifd_onnx_along(b, q->zero_point, rank, axis), IFD_F32);
    return narrowed(b, ifd_build_binary(b, IFD_OP_ADD, steps, zero), q);
}

uint32_t ifd_onnx_quantize(struct ifd_builder *b, uint32_t x, struct ifd_onnx_quant q, int64_t axis)
{
    const struct ifd_quantize_attrs attrs = {.rounds_even = true};
    struct ifd_desc output = {0};
    return ifd_onnx_describe(b, &q, &output)
               ? ifd_build_node(b, IFD_OP_QUANTIZE, &x, 1, &output, &attrs)
               : stepped(b, IFD_OP_DIV, x, q.scale, &q, axis);
}

/* Input i of three that belong together: numbers, scale, zero point. */
static uint32_t real_input(struct ifd_onnx_call *call, uint32_t i, int64_t axis)
{
    return ifd_onnx_dequantize(call->b, call->input[i], ifd_onnx_quant_at(call, i + 1), axis);
}

/* Over the whole tensor, 0 included: numbers of u8, scale and zero point. */
static void dynamic_quantize(struct ifd_builder *b, uint32_t x, uint32_t ret[3])
{
    struct ifd_ints all = {.count = ifd_build_desc(b, x)->shape.rank};
    for (uint32_t d = 0; d < all.count; d++) {
        all.value[d] = d;
    }
    const uint32_t max = ifd_build_with(b, IFD_OP_MAXIMUM,
                                        ifd_build_reduce(b, IFD_OP_REDUCE_MAX, x, &all, false), 0);
    const uint32_t min = ifd_build_with(b, IFD_OP_MINIMUM,
                                        ifd_build_reduce(b, IFD_OP_REDUCE_MIN, x, &all, false), 0);
    const uint32_t span =
        ifd_build_with(b, IFD_OP_DIV, ifd_build_binary(b, IFD_OP_SUB, max, min), 255);
    const uint32_t scale = ifd_build_with(b, IFD_OP_MAXIMUM, span, TINY);
    const uint32_t below =
        ifd_build_unary(b, IFD_OP_NEG, ifd_build_binary(b, IFD_OP_DIV, min, scale));
    const uint32_t zero = ifd_build_unary(b, IFD_OP_ROUND, ifd_build_clamp(b, below, 0, 255));
    const uint32_t steps =
        ifd_build_unary(b, IFD_OP_ROUND, ifd_build_binary(b, IFD_OP_DIV, x, scale));
    const uint32_t y = ifd_build_clamp(b, ifd_build_binary(b, IFD_OP_ADD, steps, zero), 0, 255);
    ret[0] = ifd_build_cast(b, y, IFD_U8);
    ret[1] = scale;
    ret[2] = ifd_build_cast(b, zero, IFD_U8);
}

uint32_t ifd_onnx_in_steps(struct ifd_builder *b, uint32_t x)
{
    uint32_t q[3];
    dynamic_quantize(b, x, q);
    return ifd_build_binary(b, IFD_OP_MUL, centred(b, q[0], q[2], 0), q[1]);
}

/* Stored numbers, scale and zero point of both factors: their product in floats. The second has a
 * scale for the whole or for each column. */
static uint32_t real_product(struct ifd_builder *b, const uint32_t x[3], const uint32_t y[3],
                             uint32_t bias)
{
    const uint32_t sums =
        ifd_build_matmul(b, centred(b, x[0], x[2], -2), centred(b, y[0], y[2], -1));
    const uint32_t scale = ifd_build_binary(b, IFD_OP_MUL, ifd_build_reshape(b, x[1], NULL, 0),
                                            ifd_onnx_along(b, y[1], 1, 0));
    const uint32_t product = ifd_build_binary(b, IFD_OP_MUL, sums, scale);
    return bias == IFD_NONE ? product : ifd_build_binary(b, IFD_OP_ADD, product, bias);
}

/* Inputs: x, y, the scales of both, the zero points of both, bias. */
static uint32_t matmul_integer_to_float(struct ifd_onnx_call *call)
{
    const uint32_t x[3] = {call->input[0], call->input[2], ifd_onnx_input(call, 4)};
    const uint32_t y[3] = {call->input[1], call->input[3], ifd_onnx_input(call, 5)};
    return real_product(call->b, x, y, ifd_onnx_input(call, 6));
}

/* Inputs: x in floats; y, its scale and zero point; bias. */
static uint32_t dynamic_quantize_matmul(struct ifd_onnx_call *call)
{
    const uint32_t y[3] = {call->input[1], call->input[2], ifd_onnx_input(call, 3)};
    const uint32_t operand[6] = {call->input[0], IFD_NONE, IFD_NONE, y[0], y[1], y[2]};
    struct ifd_onnx_call form = *call;
    form.input = operand;
    form.input_count = 6;
    const uint32_t layer = ifd_onnx_dynamic_matmul(&form), bias = ifd_onnx_input(call, 4);
    if (layer != IFD_NONE) {
        return bias == IFD_NONE ? layer : ifd_build_binary(call->b, IFD_OP_ADD, layer, bias);
    }
    uint32_t x[3];
    dynamic_quantize(call->b, call->input[0], x);
    return real_product(call->b, x, y, ifd_onnx_input(call, 4));
}

/* Sums as s32; exact while they stay below 2^24, then rounded to 24 bits. */
static uint32_t integer_sums(struct ifd_onnx_call *call, bool is_conv)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = centred(b, call->input[0], ifd_onnx_input(call, 2), -2);
    const uint32_t y = centred(b, call->input[1], ifd_onnx_input(call, 3), is_conv ? 0 : -1);
    const uint32_t sums =
        is_conv ? ifd_onnx_convolve(call, x, y, IFD_NONE, NULL) : ifd_build_matmul(b, x, y);
    return ifd_build_cast(b, sums, IFD_S32);
}

/* Input i as whole numbers; its zero point is input i + 2. */
static uint32_t whole_input(struct ifd_onnx_call *call, uint32_t i, int64_t axis)
{
    return centred(call->b, call->input[i], ifd_onnx_input(call, i + 2), axis);
}

/* What a sum of products of inputs 0 and 3 means: the product of their scales. */
static uint32_t product_scale(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    return ifd_build_binary(b, IFD_OP_MUL, ifd_build_reshape(b, call->input[1], NULL, 0),
                            ifd_onnx_along(b, call->input[4], 1, 0));
}

/* Sums as stored numbers; the scales of channels lie along an axis. The sums, which are whole, are
 * rounded, so that no pass moves the factor into the weights, which are whole numbers, too. */
static uint32_t scaled_down(struct ifd_onnx_call *call, uint32_t sums, uint32_t scale,
                            struct ifd_onnx_quant q, int64_t axis)
{
    struct ifd_builder *b = call->b;
    const uint32_t factor =
        ifd_build_binary(b, IFD_OP_DIV, scale, ifd_build_reshape(b, q.scale, NULL, 0));
    const uint32_t whole = ifd_build_unary(b, IFD_OP_ROUND, sums);
    return stepped(b, IFD_OP_MUL, whole, factor, &q, axis);
}

static uint32_t q_conv(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t bias = ifd_onnx_input(call, 8);
    const uint32_t sums =
        ifd_onnx_convolve(call, whole_input(call, 0, 0), whole_input(call, 3, 0),
                          bias == IFD_NONE ? IFD_NONE : ifd_build_cast(b, bias, IFD_F32), NULL);
    return scaled_down(call, sums, product_scale(call), ifd_onnx_quant_at(call, 6), 1);
}

/* Channels, the last dimension of a tensor, as its second one. */
static uint32_t channels_second(struct ifd_builder *b, uint32_t x)
{
    const uint32_t rank = ifd_build_desc(b, x)->shape.rank;
    uint32_t order[IFD_MAX_RANK] = {0, rank - 1};
    for (uint32_t d = 2; d < rank; d++) {
        order[d] = d - 1;
    }
    return rank == 4 ? ifd_build_to_nchw(b, x) : rank < 3 ? x : ifd_build_transpose(b, x, order);
}

static uint32_t channels_last(struct ifd_builder *b, uint32_t x)
{
    const uint32_t rank = ifd_build_desc(b, x)->shape.rank;
    uint32_t order[IFD_MAX_RANK] = {0};
    for (uint32_t d = 1; d < rank; d++) {
        order[d] = d + 1 < rank ? d + 1 : 1;
    }
    return rank == 4 ? ifd_build_to_nhwc(b, x) : rank < 3 ? x : ifd_build_transpose(b, x, order);
}

static uint32_t q_conv_in_any_layout(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const bool is_last = ifd_onnx_int(call, "channels_last", 0) != 0;
    uint32_t *input = ifd_arena_take_array(b->graph->arena, call->input_count, sizeof(*input));
    if (!input) {
        b->code = ifd_arena_fail(b->graph->arena, call->input_count * sizeof(*input), b->err);
        return IFD_NONE;
    }
    memcpy(input, call->input, call->input_count * sizeof(*input));
    input[0] = is_last ? channels_second(b, input[0]) : input[0];
    struct ifd_onnx_call form = *call;
    form.input = input;
    uint32_t y = ifd_onnx_stored_conv(&form, IFD_ACT_NONE);
    y = y == IFD_NONE ? q_conv(&form) : y;
    return is_last ? channels_last(b, y) : y;
}

static uint32_t q_matmul(struct ifd_onnx_call *call)
{
    const uint32_t sums =
        ifd_build_matmul(call->b, whole_input(call, 0, -2), whole_input(call, 3, -1));
    return scaled_down(call, sums, product_scale(call), ifd_onnx_quant_at(call, 6), -1);
}

static uint32_t q_gemm(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const bool is_transposed = ifd_onnx_int(call, "transB", 0) != 0;
    const uint32_t bias = ifd_onnx_input(call, 6);
    uint32_t x = whole_input(call, 0, 0);
    uint32_t y = whole_input(call, 3, is_transposed ? 0 : 1);
    x = ifd_onnx_int(call, "transA", 0) != 0 ? ifd_build_swap(b, x, 0, 1) : x;
    y = is_transposed ? ifd_build_swap(b, y, 0, 1) : y;
    uint32_t sums = ifd_build_matmul(b, x, y);
    sums = bias == IFD_NONE
               ? sums
               : ifd_build_binary(b, IFD_OP_ADD, sums, ifd_build_cast(b, bias, IFD_F32));
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    uint32_t scale = product_scale(call);
    scale = alpha == 1 ? scale : ifd_build_with(b, IFD_OP_MUL, scale, alpha);
    const struct ifd_onnx_quant q = ifd_onnx_quant_at(call, 7);
    return q.scale == IFD_NONE ? ifd_build_binary(b, IFD_OP_MUL, sums, scale)
                               : scaled_down(call, sums, scale, q, -1);
}

static uint32_t q_concat(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_axis_attrs attrs = {.axis = ifd_onnx_int32(call, "axis", 0)};
    const uint32_t count = (call->input_count - 2) / 3;
    uint32_t *real = ifd_arena_take_array(b->graph->arena, count, sizeof(*real));
    if (!real) {
        b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*real), b->err);
        return IFD_NONE;
    }
    if (call->input_count != 2 + 3 * count) {
        return ifd_build_fail(b, IFD_INVALID, "%u inputs, expected 2 and three for each part",
                              call->input_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        real[i] = real_input(call, 2 + 3 * i, 0);
    }
    const uint32_t y = ifd_build_node(b, IFD_OP_CONCAT, real, count, NULL, &attrs);
    return ifd_onnx_quantize(b, y, ifd_onnx_quant_at(call, 0), 0);
}

static uint32_t q_mean(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_ints axes;
    const uint32_t rank = ifd_build_desc(call->b, x)->shape.rank;
    if (!ifd_onnx_axes(call, UINT32_MAX, rank, &axes)) {
        axes.count = rank;
        for (uint32_t d = 0; d < rank; d++) {
            axes.value[d] = d;
        }
    }
    return ifd_build_reduce(call->b, IFD_OP_REDUCE_MEAN, x, &axes,
                            ifd_onnx_int(call, "keepdims", 1) != 0);
}

/* ONNX Runtime counts the steps up to 1 in whole numbers: 254 of 1/255. */
static struct ifd_onnx_quant in_whole_steps(struct ifd_builder *b, struct ifd_onnx_quant q)
{
    const uint32_t one = ifd_build_number(b, IFD_F32, 1);
    const uint32_t steps =
        ifd_build_unary(b, IFD_OP_FLOOR, ifd_build_binary(b, IFD_OP_DIV, one, q.scale));
    q.scale = ifd_build_binary(b, IFD_OP_DIV, one, steps);
    return q;
}

/* A function of one tensor: x, its quantization, that of the result. */
static uint32_t q_function(struct ifd_onnx_call *call, enum ifd_onnx_quantized which)
{
    struct ifd_builder *b = call->b;
    const struct ifd_leaky_relu_attrs leaky = {.alpha = (float)ifd_onnx_f32(call, "alpha", 0.01)};
    struct ifd_onnx_quant q = ifd_onnx_quant_at(call, 3);
    uint32_t y = real_input(call, 0, 0);
    const bool is_last = ifd_onnx_int(call, "channels_last", 0) != 0;
    y = is_last ? channels_second(b, y) : y;
    switch ((int)which) {
    case IFD_ONNX_Q_SIGMOID:
        y = ifd_build_unary(b, IFD_OP_LOGISTIC, y);
        break;
    case IFD_ONNX_Q_LEAKY_RELU:
        y = ifd_build_node(b, IFD_OP_LEAKY_RELU, &y, 1, NULL, &leaky);
        break;
    case IFD_ONNX_Q_SOFTMAX:
        y = ifd_onnx_softmax(call, IFD_OP_SOFTMAX, y, ifd_onnx_int(call, "opset", 13));
        q = in_whole_steps(b, q);
        break;
    case IFD_ONNX_Q_AVERAGE_POOL:
        y = ifd_onnx_average(call, y);
        break;
    case IFD_ONNX_Q_REDUCE_MEAN:
        y = q_mean(call, y);
        break;
    default:
        y = ifd_onnx_global(call, IFD_OP_REDUCE_MEAN, y);
        break;
    }
    y = is_last ? channels_last(b, y) : y;
    return ifd_onnx_quantize(b, y, q, 0);
}

static uint32_t q_binary(struct ifd_onnx_call *call, enum ifd_op op)
{
    const uint32_t stored = ifd_onnx_stored_binary(call, op, IFD_ACT_NONE);
    if (stored != IFD_NONE) {
        return stored;
    }
    const uint32_t y =
        ifd_build_binary(call->b, op, real_input(call, 0, 0), real_input(call, 3, 0));
    return ifd_onnx_quantize(call->b, y, ifd_onnx_quant_at(call, 6), 0);
}

/* Condition; x and y with scale and zero point; scale and zero point of the result. */
static uint32_t q_where(struct ifd_onnx_call *call)
{
    const uint32_t y =
        ifd_onnx_selected(call->b, call->input[0], real_input(call, 1, 0), real_input(call, 4, 0));
    return ifd_onnx_quantize(call->b, y, ifd_onnx_quant_at(call, 7), 0);
}

void ifd_onnx_quantized(struct ifd_onnx_call *call, int which)
{
    struct ifd_builder *b = call->b;
    const int64_t axis = ifd_onnx_int(call, "axis", 1);
    uint32_t y = IFD_NONE, dynamic[3];
    switch ((enum ifd_onnx_quantized)which) {
    case IFD_ONNX_QUANTIZE:
        y = ifd_onnx_quantize_linear(call, axis);
        break;
    case IFD_ONNX_DEQUANTIZE:
        y = ifd_onnx_dequantize_linear(call, axis);
        break;
    case IFD_ONNX_DYNAMIC_QUANTIZE:
        dynamic_quantize(b, call->input[0], dynamic);
        for (uint32_t i = 0; i < call->output_count; i++) {
            call->output[i] = dynamic[i];
        }
        return;
    case IFD_ONNX_DYNAMIC_QUANTIZE_MATMUL:
        y = dynamic_quantize_matmul(call);
        break;
    case IFD_ONNX_MATMUL_INTEGER_TO_FLOAT:
        y = matmul_integer_to_float(call);
        break;
    case IFD_ONNX_CONV_INTEGER:
        y = integer_sums(call, true);
        break;
    case IFD_ONNX_MATMUL_INTEGER:
        y = integer_sums(call, false);
        break;
    case IFD_ONNX_Q_CONV:
        y = q_conv_in_any_layout(call);
        break;
    case IFD_ONNX_Q_MATMUL:
        y = ifd_onnx_stored_matmul(call, IFD_ACT_NONE);
        y = y == IFD_NONE ? q_matmul(call) : y;
        break;
    case IFD_ONNX_Q_GEMM:
        y = ifd_onnx_stored_gemm(call, IFD_ACT_NONE);
        y = y == IFD_NONE ? q_gemm(call) : y;
        break;
    case IFD_ONNX_Q_ADD:
        y = q_binary(call, IFD_OP_ADD);
        break;
    case IFD_ONNX_Q_MUL:
        y = q_binary(call, IFD_OP_MUL);
        break;
    case IFD_ONNX_Q_WHERE:
        y = q_where(call);
        break;
    case IFD_ONNX_Q_CONCAT:
        y = q_concat(call);
        break;
    case IFD_ONNX_Q_SIGMOID:
    case IFD_ONNX_Q_SOFTMAX:
    case IFD_ONNX_Q_AVERAGE_POOL:
    case IFD_ONNX_Q_GLOBAL_AVERAGE_POOL:
    case IFD_ONNX_Q_LEAKY_RELU:
    case IFD_ONNX_Q_REDUCE_MEAN:
        y = q_function(call, (enum ifd_onnx_quantized)which);
        break;
    }
    call->output[0] = y;
}
