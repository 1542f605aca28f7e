/** GET /metrics: samples gauges (queues, models, the process), then writes the page. Thread: loop
 *  only. */
#ifndef INFERD_SERVER_OPS_SCRAPE_H
#define INFERD_SERVER_OPS_SCRAPE_H

#include "api/http/guard.h"
#include "engine/base/quota.h"
#include "server/obs/metrics.h"
#include "server/repo/repo.h"

struct ifd_scrape {
    const struct ifd_alloc *alloc;
    struct ifd_metrics *metrics;
    const struct ifd_repo *repo;
    const struct ifd_engine *engine;
    const struct ifd_budget *budget;
    const struct ifd_quota *quota; /* of requests */
    const struct ifd_guard *guard; /* NULL: no tokens */
};

/** Answers any request of the metrics listener; arg is a struct ifd_scrape. */
void ifd_scrape_page(void *arg, struct ifd_http_exchange *exchange);

#endif
