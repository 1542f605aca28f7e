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
    static const struct {
        const char *name;
        enum ifd_op op;
    } plain[] = {{"Relu", IFD_OP_RELU}, {"Tanh", IFD_OP_TANH}, {"Sigmoid", IFD_OP_LOGISTIC}};
    if (!attr || attr->s.size == 0) {
        return x;
    }
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (ifd_str_is(attr->s, plain[i].name)) {
            return ifd_build_unary(b, plain[i].op, x);
        }
    }
    if (ifd_str_is(attr->s, "Clip")) {
        return ifd_build_clamp(b, x, parameter(call, 0, "activation_alpha", 0),
                               parameter(call, 1, "activation_beta", 0));
    }
    if (ifd_str_is(attr->s, "LeakyRelu")) {
        const struct ifd_leaky_relu_attrs leaky = {
            .alpha = (float)parameter(call, 0, "activation_alpha", 0.01)};
        return ifd_build_node(b, IFD_OP_LEAKY_RELU, &x, 1, NULL, &leaky);
    }
    if (ifd_str_is(attr->s, "HardSigmoid")) {
        const double alpha = parameter(call, 0, "activation_alpha", 0.2),
                     beta = parameter(call, 1, "activation_beta", 0.5);
        x = ifd_build_with(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, x, alpha), beta);
        return ifd_build_clamp(b, x, 0, 1);
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

/* alpha * A' B', where the last two dimensions may be exchanged. */
static uint32_t fused_matmul(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    uint32_t operand[2];
    if (ifd_onnx_int(call, "transBatchA", 0) != 0 || ifd_onnx_int(call, "transBatchB", 0) != 0) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"transBatchA\" or \"transBatchB\"");
    }
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t x = call->input[i], rank = shape_of(b, x).rank;
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
        const struct ifd_ints axes = {.count = 1, .value = {1}};
        const struct ifd_broadcast_to_attrs zeros = {.shape = {.count = 1, .value = {ids.dim[0]}}};
        const uint32_t zero = ifd_build_number(b, IFD_S32, 0);
        call->output[1] = mask == IFD_NONE
                              ? ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &zeros)
                              : ifd_build_reduce(b, IFD_OP_REDUCE_SUM, mask, &axes, false);
    }
    if (call->output_count > 2) {
        call->output[2] = x;
    }
    return normalized(call, x, call->input[5], call->input[6]);
}

/* ---- weights of a few bits ---- */

/* Number i of packed ones, the lowest bits first. */
static uint32_t unpack(const uint8_t *data, size_t i, int64_t bits)
{
    return bits == 8 ? data[i] : (uint32_t)data[i / 2] >> (i % 2 * 4) & 15;
}

struct blocks {
    int64_t n, k, bits, size, count; /* count: of a row */
    const uint8_t *packed, *zeros;   /* zeros NULL: the middle */
    const float *scales;
};

static bool take_blocks(struct ifd_onnx_call *call, struct blocks *ret)
{
    struct ifd_builder *b = call->b;
    struct blocks w = {.n = ifd_onnx_int(call, "N", 0),
                       .k = ifd_onnx_int(call, "K", 0),
                       .bits = ifd_onnx_int(call, "bits", 4),
                       .size = ifd_onnx_int(call, "block_size", 0)};
    const uint32_t zero = ifd_onnx_input(call, 3);
    const struct ifd_bytes packed = ifd_build_content(b, call->input[1]),
                           scales = ifd_build_content(b, call->input[2]),
                           zeros = ifd_build_content(b, zero);
    if (w.n < 1 || w.k < 1 || w.size < 16 || w.n > INT32_MAX || w.k > INT32_MAX ||
        w.size > INT32_MAX || (w.bits != 4 && w.bits != 8) || ifd_onnx_input(call, 4) != IFD_NONE) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld x %lld weights of %lld bits in blocks of %lld",
                       (long long)w.n, (long long)w.k, (long long)w.bits, (long long)w.size);
        return false;
    }
    w.count = (w.k + w.size - 1) / w.size;
    const uint64_t rows = (uint64_t)w.n, blocks = rows * (uint64_t)w.count;
    const uint64_t row_zeros = ((uint64_t)w.count * (uint64_t)w.bits + 7) / 8;
    const bool has_zeros = zero != IFD_NONE;
    if (packed.size != blocks * (uint64_t)w.size * (uint64_t)w.bits / 8 ||
        ifd_build_desc(b, call->input[2])->dtype != IFD_F32 ||
        scales.size != blocks * sizeof(float) ||
        (has_zeros &&
         (ifd_build_desc(b, zero)->dtype != IFD_U8 || zeros.size != rows * row_zeros))) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "weights, scales or zero points are not constant, "
                       "or not as many as \"N\", \"K\" and \"block_size\" say");
        return false;
    }
    w.packed = packed.data;
    w.zeros = has_zeros ? zeros.data : NULL;
    w.scales = (const float *)(const void *)scales.data;
    *ret = w;
    return true;
}

static void unpack_row(const struct blocks *w, int64_t n, float *to)
{
    const size_t row_zeros = (size_t)(w->count * w->bits + 7) / 8;
    for (int64_t block = 0; block < w->count; block++) {
        const int64_t at = n * w->count + block;
        const uint8_t *zeros = w->zeros ? w->zeros + (size_t)n * row_zeros : NULL;
        const int32_t zero =
            zeros ? (int32_t)unpack(zeros, (size_t)block, w->bits) : 1 << (w->bits - 1);
        const uint8_t *from = w->packed + at * (w->size * w->bits / 8);
        for (int64_t i = 0; i < w->size && block * w->size + i < w->k; i++) {
            const int32_t steps = (int32_t)unpack(from, (size_t)i, w->bits) - zero;
            to[block * w->size + i] = (float)steps * w->scales[at];
        }
    }
}

/* A [..., K] times weights [N, K] of 4 or 8 bits, whose blocks along K have a scale each. */
static uint32_t matmul_blocks(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    struct blocks w;
    if (!take_blocks(call, &w)) {
        return IFD_NONE;
    }
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = 2, .dim = {w.n, w.k}}};
    if (!ifd_desc_fits(&desc, b->tensor_bytes)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "weights %s as floats have more than %zu bytes",
                              ifd_shape_text(&desc.shape).s, b->tensor_bytes);
    }
    const size_t row = (size_t)w.k, bytes = (size_t)w.n * row * sizeof(float);
    float *data = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena, bytes, b->err);
        return IFD_NONE;
    }
    for (int64_t n = 0; n < w.n; n++) {
        unpack_row(&w, n, data + (size_t)n * row);
    }
    const struct ifd_bytes content = {.data = (const uint8_t *)data, .size = bytes};
    const uint32_t weights = ifd_build_constant(b, &desc, content, IFD_TENSOR_PAD);
    return ifd_build_layer(b, call->input[0], weights, ifd_onnx_input(call, 5));
}

void ifd_onnx_microsoft(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_BIAS_GELU] = bias_gelu,
        [IFD_ONNX_EMBED_LAYER_NORMALIZATION] = embed_layer_normalization,
        [IFD_ONNX_FUSED_CONV] = fused_conv,
        [IFD_ONNX_FUSED_GEMM] = fused_gemm,
        [IFD_ONNX_FUSED_MATMUL] = fused_matmul,
        [IFD_ONNX_MATMUL_BLOCKS] = matmul_blocks,
        [IFD_ONNX_SKIP_LAYER_NORMALIZATION] = skip_layer_normalization,
        [IFD_ONNX_SKIP_RMS_NORMALIZATION] = skip_rms_normalization,
    };
    call->output[0] = functions[which](call);
}
