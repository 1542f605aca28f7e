/* Makes each part of the server from the settings. */
#include "server/server_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/ops/memory.h"
#include "server/net/listen.h"

#define LOAD_TASKS_MAX    1000000
#define REQUEST_TASKS_MAX 256
/* Memory of a small request. Small requests get the last eighth of the request memory, so that a
 * busy server still answers health checks. */
#define SMALL_REQUEST_BYTES ((size_t)80 * 1024)
/* Enough for some connections with a small request each. */
#define REQUEST_MEMORY_LEAST 1048576u

enum ifd_code ifd_server_create_metrics(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_metrics_options metrics = {.alloc = server->options.alloc,
                                                .version = server->options.program_version,
                                                .triton_names =
                                                    server->options.config->metrics_triton_names};
    return ifd_metrics_create(&metrics, &server->metrics, err);
}

enum ifd_code ifd_server_create_access_log(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    int fd = -1;
    if (config->access_log[0] == '\0') {
        return IFD_OK;
    }
    enum ifd_code code = ifd_access_log_open(config->access_log, &fd, err);
    return code ? code
                : ifd_access_log_create(fd, config->access_log_format == IFD_LINES_JSON,
                                        ifd_metrics_server(server->metrics), server->options.log,
                                        server->options.alloc, &server->access_log, err);
}

static enum ifd_verdict judge(void *context, struct ifd_str authorization,
                              enum ifd_access_class access, struct ifd_str model,
                              struct ifd_str *ret_caller)
{
    const struct ifd_server *server = context;
    enum ifd_verdict verdict =
        ifd_tokens_judge(server->tokens, authorization, access, model, ret_caller);
    if (verdict != IFD_VERDICT_GRANTED) {
        ifd_metric_add(ifd_metrics_server(server->metrics), IFD_METRIC_HTTP_DENIED,
                       (uint32_t)verdict - 1, 1);
    }
    return verdict;
}

enum ifd_code ifd_server_read_tokens(struct ifd_server *server, struct ifd_err *err)
{
    const char *path = server->options.config->token_file;
    server->guard = (struct ifd_guard){.judge = judge, .context = server};
    return path[0] == '\0' ? IFD_OK
                           : ifd_tokens_read(path, server->options.alloc, &server->tokens, err);
}

/* NULL: there are no tokens. */
static const struct ifd_guard *guard_of(const struct ifd_server *server)
{
    return server->tokens ? &server->guard : NULL;
}

enum ifd_code ifd_server_init_budget(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_memory memory = ifd_memory_limit("", 0);
    uint64_t asked = server->options.config->memory_budget;
    server->budget.limit_bytes = asked > 0 ? asked : memory.bytes / 4 * 3;
    uint64_t for_requests = server->options.config->request_memory;
    if (for_requests > 0 && for_requests < REQUEST_MEMORY_LEAST) {
        return ifd_fail(err, IFD_INVALID, "--request-memory: %llu bytes, at least %u are needed",
                        (unsigned long long)for_requests, REQUEST_MEMORY_LEAST);
    }
    for_requests = for_requests > 0 ? for_requests : memory.bytes / 8;
    ifd_quota_init(&server->request_quota, server->options.alloc,
                   for_requests < SIZE_MAX ? (size_t)for_requests : SIZE_MAX, SMALL_REQUEST_BYTES);
    ifd_log_info(server->options.log, "memory budget set", "budget_bytes=%llu source=%s",
                 (unsigned long long)server->budget.limit_bytes,
                 asked > 0 ? "--memory-budget" : memory.source);
    return IFD_OK;
}

/* Refuses unknown backends, and a list of which none can be used, at the start, not with the first
 * model. */
static enum ifd_code check_backends(const struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config_list *list = &server->options.config->backends;
    struct ifd_err why_not = {0};
    uint32_t available = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (ifd_engine_check_backend(server->engine, list->item[i], err)) {
            ifd_err_prefix(err, "--backend");
            return IFD_INVALID;
        }
        available += ifd_engine_open_backend(server->engine, list->item[i], &why_not) == IFD_OK;
    }
    return list->count == 0 || available > 0
               ? IFD_OK
               : ifd_fail(err, IFD_UNAVAILABLE, "--backend: %s", why_not.text);
}

/* A backend that is missing is worth a line; so is code that was loaded. A plugin that is opened
 * later has its line then. */
static void log_backends(const struct ifd_server *server)
{
    const struct ifd_log *log = server->options.log;
    for (uint32_t i = 0; i < ifd_engine_backend_count(server->engine); i++) {
        struct ifd_backend_info info;
        ifd_engine_backend_info(server->engine, i, &info);
        if (!info.available && !info.is_untried) {
            ifd_log_warn(log, info.is_taken ? "backend not available" : "plugin not taken",
                         "name=%s file=%s reason=%s", info.name, info.file, info.reason);
        } else if (info.file[0] != '\0') {
            ifd_log_info(log, "plugin loaded", "name=%s file=%s", info.name, info.file);
        }
    }
}

