/** The server: everything composed, started and stopped in one place.
 *
 *  Order of stopping: stop accepting → let accepted requests finish, or cancel waiting ones after
 *  --exit-timeout-secs → every connection has its answer → close connections → stop workers →
 *  unload models. */
#ifndef INFERD_SERVER_SERVER_H
#define INFERD_SERVER_SERVER_H

#include "engine/base/log.h"
#include "server/config/config.h"

struct ifd_backend; /* inferd/backend.h */
struct ifd_server;

struct ifd_server_ready {
    const char *url, *metrics_url; /* metrics_url: "" if there is none */
    uint32_t ready_models, all_models;
};

struct ifd_server_options {
    const struct ifd_alloc *alloc;
    /* stays until destroy; ifd_server_reread changes its live settings */
    struct ifd_config *config;
    int argc; /* arguments of config, as for ifd_config_parse */
    char **argv;
    struct ifd_log *log;
    const char *program_version;
    const struct ifd_backend *const *backends;
    uint32_t backend_count;
    bool finds_plugins; /* ifd_engine_options.finds_plugins */
    /* SIGTERM and SIGINT stop the server, SIGHUP reloads its settings */
    bool handles_signals;
    /** The process ends after ifd_server_run: do not wait for work that cannot be interrupted; see
     *  ifd_server_leave. */
    bool may_leave;
    const char *notify_socket; /* socket of a service manager; NULL: none */
    uint64_t watchdog_us;      /* its timeout; 0: no pings */
    /** Every model was tried; the server serves. May be NULL. Thread: loop. */
    void (*on_ready)(void *context, const struct ifd_server_ready *ready);
    void *context;
};

/** The levels of options.log that --log-verbose asks for. */
unsigned ifd_server_log_levels(const struct ifd_config *config);

/** Listens and begins to load. Errors: those of the settings, each with a text. */
IFD_NODISCARD enum ifd_code ifd_server_create(const struct ifd_server_options *options,
                                              struct ifd_server **ret_server, struct ifd_err *err);
/** Serves until a signal or ifd_server_stop. Not OK: --exit-on-error, and a model could not be
 *  loaded. */
IFD_NODISCARD enum ifd_code ifd_server_run(struct ifd_server *server, struct ifd_err *err);
/** Asks the server to drain and end. Thread: any. */
void ifd_server_stop(struct ifd_server *server);
/** Does the same as SIGHUP. Thread: any. */
void ifd_server_reread(struct ifd_server *server);
/** Called after ifd_server_run, with may_leave. True: runs or loads that could not be interrupted
 *  still use the server. Access log and UNIX sockets are finished; the caller must call _exit, not
 *  destroy. */
bool ifd_server_leave(struct ifd_server *server);
void ifd_server_destroy(struct ifd_server *server); /* NULL is fine */

uint16_t ifd_server_port(const struct ifd_server *server);
uint16_t ifd_server_metrics_port(const struct ifd_server *server); /* 0: there is none */
/** False while models are still being loaded. Thread: any. */
bool ifd_server_is_loaded(const struct ifd_server *server);

#endif
