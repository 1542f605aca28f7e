/* Calls of OpenCL that fail on demand, each in its turn, on a library of our own: every failure is
 * a reason, nothing is left behind, and the next start works. */
#include "backends/gpuacc/cl.h"
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/partition.h"
#include "inferd/op_attrs.h"
#include "tests/conformance/one_node.h"
#include "tests/support/fake_opencl.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, DEPTH = 3, COLUMNS = 5 };

/* The library that GpuAcc finds, too. */
static const struct fake_opencl *library(void)
{
    void *opened = dlopen("libOpenCL.so.1", RTLD_NOW);
    REQUIRE(opened);
    const struct fake_opencl *table = dlsym(opened, FAKE_OPENCL_TABLE);
    REQUIRE(table); /* else LD_LIBRARY_PATH lacks the folder of the fake */
    return table;
}

static void set_rule(const char *function, uint32_t first, int error, int times)
{
    char rule[128];
    (void)snprintf(rule, sizeof(rule), "%s %u %d %d", function, first, error, times);
    library()->set(rule);
}

static enum ifd_code open_device(const struct ifd_backend_option *option, uint32_t count,
                                 struct ifd_device **ret, struct ifd_err *err)
{
    static struct ifd_host host = {.bytes = sizeof(host), .op_def = ifd_op_def, .fail = ifd_fail};
    host.alloc = ifd_alloc_system();
    host.option = option;
    host.option_count = count;
    return ifd_backend_gpuacc.open(&host, ret, err);
}

/* A fully connected layer of ones. */
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

/* A node on a device; a context is made and left with it. */
struct work {
    struct one_node node;
    struct ifd_partition *partition;
    struct ifd_partition_info info;
    struct ifd_context *context;
    struct ifd_bound *bound;
};

static enum ifd_code make_context(struct work *work, struct ifd_device *device, struct ifd_err *err)
{
    static const size_t input[] = {0}, output[] = {256};
    const struct ifd_memory_ops *ops = ifd_backend_gpuacc.memory;
    const struct ifd_places places = {.input = input, .output = output, .scratch = 512};
    const size_t bytes = 512 + work->info.scratch_bytes + IFD_TENSOR_PAD;
    const enum ifd_code code = ops->context_create(device, bytes, &work->context, err);
    return code == IFD_OK ? ops->bind(work->context, work->partition, &places, &work->bound, err)
                          : code;
}

static void drop_context(struct work *work)
{
    const struct ifd_memory_ops *ops = ifd_backend_gpuacc.memory;
    if (work->context) {
        ops->unbind(work->context, work->bound);
    }
    ops->context_destroy(work->context);
    work->context = NULL;
    work->bound = NULL;
}

static enum ifd_code begin(struct work *work, struct ifd_device *device, struct ifd_err *err)
{
    static const struct ifd_fully_connected_attrs attrs = {.activation = IFD_ACT_NONE};
    make_node(&work->node, &attrs);
    const enum ifd_code code = ifd_backend_gpuacc.compile(device, &work->node.view, NULL,
                                                          &work->partition, &work->info, err);
    return code == IFD_OK ? make_context(work, device, err) : code;
}

static void end(struct work *work)
{
    drop_context(work);
    ifd_backend_gpuacc.release(work->partition);
    one_node_finish(&work->node);
    *work = (struct work){0};
}

/* From the library to a result, and back to nothing. cache: a folder, or NULL. */
static enum ifd_code start(const char *cache, struct ifd_err *err)
{
    static struct work work; /* large */
    const struct ifd_backend_option option = {"cache", cache};
    struct ifd_device *device = NULL;
    enum ifd_code code = open_device(&option, cache ? 1 : 0, &device, err);
    if (code == IFD_OK) {
        code = begin(&work, device, err);
        if (code == IFD_OK) {
            code = queue_run(&work.node, work.context, work.bound, err);
        }
        end(&work);
    }
    ifd_backend_gpuacc.close(device);
    EXPECT_INT(library()->alive(), 0);
    return code;
}

