/* Composition root: creates everything, owns the order of start and stop. */
#include "server/server.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/thread.h"
#include "inferd/engine.h"
#include "server/net/http.h"
#include "server/memory.h"
#include "server/net/listen.h"
#include "server/reread.h"
#include "server/scrape.h"
#include "server/served.h"
#include "server/service.h"
#include "server/watchdog.h"

#define THREADS_MAX     64
#define LOAD_TASKS_MAX  1000000
#define IMAGE_TASKS_MAX 256
#define STOP_POLL_MS    20
/* What a request without a large body takes at a time: these get the last of the memory for requests, so that a busy server
 * can still say that it lives. */
#define SMALL_REQUEST_BYTES ((size_t)80 * 1024)
#define SECOND_NS           ((uint64_t)1000000000)
/* After the deadline has cancelled what waited: time for answers to leave. */
#define LAST_ANSWERS_MS 2000

struct ifd_server {
    struct ifd_server_options options;
    struct ifd_completions completions;
    struct ifd_loop *loop;
    struct ifd_engine *engine;
    struct ifd_tasks *load_tasks, *image_tasks;
    struct ifd_repo *repo;
    struct ifd_service *service;
    struct ifd_api *api;
    struct ifd_http *http;
    struct ifd_timer *stop_timer, *poll_timer;
    struct ifd_served_options served;
    struct ifd_metrics *metrics;
    struct ifd_access_log *access_log;
    struct ifd_scrape scrape;
    struct ifd_budget budget;       /* of models */
    struct ifd_quota request_quota; /* of requests */
    struct ifd_reread reread;
    struct ifd_notify notify;
    struct ifd_watchdog *watchdog;
    uint16_t port, metrics_port;
    uint64_t cancelled_ms; /* when the deadline passed */
    bool is_stopping, is_cancelled;
    atomic_bool stop_asked, reread_asked, is_loaded;
    enum ifd_code result;
    struct ifd_err result_err;
};

static uint32_t ready_models(const struct ifd_repo *repo)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
        const struct ifd_repo_model *model = ifd_repo_model_at(repo, i);
        for (uint32_t k = 0; k < model->version_count; k++) {
            if (model->version[k]->state == IFD_VERSION_READY) {
                ready++;
                break;
            }
        }
    }
    return ready;
}

/* ---- stopping ---- */

static void on_idle(void *arg)
{
    struct ifd_server *server = arg;
    ifd_loop_stop(server->loop);
}

static void on_stop_timer(void *arg)
{
    struct ifd_server *server = arg;
    uint64_t now_ms = ifd_loop_now_ms(server->loop);
    if (!server->is_cancelled) {
        ifd_log_warn(server->options.log, "exit timeout passed, cancelling waiting requests",
                     "open=%u", ifd_http_open_count(server->http));
        server->is_cancelled = true;
        server->cancelled_ms = now_ms;
        ifd_service_cancel_all(server->service);
        ifd_timer_start(server->stop_timer, STOP_POLL_MS, STOP_POLL_MS);
        return;
    }
    /* What runs already cannot be stopped, only waited for. */
    if (now_ms - server->cancelled_ms > LAST_ANSWERS_MS &&
        ifd_http_waiting_count(server->http) == 0) {
        ifd_loop_stop(server->loop);
    }
}

static void begin_stop(struct ifd_server *server)
{
    if (server->is_stopping) {
        return; /* a second signal changes nothing */
    }
    server->is_stopping = true;
    ifd_log_info(server->options.log, "stopping", "open=%u", ifd_http_open_count(server->http));
    ifd_notify_send(&server->notify, "STOPPING=1\nSTATUS=stopping");
    ifd_service_stopping(server->service);
    ifd_repo_stop(server->repo);
    ifd_timer_stop(server->poll_timer);
    ifd_timer_start(server->stop_timer, (uint64_t)server->options.config->exit_timeout_secs * 1000,
                    0);
    ifd_http_drain(server->http, on_idle, server);
}

