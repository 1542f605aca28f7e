/** Implements the API's service on repository and scheduler. Thread: loop only. */
#ifndef INFERD_SERVER_SERVE_SERVICE_H
#define INFERD_SERVER_SERVE_SERVICE_H

#include "api/core/service.h"
#include "server/config/config.h"
#include "server/net/loop.h"
#include "server/obs/metrics.h"
#include "server/repo/repo.h"
#include "server/sched/pool.h"
#include "server/sched/tasks.h"

struct ifd_service_options {
    const struct ifd_alloc *alloc;
    struct ifd_loop *loop;
    const struct ifd_config *config;
    const char *program_version;
    struct ifd_completions *completions;
    struct ifd_pool *pool;
    struct ifd_tasks *image_tasks, *json_tasks; /* separate: JSON takes ms, pictures may take s */
    struct ifd_repo *repo;
    const struct ifd_engine *engine;
    struct ifd_log *log;
    struct ifd_metric_set *metrics; /* the server's; may be NULL */
    uint32_t cores;
    uint32_t (*connections)(void *arg); /* open connections of clients of the API */
    void *connections_arg;
};

IFD_NODISCARD enum ifd_code ifd_service_create(const struct ifd_service_options *options,
                                               struct ifd_service **ret_service,
                                               struct ifd_err *err);
/** No request is open. NULL is fine. */
void ifd_service_destroy(struct ifd_service *service);

/** has_control: models may be loaded and unloaded through the API. */
const struct ifd_service_ops *ifd_service_ops(bool has_control);

/** Wakes the pool for the jobs submitted since the last call. Called at the end of each turn of the
 *  loop. */
void ifd_service_flush(struct ifd_service *service);

/** Versions came or went: updates the list of versions in their descriptions. */
void ifd_service_models_changed(struct ifd_service *service);

/** From now on readiness is no and batches are not waited for; requests are still accepted. */
void ifd_service_stopping(struct ifd_service *service);
/** Answers every waiting request with UNAVAILABLE and accepts no more; running ones finish. */
void ifd_service_cancel_all(struct ifd_service *service);

#endif
