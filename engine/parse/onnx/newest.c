/* Operators of opset 24 and newer that are a few of ours: caches that are written in place, running
 * products, gated units, attention with a state in place of a cache. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/inner.h"

#define STEPS_MAX 1024 /* of a state, each a few nodes */

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t joined(struct ifd_builder *b, uint32_t x, uint32_t y, uint32_t axis)
{
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)axis};
    return ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){x, y}, 2, NULL, &attrs);
}

static uint32_t filled(struct ifd_builder *b, enum ifd_dtype dtype, double number,
                       const struct ifd_shape *shape)
{
    struct ifd_broadcast_to_attrs attrs = {.shape = {.count = shape->rank}};
    memcpy(attrs.shape.value, shape->dim, sizeof(shape->dim));
    const uint32_t one = ifd_build_number(b, dtype, number);
    return ifd_build_node(b, IFD_OP_BROADCAST_TO, &one, 1, NULL, &attrs);
}

/* ---- caches ---- */

uint32_t ifd_onnx_written(struct ifd_builder *b, uint32_t cache, uint32_t update, uint32_t places,
                          uint32_t axis, bool is_circular)
{
    const struct ifd_shape c = shape_of(b, cache), u = shape_of(b, update);
    bool fits = b->code == IFD_OK && c.rank == u.rank && axis > 0 && axis < c.rank &&
                u.dim[axis] > 0 && u.dim[axis] <= c.dim[axis];
    for (uint32_t d = 0; fits && d < c.rank; d++) {
        fits = d == axis || c.dim[d] == u.dim[d];
    }
    if (!fits) {
        return ifd_build_fail(b, IFD_INVALID, "an update %s of a cache %s along axis %u",
                              ifd_shape_text(&u).s, ifd_shape_text(&c).s, axis);
    }
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)c.dim[axis]),
                                ifd_build_number(b, IFD_S64, 1)};
    const int64_t column[2] = {c.dim[0], 1};
    const uint32_t begin =
        places == IFD_NONE
            ? filled(b, IFD_S64, 0, &(struct ifd_shape){.rank = 2, .dim = {c.dim[0], 1}})
            : ifd_build_reshape(b, ifd_build_cast(b, places, IFD_S64), column, 2);
    uint32_t at = ifd_build_binary(b, IFD_OP_SUB,
                                   ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL), begin);
    if (is_circular) {
        at = ifd_build_with(b, IFD_OP_FLOOR_MOD, at, (double)c.dim[axis]);
    }
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const uint32_t within[2] = {
        ifd_onnx_compared(b, IFD_OP_GREATER_EQUAL, at, ifd_build_number(b, IFD_S64, 0)),
        ifd_onnx_compared(b, IFD_OP_LESS, at, ifd_build_number(b, IFD_S64, (double)u.dim[axis]))};
    const uint32_t is_new = ifd_build_node(b, IFD_OP_LOGICAL_AND, within, 2, &flag, NULL);
    const uint32_t pick = ifd_onnx_selected(b, is_new, at, ifd_build_number(b, IFD_S64, 0));
    const struct ifd_gather_attrs own = {.axis = (int32_t)axis, .batch_dims = 1};
    const uint32_t spread =
        ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){update, pick}, 2, NULL, &own);
    struct ifd_shape wide = {.rank = c.rank, .dim = {c.dim[0]}};
    for (uint32_t d = 1; d < c.rank; d++) {
        wide.dim[d] = d == axis ? c.dim[d] : 1;
    }
    return ifd_onnx_selected(b, ifd_build_reshape(b, is_new, wide.dim, wide.rank), spread, cache);
}

void ifd_onnx_tensor_scatter(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const uint32_t axis =
        ifd_build_axis(b, ifd_onnx_int(call, "axis", -2), shape_of(b, call->input[0]).rank);
    call->output[0] = ifd_onnx_written(b, call->input[0], call->input[1], ifd_onnx_input(call, 2),
                                       axis, ifd_onnx_text_is(call, "mode", "circular", false));
}

