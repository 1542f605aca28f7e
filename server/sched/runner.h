/** What runs jobs: an instance of a model, or the identity. */
#ifndef INFERD_SERVER_SCHED_RUNNER_H
#define INFERD_SERVER_SCHED_RUNNER_H

#include "server/sched/job.h"

/** One thread at a time uses it. */
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
    bool may_linger;     /* a run may be far longer than those before: by a plan, or a loop */
    bool is_instant; /* computes nothing and touches no data: a run is shorter than a hand-over */
    bool waits;      /* computes nothing and takes its time: a run needs no core */
};

#endif