/* ---- the service manager ---- */

static uint64_t monotonic_us(void)
{
    return ifd_monotonic_ns() / 1000;
}

static void tell_state(struct ifd_server *server, const char *state)
{
    ifd_notify_send(&server->notify, "%sSTATUS=%u of %u models ready", state,
                    ready_models(server->repo), ifd_repo_model_count(server->repo));
}

static void begin_reread(struct ifd_server *server)
{
    if (!server->is_stopping) {
        ifd_notify_send(&server->notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
                        (unsigned long long)monotonic_us());
        ifd_reread_begin(&server->reread);
    }
}

static void after_turn(void *arg)
{
    ifd_service_flush(arg);
}

static struct ifd_http_options http_options(struct ifd_server *server)
{
    const struct ifd_server_options *o = &server->options;
    return (struct ifd_http_options){
        .alloc = o->alloc,
        .request_alloc = &server->request_quota.alloc,
        .request_quota = &server->request_quota,
        .loop = server->loop,
        .api = server->api,
        .log = o->log,
        .metrics = ifd_metrics_server(server->metrics),
        .access_log = server->access_log,
        .after_turn = after_turn,
        .after_turn_arg = server->service,
        .max_connections = o->config->max_connections,
        .max_connections_per_address = o->config->max_connections_per_address,
        .max_header_bytes = o->config->max_header_bytes,
        .header_timeout_secs = o->config->header_timeout_secs,
        .receive_timeout_secs = o->config->receive_timeout_secs,
        .send_timeout_secs = o->config->send_timeout_secs,
        .min_receive_rate = o->config->min_receive_rate,
        .min_send_rate = o->config->min_send_rate,
        .idle_timeout_secs = o->config->idle_timeout_secs,
    };
}

static void settings_applied(void *context)
{
    struct ifd_server *server = context;
    const struct ifd_http_options http = http_options(server);
    ifd_http_change_limits(server->http, &http);
    ifd_api_change_max_input(server->api, (size_t)server->options.config->http_max_input_size);
    if (strcmp(server->options.config->model_control_mode, "poll") == 0 && !server->is_stopping) {
        ifd_repo_poll(server->repo);
    }
}

static void reread_ended(void *context)
{
    struct ifd_server *server = context;
    if (!server->is_stopping && atomic_load(&server->is_loaded)) {
        tell_state(server, "READY=1\n");
    }
}

static void on_signal(void *arg, int signal)
{
    if (signal == SIGHUP) {
        begin_reread(arg);
    } else {
        begin_stop(arg);
    }
}

void ifd_server_stop(struct ifd_server *server)
{
    atomic_store(&server->stop_asked, true);
    ifd_loop_wake(server->loop);
}

void ifd_server_reread(struct ifd_server *server)
{
    atomic_store(&server->reread_asked, true);
    ifd_loop_wake(server->loop);
}

static void on_wake(void *arg)
{
    struct ifd_server *server = arg;
    ifd_completions_drain(&server->completions);
    if (atomic_exchange(&server->reread_asked, false)) {
        begin_reread(server);
    }
    ifd_service_flush(server->service); /* decoded pictures */
    if (atomic_load(&server->stop_asked)) {
        begin_stop(server);
    }
}

/* ---- the repository's host ---- */

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
}

static void off_loop_done(struct ifd_task *task)
{
    struct off_loop *o = (struct off_loop *)task;
    void (*done)(void *arg) = o->done;
    void *arg = o->arg;
    ifd_release(o->server->options.alloc, o, sizeof(*o));
    done(arg);
}

static enum ifd_code run_off_loop(void *context, void (*work)(void *arg), void (*done)(void *arg),
                                  void *arg, struct ifd_err *err)
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

static const char *metrics_address(const struct ifd_config *config)
{
    return config->metrics_address[0] != '\0' ? config->metrics_address : config->http_address;
}

