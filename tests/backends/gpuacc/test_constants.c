/* Constants on the device, on a library of our own. */
#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/partition.h"
#include "tests/support/fake_opencl.h"
#include "tests/support/test.h"

#include <dlfcn.h>

/* CL_MEM_OBJECT_ALLOCATION_FAILURE, from the first call on; then how often, 0: always. */
#define CREATE_IMAGE_FAILS "clCreateImage 1 -4"

/* The library that GpuAcc finds, too. */
static const struct fake_opencl *library(void)
{
    void *opened = dlopen("libOpenCL.so.1", RTLD_NOW);
    REQUIRE(opened);
    const struct fake_opencl *table = dlsym(opened, FAKE_OPENCL_TABLE);
    REQUIRE(table); /* else LD_LIBRARY_PATH lacks the folder of the fake */
    return table;
}

/* Numbers of a model may be two matrices. An image is a view of a buffer if the driver takes its
 * rows, else it has memory of its own. */
static void constants_are_shared_if_they_are_packed_the_same_way(void)
{
    const struct fake_opencl *fake = library();
    enum { ROW = 4, BYTES = 2 * 4 * ROW * sizeof(float) };
    static const float numbers[BYTES / sizeof(float)];
    static const size_t bytes = BYTES;
    struct ifd_gpu_resident resident[8];
    struct ifd_partition partition = {.resident = resident};
    struct ifd_gpu_constant constant = {
        .pack = ifd_gpu_pack_copy, .params = &bytes, .source = numbers, .bytes = BYTES, .row = ROW};
    struct ifd_host host = {
        .bytes = sizeof(host), .op_def = ifd_op_def, .fail = ifd_fail, .alloc = ifd_alloc_system()};
    struct ifd_err err = {0};
    cl_mem first = NULL, again = NULL, other = NULL, image = NULL;
    REQUIRE_OK(ifd_backend_gpuacc.open(&host, &partition.device, &err), &err);
    REQUIRE_OK(ifd_gpu_keep_constant(&partition, NULL, &constant, &first, &err), &err);
    REQUIRE_OK(ifd_gpu_keep_constant(&partition, NULL, &constant, &again, &err), &err);
    EXPECT(first == again);
    constant.row = 2 * ROW;
    REQUIRE_OK(ifd_gpu_keep_constant(&partition, NULL, &constant, &other, &err), &err);
    EXPECT(first != other);
    EXPECT_INT(partition.resident_count, 2);
    partition.device->info.image_pitch = 1;
    constant.image = (struct ifd_gpu_image){.width = 2, .height = 4};
    fake->set(CREATE_IMAGE_FAILS " 1");
    REQUIRE_OK(ifd_gpu_keep_constant(&partition, NULL, &constant, &image, &err), &err);
    EXPECT(fake->has_failed());
    fake->set("");
    EXPECT_INT(partition.resident_count, 3);
    fake->set(CREATE_IMAGE_FAILS " 0");
    constant.row = ROW;
    EXPECT_CODE(ifd_gpu_keep_constant(&partition, NULL, &constant, &image, &err), IFD_NOMEM, &err);
    fake->set("");
    ifd_gpu_release_constants(&partition);
    ifd_backend_gpuacc.close(partition.device);
    EXPECT_INT(fake->alive(), 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(constants_are_shared_if_they_are_packed_the_same_way),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
