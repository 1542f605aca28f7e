/* A transposition that moves only dimensions of size 1 moves no element: it is a reshape. */
#include "engine/opt/pass_impl.h"

static bool moves_elements(const struct ifd_node *node, const struct ifd_shape *in)
{
    const struct ifd_transpose_attrs *attrs = node->attrs;
    int64_t before = -1;
    for (uint32_t i = 0; i < attrs->perm.count; i++) {
        const int64_t axis = attrs->perm.value[i] + (attrs->perm.value[i] < 0 ? in->rank : 0);
        if (in->dim[axis] == 1) {
            continue;
        }
        if (axis < before) {
            return true;
        }
        before = axis;
    }
    return false;
}

enum ifd_code ifd_pass_transpose_to_reshape(struct ifd_graph *graph, struct ifd_arena *scratch,
                                            uint32_t *ret_changes, struct ifd_err *err)
{
    (void)scratch;
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        if (node->op != IFD_OP_TRANSPOSE || node->input_count != 1 ||
            moves_elements(node, &graph->value[node->input[0]].desc.shape)) {
            continue;
        }
        const enum ifd_code code = ifd_rewrite_to_reshape(graph, node, err);
        if (code != IFD_OK) {
            return code;
        }
        (*ret_changes)++;
    }
    return IFD_OK;
}
