/* A reshape of a reshape reads the first one's input; drop_dead removes the first. */
#include "engine/opt/pass_impl.h"

enum ifd_code ifd_pass_merge_reshape(struct ifd_graph *graph, struct ifd_arena *scratch,
                                     uint32_t *ret_changes, struct ifd_err *err)
{
    (void)scratch;
    (void)err;
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        const uint32_t producer =
            node->op == IFD_OP_RESHAPE ? graph->value[node->input[0]].producer : IFD_NONE;
        if (producer != IFD_NONE && graph->node[producer].op == IFD_OP_RESHAPE) {
            node->input[0] = graph->node[producer].input[0];
            (*ret_changes)++;
        }
    }
    return IFD_OK;
}