/* ---- running products ---- */

/* x moved by some places along an axis, with ones in the gap. */
static uint32_t moved(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t by, bool is_back)
{
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    struct ifd_shape gap = desc.shape;
    gap.dim[axis] = by;
    const int64_t rest = desc.shape.dim[axis] - by;
    const uint32_t ones = filled(b, desc.dtype, 1, &gap);
    const uint32_t kept = ifd_build_cut(b, x, axis, is_back ? by : 0, rest);
    return is_back ? joined(b, kept, ones, axis) : joined(b, ones, kept, axis);
}

/* Products of 1, 2, 4 … neighbours. */
void ifd_onnx_cumprod(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(b, call->input[0]).rank;
    const uint32_t axis = ifd_build_axis(b, ifd_build_int_of(b, call->input[1], "the axis"), rank);
    const bool is_back = ifd_onnx_int(call, "reverse", 0) != 0;
    const enum ifd_dtype dtype = ifd_build_desc(b, call->input[0])->dtype;
    uint32_t y = ifd_onnx_widened(b, call->input[0]);
    if (b->code != IFD_OK) {
        return;
    }
    const int64_t size = shape_of(b, y).dim[axis];
    for (int64_t by = 1; b->code == IFD_OK && by < size; by *= 2) {
        y = ifd_build_binary(b, IFD_OP_MUL, y, moved(b, y, axis, by, is_back));
    }
    const bool is_exclusive = ifd_onnx_int(call, "exclusive", 0) != 0 && size > 0;
    call->output[0] = ifd_build_cast(b, is_exclusive ? moved(b, y, axis, 1, is_back) : y, dtype);
}

/* ---- gated units ---- */

static uint32_t swish(struct ifd_builder *b, uint32_t x, double alpha)
{
    const uint32_t scaled = alpha == 1 ? x : ifd_build_with(b, IFD_OP_MUL, x, alpha);
    return ifd_build_binary(b, IFD_OP_MUL, x, ifd_build_unary(b, IFD_OP_LOGISTIC, scaled));
}

void ifd_onnx_swiglu(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = ifd_build_binary(
        call->b, IFD_OP_MUL, swish(call->b, call->input[0], ifd_onnx_f32(call, "alpha", 1)),
        call->input[1]);
}

/* ---- states ---- */

/* x [n, channels, t], filter [channels, 1, k], bias, the k - 1 columns before. */
void ifd_onnx_causal_conv(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]), w = shape_of(b, call->input[1]);
    uint32_t past = ifd_onnx_input(call, 3);
    if (x.rank != 3 || w.rank != 3 || w.dim[2] < 1) {
        ifd_build_fail(b, IFD_INVALID, "input %s and filter %s", ifd_shape_text(&x).s,
                       ifd_shape_text(&w).s);
        return;
    }
    const struct ifd_shape before = {.rank = 3, .dim = {x.dim[0], x.dim[1], w.dim[2] - 1}};
    past = past == IFD_NONE ? filled(b, IFD_F32, 0, &before) : past;
    const uint32_t all = w.dim[2] > 1 ? joined(b, past, call->input[0], 2) : call->input[0];
    const struct ifd_onnx_attr groups = {.name = {"group", 5}, .i = x.dim[1]};
    const struct ifd_onnx_node conv = {.op = call->node->op, .attr = &groups, .attr_count = 1};
    struct ifd_onnx_call inner = *call;
    inner.node = &conv;
    const uint32_t y =
        ifd_onnx_convolve(&inner, all, call->input[1], ifd_onnx_input(call, 2), NULL);
    const bool is_plain = ifd_onnx_text_is(call, "activation", "none", true);
    call->output[0] = is_plain ? y : swish(b, y, 1);
    if (call->output_count > 1) {
        call->output[1] = ifd_build_cut(b, all, 2, x.dim[2], w.dim[2] - 1);
    }
}

