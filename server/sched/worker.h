/** Threads that own model instances and run the jobs of a queue. Nothing else runs inference,
 *  except ifd_workers_run_here. */
#ifndef INFERD_SERVER_SCHED_WORKER_H
#define INFERD_SERVER_SCHED_WORKER_H

#include "server/sched/queue.h"

/** Runs jobs: an instance of a model, or the identity. One thread at a time uses it. */
struct ifd_runner {
    /** Runs count jobs as one batch and fills their wanted outputs, in memory that stays with the
     *  job. May set started_ns and computed_ns of the first job to separate preparation, computing
     *  and output copies. On error no output is defined. */
    enum ifd_code (*run)(struct ifd_runner *self, struct ifd_job *const *job, uint32_t count,
                         struct ifd_err *err);
    /** A run will come soon. May be NULL. Thread: any, also during a run. */
    void (*expect)(struct ifd_runner *self);
    /** No run will come soon. May be NULL. Thread: any, also during a run. */
    void (*rest)(struct ifd_runner *self);
    void (*destroy)(struct ifd_runner *self);
    size_t bytes;        /* memory of the runner */
    size_t device_bytes; /* beside it, of devices */
    uint32_t threads;    /* most threads of a run, the caller's included */
    bool may_prepare;    /* a run may have to plan first, which takes milliseconds */
    bool is_instant; /* computes nothing and touches no data: a run is shorter than a hand-over */
};

struct ifd_workers;

/** Starts one thread for each of count runners and takes ownership of the runners, also on error.
 *  completions gets each job when it is done; in_order: in the order in which jobs left the queue.
 *  Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_workers_create(struct ifd_queue *queue,
                                               struct ifd_runner *const *runner, uint32_t count,
                                               bool in_order, struct ifd_completions *completions,
                                               const struct ifd_alloc *alloc,
                                               struct ifd_workers **ret_workers,
                                               struct ifd_err *err);
/** Announces a job: an idle runner prepares for it, unless other jobs run first. Thread: loop. */
void ifd_workers_expect(struct ifd_workers *workers);
/** Announces a job that comes very soon: a sleeping thread spins for it until until_ns, unless
 *  other jobs run first or the caller runs jobs itself (ifd_workers_run_here). Thread: loop. */
void ifd_workers_stay_awake(struct ifd_workers *workers, uint64_t until_ns);
/** Most threads of one run. */
uint32_t ifd_workers_threads(const struct ifd_workers *workers);
/** Core on which the last run began; -1: none. Thread: any. */
int ifd_workers_core(const struct ifd_workers *workers);
/** Pushes probe to completions after every thread has taken from the queue since this call. One
 *  probe at a time. The queue is open, but may be closed before the probe is back. Thread: loop. */
void ifd_workers_probe(struct ifd_workers *workers, struct ifd_completion *probe);
/** True if runs are shorter than a hand-over. */
bool ifd_workers_are_instant(const struct ifd_workers *workers);
/** Runs job on the calling thread if every worker sleeps, nothing waits, and neither batches nor an
 *  order matter. False: nothing was done. Pushes no completion. Only the caller pushes to the
 *  queue, so no worker uses the runner meanwhile. */
bool ifd_workers_run_here(struct ifd_workers *workers, struct ifd_job *job) IFD_NODISCARD;
/** The queue must be closed. Finishes its remaining jobs, ends the threads, destroys the runners.
 *  NULL is fine. */
void ifd_workers_destroy(struct ifd_workers *workers);

#endif
