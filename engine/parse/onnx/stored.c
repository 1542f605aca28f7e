/* Quantized operators as operators of ours with 8-bit weights, rounded as ONNX Runtime does it. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/quantized.h"

/* Factors of sums and products beyond this, or below its inverse, are left to floats. */
#define FACTOR_MAX 1e6f

static bool is_8bit(enum ifd_dtype dtype)
{
    return dtype == IFD_U8 || dtype == IFD_S8;
}

/* x with this quantization: x itself if it has it already. */
static uint32_t labelled(struct ifd_builder *b, uint32_t x, const struct ifd_desc *desc)
{
    const struct ifd_desc old = *ifd_build_desc(b, x);
    const struct ifd_bytes content = ifd_build_content(b, x);
    struct ifd_desc whole = *desc;
    whole.shape = old.shape;
    if (ifd_quant_same(&old.quant, &desc->quant) && old.dtype == desc->dtype) {
        return x;
    }
    return content.size > 0 ? ifd_build_constant(b, &whole, content, IFD_TENSOR_PAD)
                            : ifd_build_node(b, IFD_OP_CAST, &x, 1, desc, NULL);
}

/* Input i, whose quantization follows it, as our operators want it. */
static bool take_input(struct ifd_onnx_call *call, uint32_t i, struct ifd_desc *ret)
{
    const struct ifd_onnx_quant q = ifd_onnx_quant_at(call, i + 1);
    const enum ifd_dtype dtype = ifd_build_desc(call->b, call->input[i])->dtype;
    return is_8bit(dtype) && ifd_onnx_describe(call->b, &q, ret) && ret->dtype == dtype;
}

/* ---- weights ---- */

/* Elements of a constant list of this type; 0 if it is something else. */
static size_t list_size(struct ifd_builder *b, uint32_t list, enum ifd_dtype dtype)
{
    size_t count = 0;
    const struct ifd_desc *desc = ifd_build_desc(b, list);
    const bool is_list = ifd_build_content(b, list).size > 0 && desc->dtype == dtype &&
                         ifd_shape_elements(&desc->shape, &count);
    return is_list ? count : 0;
}

/* The one zero point of all channels; -1 if it is none. */
static int32_t zero_of(struct ifd_builder *b, uint32_t zero_point, enum ifd_dtype dtype)
{
    const size_t count = zero_point == IFD_NONE ? 0 : list_size(b, zero_point, dtype);
    const struct ifd_bytes content = ifd_build_content(b, zero_point);
    for (size_t i = 1; i < count; i++) {
        if (content.data[i] != content.data[0]) {
            return -1;
        }
    }
    return zero_point == IFD_NONE ? 0 : count == 0 ? -1 : content.data[0];
}

/* Constant weights: a copy of u8 ones becomes s8, where channels have scales of their own. */
struct weights {
    uint32_t value;
    struct ifd_desc desc; /* type and quantization; the axis is set where they are used */
};

static uint32_t to_signed(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_bytes from = ifd_build_content(b, x);
    struct ifd_desc desc = *ifd_build_desc(b, x);
    uint8_t *data = ifd_arena_take_tensor(b->graph->arena, from.size);
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena, from.size, b->err);
        return IFD_NONE;
    }
    for (size_t i = 0; i < from.size; i++) {
        data[i] = from.data[i] ^ 0x80;
    }
    desc.dtype = IFD_S8;
    return ifd_build_constant(b, &desc, (struct ifd_bytes){data, from.size}, IFD_TENSOR_PAD);
}

/* Scales and zero points of channels; of one channel: of the whole tensor. */
static bool make_quant(struct ifd_builder *b, uint32_t scale, size_t count, int32_t zero,
                       struct ifd_quant *ret)
{
    const uint8_t *from = ifd_build_content(b, scale).data;
    float *scales = ifd_arena_take_array(b->graph->arena, count, sizeof(*scales));
    int32_t *zero_points = ifd_arena_take_array(b->graph->arena, count, sizeof(*zero_points));
    if (!scales || !zero_points) {
        b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*scales), b->err);
        return false;
    }
    memcpy(scales, from, count * sizeof(*scales));
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        zero_points[i] = zero;
        ok = ok && isnormal(scales[i]) && scales[i] > 0;
    }
    *ret = (struct ifd_quant){.scale = scales, .zero_point = zero_points, .count = (uint32_t)count};
    return ok;
}