/* [n, t, heads * size] as [n, heads, t, size] */
static uint32_t split_heads(struct ifd_builder *b, uint32_t x, int64_t heads)
{
    const struct ifd_shape s = shape_of(b, x);
    if (b->code != IFD_OK || s.rank != 3 || heads < 1 || s.dim[2] % heads != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%lld heads of shape %s", (long long)heads,
                              ifd_shape_text(&s).s);
    }
    const int64_t dim[4] = {s.dim[0], s.dim[1], heads, s.dim[2] / heads};
    return ifd_build_swap(b, ifd_build_reshape(b, x, dim, 4), 1, 2);
}

/* A state [n, heads, k, v]: each step makes it decay, writes the outer product of key and value,
 * and reads it with the query. With rates, only what the state does not yet give is written. All
 * [n, heads, t, ...]; queries may have several heads for one of the state. */
struct recurrence {
    uint32_t query, key, value;
    uint32_t decay, rate; /* IFD_NONE: none */
    uint32_t state;       /* IFD_NONE: zeros; then the last */
    double scale;         /* of results; 0: the usual one */
};

/* Results [n, t, heads * v]. */
static uint32_t recur(struct ifd_onnx_call *call, struct recurrence *r)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape q = shape_of(b, r->query), k = shape_of(b, r->key),
                           v = shape_of(b, r->value);
    const int64_t n = k.dim[0], heads = k.dim[1], t = k.dim[2], dk = k.dim[3], dv = v.dim[3];
    if (b->code != IFD_OK || q.dim[2] != t || v.dim[2] != t) {
        return ifd_build_fail(b, IFD_INVALID, "%lld queries, %lld keys, %lld values",
                              (long long)q.dim[2], (long long)t, (long long)v.dim[2]);
    }
    const struct ifd_shape of_state = {.rank = 4, .dim = {n, heads, dk, dv}};
    const struct ifd_shape given = shape_of(b, r->state);
    if (r->state != IFD_NONE && !ifd_shape_equal(&given, &of_state)) {
        return ifd_build_fail(b, IFD_INVALID, "a state of shape %s, expected %s",
                              ifd_shape_text(&given).s, ifd_shape_text(&of_state).s);
    }
    if (t < 1 || t > STEPS_MAX) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%lld steps, limit %d", (long long)t, STEPS_MAX);
    }
    uint32_t state = r->state == IFD_NONE ? filled(b, IFD_F32, 0, &of_state) : r->state;
    const struct ifd_batch_matmul_attrs turned = {.adj_x = true};
    const int64_t grouped[4] = {n, heads, q.dim[1] / heads, dk};
    uint32_t *read = ifd_onnx_take(call, (size_t)t);
    for (int64_t i = 0; read && b->code == IFD_OK && i < t; i++) {
        const uint32_t key = ifd_build_cut(b, r->key, 2, i, 1);
        uint32_t value = ifd_build_cut(b, r->value, 2, i, 1);
        if (r->decay != IFD_NONE) {
            const uint32_t gate =
                ifd_build_unary(b, IFD_OP_EXP, ifd_build_cut(b, r->decay, 2, i, 1));
            state = ifd_build_binary(b, IFD_OP_MUL, state, ifd_build_swap(b, gate, 2, 3));
        }
        if (r->rate != IFD_NONE) {
            const uint32_t known = ifd_build_binary(b, IFD_OP_BATCH_MATMUL, key, state);
            value = ifd_build_binary(b, IFD_OP_MUL, ifd_build_cut(b, r->rate, 2, i, 1),
                                     ifd_build_binary(b, IFD_OP_SUB, value, known));
        }
        const uint32_t outer = ifd_build_node(b, IFD_OP_BATCH_MATMUL,
                                              (const uint32_t[]){key, value}, 2, NULL, &turned);
        state = ifd_build_binary(b, IFD_OP_ADD, state, outer);
        const uint32_t query =
            ifd_build_reshape(b, ifd_build_cut(b, r->query, 2, i, 1), grouped, 4);
        read[i] = ifd_build_reshape(b, ifd_build_binary(b, IFD_OP_BATCH_MATMUL, query, state),
                                    (const int64_t[]){n, 1, q.dim[1] * dv}, 3);
    }
    if (!read || b->code != IFD_OK) {
        return IFD_NONE;
    }
    const struct ifd_axis_attrs time = {.axis = 1};
    const uint32_t all =
        t == 1 ? read[0] : ifd_build_node(b, IFD_OP_CONCAT, read, (uint32_t)t, NULL, &time);
    r->state = state;
    return ifd_build_with(b, IFD_OP_MUL, all, r->scale != 0 ? r->scale : 1 / sqrt((double)dk));
}