static void format_url(char *url, size_t size, const char *host, uint16_t port, const char *path)
{
    bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(url, size, "http://%s%s%s:%u%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port,
                   path);
}

/* Every model was tried. */
static void finish_start(struct ifd_server *server)
{
    const struct ifd_config *config = server->options.config;
    struct ifd_err err = {0};
    char url[300], metrics_url[300] = "";
    if (ifd_repo_check(server->repo, &err) && config->exit_on_error) {
        server->result = err.code;
        server->result_err = err;
        begin_stop(server);
        return;
    }
    if (ifd_repo_model_count(server->repo) == 0) {
        ifd_log_warn(server->options.log, "no model in any repository", "repositories=%u",
                     config->repositories.count);
    }
    atomic_store(&server->is_loaded, true);
    tell_state(server, "READY=1\n");
    format_url(url, sizeof(url), config->http_address, server->port, "");
    if (server->metrics_port > 0) {
        format_url(metrics_url, sizeof(metrics_url), metrics_address(config), server->metrics_port,
                   "/metrics");
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
        tell_state(server, "");
    }
    if (ifd_repo_loading_count(server->repo) == 0 && !server->is_stopping &&
        !atomic_load(&server->is_loaded)) {
        finish_start(server);
    }
}

static void polled(void *context, uint64_t wait_ms)
{
    struct ifd_server *server = context;
    if (!server->is_stopping) {
        ifd_timer_start(server->poll_timer, wait_ms, 0);
    }
}

static void on_poll_timer(void *arg)
{
    ifd_repo_poll(((struct ifd_server *)arg)->repo);
}

/* ---- creation, in order ---- */

/* A name that no backend has is an error at once, not with the first model that would use it. */
static enum ifd_code check_backends(const struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config_list *list = &server->options.config->backends;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t k = 0, count = ifd_engine_backend_count(server->engine);
        struct ifd_backend_info info = {0};
        for (; k < count; k++) {
            ifd_engine_backend_info(server->engine, k, &info);
            if (strcmp(info.name, list->item[i]) == 0) {
                break;
            }
        }
        if (k == count) {
            return ifd_fail(err, IFD_INVALID, "--backend: there is no \"%.60s\"; \"%s\" exists",
                            list->item[i], info.name);
        }
    }
    return IFD_OK;
}

static bool is_explicit(const struct ifd_server *server)
{
    return strcmp(server->options.config->model_control_mode, "explicit") == 0;
}

static void init_budget(struct ifd_server *server)
{
    const struct ifd_memory memory = ifd_memory_limit("", 0);
    uint64_t asked = server->options.config->memory_budget;
    server->budget.limit_bytes = asked > 0 ? asked : memory.bytes / 4 * 3;
    uint64_t for_requests = server->options.config->request_memory;
    for_requests = for_requests > 0 ? for_requests : memory.bytes / 8;
    ifd_quota_init(&server->request_quota, server->options.alloc,
                   for_requests < SIZE_MAX ? (size_t)for_requests : SIZE_MAX, SMALL_REQUEST_BYTES);
    ifd_log_info(server->options.log, "memory for models", "budget_bytes=%llu source=\"%s\"",
                 (unsigned long long)server->budget.limit_bytes,
                 asked > 0 ? "--memory-budget" : memory.source);
}

static enum ifd_code create_engine(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    const struct ifd_engine_options engine = {
        .alloc = o->alloc,
        .backends = o->backends,
        .backend_count = o->backend_count,
        .exact = o->config->exact,
        .fast = o->config->fast,
        .cache_folder = o->config->cache_dir[0] != '\0' ? o->config->cache_dir : NULL};
    enum ifd_code code = ifd_engine_create(&engine, &server->engine, err);
    if (code) {
        return code;
    }
    const struct ifd_cpu *cpu = ifd_engine_cpu(server->engine);
    uint32_t cores = cpu->cores > 0 ? cpu->cores : 1;
    server->served = (struct ifd_served_options){
        .alloc = o->alloc,
        .request_alloc = &server->request_quota.alloc,
        .completions = &server->completions,
        .log = o->log,
        .cores = cores,
        .threads = o->config->threads,
        .for_throughput = strcmp(o->config->performance_hint, "throughput") == 0,
        .max_threads = THREADS_MAX,
        .metrics = server->metrics,
        .warms_up = o->config->warms_up,
        .budget = &server->budget,
        .max_queue_size = o->config->max_queue_size,
    };
    return check_backends(server, err);
}