/* Input i of this many output channels. */
static bool take_weights(struct ifd_onnx_call *call, uint32_t i, int64_t channels,
                         struct weights *ret)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_quant q = ifd_onnx_quant_at(call, i + 1);
    const enum ifd_dtype dtype = ifd_build_desc(b, call->input[i])->dtype;
    const size_t count = list_size(b, q.scale, IFD_F32);
    const int32_t byte = zero_of(b, q.zero_point, dtype);
    if (!is_8bit(dtype) || ifd_build_content(b, call->input[i]).size == 0 || byte < 0 ||
        (count != 1 && count != (size_t)channels)) {
        return false;
    }
    *ret = (struct weights){.value = call->input[i], .desc = {.dtype = dtype}};
    int32_t zero = dtype == IFD_S8 ? (int8_t)byte : byte;
    if (dtype == IFD_U8 && count > 1 && zero == 128) {
        ret->value = to_signed(b, ret->value);
        ret->desc.dtype = IFD_S8;
        zero = 0;
    }
    return b->code == IFD_OK && (count == 1 || zero == 0) &&
           make_quant(b, q.scale, count, zero, &ret->desc.quant);
}

/* A constant bias, one s32 for each channel, or none. */
static bool take_bias(struct ifd_onnx_call *call, uint32_t i, int64_t channels, uint32_t *ret)
{
    const uint32_t bias = ifd_onnx_input(call, i);
    const int64_t dim[1] = {channels};
    if (bias != IFD_NONE && list_size(call->b, bias, IFD_S32) != (size_t)channels) {
        return false;
    }
    *ret = bias == IFD_NONE ? IFD_NONE : ifd_build_reshape(call->b, bias, dim, 1);
    return call->b->code == IFD_OK;
}

/* ---- layers ---- */

struct layer {
    struct ifd_desc x, y;
    struct weights weights;
    uint32_t bias;
    int64_t channels;
};

static bool has_sane_factors(const struct layer *layer)
{
    const struct ifd_quant *q = &layer->weights.desc.quant;
    bool ok = true;
    for (uint32_t i = 0; i < q->count; i++) {
        const float factor = layer->x.quant.scale[0] * q->scale[i] / layer->y.quant.scale[0];
        ok = ok && factor < FACTOR_MAX && factor > 1 / FACTOR_MAX / FACTOR_MAX;
    }
    return ok;
}

/* x and weights at 0 and 3, bias at input bias, the result's quantization at y. */
static bool take_layer(struct ifd_onnx_call *call, int64_t channels, uint32_t bias, uint32_t y,
                       struct layer *ret)
{
    const struct ifd_onnx_quant q = ifd_onnx_quant_at(call, y);
    *ret = (struct layer){.channels = channels};
    return channels > 0 && take_input(call, 0, &ret->x) && q.scale != IFD_NONE &&
           ifd_onnx_describe(call->b, &q, &ret->y) && ret->y.dtype == ret->x.dtype &&
           take_bias(call, bias, channels, &ret->bias) &&
           take_weights(call, 3, channels, &ret->weights) && has_sane_factors(ret);
}

uint32_t ifd_onnx_stored_conv(struct ifd_onnx_call *call, int32_t activation)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape filter = ifd_build_desc(b, call->input[3])->shape;
    struct layer layer;
    if (filter.rank < 3 || filter.rank > 4 || !take_layer(call, filter.dim[0], 8, 6, &layer)) {
        return IFD_NONE;
    }
    const struct ifd_onnx_stored stored = {
        .filter = layer.weights.desc, .output = layer.y, .activation = activation};
    return ifd_onnx_convolve(call, labelled(b, call->input[0], &layer.x), layer.weights.value,
                             layer.bias, &stored);
}

/* weights [n, k] */
static uint32_t multiply(struct ifd_onnx_call *call, const struct layer *layer, uint32_t weights,
                         int32_t activation)
{
    struct ifd_builder *b = call->b;
    const struct ifd_fully_connected_attrs attrs = {
        .activation = activation, .keep_dims = true, .rounds_even = true};
    const uint32_t input[3] = {labelled(b, call->input[0], &layer->x),
                               labelled(b, weights, &layer->weights.desc), layer->bias};
    return ifd_build_node(b, IFD_OP_FULLY_CONNECTED, input, layer->bias == IFD_NONE ? 2 : 3,
                          &layer->y, &attrs);
}