/* What attribute "update_rule" says, "gated_delta" where it is absent. */
static void rule_of(const struct ifd_onnx_call *call, bool *ret_decays, bool *ret_has_rate)
{
    const bool is_both = ifd_onnx_text_is(call, "update_rule", "gated_delta", true);
    *ret_decays = is_both || ifd_onnx_text_is(call, "update_rule", "gated", false);
    *ret_has_rate = is_both || ifd_onnx_text_is(call, "update_rule", "delta", false);
}

void ifd_onnx_linear_attention(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const int64_t heads = ifd_onnx_int(call, "q_num_heads", 0),
                  kv_heads = ifd_onnx_int(call, "kv_num_heads", 0);
    const uint32_t given[2] = {ifd_onnx_input(call, 4), ifd_onnx_input(call, 5)};
    bool decays = false, has_rate = false;
    rule_of(call, &decays, &has_rate);
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || decays != (given[0] != IFD_NONE) ||
        has_rate != (given[1] != IFD_NONE)) {
        ifd_build_fail(b, IFD_INVALID, "%lld heads for %lld, decay or beta beside another rule",
                       (long long)heads, (long long)kv_heads);
        return;
    }
    struct recurrence r = {.query = split_heads(b, call->input[0], heads),
                           .key = split_heads(b, call->input[1], kv_heads),
                           .value = split_heads(b, call->input[2], kv_heads),
                           .decay = decays ? split_heads(b, given[0], kv_heads) : IFD_NONE,
                           .rate = has_rate ? split_heads(b, given[1], shape_of(b, given[1]).dim[2])
                                            : IFD_NONE,
                           .state = ifd_onnx_input(call, 3),
                           .scale = ifd_onnx_f32(call, "scale", 0)};
    call->output[0] = recur(call, &r);
    if (call->output_count > 1) {
        call->output[1] = r.state;
    }
}

enum {
    DELTA_LENGTHS = 3,
    DELTA_DECAY,
    DELTA_RATE,
    DELTA_STATE,
    DELTA_LOG,
    DELTA_BIAS,
    DELTA_LATER
};

/* [n * t, heads] or [n, t, heads], of this rank, as [n, heads, t, 1]; with a size behind as [n,
 * heads, t, size]. */
static uint32_t heads_first(struct ifd_builder *b, uint32_t x, int64_t n, uint32_t rank,
                            int64_t heads)
{
    const struct ifd_shape s = shape_of(b, x);
    const bool has_size = s.rank == rank + 1;
    if (x == IFD_NONE || (s.rank != rank && !has_size) || n < 1) {
        return ifd_build_fail(b, IFD_INVALID, "%lld heads of shape %s", (long long)heads,
                              ifd_shape_text(&s).s);
    }
    size_t elements = 0;
    const int64_t dim[4] = {n, -1, heads, has_size ? s.dim[rank] : 1};
    if (!ifd_shape_elements(&s, &elements) || elements == 0) {
        return ifd_build_fail(b, IFD_INVALID, "nothing of shape %s", ifd_shape_text(&s).s);
    }
    return ifd_build_swap(b, ifd_build_reshape(b, x, dim, 4), 1, 2);
}

