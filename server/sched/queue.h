/** Queue of one model version: bounded, ordered by priority level, then first come first served.
 *
 *  push, remove and expire are called on the loop thread; take by workers. One mutex guards
 *  everything. */
#ifndef INFERD_SERVER_SCHED_QUEUE_H
#define INFERD_SERVER_SCHED_QUEUE_H

#include <stdatomic.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "server/sched/batch.h"
#include "server/sched/job.h"

/* Level of jobs that run although their deadline has passed: after all others. */
#define IFD_QUEUE_LATE UINT32_MAX

/** Limits how many jobs may wait; the queue counts them under its lock. */
struct ifd_queue_bound {
    uint32_t capacity, count;
};

struct ifd_queue {
    struct ifd_mutex mutex;
    struct ifd_cond changed;
    const struct ifd_clock *clock;
    struct ifd_batch_rules rules;
    struct ifd_job *first, *last;  /* ascending by level */
    struct ifd_queue_bound common; /* of jobs whose bound is NULL */
    uint32_t count, sleepers;
    uint64_t tickets;              /* tickets that take has issued */
    uint64_t probes;               /* calls of ifd_queue_probe */
    uint64_t earliest_deadline_ns; /* no deadline of a waiting job is earlier; UINT64_MAX: none */
    uint64_t awake_until_ns;       /* the next taker spins for a job until then */
    atomic_uint news;              /* counts events that a spinning taker has to see */
    bool is_closed, is_hurried;
};

/** rules.preferred must outlive the queue. capacity ≥ 1. */
void ifd_queue_init(struct ifd_queue *queue, const struct ifd_batch_rules *rules, uint32_t capacity,
                    const struct ifd_clock *clock);
void ifd_queue_finish(struct ifd_queue *queue); /* must be empty */

/** Adds a job. A worker that is awake may take it at once. ifd_queue_wake wakes sleeping workers,
 *  once for many pushes, because waking a thread costs more than a push. Errors: BUSY (full, with
 *  the numbers), UNAVAILABLE (closed). */
IFD_NODISCARD enum ifd_code ifd_queue_push(struct ifd_queue *queue, struct ifd_job *job,
                                           struct ifd_err *err);
void ifd_queue_wake(struct ifd_queue *queue);
/** Announces a job: if nothing waits, a sleeping taker wakes up and spins for it until until_ns. */
void ifd_queue_expect(struct ifd_queue *queue, uint64_t until_ns);
/** Removes a waiting job; false if a worker has taken it. */
bool ifd_queue_remove(struct ifd_queue *queue, struct ifd_job *job);
/** Removes jobs whose deadline has passed and that must not run late; a list linked by next, NULL
 *  if there are none. */
struct ifd_job *ifd_queue_expire(struct ifd_queue *queue);
/** No new clients come: from now on jobs run without waiting for a batch. */
void ifd_queue_hurry(struct ifd_queue *queue);
/** Refuses further pushes; take returns the remaining jobs, then 0. */
void ifd_queue_close(struct ifd_queue *queue);
/** Removes all jobs; a list linked by next. */
struct ifd_job *ifd_queue_clear(struct ifd_queue *queue);
uint32_t ifd_queue_count(struct ifd_queue *queue);
/** True if a job pushed now would run alone and at once: nothing waits, all takers sleep, and there
 *  is no dynamic batching. */
bool ifd_queue_is_idle(struct ifd_queue *queue, uint32_t takers);

/** Waits for work, then takes the jobs of one run: job[0 … result-1]; 0 when the queue is closed
 *  and empty. job has room for IFD_BATCH_ITEMS_MAX. Each worker passes its own *seen, which begins
 *  at 0, and gets IFD_QUEUE_PROBE once for each call of ifd_queue_probe before any job. Thread:
 *  workers. */
#define IFD_QUEUE_PROBE UINT32_MAX
uint32_t ifd_queue_take(struct ifd_queue *queue, struct ifd_job **job, uint64_t *seen);
/** The queue must not be closed. Thread: loop. */
void ifd_queue_probe(struct ifd_queue *queue);

#endif
