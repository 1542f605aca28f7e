/* What the API asks for: requests become jobs, jobs answers. */
#include "server/service_impl.h"

#include <string.h>
#include <time.h>

#include "engine/base/str.h"
#include "server/served.h"

#define EXPIRE_MS      5
#define SPARE_JOBS     256
#define JOB_KEEP_BYTES ((size_t)1 << 16)

struct service_job {
    struct ifd_job job; /* first: the queue gives its address back */
    struct ifd_service *service;
    struct ifd_infer_request *request;
    struct ifd_version *version;
    bool is_cancelled;
    struct service_job *spare;
};

/* ---- jobs ---- */

static struct service_job *take_job(struct ifd_service *service)
{
    struct service_job *job = service->spare;
    if (job) {
        service->spare = job->spare;
        service->spare_count--;
        return job;
    }
    job = ifd_acquire_zeroed(service->options.alloc, 1, sizeof(*job));
    if (job) {
        job->service = service;
    }
    return job;
}

static void give_job(struct service_job *job)
{
    struct ifd_service *service = job->service;
    const struct ifd_alloc *alloc = service->options.alloc;
    if (job->job.memory_bytes > JOB_KEEP_BYTES || service->spare_count >= SPARE_JOBS) {
        ifd_release_tensor(alloc, job->job.memory, job->job.memory_bytes);
        job->job.memory = NULL;
        job->job.memory_bytes = 0;
    }
    if (service->spare_count >= SPARE_JOBS) {
        ifd_release(alloc, job, sizeof(*job));
        return;
    }
    job->request = NULL;
    job->spare = service->spare;
    service->spare = job;
    service->spare_count++;
}

static void add(struct ifd_duration_stat *stat, uint64_t from_ns, uint64_t to_ns)
{
    stat->count++;
    stat->ns += to_ns > from_ns ? to_ns - from_ns : 0;
}

static uint64_t wall_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* One execution of a batch; the table keeps the first sizes that came. */
static void count_batch(struct ifd_model_stats *stats, const struct ifd_job *job)
{
    uint32_t i = 0;
    while (i < stats->batch_count && stats->batch[i].batch_size != (uint64_t)job->run_batch) {
        i++;
    }
    if (i == sizeof(stats->batch) / sizeof(stats->batch[0])) {
        return;
    }
    if (i == stats->batch_count) {
        stats->batch_count++;
        stats->batch[i].batch_size = (uint64_t)job->run_batch;
    }
    add(&stats->batch[i].compute_input, job->started_ns, job->started_ns);
    add(&stats->batch[i].compute_infer, job->started_ns, job->computed_ns);
    add(&stats->batch[i].compute_output, job->computed_ns, job->finished_ns);
}

/* The stages of a job that ran, well or not. */
static void count_stages(struct ifd_metric_set *metrics, const struct ifd_job *job)
{
    if (job->finished_ns == 0) {
        return;
    }
    ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_QUEUE,
                       job->started_ns - job->queued_ns);
    ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_COMPUTE,
                       job->finished_ns - job->started_ns);
    if (job->is_run_leader && job->code == IFD_OK) {
        ifd_metric_observe(metrics, IFD_METRIC_BATCH_SIZE, 0, (uint64_t)job->run_batch);
    }
}

/* For a page of metrics, whose series outlive the version that its successor of the same number replaces. */
static void count_success(struct ifd_metric_set *metrics, const struct ifd_job *job,
                          uint64_t received_ns)
{
    const uint64_t batch = (uint64_t)job->batch, runs = job->is_run_leader;
    ifd_metric_add(metrics, IFD_METRIC_INFERENCES, 0, batch);
    ifd_metric_add(metrics, IFD_METRIC_EXECUTIONS, 0, runs);
    ifd_metric_add(metrics, IFD_METRIC_NV_SUCCESS, 0, 1);
    ifd_metric_add(metrics, IFD_METRIC_NV_COUNT, 0, batch);
    ifd_metric_add(metrics, IFD_METRIC_NV_EXEC_COUNT, 0, runs);
    ifd_metric_add(metrics, IFD_METRIC_NV_REQUEST, 0, job->finished_ns - received_ns);
    ifd_metric_add(metrics, IFD_METRIC_NV_QUEUE, 0, job->started_ns - job->queued_ns);
    ifd_metric_add(metrics, IFD_METRIC_NV_INFER, 0, job->computed_ns - job->started_ns);
    ifd_metric_add(metrics, IFD_METRIC_NV_OUTPUT, 0, job->finished_ns - job->computed_ns);
}

