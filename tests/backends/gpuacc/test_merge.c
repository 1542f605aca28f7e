/* Kernels of all files, with all definitions that kernel_list.inc knows, as one program. */
#include "backends/gpuacc/kernels.h"
#include "backends/gpuacc/merge.h"
#include "tests/backends/gpuacc/run_f.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define DEFINES 1024
#define SETS    32
#define ALL     256

static const struct ifd_host *host(void)
{
    static struct ifd_host host = {.bytes = sizeof(host)};
    host.alloc = ifd_alloc_system();
    return &host;
}

static struct ifd_device *open_device(void)
{
    const struct ifd_gpu_options options = {.device = NULL};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    const enum ifd_code code = ifd_gpu_open(host(), &options, &device, &err);
    if (code == IFD_UNAVAILABLE) {
        test_skip(err.text);
    }
    REQUIRE_OK(code, &err);
    return device;
}

/* "A=1|F(x)=(x + 1)" as C text. */
static void read_defines(const char *set, char ret[DEFINES])
{
    size_t used = 0;
    while (*set) {
        const size_t size = strcspn(set, "|"), name = strcspn(set, "=");
        REQUIRE(name < size);
        used += (size_t)snprintf(ret + used, DEFINES - used, "#define %.*s %.*s\n", (int)name, set,
                                 (int)(size - name - 1), set + name + 1);
        REQUIRE(used < DEFINES);
        set += size + (set[size] != '\0');
    }
    ret[used] = '\0';
}

struct row {
    enum ifd_gpu_kernel kernel;
    const char *set[SETS];
};

static const struct row rows[] = {
#define KERNEL(name, file, ...) {IFD_GPU_##name, {__VA_ARGS__}},
#include "backends/gpuacc/kernels/kernel_list.inc"
#undef KERNEL
};

/* Some compilers know neither the assembly of NVIDIA's tensor cores nor Arm's products. */
static bool is_known(const struct ifd_device *device, enum ifd_gpu_kernel kernel, const char *set)
{
    return kernel != IFD_GPU_conv2d_mma && !strstr(set, "DOT_ARM") &&
           (device->info.has_fp16 || !strstr(set, "SUMS16"));
}

/* A program for each row and set of definitions. */
static uint32_t note_all(struct ifd_device *device, struct ifd_gpu_program *ret[ALL],
                         enum ifd_gpu_kernel ret_kernel[ALL])
{
    uint32_t count = 0;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (size_t s = 0; s < SETS && rows[r].set[s]; s++) {
            char defines[DEFINES];
            struct ifd_err err = {0};
            if (!is_known(device, rows[r].kernel, rows[r].set[s])) {
                continue;
            }
            read_defines(rows[r].set[s], defines);
            REQUIRE(count < ALL);
            REQUIRE_OK(ifd_gpu_program(device, ifd_gpu_kernel_file(rows[r].kernel), defines,
                                       &ret[count], &err),
                       &err);
            ret_kernel[count] = rows[r].kernel;
            uint32_t at = 0; /* kernels may share a file */
            while (ret[at] != ret[count]) {
                at++;
            }
            count += at == count;
        }
    }
    return count;
}

static void all_kernels_build_as_one_program(void)
{
    static struct ifd_gpu_program *program[ALL];
    static enum ifd_gpu_kernel kernel[ALL];
    struct ifd_device *device = open_device();
    const uint32_t count = note_all(device, program, kernel);
    struct ifd_err err = {0};
    EXPECT(count > 40);
    REQUIRE_OK(ifd_gpu_build_programs(device, program, count, false, &err), &err);
    EXPECT(device->units && !device->units->next);
    for (uint32_t i = 0; i < count; i++) {
        cl_int error = CL_SUCCESS;
        cl_kernel made =
            ifd_gpu_create_kernel(device, program[i], ifd_gpu_kernel_name(kernel[i]), &error);
        EXPECT_INT(error, CL_SUCCESS);
        EXPECT(program[i]->is_merged);
        if (made) {
            (void)device->cl.ReleaseKernel(made);
        }
    }
    ifd_gpu_close(device);
}

