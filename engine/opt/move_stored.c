/* dequantize → operators that only move numbers, or choose among them by size → quantize: they move
 * the stored numbers. The quantization goes where it is that of the input, and becomes a table of
 * 256 numbers where it is not. */
#include "engine/opt/table.h"

#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"

struct search {
    struct ifd_graph *graph;
    /* Of each value of floats: the value of 8 bits whose type and quantization it can have;
     * IFD_NONE: none. */
    uint32_t *like;
    uint32_t *from;  /* the dequantize that it is a part of, or IFD_NONE */
    bool *is_kept;   /* somebody reads floats */
    bool *is_stored; /* is of 8 bits now */
    uint32_t *uses, *reader;
};

/* Does it join all of its inputs? Others move the first one; the rest say where to. */
static bool joins(const struct ifd_node *node)
{
    return ifd_op_def(node->op)->max_inputs == IFD_OP_VARIADIC;
}

static bool is_data(const struct ifd_node *node, uint32_t i)
{
    return i == 0 || joins(node);
}

/* A border of 0 is a border of the zero point; other numbers are not looked at. */
static bool only_moves(const struct ifd_node *node)
{
    const struct ifd_pad_attrs *pad = node->attrs;
    return ifd_op_def(node->op)->moves && ifd_rewrite_activation(node) == IFD_ACT_NONE &&
           !(node->op == IFD_OP_PAD && pad->has_value);
}

static bool same_numbers(const struct ifd_desc *a, const struct ifd_desc *b)
{
    return a->dtype == b->dtype && ifd_quant_same(&a->quant, &b->quant);
}

static const struct ifd_desc *desc_of(const struct search *s, uint32_t value)
{
    return &s->graph->value[value].desc;
}

/* dequantize from one tensor of 8 bits, which has a scale */
static bool is_dequantize(const struct search *s, const struct ifd_node *node)
{
    return node && node->op == IFD_OP_DEQUANTIZE && desc_of(s, node->output[0])->dtype == IFD_F32 &&
           ifd_table_is_stored(desc_of(s, node->input[0])) &&
           desc_of(s, node->input[0])->quant.count == 1;
}

static bool is_quantize(const struct search *s, const struct ifd_node *node)
{
    return node->op == IFD_OP_QUANTIZE && desc_of(s, node->input[0])->dtype == IFD_F32 &&
           ifd_table_is_stored(desc_of(s, node->output[0])) &&
           desc_of(s, node->output[0])->quant.count == 1;
}

/* ---- what could be stored ---- */

static const struct ifd_node *dequantize_of(const struct search *s, uint32_t value)
{
    const struct ifd_node *node = ifd_rewrite_producer(s->graph, value);
    return is_dequantize(s, node) ? node : NULL;
}

/* The stored numbers of one input stay as they are. */
static void follow(const struct search *s, const struct ifd_node *node)
{
    const uint32_t v = node->input[0];
    const uint32_t like = v == IFD_NONE ? IFD_NONE : s->like[v];
    if (like == IFD_NONE ||
        (ifd_op_def(node->op)->dtypes & IFD_BIT(desc_of(s, like)->dtype)) == 0) {
        return;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        s->like[node->output[i]] = like;
        s->from[node->output[i]] = s->from[v];
    }
}

/* Tensors that are joined get the quantization that the whole gets: those that have another one are
 * looked up in a table, if nobody else reads their floats. */
static void join(const struct search *s, const struct ifd_node *node)
{
    const uint32_t out = node->output[0];
    const struct ifd_node *reader =
        s->uses[out] == 1 && s->reader[out] != IFD_NONE ? &s->graph->node[s->reader[out]] : NULL;
    if (!reader || !is_quantize(s, reader)) {
        return;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct ifd_node *there = dequantize_of(s, node->input[i]);
        if (!there || (s->uses[node->input[i]] > 1 &&
                       !same_numbers(desc_of(s, there->input[0]), desc_of(s, reader->output[0])))) {
            return;
        }
    }
    s->like[out] = reader->output[0];
}

static void find_likes(const struct search *s)
{
    for (uint32_t v = 0; v < s->graph->value_count; v++) {
        s->like[v] = s->from[v] = s->reader[v] = IFD_NONE;
    }
    for (uint32_t n = 0; n < s->graph->node_count; n++) {
        for (uint32_t i = 0; i < s->graph->node[n].input_count; i++) {
            if (s->graph->node[n].input[i] != IFD_NONE) {
                s->reader[s->graph->node[n].input[i]] = n;
            }
        }
    }
    for (uint32_t n = 0; n < s->graph->node_count; n++) {
        const struct ifd_node *node = &s->graph->node[n];
        if (is_dequantize(s, node)) {
            s->like[node->output[0]] = node->input[0];
            s->from[node->output[0]] = n;
        } else if (only_moves(node) && joins(node)) {
            join(s, node);
        } else if (only_moves(node)) {
            follow(s, node);
        }
    }
}

/* ---- who reads floats ---- */

static bool can_store(const struct search *s, const struct ifd_node *node)
{
    bool can = only_moves(node);
    for (uint32_t i = 0; can && i < node->output_count; i++) {
        can = s->like[node->output[i]] != IFD_NONE && !s->is_kept[node->output[i]];
    }
    return can;
}