/* A request that came as far as the queue, or nearly, and has no result. */
static void count_failure(struct ifd_served *served, uint64_t received_ns, enum ifd_code code)
{
    bool is_refused = code == IFD_BUSY || code == IFD_DEADLINE || code == IFD_UNAVAILABLE;
    enum ifd_nv_reason reason = is_refused              ? IFD_NV_REJECTED
                                : code == IFD_CANCELLED ? IFD_NV_CANCELED
                                                        : IFD_NV_BACKEND;
    add(&served->stats.fail, received_ns, ifd_monotonic_ns());
    ifd_metric_add(served->metrics, IFD_METRIC_NV_FAILURE, (uint32_t)reason, 1);
}

static void count(struct service_job *job)
{
    struct ifd_served *served = job->version->served;
    struct ifd_model_stats *stats = &served->stats;
    const struct ifd_job *j = &job->job;
    count_stages(served->metrics, j);
    if (j->code == IFD_DEADLINE) {
        ifd_metric_add(job->service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE_TIME,
                       1);
    }
    uint64_t received_ns = job->request->received_ns;
    if (j->code) {
        count_failure(served, received_ns, j->code);
        return;
    }
    count_success(served->metrics, j, received_ns);
    stats->last_inference_ms = wall_ms();
    stats->inference_count += (uint64_t)j->batch;
    ifd_pulse_learn(&served->pulse, j->run_batch, j->finished_ns - j->started_ns);
    add(&stats->success, received_ns, j->finished_ns);
    add(&stats->queue, j->queued_ns, j->started_ns);
    add(&stats->compute_input, j->started_ns, j->started_ns);
    add(&stats->compute_infer, j->started_ns, j->computed_ns);
    add(&stats->compute_output, j->computed_ns, j->finished_ns);
    if (j->is_run_leader) {
        stats->execution_count++;
        count_batch(stats, j);
    }
}

static void finish(struct ifd_completion *completion)
{
    struct service_job *job = (struct service_job *)completion; /* first member of the first */
    struct ifd_infer_request *request = job->request;
    ifd_ahead_done(&job->service->ahead);
    count(job);
    job->service->deadline_jobs -= job->job.deadline_ns > 0;
    if (!job->is_cancelled && job->job.code == IFD_OK) {
        request->done(request, IFD_OK, NULL);
        return; /* the job stays with the request: it holds the outputs */
    }
    struct ifd_err err = job->job.err;
    enum ifd_code code = job->job.code;
    if (job->is_cancelled) {
        code = ifd_fail(&err, IFD_CANCELLED, "the client went away");
    }
    request->service_private = NULL;
    give_job(job);
    request->done(request, code, &err);
}

/* Answers a list of jobs that never ran. */
static void fail_list(struct ifd_job *list, enum ifd_code code, const char *text)
{
    while (list) {
        struct ifd_job *next = list->next;
        list->next = NULL;
        list->code = ifd_fail(&list->err, code, "%s", text);
        finish(&list->completion);
        list = next;
    }
}

/* Calls fn for the queue of every version that runs. */
static void each_queue(struct ifd_service *service,
                       void (*fn)(struct ifd_service *service, struct ifd_queue *queue))
{
    const struct ifd_repo *repo = service->options.repo;
    for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
        const struct ifd_repo_model *model = ifd_repo_model_at(repo, i);
        for (uint32_t k = 0; k < model->version_count; k++) {
            struct ifd_served *served = model->version[k]->served;
            if (served) {
                fn(service, &served->queue);
            }
        }
    }
    for (const struct ifd_version *v = ifd_repo_draining(repo); v; v = v->next) {
        fn(service, &((struct ifd_served *)v->served)->queue);
    }
}

static void expire_queue(struct ifd_service *service, struct ifd_queue *queue)
{
    (void)service;
    fail_list(ifd_queue_expire(queue), IFD_DEADLINE, "Request timeout expired");
}

static void cancel_queue(struct ifd_service *service, struct ifd_queue *queue)
{
    (void)service;
    ifd_queue_close(queue);
    fail_list(ifd_queue_clear(queue), IFD_UNAVAILABLE,
              "Server is stopping, the request was not run");
}

static void expire(void *arg)
{
    struct ifd_service *service = arg;
    each_queue(service, expire_queue);
    if (service->deadline_jobs == 0) {
        ifd_timer_stop(service->expire);
    }
}

/* ---- inference ---- */