static const struct ifd_gpu_file fine = {"fine.cl", "inline int one(void) { return N; }\n"
                                                    "kernel void f(global int *x)\n"
                                                    "{\n"
                                                    "    *x = one();\n"
                                                    "}\n"};
static const struct ifd_gpu_file broken = {"broken.cl", "kernel void f() { no_such_name(); }\n"};

static struct ifd_gpu_program *note(struct ifd_device *device, const struct ifd_gpu_file *file,
                                    const char *defines)
{
    struct ifd_gpu_program *program = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_gpu_program(device, file, defines, &program, &err), &err);
    return program;
}

static void each_of_them_has_its_own_names_and_definitions(void)
{
    struct ifd_device *device = open_device();
    struct ifd_gpu_program *set[] = {note(device, &fine, "#define N 1\n"),
                                     note(device, &fine, "#define N 2\n"),
                                     note(device, &fine, "#define N 3\n")};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_gpu_build_programs(device, set, 2, false, &err), &err);
    const struct ifd_gpu_unit *first = device->units;
    REQUIRE_OK(ifd_gpu_build_programs(device, set, 2, false, &err), &err);
    EXPECT(device->units == first); /* there was nothing to do */
    REQUIRE_OK(ifd_gpu_build_programs(device, set, 3, true, &err), &err);
    EXPECT(!set[2]->is_merged); /* the others were there */
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(run_f(device, set[i]), i + 1);
    }
    ifd_gpu_close(device);
}

static void one_that_does_not_build_leaves_the_others(void)
{
    struct ifd_device *device = open_device();
    struct ifd_gpu_program *set[] = {note(device, &fine, "#define N 1\n"),
                                     note(device, &broken, ""),
                                     note(device, &fine, "#define N 2\n")};
    struct ifd_gpu_program *again = NULL;
    struct ifd_err err = {0}, later = {0};
    EXPECT_CODE(ifd_gpu_build_programs(device, set, 3, false, &err), IFD_UNSUPPORTED, &err);
    EXPECT_HAS(err.text, "broken.cl");
    EXPECT_HAS(err.text, "no_such_name");
    EXPECT_CODE(ifd_gpu_program(device, &broken, "", &again, &later), IFD_UNSUPPORTED, &later);
    EXPECT_TEXT(later.text, err.text);
    EXPECT_INT(run_f(device, set[0]), 1);
    EXPECT_INT(run_f(device, set[2]), 2);
    ifd_gpu_close(device);
}

static void names_that_are_pasted_together_are_not_taken(void)
{
    static const struct ifd_gpu_file file = {"a.cl", "#define F(T) \\\n"
                                                     "    inline int f_##T(int x) { return x; }\n"
                                                     "typedef int number_t;\n"
                                                     "kernel void k(global number_t *x) {}"};
    struct ifd_device *device = open_device();
    struct ifd_buf merged;
    ifd_buf_init(&merged, ifd_alloc_system(), (size_t)1 << 20);
    ifd_gpu_merge(&merged, note(device, &file, ""), 7);
    ifd_buf_add(&merged, "", 1);
    REQUIRE(ifd_buf_check(&merged, NULL) == IFD_OK);
    const char *text = (const char *)merged.data;
    EXPECT_HAS(text, "#define k k_7\n");
    EXPECT_HAS(text, "#undef k\n");
    EXPECT_HAS(text, "#define number_t number_t_7\n");
    EXPECT_HAS(text, "#undef F\n");
    EXPECT(strstr(text, "#define T ") == NULL);
    ifd_buf_finish(&merged);
    ifd_gpu_close(device);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(all_kernels_build_as_one_program),
        T(each_of_them_has_its_own_names_and_definitions),
        T(one_that_does_not_build_leaves_the_others),
        T(names_that_are_pasted_together_are_not_taken),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
