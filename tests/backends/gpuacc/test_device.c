/* How GpuAcc finds a device, and what it says where there is none. */
#include "backends/gpuacc/device.h"
#include "backends/gpuacc/program.h"
#include "tests/support/test.h"

static const struct ifd_host *host(void)
{
    static struct ifd_host host = {.bytes = sizeof(host)};
    host.alloc = ifd_alloc_system();
    return &host;
}

/* Skips the case if there is no device at all. */
static struct ifd_device *open_device(const char *wanted)
{
    const struct ifd_gpu_options options = {.device = wanted};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    const enum ifd_code code = ifd_gpu_open(host(), &options, &device, &err);
    if (code == IFD_UNAVAILABLE && !wanted) {
        test_skip(err.text);
    }
    REQUIRE_OK(code, &err);
    return device;
}

static void expect_none(const char *wanted, const char *reason)
{
    const struct ifd_gpu_options options = {.device = wanted};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_gpu_open(host(), &options, &device, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, reason);
    EXPECT(device == NULL);
}

static void a_missing_library_is_a_reason(void)
{
    struct ifd_cl cl;
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_cl_open("libthere-is-none.so.1", &cl, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "GpuAcc: no OpenCL: libthere-is-none.so.1");
}

static void a_library_without_opencl_is_a_reason(void)
{
    struct ifd_cl cl;
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_cl_open("libc.so.6", &cl, &err), IFD_UNAVAILABLE, &err);
    EXPECT_TEXT(err.text, "GpuAcc: libc.so.6 has no function clGetPlatformIDs");
}

static void devices_are_found_by_number_type_and_name(void)
{
    struct ifd_device *first = open_device(NULL);
    struct ifd_device *by_number = open_device("0");
    EXPECT(first->info.name[0] != '\0');
    EXPECT(first->info.compute_units > 0 && first->info.max_group > 0);
    struct ifd_device *by_type = open_device(by_number->info.is_gpu ? "gpu" : "cpu");
    struct ifd_device *by_name = open_device(by_number->info.platform);
    EXPECT_TEXT(by_type->info.name, by_number->info.name);
    EXPECT_TEXT(by_name->info.name, by_number->info.name);
    ifd_gpu_close(first);
    ifd_gpu_close(by_number);
    ifd_gpu_close(by_type);
    ifd_gpu_close(by_name);
}

static void a_device_that_is_absent_is_named_with_those_that_exist(void)
{
    struct ifd_device *device = open_device(NULL);
    expect_none("no such device", device->info.name);
    expect_none("99", "no device \"99\"");
    ifd_gpu_close(device);
}

static void a_kernel_that_does_not_build_is_an_error_with_the_compilers_words(void)
{
    static const struct ifd_gpu_file file = {"broken.cl", "kernel void f() { no_such_name(); }"};
    struct ifd_device *device = open_device(NULL);
    struct ifd_gpu_program *program = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_gpu_program(device, &file, "", &program, &err), &err);
    EXPECT_CODE(ifd_gpu_build_programs(device, &program, 1, false, &err), IFD_UNSUPPORTED, &err);
    EXPECT_HAS(err.text, "broken.cl");
    EXPECT_HAS(err.text, "no_such_name");
    EXPECT(program->unit == NULL);
    ifd_gpu_close(device);
}

static void equal_definitions_share_a_program(void)
{
    static const struct ifd_gpu_file file = {"small.cl",
                                             "kernel void f(global int *x) { *x = N; }"};
    struct ifd_device *device = open_device(NULL);
    struct ifd_gpu_program *first = NULL, *second = NULL, *other = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_gpu_program(device, &file, "#define N 1\n", &first, &err), &err);
    REQUIRE_OK(ifd_gpu_program(device, &file, "#define N 1\n", &second, &err), &err);
    REQUIRE_OK(ifd_gpu_program(device, &file, "#define N 2\n", &other, &err), &err);
    EXPECT(first == second);
    EXPECT(first != other);
    ifd_gpu_close(device);
}

/* Not silently in f32. */
static void sums_in_half_precision_need_a_device_that_has_it(void)
{
    const struct ifd_gpu_options options = {.sums = IFD_GPU_SUMS_FP16};
    struct ifd_device *plain = open_device(NULL), *device = NULL;
    struct ifd_err err = {0};
    const enum ifd_code code = ifd_gpu_open(host(), &options, &device, &err);
    EXPECT(!plain->sums_fp16);
    if (plain->info.has_fp16) {
        REQUIRE_OK(code, &err);
        EXPECT(device->sums_fp16);
    } else {
        EXPECT_CODE(code, IFD_INVALID, &err);
        EXPECT_HAS(err.text, "has no cl_khr_fp16");
        EXPECT_HAS(err.text, plain->info.name);
    }
    ifd_gpu_close(device);
    ifd_gpu_close(plain);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_missing_library_is_a_reason),
        T(a_library_without_opencl_is_a_reason),
        T(devices_are_found_by_number_type_and_name),
        T(a_device_that_is_absent_is_named_with_those_that_exist),
        T(a_kernel_that_does_not_build_is_an_error_with_the_compilers_words),
        T(equal_definitions_share_a_program),
        T(sums_in_half_precision_need_a_device_that_has_it),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
