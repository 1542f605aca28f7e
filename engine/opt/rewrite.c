/* The rewrites that passes are made of. */
#include "engine/opt/pass_impl.h"

void ifd_rewrite_drop_nodes(struct ifd_graph *graph, const bool *drop)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct ifd_node *node = &graph->node[n];
        for (uint32_t i = 0; i < node->output_count; i++) {
            struct ifd_value *value = &graph->value[node->output[i]];
            if (value->producer == n) {
                value->producer = drop[n] ? IFD_NONE : kept;
            }
        }
        if (!drop[n]) {
            graph->node[kept++] = *node;
        }
    }
    graph->node_count = kept;
}

static void renumber(uint32_t *list, uint32_t count, const uint32_t *map)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] != IFD_NONE) {
            list[i] = map[list[i]];
        }
    }
}

void ifd_rewrite_keep_values(struct ifd_graph *graph, const bool *keep, uint32_t *map)
{
    uint32_t kept = 0;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        map[v] = IFD_NONE;
        if (keep[v]) {
            map[v] = kept;
            graph->value[kept++] = graph->value[v];
        }
    }
    graph->value_count = kept;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        renumber(graph->node[n].input, graph->node[n].input_count, map);
        renumber(graph->node[n].output, graph->node[n].output_count, map);
    }
    renumber(graph->input, graph->input_count, map);
    renumber(graph->output, graph->output_count, map);
}

void ifd_rewrite_uses(struct ifd_graph *graph, const uint32_t *map)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            uint32_t v = graph->node[n].input[i];
            while (v != IFD_NONE && map[v] != v) {
                v = map[v];
            }
            graph->node[n].input[i] = v;
        }
    }
}

void ifd_rewrite_mark_io(const struct ifd_graph *graph, bool *ret_is_input, bool *ret_is_output)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ret_is_input[graph->input[i]] = true;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ret_is_output[graph->output[i]] = true;
    }
}
