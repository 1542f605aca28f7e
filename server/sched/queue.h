/** Waiting jobs of one model version: bounded, ordered by priority level, then first come first
 *  served. It has no lock; a lane (lane.h) guards it with that of its pool. */
#ifndef INFERD_SERVER_SCHED_QUEUE_H
#define INFERD_SERVER_SCHED_QUEUE_H

#include "engine/base/clock.h"
#include "server/sched/batch.h"
#include "server/sched/job.h"

/* Level of jobs that run although their deadline has passed: after all others. */
#define IFD_QUEUE_LATE UINT32_MAX

/** Limits how many jobs may wait. */
struct ifd_queue_bound {
    uint32_t capacity, count;
};

struct ifd_queue {
    const struct ifd_clock *clock;
    struct ifd_batch_rules rules;
    struct ifd_job *first, *last;  /* ascending by level */
    struct ifd_queue_bound common; /* of jobs whose bound is NULL */
    uint32_t count;
    uint64_t tickets;              /* tickets that take has issued */
    uint64_t earliest_deadline_ns; /* no deadline of a waiting job is earlier; UINT64_MAX: none */
    bool is_closed;                /* refuses jobs */
    bool is_hurried;               /* runs jobs without waiting for a batch */
};

/** rules.preferred must outlive the queue. capacity ≥ 1. */
void ifd_queue_init(struct ifd_queue *queue, const struct ifd_batch_rules *rules, uint32_t capacity,
                    const struct ifd_clock *clock);

/** Errors: BUSY (full, with the numbers), UNAVAILABLE (closed). */
IFD_NODISCARD enum ifd_code ifd_queue_push(struct ifd_queue *queue, struct ifd_job *job,
                                           struct ifd_err *err);
/** Removes a waiting job; false if it does not wait. */
bool ifd_queue_remove(struct ifd_queue *queue, struct ifd_job *job);
/** Removes jobs whose deadline has passed and that must not run late; a list linked by next, NULL
 *  if there are none. */
struct ifd_job *ifd_queue_expire(struct ifd_queue *queue);
/** Removes all jobs; a list linked by next. */
struct ifd_job *ifd_queue_clear(struct ifd_queue *queue);

/** The jobs of the next run: job[0 … take-1]; take 0: not yet, see struct ifd_batch_choice. job has
 *  room for IFD_BATCH_ITEMS_MAX. */
struct ifd_batch_choice ifd_queue_choose(const struct ifd_queue *queue, struct ifd_job **job);
/** Removes jobs that were chosen, and gives them tickets. */
void ifd_queue_take(struct ifd_queue *queue, struct ifd_job *const *job, uint32_t count);

#endif