/* Numbers of heads, or of heads and keys, beside [n, heads, t, ...]. */
static uint32_t of_heads(struct ifd_builder *b, uint32_t x, int64_t heads)
{
    const int64_t dim[3] = {heads, 1, -1};
    return ifd_build_reshape(b, x, dim, 3);
}

/* x by the square root of the sum of its squares and a little more. */
static uint32_t unit(struct ifd_builder *b, uint32_t x, double more)
{
    const struct ifd_ints last = {.count = 1, .value = {3}};
    const uint32_t squares =
        ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_build_binary(b, IFD_OP_MUL, x, x), &last, true);
    return ifd_build_binary(
        b, IFD_OP_MUL, x,
        ifd_build_unary(b, IFD_OP_RSQRT, ifd_build_with(b, IFD_OP_ADD, squares, more)));
}

/* Kimi's gates; else Qwen's, or none. */
static bool is_kimi(const struct ifd_onnx_call *call)
{
    return ifd_onnx_text_is(call, "gate_activation", "sigmoid", false) ||
           ifd_onnx_text_is(call, "gate_activation", "kda", false);
}

/* The logarithm of what is left of the state, from what the node has in its place. */
static uint32_t decay_of(struct ifd_onnx_call *call, uint32_t x, int64_t heads)
{
    struct ifd_builder *b = call->b;
    const bool is_soft = ifd_onnx_text_is(call, "gate_activation", "softplus", false) ||
                         ifd_onnx_text_is(call, "gate_activation", "qwen", false);
    const uint32_t log = ifd_onnx_input(call, DELTA_LOG), bias = ifd_onnx_input(call, DELTA_BIAS);
    if (ifd_onnx_text_is(call, "gate_activation", "none", true)) {
        return x;
    }
    if (log == IFD_NONE || bias == IFD_NONE) {
        return ifd_build_fail(b, IFD_INVALID, "gates without their numbers");
    }
    if (!is_soft && !is_kimi(call)) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"gate_activation\"");
    }
    const uint32_t factor = ifd_build_unary(b, IFD_OP_EXP, of_heads(b, log, heads));
    x = ifd_build_binary(b, IFD_OP_ADD, x, of_heads(b, bias, heads));
    return is_soft
               ? ifd_build_unary(b, IFD_OP_NEG,
                                 ifd_build_binary(b, IFD_OP_MUL, factor, ifd_build_softplus(b, x)))
               : ifd_build_with(b, IFD_OP_MUL,
                                ifd_build_unary(b, IFD_OP_LOGISTIC,
                                                ifd_build_binary(b, IFD_OP_MUL, factor, x)),
                                ifd_onnx_f32(call, "gate_lower_bound", -5));
}

/* query, key, value [tokens, heads, size] or [n, t, heads, size], decay, rate; the state lies as
 * [n, heads, v, k]. */
