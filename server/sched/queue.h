/** The waiting requests of one model version: bounded, by priority level, then first come first served.
 *
 *  push, remove and expire are called on the loop thread; take by workers. One mutex guards everything. */
#ifndef INFERD_SERVER_SCHED_QUEUE_H
#define INFERD_SERVER_SCHED_QUEUE_H

#include <stdatomic.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "server/sched/batch.h"
#include "server/sched/job.h"

/* Level of jobs past their deadline that run all the same: after all others. */
#define IFD_QUEUE_LATE UINT32_MAX

/** How many jobs of some kind may wait; the queue counts them under its lock. */
struct ifd_queue_bound {
    uint32_t capacity, count;
};

struct ifd_queue {
    struct ifd_mutex mutex;
    struct ifd_cond changed;
    const struct ifd_clock *clock;
    struct ifd_batch_rules rules;
    struct ifd_job *first, *last;  /* ascending by level */
    struct ifd_queue_bound common; /* of jobs without a bound of their own */
    uint32_t count, sleepers;
    uint64_t tickets;              /* given out by take */
    uint64_t probes;               /* that were asked for */
    uint64_t earliest_deadline_ns; /* no waiting job's deadline is before it; UINT64_MAX: none */
    uint64_t awake_until_ns;       /* the next taker looks out for a job until then */
    atomic_uint news;              /* counts what may concern one that looks out */
    bool is_closed, is_hurried;
};

/** rules.preferred must outlive the queue. capacity ≥ 1. */
void ifd_queue_init(struct ifd_queue *queue, const struct ifd_batch_rules *rules, uint32_t capacity,
                    const struct ifd_clock *clock);
void ifd_queue_finish(struct ifd_queue *queue); /* must be empty */

/** A worker that is awake may take the job at once; ifd_queue_wake tells those that sleep: one call for many pushes, since
 *  waking a thread costs more than a push. Errors: BUSY (full, with the numbers), UNAVAILABLE (closed). */
IFD_NODISCARD enum ifd_code ifd_queue_push(struct ifd_queue *queue, struct ifd_job *job,
                                           struct ifd_err *err);
void ifd_queue_wake(struct ifd_queue *queue);
/** A job will come soon: if nothing waits, a taker that sleeps wakes up and looks out for it, without sleeping, until
 *  until_ns. */
void ifd_queue_expect(struct ifd_queue *queue, uint64_t until_ns);
/** Takes a job out that still waits; false if a worker has it (or had it). */
bool ifd_queue_remove(struct ifd_queue *queue, struct ifd_job *job);
/** Takes out jobs whose deadline has passed and that are not to be run late, as a list by next; NULL if there are none. */
struct ifd_job *ifd_queue_expire(struct ifd_queue *queue);
/** Nobody new will ask: from now on no batch is waited for, what is there runs. */
void ifd_queue_hurry(struct ifd_queue *queue);
/** No more pushes; take gives what is left, then 0. */
void ifd_queue_close(struct ifd_queue *queue);
/** Takes everything out, as a list by next. */
struct ifd_job *ifd_queue_clear(struct ifd_queue *queue);
uint32_t ifd_queue_count(struct ifd_queue *queue);
/** A request pushed now would run alone and at once: nothing waits, all takers sleep, the rules gather no batches. */
bool ifd_queue_is_idle(struct ifd_queue *queue, uint32_t takers);

/** Waits for work, then takes the jobs of one run: job[0 … result-1]; 0 when the queue is closed and empty.
 *  job has room for IFD_BATCH_ITEMS_MAX. Each worker has a *seen of its own that begins at 0: before anything else it gets
 *  IFD_QUEUE_PROBE once for every call of ifd_queue_probe. Thread: workers. */
#define IFD_QUEUE_PROBE UINT32_MAX
uint32_t ifd_queue_take(struct ifd_queue *queue, struct ifd_job **job, uint64_t *seen);
/** The queue must not be closed. Thread: loop. */
void ifd_queue_probe(struct ifd_queue *queue);

#endif
