/* Makes contexts and lends them. */
#include "backends/gpuacc/pool.h"

#include "backends/gpuacc/partition.h"

void ifd_gpu_pool_init(struct ifd_gpu_pool *pool)
{
    *pool = (struct ifd_gpu_pool){.count = 0};
    ifd_mutex_init(&pool->lock);
    ifd_cond_init(&pool->is_back);
}

/* ---- making one ---- */

static enum ifd_code make_buffer(const struct ifd_partition *partition, size_t bytes, cl_mem *ret,
                                 struct ifd_err *err)
{
    const struct ifd_device *device = partition->device;
    cl_int error = CL_SUCCESS;
    if (bytes > device->info.max_buffer) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "GpuAcc: a buffer of %zu bytes, the device has at most %zu", bytes,
                        device->info.max_buffer);
    }
    *ret = device->cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL,
                                   &error);
    return *ret ? IFD_OK : ifd_cl_fail(err, error, "a buffer");
}

static enum ifd_code make_memory(const struct ifd_partition *partition,
                                 struct ifd_gpu_context *context, struct ifd_err *err)
{
    enum ifd_code code = make_buffer(partition, partition->scratch_bytes, &context->scratch, err);
    for (uint32_t i = 0; code == IFD_OK && i < partition->input_count; i++) {
        code = make_buffer(partition, partition->input_bytes[i], &context->input[i], err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < partition->output_count; i++) {
        code = make_buffer(partition, partition->output_bytes[i], &context->output[i], err);
    }
    return code;
}

static cl_mem buffer_of(const struct ifd_gpu_context *context, const struct ifd_low_place *place)
{
    return place->where == IFD_LOW_INPUT    ? context->input[place->slot]
           : place->where == IFD_LOW_OUTPUT ? context->output[place->slot]
                                            : context->scratch;
}

static cl_int set_args(const struct ifd_partition *partition, const struct ifd_gpu_step *step,
                       const struct ifd_gpu_context *context, cl_kernel kernel)
{
    const struct ifd_cl *cl = &partition->device->cl;
    cl_int error = CL_SUCCESS;
    cl_uint index = 0;
    for (uint32_t i = 0; error == CL_SUCCESS && i < step->arg_count; i++) {
        const struct ifd_gpu_bound *arg = &step->arg[i];
        if (arg->kind == IFD_GPU_ARG_NUMBER) {
            error = cl->SetKernelArg(kernel, index++, sizeof(arg->number), &arg->number);
        } else if (arg->kind == IFD_GPU_ARG_CONSTANT) {
            error = cl->SetKernelArg(kernel, index++, sizeof(arg->buffer), &arg->buffer);
        } else {
            const cl_mem buffer = arg->buffer ? arg->buffer : buffer_of(context, &arg->place);
            error = cl->SetKernelArg(kernel, index++, sizeof(buffer), &buffer);
            if (error == CL_SUCCESS) {
                error = cl->SetKernelArg(kernel, index++, sizeof(arg->at), &arg->at);
            }
        }
    }
    return error;
}

static enum ifd_code make_kernels(const struct ifd_partition *partition,
                                  struct ifd_gpu_context *context, struct ifd_err *err)
{
    const struct ifd_cl *cl = &partition->device->cl;
    for (uint32_t i = 0; i < partition->step_count; i++) {
        const struct ifd_gpu_step *step = &partition->step[i];
        const char *name = ifd_gpu_kernel_name(step->kernel);
        cl_int error = CL_SUCCESS;
        context->kernel[i] = cl->CreateKernel(step->program, name, &error);
        if (context->kernel[i]) {
            error = set_args(partition, step, context, context->kernel[i]);
        }
        if (error != CL_SUCCESS) {
            return ifd_cl_fail(err, error, name);
        }
    }
    return IFD_OK;
}

static void release_buffers(const struct ifd_cl *cl, cl_mem *buffer, uint32_t count)
{
    for (uint32_t i = 0; buffer && i < count; i++) {
        if (buffer[i]) {
            (void)cl->ReleaseMemObject(buffer[i]);
        }
    }
}

static void release_context(struct ifd_partition *partition, struct ifd_gpu_context *context)
{
    const struct ifd_cl *cl = &partition->device->cl;
    const struct ifd_alloc *alloc = partition->device->host->alloc;
    for (uint32_t i = 0; context->kernel && i < partition->step_count; i++) {
        if (context->kernel[i]) {
            (void)cl->ReleaseKernel(context->kernel[i]);
        }
    }
    release_buffers(cl, context->input, partition->input_count);
    release_buffers(cl, context->output, partition->output_count);
    release_buffers(cl, &context->scratch, 1);
    if (context->queue) {
        (void)cl->ReleaseCommandQueue(context->queue);
    }
    ifd_release(alloc, context->input, partition->input_count * sizeof(cl_mem));
    ifd_release(alloc, context->output, partition->output_count * sizeof(cl_mem));
    ifd_release(alloc, context->kernel, partition->step_count * sizeof(cl_kernel));
    ifd_release(alloc, context, sizeof(*context));
}

static bool take_arrays(const struct ifd_partition *partition, struct ifd_gpu_context *context)
{
    const struct ifd_alloc *alloc = partition->device->host->alloc;
    context->input = ifd_acquire_zeroed(alloc, partition->input_count, sizeof(cl_mem));
    context->output = ifd_acquire_zeroed(alloc, partition->output_count, sizeof(cl_mem));
    context->kernel = ifd_acquire_zeroed(alloc, partition->step_count, sizeof(cl_kernel));
    return (context->input || partition->input_count == 0) && context->output && context->kernel;
}

static enum ifd_code make_context(struct ifd_partition *partition, struct ifd_gpu_context **ret,
                                  struct ifd_err *err)
{
    const struct ifd_device *device = partition->device;
    struct ifd_gpu_context *context = ifd_acquire_zeroed(device->host->alloc, 1, sizeof(*context));
    if (!context) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a context");
    }
    cl_int error = CL_SUCCESS;
    enum ifd_code code = take_arrays(partition, context)
                             ? IFD_OK
                             : ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a context");
    if (code == IFD_OK) {
        context->queue = device->cl.CreateCommandQueue(device->context, device->id, 0, &error);
        code = context->queue ? IFD_OK : ifd_cl_fail(err, error, "a queue");
    }
    if (code == IFD_OK) {
        code = make_memory(partition, context, err);
    }
    if (code == IFD_OK) {
        code = make_kernels(partition, context, err);
    }
    if (code != IFD_OK) {
        release_context(partition, context);
        return code;
    }
    *ret = context;
    return IFD_OK;
}

