/* Memory, queue, bound kernels. */
#include "backends/gpuacc/context.h"

#include "backends/gpuacc/await.h"
#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/partition.h"
#include "backends/gpuacc/record.h"
#include "engine/base/clock.h"

#include <string.h>

#define READS_MAX 16

/* A copy to the host that was asked for. It is made when the kernels before it have ended: a copy
 * in the queue behind a kernel that never ends would write to memory that is used for something
 * else by then. */
struct read {
    size_t offset, bytes;
    void *to;
};

struct ifd_context {
    struct ifd_device *device;
    cl_command_queue queue;
    cl_mem memory;
    uint64_t fence; /* reads so far */
    struct read read[READS_MAX];
    uint32_t read_count;
    bool is_busy;             /* kernels may be in the queue */
    cl_event stuck;           /* NULL, or of a queue that was given up: what it waits for */
    struct ifd_context *next; /* in the device's list of those */
};

struct ifd_bound {
    struct ifd_partition *partition;
    cl_kernel *kernel;              /* per step */
    cl_command_buffer_khr recorded; /* all steps; NULL: they are launched one by one */
};

/* ---- contexts ---- */

static void release(struct ifd_context *context)
{
    const struct ifd_cl *cl = &context->device->cl;
    if (context->stuck) {
        (void)cl->ReleaseEvent(context->stuck);
    }
    if (context->queue) {
        (void)cl->ReleaseCommandQueue(context->queue);
    }
    if (context->memory) {
        (void)cl->ReleaseMemObject(context->memory);
    }
    ifd_release(context->device->host->alloc, context, sizeof(*context));
}

static void context_destroy(struct ifd_context *context)
{
    if (!context) {
        return;
    }
    if (!context->stuck) {
        release(context);
        return;
    }
    struct ifd_device *device = context->device;
    ifd_mutex_lock(&device->lock);
    context->next = device->stuck;
    device->stuck = context;
    ifd_mutex_unlock(&device->lock);
}

bool ifd_gpu_is_stuck(struct ifd_device *device)
{
    ifd_mutex_lock(&device->lock);
    struct ifd_context *context = device->stuck;
    device->stuck = NULL;
    while (context) {
        struct ifd_context *next = context->next;
        if (ifd_gpu_has_ended(device, context->stuck)) {
            release(context);
        } else {
            context->next = device->stuck;
            device->stuck = context;
        }
        context = next;
    }
    const bool is_stuck = device->stuck != NULL;
    ifd_mutex_unlock(&device->lock);
    return is_stuck;
}

bool ifd_gpu_drop_stuck(struct ifd_device *device)
{
    const bool is_stuck = ifd_gpu_is_stuck(device);
    while (device->stuck) {
        struct ifd_context *context = device->stuck;
        device->stuck = context->next;
        ifd_release(device->host->alloc, context, sizeof(*context));
    }
    return is_stuck;
}

static enum ifd_code make_memory(struct ifd_context *context, size_t bytes, struct ifd_err *err)
{
    const struct ifd_device *device = context->device;
    cl_int error = CL_SUCCESS;
    if (bytes > device->info.max_buffer) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: %zu bytes, expected at most %zu in one buffer",
                        bytes, device->info.max_buffer);
    }
    const cl_mem_flags where = device->maps ? CL_MEM_ALLOC_HOST_PTR : 0;
    context->memory = device->cl.CreateBuffer(device->context, CL_MEM_READ_WRITE | where,
                                              bytes ? bytes : 1, NULL, &error);
    return context->memory ? IFD_OK : ifd_cl_fail(err, error, "memory for tensors");
}

