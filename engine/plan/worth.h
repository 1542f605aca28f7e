/** Is a partition on a device worth the copies that it causes?
 *
 *  The order of preference decides who computes a node. One thing can change that: a partition on a
 *  device with memory of its own, next to partitions of other backends, goes to the next backends
 *  that take its nodes if the estimates say that copies cost more than the device saves. A model
 *  that a device computes as a whole stays there, and so does a partition that takes much longer
 *  than its copies, however slow the device is. */
#ifndef INFERD_ENGINE_PLAN_WORTH_H
#define INFERD_ENGINE_PLAN_WORTH_H

#include "engine/plan/plan_impl.h"

struct ifd_worth {
    const struct ifd_graph *graph;
    struct ifd_registry *registry;
    struct ifd_choice *choice; /* per node; changed */
    /** Nodes that read value v: reader[reader_first[v] … reader_first[v + 1] - 1]. */
    uint32_t *reader, *reader_first;
    bool *is_output;    /* per value, of the model */
    uint32_t *group_of; /* per node: its partition */
    /** Per value: 1 + the last partition that counted it; per backend: the last value's stamp. */
    uint32_t *seen_value, *seen_memory, stamp;
};

/** Takes the lists, in arena. */
IFD_NODISCARD enum ifd_code ifd_worth_init(struct ifd_worth *worth, const struct ifd_graph *graph,
                                           struct ifd_registry *registry, struct ifd_choice *choice,
                                           struct ifd_arena *arena, struct ifd_err *err);

/** Changes the choice for the partitions of plan that are not worth their copies. Returns how many
 *  nodes they have; if any, the plan must be grouped anew. */
uint32_t ifd_worth_move(struct ifd_worth *worth, const struct ifd_plan *plan);

#endif
