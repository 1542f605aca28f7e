/** One inference on its way through queue and worker and back. The service owns it and lends it to
 *  queue and worker. Input tensors and arrays are the caller's and stay until the completion is
 *  called. */
#ifndef INFERD_SERVER_SCHED_JOB_H
#define INFERD_SERVER_SCHED_JOB_H

#include <stdatomic.h>

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
    uint32_t level;                /* priority: 0 runs first */
    struct ifd_queue_bound *bound; /* bound of this level; NULL: that of the queue */
    uint64_t deadline_ns;     /* monotonic; 0: none. A job that still waits then does not run */
    bool lower_at_deadline;   /* or runs after all others (timeout_action DELAY) */
    uint64_t run_deadline_ns; /* when loops of its run have to end; 0: the engine's limit */
    atomic_bool is_unwanted;  /* the client is gone: a loop of the run ends. Set by any thread */
    bool is_alone;            /* shares no run */
    /* The run is measured, alone: room for the time of each step of the plan. NULL: it is not. */
    uint64_t *step_ns;
    uint32_t step_count;

    /* set by queue and worker */
    bool is_queued;
    uint64_t ticket; /* order in which jobs left the queue */
    uint64_t queued_ns, started_ns, computed_ns, finished_ns;
    uint32_t run_jobs;  /* jobs that shared the run */
    int64_t run_batch;  /* samples of all jobs of the run */
    bool is_run_leader; /* first job of the run: counts the execution */
    enum ifd_code code;
    struct ifd_err err;

    /* memory for outputs; kept with the job and reused */
    uint8_t *memory;
    size_t memory_bytes;
};

/** Returns at least bytes of memory for outputs, aligned and padded as a tensor; NULL without
 *  memory. The content of earlier calls is lost. */
void *ifd_job_memory(struct ifd_job *job, size_t bytes,
                     const struct ifd_alloc *alloc) IFD_NODISCARD;

/** True if two jobs may share a run: same types and shapes, except the first dimension, and neither
 *  is to run alone. */
bool ifd_job_fits(const struct ifd_job *a, const struct ifd_job *b);

#endif
