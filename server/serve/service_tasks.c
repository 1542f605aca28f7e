/* What would keep the loop from others, on threads of its own: pictures, large JSON. */
#include "server/serve/service_impl.h"

#include "server/serve/picture.h"

/* ---- pictures ---- */

struct picture_task {
    struct ifd_task task;
    struct ifd_service *service;
    struct ifd_bytes picture;
    struct ifd_image_target target;
    struct ifd_tensor *tensor;
    ifd_control_fn done;
    void *arg;
    enum ifd_code code;
    struct ifd_err err;
};

static void decode_picture(struct ifd_task *task)
{
    struct picture_task *p = (struct picture_task *)task; /* its first member */
    const struct ifd_service_options *options = &p->service->options;
    const struct ifd_image_limits limits = {.max_pixels = options->config->image_max_pixels};
    p->code = ifd_image_to_tensor(p->picture, &p->target, &limits, p->tensor->dtype,
                                  p->tensor->data, p->tensor->bytes, options->alloc, &p->err);
}

static void picture_done(struct ifd_task *task)
{
    struct picture_task *p = (struct picture_task *)task;
    ifd_control_fn done = p->done;
    void *arg = p->arg;
    enum ifd_code code = p->code;
    struct ifd_err err = p->err;
    ifd_ahead_done(&p->service->ahead);
    ifd_metric_add(p->service->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_IMAGE,
                   code == IFD_TOO_LARGE);
    ifd_release(p->service->options.alloc, p, sizeof(*p));
    done(arg, code, &err);
}

void ifd_service_decode_image(struct ifd_service *service, struct ifd_bytes image,
                              const struct ifd_tensor_info *input, struct ifd_tensor *tensor,
                              ifd_control_fn done, void *arg)
{
    struct ifd_err err = {0};
    struct picture_task *p = ifd_acquire_zeroed(service->options.alloc, 1, sizeof(*p));
    if (!p) {
        done(arg, ifd_fail(&err, IFD_NOMEM, "no memory for a picture"), &err);
        return;
    }
    *p = (struct picture_task){
        .task = {.work = decode_picture, .done = picture_done},
        .service = service,
        .picture = image,
        .target = ifd_picture_target(&input->image, input->scale, input->zero_point),
        .tensor = tensor,
        .done = done,
        .arg = arg,
    };
    enum ifd_code code = ifd_tasks_submit(service->options.image_tasks, &p->task, &err);
    if (code) {
        ifd_release(service->options.alloc, p, sizeof(*p));
        done(arg, code, &err);
        return;
    }
    ifd_ahead_task(&service->ahead);
}

/* ---- large JSON ---- */

struct offloaded {
    struct ifd_task task;
    struct ifd_service *service;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void work_offloaded(struct ifd_task *task)
{
    const struct offloaded *o = (const struct offloaded *)task; /* its first member */
    o->work(o->arg);
}

static void offloaded_done(struct ifd_task *task)
{
    const struct offloaded o = *(const struct offloaded *)task;
    ifd_ahead_done(&o.service->ahead);
    ifd_release(o.service->options.alloc, task, sizeof(o));
    o.done(o.arg);
}

bool ifd_service_offload(struct ifd_service *service, void (*work)(void *arg),
                         void (*done)(void *arg), void *arg)
{
    const struct ifd_alloc *alloc = service->options.alloc;
    struct offloaded *o = ifd_acquire_zeroed(alloc, 1, sizeof(*o));
    if (!o) {
        return false;
    }
    *o = (struct offloaded){.task = {.work = work_offloaded, .done = offloaded_done},
                            .service = service,
                            .work = work,
                            .done = done,
                            .arg = arg};
    if (ifd_tasks_submit(service->options.image_tasks, &o->task, NULL) != IFD_OK) {
        ifd_release(alloc, o, sizeof(*o));
        return false;
    }
    ifd_ahead_task(&service->ahead);
    return true;
}
