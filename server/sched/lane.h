/** A model version's way through the pool: its waiting jobs, its runners, its share of time.
 *  Thread: loop, unless stated otherwise. */
#ifndef INFERD_SERVER_SCHED_LANE_H
#define INFERD_SERVER_SCHED_LANE_H

#include "server/sched/pool.h"
#include "server/sched/queue.h"
#include "server/sched/runner.h"

struct ifd_lane;

struct ifd_lane_options {
    const struct ifd_alloc *alloc;
    struct ifd_batch_rules rules;
    uint32_t capacity; /* of the queue */
    /* ≥ 1. Under load a lane gets 1/priority of the time of one with priority 1. */
    uint32_t priority;
    bool in_order; /* jobs complete in the order in which they left the queue */
};

/** Takes ownership of the runners, also on error: so many runs at a time. Errors: NOMEM. Thread:
 *  any. */
IFD_NODISCARD enum ifd_code ifd_lane_create(struct ifd_pool *pool,
                                            const struct ifd_lane_options *options,
                                            struct ifd_runner *const *runner, uint32_t count,
                                            struct ifd_lane **ret_lane, struct ifd_err *err);
/** Closes the lane, waits until its remaining jobs have run, destroys the runners. NULL is fine.
 *  Thread: any but the pool's. */
void ifd_lane_destroy(struct ifd_lane *lane);

/** As ifd_queue_push. A thread that is awake may take the job at once; else ifd_pool_wake. */
IFD_NODISCARD enum ifd_code ifd_lane_push(struct ifd_lane *lane, struct ifd_job *job,
                                          struct ifd_err *err);
/** As of the queue. */
bool ifd_lane_remove(struct ifd_lane *lane, struct ifd_job *job);
struct ifd_job *ifd_lane_expire(struct ifd_lane *lane);
struct ifd_job *ifd_lane_clear(struct ifd_lane *lane);
uint32_t ifd_lane_count(struct ifd_lane *lane);
/** Most waiting jobs that have no bound of their own. */
uint32_t ifd_lane_capacity(const struct ifd_lane *lane);
/** No new clients come: from now on jobs run without waiting for a batch. */
void ifd_lane_hurry(struct ifd_lane *lane);
/** Refuses further jobs; those that wait run, without waiting for a batch. */
void ifd_lane_close(struct ifd_lane *lane);

/** Announces a job: if the pool is idle, a runner prepares for it. */
void ifd_lane_expect(struct ifd_lane *lane);
/** Announces a job that comes very soon: a sleeping thread spins for it until until_ns, unless
 *  other jobs wait or the caller runs jobs itself (ifd_lane_run_here). */
void ifd_lane_stay_awake(struct ifd_lane *lane, uint64_t until_ns);
/** True if runs are shorter than a hand-over. */
bool ifd_lane_is_instant(const struct ifd_lane *lane);
/** Runs job on the calling thread if a runner is free, nothing waits in this lane, and neither
 *  batches nor an order matter. False: nothing was done. Pushes no completion. */
bool ifd_lane_run_here(struct ifd_lane *lane, struct ifd_job *job) IFD_NODISCARD;

/** Most threads of one run. */
uint32_t ifd_lane_threads(const struct ifd_lane *lane);
/** Core on which the last run began; -1: none. Thread: any. */
int ifd_lane_core(const struct ifd_lane *lane);

#endif
