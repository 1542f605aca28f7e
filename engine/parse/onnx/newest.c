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
 * and reads it with the query. delta: only what the state does not yet give is written. */
void ifd_onnx_linear_attention(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const int64_t heads = ifd_onnx_int(call, "q_num_heads", 0),
                  kv_heads = ifd_onnx_int(call, "kv_num_heads", 0);
    const bool is_both = ifd_onnx_text_is(call, "update_rule", "gated_delta", true);
    const bool has_gate = is_both || ifd_onnx_text_is(call, "update_rule", "gated", false);
    const bool is_delta = is_both || ifd_onnx_text_is(call, "update_rule", "delta", false);
    const uint32_t given[2] = {ifd_onnx_input(call, 4), ifd_onnx_input(call, 5)};
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || has_gate != (given[0] != IFD_NONE) ||
        is_delta != (given[1] != IFD_NONE)) {
        ifd_build_fail(b, IFD_INVALID, "%lld heads for %lld, decay or beta beside another rule",
                       (long long)heads, (long long)kv_heads);
        return;
    }
    const uint32_t q = split_heads(b, call->input[0], heads);
    const uint32_t k = split_heads(b, call->input[1], kv_heads);
    const uint32_t v = split_heads(b, call->input[2], kv_heads);
    if (b->code != IFD_OK) {
        return;
    }
    const struct ifd_shape ks = shape_of(b, k);
    const int64_t n = ks.dim[0], t = ks.dim[2], dk = ks.dim[3], dv = shape_of(b, v).dim[3];
    if (shape_of(b, q).dim[2] != t || shape_of(b, v).dim[2] != t) {
        ifd_build_fail(b, IFD_INVALID, "%lld queries, %lld keys, %lld values",
                       (long long)shape_of(b, q).dim[2], (long long)t,
                       (long long)shape_of(b, v).dim[2]);
        return;
    }
    const uint32_t decay = has_gate ? split_heads(b, given[0], kv_heads) : IFD_NONE;
    const uint32_t beta =
        is_delta ? split_heads(b, given[1], shape_of(b, given[1]).dim[2]) : IFD_NONE;
    const struct ifd_shape of_state = {.rank = 4, .dim = {n, kv_heads, dk, dv}};
    uint32_t state = ifd_onnx_input(call, 3);
    state = state == IFD_NONE ? filled(b, IFD_F32, 0, &of_state) : state;
    if (t < 1 || t > STEPS_MAX) {
        ifd_build_fail(b, IFD_TOO_LARGE, "%lld steps, limit %d", (long long)t, STEPS_MAX);
        return;
    }
    const double scale = ifd_onnx_f32(call, "scale", 0);
    const struct ifd_batch_matmul_attrs turned = {.adj_x = true};
    const int64_t grouped[4] = {n, kv_heads, heads / kv_heads, dk};
    uint32_t *read = ifd_onnx_take(call, (size_t)t);
    for (int64_t i = 0; read && b->code == IFD_OK && i < t; i++) {
        const uint32_t key = ifd_build_cut(b, k, 2, i, 1);
        uint32_t value = ifd_build_cut(b, v, 2, i, 1);
        if (has_gate) {
            const uint32_t gate = ifd_build_unary(b, IFD_OP_EXP, ifd_build_cut(b, decay, 2, i, 1));
            state = ifd_build_binary(b, IFD_OP_MUL, state, ifd_build_swap(b, gate, 2, 3));
        }
        if (is_delta) {
            const uint32_t known = ifd_build_binary(b, IFD_OP_BATCH_MATMUL, key, state);
            value = ifd_build_binary(b, IFD_OP_MUL, ifd_build_cut(b, beta, 2, i, 1),
                                     ifd_build_binary(b, IFD_OP_SUB, value, known));
        }
        const uint32_t outer = ifd_build_node(b, IFD_OP_BATCH_MATMUL,
                                              (const uint32_t[]){key, value}, 2, NULL, &turned);
        state = ifd_build_binary(b, IFD_OP_ADD, state, outer);
        const uint32_t query = ifd_build_reshape(b, ifd_build_cut(b, q, 2, i, 1), grouped, 4);
        read[i] = ifd_build_reshape(b, ifd_build_binary(b, IFD_OP_BATCH_MATMUL, query, state),
                                    (const int64_t[]){n, 1, heads * dv}, 3);
    }
    if (!read || b->code != IFD_OK) {
        return;
    }
    const struct ifd_axis_attrs time = {.axis = 1};
    const uint32_t all =
        t == 1 ? read[0] : ifd_build_node(b, IFD_OP_CONCAT, read, (uint32_t)t, NULL, &time);
    call->output[0] = ifd_build_with(b, IFD_OP_MUL, all, scale != 0 ? scale : 1 / sqrt((double)dk));
    if (call->output_count > 1) {
        call->output[1] = state;
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
