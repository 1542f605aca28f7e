/* Host of the repository: starts and stops versions, reacts to changes of models. */
#include "server/server_impl.h"

#include <stdio.h>
#include <string.h>

#include "server/ops/memory.h"

#define SECOND_NS UINT64_C(1000000000)

static uint32_t ready_models(const struct ifd_repo *repo)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
        ready += ifd_repo_model_at(repo, i)->ready_count > 0;
    }
    return ready;
}

void ifd_server_tell_state(struct ifd_server *server, const char *state)
{
    ifd_notify_send(&server->notify, "%sSTATUS=%u of %u models ready", state,
                    ready_models(server->repo), ifd_repo_model_count(server->repo));
}

bool ifd_server_is_explicit(const struct ifd_server *server)
{
    return server->options.config->control_mode == IFD_CONTROL_EXPLICIT;
}

/* ---- functions of the host ---- */

struct off_loop {
    struct ifd_task task;
    struct ifd_server *server;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void off_loop_work(struct ifd_task *task)
{
    struct off_loop *o = (struct off_loop *)task; /* its first member */
    o->work(o->arg);
    /* the C library keeps tens of megabytes after large models */
    ifd_memory_trim();
}

static void off_loop_done(struct ifd_task *task)
{
    struct off_loop *o = (struct off_loop *)task;
    void (*done)(void *arg) = o->done;
    void *arg = o->arg;
    ifd_release(o->server->options.alloc, o, sizeof(*o));
    done(arg);
}

enum ifd_code ifd_server_run_off_loop(void *context, void (*work)(void *arg),
                                      void (*done)(void *arg), void *arg, struct ifd_err *err)
{
    struct ifd_server *server = context;
    struct off_loop *o = ifd_acquire_zeroed(server->options.alloc, 1, sizeof(*o));
    if (!o) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a task");
    }
    *o = (struct off_loop){.task = {.work = off_loop_work, .done = off_loop_done},
                           .server = server,
                           .work = work,
                           .done = done,
                           .arg = arg};
    enum ifd_code code = ifd_tasks_submit(server->load_tasks, &o->task, err);
    if (code) {
        ifd_release(server->options.alloc, o, sizeof(*o));
    }
    return code;
}

static enum ifd_code start_version(void *context, struct ifd_version *version, struct ifd_err *err)
{
    return ifd_served_start(&((struct ifd_server *)context)->served, version, err);
}

static void stop_version(void *context, struct ifd_version *version)
{
    ifd_served_stop(&((struct ifd_server *)context)->served, version);
}

static void format_url(char *url, size_t size, const char *host, uint16_t port, const char *path)
{
    bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(url, size, "http://%s%s%s:%u%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port,
                   path);
}

/* Only model files, none of which runs: nobody can mend that while the server waits. */
static bool serves_nothing(const struct ifd_server *server)
{
    return server->options.config->control_mode == IFD_CONTROL_NONE && server->folder_count == 0 &&
           ifd_repo_model_count(server->repo) > 0 && ready_models(server->repo) == 0;
}

void ifd_server_finish_start(struct ifd_server *server)
{
    const struct ifd_config *config = server->options.config;
    struct ifd_err err = {0};
    char url[300], metrics_url[300] = "";
    if (ifd_repo_check(server->repo, &err) && (config->exit_on_error || serves_nothing(server))) {
        server->result = err.code;
        server->result_err = err;
        ifd_server_begin_stop(server);
        return;
    }
    if (ifd_repo_model_count(server->repo) == 0) {
        ifd_log_warn(server->options.log, "no model found", "repositories=%u",
                     config->repositories.count);
    }
    atomic_store(&server->is_loaded, true);
    ifd_server_tell_state(server, "READY=1\n");
    format_url(url, sizeof(url), config->http_address, server->port, "");
    if (server->metrics_port > 0) {
        format_url(metrics_url, sizeof(metrics_url), ifd_server_metrics_address(config),
                   server->metrics_port, "/metrics");
    }
    if (server->options.on_ready) {
        server->options.on_ready(
            server->options.context,
            &(struct ifd_server_ready){.url = url,
                                       .metrics_url = metrics_url,
                                       .ready_models = ready_models(server->repo),
                                       .all_models = ifd_repo_model_count(server->repo)});
    }
}