/* When the request must have begun, by its level's policy, the client's wish, or the server's default; 0: never too late. */
static uint64_t deadline_of(const struct ifd_service *service, const struct ifd_model_desc *desc,
                            const struct ifd_queue_policy_info *policy,
                            const struct ifd_infer_request *request)
{
    uint64_t timeout_us = policy->default_timeout_us;
    /* A model without dynamic_batching has no policy that could forbid the client's own limit. */
    bool may_shorten = !desc->dynamic_batching || policy->allow_timeout_override;
    if (may_shorten && request->timeout_us > 0 &&
        (timeout_us == 0 || request->timeout_us < timeout_us)) {
        timeout_us = request->timeout_us;
    }
    if (timeout_us == 0) {
        timeout_us = (uint64_t)service->options.config->default_timeout_ms * 1000;
    }
    if (timeout_us == 0 || timeout_us > UINT64_MAX / 2000) {
        return 0;
    }
    return ifd_monotonic_ns() + timeout_us * 1000;
}

static enum ifd_code level_of(const struct ifd_model_desc *desc, uint64_t priority,
                              uint32_t *ret_level, struct ifd_err *err)
{
    if (desc->priority_levels == 0) {
        *ret_level = 0;
        return IFD_OK;
    }
    if (priority > desc->priority_levels) {
        return ifd_fail(err, IFD_INVALID, "priority %llu is not between 1 and %u",
                        (unsigned long long)priority, desc->priority_levels);
    }
    uint64_t level = priority > 0 ? priority : desc->default_priority_level;
    *ret_level = (uint32_t)(level > 0 ? level - 1 : 0);
    return IFD_OK;
}

/* How requests of a level wait. */
static const struct ifd_queue_policy_info *policy_of(const struct ifd_served *served,
                                                     uint32_t level,
                                                     struct ifd_queue_bound **ret_bound)
{
    *ret_bound = NULL;
    for (uint32_t i = 0; i < served->desc.level_policy_count; i++) {
        if (served->desc.level_policy[i].priority == level + 1) {
            *ret_bound = served->bound[i].capacity > 0 ? &served->bound[i] : NULL;
            return &served->desc.level_policy[i].policy;
        }
    }
    return &served->desc.queue_policy;
}

void ifd_service_flush(struct ifd_service *service)
{
    if (service->pushed) {
        ifd_queue_wake(service->pushed);
        service->pushed = NULL;
    }
}

/* Without a worker. Nothing is faster, but meanwhile the loop does nothing else. */
static bool runs_here(const struct ifd_service *service, const struct ifd_served *served,
                      int64_t batch)
{
    return ifd_workers_are_instant(served->workers)
               ? service->options.config->inline_identity
               : served->pulse.batch == batch &&
                     ifd_ahead_runs_here(&service->ahead, &served->pulse);
}

static enum ifd_code submit(struct ifd_service *service, struct ifd_infer_request *request,
                            struct ifd_err *err)
{
    struct ifd_version *version = (struct ifd_version *)request->model;
    struct ifd_served *served = version->served;
    uint32_t level = 0;
    if (service->is_cancelling) {
        return ifd_fail(err, IFD_UNAVAILABLE, "Server is stopping, the request was not run");
    }
    enum ifd_code code = level_of(&served->desc, request->priority, &level, err);
    if (code) {
        return code;
    }
    struct ifd_queue_bound *bound = NULL;
    const struct ifd_queue_policy_info *policy = policy_of(served, level, &bound);
    struct service_job *job = take_job(service);
    if (!job) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a request");
    }
    job->request = request;
    job->version = version;
    job->is_cancelled = false;
    job->job = (struct ifd_job){
        .completion = {.fn = finish},
        .input = request->input,
        .output = request->output,
        .wanted = request->wanted,
        .input_count = served->desc.input_count,
        .output_count = served->desc.output_count,
        .batch = request->batch,
        .level = level,
        .bound = bound,
        .deadline_ns = deadline_of(service, &served->desc, policy, request),
        .lower_at_deadline = !policy->reject,
        .memory = job->job.memory,
        .memory_bytes = job->job.memory_bytes,
    };
    /* set before the push: a worker may be done with it before push returns */
    request->service_private = job;
    service->deadline_jobs += job->job.deadline_ns > 0;
    if (runs_here(service, served, request->batch) &&
        ifd_workers_run_here(served->workers, &job->job)) {
        finish(&job->job.completion);
        return IFD_OK;
    }
    code = ifd_queue_push(&served->queue, &job->job, err);
    if (code) {
        request->service_private = NULL;
        service->deadline_jobs -= job->job.deadline_ns > 0;
        count_failure(served, request->received_ns, code);
        give_job(job);
        ifd_metric_add(service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE,
                       code == IFD_BUSY);
        return code;
    }
    if (service->pushed != &served->queue) {
        ifd_service_flush(service);
        service->pushed = &served->queue;
    }
    ifd_ahead_run(&service->ahead, served->workers, &served->pulse, request->batch);
    if (service->deadline_jobs > 0 && !ifd_timer_is_active(service->expire)) {
        ifd_timer_start(service->expire, EXPIRE_MS, EXPIRE_MS);
    }
    return IFD_OK;
}

