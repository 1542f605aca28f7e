/* Merges nodes with the same operator, attributes and inputs (common subexpressions). Constants of
 * the same content count as the same input. */
#include "engine/opt/pass_impl.h"

#include <string.h>

#include "engine/ir/shape.h"

/* Constants up to this are compared by content (shapes, axes, scales), larger ones by address. */
#define CONTENT_LIMIT_BYTES 64

/* At most this many readers of one value are compared with each other: bounds the time that a
 * hostile file takes. */
#define SIBLING_LIMIT 64

struct merger {
    struct ifd_graph *graph;
    uint32_t *map;   /* the value to read instead */
    bool *is_output; /* per value */
    bool *drop;      /* per node */
    uint32_t *next;  /* lists of nodes with the same first input, per node */
    uint32_t *first; /* per value */
};

static bool same_constant(const struct ifd_value *a, const struct ifd_value *b)
{
    return ifd_desc_equal(&a->desc, &b->desc) && a->data.size == b->data.size &&
           (a->data.data == b->data.data ||
            (a->data.size <= CONTENT_LIMIT_BYTES &&
             memcmp(a->data.data, b->data.data, a->data.size) == 0));
}

static bool same_operand(const struct merger *m, uint32_t a, uint32_t b)
{
    if (a == IFD_NONE || b == IFD_NONE) {
        return a == b;
    }
    const struct ifd_value *u = &m->graph->value[m->map[a]], *v = &m->graph->value[m->map[b]];
    return u == v || (u->is_constant && v->is_constant && same_constant(u, v));
}

/* Attribute structs are zeroed before they are filled, so equal ones have equal bytes. */
static bool same_node(const struct merger *m, const struct ifd_node *a, const struct ifd_node *b)
{
    const size_t attrs_bytes = ifd_op_def(a->op)->attrs_bytes;
    if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count ||
        (attrs_bytes > 0 && memcmp(a->attrs, b->attrs, attrs_bytes) != 0)) {
        return false;
    }
    for (uint32_t i = 0; i < a->input_count; i++) {
        if (!same_operand(m, a->input[i], b->input[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->output_count; i++) {
        /* an output of the graph keeps its node */
        if (!ifd_desc_equal(&m->graph->value[a->output[i]].desc,
                            &m->graph->value[b->output[i]].desc) ||
            m->is_output[b->output[i]]) {
            return false;
        }
    }
    return true;
}

static bool merge(struct merger *m, uint32_t n)
{
    const struct ifd_node *node = &m->graph->node[n];
    if (node->input_count == 0 || node->input[0] == IFD_NONE) {
        return false;
    }
    const uint32_t key = m->map[node->input[0]];
    uint32_t siblings = 0;
    for (uint32_t k = m->first[key]; k != IFD_NONE && siblings < SIBLING_LIMIT; k = m->next[k]) {
        siblings++;
        const struct ifd_node *same = &m->graph->node[k];
        if (same_node(m, same, node)) {
            for (uint32_t i = 0; i < node->output_count; i++) {
                m->map[node->output[i]] = same->output[i];
            }
            return true;
        }
    }
    m->next[n] = m->first[key];
    m->first[key] = n;
    return false;
}

enum ifd_code ifd_pass_merge_equal(struct ifd_graph *graph, struct ifd_arena *scratch,
                                   uint32_t *ret_changes, struct ifd_err *err)
{
    struct merger m = {
        .graph = graph,
        .map = ifd_arena_take_array(scratch, graph->value_count, sizeof(uint32_t)),
        .is_output = ifd_arena_take_array(scratch, graph->value_count, sizeof(bool)),
        .drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(bool)),
        .next = ifd_arena_take_array(scratch, graph->node_count, sizeof(uint32_t)),
        .first = ifd_arena_take_array(scratch, graph->value_count, sizeof(uint32_t)),
    };
    if (!m.map || !m.is_output || !m.drop || !m.next || !m.first) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(uint32_t), err);
    }
    for (uint32_t v = 0; v < graph->value_count; v++) {
        m.map[v] = v;
        m.first[v] = IFD_NONE;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        m.is_output[graph->output[i]] = true;
    }
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        m.drop[n] = merge(&m, n);
        *ret_changes += m.drop[n] ? 1 : 0;
    }
    ifd_rewrite_uses(graph, m.map);
    ifd_rewrite_drop_nodes(graph, m.drop);
    return IFD_OK;
}
