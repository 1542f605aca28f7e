/* Calls of OpenCL that fail on demand: every one of them on the way from a node to its result is an
 * error with a reason, and nothing of the device's is left behind. */
#include "backends/gpuacc/device.h"
#include "backends/gpuacc/gpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <string.h>

enum { ROWS = 2, DEPTH = 3, COLUMNS = 5 };

/* The device's functions, and which call of those that are counted fails. */
static struct {
    struct ifd_cl real;
    uint32_t calls, fails_at; /* fails_at 0: none */
    int handles;              /* buffers, queues and kernels that are alive */
    cl_int error;
} faults;

static bool fails(void)
{
    return ++faults.calls == faults.fails_at;
}

/* A function that returns an error. */
#define STATUS(name, params, args)                                                                 \
    static cl_int CL_API_CALL fake_##name params                                                   \
    {                                                                                              \
        return fails() ? faults.error : faults.real.name args;                                     \
    }
/* A function that makes something; its last parameter tells why not. */
#define CREATE(type, name, params, args)                                                           \
    static type CL_API_CALL fake_##name params                                                     \
    {                                                                                              \
        if (fails()) {                                                                             \
            *ret_error = faults.error;                                                             \
            return NULL;                                                                           \
        }                                                                                          \
        faults.handles++;                                                                          \
        return faults.real.name args;                                                              \
    }
#define RELEASE(type, name)                                                                        \
    static cl_int CL_API_CALL fake_##name(type handle)                                             \
    {                                                                                              \
        faults.handles--;                                                                          \
        return faults.real.name(handle);                                                           \
    }

STATUS(BuildProgram,
       (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
        void(CL_CALLBACK *notify)(cl_program, void *), void *data),
       (program, count, devices, options, notify, data))
STATUS(SetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
       (kernel, index, size, value))
STATUS(EnqueueNDRangeKernel,
       (cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
        const size_t *items, const size_t *group, cl_uint count, const cl_event *list,
        cl_event *event),
       (queue, kernel, dims, offset, items, group, count, list, event))
STATUS(EnqueueWriteBuffer,
       (cl_command_queue queue, cl_mem buffer, cl_bool blocks, size_t offset, size_t size,
        const void *from, cl_uint count, const cl_event *list, cl_event *event),
       (queue, buffer, blocks, offset, size, from, count, list, event))
STATUS(EnqueueReadBuffer,
       (cl_command_queue queue, cl_mem buffer, cl_bool blocks, size_t offset, size_t size, void *to,
        cl_uint count, const cl_event *list, cl_event *event),
       (queue, buffer, blocks, offset, size, to, count, list, event))
STATUS(Finish, (cl_command_queue queue), (queue))
CREATE(cl_mem, CreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *ret_error),
       (context, flags, size, host, ret_error))
CREATE(cl_command_queue, CreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *ret_error),
       (context, device, properties, ret_error))
CREATE(cl_kernel, CreateKernel, (cl_program program, const char *name, cl_int *ret_error),
       (program, name, ret_error))
CREATE(cl_program, CreateProgramWithSource,
       (cl_context context, cl_uint count, const char **text, const size_t *sizes,
        cl_int *ret_error),
       (context, count, text, sizes, ret_error))
RELEASE(cl_mem, ReleaseMemObject)
RELEASE(cl_command_queue, ReleaseCommandQueue)
RELEASE(cl_kernel, ReleaseKernel)
RELEASE(cl_program, ReleaseProgram)

static struct ifd_device *open_device(void)
{
    static struct ifd_host host = {.bytes = sizeof(host), .op_def = ifd_op_def, .fail = ifd_fail};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    host.alloc = ifd_alloc_system();
    const enum ifd_code code = ifd_backend_gpuacc.open(&host, &device, &err);
    if (code == IFD_UNAVAILABLE) {
        test_skip(err.text);
    }
    REQUIRE_OK(code, &err);
    faults.real = device->cl;
    faults.calls = 0;
    faults.handles = 0;
#define FAKE(name) device->cl.name = fake_##name
    FAKE(BuildProgram);
    FAKE(SetKernelArg);
    FAKE(EnqueueNDRangeKernel);
    FAKE(EnqueueWriteBuffer);
    FAKE(EnqueueReadBuffer);
    FAKE(Finish);
    FAKE(CreateBuffer);
    FAKE(CreateCommandQueue);
    FAKE(CreateKernel);
    FAKE(CreateProgramWithSource);
    FAKE(ReleaseMemObject);
    FAKE(ReleaseCommandQueue);
    FAKE(ReleaseKernel);
    FAKE(ReleaseProgram);
#undef FAKE
    return device;
}

