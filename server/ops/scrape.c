/* The metrics page. */
#include "server/ops/scrape.h"

#include <string.h>

#include "engine/base/str.h"
#include "server/obs/process.h"
#include "server/serve/served.h"

#define TEXT_MAX_BYTES ((size_t)256 << 20)

/* ---- sampling ---- */

static void sample_process(struct ifd_metric_set *set)
{
    struct ifd_process process;
    ifd_process_read(&process);
    ifd_metric_put(set, IFD_METRIC_PROCESS_CPU, 0, process.cpu_ns);
    ifd_metric_put(set, IFD_METRIC_PROCESS_OPEN_FDS, 0, process.open_fds);
    ifd_metric_put(set, IFD_METRIC_PROCESS_MAX_FDS, 0, process.max_fds);
    ifd_metric_put(set, IFD_METRIC_PROCESS_VIRTUAL, 0, process.virtual_bytes);
    ifd_metric_put(set, IFD_METRIC_PROCESS_RESIDENT, 0, process.resident_bytes);
    ifd_metric_put(set, IFD_METRIC_PROCESS_THREADS, 0, process.threads);
    ifd_metric_put(set, IFD_METRIC_PROCESS_START, 0, process.start_ns);
}

static void sample_version(struct ifd_served *served)
{
    uint64_t queued = ifd_lane_count(served->lane);
    ifd_metric_put(served->metrics, IFD_METRIC_QUEUED, 0, queued);
    ifd_metric_put(served->metrics, IFD_METRIC_QUEUE_LIMIT, 0, ifd_lane_capacity(served->lane));
    ifd_metric_put(served->metrics, IFD_METRIC_FRAMES_WAITING, 0, served->sources.waiting);
    ifd_metric_put(served->metrics, IFD_METRIC_NV_PENDING, 0, queued);
}

/* Sets the gauge of a version that serves in place of newer content. */
static void sample_stand_in(const struct ifd_repo_model *model, const struct ifd_version *version,
                            struct ifd_metric_set *metrics)
{
    const bool is_newest = model->ready_count > 0 &&
                           strcmp(model->ready[model->ready_count - 1], version->number_text) == 0;
    const bool stands_in = is_newest && model->failed_reason[0] != '\0';
    for (uint32_t code = 0; code < IFD_CODE_COUNT; code++) {
        ifd_metric_put(metrics, IFD_METRIC_STAND_IN, code,
                       stands_in && code == (uint32_t)model->failed_code);
    }
}

static void sample_models(const struct ifd_repo *repo, struct ifd_metric_set *set)
{
    uint64_t state[IFD_MODEL_STATE_COUNT] = {0}, outdated = 0, awaiting = 0, waited_ns = 0;
    for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
        const struct ifd_repo_model *model = ifd_repo_model_at(repo, i);
        state[IFD_MODEL_LOADING] += model->is_loading;
        outdated += model->failed_reason[0] != '\0';
        awaiting += ifd_repo_awaits(repo, model, &waited_ns) != NULL;
    }
    struct ifd_repo_walk at = {.model = NULL};
    while (ifd_repo_next(repo, &at)) {
        state[at.version->state]++;
        if (at.model && at.version->served) {
            struct ifd_served *served = at.version->served;
            sample_version(served);
            sample_stand_in(at.model, at.version, served->metrics);
        }
    }
    ifd_metric_put(set, IFD_METRIC_OUTDATED, 0, outdated);
    ifd_metric_put(set, IFD_METRIC_AWAITING_UPLOAD, 0, awaiting);
    for (uint32_t i = 0; i < IFD_MODEL_STATE_COUNT; i++) {
        ifd_metric_put(set, IFD_METRIC_VERSIONS, i, state[i]);
    }
}

static void sample_backends(const struct ifd_engine *engine, struct ifd_metric_set *set)
{
    uint64_t degraded = 0, failures = 0;
    for (uint32_t i = 0; i < ifd_engine_backend_count(engine); i++) {
        struct ifd_backend_info info;
        ifd_engine_backend_info(engine, i, &info);
        degraded += info.degraded ? 1 : 0;
        failures += info.failures;
    }
    ifd_metric_put(set, IFD_METRIC_BACKENDS_DEGRADED, 0, degraded);
    ifd_metric_put(set, IFD_METRIC_BACKEND_FAILURES, 0, failures);
}

static void sample_quota(const struct ifd_quota *quota, struct ifd_metric_set *set)
{
    ifd_metric_put(set, IFD_METRIC_REQUEST_MEMORY_BUDGET, 0, quota->limit_bytes);
    ifd_metric_put(set, IFD_METRIC_REQUEST_MEMORY_HELD, 0, quota->used_bytes);
    ifd_metric_put(set, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_REQUEST_MEMORY, quota->refusals);
}

static void sample_budget(const struct ifd_budget *budget, struct ifd_metric_set *set)
{
    ifd_metric_put(set, IFD_METRIC_MEMORY_BUDGET, 0, budget->limit_bytes);
    ifd_metric_put(set, IFD_METRIC_MEMORY_HELD, 0, budget->used_bytes);
    ifd_metric_put(set, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_MEMORY, budget->refusals);
}

/* ---- the page ---- */

static void answer(struct ifd_http_exchange *exchange, int status, const char *type,
                   const char *text, size_t size)
{
    exchange->response = (struct ifd_http_response){
        .status = status,
        .header = {{"Content-Type", type}, {"Allow", "GET, HEAD"}},
        .header_count = status == 405 ? 2 : 1,
        .piece = {{.data = text, .size = size}},
        .piece_count = 1,
    };
}

static void answer_text(struct ifd_http_exchange *exchange, int status, const char *text)
{
    answer(exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

void ifd_scrape_page(void *arg, struct ifd_http_exchange *exchange)
{
    const struct ifd_scrape *scrape = arg;
    struct ifd_buf buf;
    if (!ifd_guard_admits(scrape->guard, exchange, exchange->header(exchange, "Authorization"),
                          IFD_ACCESS_OBSERVE, (struct ifd_str){0})) {
        return;
    }
    if (!ifd_str_equal(exchange->path, "/metrics")) {
        answer_text(exchange, 404, "metrics are at /metrics\n");
        return;
    }
    if (exchange->method != IFD_HTTP_GET && exchange->method != IFD_HTTP_HEAD) {
        answer_text(exchange, 405, "metrics can only be read\n");
        return;
    }
    sample_process(ifd_metrics_server(scrape->metrics));
    sample_models(scrape->repo, ifd_metrics_server(scrape->metrics));
    sample_backends(scrape->engine, ifd_metrics_server(scrape->metrics));
    sample_budget(scrape->budget, ifd_metrics_server(scrape->metrics));
    sample_quota(scrape->quota, ifd_metrics_server(scrape->metrics));
    ifd_buf_init(&buf, scrape->alloc, TEXT_MAX_BYTES);
    ifd_metrics_write(scrape->metrics, &buf);
    char *text =
        buf.failed ? NULL : ifd_arena_text(exchange->arena, (const char *)buf.data, buf.size);
    if (text) {
        answer(exchange, 200, IFD_METRICS_CONTENT_TYPE, text, buf.size);
    } else {
        answer_text(exchange, 503, "no memory for the metrics\n");
    }
    ifd_buf_finish(&buf);
}
