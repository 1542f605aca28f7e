/* Memory, queue, bound kernels. */
#include "backends/gpuacc/context.h"

#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/partition.h"
#include "engine/base/clock.h"

struct ifd_context {
    struct ifd_device *device;
    cl_command_queue queue;
    cl_mem memory;
    uint64_t fence; /* commands so far that have one */
};

struct ifd_bound {
    struct ifd_partition *partition;
    cl_kernel *kernel; /* per step */
};

/* ---- contexts ---- */

static void context_destroy(struct ifd_context *context)
{
    if (!context) {
        return;
    }
    const struct ifd_cl *cl = &context->device->cl;
    if (context->queue) {
        (void)cl->Finish(context->queue);
        (void)cl->ReleaseCommandQueue(context->queue);
    }
    if (context->memory) {
        (void)cl->ReleaseMemObject(context->memory);
    }
    ifd_release(context->device->host->alloc, context, sizeof(*context));
}

static enum ifd_code make_memory(struct ifd_context *context, size_t bytes, struct ifd_err *err)
{
    const struct ifd_device *device = context->device;
    cl_int error = CL_SUCCESS;
    if (bytes > device->info.max_buffer) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: %zu bytes, expected at most %zu in one buffer",
                        bytes, device->info.max_buffer);
    }
    context->memory = device->cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, bytes ? bytes : 1,
                                              NULL, &error);
    return context->memory ? IFD_OK : ifd_cl_fail(err, error, "memory for tensors");
}

static enum ifd_code context_create(struct ifd_device *device, size_t bytes,
                                    struct ifd_context **ret_context, struct ifd_err *err)
{
    struct ifd_context *context = ifd_acquire_zeroed(device->host->alloc, 1, sizeof(*context));
    cl_int error = CL_SUCCESS;
    if (!context) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a context");
    }
    context->device = device;
    enum ifd_code code = make_memory(context, bytes, err);
    if (code == IFD_OK) {
        context->queue = device->cl.CreateCommandQueue(device->context, device->id, 0, &error);
        code = context->queue ? IFD_OK : ifd_cl_fail(err, error, "a queue");
    }
    if (code != IFD_OK) {
        context_destroy(context);
        return code;
    }
    *ret_context = context;
    return IFD_OK;
}

/* ---- bound partitions ---- */

static size_t base_of(const struct ifd_places *places, const struct ifd_low_place *place)
{
    return place->where == IFD_LOW_INPUT    ? places->input[place->slot]
           : place->where == IFD_LOW_OUTPUT ? places->output[place->slot]
                                            : places->scratch;
}

/* A tensor: the buffer, and the element at which it begins there. */
static cl_int set_tensor(const struct ifd_context *context, const struct ifd_places *places,
                         const struct ifd_gpu_bound *arg, cl_kernel kernel, cl_uint *index)
{
    const struct ifd_cl *cl = &context->device->cl;
    const cl_mem buffer = arg->buffer ? arg->buffer : context->memory;
    const size_t base = arg->buffer ? 0 : base_of(places, &arg->place);
    const size_t first = (base + arg->place.offset) / arg->element;
    const cl_uint at = (cl_uint)first;
    if (at != first) {
        return CL_INVALID_BUFFER_SIZE;
    }
    const cl_int error = cl->SetKernelArg(kernel, (*index)++, sizeof(buffer), &buffer);
    return error == CL_SUCCESS ? cl->SetKernelArg(kernel, (*index)++, sizeof(at), &at) : error;
}

static cl_int set_args(const struct ifd_context *context, const struct ifd_places *places,
                       const struct ifd_gpu_step *step, cl_kernel kernel)
{
    const struct ifd_cl *cl = &context->device->cl;
    cl_int error = CL_SUCCESS;
    cl_uint index = 0;
    for (uint32_t i = 0; error == CL_SUCCESS && i < step->arg_count; i++) {
        const struct ifd_gpu_bound *arg = &step->arg[i];
        if (arg->kind == IFD_GPU_ARG_NUMBER) {
            error = cl->SetKernelArg(kernel, index++, sizeof(arg->number), &arg->number);
        } else if (arg->kind == IFD_GPU_ARG_CONSTANT) {
            error = cl->SetKernelArg(kernel, index++, sizeof(arg->buffer), &arg->buffer);
        } else {
            error = set_tensor(context, places, arg, kernel, &index);
        }
    }
    return error;
}

static void unbind(struct ifd_context *context, struct ifd_bound *bound)
{
    if (!bound) {
        return;
    }
    const struct ifd_cl *cl = &context->device->cl;
    const struct ifd_alloc *alloc = context->device->host->alloc;
    const uint32_t count = bound->partition->step_count;
    for (uint32_t i = 0; bound->kernel && i < count; i++) {
        if (bound->kernel[i]) {
            (void)cl->ReleaseKernel(bound->kernel[i]);
        }
    }
    ifd_release(alloc, bound->kernel, count * sizeof(cl_kernel));
    ifd_release(alloc, bound, sizeof(*bound));
}