uint32_t ifd_onnx_stored_matmul(struct ifd_onnx_call *call, int32_t activation)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape y = ifd_build_desc(b, call->input[3])->shape;
    struct layer layer;
    if (ifd_build_desc(b, call->input[0])->shape.rank < 2 || y.rank != 2 ||
        !take_layer(call, y.dim[1], call->input_count, 6, &layer)) {
        return IFD_NONE;
    }
    return multiply(call, &layer, ifd_build_swap(b, layer.weights.value, 0, 1), activation);
}

uint32_t ifd_onnx_stored_gemm(struct ifd_onnx_call *call, int32_t activation)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape y = ifd_build_desc(b, call->input[3])->shape;
    const bool is_transposed = ifd_onnx_int(call, "transB", 0) != 0;
    struct layer layer;
    if (ifd_onnx_int(call, "transA", 0) != 0 || ifd_onnx_f32(call, "alpha", 1) != 1 ||
        ifd_onnx_f32(call, "beta", 1) != 1 || ifd_build_desc(b, call->input[0])->shape.rank != 2 ||
        y.rank != 2 || !take_layer(call, y.dim[is_transposed ? 0 : 1], 6, 7, &layer)) {
        return IFD_NONE;
    }
    const uint32_t weights = layer.weights.value;
    return multiply(call, &layer, is_transposed ? weights : ifd_build_swap(b, weights, 0, 1),
                    activation);
}

/* ---- layers of f32 data ---- */

uint32_t ifd_onnx_dynamic_conv(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape filter = ifd_build_desc(b, call->input[3])->shape;
    const struct ifd_desc *x = ifd_build_desc(b, call->input[0]);
    struct weights weights;
    const int64_t groups = ifd_onnx_int(call, "group", 1);
    const bool is_one = groups == 1 || (filter.rank > 1 && filter.dim[1] == 1);
    if (filter.rank < 3 || filter.rank > 4 || x->dtype != IFD_F32 || !is_one ||
        !take_weights(call, 3, filter.dim[0], &weights)) {
        return IFD_NONE;
    }
    const struct ifd_onnx_stored stored = {.filter = weights.desc, .output = {.dtype = IFD_F32}};
    return ifd_onnx_convolve(call, call->input[0], weights.value, IFD_NONE, &stored);
}

uint32_t ifd_onnx_dynamic_matmul(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape y = ifd_build_desc(b, call->input[3])->shape;
    const struct ifd_desc *x = ifd_build_desc(b, call->input[0]);
    struct weights weights;
    if (x->shape.rank < 2 || y.rank != 2 || x->dtype != IFD_F32 ||
        !take_weights(call, 3, y.dim[1], &weights)) {
        return IFD_NONE;
    }
    const struct ifd_fully_connected_attrs attrs = {.keep_dims = true, .rounds_even = true};
    const uint32_t input[2] = {call->input[0],
                               labelled(b, ifd_build_swap(b, weights.value, 0, 1), &weights.desc)};
    return ifd_build_node(b, IFD_OP_FULLY_CONNECTED, input, 2, &(struct ifd_desc){.dtype = IFD_F32},
                          &attrs);
}

/* ---- two tensors ---- */

uint32_t ifd_onnx_stored_binary(struct ifd_onnx_call *call, enum ifd_op op, int32_t activation)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_quant q = ifd_onnx_quant_at(call, 6);
    const struct ifd_binary_attrs attrs = {.activation = activation, .rounds_even = true};
    struct ifd_desc x[2], y;
    if (!take_input(call, 0, &x[0]) || !take_input(call, 3, &x[1]) ||
        !ifd_onnx_describe(b, &q, &y) || x[0].dtype != x[1].dtype || x[0].dtype != y.dtype) {
        return IFD_NONE;
    }
    const float scale = y.quant.scale[0], a = x[0].quant.scale[0] / scale,
                c = x[1].quant.scale[0] / scale, product = a * x[1].quant.scale[0];
    if (!(a < FACTOR_MAX && c < FACTOR_MAX && product < FACTOR_MAX)) {
        return IFD_NONE;
    }
    const uint32_t input[2] = {labelled(b, call->input[0], &x[0]),
                               labelled(b, call->input[3], &x[1])};
    return ifd_build_node(b, op, input, 2, &y, &attrs);
}
