/* What depends on one number of 8 bits only, element by element, and is one of 8 bits again, is a
 * table of 256 results: dequantize → sigmoid → quantize, x * sigmoid(x), a quantization of a
 * quantized tensor. What is one table or function already stays: backends make a table of it. */
#include "engine/opt/table.h"

#include "engine/ir/shape.h"

struct search {
    struct ifd_graph *graph;
    uint32_t *source; /* of each value: the first one of 8 bits that it depends on, or IFD_NONE */
    uint32_t *uses;
};

/* A number beside the tensor, or the list of a table. */
static bool is_beside(const struct ifd_graph *graph, const struct ifd_node *node, uint32_t i)
{
    const struct ifd_value *value = &graph->value[node->input[i]];
    size_t count = 0;
    return value->is_constant && ifd_shape_elements(&value->desc.shape, &count) &&
           (count == 1 || (node->op == IFD_OP_TABLE && i == 1));
}

static uint32_t source_of(const struct search *s, const struct ifd_node *node)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    const uint32_t rank = s->graph->value[node->output[0]].desc.shape.rank;
    uint32_t found = IFD_NONE;
    if (!(def->is_elementwise || node->op == IFD_OP_TABLE) || def->scratch || rank == 0) {
        return IFD_NONE;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t v = node->input[i];
        if (v != IFD_NONE && is_beside(s->graph, node, i)) {
            continue;
        }
        const uint32_t source = v == IFD_NONE ? IFD_NONE : s->source[v];
        if (source == IFD_NONE || (found != IFD_NONE && found != source)) {
            return IFD_NONE;
        }
        found = source;
    }
    return found != IFD_NONE && s->graph->value[found].desc.shape.rank == rank ? found : IFD_NONE;
}

static void find_sources(const struct search *s)
{
    for (uint32_t v = 0; v < s->graph->value_count; v++) {
        const struct ifd_value *value = &s->graph->value[v];
        s->source[v] = !value->is_constant && ifd_table_is_stored(&value->desc) ? v : IFD_NONE;
    }
    for (uint32_t n = 0; n < s->graph->node_count; n++) {
        const struct ifd_node *node = &s->graph->node[n];
        const uint32_t source = node->output_count == 1 ? source_of(s, node) : IFD_NONE;
        if (source != IFD_NONE) {
            s->source[node->output[0]] = source;
        }
    }
}

/* Is value made between the source and the end of a chain? */
static bool is_between(const struct search *s, uint32_t value, uint32_t source)
{
    return !s->graph->value[value].is_constant && value != source;
}

/* Puts a node in its place in the order, once. False: there are too many. */
static bool insert(uint32_t *list, uint32_t *count, uint32_t node)
{
    uint32_t at = 0;
    while (at < *count && list[at] > node) {
        at++;
    }
    if (at < *count && list[at] == node) {
        return true;
    }
    if (*count == IFD_TABLE_NODES) {
        return false;
    }
    for (uint32_t i = (*count)++; i > at; i--) {
        list[i] = list[i - 1];
    }
    list[at] = node;
    return true;
}

/* The nodes from the source to node n. Those before a node come behind it in the list, so one walk
 * finds all. */
static bool collect(const struct search *s, uint32_t n, struct ifd_table_chain *ret)
{
    uint32_t list[IFD_TABLE_NODES] = {n}, count = 1;
    ret->source = s->source[s->graph->node[n].output[0]];
    for (uint32_t k = 0; k < count; k++) {
        const struct ifd_node *node = &s->graph->node[list[k]];
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (is_between(s, node->input[i], ret->source) &&
                !insert(list, &count, s->graph->value[node->input[i]].producer)) {
                return false;
            }
        }
    }
    ret->count = count;
    for (uint32_t k = 0; k < count; k++) {
        ret->node[k] = s->graph->node[list[count - 1 - k]];
    }
    return true;
}

static bool ends_chain(const struct search *s, const struct ifd_node *node)
{
    const uint32_t out = node->output[0], source = s->source[out];
    bool is_long = false;
    if (node->output_count != 1 || source == IFD_NONE || source == out ||
        !ifd_table_is_stored(&s->graph->value[out].desc)) {
        return false;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        is_long = is_long || is_between(s, node->input[i], source);
    }
    return is_long;
}

static void forget_inputs(const struct search *s, const struct ifd_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE) {
            s->uses[node->input[i]]--;
        }
    }
}

static bool is_read(const struct search *s, const struct ifd_node *node)
{
    bool is_read = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        is_read = is_read || s->uses[node->output[i]] > 0;
    }
    return is_read;
}

/* From the last node on: what only a longer chain reads needs no table. */
static enum ifd_code replace_chains(const struct search *s, struct ifd_arena *scratch,
                                    uint32_t *ret_changes, struct ifd_err *err)
{
    struct ifd_table_chain *chain = ifd_arena_take(scratch, sizeof(*chain));
    enum ifd_code code = chain ? IFD_OK : ifd_arena_fail(scratch, sizeof(*chain), err);
    for (uint32_t n = s->graph->node_count; code == IFD_OK && n-- > 0;) {
        struct ifd_node *node = &s->graph->node[n];
        const struct ifd_node before = *node;
        bool done = false;
        if (is_read(s, node)) {
            if (!ends_chain(s, node) || !collect(s, n, chain)) {
                continue;
            }
            code = ifd_table_replace(s->graph, chain, node, scratch, &done, err);
            *ret_changes += done ? 1 : 0;
            if (!done) {
                continue;
            }
            s->uses[chain->source]++;
        }
        forget_inputs(s, &before);
    }
    return code;
}

enum ifd_code ifd_pass_fuse_table(struct ifd_graph *graph, struct ifd_arena *scratch,
                                  uint32_t *ret_changes, struct ifd_err *err)
{
    const uint32_t count = graph->value_count;
    const struct search s = {
        .graph = graph,
        .source = ifd_arena_take_array(scratch, count, sizeof(*s.source)),
        .uses = ifd_arena_take_array(scratch, count, sizeof(*s.uses)),
    };
    *ret_changes = 0;
    if (!s.source || !s.uses) {
        return ifd_arena_fail(scratch, count * sizeof(*s.source), err);
    }
    ifd_rewrite_count_uses(graph, s.uses);
    find_sources(&s);
    return replace_chains(&s, scratch, ret_changes, err);
}
