/** Shared by the files behind server.h:
 *
 *  server.c          the order of start and stop, signals, wake-ups
 *  server_parts.c    making each part from the settings
 *  server_models.c   the repository's host: loading, what happens when models change
 *  server_files.c    model files that are served by themselves
 *
 *  Thread: loop, unless stated otherwise. */
#ifndef INFERD_SERVER_SERVER_IMPL_H
#define INFERD_SERVER_SERVER_IMPL_H

#include <stdatomic.h>

#include "inferd/engine.h"
#include "server/auth/tokens.h"
#include "server/ops/memory.h"
#include "server/net/http.h"
#include "server/net/listen.h"
#include "server/ops/reread.h"
#include "server/ops/scrape.h"
#include "server/serve/served.h"
#include "server/server.h"
#include "server/serve/service.h"
#include "server/ops/watchdog.h"

/** Most threads of an instance. */
#define IFD_SERVER_THREADS_MAX 64

struct ifd_server {
    struct ifd_server_options options;
    struct ifd_completions completions;
    struct ifd_loop *loop;
    struct ifd_engine *engine;
    struct ifd_pool *pool;
    struct ifd_tasks *load_tasks, *image_tasks, *json_tasks;
    struct ifd_repo *repo;
    const char **folder; /* of --model-repository, the folders; the others are model files */
    uint32_t folder_count;
    struct ifd_quarantine *quarantine; /* NULL without --state-dir */
    struct ifd_service *service;
    struct ifd_api *api;
    struct ifd_http *http;
    struct ifd_socket_file http_file, admin_file;
    struct ifd_timer *stop_timer, *poll_timer, *slack_timer;
    struct ifd_watch *notice_watch; /* of changed folders */
    struct ifd_served_options served;
    struct ifd_metrics *metrics;
    struct ifd_access_log *access_log;
    struct ifd_tokens *tokens; /* NULL: no tokens are needed */
    struct ifd_guard guard;
    struct ifd_scrape scrape;
    struct ifd_budget budget;       /* of models */
    struct ifd_quota request_quota; /* of requests */
    struct ifd_slack slack;         /* in it */
    struct ifd_reread reread;
    struct ifd_notify notify;
    struct ifd_watchdog *watchdog;
    uint16_t port, metrics_port;
    uint64_t cancelled_ms; /* time when the exit timeout passed */
    uint64_t drained_ms;   /* time when all accepted requests were answered */
    bool is_cancelled, is_drained;
    atomic_bool stop_asked, reread_asked, is_loaded;
    atomic_bool is_stopping; /* set on the loop; loads look at it */
    enum ifd_code result;
    struct ifd_err result_err;
};

/* ---- server.c ---- */

/** A second call changes nothing. */
void ifd_server_begin_stop(struct ifd_server *server);

/* ---- server_files.c ---- */

/** Fills folder. Errors: INVALID (a model file that would have to be watched), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_server_sort_repositories(struct ifd_server *server,
                                                         struct ifd_err *err);
/** Begins to load the model files. Errors: INVALID (its name can be no model's), IO, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_server_load_files(struct ifd_server *server, struct ifd_err *err);

/* ---- server_parts.c: in the order of creation ---- */

IFD_NODISCARD enum ifd_code ifd_server_create_metrics(struct ifd_server *server,
                                                      struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_create_access_log(struct ifd_server *server,
                                                         struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_read_tokens(struct ifd_server *server, struct ifd_err *err);
/** Memory budgets of models and of requests. */
IFD_NODISCARD enum ifd_code ifd_server_init_budget(struct ifd_server *server, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_create_engine(struct ifd_server *server,
                                                     struct ifd_err *err);
/** Threads that run models. */
IFD_NODISCARD enum ifd_code ifd_server_create_pool(struct ifd_server *server, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_create_tasks(struct ifd_server *server, struct ifd_err *err);
/** Service, API and HTTP. */
IFD_NODISCARD enum ifd_code ifd_server_create_front(struct ifd_server *server, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_listen(struct ifd_server *server, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_listen_metrics(struct ifd_server *server,
                                                      struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_create_watchdog(struct ifd_server *server,
                                                       struct ifd_err *err);

/** Options from the current settings. */
struct ifd_http_options ifd_server_http_options(struct ifd_server *server);
const char *ifd_server_metrics_address(const struct ifd_config *config);

/* ---- server_models.c ---- */

/** Runs work on a load thread, then done on the loop. context: the server. Errors: BUSY, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_server_run_off_loop(void *context, void (*work)(void *arg),
                                                    void (*done)(void *arg), void *arg,
                                                    struct ifd_err *err);

/** --model-control-mode=explicit */
bool ifd_server_is_explicit(const struct ifd_server *server);
IFD_NODISCARD enum ifd_code ifd_server_create_repo(struct ifd_server *server, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_server_begin_loading(struct ifd_server *server,
                                                     struct ifd_err *err);
/** Every model was tried. */
void ifd_server_finish_start(struct ifd_server *server);
/** Sends state, which may be empty, and the number of ready models to the service manager. */
void ifd_server_tell_state(struct ifd_server *server, const char *state);

#endif
