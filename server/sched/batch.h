/** Decides which waiting requests run together, and when: a pure function of queue and time.
 *
 *  The rules are those of Triton's dynamic batcher. The largest preferred size that can be reached
 *  leaves at once. Otherwise up to max_batch samples leave when the batch cannot grow, when there
 *  is no delay, or when the oldest request has waited for the delay (then preferred sizes do not
 *  matter). A request is never split. Requests of one shape share a run (queue.c): those of another
 *  wait for a run of their own, or end the batch if answers keep the order. Thread: any. */
#ifndef INFERD_SERVER_SCHED_BATCH_H
#define INFERD_SERVER_SCHED_BATCH_H

#include "inferd/types.h"

struct ifd_batch_rules {
    bool is_dynamic; /* false: every request runs alone, at once */
    bool in_order;   /* no request overtakes another */
    int64_t max_batch;
    const int32_t *preferred; /* ascending */
    uint32_t preferred_count;
    uint64_t max_delay_ns; /* UINT64_MAX: no end */
};

/** A waiting request, in the order of running: by priority, then oldest first. */
struct ifd_batch_item {
    int64_t batch;
    uint64_t queued_ns;
    bool fits_first; /* same shapes as item 0 except the batch dimension; true for item 0. The
                      * items behind one that does not fit do not matter. */
};

/** take > 0: run the first take items now. take 0: decide again at wait_until_ns (UINT64_MAX:
 *  never) or when the queue grows. */
struct ifd_batch_choice {
    uint32_t take;
    uint64_t wait_until_ns;
};

/** count ≥ 1. is_hurried: do not wait, no more requests come. */
struct ifd_batch_choice ifd_batch_choose(const struct ifd_batch_rules *rules,
                                         const struct ifd_batch_item *item, uint32_t count,
                                         uint64_t now_ns, bool is_hurried);

/** Most items that ifd_batch_choose looks at. */
#define IFD_BATCH_ITEMS_MAX 256

#endif
