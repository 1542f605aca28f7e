/* Removes nodes whose results reach no output, and values without users. */
#include "engine/opt/pass_impl.h"

static void mark_used(const struct ifd_graph *graph, bool *used, bool *drop)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        used[graph->output[i]] = true;
    }
    for (uint32_t n = graph->node_count; n-- > 0;) {
        const struct ifd_node *node = &graph->node[n];
        drop[n] = true;
        for (uint32_t i = 0; i < node->output_count; i++) {
            drop[n] &= !used[node->output[i]];
        }
        for (uint32_t i = 0; !drop[n] && i < node->input_count; i++) {
            if (node->input[i] != IFD_NONE) {
                used[node->input[i]] = true;
            }
        }
    }
}

enum ifd_code ifd_pass_drop_dead(struct ifd_graph *graph, struct ifd_arena *scratch,
                                 uint32_t *ret_changes, struct ifd_err *err)
{
    bool *used = ifd_arena_take_array(scratch, graph->value_count, sizeof(*used));
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    uint32_t *map = ifd_arena_take_array(scratch, graph->value_count, sizeof(*map));
    if (!used || !drop || !map) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*map), err);
    }
    const uint32_t values = graph->value_count;
    const uint32_t nodes = graph->node_count;
    mark_used(graph, used, drop);
    ifd_rewrite_drop_nodes(graph, drop);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        used[graph->input[i]] = true;
    }
    /* Unread outputs of a node that stays. */
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].output_count; i++) {
            used[graph->node[n].output[i]] = true;
        }
    }
    ifd_rewrite_keep_values(graph, used, map);
    *ret_changes = nodes - graph->node_count + values - graph->value_count;
    return IFD_OK;
}
