/* Operators of com.microsoft that ONNX Runtime's optimizers write: several operators in one. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return y == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_ADD, x, y);
}

/* ---- activations behind convolutions and products ---- */

/* Parameter i of the list, or of the attribute of that name. */
static double parameter(const struct ifd_onnx_call *call, uint32_t i, const char *name,
                        double otherwise)
{
    const struct ifd_onnx_attr *list = ifd_onnx_attr(call, "activation_params");
    return list && i < list->float_count ? (double)list->floats[i]
                                         : ifd_onnx_f32(call, name, otherwise);
}

static uint32_t activated(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "activation");
    if (!attr || attr->s.size == 0) {
        return x;
    }
    if (ifd_str_is(attr->s, "Clip")) {
        return ifd_build_clamp(b, x, parameter(call, 0, "activation_alpha", 0),
                               parameter(call, 1, "activation_beta", 0));
    }
    const struct ifd_onnx_activation *known = ifd_onnx_activation(attr->s);
    if (known && known->has_usual) {
        return known->apply(b, x, parameter(call, 0, "activation_alpha", known->usual[0]),
                            parameter(call, 1, "activation_beta", known->usual[1]));
    }
    return ifd_build_fail(b, IFD_UNSUPPORTED, "activation \"%s\"", ifd_onnx_text(attr->s).s);
}

static uint32_t fused_conv(struct ifd_onnx_call *call)
{
    const uint32_t y =
        ifd_onnx_convolve(call, call->input[0], call->input[1], ifd_onnx_input(call, 2), NULL);
    return activated(call, add(call->b, y, ifd_onnx_input(call, 3)));
}

static uint32_t fused_gemm(struct ifd_onnx_call *call)
{
    return activated(call, ifd_onnx_product(call));
}

/* The first dimension becomes the last but one. */
static uint32_t behind_batch(struct ifd_builder *b, uint32_t x)
{
    const uint32_t rank = shape_of(b, x).rank;
    uint32_t order[IFD_MAX_RANK] = {0};
    for (uint32_t d = 0; d + 2 < rank; d++) {
        order[d] = d + 1;
    }
    if (rank < 3) {
        return x;
    }
    order[rank - 2] = 0;
    order[rank - 1] = rank - 1;
    return ifd_build_transpose(b, x, order);
}

/* alpha * A' B': rows may lie in front of the batch, then the last two dimensions be exchanged. */
static uint32_t fused_matmul(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    uint32_t operand[2];
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_behind = ifd_onnx_int(call, i == 0 ? "transBatchA" : "transBatchB", 0) != 0;
        const uint32_t x = is_behind ? behind_batch(b, call->input[i]) : call->input[i];
        const uint32_t rank = shape_of(b, x).rank;
        const bool is_turned = ifd_onnx_int(call, i == 0 ? "transA" : "transB", 0) != 0 && rank > 1;
        operand[i] = is_turned ? ifd_build_swap(b, x, rank - 2, rank - 1) : x;
    }
    const uint32_t y = ifd_build_matmul(b, operand[0], operand[1]);
    return alpha == 1 ? y : ifd_build_with(b, IFD_OP_MUL, y, alpha);
}

static uint32_t bias_gelu(struct ifd_onnx_call *call)
{
    const struct ifd_gelu_attrs exact = {.approximate = false};
    const uint32_t x = add(call->b, call->input[0], call->input[1]);
    return ifd_build_node(call->b, IFD_OP_GELU, &x, 1, NULL, &exact);
}

/* ---- normalizations of sums ---- */

static struct ifd_ints last_axis(const struct ifd_builder *b, uint32_t x)
{
    return (struct ifd_ints){.count = 1, .value = {(int64_t)shape_of(b, x).rank - 1}};
}

static uint32_t normalized(struct ifd_onnx_call *call, uint32_t x, uint32_t gamma, uint32_t beta)
{
    struct ifd_builder *b = call->b;
    const struct ifd_ints axes = last_axis(b, x);
    const double epsilon = ifd_onnx_f32(call, "epsilon", 1e-12);
    const uint32_t y = ifd_build_standardize(b, x, &axes, epsilon, NULL);
    return add(b, ifd_build_binary(b, IFD_OP_MUL, y, gamma), beta);
}

/* input, skip, gamma, beta, bias; outputs: result, mean, deviation, sum. */
static uint32_t skip_layer_normalization(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = add(b, add(b, call->input[0], call->input[1]), ifd_onnx_input(call, 4));
    for (uint32_t i = 1; i < call->output_count; i++) {
        call->output[i] = i == 3 ? x : IFD_NONE; /* ONNX Runtime leaves the others empty */
    }
    return normalized(call, x, call->input[2], ifd_onnx_input(call, 3));
}

/* input, skip, gamma, bias; divided by the root of the mean of squares. */
static uint32_t skip_rms_normalization(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = add(b, add(b, call->input[0], call->input[1]), ifd_onnx_input(call, 3));
    const struct ifd_ints axes = last_axis(b, x);
    const uint32_t y = ifd_build_rms(b, x, &axes, ifd_onnx_f32(call, "epsilon", 1e-12));
    for (uint32_t i = 1; i < call->output_count; i++) {
        call->output[i] = i == 3 ? x : IFD_NONE;
    }
    return ifd_build_binary(b, IFD_OP_MUL, y, call->input[2]);
}

