/* Computes nodes that depend on no input, with the reference kernels. */
#include "engine/ir/eval.h"
#include "engine/opt/pass_impl.h"

/* A larger result is left to run time, so that a small file cannot grow without bound while it
 * loads. Weights of 16 or 8 bits, as floats, stay below. */
#define FOLD_LIMIT_BYTES ((size_t)256 << 20)

/* A node whose kernel refuses the data (an index out of range) stays: the run reports it. */
enum ifd_code ifd_pass_fold_constants(struct ifd_graph *graph, struct ifd_arena *scratch,
                                      uint32_t *ret_changes, struct ifd_err *err)
{
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    if (!drop) {
        return ifd_arena_fail(scratch, graph->node_count * sizeof(*drop), err);
    }
    uint32_t changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (!ifd_graph_is_computable(graph, &graph->node[n])) {
            continue;
        }
        const enum ifd_code code =
            ifd_graph_compute_node(graph, n, FOLD_LIMIT_BYTES, &drop[n], err);
        if (code != IFD_OK) {
            return code;
        }
        changes += drop[n] ? 1 : 0;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    *ret_changes = changes;
    return IFD_OK;
}