/* Of several outputs all are stored, or none: only a quantization behind them does not care. */
static bool takes_stored(const struct search *s, const struct ifd_node *node, uint32_t i)
{
    const struct ifd_node *before = ifd_rewrite_producer(s->graph, node->input[i]);
    return is_quantize(s, node) ||
           (is_data(node, i) && before && before->output_count == 1 && can_store(s, node));
}

/* Backwards, so that the readers of a node's outputs are known. */
static void find_readers_of_floats(const struct search *s)
{
    for (uint32_t i = 0; i < s->graph->output_count; i++) {
        s->is_kept[s->graph->output[i]] = true;
    }
    for (uint32_t n = s->graph->node_count; n-- > 0;) {
        const struct ifd_node *node = &s->graph->node[n];
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->input[i] != IFD_NONE && !takes_stored(s, node, i)) {
                s->is_kept[node->input[i]] = true;
            }
        }
    }
}

/* ---- rewriting ---- */

/* Makes node a table: from the numbers of a dequantization to those of a quantization. */
static enum ifd_code requantize(const struct search *s, const struct ifd_node *there,
                                const struct ifd_node *back, struct ifd_node *node,
                                struct ifd_arena *scratch, struct ifd_err *err)
{
    struct ifd_table_chain chain = {.source = there->input[0], .node = {*there, *back}, .count = 2};
    bool done = false;
    chain.node[1].input = there->output;
    const enum ifd_code code = ifd_table_replace(s->graph, &chain, node, scratch, &done, err);
    return code != IFD_OK || done ? code
                                  : ifd_fail(err, IFD_INTERNAL, "a quantization has no table");
}

static void relabel(const struct search *s, uint32_t value, const struct ifd_desc *like)
{
    s->graph->value[value].desc.dtype = like->dtype;
    s->graph->value[value].desc.quant = like->quant;
    s->is_stored[value] = true;
}

static bool is_available(const struct search *s, const struct ifd_node *node)
{
    bool is = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t v = node->input[i];
        is = is && (!is_data(node, i) || s->is_stored[v] || dequantize_of(s, v));
    }
    return is;
}

static enum ifd_code store(const struct search *s, struct ifd_node *node, struct ifd_arena *scratch,
                           struct ifd_err *err)
{
    const struct ifd_desc like = *desc_of(s, s->like[node->output[0]]);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < node->input_count; i++) {
        const uint32_t v = node->input[i];
        const struct ifd_node *there = is_data(node, i) ? dequantize_of(s, v) : NULL;
        if (!there) {
            continue;
        }
        if (same_numbers(desc_of(s, there->input[0]), &like)) {
            node->input[i] = there->input[0];
            continue;
        }
        code = requantize(s, there, &s->graph->node[s->reader[node->output[0]]],
                          &s->graph->node[s->from[v]], scratch, err);
        relabel(s, v, &like);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        relabel(s, node->output[i], &like);
    }
    return code;
}

/* A quantization of numbers that are stored now. */
static enum ifd_code restore(const struct search *s, struct ifd_node *back,
                             struct ifd_arena *scratch, struct ifd_err *err)
{
    const uint32_t v = back->input[0];
    if (same_numbers(desc_of(s, v), desc_of(s, back->output[0]))) {
        return IFD_OK;
    }
    const struct ifd_node quantize = *back;
    const enum ifd_code code =
        requantize(s, &s->graph->node[s->from[v]], &quantize, back, scratch, err);
    back->input[0] = v;
    return code;
}

static enum ifd_code rewrite(const struct search *s, struct ifd_arena *scratch,
                             uint32_t *ret_changes, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t n = 0; code == IFD_OK && n < s->graph->node_count; n++) {
        struct ifd_node *node = &s->graph->node[n];
        if (node->op == IFD_OP_QUANTIZE && s->is_stored[node->input[0]]) {
            code = restore(s, node, scratch, err);
        } else if (can_store(s, node) && is_available(s, node)) {
            code = store(s, node, scratch, err);
            (*ret_changes)++;
        }
    }
    return code;
}

enum ifd_code ifd_pass_move_stored(struct ifd_graph *graph, struct ifd_arena *scratch,
                                   uint32_t *ret_changes, struct ifd_err *err)
{
    const uint32_t count = graph->value_count;
    const struct search s = {
        .graph = graph,
        .like = ifd_arena_take_array(scratch, count, sizeof(*s.like)),
        .from = ifd_arena_take_array(scratch, count, sizeof(*s.from)),
        .is_kept = ifd_arena_take_array(scratch, count, sizeof(*s.is_kept)),
        .is_stored = ifd_arena_take_array(scratch, count, sizeof(*s.is_stored)),
        .uses = ifd_arena_take_array(scratch, count, sizeof(*s.uses)),
        .reader = ifd_arena_take_array(scratch, count, sizeof(*s.reader)),
    };
    *ret_changes = 0;
    if (!s.like || !s.from || !s.is_kept || !s.is_stored || !s.uses || !s.reader) {
        return ifd_arena_fail(scratch, count * sizeof(*s.like), err);
    }
    ifd_rewrite_count_uses(graph, s.uses);
    find_likes(&s);
    find_readers_of_floats(&s);
    return rewrite(&s, scratch, ret_changes, err);
}
