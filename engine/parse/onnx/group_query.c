/* GroupQueryAttention of com.microsoft: keys and values are written into a cache, each head of them
 * serves several of queries, which see what is before them. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS, /* of keys of each sample, less 1 */
    TOTAL,
    COSINES,
    SINES,
    POSITIONS,
    BIAS,
    SINK,
    LATER /* quantized caches, norms */
};

struct group {
    struct ifd_onnx_call *call;
    struct ifd_builder *b;
    int64_t n, t, heads, kv_heads, size, total, past, present;
    uint32_t first;   /* the place of query 0 of each sample: s64 [n] */
    uint32_t lengths; /* of keys of each sample, less 1: s64 [n] */
};

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t ramp(struct ifd_builder *b, int64_t count)
{
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)count),
                                ifd_build_number(b, IFD_S64, 1)};
    return ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL);
}

static bool describe(struct ifd_onnx_call *call, struct group *g)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape q = shape_of(b, call->input[QUERY]);
    const uint32_t past = ifd_onnx_input(call, PAST_KEY);
    const bool is_packed = ifd_onnx_input(call, KEY) == IFD_NONE;
    *g = (struct group){.call = call,
                        .b = b,
                        .heads = ifd_onnx_int(call, "num_heads", 0),
                        .kv_heads = ifd_onnx_int(call, "kv_num_heads", 0)};
    for (uint32_t i = LATER; i < call->input_count; i++) {
        if (call->input[i] != IFD_NONE) {
            ifd_build_fail(b, IFD_UNSUPPORTED, "input %u: quantized caches, norms or lengths", i);
            return false;
        }
    }
    if (q.rank != 3 || g->heads < 1 || g->kv_heads < 1 || g->heads > INT16_MAX ||
        g->kv_heads > g->heads || g->heads % g->kv_heads != 0 ||
        q.dim[2] % (is_packed ? g->heads + 2 * g->kv_heads : g->heads) != 0 ||
        ifd_onnx_input(call, LENGTHS) == IFD_NONE || ifd_onnx_input(call, TOTAL) == IFD_NONE ||
        ifd_onnx_int(call, "kv_cache_bit_width", 0) != 0 ||
        ifd_onnx_int(call, "sliding_window_cache", 0) != 0) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "queries %s of %lld heads for %lld, or a cache of bits",
                       ifd_shape_text(&q).s, (long long)g->heads, (long long)g->kv_heads);
        return false;
    }
    g->n = q.dim[0];
    g->t = q.dim[1];
    g->size = q.dim[2] / (is_packed ? g->heads + 2 * g->kv_heads : g->heads);
    g->total = ifd_build_int_of(b, call->input[TOTAL], "the total length");
    g->past = past == IFD_NONE ? 0 : shape_of(b, past).dim[2];
    g->present = g->total > g->past ? g->total : g->past;
    const bool is_first = g->t >= g->total; /* else the last t of each sample's keys are new */
    const int64_t each[1] = {g->n};
    g->lengths = ifd_build_reshape(b, ifd_build_cast(b, call->input[LENGTHS], IFD_S64), each, 1);
    g->first = is_first ? ifd_build_with(b, IFD_OP_MUL, g->lengths, 0)
                        : ifd_build_with(b, IFD_OP_ADD, g->lengths, (double)(1 - g->t));
    return b->code == IFD_OK;
}

/* [n, t, heads * size] as [n, heads, t, size] */
static uint32_t with_heads(const struct group *g, uint32_t x, int64_t heads)
{
    const int64_t dim[4] = {g->n, g->t, heads, g->size};
    return ifd_build_swap(g->b, ifd_build_reshape(g->b, x, dim, 4), 1, 2);
}

