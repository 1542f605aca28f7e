/** A model version that runs: its description for the API, its queue, its workers, its counters. */
#ifndef INFERD_SERVER_SERVE_SERVED_H
#define INFERD_SERVER_SERVE_SERVED_H

#include "api/core/service.h"
#include "engine/base/log.h"
#include "server/serve/ahead.h"
#include "server/obs/metrics.h"
#include "server/repo/budget.h"
#include "server/repo/model.h"
#include "server/sched/queue.h"
#include "server/sched/worker.h"

struct ifd_served {
    struct ifd_model_stats stats; /* loop thread */
    struct ifd_queue queue;
    struct ifd_queue_bound
        *bound; /* for each level_policy of the description; capacity 0: none of its own */
    struct ifd_workers *workers;
    struct ifd_metric_set *metrics;
    struct ifd_pulse pulse; /* loop thread */
};

struct ifd_served_options {
    const struct ifd_alloc *alloc, *request_alloc; /* the latter for what requests hold: outputs */
    struct ifd_completions *completions;
    const struct ifd_log *log;
    uint32_t cores; /* an instance has no more threads */
    /* Of one instance, unless the config's parameter "threads" says otherwise; 0: by the hint. */
    uint32_t threads;
    bool for_throughput; /* unless the config's parameter "performance_hint" says otherwise */
    uint32_t max_threads;
    struct ifd_metrics *metrics;    /* may be NULL */
    bool warms_up;                  /* one run of each instance on zeros, without model_warmup */
    uint64_t warm_up_ns;            /* for all runs of a version before it serves; 0: no bound */
    struct ifd_budget *budget;      /* NULL: none */
    uint32_t max_queue_size;        /* unless the config sets one */
    const atomic_bool *is_stopping; /* no warm-up run begins any more; any thread may read it */
};

/** Makes instances and starts workers; version->served is set. Errors: INVALID (a parameter), NOMEM, UNAVAILABLE.
 *  Thread: loader. */
IFD_NODISCARD enum ifd_code ifd_served_start(const struct ifd_served_options *options,
                                             struct ifd_version *version, struct ifd_err *err);
/** Nobody holds the version; its queue is empty. */
void ifd_served_stop(const struct ifd_served_options *options, struct ifd_version *version);

/** Adds to version->desc, of a config and file that were read, what the API tells beyond them.
 *  Errors: INVALID, NOT_FOUND (label file), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_describe(struct ifd_version *version, struct ifd_err *err);

#endif
