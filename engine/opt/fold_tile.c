/* Operators of two tensors broadcast: a broadcast_to in front of one is left out, and so is a tile
 * that only repeats dimensions of 1. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

static bool broadcasts(enum ifd_op op)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    return def->is_elementwise && def->min_inputs == 2;
}

/* Does the node repeat nothing but dimensions of 1? */
static bool only_broadcasts(const struct ifd_graph *graph, const struct ifd_node *node)
{
    const struct ifd_shape *small = &graph->value[node->input[0]].desc.shape;
    const struct ifd_shape *large = &graph->value[node->output[0]].desc.shape;
    bool only = node->op == IFD_OP_TILE;
    for (uint32_t d = 0; only && d < small->rank; d++) {
        only = small->dim[d] == 1 || small->dim[d] == large->dim[d];
    }
    return only || node->op == IFD_OP_BROADCAST_TO;
}

/* Does the operator give the same shape if operand i is what the tile reads? */
static bool fits(const struct ifd_graph *graph, const struct ifd_node *node, uint32_t i,
                 const struct ifd_node *tile)
{
    const struct ifd_desc *small = &graph->value[tile->input[0]].desc;
    const struct ifd_desc *large = &graph->value[tile->output[0]].desc;
    struct ifd_shape shape;
    return ifd_quant_same(&small->quant, &large->quant) &&
           ifd_shape_broadcast(&small->shape, &graph->value[node->input[1 - i]].desc.shape,
                               &shape) &&
           ifd_shape_equal(&shape, &graph->value[node->output[0]].desc.shape);
}

enum ifd_code ifd_pass_fold_tile(struct ifd_graph *graph, struct ifd_arena *scratch,
                                 uint32_t *ret_changes, struct ifd_err *err)
{
    (void)scratch;
    (void)err;
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        for (uint32_t i = 0; broadcasts(node->op) && i < 2; i++) {
            const struct ifd_node *tile = ifd_rewrite_producer(graph, node->input[i]);
            if (tile && only_broadcasts(graph, tile) && fits(graph, node, i, tile)) {
                node->input[i] = tile->input[0];
                (*ret_changes)++;
            }
        }
    }
    return IFD_OK;
}