static enum ifd_code create_repo(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    const struct ifd_config *config = o->config;
    bool is_poll = strcmp(config->model_control_mode, "poll") == 0;
    enum ifd_precision precision = IFD_PRECISION_F32;
    (void)ifd_precision_by_name(config->precision, &precision); /* one of the setting's words */
    if (config->exact && precision != IFD_PRECISION_F32) {
        return ifd_fail(err, IFD_INVALID, "--exact and --precision %s exclude each other",
                        config->precision);
    }
    const struct ifd_repo_options repo = {
        .alloc = o->alloc,
        .log = o->log,
        .engine = server->engine,
        .host = {.context = server,
                 .run_off_loop = run_off_loop,
                 .start = start_version,
                 .stop = stop_version,
                 .changed = models_changed,
                 .polled = polled},
        .dir = config->repositories.item,
        .dir_count = config->repositories.count,
        .backends = config->backends.count > 0 ? config->backends.item : NULL,
        .backend_count = config->backends.count,
        .precision = precision,
        .max_threads = THREADS_MAX,
        .max_model_bytes = (size_t)config->max_model_bytes,
        .clock = ifd_clock_system(),
        .poll_ns = is_poll ? config->poll_secs * SECOND_NS : 0,
        .settle_ns = config->settle_ms * (SECOND_NS / 1000),
        .dwell_ns = config->dwell_secs * SECOND_NS,
        .metrics = ifd_metrics_server(server->metrics),
        .budget = &server->budget,
    };
    return ifd_repo_create(&repo, &server->repo, err);
}

static enum ifd_code create_tasks(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    enum ifd_code code = ifd_tasks_create("load", o->config->model_load_threads, LOAD_TASKS_MAX,
                                          &server->completions, o->alloc, &server->load_tasks, err);
    return code ? code
                : ifd_tasks_create("image", o->config->image_threads, IMAGE_TASKS_MAX,
                                   &server->completions, o->alloc, &server->image_tasks, err);
}

static enum ifd_code create_front(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    const struct ifd_service_options service = {.alloc = &server->request_quota.alloc,
                                                .loop = server->loop,
                                                .config = o->config,
                                                .program_version = o->program_version,
                                                .completions = &server->completions,
                                                .image_tasks = server->image_tasks,
                                                .repo = server->repo,
                                                .log = o->log,
                                                .metrics = ifd_metrics_server(server->metrics),
                                                .cores = server->served.cores};
    enum ifd_code code = ifd_service_create(&service, &server->service, err);
    if (code) {
        return code;
    }
    const struct ifd_api_options api = {.alloc = o->alloc,
                                        .ops = ifd_service_ops(is_explicit(server)),
                                        .admin_on_http = o->config->admin_on_http,
                                        .service = server->service,
                                        .max_input_bytes = (size_t)o->config->http_max_input_size};
    code = ifd_api_create(&api, &server->api, err);
    if (code) {
        return code;
    }
    const struct ifd_http_options http = http_options(server);
    return ifd_http_create(&http, &server->http, err);
}