static void models_changed(void *context)
{
    struct ifd_server *server = context;
    ifd_service_models_changed(server->service);
    if (atomic_load(&server->is_loaded) && !server->is_stopping) {
        ifd_server_tell_state(server, "");
    }
    if (ifd_repo_loading_count(server->repo) == 0 && !server->is_stopping &&
        !atomic_load(&server->is_loaded)) {
        ifd_server_finish_start(server);
    }
}

static void next_poll(void *context, uint64_t wait_ms)
{
    struct ifd_server *server = context;
    if (!server->is_stopping) {
        ifd_timer_start(server->poll_timer, wait_ms, 0);
    }
}

static void on_notice(void *arg)
{
    ifd_repo_notice(((struct ifd_server *)arg)->repo);
}

static void on_poll_timer(void *arg)
{
    ifd_repo_poll(((struct ifd_server *)arg)->repo);
}

/* ---- life ---- */

enum ifd_code ifd_server_create_repo(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    const struct ifd_config *config = o->config;
    const bool is_poll = config->control_mode == IFD_CONTROL_POLL;
    if (config->exact && config->precision != IFD_PRECISION_F32) {
        return ifd_fail(err, IFD_INVALID, "--exact and --precision %s exclude each other",
                        ifd_precision_name(config->precision));
    }
    enum ifd_code code =
        ifd_timer_create(server->loop, on_poll_timer, server, &server->poll_timer, err);
    if (!code && config->state_dir[0] != '\0') {
        code = ifd_quarantine_open(config->state_dir, o->alloc, o->log, &server->quarantine, err);
        if (code) {
            ifd_err_prefix(err, "--state-dir");
        }
    }
    if (!code) {
        code = ifd_server_sort_repositories(server, err);
    }
    if (code) {
        return code;
    }
    const struct ifd_repo_options repo = {
        .alloc = o->alloc,
        .log = o->log,
        .engine = server->engine,
        .host = {.context = server,
                 .run_off_loop = ifd_server_run_off_loop,
                 .start = start_version,
                 .stop = stop_version,
                 .changed = models_changed,
                 .next_poll = next_poll},
        .dir = server->folder,
        .dir_count = server->folder_count,
        .backends = config->backends.count > 0 ? config->backends.item : NULL,
        .backend_count = config->backends.count,
        .precision = config->precision,
        /* no instance gets more, and each would cost every plan its work memory */
        .max_threads = server->served.cores < IFD_SERVER_THREADS_MAX ? server->served.cores
                                                                     : IFD_SERVER_THREADS_MAX,
        .max_model_bytes = ifd_config_model_bytes(config),
        .shape_bytes = (size_t)config->shape_memory,
        .clock = ifd_clock_system(),
        .poll_ns = is_poll ? config->poll_secs * SECOND_NS : 0,
        .settle_ns = config->settle_ms * (SECOND_NS / 1000),
        .dwell_ns = config->dwell_secs * SECOND_NS,
        .swaps_per_hour = config->swaps_per_hour,
        .metrics = ifd_metrics_server(server->metrics),
        .budget = &server->budget,
        .quarantine = server->quarantine,
        .is_stopping = &server->is_stopping,
    };
    code = ifd_repo_create(&repo, &server->repo, err);
    if (!code && ifd_repo_notice_fd(server->repo) >= 0) {
        code = ifd_watch_create(server->loop, ifd_repo_notice_fd(server->repo), on_notice, server,
                                &server->notice_watch, err);
    }
    return code;
}

enum ifd_code ifd_server_begin_loading(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    if (config->repositories.count == 0) {
        return ifd_fail(
            err, IFD_INVALID,
            "no model repository given: inferd serve DIR, or inferd serve MODEL.tflite");
    }
    if (!ifd_server_is_explicit(server) && config->load_models.count > 0) {
        return ifd_fail(err, IFD_INVALID, "--load-model needs --model-control-mode=explicit");
    }
    enum ifd_code code =
        ifd_repo_load_all(server->repo, config->load_models.item, config->load_models.count,
                          ifd_server_is_explicit(server), err);
    return code ? code : ifd_server_load_files(server, err);
}
