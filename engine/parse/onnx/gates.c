/* Operators of com.microsoft that newer language models are written with: gates, norms of groups,
 * streams beside each other, choices of experts, n-grams that must not come again. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, x, y);
}

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static uint32_t sigmoid(struct ifd_builder *b, uint32_t x)
{
    return ifd_build_unary(b, IFD_OP_LOGISTIC, x);
}

/* Sums along an axis. */
static uint32_t sum(struct ifd_builder *b, uint32_t x, uint32_t axis, bool keeps)
{
    const struct ifd_ints axes = {.count = 1, .value = {axis}};
    return ifd_build_reduce(b, IFD_OP_REDUCE_SUM, x, &axes, keeps);
}

static uint32_t rms(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_ints last = {.count = 1, .value = {(int64_t)shape_of(call->b, x).rank - 1}};
    return ifd_build_rms(call->b, x, &last, ifd_onnx_f32(call, "epsilon", 1e-5));
}

static uint32_t refuse(struct ifd_onnx_call *call, const char *what)
{
    const struct ifd_shape x = shape_of(call->b, call->input[0]),
                           y = shape_of(call->b, ifd_onnx_input(call, 1));
    return ifd_build_fail(call->b, IFD_UNSUPPORTED, "%s: inputs of shape %s and %s", what,
                          ifd_shape_text(&x).s, ifd_shape_text(&y).s);
}

/* ---- gates and norms ---- */

/* x * s * sigmoid(x * s) */
static uint32_t scaled_silu(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t scale = ifd_onnx_input(call, 1);
    const uint32_t z =
        scale == IFD_NONE
            ? ifd_build_with(b, IFD_OP_MUL, call->input[0], ifd_onnx_f32(call, "alpha", 1))
            : times(b, call->input[0], ifd_build_reshape(b, scale, NULL, 0));
    return times(b, z, sigmoid(b, z));
}

static uint32_t gated_add(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    return ifd_onnx_input(call, 3) == IFD_NONE
               ? add(b, call->input[0], times(b, call->input[1], call->input[2]))
               : refuse(call, "a gate with weights");
}

/* x, scale [c], gate; each c numbers of a row are a group. */
static uint32_t gated_rms_norm(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]), scale = shape_of(b, call->input[1]);
    const bool is_plain = ifd_onnx_text_is(call, "activation", "sigmoid", false);
    if (scale.rank != 1 || scale.dim[0] < 1 || x.rank < 1 ||
        x.dim[x.rank - 1] % scale.dim[0] != 0) {
        return refuse(call, "groups of a row");
    }
    const int64_t groups[2] = {-1, scale.dim[0]};
    const uint32_t y =
        times(b, rms(call, ifd_build_reshape(b, call->input[0], groups, 2)), call->input[1]);
    const uint32_t gate = sigmoid(b, call->input[2]);
    return times(b, ifd_build_reshape(b, y, x.dim, x.rank),
                 is_plain ? gate : times(b, call->input[2], gate));
}

/* a, bias and scale for each head, b; outputs: decay, rate. */
static uint32_t linear_attention_gate(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    if (call->output_count > 1 && ifd_onnx_input(call, 3) == IFD_NONE) {
        return refuse(call, "a rate without its projection");
    }
    if (call->output_count > 1) {
        call->output[1] = sigmoid(b, call->input[3]);
    }
    return times(b, ifd_build_softplus(b, add(b, call->input[0], call->input[1])), call->input[2]);
}