static enum ifd_code listen_all(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    int fd = -1;
    enum ifd_code code =
        ifd_listen_tcp(config->http_address, (uint16_t)config->http_port, &fd, &server->port, err);
    if (!code) {
        code = ifd_http_serve(server->http, fd, false, err);
    }
    if (!code && config->http_socket[0] != '\0') {
        code = ifd_listen_unix(config->http_socket, 0660, &fd, err);
        if (!code) {
            code = ifd_http_serve(server->http, fd, false, err);
        }
    }
    if (!code && config->admin_socket[0] != '\0') {
        code = ifd_listen_unix(config->admin_socket, 0600, &fd, err);
        if (!code) {
            code = ifd_http_serve(server->http, fd, true, err);
        }
    }
    return code;
}

static enum ifd_code listen_metrics(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    int fd = -1;
    if (!config->allow_metrics) {
        return IFD_OK;
    }
    enum ifd_code code = ifd_listen_tcp(metrics_address(config), (uint16_t)config->metrics_port,
                                        &fd, &server->metrics_port, err);
    if (code) {
        ifd_err_prefix(err, "metrics (--metrics-port, --allow-metrics): ");
        return code;
    }
    server->scrape = (struct ifd_scrape){
        .alloc = server->options.alloc,
        .metrics = server->metrics,
        .repo = server->repo,
        .budget = &server->budget,
        .quota = &server->request_quota,
    };
    return ifd_http_serve_page(server->http, fd, ifd_scrape_page, &server->scrape, err);
}

static enum ifd_code create_metrics(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_metrics_options metrics = {.alloc = server->options.alloc,
                                                .version = server->options.program_version,
                                                .triton_names =
                                                    server->options.config->metrics_triton_names};
    return ifd_metrics_create(&metrics, &server->metrics, err);
}

static enum ifd_code create_access_log(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    int fd = -1;
    if (config->access_log[0] == '\0') {
        return IFD_OK;
    }
    enum ifd_code code = ifd_access_log_open(config->access_log, &fd, err);
    return code ? code
                : ifd_access_log_create(fd, strcmp(config->access_log_format, "json") == 0,
                                        ifd_metrics_server(server->metrics), server->options.alloc,
                                        &server->access_log, err);
}

static enum ifd_code watch_signals(struct ifd_server *server, struct ifd_err *err)
{
    if (!server->options.handles_signals) {
        return IFD_OK;
    }
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    enum ifd_code code = IFD_OK;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]) && !code; i++) {
        code = ifd_loop_on_signal(server->loop, signals[i], on_signal, server, err);
    }
    return code;
}

static void init_reread(struct ifd_server *server)
{
    const struct ifd_server_options *o = &server->options;
    server->reread = (struct ifd_reread){.alloc = o->alloc,
                                         .log = o->log,
                                         .config = o->config,
                                         .argc = o->argc,
                                         .argv = o->argv,
                                         .access_log = server->access_log,
                                         .run_off_loop = run_off_loop,
                                         .applied = settings_applied,
                                         .ended = reread_ended,
                                         .context = server};
}

static enum ifd_code create_watchdog(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_watchdog_options dog = {.alloc = server->options.alloc,
                                             .loop = server->loop,
                                             .completions = &server->completions,
                                             .repo = server->repo,
                                             .log = server->options.log,
                                             .notify = &server->notify,
                                             .period_us = server->options.watchdog_us};
    if (!ifd_notify_open(&server->notify, server->options.notify_socket)) {
        ifd_log_warn(server->options.log, "service manager cannot be told anything", "socket=%s",
                     server->options.notify_socket);
    }
    return dog.period_us > 0 ? ifd_watchdog_create(&dog, &server->watchdog, err) : IFD_OK;
}

static enum ifd_code begin_loading(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    if (config->repositories.count == 0) {
        return ifd_fail(err, IFD_INVALID,
                        "no model repository given: inferd serve DIR, or --model-repository=DIR");
    }
    if (!is_explicit(server) && config->load_models.count > 0) {
        return ifd_fail(err, IFD_INVALID, "--load-model needs --model-control-mode=explicit");
    }
    if (strcmp(config->model_control_mode, "poll") == 0) {
        ifd_timer_start(server->poll_timer, (uint64_t)config->poll_secs * 1000, 0);
    }
    return ifd_repo_load_all(server->repo, config->load_models.item, config->load_models.count,
                             is_explicit(server), err);
}

