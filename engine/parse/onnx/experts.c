/* Layers of com.microsoft whose tokens go through a few of many networks, their experts: MoE, and
 * QMoE, whose weights have few bits. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

enum { X, ROUTER };

/* Where the inputs of both operators lie. */
struct layout {
    uint32_t weights[2], bias[2], third, zeros, own_shares, limit; /* limit: of all inputs */
};

/* Batches of rows, each for an expert: of all of them with all tokens, or of those that each token
 * chose, with that token. */
struct experts {
    struct ifd_onnx_call *call;
    struct ifd_builder *b;
    const struct layout *layout;
    int64_t tokens, count, chosen; /* chosen: of each token */
    bool gathers;                  /* what each token chose */
    uint32_t chosen_index;         /* s32 [tokens * chosen] */
};

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static uint32_t swish(struct ifd_builder *b, uint32_t x, double alpha)
{
    const uint32_t scaled = alpha == 1 ? x : ifd_build_with(b, IFD_OP_MUL, x, alpha);
    return times(b, x, ifd_build_unary(b, IFD_OP_LOGISTIC, scaled));
}

/* Neighbours in a row are a gate and what it scales. */
static uint32_t gated(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape s = shape_of(b, x);
    if (b->code != IFD_OK || s.dim[2] % 2 != 0 || ifd_onnx_int(call, "swiglu_fusion", 0) != 1) {
        return ifd_build_fail(b, IFD_UNSUPPORTED,
                              "gates that do not alternate with values (swiglu_fusion 1)");
    }
    const int64_t pairs[4] = {s.dim[0], s.dim[1], s.dim[2] / 2, 2};
    const uint32_t both = ifd_build_reshape(b, x, pairs, 4);
    uint32_t gate = ifd_build_reshape(b, ifd_build_cut(b, both, 3, 0, 1), pairs, 3);
    uint32_t value = ifd_build_reshape(b, ifd_build_cut(b, both, 3, 1, 1), pairs, 3);
    if (ifd_onnx_attr(call, "swiglu_limit")) {
        const double limit = ifd_onnx_f32(call, "swiglu_limit", 0);
        gate = ifd_build_with(b, IFD_OP_MINIMUM, gate, limit);
        value = ifd_build_clamp(b, value, -limit, limit);
    }
    gate = swish(b, gate, ifd_onnx_f32(call, "activation_alpha", 1));
    return times(b, gate,
                 ifd_build_with(b, IFD_OP_ADD, value, ifd_onnx_f32(call, "activation_beta", 0)));
}

static uint32_t activated(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_gelu_attrs gelu = {.approximate = true};
    if (ifd_onnx_text_is(call, "activation_type", "relu", true)) {
        return ifd_build_unary(b, IFD_OP_RELU, x);
    }
    if (ifd_onnx_text_is(call, "activation_type", "gelu", false)) {
        return ifd_build_node(b, IFD_OP_GELU, &x, 1, NULL, &gelu);
    }
    if (ifd_onnx_text_is(call, "activation_type", "silu", false)) {
        return swish(b, x, 1);
    }
    if (ifd_onnx_text_is(call, "activation_type", "swiglu", false)) {
        return gated(call, x);
    }
    return ifd_onnx_text_is(call, "activation_type", "identity", false)
               ? x
               : ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"activation_type\"");
}

/* Of what there is for each expert, that of each batch. */
static uint32_t of_batches(const struct experts *e, uint32_t x)
{
    const struct ifd_gather_attrs attrs = {.axis = 0};
    return e->gathers ? ifd_build_node(e->b, IFD_OP_GATHER, (const uint32_t[]){x, e->chosen_index},
                                       2, NULL, &attrs)
                      : x;
}

/* x [batches or 1, rows, k] through layer i of the experts. */
static uint32_t layer(const struct experts *e, uint32_t x, uint32_t weights, uint32_t i)
{
    struct ifd_builder *b = e->b;
    const uint32_t bias = ifd_onnx_input(e->call, e->layout->bias[i]);
    const struct ifd_shape w = shape_of(b, weights);
    const struct ifd_batch_matmul_attrs turned = {.adj_y = true};
    if (b->code != IFD_OK || w.rank != 3 || w.dim[0] != e->count ||
        w.dim[2] != shape_of(b, x).dim[2]) {
        return ifd_build_fail(b, IFD_INVALID, "weights of shape %s", ifd_shape_text(&w).s);
    }
    const uint32_t y = ifd_build_node(
        b, IFD_OP_BATCH_MATMUL, (const uint32_t[]){x, of_batches(e, weights)}, 2, NULL, &turned);
    if (bias == IFD_NONE) {
        return y;
    }
    const int64_t row[3] = {e->count, 1, w.dim[1]};
    return ifd_build_binary(b, IFD_OP_ADD, y, of_batches(e, ifd_build_reshape(b, bias, row, 3)));
}