static bool cancel(struct ifd_service *service, struct ifd_infer_request *request)
{
    struct service_job *job = request->service_private;
    (void)service;
    if (!job) {
        return true;
    }
    struct ifd_served *served = job->version->served;
    if (!ifd_queue_remove(&served->queue, &job->job)) {
        job->is_cancelled = true;
        return false;
    }
    job->service->deadline_jobs -= job->job.deadline_ns > 0;
    count_failure(served, request->received_ns, IFD_CANCELLED);
    request->service_private = NULL;
    give_job(job);
    return true;
}

static void release_outputs(struct ifd_service *service, struct ifd_infer_request *request)
{
    (void)service;
    if (request->service_private) {
        give_job(request->service_private);
        request->service_private = NULL;
    }
}

_Static_assert((int)IFD_OUTCOME_COUNT == IFD_METRIC_OUTCOMES, "obs names every outcome");

static void begun(struct ifd_service *service, struct ifd_model_ref *ref)
{
    const struct ifd_served *served = ((struct ifd_version *)ref)->served;
    ifd_ahead_begun(&service->ahead);
    ifd_metric_add(served->metrics, IFD_METRIC_ACCEPTED, 0, 1);
    ifd_metric_add(served->metrics, IFD_METRIC_INFLIGHT, 0, 1);
    ifd_workers_expect(served->workers);
}

static void coming(struct ifd_service *service, struct ifd_model_ref *ref)
{
    const struct ifd_served *served = ((struct ifd_version *)ref)->served;
    ifd_ahead_body(&service->ahead, served->workers, &served->pulse);
}

static void ended(struct ifd_service *service, struct ifd_model_ref *ref,
                  const struct ifd_request_end *end)
{
    struct ifd_metric_set *metrics =
        ((struct ifd_served *)((struct ifd_version *)ref)->served)->metrics;
    ifd_ahead_ended(&service->ahead, end->ended_ns);
    ifd_metric_add(metrics, IFD_METRIC_INFLIGHT, 0, (uint64_t)-1);
    ifd_metric_add(metrics, IFD_METRIC_REQUESTS, (uint32_t)end->outcome, 1);
    ifd_metric_observe(metrics, IFD_METRIC_REQUEST_SECONDS, 0, end->ended_ns - end->received_ns);
    if (end->decoded_ns > 0) {
        ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_DECODE,
                           end->decoded_ns - end->handled_ns);
    }
    if (end->encoded_ns > 0) {
        ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_ENCODE,
                           end->encoded_ns - end->done_ns);
    }
}

/* ---- the server ---- */

static const struct ifd_server_info *info(struct ifd_service *service)
{
    return &service->info;
}

static bool is_live(struct ifd_service *service)
{
    (void)service;
    return true;
}

static enum ifd_code is_ready(struct ifd_service *service, struct ifd_err *why_not)
{
    const struct ifd_repo *repo = service->options.repo;
    if (service->is_stopping) {
        return ifd_fail(why_not, IFD_UNAVAILABLE, "Server exiting");
    }
    if (ifd_repo_loading_count(repo) > 0) {
        return ifd_fail(why_not, IFD_UNAVAILABLE, "Server not ready: %u models are being loaded",
                        ifd_repo_loading_count(repo));
    }
    return service->options.config->strict_readiness ? ifd_repo_check(repo, why_not) : IFD_OK;
}

/* ---- the log ---- */

static void log_settings(struct ifd_service *service, struct ifd_log_settings *ret)
{
    const struct ifd_log *log = service->options.log;
    *ret = (struct ifd_log_settings){.info = ifd_log_takes(log, IFD_LOG_INFO),
                                     .warning = ifd_log_takes(log, IFD_LOG_WARN),
                                     .error = ifd_log_takes(log, IFD_LOG_ERROR),
                                     .verbose_level = ifd_log_takes(log, IFD_LOG_DEBUG),
                                     .is_iso8601 = service->is_iso8601};
}

