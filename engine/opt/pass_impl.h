/** What a pass is, and the few rewrites that every pass is made of. Only for this folder. */
#ifndef INFERD_ENGINE_OPT_PASS_IMPL_H
#define INFERD_ENGINE_OPT_PASS_IMPL_H

#include "engine/opt/opt.h"

/** Rewrites graph and says how many places it changed. scratch is empty and is emptied afterwards; what the graph keeps
 *  goes to graph->arena. The graph must verify before and after; on error it is lost. */
typedef enum ifd_code (*ifd_pass_fn)(struct ifd_graph *graph, struct ifd_arena *scratch,
                                     uint32_t *ret_changes, struct ifd_err *err);

#define PASS(symbol, level)                                                                        \
    enum ifd_code ifd_pass_##symbol(struct ifd_graph *graph, struct ifd_arena *scratch,            \
                                    uint32_t *ret_changes, struct ifd_err *err);
#include "engine/opt/pass_list.inc"
#undef PASS

/** Removes the nodes whose drop[] is set. Values that they made have no producer any more. */
void ifd_rewrite_drop_nodes(struct ifd_graph *graph, const bool *drop);

/** Removes the values whose keep[] is not set, and renumbers. No node, input or output may refer to them. map has
 *  graph->value_count entries of scratch. */
void ifd_rewrite_keep_values(struct ifd_graph *graph, const bool *keep, uint32_t *map);

/** Replaces every use of value v as an input of a node by what map says, following chains; map[v] == v means itself. */
void ifd_rewrite_uses(struct ifd_graph *graph, const uint32_t *map);

/** True for the inputs and outputs of the graph: ret has graph->value_count entries, all false. */
void ifd_rewrite_mark_io(const struct ifd_graph *graph, bool *ret_is_input, bool *ret_is_output);

#endif