/* Every call of a function fails in its turn, until a start has no more calls of it. At least one
 * of them must have been there. want: the error; IFD_OK: none. */
static void fail_each(const char *function, int error, const char *cache, enum ifd_code want)
{
    for (uint32_t n = 1;; n++) {
        struct ifd_err err = {0};
        set_rule(function, n, error, 1);
        const enum ifd_code code = start(cache, &err);
        const bool has_failed = library()->has_failed();
        library()->set("");
        EXPECT_CODE(code, has_failed ? want : IFD_OK, &err);
        if (code != IFD_OK) {
            EXPECT_HAS(err.text, "GpuAcc: ");
            EXPECT_INT(start(cache, &err), IFD_OK);
        }
        if (!has_failed) {
            EXPECT(n > 1);
            return;
        }
    }
}

static void a_device_that_does_not_open_is_unavailable(void)
{
    static const char *const functions[] = {"clGetPlatformIDs", "clGetDeviceIDs",
                                            "clCreateContext"};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        fail_each(functions[i], CL_DEVICE_NOT_FOUND, NULL, IFD_UNAVAILABLE);
    }
    fail_each("clCreateCommandQueue", CL_OUT_OF_RESOURCES, NULL, IFD_UNAVAILABLE); /* later, too */
}

static void what_cannot_be_built_is_an_error(void)
{
    static const char *const functions[] = {"clCreateProgramWithSource", "clBuildProgram",
                                            "clCreateKernel", "clSetKernelArg"};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        fail_each(functions[i], CL_INVALID_VALUE, NULL, IFD_INTERNAL);
    }
    fail_each("clCreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE, NULL, IFD_NOMEM);
}

static void a_build_that_fails_has_the_compilers_words(void)
{
    struct ifd_err err = {0};
    set_rule("clBuildProgram", 1, CL_BUILD_PROGRAM_FAILURE, 1);
    EXPECT_CODE(start(NULL, &err), IFD_UNSUPPORTED, &err);
    EXPECT_HAS(err.text, "fully_connected of \"layer\": kernel file conv.cl does not build");
    EXPECT_HAS(err.text, "CL_BUILD_PROGRAM_FAILURE");
    EXPECT_HAS(err.text, "error: said by the fake compiler");
    set_rule("any", 1, CL_OUT_OF_RESOURCES, 0);
    EXPECT_CODE(start(NULL, &err), IFD_UNAVAILABLE, &err);
    library()->set("");
}

static void what_does_not_build_is_not_taken_again(void)
{
    static struct work work;
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(open_device(NULL, 0, &device, &err), &err);
    set_rule("clBuildProgram", 1, CL_OUT_OF_RESOURCES, 0);
    EXPECT_CODE(begin(&work, device, &err), IFD_UNSUPPORTED, &err);
    struct ifd_node_view node = work.node.view.node[0].view;
    EXPECT_INT(ifd_backend_gpuacc.cost(device, &node, &err), 0);
    EXPECT_HAS(err.text, "does not build on Fake GPU: error -5");
    node.op = IFD_OP_SOFTMAX; /* others are */
    node.attrs = &(struct ifd_softmax_attrs){.beta = 1};
    EXPECT(ifd_backend_gpuacc.cost(device, &node, &err) > 0);
    end(&work);
    ifd_backend_gpuacc.close(device);
    library()->set("");
}

static void what_fails_in_a_run_is_a_lost_device(void)
{
    static const char *const functions[] = {"clEnqueueNDRangeKernel",
                                            "clEnqueueWriteBuffer",
                                            "clEnqueueReadBuffer",
                                            "clEnqueueMarkerWithWaitList",
                                            "clGetEventInfo",
                                            "clFlush",
                                            "kernel"};
    static const int errors[] = {CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES,
                                 CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_WORK_GROUP_SIZE};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
            fail_each(functions[i], errors[k], NULL, IFD_UNAVAILABLE);
        }
    }
}

