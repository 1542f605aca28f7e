/* Inference: requests become jobs, jobs become answers. service_level.c has their deadlines. */
#include "server/serve/service_impl.h"

#include "server/model/reshape.h"
#include "server/serve/absent.h"
#include "server/serve/counts.h"

#define EXPIRE_MS      5
#define SPARE_JOBS     256
#define JOB_KEEP_BYTES ((size_t)1 << 16)

struct service_job {
    struct ifd_job job; /* first member: the queue returns its address */
    struct ifd_service *service;
    struct ifd_infer_request *request;
    struct ifd_version *version;
    struct ifd_sequence *sequence; /* NULL: of none */
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

static void settle_sequence(struct service_job *job, bool has_run)
{
    struct ifd_served *served = job->version->served;
    if (job->sequence) {
        ifd_sequence_settle(served->sequences, job->sequence, job->request, has_run,
                            ifd_monotonic_ns());
        job->sequence = NULL;
    }
}

/* Answers a job that ran. */
static void answer(struct service_job *job)
{
    struct ifd_infer_request *request = job->request;
    struct ifd_served *served = job->version->served;
    struct ifd_service *service = job->service;
    enum ifd_code code = job->job.code;
    settle_sequence(job, code == IFD_OK);
    if (code == IFD_OK && job->version->desc.has_reshapes) {
        ifd_reshape_outputs(&job->version->desc, request->output);
    }
    ifd_count_job(served, &job->job, request);
    request->turn.waited_ns = 0; /* it was counted; a sound has further runs */
    if (code == IFD_DEADLINE) {
        ifd_metric_add(service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE_TIME, 1);
    } else if (code == IFD_OK) {
        ifd_pulse_learn(&served->pulse, job->job.run_batch,
                        job->job.finished_ns - job->job.started_ns);
    }
    service->deadlines -= job->job.deadline_ns > 0;
    request->started_ns = job->job.started_ns;
    if (!job->is_cancelled && code == IFD_OK) {
        request->done(request, IFD_OK, NULL);
        return; /* the job stays with the request: it holds the outputs */
    }
    struct ifd_err err = job->job.err;
    if (job->is_cancelled) {
        code = ifd_service_explain(IFD_CANCELLED, &err);
    }
    request->service_private = NULL;
    give_job(job);
    request->done(request, code, &err);
}

static void finish(struct ifd_completion *completion)
{
    /* first member of the first member */
    struct service_job *job = (struct service_job *)completion;
    ifd_ahead_done(&job->service->ahead);
    answer(job);
}

enum ifd_code ifd_service_explain(enum ifd_code code, struct ifd_err *err)
{
    return ifd_fail(err, code, "%s",
                    code == IFD_DEADLINE      ? "Request timeout expired"
                    : code == IFD_UNAVAILABLE ? "Server is stopping, the request was not run"
                                              : "the client went away");
}

/* Answers a list of jobs that never ran. */
static void fail_list(struct ifd_job *list, enum ifd_code code)
{
    while (list) {
        struct ifd_job *next = list->next;
        list->next = NULL;
        list->code = ifd_service_explain(code, &list->err);
        finish(&list->completion);
        list = next;
    }
}

static void expire(void *arg)
{
    struct ifd_service *service = arg;
    struct ifd_repo_walk at = {.model = NULL};
    const uint64_t now_ns = ifd_monotonic_ns();
    uint32_t frames = 0;
    while (ifd_repo_next(service->options.repo, &at)) {
        struct ifd_served *served = at.version->served;
        if (served) {
            fail_list(ifd_lane_expire(served->lane), IFD_DEADLINE);
            ifd_sources_expire(&served->sources, now_ns);
            frames += served->sources.waiting;
        }
    }
    ifd_service_withdraw(service);
    if (service->deadlines == 0 && frames == 0) {
        ifd_timer_stop(service->expire);
    }
}

static void start_timer(struct ifd_service *service)
{
    if (!ifd_timer_is_active(service->expire)) {
        ifd_timer_start(service->expire, EXPIRE_MS, EXPIRE_MS);
    }
}

void ifd_service_watch_deadlines(struct ifd_service *service)
{
    if (service->deadlines > 0) {
        start_timer(service);
    }
}

/* ---- inference ---- */

void ifd_service_flush(struct ifd_service *service)
{
    ifd_ahead_end_turn(&service->ahead);
    if (service->has_pushed) {
        ifd_pool_wake(service->options.pool);
        service->has_pushed = false;
    }
}

/* True if the loop runs the request itself: fastest, but the loop does nothing else meanwhile. */
static bool runs_here(const struct ifd_service *service, const struct ifd_served *served,
                      int64_t batch)
{
    return ifd_lane_is_instant(served->lane)
               ? service->options.config->inline_identity
               : served->pulse.batch == batch &&
                     ifd_ahead_runs_here(&service->ahead, &served->pulse);
}

/* Makes the job of a request and counts its deadline; NULL without memory. */
static struct service_job *make_job(struct ifd_service *service, struct ifd_infer_request *request,
                                    uint32_t level)
{
    struct ifd_version *version = (struct ifd_version *)request->model;
    const struct ifd_model_desc *desc = &version->desc;
    const struct service_terms terms = ifd_service_terms(service, request, level);
    struct service_job *job = take_job(service);
    if (!job) {
        return NULL;
    }
    job->request = request;
    job->version = version;
    job->sequence = NULL;
    job->is_cancelled = false;
    job->job = (struct ifd_job){
        .completion = {.fn = finish},
        .input = request->input,
        .output = request->output,
        .wanted = request->wanted,
        .input_count = desc->input_count,
        .output_count = desc->output_count,
        .batch = request->batch,
        .level = level,
        .bound = terms.bound,
        .deadline_ns = terms.deadline_ns,
        .lower_at_deadline = !terms.rejects,
        /* the server's default bounds waiting */
        .run_deadline_ns = terms.rejects && !terms.is_default ? terms.deadline_ns : 0,
        .is_alone = request->step_ns != NULL,
        .step_ns = request->step_ns,
        .step_count = request->step_count,
        .memory = job->job.memory,
        .memory_bytes = job->job.memory_bytes,
    };
    /* Where a loop may still turn then, it has to end for this request and for no other. */
    if (job->job.run_deadline_ns > 0 && version->engine &&
        ifd_model_info(version->engine)->has_loops) {
        job->job.is_alone = true;
    }
    request->service_private = job;
    service->deadlines += job->job.deadline_ns > 0;
    return job;
}

/* Drops a job that no worker will see: the queue refused or returned it. */
static void drop_job(struct service_job *job, enum ifd_code code)
{
    struct ifd_infer_request *request = job->request;
    settle_sequence(job, false);
    job->service->deadlines -= job->job.deadline_ns > 0;
    ifd_count_failure(job->version->served, request->received_ns, code);
    request->service_private = NULL;
    give_job(job);
}

static bool is_late(const struct ifd_job *job)
{
    return job->deadline_ns > 0 && !job->lower_at_deadline &&
           ifd_monotonic_ns() >= job->deadline_ns;
}

static void line_up(struct ifd_service *service, struct ifd_infer_request *request,
                    ifd_control_fn done, void *arg)
{
    const struct ifd_version *version = (struct ifd_version *)request->model;
    struct ifd_served *served = version->served;
    bool is_default = false;
    if (service->is_cancelling) {
        struct ifd_err err = {0};
        done(arg, ifd_service_explain(IFD_UNAVAILABLE, &err), &err);
        return;
    }
    ifd_sources_enter(&served->sources, request,
                      ifd_service_deadline(service, request, &is_default), done, arg);
    if (served->sources.waiting > 0) {
        start_timer(service);
    }
}

static void leave_line(struct ifd_service *service, struct ifd_infer_request *request)
{
    const struct ifd_version *version = (struct ifd_version *)request->model;
    struct ifd_served *served = version->served;
    (void)service;
    ifd_sources_leave(&served->sources, request);
}

static enum ifd_code submit(struct ifd_service *service, struct ifd_infer_request *request,
                            struct ifd_err *err)
{
    const struct ifd_version *version = (struct ifd_version *)request->model;
    struct ifd_served *served = version->served;
    uint32_t level = 0;
    if (service->is_cancelling) {
        return ifd_service_explain(IFD_UNAVAILABLE, err);
    }
    enum ifd_code code = ifd_service_level(&version->desc, request->priority, &level, err);
    if (code) {
        return code;
    }
    /* made before the push: a worker may be done with it before push returns */
    struct service_job *job = make_job(service, request, level);
    if (!job) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a request");
    }
    if (served->sequences) {
        code = ifd_sequences_begin(served->sequences, request, ifd_monotonic_ns(), &job->sequence,
                                   &job->job.wanted, err);
    }
    if (!code && version->desc.has_reshapes) {
        job->job.input = ifd_reshape_inputs(&version->desc, request->input, request->arena);
        code = job->job.input ? IFD_OK : ifd_fail(err, IFD_NOMEM, "no memory for a request");
    }
    if (!code && version->engine) {
        job->job.input =
            ifd_fill_absent(ifd_model_info(version->engine), job->job.input, request->arena);
        code = job->job.input ? IFD_OK : ifd_fail(err, IFD_NOMEM, "no memory for a request");
    }
    if (code) {
        drop_job(job, code);
        return code;
    }
    if (is_late(&job->job)) { /* its picture or its JSON took longer */
        drop_job(job, IFD_DEADLINE);
        ifd_metric_add(service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE_TIME, 1);
        return ifd_service_explain(IFD_DEADLINE, err);
    }
    if (runs_here(service, served, request->batch) && ifd_lane_run_here(served->lane, &job->job)) {
        ifd_ahead_ran_here(&service->ahead, job->job.finished_ns - job->job.started_ns);
        answer(job);
        return IFD_OK;
    }
    code = ifd_lane_push(served->lane, &job->job, err);
    if (code) {
        drop_job(job, code);
        ifd_metric_add(service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE,
                       code == IFD_BUSY);
        return code;
    }
    service->has_pushed = true;
    ifd_ahead_run(&service->ahead, served->lane, &served->pulse, request->batch);
    ifd_service_watch_deadlines(service);
    return IFD_OK;
}

