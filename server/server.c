/* Composition root: owns the order of start and stop. The parts are made in server_parts.c. */
#include "server/server_impl.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define STOP_POLL_MS 20
/* Time for answers to leave after the exit timeout. */
#define LAST_ANSWERS_MS 2000
/* Time for a load to end at its next step after the last answer. */
#define LAST_LOADS_MS 1000

/* ---- stopping ---- */

/* All requests are answered. */
static void end_drained(struct ifd_server *server)
{
    const bool is_late = ifd_loop_now_ms(server->loop) - server->drained_ms > LAST_LOADS_MS;
    if (!server->options.may_leave || ifd_tasks_are_idle(server->load_tasks) || is_late) {
        ifd_loop_stop(server->loop);
    }
}

static void on_idle(void *arg)
{
    struct ifd_server *server = arg;
    server->is_drained = true;
    server->drained_ms = ifd_loop_now_ms(server->loop);
    ifd_timer_start(server->stop_timer, STOP_POLL_MS, STOP_POLL_MS);
    end_drained(server);
}

static void on_stop_timer(void *arg)
{
    struct ifd_server *server = arg;
    uint64_t now_ms = ifd_loop_now_ms(server->loop);
    if (server->is_drained) {
        end_drained(server);
        return;
    }
    if (!server->is_cancelled) {
        ifd_log_warn(server->options.log, "exit timeout passed, waiting requests are refused",
                     "open=%u", ifd_http_open_count(server->http));
        server->is_cancelled = true;
        server->cancelled_ms = now_ms;
        ifd_service_cancel_all(server->service);
        ifd_timer_start(server->stop_timer, STOP_POLL_MS, STOP_POLL_MS);
        return;
    }
    /* Running work cannot be stopped, only awaited or left. */
    if (now_ms - server->cancelled_ms > LAST_ANSWERS_MS &&
        (server->options.may_leave || ifd_http_waiting_count(server->http) == 0)) {
        ifd_loop_stop(server->loop);
    }
}

void ifd_server_begin_stop(struct ifd_server *server)
{
    if (server->is_stopping) {
        return; /* a second signal changes nothing */
    }
    server->is_stopping = true;
    ifd_log_info(server->options.log, "server is stopping", "open=%u",
                 ifd_http_open_count(server->http));
    ifd_notify_send(&server->notify, "STOPPING=1\nSTATUS=stopping");
    ifd_quarantine_absolve(server->quarantine);
    ifd_service_stopping(server->service);
    ifd_timer_stop(server->poll_timer);
    ifd_timer_start(server->stop_timer, (uint64_t)server->options.config->exit_timeout_secs * 1000,
                    0);
    ifd_http_drain(server->http, on_idle, server);
}

/* ---- signals, and wake-ups from other threads ---- */

static void begin_reread(struct ifd_server *server)
{
    if (!server->is_stopping) {
        ifd_notify_send(&server->notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
                        (unsigned long long)(ifd_monotonic_ns() / 1000));
        ifd_reread_begin(&server->reread);
    }
}

static void apply_to_http(struct ifd_server *server)
{
    const struct ifd_http_options http = ifd_server_http_options(server);
    ifd_http_change_limits(server->http, &http);
}

static void apply_to_api(struct ifd_server *server)
{
    ifd_api_change_max_input(server->api, (size_t)server->options.config->http_max_input_size);
}

unsigned ifd_server_log_levels(const struct ifd_config *config)
{
    return config->log_verbose > 0 ? IFD_LOG_UP_TO(IFD_LOG_DEBUG) : IFD_LOG_UP_TO(IFD_LOG_INFO);
}

static void apply_to_log(struct ifd_server *server)
{
    server->options.log->levels = ifd_server_log_levels(server->options.config);
}

/* Applies changed settings; appliers: the set of those that are due. Others are not called: log
 * levels set by the API stay. */
static void settings_applied(void *context, unsigned appliers)
{
    static void (*const apply[IFD_APPLIER_COUNT])(struct ifd_server * server) = {
        [IFD_APPLIER_USE] = NULL,
        [IFD_APPLIER_HTTP] = apply_to_http,
        [IFD_APPLIER_API] = apply_to_api,
        [IFD_APPLIER_LOG] = apply_to_log,
    };
    struct ifd_server *server = context;
    for (unsigned i = 0; i < IFD_APPLIER_COUNT; i++) {
        if ((appliers >> i & 1) && apply[i]) {
            apply[i](server);
        }
    }
    if (server->options.config->control_mode == IFD_CONTROL_POLL && !server->is_stopping) {
        ifd_repo_poll(server->repo);
    }
}