/* Thread: any. */
static void backend_changed(void *context, const char *backend, const struct ifd_err *reason)
{
    const struct ifd_log *log = context;
    if (reason) {
        ifd_log_error(log, "device lost", "backend=%s reason=%s", backend, reason->text);
    } else {
        ifd_log_info(log, "device works again", "backend=%s", backend);
    }
}

/* Thread: any. */
static void backend_opened(void *context, const char *backend, const struct ifd_err *reason)
{
    const struct ifd_log *log = context;
    if (reason) {
        ifd_log_warn(log, "backend not available", "name=%s reason=%s", backend, reason->text);
    } else {
        ifd_log_info(log, "device opened", "backend=%s", backend);
    }
}

enum ifd_code ifd_server_create_engine(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    const struct ifd_engine_options engine = {
        .alloc = o->alloc,
        .backends = o->backends,
        .backend_count = o->backend_count,
        .plugin_folders = o->config->backend_paths.item,
        .plugin_folder_count = o->config->backend_paths.count,
        .finds_plugins = o->finds_plugins,
        .backend_options = o->config->backend_options.item,
        .backend_option_count = o->config->backend_options.count,
        .exact = o->config->exact,
        .fast = o->config->fast,
        .cache_folder = o->config->cache_dir[0] != '\0' ? o->config->cache_dir : NULL,
        .cache_bytes = (uint64_t)o->config->cache_size_mb << 20,
        .backend_changed = backend_changed,
        .backend_opened = backend_opened,
        .backend_context = o->log};
    enum ifd_code code = ifd_engine_create(&engine, &server->engine, err);
    if (code) {
        return code;
    }
    log_backends(server);
    if (o->config->performance_hint != IFD_HINT_LATENCY) {
        ifd_log_warn(o->log, "--performance-hint has no effect any more", "value=throughput");
    }
    const struct ifd_cpu *cpu = ifd_engine_cpu(server->engine);
    uint32_t cores = cpu->cores > 0 ? cpu->cores : 1;
    server->served = (struct ifd_served_options){
        .alloc = o->alloc,
        .request_alloc = &server->request_quota.alloc,
        .log = o->log,
        .cores = cores,
        .threads = o->config->threads,
        .max_threads = IFD_SERVER_THREADS_MAX,
        .metrics = server->metrics,
        .warms_up = o->config->warms_up,
        .warm_up_ns = (uint64_t)o->config->warm_up_timeout_ms * 1000000,
        .budget = &server->budget,
        .max_queue_size = o->config->max_queue_size,
        .is_stopping = &server->is_stopping,
    };
    return check_backends(server, err);
}

enum ifd_code ifd_server_create_pool(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_pool_options pool = {.alloc = server->options.alloc,
                                          .clock = ifd_clock_system(),
                                          .completions = &server->completions,
                                          .cores = server->served.cores};
    const enum ifd_code code = ifd_pool_create(&pool, &server->pool, err);
    server->served.pool = server->pool;
    return code;
}