static bool cancel(struct ifd_service *service, struct ifd_infer_request *request)
{
    struct service_job *job = request->service_private;
    if (!job) {
        return true;
    }
    struct ifd_served *served = job->version->served;
    if (!ifd_lane_remove(served->lane, &job->job)) {
        job->is_cancelled = true;
        atomic_store_explicit(&job->job.is_unwanted, true, memory_order_relaxed);
        return false;
    }
    ifd_ahead_done(&service->ahead);
    drop_job(job, IFD_CANCELLED);
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

static void begun(struct ifd_service *service, struct ifd_model_ref *ref)
{
    struct ifd_served *served = ((struct ifd_version *)ref)->served;
    ifd_ahead_begun(&service->ahead);
    ifd_count_begun(served);
    if (!ifd_pulse_is_short(&served->pulse)) {
        ifd_lane_expect(served->lane);
    }
}

static void coming(struct ifd_service *service, struct ifd_model_ref *ref)
{
    const struct ifd_served *served = ((struct ifd_version *)ref)->served;
    ifd_ahead_body(&service->ahead, served->lane, &served->pulse);
}

static void ended(struct ifd_service *service, struct ifd_model_ref *ref,
                  const struct ifd_request_end *end)
{
    ifd_ahead_ended(&service->ahead, end->ended_ns);
    ifd_count_ended(((struct ifd_version *)ref)->served, end);
}

/* ---- life ---- */

const struct ifd_service_ops *ifd_service_ops(bool has_control)
{
#define OPS(refresh_, load_, unload_)                                                              \
    {                                                                                              \
        .info = ifd_service_info, .is_live = ifd_service_is_live,                                  \
        .is_ready = ifd_service_is_ready, .missing_backends = ifd_service_missing_backends,        \
        .acquire = ifd_service_acquire, .release = ifd_service_release,                            \
        .describe = ifd_service_describe, .begun = begun, .coming = coming, .ended = ended,        \
        .line_up = line_up, .leave_line = leave_line, .submit = submit, .cancel = cancel,          \
        .release_outputs = release_outputs, .index = ifd_service_index, .refresh = refresh_,       \
        .load = load_, .unload = unload_, .stats = ifd_service_stats,                              \
        .log_settings = ifd_service_log_settings, .set_log = ifd_service_set_log,                  \
        .decode_image = ifd_service_decode_image, .offload = ifd_service_offload,                  \
        .withdraw = ifd_service_withdraw, .object_option = ifd_service_object_option,              \
        .find_objects = ifd_service_find_objects, .encode_mask = ifd_service_encode_mask,          \
        .draw_objects = ifd_service_draw_objects, .read_sound = ifd_service_read_sound,            \
        .prepare_profile = ifd_service_prepare_profile, .write_plan = ifd_service_write_plan,      \
    }
    static const struct ifd_service_ops ops[] = {
        OPS(NULL, NULL, NULL), OPS(ifd_service_refresh, ifd_service_load, ifd_service_unload)};
#undef OPS
    return &ops[has_control];
}

enum ifd_code ifd_service_create(const struct ifd_service_options *options,
                                 struct ifd_service **ret_service, struct ifd_err *err)
{
    /* Extensions of Triton that are supported here. */
    static const char *const extensions[] = {"classification",
                                             "model_configuration",
                                             "schedule_policy",
                                             "binary_tensor_data",
                                             "parameters",
                                             "statistics",
                                             "logging",
                                             "model_repository",
                                             "model_repository(unload_dependents)"};
    static const char *const control_modes[] = {
#define X(id, word) [id] = (word),
        IFD_CONTROL_MODES(X)
#undef X
    };
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
        .control_mode = control_modes[options->config->control_mode],
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
    struct ifd_repo_walk at = {.model = NULL};
    while (ifd_repo_next(service->options.repo, &at)) {
        struct ifd_model_desc *desc = &at.version->desc;
        struct ifd_served *served = at.version->served;
        if (served) { /* a draining version must not point to freed lists */
            desc->versions = at.model ? at.model->ready : &desc->version_text;
            desc->version_count = at.model ? at.model->ready_count : 1;
        }
        if (served && (!at.model || service->is_stopping)) {
            ifd_lane_hurry(served->lane); /* nobody new joins a batch */
        }
    }
}

void ifd_service_stopping(struct ifd_service *service)
{
    service->is_stopping = true;
    ifd_service_models_changed(service);
}

void ifd_service_cancel_all(struct ifd_service *service)
{
    struct ifd_repo_walk at = {.model = NULL};
    service->is_stopping = true;
    atomic_store(&service->is_cancelling, true);
    while (ifd_repo_next(service->options.repo, &at)) {
        struct ifd_served *served = at.version->served;
        if (served) {
            ifd_lane_close(served->lane);
            ifd_sources_clear(&served->sources);
            fail_list(ifd_lane_clear(served->lane), IFD_UNAVAILABLE);
        }
    }
    ifd_tasks_sweep(service->options.image_tasks);
}
