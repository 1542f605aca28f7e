/** What the files of this folder share. */
#ifndef INFERD_ENGINE_PLAN_PLAN_IMPL_H
#define INFERD_ENGINE_PLAN_PLAN_IMPL_H

#include "engine/ir/graph.h"
#include "engine/plan/plan.h"

/** What the planner knows of a value of the graph. */
struct ifd_value_life {
    uint32_t first, last; /* partitions */
    bool used;            /* by any node */
    bool used_outside;    /* by a node of another partition */
    bool is_output;       /* of the model */
    uint32_t plan_value;  /* IFD_NONE if it lives inside a partition or is constant */
};

/** One entry per value of the graph, in arena. partition_of: per node of the graph. */
IFD_NODISCARD enum ifd_code ifd_plan_lifetimes(const struct ifd_graph *graph,
                                               const uint32_t *partition_of,
                                               uint32_t partition_count, struct ifd_arena *arena,
                                               struct ifd_value_life **ret_life,
                                               struct ifd_err *err);

/** Fills plan->value, plan->input and plan->output with the values that live in the arena; sets
 *  life[].plan_value. */
IFD_NODISCARD enum ifd_code ifd_plan_values(const struct ifd_graph *graph,
                                            struct ifd_value_life *life, struct ifd_arena *keep,
                                            struct ifd_plan *plan, struct ifd_err *err);

/** Chooses the backend of every node: slot of the registry per node, in ret_backend. */
IFD_NODISCARD enum ifd_code ifd_plan_assign(const struct ifd_graph *graph,
                                            const struct ifd_plan_options *options,
                                            struct ifd_arena *scratch, uint32_t *ret_backend,
                                            struct ifd_err *err);

/** Fills a node's view; its arrays are in scratch. */
IFD_NODISCARD enum ifd_code ifd_plan_node_view(const struct ifd_graph *graph,
                                               const struct ifd_node *node,
                                               struct ifd_arena *scratch,
                                               struct ifd_node_view *ret_view, struct ifd_err *err);

/** Builds plan->view and the slots of every partition. */
IFD_NODISCARD enum ifd_code ifd_plan_views(const struct ifd_graph *graph,
                                           const struct ifd_plan_options *options,
                                           const struct ifd_value_life *life,
                                           struct ifd_arena *keep, struct ifd_arena *scratch,
                                           struct ifd_plan *plan, struct ifd_err *err);

#endif
