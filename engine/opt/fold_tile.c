/* Operators of two tensors broadcast: a tile in front of one that only repeats dimensions of 1 is
 * left out. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

static bool broadcasts(enum ifd_op op)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    return def->is_elementwise && def->min_inputs == 2;
}

/* Does the operator give the same shape if operand i is what the tile read? */
static bool fits(const struct ifd_graph *graph, const struct ifd_node *node, uint32_t i,
                 const struct ifd_node *tile)
{
    const struct ifd_desc *small = &graph->value[tile->input[0]].desc;
    const struct ifd_desc *large = &graph->value[tile->output[0]].desc;
    for (uint32_t d = 0; d < small->shape.rank; d++) {
        if (small->shape.dim[d] != 1 && small->shape.dim[d] != large->shape.dim[d]) {
            return false;
        }
    }
    struct ifd_shape shape;
    return small->shape.rank == large->shape.rank && ifd_quant_same(&small->quant, &large->quant) &&
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
            if (tile && tile->op == IFD_OP_TILE && fits(graph, node, i, tile)) {
                node->input[i] = tile->input[0];
                (*ret_changes)++;
            }
        }
    }
    return IFD_OK;
}
