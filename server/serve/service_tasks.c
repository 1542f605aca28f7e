/* Work that would block the loop, on other threads: pictures, large JSON. */
#include "server/serve/service_impl.h"

#include "engine/base/clock.h"
#include "server/serve/picture.h"

static bool is_past(uint64_t deadline_ns)
{
    return deadline_ns > 0 && ifd_monotonic_ns() >= deadline_ns;
}

/* ---- pictures ---- */

struct picture_task {
    struct ifd_task task;
    struct ifd_service *service;
    const struct ifd_infer_request *request;
    struct ifd_picture *picture; /* regions of one */
    size_t count;
    uint64_t deadline_ns; /* 0: none */
    bool is_default;      /* the deadline: it ends waiting, not the decoding */
    bool has_begun;       /* the decoding */
    ifd_control_fn done;
    void *arg;
    enum ifd_code code;
    struct ifd_err err;
};

static enum ifd_code picture_verdict(const struct ifd_task *task)
{
    const struct picture_task *p = (const struct picture_task *)task; /* its first member */
    if (atomic_load(&p->request->is_abandoned)) {
        return IFD_CANCELLED;
    }
    if (atomic_load(&p->service->is_cancelling)) {
        return IFD_UNAVAILABLE;
    }
    return is_past(p->deadline_ns) && !(p->is_default && p->has_begun) ? IFD_DEADLINE : IFD_OK;
}

static bool picture_is_over(void *arg)
{
    return picture_verdict(arg) != IFD_OK;
}

static void decode_picture(struct ifd_task *task)
{
    struct picture_task *p = (struct picture_task *)task;
    const struct ifd_service_options *options = &p->service->options;
    p->has_begun = true;
    const struct ifd_image_limits limits = {
        .max_pixels = options->config->image_max_pixels, .is_over = picture_is_over, .arg = task};
    const struct ifd_tensor_info *input = p->picture->input;
    const struct ifd_image_target target =
        ifd_picture_target(&input->image, input->scale, input->zero_point);
    p->code = ifd_image_to_tensors(p->picture, p->count, &target, &limits, options->alloc, &p->err);
    if (p->code == IFD_CANCELLED) {
        task->code = picture_verdict(task);
    }
}

static void picture_done(struct ifd_task *task)
{
    struct picture_task *p = (struct picture_task *)task;
    struct ifd_service *service = p->service;
    struct ifd_metric_set *metrics = service->options.metrics;
    ifd_control_fn done = p->done;
    void *arg = p->arg;
    struct ifd_err err = p->err;
    enum ifd_code code = task->code ? ifd_service_explain(task->code, &err) : p->code;
    ifd_ahead_done(&service->ahead);
    ifd_metric_add(metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_IMAGE, code == IFD_TOO_LARGE);
    ifd_metric_add(metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE_TIME, code == IFD_DEADLINE);
    service->deadlines -= p->deadline_ns > 0;
    ifd_release(service->options.alloc, p, sizeof(*p));
    done(arg, code, &err);
}

void ifd_service_decode_image(struct ifd_service *service, const struct ifd_infer_request *request,
                              struct ifd_picture *picture, size_t count, ifd_control_fn done,
                              void *arg)
{
    struct ifd_err err = {0};
    struct picture_task *p = ifd_acquire_zeroed(service->options.alloc, 1, sizeof(*p));
    if (!p) {
        done(arg, ifd_fail(&err, IFD_NOMEM, "no memory for a picture"), &err);
        return;
    }
    *p = (struct picture_task){
        .task = {.verdict = picture_verdict, .work = decode_picture, .done = picture_done},
        .service = service,
        .request = request,
        .picture = picture,
        .count = count,
        .done = done,
        .arg = arg,
    };
    p->deadline_ns = ifd_service_deadline(service, request, &p->is_default);
    const bool has_deadline = p->deadline_ns > 0;
    enum ifd_code code = ifd_tasks_submit(service->options.image_tasks, &p->task, &err);
    if (code) {
        ifd_release(service->options.alloc, p, sizeof(*p));
        done(arg, code, &err);
        return;
    }
    service->deadlines += has_deadline;
    ifd_service_watch_deadlines(service);
    ifd_ahead_task(&service->ahead);
}

/* ---- large JSON ---- */

struct offloaded {
    struct ifd_task task;
    struct ifd_service *service;
    const struct ifd_infer_request *request;
    uint64_t deadline_ns; /* 0: none */
    void (*work)(void *arg);
    ifd_control_fn done;
    void *arg;
};

static enum ifd_code offloaded_verdict(const struct ifd_task *task)
{
    const struct offloaded *o = (const struct offloaded *)task; /* its first member */
    if (atomic_load(&o->request->is_abandoned)) {
        return IFD_CANCELLED;
    }
    return is_past(o->deadline_ns) ? IFD_DEADLINE : IFD_OK;
}

static void work_offloaded(struct ifd_task *task)
{
    const struct offloaded *o = (const struct offloaded *)task;
    o->work(o->arg);
}

static void offloaded_done(struct ifd_task *task)
{
    const struct offloaded o = *(const struct offloaded *)task;
    struct ifd_err err = {0};
    const enum ifd_code code = task->code ? ifd_service_explain(task->code, &err) : IFD_OK;
    ifd_ahead_done(&o.service->ahead);
    ifd_metric_add(o.service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_QUEUE_TIME,
                   code == IFD_DEADLINE);
    o.service->deadlines -= o.deadline_ns > 0;
    ifd_release(o.service->options.alloc, task, sizeof(o));
    o.done(o.arg, code, &err);
}

bool ifd_service_offload(struct ifd_service *service, const struct ifd_infer_request *request,
                         bool has_deadline, void (*work)(void *arg), ifd_control_fn done, void *arg)
{
    const struct ifd_alloc *alloc = service->options.alloc;
    struct offloaded *o = ifd_acquire_zeroed(alloc, 1, sizeof(*o));
    if (!o) {
        return false;
    }
    *o = (struct offloaded){
        .task = {.verdict = offloaded_verdict, .work = work_offloaded, .done = offloaded_done},
        .service = service,
        .request = request,
        .work = work,
        .done = done,
        .arg = arg};
    bool is_default = false;
    o->deadline_ns = has_deadline ? ifd_service_deadline(service, request, &is_default) : 0;
    const bool is_bounded = o->deadline_ns > 0;
    if (ifd_tasks_submit(service->options.json_tasks, &o->task, NULL) != IFD_OK) {
        ifd_release(alloc, o, sizeof(*o));
        return false;
    }
    service->deadlines += is_bounded;
    ifd_service_watch_deadlines(service);
    ifd_ahead_task(&service->ahead);
    return true;
}

void ifd_service_withdraw(struct ifd_service *service)
{
    ifd_tasks_sweep(service->options.image_tasks);
    ifd_tasks_sweep(service->options.json_tasks);
}
