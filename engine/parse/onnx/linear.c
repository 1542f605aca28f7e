/* QuantizeLinear and DequantizeLinear: scales of the whole, of channels and of blocks; stored
 * numbers of 16, 8 and fewer bits. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"
#include "engine/parse/onnx/quantized.h"

/* Blocks of elements along an axis share a number: each number as often as its block is long. */
static uint32_t repeated(struct ifd_onnx_call *call, uint32_t list, int64_t axis)
{
    struct ifd_builder *b = call->b;
    const int64_t block = ifd_onnx_int(call, "block_size", 0);
    const struct ifd_shape in = ifd_build_desc(b, call->input[0])->shape;
    const struct ifd_shape shape = list == IFD_NONE ? in : ifd_build_desc(b, list)->shape;
    if (block <= 0 || list == IFD_NONE || b->code != IFD_OK) {
        return list;
    }
    const uint32_t d = ifd_build_axis(b, axis, in.rank);
    if (b->code != IFD_OK || shape.rank != in.rank || in.rank == IFD_MAX_RANK ||
        block > INT32_MAX || shape.dim[d] != (in.dim[d] + block - 1) / block) {
        return ifd_build_fail(b, IFD_INVALID, "numbers of shape %s for blocks of %lld of %s",
                              ifd_shape_text(&shape).s, (long long)block, ifd_shape_text(&in).s);
    }
    struct ifd_shape apart = shape, whole = shape;
    struct ifd_tile_attrs attrs = {.repeats = {.count = shape.rank + 1}};
    for (uint32_t i = 0; i <= shape.rank; i++) {
        attrs.repeats.value[i] = i == d + 1 ? block : 1;
        apart.dim[i] = i == d + 1 ? 1 : shape.dim[i <= d ? i : i - 1];
    }
    const uint32_t columns = ifd_build_reshape(b, list, apart.dim, shape.rank + 1);
    const uint32_t tiled = ifd_build_node(b, IFD_OP_TILE, &columns, 1, NULL, &attrs);
    whole.dim[d] *= block;
    return ifd_build_cut(b, ifd_build_reshape(b, tiled, whole.dim, whole.rank), d, 0, in.dim[d]);
}

/* Of inputs 1 and 2. */
static struct ifd_onnx_quant quant_of_blocks(struct ifd_onnx_call *call, int64_t axis)
{
    const struct ifd_onnx_quant q = ifd_onnx_quant_at(call, 1);
    return (struct ifd_onnx_quant){repeated(call, q.scale, axis),
                                   repeated(call, q.zero_point, axis)};
}

/* The same; without a zero point an attribute says what numbers they are. */
static struct ifd_onnx_quant quant_of_output(struct ifd_onnx_call *call, int64_t axis)
{
    struct ifd_onnx_quant q = quant_of_blocks(call, axis);
    const int64_t type = ifd_onnx_int(call, "output_dtype", 0);
    enum ifd_dtype dtype = IFD_U8;
    if (type == 0 || q.zero_point != IFD_NONE) {
        return q;
    }
    if (!ifd_onnx_dtype(type, &dtype) || ifd_dtype_bytes(dtype) > 2 || dtype == IFD_BOOL) {
        (void)ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"output_dtype\" is %lld",
                             (long long)type);
        return q;
    }
    q.zero_point = ifd_build_number(call->b, dtype, 0);
    return q;
}

/* x / scale as a narrow type, whose zero point is kept in a wider one. */
static uint32_t quantize_narrow(struct ifd_onnx_call *call, int64_t type, int64_t axis)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_quant q = quant_of_blocks(call, axis);
    const uint32_t rank = ifd_build_desc(b, call->input[0])->shape.rank;
    uint32_t y =
        ifd_build_binary(b, IFD_OP_DIV, call->input[0], ifd_onnx_along(b, q.scale, rank, axis));
    y = ifd_onnx_is_narrow_real(type) ? y : ifd_build_unary(b, IFD_OP_ROUND, y);
    if (q.zero_point != IFD_NONE) {
        const uint32_t zero =
            ifd_build_cast(b, ifd_onnx_along(b, q.zero_point, rank, axis), IFD_F32);
        y = ifd_build_binary(b, IFD_OP_ADD, y, zero);
    }
    if (!ifd_onnx_is_narrow_real(type)) {
        double min = 0, max = 0;
        ifd_onnx_narrow_range(type, &min, &max);
        y = ifd_build_clamp(b, y, min, max);
    }
    return ifd_onnx_narrowed(call, y, type);
}

uint32_t ifd_onnx_quantize_linear(struct ifd_onnx_call *call, int64_t axis)
{
    const int64_t given = ifd_onnx_narrow_type(call, 2);
    const int64_t type = given != 0 ? given : ifd_onnx_int(call, "output_dtype", 0);
    if (ifd_onnx_is_narrow(type)) {
        return quantize_narrow(call, type, axis);
    }
    const uint32_t fused = ifd_onnx_fused_qdq(call);
    return fused == IFD_NONE
               ? ifd_onnx_quantize(call->b, call->input[0], quant_of_output(call, axis), axis)
               : fused;
}

uint32_t ifd_onnx_dequantize_linear(struct ifd_onnx_call *call, int64_t axis)
{
    return ifd_onnx_dequantize(call->b, call->input[0], quant_of_blocks(call, axis), axis);
}