static void empty_folder(void)
{
    DIR *folder = opendir(folder_path());
    REQUIRE(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            REQUIRE(remove(folder_at(entry->d_name)) == 0);
        }
    }
    (void)closedir(folder);
}

static void what_is_not_needed_may_fail(void)
{
    struct ifd_err err = {0};
    fail_each("clGetPlatformInfo", CL_OUT_OF_HOST_MEMORY, NULL, IFD_OK);
    fail_each("clGetDeviceInfo", CL_OUT_OF_HOST_MEMORY, NULL, IFD_OK);
    folder_begin();
    set_rule("clGetProgramInfo", 1, CL_OUT_OF_HOST_MEMORY, 0); /* nothing is kept */
    REQUIRE_OK(start(folder_path(), &err), &err);
    EXPECT(library()->has_failed());
    library()->set("");
    REQUIRE_OK(start(folder_path(), &err), &err); /* it is now */
    EXPECT(library()->calls("clCreateProgramWithSource") > 0);
    library()->set("");
    REQUIRE_OK(start(folder_path(), &err), &err);
    EXPECT_INT(library()->calls("clCreateProgramWithSource"), 0);
    fail_each("clCreateProgramWithBinary", CL_INVALID_BINARY, folder_path(), IFD_OK);
    fail_each("clBuildProgram", CL_INVALID_BINARY, folder_path(), IFD_OK);
    empty_folder();
    folder_end();
}

static void shared_memory_is_mapped(void)
{
    struct ifd_err err = {0};
    REQUIRE(setenv("IFD_FAKE_OPENCL_SHARED", "1", 1) == 0);
    library()->set("");
    REQUIRE_OK(start(NULL, &err), &err);
    EXPECT_INT(library()->calls("clEnqueueMapBuffer"), 2);
    EXPECT_INT(library()->calls("clEnqueueUnmapMemObject"), 2);
    EXPECT_INT(library()->calls("clEnqueueWriteBuffer"), 0);
    EXPECT_INT(library()->calls("clEnqueueReadBuffer"), 0);
    fail_each("clEnqueueMapBuffer", CL_OUT_OF_RESOURCES, NULL, IFD_UNAVAILABLE);
    fail_each("clEnqueueUnmapMemObject", CL_OUT_OF_RESOURCES, NULL, IFD_UNAVAILABLE);
    REQUIRE(unsetenv("IFD_FAKE_OPENCL_SHARED") == 0);
}

static void kernels_are_recorded_where_the_device_can(void)
{
    static const char *const functions[] = {"clGetExtensionFunctionAddressForPlatform",
                                            "clCreateCommandBufferKHR", "clCommandNDRangeKernelKHR",
                                            "clFinalizeCommandBufferKHR"};
    struct ifd_err err = {0};
    REQUIRE(setenv("IFD_FAKE_OPENCL_RECORDS", "1", 1) == 0);
    library()->set("");
    REQUIRE_OK(start(NULL, &err), &err);
    EXPECT_INT(library()->calls("clEnqueueCommandBufferKHR"), 1);
    EXPECT_INT(library()->calls("kernel"), 1);
    EXPECT_INT(library()->calls("clEnqueueNDRangeKernel"), 0);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        set_rule(functions[i], 1, CL_OUT_OF_RESOURCES, 1); /* without it, kernels are launched */
        REQUIRE_OK(start(NULL, &err), &err);
        EXPECT_INT(library()->calls("clEnqueueNDRangeKernel"), 1);
        fail_each(functions[i], CL_OUT_OF_RESOURCES, NULL, IFD_OK);
    }
    fail_each("clEnqueueCommandBufferKHR", CL_OUT_OF_RESOURCES, NULL, IFD_UNAVAILABLE);
    fail_each("kernel", CL_OUT_OF_RESOURCES, NULL, IFD_UNAVAILABLE);
    REQUIRE(unsetenv("IFD_FAKE_OPENCL_RECORDS") == 0);
}