/* ---- lending ---- */

enum ifd_code ifd_gpu_borrow(struct ifd_partition *partition, struct ifd_gpu_context **ret,
                             struct ifd_err *err)
{
    struct ifd_gpu_pool *pool = &partition->pool;
    ifd_mutex_lock(&pool->lock);
    while (!pool->free && pool->count == IFD_GPU_CONTEXTS_MAX) {
        ifd_cond_wait(&pool->is_back, &pool->lock);
    }
    *ret = pool->free;
    if (pool->free) {
        pool->free = pool->free->next;
        ifd_mutex_unlock(&pool->lock);
        return IFD_OK;
    }
    pool->count++;
    ifd_mutex_unlock(&pool->lock);
    const enum ifd_code code = make_context(partition, ret, err);
    if (code != IFD_OK) {
        ifd_mutex_lock(&pool->lock);
        pool->count--;
        ifd_cond_signal(&pool->is_back);
        ifd_mutex_unlock(&pool->lock);
    }
    return code;
}

void ifd_gpu_give_back(struct ifd_partition *partition, struct ifd_gpu_context *context)
{
    struct ifd_gpu_pool *pool = &partition->pool;
    ifd_mutex_lock(&pool->lock);
    context->next = pool->free;
    pool->free = context;
    ifd_cond_signal(&pool->is_back);
    ifd_mutex_unlock(&pool->lock);
}

void ifd_gpu_pool_finish(struct ifd_partition *partition)
{
    struct ifd_gpu_pool *pool = &partition->pool;
    while (pool->free) {
        struct ifd_gpu_context *context = pool->free;
        pool->free = context->next;
        release_context(partition, context);
    }
    ifd_cond_finish(&pool->is_back);
    ifd_mutex_finish(&pool->lock);
}
