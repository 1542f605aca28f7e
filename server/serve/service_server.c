/* The server as a whole: its name, health and log. */
#include "server/serve/service_impl.h"

const struct ifd_server_info *ifd_service_info(struct ifd_service *service)
{
    return &service->info;
}

bool ifd_service_is_live(struct ifd_service *service)
{
    (void)service;
    return true;
}

enum ifd_code ifd_service_is_ready(struct ifd_service *service, struct ifd_err *why_not)
{
    const struct ifd_repo *repo = service->options.repo;
    if (service->is_stopping) {
        return ifd_fail(why_not, IFD_UNAVAILABLE, "Server exiting");
    }
    if (ifd_repo_loading_count(repo) > 0) {
        return ifd_fail(why_not, IFD_UNAVAILABLE, "Server not ready: %u models are being loaded",
                        ifd_repo_loading_count(repo));
    }
    if (!service->options.config->strict_readiness) {
        return IFD_OK;
    }
    const enum ifd_code code = ifd_engine_check_health(service->options.engine, why_not);
    return code ? code : ifd_repo_check(repo, why_not);
}

void ifd_service_missing_backends(struct ifd_service *service, ifd_missing_fn fn, void *arg)
{
    const struct ifd_engine *engine = service->options.engine;
    for (uint32_t i = 0; i < ifd_engine_backend_count(engine); i++) {
        struct ifd_backend_info info;
        ifd_engine_backend_info(engine, i, &info);
        if ((!info.available && !info.is_untried) || info.degraded) {
            fn(arg, info.name, info.available ? info.lost.text : info.reason);
        }
    }
}

void ifd_service_log_settings(struct ifd_service *service, struct ifd_log_settings *ret)
{
    const struct ifd_log *log = service->options.log;
    *ret = (struct ifd_log_settings){.info = ifd_log_takes(log, IFD_LOG_INFO),
                                     .warning = ifd_log_takes(log, IFD_LOG_WARN),
                                     .error = ifd_log_takes(log, IFD_LOG_ERROR),
                                     .verbose_level = ifd_log_takes(log, IFD_LOG_DEBUG),
                                     .is_iso8601 = service->is_iso8601};
}

void ifd_service_set_log(struct ifd_service *service, const struct ifd_log_settings *settings)
{
    service->options.log->levels = (settings->error ? 1u << IFD_LOG_ERROR : 0) |
                                   (settings->warning ? 1u << IFD_LOG_WARN : 0) |
                                   (settings->info ? 1u << IFD_LOG_INFO : 0) |
                                   (settings->verbose_level > 0 ? 1u << IFD_LOG_DEBUG : 0);
    service->is_iso8601 = settings->is_iso8601;
}
