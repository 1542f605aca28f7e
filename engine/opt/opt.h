/** The optimizer: graph → equivalent cheaper graph. Passes are rows of pass_list.inc, run in that
 *  order to a fixed point. The graph is verified after each. Thread: one at a time per graph. */
#ifndef INFERD_ENGINE_OPT_OPT_H
#define INFERD_ENGINE_OPT_OPT_H

#include "engine/ir/graph.h"

/** REQUIRED: the planner needs it (constant folding of shapes and f16 weights, dead nodes).
 *  EXACT: changes no result, but for the order in which a reduction over several dimensions adds
 *  floats. FUSE: may change float rounding within the operators' tolerance. */
enum ifd_pass_level { IFD_PASS_REQUIRED, IFD_PASS_EXACT, IFD_PASS_FUSE };

/** What each pass did in all rounds, in the order of pass_list.inc; for `inspect`. Includes the
 *  nodes that a pass leaves without readers, which go at once. */
struct ifd_pass_report {
    const char *name;
    uint32_t changes;
    /** before: when it first changed something; after: before, less all that it removed. */
    uint32_t nodes_before, nodes_after;
    int32_t nodes_of[IFD_OP_COUNT]; /* per operator, added less removed */
};
uint32_t ifd_pass_count(void);

/** ret_report: NULL or ifd_pass_count() entries. Scratch memory comes from alloc and is released
 *  here. */
IFD_NODISCARD enum ifd_code ifd_optimize(struct ifd_graph *graph, enum ifd_pass_level max_level,
                                         const struct ifd_alloc *alloc,
                                         struct ifd_pass_report *ret_report, struct ifd_err *err);

#endif
