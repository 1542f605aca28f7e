/* Reductions, the places of extremes, softmax and its kin. */
#include "engine/parse/onnx/onnx_impl.h"

/* ---- reductions ---- */

static uint32_t reduced(struct ifd_builder *b, enum ifd_onnx_reduction which, uint32_t x,
                        const struct ifd_ints *axes, bool keep)
{
    static const enum ifd_op ops[] = {
        [IFD_ONNX_REDUCE_MEAN] = IFD_OP_REDUCE_MEAN, [IFD_ONNX_REDUCE_SUM] = IFD_OP_REDUCE_SUM,
        [IFD_ONNX_REDUCE_MAX] = IFD_OP_REDUCE_MAX,   [IFD_ONNX_REDUCE_MIN] = IFD_OP_REDUCE_MIN,
        [IFD_ONNX_REDUCE_PROD] = IFD_OP_REDUCE_PROD,
    };
    switch (which) {
    case IFD_ONNX_REDUCE_L1:
        return ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_onnx_magnitude(b, x), axes, keep);
    case IFD_ONNX_REDUCE_SUM_SQUARE:
        return ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_build_binary(b, IFD_OP_MUL, x, x), axes,
                                keep);
    case IFD_ONNX_REDUCE_L2:
        return ifd_build_unary(b, IFD_OP_SQRT,
                               ifd_build_reduce(b, IFD_OP_REDUCE_SUM,
                                                ifd_build_binary(b, IFD_OP_MUL, x, x), axes, keep));
    case IFD_ONNX_REDUCE_LOG_SUM:
        return ifd_build_unary(b, IFD_OP_LOG,
                               ifd_build_reduce(b, IFD_OP_REDUCE_SUM, x, axes, keep));
    case IFD_ONNX_REDUCE_LOG_SUM_EXP: {
        const uint32_t max = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, x, axes, true);
        const uint32_t powers =
            ifd_build_unary(b, IFD_OP_EXP, ifd_build_binary(b, IFD_OP_SUB, x, max));
        const uint32_t sum = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, powers, axes, keep);
        const struct ifd_shape shape = ifd_build_desc(b, sum)->shape;
        return ifd_build_binary(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_LOG, sum),
                                ifd_build_reshape(b, max, shape.dim, shape.rank));
    }
    default:
        return ifd_build_reduce(b, ops[which], x, axes, keep);
    }
}

/* In the type in which whole numbers are reduced: floats where there is a root or a logarithm. */
static uint32_t reducible(struct ifd_builder *b, enum ifd_onnx_reduction which, uint32_t x)
{
    const struct ifd_desc *desc = ifd_build_desc(b, x);
    const bool is_real = which == IFD_ONNX_REDUCE_L2 || which == IFD_ONNX_REDUCE_LOG_SUM ||
                         which == IFD_ONNX_REDUCE_LOG_SUM_EXP;
    return is_real                   ? ifd_build_cast(b, x, IFD_F32)
           : desc->quant.count == 1  ? x
           : desc->dtype == IFD_BOOL ? ifd_build_cast(b, x, IFD_S32)
                                     : ifd_onnx_widened(b, x);
}

void ifd_onnx_reduce(struct ifd_onnx_call *call, int which)
{
    const enum ifd_dtype dtype = ifd_build_desc(call->b, call->input[0])->dtype;
    const uint32_t x = reducible(call->b, (enum ifd_onnx_reduction)which, call->input[0]);
    const uint32_t rank = ifd_build_desc(call->b, x)->shape.rank;
    struct ifd_ints axes;
    if (!ifd_onnx_axes(call, 1, rank, &axes)) {
        /* without any: what is done beside the reduction is still done */
        axes.count = ifd_onnx_int(call, "noop_with_empty_axes", 0) != 0 ? 0 : rank;
        for (uint32_t d = 0; d < axes.count; d++) {
            axes.value[d] = d;
        }
    }
    const uint32_t y = reduced(call->b, (enum ifd_onnx_reduction)which, x, &axes,
                               ifd_onnx_int(call, "keepdims", 1) != 0);
    call->output[0] =
        dtype == IFD_BOOL /* the largest of none is the lowest number */
            ? ifd_onnx_compared(call->b, IFD_OP_GREATER, y, ifd_build_number(call->b, IFD_S32, 0))
            : ifd_build_cast(call->b, y, dtype);
}

/* The last one of equal ones is the first one from behind. */
void ifd_onnx_arg(struct ifd_onnx_call *call, int op)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = ifd_build_desc(b, call->input[0])->shape;
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "axis", 0), shape.rank);
    const struct ifd_arg_attrs attrs = {.axis = (int32_t)axis,
                                        .keep_dims = ifd_onnx_int(call, "keepdims", 1) != 0};
    const struct ifd_desc output = {.dtype = IFD_S64};
    const bool is_last = ifd_onnx_int(call, "select_last_index", 0) != 0;
    const struct ifd_reverse_attrs behind = {.axes = {.count = 1, .value = {axis}}};
    const uint32_t x =
        is_last ? ifd_build_node(b, IFD_OP_REVERSE, call->input, 1, NULL, &behind) : call->input[0];
    const uint32_t y = ifd_build_node(b, (enum ifd_op)op, &x, 1, &output, &attrs);
    const uint32_t last = ifd_build_number(b, IFD_S64, (double)(shape.dim[axis] - 1));
    call->output[0] = is_last ? ifd_build_binary(b, IFD_OP_SUB, last, y) : y;
}

uint32_t ifd_onnx_softmax(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x, int64_t opset)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const bool is_new = opset >= 13;
    const uint32_t axis =
        ifd_build_axis(b, ifd_onnx_int(call, "axis", is_new ? -1 : 1), shape.rank);
    if (is_new || axis + 1 == shape.rank) {
        return ifd_build_softmax(b, op, x, axis);
    }
    int64_t dim[2] = {1, 1};
    for (uint32_t d = 0; d < shape.rank; d++) {
        dim[d < axis ? 0 : 1] *= shape.dim[d];
    }
    const uint32_t rows = ifd_build_reshape(b, x, dim, 2);
    const uint32_t y = ifd_build_softmax(b, op, rows, 1);
    return ifd_build_reshape(b, y, shape.dim, shape.rank);
}

void ifd_onnx_soft(struct ifd_onnx_call *call, int op)
{
    call->output[0] = ifd_onnx_softmax(call, (enum ifd_op)op, call->input[0], call->opset);
}