static uint32_t rows_of(struct ifd_builder *b, uint32_t table, uint32_t indices)
{
    const struct ifd_gather_attrs attrs = {.axis = 0};
    return ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){table, indices}, 2, NULL, &attrs);
}

uint32_t ifd_onnx_kept(struct ifd_onnx_call *call, uint32_t mask, int64_t samples)
{
    const struct ifd_ints axes = {.count = 1, .value = {1}};
    const struct ifd_broadcast_to_attrs zeros = {.shape = {.count = 1, .value = {samples}}};
    const uint32_t zero = ifd_build_number(call->b, IFD_S32, 0);
    return mask == IFD_NONE ? ifd_build_node(call->b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &zeros)
                            : ifd_build_reduce(call->b, IFD_OP_REDUCE_SUM, mask, &axes, false);
}

/* ids, segments, word, position and segment tables, gamma, beta, mask, positions; outputs: result,
 * number of ids that the mask keeps, sum. */
static uint32_t embed_layer_normalization(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape ids = shape_of(b, call->input[0]);
    const uint32_t segments = ifd_onnx_input(call, 1), table = ifd_onnx_input(call, 4),
                   mask = ifd_onnx_input(call, 7), positions = ifd_onnx_input(call, 8);
    for (uint32_t i = 0; i < 7; i++) {
        if (ifd_onnx_input(call, i) == IFD_NONE && i != 1 && i != 4) {
            return ifd_build_fail(b, IFD_INVALID, "input %u is missing", i);
        }
    }
    if (ids.rank != 2) {
        return ifd_build_fail(b, IFD_INVALID, "ids of shape %s", ifd_shape_text(&ids).s);
    }
    uint32_t x = rows_of(b, call->input[2], call->input[0]);
    x = add(b, x,
            positions == IFD_NONE ? ifd_build_cut(b, call->input[3], 0, 0, ids.dim[1])
                                  : rows_of(b, call->input[3], positions));
    x = segments == IFD_NONE || table == IFD_NONE ? x : add(b, x, rows_of(b, table, segments));
    if (call->output_count > 1) {
        call->output[1] = ifd_onnx_kept(call, mask, ids.dim[0]);
    }
    if (call->output_count > 2) {
        call->output[2] = x;
    }
    return normalized(call, x, call->input[5], call->input[6]);
}

/* ---- others ---- */

/* Distances of the rows of two matrices. */
static uint32_t cdist(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]), y = shape_of(b, call->input[1]);
    const struct ifd_ints last = {.count = 1, .value = {2}};
    if (x.rank != 2 || y.rank != 2 || x.dim[1] != y.dim[1]) {
        return ifd_build_fail(b, IFD_INVALID, "rows of %s and %s", ifd_shape_text(&x).s,
                              ifd_shape_text(&y).s);
    }
    const int64_t rows[3] = {x.dim[0], 1, x.dim[1]};
    const uint32_t apart = ifd_build_binary(
        b, IFD_OP_SUB, ifd_build_reshape(b, call->input[0], rows, 3), call->input[1]);
    const uint32_t sum = ifd_build_reduce(
        b, IFD_OP_REDUCE_SUM, ifd_build_binary(b, IFD_OP_MUL, apart, apart), &last, false);
    return ifd_onnx_text_is(call, "metric", "sqeuclidean", true)
               ? sum
               : ifd_build_unary(b, IFD_OP_SQRT, sum);
}

static uint32_t expand_dims(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]);
    const uint32_t axis =
        ifd_build_axis(b, ifd_build_int_of(b, call->input[1], "the axis"), x.rank + 1);
    if (b->code != IFD_OK || x.rank == IFD_MAX_RANK) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "shape %s", ifd_shape_text(&x).s);
    }
    struct ifd_shape y = {.rank = x.rank + 1};
    for (uint32_t d = 0; d < y.rank; d++) {
        y.dim[d] = d < axis ? x.dim[d] : d == axis ? 1 : x.dim[d - 1];
    }
    return ifd_build_reshape(b, call->input[0], y.dim, y.rank);
}

void ifd_onnx_microsoft(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_BIAS_GELU] = bias_gelu,
        [IFD_ONNX_CDIST] = cdist,
        [IFD_ONNX_EMBED_LAYER_NORMALIZATION] = embed_layer_normalization,
        [IFD_ONNX_EXPAND_DIMS] = expand_dims,
        [IFD_ONNX_FUSED_CONV] = fused_conv,
        [IFD_ONNX_FUSED_GEMM] = fused_gemm,
        [IFD_ONNX_FUSED_MATMUL] = fused_matmul,
        [IFD_ONNX_SKIP_LAYER_NORMALIZATION] = skip_layer_normalization,
        [IFD_ONNX_SKIP_RMS_NORMALIZATION] = skip_rms_normalization,
    };
    call->output[0] = functions[which](call);
}
