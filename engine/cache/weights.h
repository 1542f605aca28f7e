/** Releases the memory of weights that backends have packed.
 *
 *  The pages of a packed constant go back to the system if no other constant shares them: files may
 *  store one buffer for several tensors, or overlapping ones. Thread: one at a time. */
#ifndef INFERD_ENGINE_CACHE_WEIGHTS_H
#define INFERD_ENGINE_CACHE_WEIGHTS_H

#include "engine/ir/graph.h"

/** One constant of the graph with at most one reader. */
struct ifd_weight {
    const uint8_t *data;
    size_t size;
    uint32_t value;
    uint32_t readers;
};

struct ifd_weights {
    struct ifd_graph *graph;
    struct ifd_weight *item; /* by address; none overlaps another constant */
    uint32_t count;
    size_t released_bytes;
};

/** Which constants may go. */
struct ifd_weights_scope {
    bool only_in_arena;             /* those in the list's arena; else all */
    const struct ifd_bytes *others; /* content with readers outside the graph */
    uint32_t other_count;
};

/** Finds the constants whose memory can be released, and releases those without readers. The list
 *  is in arena.
 *  Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_weights_init(struct ifd_weights *weights, struct ifd_graph *graph,
                                             const struct ifd_weights_scope *scope,
                                             struct ifd_arena *arena, struct ifd_err *err);

/** The release_constant of struct ifd_partition_view; context is struct ifd_weights. Constants that
 *  others read stay. */
void ifd_weights_release(void *context, const void *data);

#endif
