/* Runs a call on memory of its own. */
#include "backends/gpuacc/measure.h"

#include "backends/gpuacc/await.h"
#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/lower.h"

#define RUNS   4    /* the first is not counted */
#define NUMBER 0.5f /* products of it do not vanish */

static enum ifd_code make_queue(struct ifd_gpu_measure *m, const struct ifd_device *device,
                                struct ifd_err *err)
{
    cl_int error = CL_SUCCESS;
    if (!m->queue) {
        m->queue = device->cl.CreateCommandQueue(device->context, device->id,
                                                 CL_QUEUE_PROFILING_ENABLE, &error);
    }
    return m->queue ? IFD_OK : ifd_cl_fail(err, error, "a queue to measure");
}

static enum ifd_code make_room(struct ifd_gpu_measure *m, const struct ifd_device *device,
                               int which, size_t bytes, struct ifd_err *err)
{
    const float number = NUMBER;
    const size_t wanted = (bytes + sizeof(number) - 1) / sizeof(number) * sizeof(number);
    const struct ifd_cl *cl = &device->cl;
    cl_int error = CL_SUCCESS;
    if (wanted <= m->bytes[which]) {
        return IFD_OK;
    }
    if (m->buffer[which]) {
        (void)cl->ReleaseMemObject(m->buffer[which]);
    }
    m->bytes[which] = 0;
    m->buffer[which] = cl->CreateBuffer(device->context, CL_MEM_READ_WRITE, wanted, NULL, &error);
    if (m->buffer[which]) {
        m->bytes[which] = wanted;
        error = cl->EnqueueFillBuffer(m->queue, m->buffer[which], &number, sizeof(number), 0,
                                      wanted, 0, NULL, NULL);
    }
    return error == CL_SUCCESS ? IFD_OK : ifd_cl_fail(err, error, "memory to measure");
}

static bool is_image(const struct ifd_gpu_arg *arg)
{
    return arg->kind == IFD_GPU_ARG_CONSTANT && arg->constant.image.width > 0;
}

static enum ifd_code make_image(struct ifd_gpu_measure *m, const struct ifd_device *device,
                                const struct ifd_gpu_constant *constant, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    cl_int error = CL_SUCCESS;
    float *content = ifd_acquire_tensor(alloc, constant->bytes);
    if (!content) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for an image to measure");
    }
    for (size_t i = 0; i < constant->bytes / sizeof(*content); i++) {
        content[i] = NUMBER;
    }
    m->image = ifd_gpu_make_constant(device, constant, content, &error);
    ifd_release_tensor(alloc, content, constant->bytes);
    return m->image ? IFD_OK : ifd_cl_fail(err, error, "an image to measure");
}

static int buffer_of(const struct ifd_gpu_arg *arg)
{
    return arg->kind == IFD_GPU_ARG_IN ? 0 : arg->kind == IFD_GPU_ARG_OUT ? 1 : 2;
}

/* Constant memory may be smaller than what a call before needed, and kernels that read it take no
 * larger buffer. */
static void shrink_constants(struct ifd_gpu_measure *m, const struct ifd_device *device,
                             const struct ifd_gpu_call *call)
{
    enum { CONSTANTS = 2 };
    size_t wanted = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const struct ifd_gpu_arg *arg = &call->arg[i];
        if (arg->kind == IFD_GPU_ARG_CONSTANT && !is_image(arg) && arg->constant.bytes > wanted) {
            wanted = arg->constant.bytes;
        }
    }
    if (wanted <= device->info.constant_bytes &&
        m->bytes[CONSTANTS] > device->info.constant_bytes) {
        (void)device->cl.ReleaseMemObject(m->buffer[CONSTANTS]);
        m->buffer[CONSTANTS] = NULL;
        m->bytes[CONSTANTS] = 0;
    }
}

static enum ifd_code make_buffers(struct ifd_gpu_measure *m,
                                  const struct ifd_gpu_lowering *lowering,
                                  const struct ifd_gpu_call *call, struct ifd_err *err)
{
    enum ifd_code code = make_queue(m, lowering->device, err);
    shrink_constants(m, lowering->device, call);
    for (uint32_t i = 0; code == IFD_OK && i < call->arg_count; i++) {
        const struct ifd_gpu_arg *arg = &call->arg[i];
        if (is_image(arg)) {
            code = make_image(m, lowering->device, &arg->constant, err);
        } else if (arg->kind != IFD_GPU_ARG_NUMBER) {
            const size_t bytes = arg->kind == IFD_GPU_ARG_CONSTANT
                                     ? arg->constant.bytes
                                     : lowering->base.value[arg->value].bytes;
            code = make_room(m, lowering->device, buffer_of(arg), bytes, err);
        }
    }
    return code;
}