enum ifd_code ifd_server_create_tasks(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    enum ifd_code code = ifd_tasks_create("load", o->config->model_load_threads, LOAD_TASKS_MAX,
                                          &server->completions, o->alloc, &server->load_tasks, err);
    if (!code) {
        code = ifd_tasks_create("image", o->config->image_threads, REQUEST_TASKS_MAX,
                                &server->completions, o->alloc, &server->image_tasks, err);
    }
    if (!code) {
        code = ifd_tasks_create("json", o->config->image_threads, REQUEST_TASKS_MAX,
                                &server->completions, o->alloc, &server->json_tasks, err);
    }
    return code;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Releases memory after large requests; also the callback of slack_timer. */
static void look_at_memory(void *arg)
{
    struct ifd_server *server = arg;
    const size_t used =
        atomic_load_explicit(&server->request_quota.used_bytes, memory_order_relaxed);
    const enum ifd_slack_turn turn =
        ifd_slack_look(&server->slack, used, ifd_loop_now_ms(server->loop));
    struct ifd_err err = {0};
    if (turn == IFD_SLACK_BEGINS) {
        ifd_timer_start(server->slack_timer, IFD_SLACK_MS, 0);
    } else if (turn == IFD_SLACK_LASTS && /* every load task trims the memory */
               ifd_server_run_off_loop(server, nothing, nothing, NULL, &err)) {
        ifd_log_debug(server->options.log, "memory trim failed", "reason=%s", err.text);
    }
}

static void after_turn(void *arg)
{
    struct ifd_server *server = arg;
    ifd_service_flush(server->service);
    look_at_memory(server);
}

struct ifd_http_options ifd_server_http_options(struct ifd_server *server)
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
        .after_turn_arg = server,
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

static uint32_t connection_count(void *arg)
{
    const struct ifd_server *server = arg;
    return ifd_http_connection_count(server->http);
}

static enum ifd_code check_origins(const struct ifd_config_list *origins, struct ifd_err *err)
{
    for (uint32_t i = 0; i < origins->count; i++) {
        if (!ifd_cors_is_origin(origins->item[i])) {
            return ifd_fail(err, IFD_INVALID,
                            "--cors-origin: \"%.80s\" is neither * nor an origin as "
                            "https://host:port, without a path",
                            origins->item[i]);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_server_create_front(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_server_options *o = &server->options;
    const struct ifd_service_options service = {.alloc = &server->request_quota.alloc,
                                                .loop = server->loop,
                                                .config = o->config,
                                                .program_version = o->program_version,
                                                .completions = &server->completions,
                                                .pool = server->pool,
                                                .image_tasks = server->image_tasks,
                                                .json_tasks = server->json_tasks,
                                                .repo = server->repo,
                                                .engine = server->engine,
                                                .log = o->log,
                                                .metrics = ifd_metrics_server(server->metrics),
                                                .cores = server->served.cores,
                                                .connections = connection_count,
                                                .connections_arg = server};
    enum ifd_code code = check_origins(&o->config->cors_origins, err);
    if (!code) {
        code = ifd_service_create(&service, &server->service, err);
    }
    if (code) {
        return code;
    }
    const struct ifd_api_options api = {
        .alloc = o->alloc,
        .ops = ifd_service_ops(ifd_server_is_explicit(server)),
        .admin_on_http = o->config->admin_on_http,
        .guard = guard_of(server),
        .service = server->service,
        .vision_detection = o->config->vision_detection,
        .vision_face = o->config->vision_face,
        .has_console = o->config->console,
        .has_vision_key = o->config->vision_api_key,
        .cors = {.origin = o->config->cors_origins.item, .count = o->config->cors_origins.count},
        .max_input_bytes = (size_t)o->config->http_max_input_size};
    code = ifd_api_create(&api, &server->api, err);
    if (code) {
        return code;
    }
    code = ifd_timer_create(server->loop, look_at_memory, server, &server->slack_timer, err);
    if (code) {
        return code;
    }
    const struct ifd_http_options http = ifd_server_http_options(server);
    return ifd_http_create(&http, &server->http, err);
}

/* Refuses changes of the server by everybody in a network. */
static enum ifd_code check_admin(const struct ifd_server *server, int fd, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    if (!config->admin_on_http || server->tokens || ifd_listen_is_local(fd)) {
        return IFD_OK;
    }
    return ifd_fail(err, IFD_INVALID,
                    "--admin-on-http on address %.60s would let everyone there change the server; "
                    "wanted is --token-file, --admin-socket, or an address of this machine only "
                    "(127.0.0.1)",
                    config->http_address);
}

enum ifd_code ifd_server_listen(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    int fd = -1;
    enum ifd_code code =
        ifd_listen_tcp(config->http_address, (uint16_t)config->http_port, &fd, &server->port, err);
    if (!code) {
        code = check_admin(server, fd, err);
        if (code) {
            (void)close(fd);
        }
    }
    if (!code) {
        code = ifd_http_serve(server->http, fd, false, err);
    }
    if (!code && config->http_socket[0] != '\0') {
        code = ifd_listen_unix(config->http_socket, 0660, &fd, &server->http_file, err);
        if (!code) {
            code = ifd_http_serve(server->http, fd, false, err);
        }
    }
    if (!code && config->admin_socket[0] != '\0') {
        code = ifd_listen_unix(config->admin_socket, 0600, &fd, &server->admin_file, err);
        if (!code) {
            code = ifd_http_serve(server->http, fd, true, err);
        }
    }
    return code;
}

const char *ifd_server_metrics_address(const struct ifd_config *config)
{
    return config->metrics_address[0] != '\0' ? config->metrics_address : config->http_address;
}

enum ifd_code ifd_server_listen_metrics(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    int fd = -1;
    if (!config->allow_metrics) {
        return IFD_OK;
    }
    enum ifd_code code =
        ifd_listen_tcp(ifd_server_metrics_address(config), (uint16_t)config->metrics_port, &fd,
                       &server->metrics_port, err);
    if (code) {
        ifd_err_prefix(err, "metrics (--metrics-port, --allow-metrics)");
        return code;
    }
    server->scrape = (struct ifd_scrape){
        .alloc = server->options.alloc,
        .metrics = server->metrics,
        .repo = server->repo,
        .engine = server->engine,
        .budget = &server->budget,
        .quota = &server->request_quota,
        .guard = guard_of(server),
    };
    return ifd_http_serve_page(server->http, fd, ifd_scrape_page, &server->scrape, err);
}

enum ifd_code ifd_server_create_watchdog(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_watchdog_options dog = {.alloc = server->options.alloc,
                                             .loop = server->loop,
                                             .pool = server->pool,
                                             .log = server->options.log,
                                             .notify = &server->notify,
                                             .period_us = server->options.watchdog_us};
    if (!ifd_notify_open(&server->notify, server->options.notify_socket)) {
        ifd_log_warn(server->options.log, "service manager cannot be reached", "socket=%s",
                     server->options.notify_socket);
    }
    return dog.period_us > 0 ? ifd_watchdog_create(&dog, &server->watchdog, err) : IFD_OK;
}
