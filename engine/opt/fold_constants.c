/* Computes what does not depend on any input, once, with the reference kernels. */
#include "engine/ir/eval.h"
#include "engine/opt/pass_impl.h"

/* A result larger than this is left to run time, so that a small file cannot grow without bound while it is loaded.
 * Float weights that a file stores in 16 or 8 bits stay below. */
#define FOLD_LIMIT_BYTES ((size_t)256 << 20)

/* A kernel that refuses its data (an index out of range) leaves its node as it is: the run says so, as it would have
 * without this pass. */
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