static enum ifd_code make_kernels(const struct ifd_context *context,
                                  const struct ifd_places *places, struct ifd_bound *bound,
                                  struct ifd_err *err)
{
    const struct ifd_cl *cl = &context->device->cl;
    for (uint32_t i = 0; i < bound->partition->step_count; i++) {
        const struct ifd_gpu_step *step = &bound->partition->step[i];
        const char *name = ifd_gpu_kernel_name(step->kernel);
        cl_int error = CL_SUCCESS;
        bound->kernel[i] = cl->CreateKernel(step->program, name, &error);
        if (bound->kernel[i]) {
            error = set_args(context, places, step, bound->kernel[i]);
        }
        if (error != CL_SUCCESS) {
            return ifd_cl_fail(err, error, name);
        }
    }
    return IFD_OK;
}

static enum ifd_code bind(struct ifd_context *context, struct ifd_partition *partition,
                          const struct ifd_places *places, struct ifd_bound **ret_bound,
                          struct ifd_err *err)
{
    const struct ifd_alloc *alloc = context->device->host->alloc;
    struct ifd_bound *bound = ifd_acquire_zeroed(alloc, 1, sizeof(*bound));
    if (!bound) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory to bind a partition");
    }
    bound->partition = partition;
    bound->kernel = ifd_acquire_zeroed(alloc, partition->step_count, sizeof(cl_kernel));
    const enum ifd_code code =
        bound->kernel ? make_kernels(context, places, bound, err)
                      : ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory to bind a partition");
    if (code != IFD_OK) {
        unbind(context, bound);
        return code;
    }
    *ret_bound = bound;
    return IFD_OK;
}

/* ---- the queue ---- */

/* After an error nothing may be in the queue. */
static enum ifd_code fail(struct ifd_context *context, cl_int error, const char *what,
                          struct ifd_err *err)
{
    (void)context->device->cl.Finish(context->queue);
    return ifd_cl_fail(err, error, what);
}

static enum ifd_code write(struct ifd_context *context, size_t offset, const void *from,
                           size_t bytes, struct ifd_err *err)
{
    const cl_int error = context->device->cl.EnqueueWriteBuffer(
        context->queue, context->memory, CL_TRUE, offset, bytes, from, 0, NULL, NULL);
    return error == CL_SUCCESS ? IFD_OK : fail(context, error, "a write", err);
}

static cl_int enqueue(const struct ifd_context *context, const struct ifd_bound *bound,
                      uint32_t step)
{
    const struct ifd_gpu_step *s = &bound->partition->step[step];
    return context->device->cl.EnqueueNDRangeKernel(context->queue, bound->kernel[step], 3, NULL,
                                                    s->items, s->group[0] ? s->group : NULL, 0,
                                                    NULL, NULL);
}

/* Profiles wait behind every step. */
static cl_int enqueue_timed(const struct ifd_context *context, const struct ifd_bound *bound,
                            uint32_t step, uint64_t *step_ns)
{
    const struct ifd_cl *cl = &context->device->cl;
    cl_int error = cl->Finish(context->queue);
    const uint64_t begin = ifd_monotonic_ns();
    if (error == CL_SUCCESS) {
        error = enqueue(context, bound, step);
    }
    if (error == CL_SUCCESS) {
        error = cl->Finish(context->queue);
    }
    step_ns[step] += ifd_monotonic_ns() - begin;
    return error;
}

static enum ifd_code submit(struct ifd_context *context, struct ifd_bound *bound, uint64_t *step_ns,
                            struct ifd_err *err)
{
    for (uint32_t i = 0; i < bound->partition->step_count; i++) {
        const cl_int error =
            step_ns ? enqueue_timed(context, bound, i, step_ns) : enqueue(context, bound, i);
        if (error != CL_SUCCESS) {
            return fail(context, error, bound->partition->step[i].info.name, err);
        }
    }
    return IFD_OK;
}

static enum ifd_code read(struct ifd_context *context, size_t offset, void *to, size_t bytes,
                          uint64_t *ret_fence, struct ifd_err *err)
{
    const cl_int error = context->device->cl.EnqueueReadBuffer(
        context->queue, context->memory, CL_FALSE, offset, bytes, to, 0, NULL, NULL);
    if (error != CL_SUCCESS) {
        return fail(context, error, "a read", err);
    }
    *ret_fence = ++context->fence;
    return IFD_OK;
}

/* The queue is in order: all of it is done, which is more than what the fence asks for. */
static enum ifd_code wait(struct ifd_context *context, uint64_t fence, struct ifd_err *err)
{
    (void)fence;
    const cl_int error = context->device->cl.Finish(context->queue);
    return error == CL_SUCCESS ? IFD_OK : ifd_cl_fail(err, error, "a run");
}

const struct ifd_memory_ops ifd_gpu_memory_ops = {
    .bytes = sizeof(struct ifd_memory_ops),
    .kind = "gpu",
    .transfer_ns = ifd_gpu_transfer_ns,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .bind = bind,
    .unbind = unbind,
    .write = write,
    .submit = submit,
    .read = read,
    .wait = wait,
};