/* A fully connected layer of ones: every result is DEPTH. */
static void make_node(struct one_node *node, const struct ifd_fully_connected_attrs *attrs)
{
    static float ones[64];
    const struct ifd_desc input = {.dtype = IFD_F32, .shape = {2, {ROWS, DEPTH}}};
    const struct ifd_desc weights = {.dtype = IFD_F32, .shape = {2, {COLUMNS, DEPTH}}};
    const struct ifd_desc output = {.dtype = IFD_F32, .shape = {2, {ROWS, COLUMNS}}};
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        ones[i] = 1;
    }
    one_node_init(node, "layer", IFD_OP_FULLY_CONNECTED, attrs);
    one_node_add_input(node, &input, ones, false);
    one_node_add_input(node, &weights, ones, true);
    one_node_add_output(node, &output);
}

static enum ifd_code queue_run(struct one_node *node, struct ifd_context *context,
                               struct ifd_bound *bound, struct ifd_err *err)
{
    const struct ifd_memory_ops *ops = ifd_backend_gpuacc.memory;
    uint64_t fence = 0;
    enum ifd_code code = ops->write(context, 0, node->input[0], ROWS * DEPTH * sizeof(float), err);
    if (code == IFD_OK) {
        code = ops->submit(context, bound, NULL, err);
    }
    if (code == IFD_OK) {
        code = ops->read(context, 256, node->output[0], node->output_bytes[0], &fence, err);
    }
    return code == IFD_OK ? ops->wait(context, fence, err) : code;
}

/* From the node to the result. calls: how many calls of OpenCL it took until then. */
static enum ifd_code compute(struct ifd_device *device, struct one_node *node, uint32_t *ret_calls,
                             struct ifd_err *err)
{
    static const size_t input[] = {0}, output[] = {256};
    const struct ifd_memory_ops *ops = ifd_backend_gpuacc.memory;
    const struct ifd_places places = {.input = input, .output = output, .scratch = 512};
    struct ifd_partition *partition = NULL;
    struct ifd_partition_info info = {0};
    struct ifd_context *context = NULL;
    struct ifd_bound *bound = NULL;
    enum ifd_code code =
        ifd_backend_gpuacc.compile(device, &node->view, NULL, &partition, &info, err);
    if (code == IFD_OK) {
        code =
            ops->context_create(device, 512 + info.scratch_bytes + IFD_TENSOR_PAD, &context, err);
    }
    if (code == IFD_OK) {
        code = ops->bind(context, partition, &places, &bound, err);
    }
    if (code == IFD_OK) {
        code = queue_run(node, context, bound, err);
    }
    *ret_calls = faults.calls;
    if (context) {
        ops->unbind(context, bound);
    }
    ops->context_destroy(context);
    ifd_backend_gpuacc.release(partition);
    return code;
}

/* One start, in which the k-th call fails; returns how many calls there were. */
static uint32_t start(uint32_t k, cl_int error, enum ifd_code want)
{
    static struct one_node node; /* large */
    const struct ifd_fully_connected_attrs attrs = {.activation = IFD_ACT_NONE};
    struct ifd_device *device = open_device();
    struct ifd_err err = {0};
    uint32_t calls = 0;
    faults.fails_at = k;
    faults.error = error;
    make_node(&node, &attrs);
    const enum ifd_code code = compute(device, &node, &calls, &err);
    faults.fails_at = 0;
    EXPECT_CODE(code, want, &err);
    EXPECT((want == IFD_OK) == (err.text[0] == '\0'));
    for (size_t i = 0; want == IFD_OK && i < ROWS * COLUMNS; i++) {
        EXPECT_CLOSE(((const float *)(const void *)node.output[0])[i], DEPTH, 0);
    }
    const int programs = device->programs ? 1 : 0; /* which the device keeps */
    EXPECT_INT(faults.handles, programs);
    ifd_backend_gpuacc.close(device);
    one_node_finish(&node);
    return calls;
}

static void every_call_that_fails_is_an_error(void)
{
    const uint32_t calls = start(0, CL_SUCCESS, IFD_OK);
    EXPECT(calls > 15);
    for (uint32_t k = 1; k <= calls; k++) {
        start(k, CL_INVALID_VALUE, IFD_INTERNAL);
    }
}

static void a_lost_device_is_told_from_want_of_memory(void)
{
    const uint32_t calls = start(0, CL_SUCCESS, IFD_OK);
    start(calls, CL_DEVICE_NOT_AVAILABLE, IFD_UNAVAILABLE);        /* wait */
    start(calls - 1, CL_OUT_OF_RESOURCES, IFD_UNAVAILABLE);        /* read */
    start(calls - 2, CL_MEM_OBJECT_ALLOCATION_FAILURE, IFD_NOMEM); /* the kernel */
    start(calls, CL_OUT_OF_HOST_MEMORY, IFD_NOMEM);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_call_that_fails_is_an_error),
        T(a_lost_device_is_told_from_want_of_memory),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