static void set_log(struct ifd_service *service, const struct ifd_log_settings *settings)
{
    service->options.log->levels = (settings->error ? 1u << IFD_LOG_ERROR : 0) |
                                   (settings->warning ? 1u << IFD_LOG_WARN : 0) |
                                   (settings->info ? 1u << IFD_LOG_INFO : 0) |
                                   (settings->verbose_level > 0 ? 1u << IFD_LOG_DEBUG : 0);
    service->is_iso8601 = settings->is_iso8601;
}

/* ---- life ---- */

const struct ifd_service_ops *ifd_service_ops(bool has_control)
{
#define OPS(refresh_, load_, unload_)                                                              \
    {                                                                                              \
        .info = info, .is_live = is_live, .is_ready = is_ready, .acquire = ifd_service_acquire,    \
        .release = ifd_service_release, .describe = ifd_service_describe, .begun = begun,          \
        .coming = coming, .ended = ended, .submit = submit, .cancel = cancel,                      \
        .release_outputs = release_outputs, .index = ifd_service_index, .refresh = refresh_,       \
        .load = load_, .unload = unload_, .stats = ifd_service_stats,                              \
        .log_settings = log_settings, .set_log = set_log,                                          \
        .decode_image = ifd_service_decode_image, .offload = ifd_service_offload,                  \
    }
    static const struct ifd_service_ops ops[] = {
        OPS(NULL, NULL, NULL), OPS(ifd_service_refresh, ifd_service_load, ifd_service_unload)};
#undef OPS
    return &ops[has_control];
}

enum ifd_code ifd_service_create(const struct ifd_service_options *options,
                                 struct ifd_service **ret_service, struct ifd_err *err)
{
    /* Names by which clients find out what they may use: those of Triton that hold here. */
    static const char *const extensions[] = {"classification",
                                             "model_configuration",
                                             "schedule_policy",
                                             "binary_tensor_data",
                                             "parameters",
                                             "statistics",
                                             "logging",
                                             "model_repository",
                                             "model_repository(unload_dependents)"};
    struct ifd_service *service = ifd_acquire_zeroed(options->alloc, 1, sizeof(*service));
    if (!service) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the service");
    }
    service->options = *options;
    service->ahead = (struct ifd_ahead){.loop = options->loop,
                                        .spin_ns = (uint64_t)options->config->spin_us * 1000,
                                        .here_ns = (uint64_t)options->config->inline_run_us * 1000,
                                        .connections = options->connections,
                                        .connections_arg = options->connections_arg,
                                        .cores = options->cores};
    service->info = (struct ifd_server_info){
        .name = options->config->id,
        .version = options->program_version,
        .extensions = extensions,
        .extension_count = sizeof(extensions) / sizeof(extensions[0]),
    };
    enum ifd_code code = ifd_timer_create(options->loop, expire, service, &service->expire, err);
    if (code) {
        ifd_release(options->alloc, service, sizeof(*service));
        return code;
    }
    *ret_service = service;
    return IFD_OK;
}

void ifd_service_destroy(struct ifd_service *service)
{
    if (!service) {
        return;
    }
    while (service->spare) {
        struct service_job *job = service->spare;
        service->spare = job->spare;
        ifd_release_tensor(service->options.alloc, job->job.memory, job->job.memory_bytes);
        ifd_release(service->options.alloc, job, sizeof(*job));
    }
    ifd_timer_destroy(service->expire);
    ifd_release(service->options.alloc, service, sizeof(*service));
}

void ifd_service_models_changed(struct ifd_service *service)
{
    const struct ifd_repo *repo = service->options.repo;
    for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
        const struct ifd_repo_model *model = ifd_repo_model_at(repo, i);
        for (uint32_t k = 0; k < model->version_count; k++) {
            struct ifd_served *served = model->version[k]->served;
            if (served) {
                served->desc.versions = model->ready;
                served->desc.version_count = model->ready_count;
            }
        }
    }
    /* Those that drain must not point to what is gone. */
    for (const struct ifd_version *v = ifd_repo_draining(repo); v; v = v->next) {
        struct ifd_model_desc *desc = &((struct ifd_served *)v->served)->desc;
        desc->versions = &desc->version_text;
        desc->version_count = 1;
    }
}

void ifd_service_stopping(struct ifd_service *service)
{
    service->is_stopping = true;
}

void ifd_service_cancel_all(struct ifd_service *service)
{
    service->is_stopping = service->is_cancelling = true;
    each_queue(service, cancel_queue);
}