/* key and query [n, t, c, h], value [n, t, h], scales [c, h] of three norms. */
static uint32_t engram_gate(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape s = shape_of(b, call->input[0]), v = shape_of(b, call->input[2]);
    if (s.rank != 4 || v.rank != 3 ||
        (call->output_count > 1 && ifd_onnx_input(call, 5) == IFD_NONE)) {
        return refuse(call, "keys and queries of streams");
    }
    const uint32_t key = times(b, rms(call, call->input[0]), call->input[3]);
    const uint32_t query = times(b, rms(call, call->input[1]), call->input[4]);
    const uint32_t dot = ifd_build_with(b, IFD_OP_MUL, sum(b, times(b, key, query), 3, true),
                                        1 / sqrt((double)s.dim[3]));
    const uint32_t size = ifd_build_with(b, IFD_OP_MAXIMUM, ifd_onnx_magnitude(b, dot), 1e-6);
    const uint32_t gate = sigmoid(
        b, times(b, ifd_build_unary(b, IFD_OP_SIGN, dot), ifd_build_unary(b, IFD_OP_SQRT, size)));
    const int64_t one_stream[4] = {v.dim[0], v.dim[1], 1, v.dim[2]};
    const uint32_t y = times(b, gate, ifd_build_reshape(b, call->input[2], one_stream, 4));
    if (call->output_count > 1) {
        call->output[1] = times(b, rms(call, y), call->input[5]);
    }
    return y;
}

/* ---- streams ---- */

/* [..., c * h] of so many streams as [..., c, h]; 0: it is so. */
static uint32_t as_streams(struct ifd_onnx_call *call, uint32_t x, int64_t streams)
{
    struct ifd_builder *b = call->b;
    struct ifd_shape s = shape_of(b, x);
    if (streams == 0 && s.rank > 1) {
        return x;
    }
    if (b->code != IFD_OK || streams < 1 || s.rank < 1 || s.rank == IFD_MAX_RANK ||
        s.dim[s.rank - 1] % streams != 0) {
        return refuse(call, "streams of a row");
    }
    s.dim[s.rank] = s.dim[s.rank - 1] / streams;
    s.dim[s.rank - 1] = streams;
    return ifd_build_reshape(b, x, s.dim, s.rank + 1);
}

/* Factors [..., c, 1 or h] of streams [..., c, h], of which they may lack a dimension. */
static uint32_t factors(struct ifd_onnx_call *call, uint32_t x, const struct ifd_shape *streams)
{
    return shape_of(call->b, x).rank + 1 == streams->rank
               ? as_streams(call, x, streams->dim[streams->rank - 2])
               : x;
}

static uint32_t branchwise_rms_norm(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, call->input[0]);
    const uint32_t x = as_streams(call, call->input[0], ifd_onnx_int(call, "num_branches", 0));
    const struct ifd_shape s = shape_of(b, x);
    uint32_t y = rms(call, x), scale = ifd_onnx_input(call, 1);
    if (b->code == IFD_OK && scale != IFD_NONE) {
        const struct ifd_shape of_scale = shape_of(b, scale);
        const bool is_flat = of_scale.rank == 1 && of_scale.dim[0] != s.dim[s.rank - 1];
        scale = is_flat ? ifd_build_reshape(b, scale, s.dim + s.rank - 2, 2) : scale;
        y = times(b, y, scale);
    }
    return ifd_build_reshape(b, y, shape.dim, shape.rank);
}

/* Streams by factors, added up. */
static uint32_t pre_mix(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = as_streams(call, call->input[0], ifd_onnx_int(call, "num_branches", 0));
    const struct ifd_shape s = shape_of(b, x);
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const uint32_t all = sum(b, times(b, x, factors(call, call->input[1], &s)), s.rank - 2, false);
    return ifd_build_with(b, IFD_OP_MUL, all, ifd_onnx_f32(call, "reduction_scale", 1));
}

/* streams, result of a block, its factors, a matrix that mixes the streams. */
static uint32_t post_mix(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, call->input[0]);
    uint32_t x = as_streams(call, call->input[0], ifd_onnx_int(call, "num_branches", 0));
    const struct ifd_shape s = shape_of(b, x);
    const struct ifd_batch_matmul_attrs turned = {.adj_x = true};
    const uint32_t mix = ifd_onnx_input(call, 3);
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    if (mix != IFD_NONE) {
        x = ifd_build_node(b, IFD_OP_BATCH_MATMUL, (const uint32_t[]){mix, x}, 2, NULL, &turned);
    }
    const uint32_t block = as_streams(call, call->input[1], 1);
    const uint32_t y = add(b, x, times(b, factors(call, call->input[2], &s), block));
    return ifd_build_reshape(b, y, shape.dim, shape.rank);
}

