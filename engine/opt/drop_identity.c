/* Removes nodes whose output is their first input unchanged. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

static bool is_identity(const struct ifd_graph *graph, const struct ifd_node *node)
{
    return ifd_op_def(node->op)->is_identity && node->output_count == 1 &&
           node->input[0] != IFD_NONE &&
           ifd_desc_equal(&graph->value[node->input[0]].desc, &graph->value[node->output[0]].desc);
}

static void make_instead(struct ifd_graph *graph, uint32_t producer, uint32_t old_value,
                         uint32_t new_value)
{
    struct ifd_node *node = &graph->node[producer];
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->output[i] == old_value) {
            node->output[i] = new_value;
        }
    }
    graph->value[old_value].producer = IFD_NONE;
    graph->value[new_value].producer = producer;
}

struct marks {
    bool *is_input, *is_output, *drop;
    uint32_t *map;
};

/* An output of the graph keeps its name: the node before writes it, unless what that node writes is
 * an output, too. */
static bool bypass(struct ifd_graph *graph, uint32_t n, const struct marks *m)
{
    const uint32_t output = graph->node[n].output[0];
    uint32_t input = graph->node[n].input[0];
    while (m->map[input] != input) {
        input = m->map[input];
    }
    if (!m->is_output[output]) {
        m->map[output] = input;
        return true;
    }
    const uint32_t producer = graph->value[input].producer;
    if (producer == IFD_NONE || m->is_output[input]) {
        return false;
    }
    make_instead(graph, producer, input, output);
    m->map[input] = output;
    return true;
}

enum ifd_code ifd_pass_drop_identity(struct ifd_graph *graph, struct ifd_arena *scratch,
                                     uint32_t *ret_changes, struct ifd_err *err)
{
    const struct marks m = {
        .is_input = ifd_arena_take_array(scratch, graph->value_count, sizeof(bool)),
        .is_output = ifd_arena_take_array(scratch, graph->value_count, sizeof(bool)),
        .drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(bool)),
        .map = ifd_arena_take_array(scratch, graph->value_count, sizeof(uint32_t)),
    };
    if (!m.is_input || !m.is_output || !m.drop || !m.map) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(uint32_t), err);
    }
    ifd_rewrite_mark_io(graph, m.is_input, m.is_output);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        m.map[v] = v;
    }
    uint32_t changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (is_identity(graph, &graph->node[n]) && bypass(graph, n, &m)) {
            m.drop[n] = true;
            changes++;
        }
    }
    ifd_rewrite_uses(graph, m.map);
    ifd_rewrite_drop_nodes(graph, m.drop);
    *ret_changes = changes;
    return IFD_OK;
}
