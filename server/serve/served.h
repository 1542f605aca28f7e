/** A version that serves: its lane in the pool, its statistics. */
#ifndef INFERD_SERVER_SERVE_SERVED_H
#define INFERD_SERVER_SERVE_SERVED_H

#include "api/core/service.h"
#include "engine/base/log.h"
#include "server/serve/ahead.h"
#include "server/serve/sequences.h"
#include "server/serve/sources.h"
#include "server/obs/metrics.h"
#include "server/repo/budget.h"
#include "server/repo/model.h"
#include "server/sched/lane.h"

struct ifd_served {
    struct ifd_model_stats stats; /* loop thread */
    /* one per level_policy of the description; capacity 0: the common bound */
    struct ifd_queue_bound *bound;
    struct ifd_lane *lane;
    struct ifd_metric_set *metrics;
    struct ifd_pulse pulse;          /* loop thread */
    struct ifd_sequences *sequences; /* NULL: none; loop thread */
    struct ifd_sources sources;      /* loop thread */
};

struct ifd_served_options {
    /* request_alloc: for outputs, which requests hold */
    const struct ifd_alloc *alloc, *request_alloc;
    struct ifd_pool *pool;
    const struct ifd_log *log;
    uint32_t cores; /* most threads of an instance; most instances where the config names none */
    /* Threads of an instance unless the config's parameter "threads" sets it; 0: by the cores. */
    uint32_t threads;
    uint32_t max_threads;
    struct ifd_metrics *metrics;    /* may be NULL */
    bool warms_up;                  /* without model_warmup, run each instance once on zeros */
    uint64_t warm_up_ns;            /* for all runs of a version before it serves; 0: no bound */
    struct ifd_budget *budget;      /* NULL: none */
    uint32_t max_queue_size;        /* unless the config sets one */
    const atomic_bool *is_stopping; /* no warm-up run begins any more; read by any thread */
};

/** Makes instances and a lane and sets version->served. Errors: INVALID (a parameter), NOMEM,
 *  UNAVAILABLE. Thread: load. */
IFD_NODISCARD enum ifd_code ifd_served_start(const struct ifd_served_options *options,
                                             struct ifd_version *version, struct ifd_err *err);
/** Undoes start. No request holds the version; its lane is empty. */
void ifd_served_stop(const struct ifd_served_options *options, struct ifd_version *version);

/** Completes version->desc, which config and file have filled, for the API. Errors: INVALID,
 *  NOT_FOUND (label file), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_describe(struct ifd_version *version, struct ifd_err *err);

#endif