static void reread_ended(void *context)
{
    struct ifd_server *server = context;
    if (!server->is_stopping && atomic_load(&server->is_loaded)) {
        ifd_server_tell_state(server, "READY=1\n");
    }
}

static void on_signal(void *arg, int signal)
{
    if (signal == SIGHUP) {
        begin_reread(arg);
    } else {
        ifd_server_begin_stop(arg);
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
        ifd_server_begin_stop(server);
    }
}

/* ---- life ---- */

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
                                         .tokens = server->tokens ? &server->tokens : NULL,
                                         .metrics = ifd_metrics_server(server->metrics),
                                         .run_off_loop = ifd_server_run_off_loop,
                                         .applied = settings_applied,
                                         .ended = reread_ended,
                                         .context = server};
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
        code = ifd_server_create_metrics(server, err);
    }
    if (!code) {
        code = ifd_server_create_access_log(server, err);
    }
    if (!code) {
        code = ifd_server_read_tokens(server, err);
    }
    if (!code) {
        code = ifd_server_init_budget(server, err);
    }
    if (!code) {
        code = ifd_server_create_engine(server, err);
    }
    if (!code) {
        code = ifd_server_create_pool(server, err);
    }
    if (!code) {
        code = ifd_server_create_tasks(server, err);
    }
    if (!code) {
        code = ifd_server_create_repo(server, err);
    }
    if (!code) {
        code = ifd_server_create_front(server, err);
    }
    if (!code) {
        code = ifd_server_listen(server, err);
    }
    if (!code) {
        code = ifd_server_listen_metrics(server, err);
    }
    if (!code) {
        init_reread(server);
        code = watch_signals(server, err);
    }
    if (!code) {
        code = ifd_server_create_watchdog(server, err);
    }
    return code ? code : ifd_server_begin_loading(server, err);
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
        ifd_server_finish_start(server);
    }
    ifd_loop_run(server->loop);
    if (server->result && err) {
        *err = server->result_err;
    }
    return server->result;
}

/* Ends what outlives the process: access log, UNIX sockets. */
static void end_outside(struct ifd_server *server)
{
    const struct ifd_config *config = server->options.config;
    ifd_access_log_destroy(server->access_log);
    ifd_listen_remove(config->http_socket, &server->http_file);
    ifd_listen_remove(config->admin_socket, &server->admin_file);
}

bool ifd_server_leave(struct ifd_server *server)
{
    const uint32_t waiting = ifd_http_waiting_count(server->http);
    const bool is_loading = !ifd_tasks_are_idle(server->load_tasks);
    if (!server->options.may_leave || (waiting == 0 && !is_loading)) {
        return false;
    }
    ifd_log_warn(server->options.log, "unfinished work is left behind", "requests=%u is_loading=%d",
                 waiting, is_loading);
    end_outside(server);
    return true;
}

void ifd_server_destroy(struct ifd_server *server)
{
    if (!server) {
        return;
    }
    ifd_http_destroy(server->http);
    end_outside(server);
    ifd_api_destroy(server->api);
    server->is_stopping = server->reread.is_over = true;
    ifd_tasks_destroy(server->json_tasks);
    ifd_tasks_destroy(server->image_tasks);
    ifd_tasks_destroy(server->load_tasks);
    if (server->loop) {
        ifd_completions_drain(&server->completions);
    }
    ifd_watch_destroy(server->notice_watch);
    ifd_repo_destroy(server->repo);
    ifd_pool_destroy(server->pool);
    ifd_quarantine_close(server->quarantine);
    if (server->loop) {
        ifd_completions_drain(&server->completions); /* the watchdog's probe */
    }
    ifd_watchdog_destroy(server->watchdog);
    ifd_notify_close(&server->notify);
    ifd_service_destroy(server->service);
    ifd_engine_destroy(server->engine);
    ifd_metrics_destroy(server->metrics);
    ifd_timer_destroy(server->stop_timer);
    ifd_timer_destroy(server->poll_timer);
    ifd_timer_destroy(server->slack_timer);
    ifd_tokens_destroy(server->tokens);
    ifd_loop_destroy(server->loop);
    ifd_release(server->options.alloc, server->folder,
                server->options.config->repositories.count * sizeof(*server->folder));
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