/* ---- choices ---- */

/* The largest so many of each row, and their places. */
static void find_largest(struct ifd_builder *b, uint32_t x, int64_t count, uint32_t ret[2])
{
    const struct ifd_top_k_attrs attrs = {.k = (int32_t)count};
    const struct ifd_desc found[2] = {{.dtype = IFD_F32}, {.dtype = IFD_S32}};
    ifd_build_nodes(b, IFD_OP_TOP_K, &x, 1, found, 2, &attrs, ret);
}

/* Ones at the largest so many of each row, else zeros. */
static uint32_t marked(struct ifd_builder *b, uint32_t rows, int64_t count)
{
    const struct ifd_desc real = {.dtype = IFD_F32};
    const struct ifd_one_hot_attrs places = {.axis = -1,
                                             .depth = (int32_t)shape_of(b, rows).dim[1]};
    uint32_t best[2];
    find_largest(b, rows, count, best);
    const uint32_t flags[3] = {best[1], ifd_build_number(b, IFD_F32, 1),
                               ifd_build_number(b, IFD_F32, 0)};
    return sum(b, ifd_build_node(b, IFD_OP_ONE_HOT, flags, 3, &real, &places), 1, false);
}

/* scores where flags are not 0, else another number. */
static uint32_t where(struct ifd_builder *b, uint32_t flags, uint32_t scores, double otherwise)
{
    const uint32_t is_set =
        ifd_onnx_compared(b, IFD_OP_GREATER, flags, ifd_build_number(b, IFD_F32, 0));
    return ifd_onnx_selected(b, is_set, scores, ifd_build_number(b, IFD_F32, otherwise));
}

/* logits, bias of the experts. Output 0: logarithms of what the chosen experts have; or 1 and 2:
 * all that they have, with and without the bias. */
static uint32_t group_router(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape s = shape_of(b, call->input[0]), bias = shape_of(b, call->input[1]);
    const int64_t experts = s.rank > 0 ? s.dim[s.rank - 1] : 0;
    const int64_t groups = ifd_onnx_int(call, "n_group", 1), few = ifd_onnx_int(call, "top_k", 0);
    const int64_t kept = ifd_onnx_int(call, "topk_group", 1);
    const int64_t of_each = ifd_onnx_int(call, "group_topk", 2);
    if (ifd_onnx_input(call, 2) != IFD_NONE || bias.rank != 1 || bias.dim[0] != experts ||
        experts < 1 || experts > INT32_MAX || groups < 1 || experts % groups != 0 || kept < 1 ||
        kept > groups || few < 1 || of_each < 1 || few > experts / groups * kept) {
        return refuse(call, "a choice of groups, or a projection");
    }
    const int64_t flat[2] = {-1, experts}, apart[3] = {-1, groups, experts / groups};
    const uint32_t own = ifd_build_reshape(b, sigmoid(b, call->input[0]), flat, 2);
    uint32_t scores = add(b, own, call->input[1]);
    for (uint32_t i = 1; i < call->output_count; i++) {
        call->output[i] = i == 1 ? scores : own;
    }
    if (groups > 1) {
        const uint32_t by_group = ifd_build_reshape(b, scores, apart, 3);
        const int64_t column[3] = {-1, groups, 1};
        uint32_t best[2];
        find_largest(b, by_group, of_each < apart[2] ? of_each : apart[2], best);
        const uint32_t open = marked(b, sum(b, best[0], 2, false), kept);
        scores = where(b, ifd_build_reshape(b, open, column, 3), by_group, -HUGE_VAL);
        scores = ifd_build_reshape(b, scores, flat, 2);
    }
    const uint32_t chosen = marked(b, scores, few);
    const uint32_t logs =
        ifd_build_unary(b, IFD_OP_LOG, ifd_build_with(b, IFD_OP_MAXIMUM, own, 1e-20));
    return where(b, chosen, logs, ifd_onnx_f32(call, "router_sentinel", -10000));
}