static void devices_compute_apart(void)
{
    static struct work work[2];
    static const struct ifd_backend_option which[2] = {{"device", "fake gpu"}, {"device", "cpu"}};
    struct ifd_device *device[2] = {NULL, NULL};
    struct ifd_err err = {0};
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(open_device(&which[i], 1, &device[i], &err), &err);
        REQUIRE_OK(begin(&work[i], device[i], &err), &err);
    }
    for (unsigned i = 0; i < 2; i++) {
        const unsigned other = library()->launches(1 - i), before = library()->launches(i);
        REQUIRE_OK(queue_run(&work[i].node, work[i].context, work[i].bound, &err), &err);
        EXPECT_INT(library()->launches(i), before + 1);
        EXPECT_INT(library()->launches(1 - i), other);
    }
    for (int i = 0; i < 2; i++) {
        end(&work[i]);
        ifd_backend_gpuacc.close(device[i]);
    }
    EXPECT_INT(library()->alive(), 0);
}

/* Groups that share local memory need more of a device than it may have. */
static void a_plainer_kernel_takes_the_place_of_one_that_is_not_built(void)
{
    static struct work work;
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(open_device(NULL, 0, &device, &err), &err);
    device->tuner.only = "conv2d_tile 4x4 8x8x1 16";
    device->info.max_group = 64;
    device->info.local_bytes = 32 << 10;
    for (int fails = 0; fails < 2; fails++) {
        if (fails) {
            device->tuner.only = "conv2d_tile 4x4 16x8x1 16"; /* not built yet */
            device->info.max_group = 128;
            set_rule("clBuildProgram", 1, CL_BUILD_PROGRAM_FAILURE, 1);
        }
        EXPECT_CODE(begin(&work, device, &err), IFD_OK, &err);
        EXPECT_INT(work.partition->step[0].kernel, fails ? IFD_GPU_conv2d : IFD_GPU_conv2d_tile);
        EXPECT_INT(library()->has_failed(), fails);
        library()->set("");
        EXPECT_CODE(queue_run(&work.node, work.context, work.bound, &err), IFD_OK, &err);
        end(&work);
    }
    ifd_backend_gpuacc.close(device);
    EXPECT_INT(library()->alive(), 0);
}

/* A model is loaded all the same. */
static void measurements_that_fail_choose_nothing(void)
{
    static const char *const functions[] = {"clEnqueueFillBuffer", "clGetEventProfilingInfo",
                                            "clCreateImage"};
    static const struct ifd_backend_option option = {"tuning", "3"};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        static struct work work;
        struct ifd_device *device = NULL;
        struct ifd_err err = {0};
        set_rule(functions[i], 1, CL_OUT_OF_RESOURCES, 0);
        REQUIRE_OK(open_device(&option, 1, &device, &err), &err);
        EXPECT_CODE(begin(&work, device, &err), IFD_OK, &err);
        EXPECT(library()->has_failed());
        library()->set("");
        EXPECT_CODE(queue_run(&work.node, work.context, work.bound, &err), IFD_OK, &err);
        end(&work);
        ifd_backend_gpuacc.close(device);
        EXPECT_INT(library()->alive(), 0);
    }
}

/* ---- kernels that never end ---- */

static struct ifd_device *open_hasty(void)
{
    static const struct ifd_backend_option option = {"timeout-ms", "20"};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(open_device(&option, 1, &device, &err), &err);
    return device;
}

