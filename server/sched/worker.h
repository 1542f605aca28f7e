/** Threads that own model instances and run what a queue hands them. Nothing else runs inference. */
#ifndef INFERD_SERVER_SCHED_WORKER_H
#define INFERD_SERVER_SCHED_WORKER_H

#include "server/sched/queue.h"

/** Something that runs jobs: an instance of a model, or the identity. One thread at a time uses it. */
struct ifd_runner {
    /** Runs count jobs as one batch and fills their outputs (where wanted), at memory that stays with the job. started_ns
     *  and computed_ns of the first job may be set to split preparation, computing and output copies. On error no output
     *  is defined. */
    enum ifd_code (*run)(struct ifd_runner *self, struct ifd_job *const *job, uint32_t count,
                         struct ifd_err *err);
    /** A run will come soon. May be NULL. Thread: any, also during a run. */
    void (*expect)(struct ifd_runner *self);
    /** No run will come soon. May be NULL. Thread: any, also during a run. */
    void (*rest)(struct ifd_runner *self);
    void (*destroy)(struct ifd_runner *self);
    size_t bytes;     /* memory that it holds */
    uint32_t threads; /* that a run takes at most, the caller's included */
    bool
        is_instant; /* computes nothing and touches no data: a run is shorter than handing it over */
};

struct ifd_workers;

/** One thread for each of count runners, which are owned from here on, also on error. completions gets every job that a
 *  thread took: as soon as it is done, or in_order: in the order in which the queue gave them. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_workers_create(struct ifd_queue *queue,
                                               struct ifd_runner *const *runner, uint32_t count,
                                               bool in_order, struct ifd_completions *completions,
                                               const struct ifd_alloc *alloc,
                                               struct ifd_workers **ret_workers,
                                               struct ifd_err *err);
/** A job will come soon: lets an idle runner prepare, unless others have to run first. Thread: loop. */
void ifd_workers_expect(struct ifd_workers *workers);
/** A job will come very soon: a thread that sleeps waits for it awake until until_ns, unless others have to run first or jobs
 *  are run by the caller (ifd_workers_run_here). Thread: loop. */
void ifd_workers_stay_awake(struct ifd_workers *workers, uint64_t until_ns);
/** Threads that one run takes at most. */
uint32_t ifd_workers_threads(const struct ifd_workers *workers);
/** The core on which a run began last; -1: none did. Thread: any. */
int ifd_workers_core(const struct ifd_workers *workers);
/** Gives probe to completions when every thread has come to take from the queue since this call. One probe at a time; the
 *  queue is open, but may be closed before it is back. Thread: loop. */
void ifd_workers_probe(struct ifd_workers *workers, struct ifd_completion *probe);
/** Their runs are shorter than handing them over. */
bool ifd_workers_are_instant(const struct ifd_workers *workers);
/** Runs job on the calling thread if every worker sleeps, nothing waits, and neither batching nor order has to be kept. False:
 *  nothing was done. No completion is pushed. The caller is the only one who pushes to the queue: that keeps workers off the
 *  runner meanwhile. */
bool ifd_workers_run_here(struct ifd_workers *workers, struct ifd_job *job) IFD_NODISCARD;
/** The queue must be closed: finishes what is left in it, ends the threads, destroys the runners. NULL is fine. */
void ifd_workers_destroy(struct ifd_workers *workers);

#endif
