/** One inference on its way through queue, worker and back. Owned by the service; lent to queue and worker in between.
 *
 *  The input tensors and the arrays are the caller's and stay until the completion was called. */
#ifndef INFERD_SERVER_SCHED_JOB_H
#define INFERD_SERVER_SCHED_JOB_H

#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/sched/completion.h"

struct ifd_queue_bound; /* queue.h */

struct ifd_job {
    struct ifd_completion completion; /* first member; fn is set by the service */
    struct ifd_job *previous, *next;  /* the queue's */

    /* set before the push */
    const struct ifd_tensor *input;
    struct ifd_tensor *output; /* data NULL: filled by the runner */
    const bool *wanted;
    uint32_t input_count, output_count;
    int64_t batch;
    uint32_t level;                /* of priority: 0 first */
    struct ifd_queue_bound *bound; /* of the queue, for this level alone; NULL: the common one */
    uint64_t deadline_ns;   /* monotonic; 0: none. A job that is still waiting then is not run */
    bool lower_at_deadline; /* … or runs after all others instead (timeout_action DELAY) */

    /* set by queue and worker */
    bool is_queued;
    uint64_t ticket; /* counts the jobs that left the queue for a worker: their order */
    uint64_t queued_ns, started_ns, computed_ns, finished_ns;
    uint32_t run_jobs;  /* jobs that shared the run */
    int64_t run_batch;  /* their batches together */
    bool is_run_leader; /* the first of them: counts the execution */
    enum ifd_code code;
    struct ifd_err err;

    /* output memory that the runner took; kept with the job and reused */
    uint8_t *memory;
    size_t memory_bytes;
};

/** Memory of at least bytes for outputs, aligned and padded like a tensor; NULL if there is none. Content of former calls
 *  is lost. */
void *ifd_job_memory(struct ifd_job *job, size_t bytes,
                     const struct ifd_alloc *alloc) IFD_NODISCARD;

/** Two jobs may share a run: same types and shapes, the first dimension aside. */
bool ifd_job_fits(const struct ifd_job *a, const struct ifd_job *b);

#endif
