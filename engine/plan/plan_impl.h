/** What the files of this folder share. */
#ifndef INFERD_ENGINE_PLAN_PLAN_IMPL_H
#define INFERD_ENGINE_PLAN_PLAN_IMPL_H

#include "engine/ir/graph.h"
#include "engine/plan/plan.h"

/** A copy of a value of the graph, before the plan has values: partition entry and value. */
struct ifd_transfer {
    uint32_t partition; /* entry of task WRITE or READ */
    uint32_t value;     /* of the graph */
};

/** The life of a value of the graph in one memory. */
struct ifd_value_life {
    uint32_t first, last; /* partitions; first is IFD_NONE if the value is not in this memory */
    uint32_t plan_value;  /* IFD_NONE if it lives inside a partition or is constant */
};

/** What the planner knows of the values of the graph. */
struct ifd_lives {
    uint32_t value_count;
    struct ifd_value_life *life; /* [memory][value]: ifd_life_in */
    uint32_t *home;              /* per value: the memory in which it is made */
    bool *is_used;               /* per value, by any node */
    bool *is_used_outside;       /* by another partition than that which makes it, or copied */
    bool *is_output;             /* of the model */
};

static inline struct ifd_value_life *ifd_life_in(const struct ifd_lives *lives, uint32_t memory,
                                                 uint32_t value)
{
    return &lives->life[(size_t)memory * lives->value_count + value];
}

/** Finds the lives of all values; the arrays are in arena. partition_of: per node of the graph. */
IFD_NODISCARD enum ifd_code ifd_plan_lifetimes(const struct ifd_graph *graph,
                                               const struct ifd_plan *plan,
                                               const uint32_t *partition_of,
                                               const struct ifd_transfer *transfer,
                                               uint32_t transfer_count, struct ifd_arena *arena,
                                               struct ifd_lives *ret, struct ifd_err *err);

/** Fills plan->value, plan->input and plan->output with the values that live in arenas; sets
 *  plan_value of lives. */
IFD_NODISCARD enum ifd_code ifd_plan_values(const struct ifd_graph *graph, struct ifd_lives *lives,
                                            struct ifd_arena *keep, struct ifd_plan *plan,
                                            struct ifd_err *err);

/** The backend of a node, as its slot in the registry. */
struct ifd_choice {
    uint32_t backend, cost_ns;
    /** The next backend that takes the node; IFD_NONE if there is none, or if nobody asks because
     *  backend computes in host memory. */
    uint32_t other, other_ns;
};

/** NULL: host memory. */
static inline const struct ifd_memory_ops *ifd_plan_memory_of(const struct ifd_registry *registry,
                                                              uint32_t backend)
{
    return backend == IFD_PLAN_CONTROL ? NULL : registry->slot[backend].backend->memory;
}

/** Chooses the backend of every node by the order of preference. ret_choice: one per node. */
IFD_NODISCARD enum ifd_code ifd_plan_assign(const struct ifd_graph *graph,
                                            const struct ifd_plan_options *options,
                                            struct ifd_arena *scratch,
                                            struct ifd_choice *ret_choice, struct ifd_err *err);

/** Lists the devices of a plan whose partitions are found, and puts the copies between memories
 *  among them: a WRITE before the first partition that needs it, a READ behind the partition that
 *  makes the value. Sets partition_of (per node) anew. ret_transfer: in scratch. */
IFD_NODISCARD enum ifd_code ifd_plan_transfers(const struct ifd_graph *graph,
                                               const struct ifd_registry *registry,
                                               struct ifd_arena *keep, struct ifd_arena *scratch,
                                               struct ifd_plan *plan, uint32_t *partition_of,
                                               struct ifd_transfer **ret_transfer,
                                               uint32_t *ret_count, struct ifd_err *err);

/** Names the values that transfers copy, once the plan has values. */
IFD_NODISCARD enum ifd_code ifd_plan_name_transfers(const struct ifd_lives *lives,
                                                    const struct ifd_transfer *transfer,
                                                    uint32_t count, struct ifd_arena *keep,
                                                    struct ifd_plan *plan, struct ifd_err *err);

/** Fills a node's view; its arrays are in scratch. */
IFD_NODISCARD enum ifd_code ifd_plan_node_view(const struct ifd_graph *graph,
                                               const struct ifd_node *node,
                                               struct ifd_arena *scratch,
                                               struct ifd_node_view *ret_view, struct ifd_err *err);

/** Builds plan->view and the slots of every partition. */
IFD_NODISCARD enum ifd_code ifd_plan_views(const struct ifd_graph *graph,
                                           const struct ifd_plan_options *options,
                                           const struct ifd_lives *lives, struct ifd_arena *keep,
                                           struct ifd_arena *scratch, struct ifd_plan *plan,
                                           struct ifd_err *err);

#endif