/* How much each token takes of each batch's result, as [batches, rows, 1]. Finds what it chose. */
static uint32_t shares_of(struct experts *e, bool has_given, bool normalizes)
{
    struct ifd_builder *b = e->b;
    struct ifd_onnx_call *call = e->call;
    const struct ifd_ints last = {.count = 1, .value = {1}};
    const struct ifd_top_k_attrs attrs = {.k = (int32_t)e->chosen};
    const struct ifd_desc found[2] = {{.dtype = IFD_F32}, {.dtype = IFD_S32}};
    uint32_t best[2];
    const uint32_t scores = ifd_build_softmax(b, IFD_OP_SOFTMAX, call->input[ROUTER], 1);
    ifd_build_nodes(b, IFD_OP_TOP_K, &scores, 1, found, 2, &attrs, best);
    uint32_t share =
        has_given ? ifd_onnx_gathered(b, call->input[e->layout->own_shares], best[1], 1) : best[0];
    if (normalizes) {
        share = ifd_build_binary(b, IFD_OP_DIV, share,
                                 ifd_build_reduce(b, IFD_OP_REDUCE_SUM, share, &last, true));
    }
    if (e->gathers) {
        const int64_t each[3] = {e->tokens * e->chosen, 1, 1};
        e->chosen_index = ifd_build_reshape(b, best[1], each, 1);
        return ifd_build_reshape(b, share, each, 3);
    }
    const int64_t apart[3] = {e->tokens, e->chosen, 1}, all[3] = {e->count, e->tokens, 1};
    const struct ifd_one_hot_attrs places = {.axis = -1, .depth = (int32_t)e->count};
    const uint32_t flags[3] = {best[1], ifd_build_number(b, IFD_F32, 1),
                               ifd_build_number(b, IFD_F32, 0)};
    const struct ifd_desc real = {.dtype = IFD_F32};
    const uint32_t chosen = ifd_build_node(b, IFD_OP_ONE_HOT, flags, 3, &real, &places);
    const uint32_t dense =
        ifd_build_reduce(b, IFD_OP_REDUCE_SUM,
                         times(b, chosen, ifd_build_reshape(b, share, apart, 3)), &last, false);
    return ifd_build_reshape(b, ifd_build_swap(b, dense, 0, 1), all, 3);
}

/* Tokens [1, tokens, k], or each as often as it chose. */
static uint32_t tokens_of(const struct experts *e, int64_t width)
{
    struct ifd_builder *b = e->b;
    const int64_t rows[3] = {1, e->tokens, width}, each[3] = {e->tokens * e->chosen, 1, width};
    const int64_t apart[3] = {e->tokens, 1, width};
    const struct ifd_broadcast_to_attrs often = {
        .shape = {.count = 3, .value = {e->tokens, e->chosen, width}}};
    if (!e->gathers) {
        return ifd_build_reshape(b, e->call->input[X], rows, 3);
    }
    const uint32_t x = ifd_build_reshape(b, e->call->input[X], apart, 3);
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_BROADCAST_TO, &x, 1, NULL, &often), each,
                             3);
}

static bool describe(struct ifd_onnx_call *call, const struct layout *layout, struct experts *ret)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[X]), r = shape_of(b, call->input[ROUTER]);
    const uint32_t own = ifd_onnx_input(call, layout->own_shares);
    const struct ifd_shape shares = shape_of(b, own);
    int64_t tokens = 1;
    for (uint32_t d = 0; d + 1 < x.rank; d++) {
        tokens *= x.dim[d];
    }
    const int64_t chosen = ifd_onnx_int(call, "k", 1);
    bool fits = (x.rank == 2 || x.rank == 3) && r.rank == 2 && r.dim[0] == tokens && chosen >= 1 &&
                chosen <= r.dim[1] && r.dim[1] <= INT32_MAX && tokens > 0 &&
                ifd_onnx_int(call, "use_sparse_mixer", 0) == 0 &&
                (own == IFD_NONE || ifd_shape_equal(&shares, &r));
    for (uint32_t i = layout->third; i < call->input_count; i++) {
        const bool is_known = i == layout->own_shares || (i >= layout->zeros && i < layout->limit);
        fits = fits && (is_known || call->input[i] == IFD_NONE);
    }
    if (b->code != IFD_OK || !fits) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "%lld of the experts of %s for tokens %s, a third layer, or other scales",
                       (long long)chosen, ifd_shape_text(&r).s, ifd_shape_text(&x).s);
        return false;
    }
    *ret = (struct experts){.call = call,
                            .b = b,
                            .layout = layout,
                            .tokens = tokens,
                            .count = r.dim[1],
                            .chosen = chosen,
                            .gathers = tokens * chosen < r.dim[1],
                            .chosen_index = IFD_NONE};
    return true;
}

void ifd_onnx_experts(struct ifd_onnx_call *call, int is_quantized)
{
    static const struct layout layouts[2] = {
        {.weights = {2, 4}, .bias = {3, 5}, .third = 6, .zeros = 8, .limit = 8, .own_shares = 8},
        {.weights = {2, 5},
         .bias = {4, 7},
         .third = 8,
         .zeros = 11,
         .limit = 13,
         .own_shares = 14}};
    struct ifd_builder *b = call->b;
    struct experts e;
    if (!describe(call, &layouts[is_quantized], &e)) {
        return;
    }
    const bool has_given = is_quantized && ifd_onnx_input(call, 14) != IFD_NONE;
    const bool normalizes = ifd_onnx_int(call, "normalize_routing_weights", 0) != 0;
    const uint32_t share = shares_of(&e, has_given, normalizes || (is_quantized && !has_given));
    const struct ifd_shape shape = shape_of(b, call->input[X]);
    if (b->code != IFD_OK) {
        return; /* x has no description any more */
    }
    uint32_t y = tokens_of(&e, shape.dim[shape.rank - 1]);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = e.layout->weights[i];
        const uint32_t weights =
            is_quantized ? ifd_onnx_unpacked_experts(call, at, e.layout->zeros + i, i + 1)
                         : ifd_onnx_input(call, at);
        y = layer(&e, y, weights, i);
        y = i == 0 ? activated(call, y) : y;
    }
    y = times(b, y, share);
    const struct ifd_ints batches = {.count = 1, .value = {e.gathers ? 1 : 0}};
    if (e.gathers) {
        const int64_t apart[3] = {e.tokens, e.chosen, -1};
        y = ifd_build_reshape(b, y, apart, 3);
    }
    call->output[0] = ifd_build_reshape(
        b, ifd_build_reduce(b, IFD_OP_REDUCE_SUM, y, &batches, false), shape.dim, shape.rank);
}