static enum ifd_code create_all(struct ifd_server *server, struct ifd_err *err)
{
    enum ifd_code code = ifd_loop_create(server->options.alloc, &server->loop, err);
    if (!code) {
        ifd_completions_init(&server->completions, ifd_loop_wake, server->loop);
        ifd_loop_on_wake(server->loop, on_wake, server);
        code = ifd_timer_create(server->loop, on_stop_timer, server, &server->stop_timer, err);
    }
    if (!code) {
        code = ifd_timer_create(server->loop, on_poll_timer, server, &server->poll_timer, err);
    }
    if (!code) {
        code = create_metrics(server, err);
    }
    if (!code) {
        code = create_access_log(server, err);
    }
    if (!code) {
        init_budget(server);
        code = create_engine(server, err);
    }
    if (!code) {
        code = create_tasks(server, err);
    }
    if (!code) {
        code = create_repo(server, err);
    }
    if (!code) {
        code = create_front(server, err);
    }
    if (!code) {
        code = listen_all(server, err);
    }
    if (!code) {
        code = listen_metrics(server, err);
    }
    if (!code) {
        init_reread(server);
        code = watch_signals(server, err);
    }
    if (!code) {
        code = create_watchdog(server, err);
    }
    return code ? code : begin_loading(server, err);
}

enum ifd_code ifd_server_create(const struct ifd_server_options *options,
                                struct ifd_server **ret_server, struct ifd_err *err)
{
    struct ifd_server *server = ifd_acquire_zeroed(options->alloc, 1, sizeof(*server));
    if (!server) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the server");
    }
    server->options = *options;
    server->notify.fd = -1;
    enum ifd_code code = create_all(server, err);
    if (code) {
        ifd_server_destroy(server);
        return code;
    }
    *ret_server = server;
    return IFD_OK;
}

enum ifd_code ifd_server_run(struct ifd_server *server, struct ifd_err *err)
{
    if (ifd_repo_loading_count(server->repo) == 0) {
        finish_start(server);
    }
    ifd_loop_run(server->loop);
    if (server->result && err) {
        *err = server->result_err;
    }
    return server->result;
}

void ifd_server_destroy(struct ifd_server *server)
{
    if (!server) {
        return;
    }
    const struct ifd_config *config = server->options.config;
    ifd_http_destroy(server->http);
    ifd_access_log_destroy(server->access_log);
    ifd_api_destroy(server->api);
    if (server->http && config->http_socket[0] != '\0') {
        (void)unlink(config->http_socket);
    }
    if (server->http && config->admin_socket[0] != '\0') {
        (void)unlink(config->admin_socket);
    }
    server->is_stopping = server->reread.is_over = true;
    ifd_tasks_destroy(server->image_tasks);
    ifd_tasks_destroy(server->load_tasks);
    if (server->loop) {
        ifd_completions_drain(&server->completions);
    }
    ifd_repo_destroy(server->repo);
    if (server->loop) {
        ifd_completions_drain(&server->completions); /* the watchdog's probes */
    }
    ifd_watchdog_destroy(server->watchdog);
    ifd_notify_close(&server->notify);
    ifd_service_destroy(server->service);
    ifd_engine_destroy(server->engine);
    ifd_metrics_destroy(server->metrics);
    ifd_timer_destroy(server->stop_timer);
    ifd_timer_destroy(server->poll_timer);
    ifd_loop_destroy(server->loop);
    ifd_release(server->options.alloc, server, sizeof(*server));
}

uint16_t ifd_server_port(const struct ifd_server *server)
{
    return server->port;
}

uint16_t ifd_server_metrics_port(const struct ifd_server *server)
{
    return server->metrics_port;
}

bool ifd_server_is_loaded(const struct ifd_server *server)
{
    return atomic_load(&server->is_loaded);
}