static cl_int set_args(const struct ifd_gpu_measure *m, const struct ifd_cl *cl,
                       const struct ifd_gpu_call *call, cl_kernel kernel)
{
    const cl_uint first = 0;
    cl_int error = CL_SUCCESS;
    cl_uint index = 0;
    for (uint32_t i = 0; error == CL_SUCCESS && i < call->arg_count; i++) {
        const struct ifd_gpu_arg *arg = &call->arg[i];
        if (arg->kind == IFD_GPU_ARG_NUMBER) {
            error = cl->SetKernelArg(kernel, index++, sizeof(arg->number), &arg->number);
            continue;
        }
        error = cl->SetKernelArg(kernel, index++, sizeof(cl_mem),
                                 is_image(arg) ? &m->image : &m->buffer[buffer_of(arg)]);
        if (error == CL_SUCCESS && arg->kind != IFD_GPU_ARG_CONSTANT) {
            error = cl->SetKernelArg(kernel, index++, sizeof(first), &first);
        }
    }
    return error;
}

static cl_int time_of(const struct ifd_cl *cl, cl_event event, uint64_t *ret_ns)
{
    cl_ulong begin = 0, end = 0;
    cl_int error =
        cl->GetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(begin), &begin, NULL);
    if (error == CL_SUCCESS) {
        error = cl->GetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL);
    }
    *ret_ns = end > begin ? end - begin : 0;
    return error;
}

static enum ifd_code run(struct ifd_gpu_measure *m, const struct ifd_device *device,
                         const struct ifd_gpu_call *call, cl_kernel kernel, uint64_t *ret_ns,
                         struct ifd_err *err)
{
    cl_event event = NULL, stuck = NULL;
    cl_int error =
        device->cl.EnqueueNDRangeKernel(m->queue, kernel, 3, NULL, call->items,
                                        call->group[0] ? call->group : NULL, 0, NULL, &event);
    if (error != CL_SUCCESS) {
        return ifd_cl_fail(err, error, "a measurement");
    }
    const enum ifd_code code = ifd_gpu_await(device, m->queue, &stuck, err);
    if (stuck) {
        m->is_stuck = true;
        (void)device->cl.ReleaseEvent(stuck);
    }
    error = code == IFD_OK ? time_of(&device->cl, event, ret_ns) : CL_SUCCESS;
    (void)device->cl.ReleaseEvent(event);
    return error == CL_SUCCESS ? code : ifd_cl_fail(err, error, "a measurement");
}

static enum ifd_code run_all(struct ifd_gpu_measure *m, const struct ifd_device *device,
                             const struct ifd_gpu_call *call, cl_kernel kernel, uint64_t *ret_ns,
                             struct ifd_err *err)
{
    const cl_int error = set_args(m, &device->cl, call, kernel);
    enum ifd_code code =
        error == CL_SUCCESS ? IFD_OK : ifd_cl_fail(err, error, "a kernel to measure");
    *ret_ns = UINT64_MAX;
    for (int i = 0; code == IFD_OK && i < RUNS; i++) {
        uint64_t ns = 0;
        code = run(m, device, call, kernel, &ns, err);
        *ret_ns = i > 0 && ns < *ret_ns ? ns : *ret_ns;
    }
    return code;
}

static enum ifd_code measure(struct ifd_gpu_measure *m, const struct ifd_gpu_lowering *lowering,
                             const struct ifd_gpu_call *call, uint64_t *ret_ns, struct ifd_err *err)
{
    const struct ifd_cl *cl = &lowering->device->cl;
    const char *name = ifd_gpu_kernel_name(call->kernel);
    struct ifd_gpu_program *program = NULL;
    cl_int error = CL_SUCCESS;
    if (m->is_stuck) {
        return ifd_fail(err, IFD_UNAVAILABLE, "an earlier measurement has not ended");
    }
    enum ifd_code code = ifd_gpu_program_of(lowering, call, &program, err);
    if (code == IFD_OK) {
        code = ifd_gpu_build_program(lowering->device, program, err);
    }
    if (code == IFD_OK) {
        code = make_buffers(m, lowering, call, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    cl_kernel kernel = ifd_gpu_create_kernel(lowering->device, program, name, &error);
    if (!kernel) {
        return ifd_cl_fail(err, error, name);
    }
    code = run_all(m, lowering->device, call, kernel, ret_ns, err);
    (void)cl->ReleaseKernel(kernel);
    return code;
}

enum ifd_code ifd_gpu_measure(struct ifd_gpu_measure *m, struct ifd_gpu_lowering *lowering,
                              const struct ifd_gpu_call *call, uint64_t *ret_ns,
                              struct ifd_err *err)
{
    const enum ifd_code code = measure(m, lowering, call, ret_ns, err);
    if (m->image && !m->is_stuck) {
        (void)lowering->device->cl.ReleaseMemObject(m->image);
        m->image = NULL;
    }
    return code;
}

void ifd_gpu_measure_finish(struct ifd_gpu_measure *m, const struct ifd_cl *cl)
{
    if (m->is_stuck) { /* the driver would wait */
        return;
    }
    for (int i = 0; i < IFD_GPU_MEASURE_BUFFERS; i++) {
        if (m->buffer[i]) {
            (void)cl->ReleaseMemObject(m->buffer[i]);
        }
    }
    if (m->queue) {
        (void)cl->ReleaseCommandQueue(m->queue);
    }
    *m = (struct ifd_gpu_measure){.queue = NULL};
}