static enum ifd_code context_create(struct ifd_device *device, size_t bytes,
                                    struct ifd_context **ret_context, struct ifd_err *err)
{
    if (ifd_gpu_is_stuck(device)) {
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: " IFD_GPU_STUCK);
    }
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
    if (bound->recorded) {
        (void)context->device->recording.release(bound->recorded);
    }
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
    for (uint32_t i = 0; i < bound->partition->step_count; i++) {
        const struct ifd_gpu_step *step = &bound->partition->step[i];
        const char *name = ifd_gpu_kernel_name(step->kernel);
        cl_int error = CL_SUCCESS;
        bound->kernel[i] = ifd_gpu_create_kernel(context->device, step->program, name, &error);
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
    bound->recorded = ifd_gpu_record(context->device, context->queue, partition, bound->kernel);
    *ret_bound = bound;
    return IFD_OK;
}

/* ---- the queue ---- */

/* Waits until the queue is empty. */
static enum ifd_code drain(struct ifd_context *context, struct ifd_err *err)
{
    if (context->stuck) {
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: a kernel takes too long");
    }
    if (!context->is_busy) {
        return IFD_OK;
    }
    const enum ifd_code code = ifd_gpu_await(context->device, context->queue, &context->stuck, err);
    context->is_busy = context->stuck != NULL;
    return code;
}

/* After an error nothing may be in the queue. Whatever failed in a run, the next backend can do it
 * meanwhile, and a new context may work. */
static enum ifd_code fail(struct ifd_context *context, cl_int error, const char *what,
                          struct ifd_err *err)
{
    context->read_count = 0;
    (void)drain(context, NULL);
    (void)ifd_cl_fail(err, error, what);
    if (err) {
        err->code = IFD_UNAVAILABLE;
    }
    return IFD_UNAVAILABLE;
}

/* Copies between the host and memory that it can see. from, to: one is NULL, and is that memory. */
static cl_int copy_mapped(const struct ifd_context *context, size_t offset, const void *from,
                          void *to, size_t bytes)
{
    const struct ifd_cl *cl = &context->device->cl;
    const cl_map_flags flags = from ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ;
    cl_int error = CL_SUCCESS;
    void *mapped = cl->EnqueueMapBuffer(context->queue, context->memory, CL_TRUE, flags, offset,
                                        bytes, 0, NULL, NULL, &error);
    if (!mapped) {
        return error;
    }
    memcpy(from ? mapped : to, from ? from : mapped, bytes);
    return cl->EnqueueUnmapMemObject(context->queue, context->memory, mapped, 0, NULL, NULL);
}

/* The queue has ended its kernels. Returns when from may change. */
static cl_int copy_in(const struct ifd_context *context, size_t offset, const void *from,
                      size_t bytes)
{
    return context->device->maps
               ? copy_mapped(context, offset, from, NULL, bytes)
               : context->device->cl.EnqueueWriteBuffer(context->queue, context->memory, CL_TRUE,
                                                        offset, bytes, from, 0, NULL, NULL);
}

/* waits: for this copy, and those before it. */
static cl_int copy_out(const struct ifd_context *context, const struct read *read, bool waits)
{
    return context->device->maps
               ? copy_mapped(context, read->offset, NULL, read->to, read->bytes)
               : context->device->cl.EnqueueReadBuffer(context->queue, context->memory,
                                                       waits ? CL_TRUE : CL_FALSE, read->offset,
                                                       read->bytes, read->to, 0, NULL, NULL);
}

static enum ifd_code write(struct ifd_context *context, size_t offset, const void *from,
                           size_t bytes, struct ifd_err *err)
{
    const enum ifd_code code = drain(context, err); /* the copy cannot be given up */
    if (code != IFD_OK) {
        return code;
    }
    const cl_int error = copy_in(context, offset, from, bytes);
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
    if (context->stuck) {
        return drain(context, err);
    }
    context->is_busy = true;
    if (bound->recorded && !step_ns) {
        const cl_int error =
            context->device->recording.enqueue(1, &context->queue, bound->recorded, 0, NULL, NULL);
        return error == CL_SUCCESS ? IFD_OK : fail(context, error, "a command buffer", err);
    }
    for (uint32_t i = 0; i < bound->partition->step_count; i++) {
        const cl_int error =
            step_ns ? enqueue_timed(context, bound, i, step_ns) : enqueue(context, bound, i);
        if (error != CL_SUCCESS) {
            return fail(context, error, bound->partition->step[i].info.name, err);
        }
    }
    return IFD_OK;
}

/* Waits for the kernels, then makes the copies. The queue is in order: the last copy is waited for.
 */
static enum ifd_code finish(struct ifd_context *context, struct ifd_err *err)
{
    const enum ifd_code code = drain(context, err);
    const uint32_t count = context->read_count;
    cl_int error = CL_SUCCESS;
    context->read_count = 0;
    for (uint32_t i = 0; code == IFD_OK && error == CL_SUCCESS && i < count; i++) {
        error = copy_out(context, &context->read[i], i + 1 == count);
        context->is_busy = error != CL_SUCCESS;
    }
    return error == CL_SUCCESS ? code : fail(context, error, "a read", err);
}

static enum ifd_code read(struct ifd_context *context, size_t offset, void *to, size_t bytes,
                          uint64_t *ret_fence, struct ifd_err *err)
{
    const enum ifd_code code =
        context->read_count == READS_MAX || context->stuck ? finish(context, err) : IFD_OK;
    if (code == IFD_OK) {
        context->read[context->read_count++] =
            (struct read){.offset = offset, .bytes = bytes, .to = to};
        *ret_fence = ++context->fence;
    }
    return code;
}

/* More than what the fence asks for. */
static enum ifd_code wait(struct ifd_context *context, uint64_t fence, struct ifd_err *err)
{
    (void)fence;
    return finish(context, err);
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
