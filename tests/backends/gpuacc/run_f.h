/* One item of a program's kernel "f", which writes a number. */
#ifndef INFERD_TESTS_BACKENDS_GPUACC_RUN_F_H
#define INFERD_TESTS_BACKENDS_GPUACC_RUN_F_H

#include "backends/gpuacc/program.h"
#include "tests/support/test.h"

static inline int32_t run_f(const struct ifd_device *device, const struct ifd_gpu_program *program)
{
    const struct ifd_cl *cl = &device->cl;
    const size_t items = 1;
    int32_t number = 0;
    cl_int error = CL_SUCCESS;
    cl_mem buffer =
        cl->CreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof(number), NULL, &error);
    cl_kernel kernel = ifd_gpu_create_kernel(device, program, "f", &error);
    REQUIRE(buffer && kernel);
    REQUIRE(cl->SetKernelArg(kernel, 0, sizeof(buffer), &buffer) == CL_SUCCESS);
    REQUIRE(cl->EnqueueNDRangeKernel(device->queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) ==
            CL_SUCCESS);
    REQUIRE(cl->EnqueueReadBuffer(device->queue, buffer, CL_TRUE, 0, sizeof(number), &number, 0,
                                  NULL, NULL) == CL_SUCCESS);
    (void)cl->ReleaseKernel(kernel);
    (void)cl->ReleaseMemObject(buffer);
    return number;
}

#endif