void ifd_onnx_gated_delta_net(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const uint32_t given = ifd_onnx_input(call, DELTA_STATE);
    const struct ifd_shape q = shape_of(b, call->input[0]),
                           k = shape_of(b, ifd_onnx_input(call, 1)),
                           v = shape_of(b, ifd_onnx_input(call, 2)), s = shape_of(b, given);
    bool decays = false, has_rate = false;
    rule_of(call, &decays, &has_rate);
    bool fits = (q.rank == 3 || q.rank == 4) && k.rank == q.rank && v.rank == q.rank &&
                (s.rank == 4 || q.rank == 4) && ifd_onnx_input(call, DELTA_LENGTHS) == IFD_NONE &&
                call->output_count < 3 && ifd_onnx_int(call, "state_update_capacity", 0) == 0;
    for (uint32_t i = DELTA_LATER; i < call->input_count; i++) {
        fits = fits && call->input[i] == IFD_NONE;
    }
    const int64_t heads = fits ? v.dim[v.rank - 2] : 0, few = fits ? k.dim[k.rank - 2] : 0;
    const int64_t n = !fits ? 0 : q.rank == 4 ? q.dim[0] : s.dim[0];
    if (!fits || heads < 1 || few < 1 || heads % few != 0 || q.dim[q.rank - 2] != few) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "queries %s, keys %s, values %s, packed, of several lengths, or parts of "
                       "states",
                       ifd_shape_text(&q).s, ifd_shape_text(&k).s, ifd_shape_text(&v).s);
        return;
    }
    const bool is_unit = ifd_onnx_int(call, "qk_l2_norm", 0) != 0;
    const double more = is_kimi(call) ? 1e-6 : 1e-12; /* as ONNX Runtime has it */
    struct recurrence r = {.value = heads_first(b, call->input[2], n, q.rank - 1, heads),
                           .decay = IFD_NONE,
                           .rate = IFD_NONE,
                           .state = given == IFD_NONE ? given : ifd_build_swap(b, given, 2, 3),
                           .scale = ifd_onnx_f32(call, "scale", 0)};
    uint32_t *const side[2] = {&r.query, &r.key};
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t x = heads_first(b, call->input[i], n, q.rank - 1, few);
        *side[i] = ifd_onnx_repeated_heads(b, is_unit ? unit(b, x, more) : x, heads);
    }
    if (decays) {
        const uint32_t each =
            heads_first(b, ifd_onnx_input(call, DELTA_DECAY), n, q.rank - 1, heads);
        r.decay = decay_of(call, each, heads);
    }
    if (has_rate) {
        r.rate = heads_first(b, ifd_onnx_input(call, DELTA_RATE), n, q.rank - 1, heads);
        r.rate = ifd_onnx_text_is(call, "beta_activation", "sigmoid", false)
                     ? ifd_build_unary(b, IFD_OP_LOGISTIC, r.rate)
                     : r.rate;
    }
    call->output[0] = ifd_build_reshape(b, recur(call, &r), v.dim, v.rank);
    if (call->output_count > 1) {
        call->output[1] = ifd_build_swap(b, r.state, 2, 3);
    }
}

/* ---- attention whose products graphs of the node change ---- */

static uint32_t modified(struct ifd_onnx_call *call, const char *name, uint32_t x)
{
    if (!ifd_onnx_attr(call, name)) {
        return x;
    }
    const struct ifd_onnx_graph *g = ifd_onnx_graph_of(call, name);
    uint32_t y = IFD_NONE;
    if (g && g->output_count == 1) {
        ifd_onnx_build_inline(call, g, &x, 1, &y);
        return y;
    }
    return ifd_build_fail(call->b, IFD_INVALID, "attribute \"%s\" is no graph of one result", name);
}

void ifd_onnx_flex_attention(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape q = shape_of(b, call->input[0]);
    const struct ifd_batch_matmul_attrs turned = {.adj_y = true};
    if (q.rank != 4) {
        ifd_build_fail(b, IFD_INVALID, "queries of shape %s", ifd_shape_text(&q).s);
        return;
    }
    const uint32_t k = ifd_onnx_repeated_heads(b, call->input[1], q.dim[1]);
    const uint32_t v = ifd_onnx_repeated_heads(b, call->input[2], q.dim[1]);
    const double scale =
        ifd_onnx_attr(call, "scale") ? ifd_onnx_f32(call, "scale", 0) : 1 / sqrt((double)q.dim[3]);
    uint32_t x = ifd_build_node(b, IFD_OP_BATCH_MATMUL, (const uint32_t[]){call->input[0], k}, 2,
                                NULL, &turned);
    x = modified(call, "score_mod", ifd_build_with(b, IFD_OP_MUL, x, scale));
    x = modified(call, "prob_mod", ifd_build_softmax(b, IFD_OP_SOFTMAX, x, 3));
    call->output[0] = ifd_build_binary(b, IFD_OP_BATCH_MATMUL, x, v);
}
