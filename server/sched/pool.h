/** The threads that run jobs of all models: one for each core. Nothing else runs inference, except
 *  ifd_lane_run_here.
 *
 *  Each model has a lane (lane.h): its queue and its runners, of which each carries one run at a
 *  time. A thread that is free takes the next run of the lane that has had the smallest share of
 *  time, weighed by priority. Runs that only wait need no core: the pool gets more threads for
 *  them, up to a bound. One mutex guards pool and lanes. */
#ifndef INFERD_SERVER_SCHED_POOL_H
#define INFERD_SERVER_SCHED_POOL_H

#include "engine/base/clock.h"
#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/sched/completion.h"

struct ifd_pool;

struct ifd_pool_options {
    const struct ifd_alloc *alloc;
    const struct ifd_clock *clock;
    struct ifd_completions *completions; /* gets each job when it is done */
    uint32_t cores;                      /* runs that compute at the same time, ≥ 1 */
};

/** Starts the threads. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_pool_create(const struct ifd_pool_options *options,
                                            struct ifd_pool **ret_pool, struct ifd_err *err);
/** There is no lane any more. NULL is fine. */
void ifd_pool_destroy(struct ifd_pool *pool);

/** Wakes a thread for the jobs that were pushed; it wakes others if there is work for more. Called
 *  once for many pushes, because waking a thread costs more than a push. Thread: any. */
void ifd_pool_wake(struct ifd_pool *pool);
/** Pushes probe to completions after every thread has looked for work since this call. One probe at
 *  a time. Thread: loop. */
void ifd_pool_probe(struct ifd_pool *pool, struct ifd_completion *probe);

#endif
