/* Losses: how far scores of classes are from the classes wanted. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

/* "none" keeps the shape; "sum" and "mean" give one number, the mean by weight. */
static uint32_t reduced(struct ifd_onnx_call *call, uint32_t loss, uint32_t weight)
{
    struct ifd_builder *b = call->b;
    struct ifd_ints all = {.count = ifd_build_desc(b, loss)->shape.rank};
    for (uint32_t d = 0; d < all.count; d++) {
        all.value[d] = d;
    }
    if (ifd_onnx_text_is(call, "reduction", "none", false)) {
        return loss;
    }
    const uint32_t sum = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, loss, &all, false);
    return ifd_onnx_text_is(call, "reduction", "sum", false)
               ? sum
               : ifd_build_binary(b, IFD_OP_DIV, sum,
                                  ifd_build_reduce(b, IFD_OP_REDUCE_SUM, weight, &all, false));
}

/* -weight[target] * x[n, target, ...]; 0 where the target is "ignore_index". */
static uint32_t likelihood_loss(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = ifd_build_desc(b, call->input[1])->shape;
    const uint32_t zero = ifd_build_number(b, IFD_S64, 0);
    const uint32_t weights = ifd_onnx_input(call, 2);
    uint32_t target = ifd_build_cast(b, call->input[1], IFD_S64);
    if (shape.rank == 0 || shape.rank + 1 > IFD_MAX_RANK) {
        return ifd_build_fail(b, IFD_INVALID, "targets of shape %s", ifd_shape_text(&shape).s);
    }
    /* an index that is not ignored by any number is ignored by none */
    const int64_t ignored = ifd_onnx_int(call, "ignore_index", INT64_MIN);
    const uint32_t counts =
        ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, target, ifd_build_list(b, &ignored, 1));
    target = ifd_onnx_selected(b, counts, target, zero);
    uint32_t weight = ifd_build_cast(b, counts, IFD_F32);
    if (weights != IFD_NONE) {
        const uint32_t of_target =
            ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){weights, target}, 2, NULL, NULL);
        weight = times(b, weight, of_target);
    }
    int64_t dim[IFD_MAX_RANK] = {shape.dim[0], 1};
    memcpy(dim + 2, shape.dim + 1, (shape.rank - 1) * sizeof(*dim));
    const uint32_t column = ifd_build_reshape(b, target, dim, shape.rank + 1);
    const uint32_t picked =
        ifd_build_reshape(b, ifd_onnx_gathered(b, x, column, 1), shape.dim, shape.rank);
    return reduced(call, ifd_build_unary(b, IFD_OP_NEG, times(b, picked, weight)), weight);
}

void ifd_onnx_negative_log_likelihood(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = likelihood_loss(call, call->input[0]);
}

/* The second output are the logarithms of the probabilities. */
void ifd_onnx_softmax_cross_entropy(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const uint32_t logs = ifd_build_softmax(call->b, IFD_OP_LOG_SOFTMAX, call->input[0], 1);
    call->output[0] = likelihood_loss(call, logs);
    if (call->output_count > 1) {
        call->output[1] = logs;
    }
}