#define NGRAM_MAX 64

/* ids [n, t], scores [n, words]: the least for words that would end an n-gram once more. */
static uint32_t ngram_repeat_block(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape ids = shape_of(b, call->input[0]), s = shape_of(b, call->input[1]);
    const int64_t size = ifd_onnx_int(call, "ngram_size", 0);
    if (ids.rank != 2 || s.rank != 2 || ids.dim[0] != s.dim[0] || size < 1 || size > NGRAM_MAX) {
        return refuse(call, "n-grams");
    }
    const int64_t count = ids.dim[1] - size + 1; /* of n-grams */
    if (count < 1 || s.dim[0] < 1 || s.dim[1] < 1) {
        return ifd_build_reshape(b, call->input[1], s.dim, 2);
    }
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const uint32_t none = ifd_build_number(b, IFD_S64, 0);
    const uint32_t words =
        ifd_build_cast(b, ifd_build_cut(b, call->input[0], 1, size - 1, count), IFD_S64);
    const uint32_t within[2] = {
        ifd_onnx_compared(b, IFD_OP_GREATER_EQUAL, words, none),
        ifd_onnx_compared(b, IFD_OP_LESS, words, ifd_build_number(b, IFD_S64, (double)s.dim[1]))};
    const uint32_t are_words = ifd_build_node(b, IFD_OP_LOGICAL_AND, within, 2, &flag, NULL);
    uint32_t shuts = are_words;
    for (int64_t i = 0; i + 1 < size && b->code == IFD_OK; i++) {
        const uint32_t both[2] = {
            shuts, ifd_onnx_compared(b, IFD_OP_EQUAL, ifd_build_cut(b, call->input[0], 1, i, count),
                                     ifd_build_cut(b, call->input[0], 1, count + i, 1))};
        shuts = ifd_build_node(b, IFD_OP_LOGICAL_AND, both, 2, &flag, NULL);
    }
    const uint32_t bound = ifd_onnx_selected(b, shuts, ifd_build_number(b, IFD_F32, -HUGE_VAL),
                                             ifd_build_number(b, IFD_F32, HUGE_VAL));
    const uint32_t bounds[3] = {none,
                                ifd_build_number(b, IFD_S64, (double)s.dim[0] * (double)s.dim[1]),
                                ifd_build_number(b, IFD_S64, (double)s.dim[1])};
    const int64_t column[2] = {s.dim[0], 1}, list[1] = {-1};
    const uint32_t rows =
        ifd_build_reshape(b, ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL), column, 2);
    const uint32_t at = add(b, ifd_onnx_selected(b, are_words, words, none), rows);
    const uint32_t input[3] = {ifd_build_reshape(b, call->input[1], list, 1),
                               ifd_build_reshape(b, at, list, 1),
                               ifd_build_reshape(b, bound, list, 1)};
    const struct ifd_scatter_rows_attrs least = {.mode = IFD_SCATTER_MIN};
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_SCATTER_ROWS, input, 3, NULL, &least),
                             s.dim, 2);
}

void ifd_onnx_gates(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_BRANCHWISE_RMS_NORM] = branchwise_rms_norm,
        [IFD_ONNX_ENGRAM_GATE] = engram_gate,
        [IFD_ONNX_GATED_ADD] = gated_add,
        [IFD_ONNX_GATED_RMS_NORM] = gated_rms_norm,
        [IFD_ONNX_GROUP_ROUTER] = group_router,
        [IFD_ONNX_LINEAR_ATTENTION_GATE] = linear_attention_gate,
        [IFD_ONNX_NGRAM_REPEAT_BLOCK] = ngram_repeat_block,
        [IFD_ONNX_POST_MIX] = post_mix,
        [IFD_ONNX_PRE_MIX] = pre_mix,
        [IFD_ONNX_SCALED_SILU] = scaled_silu,
    };
    call->output[0] = functions[which](call);
}