static uint32_t rotated(const struct group *g, uint32_t x)
{
    struct ifd_onnx_call *call = g->call;
    struct ifd_builder *b = g->b;
    const uint32_t cosines = ifd_onnx_input(call, COSINES), sines = ifd_onnx_input(call, SINES);
    if (ifd_onnx_int(call, "do_rotary", 0) == 0) {
        return x;
    }
    if (cosines == IFD_NONE || sines == IFD_NONE || shape_of(b, cosines).rank != 2) {
        return ifd_build_fail(b, IFD_INVALID, "no angles to turn by");
    }
    uint32_t at = ifd_onnx_input(call, POSITIONS);
    if (at == IFD_NONE) {
        const int64_t column[2] = {g->n, 1};
        at = ifd_build_binary(b, IFD_OP_ADD, ramp(b, g->t),
                              ifd_build_reshape(b, g->first, column, 2));
    }
    const int64_t half = shape_of(b, cosines).dim[1], dim[4] = {g->n, g->t, 1, half};
    const uint32_t rows[2] = {
        ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){cosines, at}, 2, NULL, NULL),
        ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){sines, at}, 2, NULL, NULL)};
    x = ifd_build_swap(b, x, 1, 2);
    const uint32_t part = 2 * half < g->size ? ifd_build_cut(b, x, 3, 0, 2 * half) : x;
    uint32_t y = ifd_onnx_turned(b, part, ifd_build_reshape(b, rows[0], dim, 4),
                                 ifd_build_reshape(b, rows[1], dim, 4),
                                 ifd_onnx_int(call, "rotary_interleaved", 0) != 0);
    if (2 * half < g->size) {
        const struct ifd_axis_attrs attrs = {.axis = 3};
        const uint32_t rest = ifd_build_cut(b, x, 3, 2 * half, g->size - 2 * half);
        y = ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){y, rest}, 2, NULL, &attrs);
    }
    return ifd_build_swap(b, y, 1, 2);
}

/* The past with what is new, [n, kv_heads, present, size]. */
static uint32_t present(const struct group *g, uint32_t past, uint32_t now)
{
    struct ifd_builder *b = g->b;
    const struct ifd_axis_attrs attrs = {.axis = 2};
    const int64_t more = g->present - g->past;
    if (g->present == g->t) {
        return now;
    }
    if (past != IFD_NONE && g->past > 0 && g->n == 1 && more == g->t) {
        return ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){past, now}, 2, NULL, &attrs);
    }
    if (more > 0) {
        const struct ifd_broadcast_to_attrs room = {
            .shape = {.count = 4, .value = {g->n, g->kv_heads, more, g->size}}};
        const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
        const uint32_t rest = ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &room);
        past =
            past == IFD_NONE || g->past == 0
                ? rest
                : ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){past, rest}, 2, NULL, &attrs);
    }
    return ifd_onnx_written(b, past, now, g->first, 2, false);
}

/* What each query sees, as what is added to the products: [n, 1, t, present]. */
static uint32_t seen(const struct group *g)
{
    struct ifd_builder *b = g->b;
    const int64_t window = ifd_onnx_int(g->call, "local_window_size", -1);
    const int64_t column[4] = {g->n, 1, 1, 1}, rows[2] = {g->t, 1};
    const bool is_causal = ifd_onnx_int(g->call, "causal", 1) != 0; /* else all see the last key */
    const uint32_t place =
        is_causal ? ifd_build_binary(b, IFD_OP_ADD, ifd_build_reshape(b, ramp(b, g->t), rows, 2),
                                     ifd_build_reshape(b, g->first, column, 4))
                  : ifd_build_reshape(b, g->lengths, column, 4);
    const uint32_t key = ramp(b, g->present);
    uint32_t flags = ifd_onnx_compared(b, IFD_OP_LESS_EQUAL, key, place);
    if (window >= 0) {
        const struct ifd_desc flag = {.dtype = IFD_BOOL};
        const uint32_t both[2] = {
            flags, ifd_onnx_compared(b, IFD_OP_GREATER, key,
                                     ifd_build_with(b, IFD_OP_SUB, place, (double)window))};
        flags = ifd_build_node(b, IFD_OP_LOGICAL_AND, both, 2, &flag, NULL);
    }
    return ifd_onnx_selected(b, flags, ifd_build_number(b, IFD_F32, 0),
                             ifd_build_number(b, IFD_F32, -HUGE_VAL));
}

