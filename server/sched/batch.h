/** Which of the waiting requests run together, and when: a pure function of the queue and the time.
 *
 *  The rules are those of Triton's dynamic batcher: the largest preferred size that can be reached leaves at once; else as
 *  many as fit into max_batch leave when the batch cannot grow, when there is no delay, or when the oldest of them has
 *  waited that long (then whatever the preferred sizes are). A request is never split; a request of another shape ends the
 *  batch, since requests run in order. Thread: any. */
#ifndef INFERD_SERVER_SCHED_BATCH_H
#define INFERD_SERVER_SCHED_BATCH_H

#include "inferd/types.h"

struct ifd_batch_rules {
    bool is_dynamic; /* false: every request runs alone, at once */
    int64_t max_batch;
    const int32_t *preferred; /* ascending */
    uint32_t preferred_count;
    uint64_t max_delay_ns; /* UINT64_MAX: without end */
};

/** A waiting request, in the order of running: by priority, then oldest first. */
struct ifd_batch_item {
    int64_t batch;
    uint64_t queued_ns;
    bool fits_first; /* same shapes as item 0, the batch dimension aside (true for item 0) */
};

/** take > 0: run that many from the front now. take 0: decide again at wait_until_ns (UINT64_MAX: never) or when the queue
 *  grows. */
struct ifd_batch_choice {
    uint32_t take;
    uint64_t wait_until_ns;
};

/** count ≥ 1. is_hurried: nothing more will come, or is waited for. */
struct ifd_batch_choice ifd_batch_choose(const struct ifd_batch_rules *rules,
                                         const struct ifd_batch_item *item, uint32_t count,
                                         uint64_t now_ns, bool is_hurried);

/** Items that ifd_batch_choose needs to see at most. */
#define IFD_BATCH_ITEMS_MAX 256

#endif
