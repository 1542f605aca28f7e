/* Enqueues a run. */
#include "backends/gpuacc/run.h"

#include "backends/gpuacc/partition.h"

static cl_int upload(const struct ifd_partition *partition, const struct ifd_gpu_context *context,
                     const struct ifd_binding *binding)
{
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; error == CL_SUCCESS && i < partition->input_count; i++) {
        if (partition->input_bytes[i] > 0) {
            error = partition->device->cl.EnqueueWriteBuffer(context->queue, context->input[i],
                                                             CL_FALSE, 0, partition->input_bytes[i],
                                                             binding->input[i], 0, NULL, NULL);
        }
    }
    return error;
}

static cl_int download(const struct ifd_partition *partition, const struct ifd_gpu_context *context,
                       const struct ifd_binding *binding)
{
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; error == CL_SUCCESS && i < partition->output_count; i++) {
        if (partition->output_bytes[i] > 0) {
            error = partition->device->cl.EnqueueReadBuffer(context->queue, context->output[i],
                                                            CL_FALSE, 0, partition->output_bytes[i],
                                                            binding->output[i], 0, NULL, NULL);
        }
    }
    return error;
}

static cl_int enqueue(const struct ifd_partition *partition, const struct ifd_gpu_context *context,
                      uint32_t step)
{
    const struct ifd_gpu_step *s = &partition->step[step];
    return partition->device->cl.EnqueueNDRangeKernel(context->queue, context->kernel[step], 3,
                                                      NULL, s->items, s->group[0] ? s->group : NULL,
                                                      0, NULL, NULL);
}

/* Profiles wait behind every step. */
static cl_int enqueue_timed(const struct ifd_partition *partition,
                            const struct ifd_gpu_context *context,
                            const struct ifd_binding *binding, uint32_t step)
{
    const struct ifd_cl *cl = &partition->device->cl;
    cl_int error = cl->Finish(context->queue);
    const uint64_t begin = binding->now_ns();
    if (error == CL_SUCCESS) {
        error = enqueue(partition, context, step);
    }
    if (error == CL_SUCCESS) {
        error = cl->Finish(context->queue);
    }
    binding->step_ns[step] += binding->now_ns() - begin;
    return error;
}

static enum ifd_code enqueue_steps(const struct ifd_partition *partition,
                                   const struct ifd_gpu_context *context,
                                   const struct ifd_binding *binding, struct ifd_err *err)
{
    for (uint32_t i = 0; i < partition->step_count; i++) {
        const cl_int error = binding->step_ns ? enqueue_timed(partition, context, binding, i)
                                              : enqueue(partition, context, i);
        if (error != CL_SUCCESS) {
            return ifd_cl_fail(err, error, partition->step[i].info.name);
        }
    }
    return IFD_OK;
}

static enum ifd_code run(const struct ifd_partition *partition,
                         const struct ifd_gpu_context *context, const struct ifd_binding *binding,
                         struct ifd_err *err)
{
    cl_int error = upload(partition, context, binding);
    enum ifd_code code = error == CL_SUCCESS ? enqueue_steps(partition, context, binding, err)
                                             : ifd_cl_fail(err, error, "an upload");
    if (code == IFD_OK) {
        error = download(partition, context, binding);
        code = error == CL_SUCCESS ? IFD_OK : ifd_cl_fail(err, error, "a download");
    }
    /* also after an error: the device must not write to the binding later */
    error = partition->device->cl.Finish(context->queue);
    if (code == IFD_OK && error != CL_SUCCESS) {
        code = ifd_cl_fail(err, error, "a run");
    }
    return code;
}

enum ifd_code ifd_gpu_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                          struct ifd_err *err)
{
    struct ifd_gpu_context *context = NULL;
    enum ifd_code code = ifd_gpu_borrow(partition, &context, err);
    if (code == IFD_OK) {
        code = run(partition, context, binding, err);
        ifd_gpu_give_back(partition, context);
    }
    return code;
}