static void a_kernel_that_never_ends_is_given_up(void)
{
    static struct work work;
    struct ifd_device *device = open_hasty();
    struct ifd_partition *other = NULL;
    struct ifd_partition_info info = {0};
    struct ifd_err err = {0};
    float *result = NULL;
    REQUIRE_OK(begin(&work, device, &err), &err);
    result = (float *)(void *)work.node.output[0];
    result[0] = 7;
    library()->set("hang");
    EXPECT_CODE(queue_run(&work.node, work.context, work.bound, &err), IFD_UNAVAILABLE, &err);
    EXPECT_TEXT(err.text, "GpuAcc: the device has not finished within 20 ms (timeout-ms)");
    EXPECT_CODE(queue_run(&work.node, work.context, work.bound, &err), IFD_UNAVAILABLE, &err);
    drop_context(&work);
    EXPECT_CODE(make_context(&work, device, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "still runs");
    EXPECT_CODE(ifd_backend_gpuacc.compile(device, &work.node.view, NULL, &other, &info, &err),
                IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "still runs");
    EXPECT(result[0] == 7); /* nobody writes what nobody waits for */
    library()->set("");
    EXPECT(result[0] == 7);
    REQUIRE_OK(make_context(&work, device, &err), &err);
    EXPECT_CODE(queue_run(&work.node, work.context, work.bound, &err), IFD_OK, &err);
    EXPECT(result[0] == 0);
    end(&work);
    ifd_backend_gpuacc.close(device);
    EXPECT_INT(library()->alive(), 0);
}

static void a_device_closes_while_a_kernel_does_not_end(void)
{
    static struct work work;
    struct ifd_device *device = open_hasty();
    struct ifd_err err = {0};
    REQUIRE_OK(begin(&work, device, &err), &err);
    library()->set("hang");
    EXPECT_CODE(queue_run(&work.node, work.context, work.bound, &err), IFD_UNAVAILABLE, &err);
    end(&work);
    ifd_backend_gpuacc.close(device);
    EXPECT(library()->alive() > 0); /* queue, memory and what they need are left to the driver */
}

static void values_of_options_are_checked(void)
{
    const struct ifd_backend_option transfer = {"transfer", "fast"}, record = {"record", ""};
    const struct ifd_backend_option word = {"sums", "half"}, sums = {"sums", "fp16"};
    struct ifd_device *none = NULL;
    struct ifd_err why = {0};
    EXPECT_CODE(open_device(&transfer, 1, &none, &why), IFD_INVALID, &why);
    EXPECT_TEXT(why.text, "transfer: got \"fast\", expected auto, copy");
    EXPECT_CODE(open_device(&record, 1, &none, &why), IFD_INVALID, &why);
    EXPECT_TEXT(why.text, "record: got \"\", expected auto, always, never");
    EXPECT_CODE(open_device(&word, 1, &none, &why), IFD_INVALID, &why);
    EXPECT_TEXT(why.text, "sums: got \"half\", expected f32, fp16");
    EXPECT_CODE(open_device(&sums, 1, &none, &why), IFD_INVALID, &why);
    EXPECT_HAS(why.text, "has no cl_khr_fp16");
    static const char *const bad[] = {"0", "-1", "soon", "86400001", "99999999999999999999", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct ifd_backend_option option = {"timeout-ms", bad[i]};
        struct ifd_device *device = NULL;
        struct ifd_err err = {0};
        EXPECT_CODE(open_device(&option, 1, &device, &err), IFD_INVALID, &err);
        EXPECT_HAS(err.text, "expected 1 to 86400000");
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_device_that_does_not_open_is_unavailable),
        T(what_cannot_be_built_is_an_error),
        T(a_build_that_fails_has_the_compilers_words),
        T(what_does_not_build_is_not_taken_again),
        T(what_fails_in_a_run_is_a_lost_device),
        T(what_is_not_needed_may_fail),
        T(shared_memory_is_mapped),
        T(kernels_are_recorded_where_the_device_can),
        T(a_plainer_kernel_takes_the_place_of_one_that_is_not_built),
        T(measurements_that_fail_choose_nothing),
        T(devices_compute_apart),
        T(a_kernel_that_never_ends_is_given_up),
        T(a_device_closes_while_a_kernel_does_not_end),
        T(values_of_options_are_checked),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