/* Shares of the keys; a sink takes a share of its own. */
static uint32_t shares(const struct group *g, uint32_t x)
{
    struct ifd_builder *b = g->b;
    const uint32_t sink = ifd_onnx_input(g->call, SINK);
    if (sink == IFD_NONE && ifd_onnx_int(g->call, "smooth_softmax", 0) <= 0) {
        return ifd_build_softmax(b, IFD_OP_SOFTMAX, x, 3);
    }
    const struct ifd_axis_attrs attrs = {.axis = 3};
    const struct ifd_broadcast_to_attrs all = {
        .shape = {.count = 4, .value = {g->n, g->heads, g->t, 1}}};
    const int64_t dim[4] = {1, g->heads, 1, 1};
    uint32_t more =
        sink == IFD_NONE ? ifd_build_number(b, IFD_F32, 0) : ifd_build_reshape(b, sink, dim, 4);
    more = ifd_build_node(b, IFD_OP_BROADCAST_TO, &more, 1, NULL, &all);
    x = ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){x, more}, 2, NULL, &attrs);
    return ifd_build_cut(b, ifd_build_softmax(b, IFD_OP_SOFTMAX, x, 3), 3, 0, g->present);
}

void ifd_onnx_group_query_attention(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    struct group g;
    if (!describe(call, &g)) {
        return;
    }
    const int64_t wide = g.heads * g.size, narrow = g.kv_heads * g.size;
    const bool is_packed = ifd_onnx_input(call, KEY) == IFD_NONE;
    const uint32_t all = call->input[QUERY];
    const uint32_t q = is_packed ? ifd_build_cut(b, all, 2, 0, wide) : all;
    const uint32_t k = is_packed ? ifd_build_cut(b, all, 2, wide, narrow) : call->input[KEY];
    const uint32_t v =
        is_packed ? ifd_build_cut(b, all, 2, wide + narrow, narrow) : ifd_onnx_input(call, VALUE);
    const uint32_t queries = rotated(&g, with_heads(&g, q, g.heads));
    const uint32_t keys =
        present(&g, ifd_onnx_input(call, PAST_KEY), rotated(&g, with_heads(&g, k, g.kv_heads)));
    const uint32_t values =
        present(&g, ifd_onnx_input(call, PAST_VALUE), with_heads(&g, v, g.kv_heads));
    for (uint32_t i = 1; i < call->output_count && i < 3; i++) {
        call->output[i] = i == 1 ? keys : values;
    }
    const double given = ifd_onnx_f32(call, "scale", 0), cap = ifd_onnx_f32(call, "softcap", 0);
    const struct ifd_batch_matmul_attrs turned = {.adj_y = true};
    const uint32_t pair[2] = {queries, ifd_onnx_repeated_heads(b, keys, g.heads)};
    uint32_t x = ifd_build_node(b, IFD_OP_BATCH_MATMUL, pair, 2, NULL, &turned);
    x = ifd_build_with(b, IFD_OP_MUL, x, given != 0 ? given : 1 / sqrt((double)g.size));
    if (cap > 0) {
        x = ifd_build_unary(b, IFD_OP_TANH, ifd_build_with(b, IFD_OP_MUL, x, 1 / cap));
        x = ifd_build_with(b, IFD_OP_MUL, x, cap);
    }
    const uint32_t bias = ifd_onnx_input(call, BIAS);
    x = bias == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_ADD, x, bias);
    x = shares(&g, ifd_build_binary(b, IFD_OP_ADD, x, seen(&g)));
    const uint32_t y =
        ifd_build_binary(b, IFD_OP_BATCH_MATMUL, x, ifd_onnx_repeated_heads(b, values, g.heads));
    const int64_t flat[3] = {g.n, g.t, wide};
    call->output[0] = ifd_build_reshape(b, ifd_build_swap(b, y, 1, 2), flat, 3);
}
