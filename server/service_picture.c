/* Pictures on their way into tensors, on threads of their own. */
#include "server/service_impl.h"

#include "server/picture.h"

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
    }
}
