/** The functions of libOpenCL, found at run time: a machine without it starts, and says why GpuAcc
 *  is absent. The only file of ours that opens a library besides the plugin loader. */
#ifndef INFERD_BACKENDS_GPUACC_CL_H
#define INFERD_BACKENDS_GPUACC_CL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "inferd/status.h"

/** All that are used, without their prefix "cl". OpenCL 1.2 has them all. */
#define IFD_CL_FUNCTIONS(X)                                                                        \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceIDs)                                                                                \
    X(GetDeviceInfo)                                                                               \
    X(GetExtensionFunctionAddressForPlatform)                                                      \
    X(CreateContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(CreateCommandQueue)                                                                          \
    X(ReleaseCommandQueue)                                                                         \
    X(CreateBuffer)                                                                                \
    X(CreateImage)                                                                                 \
    X(RetainMemObject)                                                                             \
    X(ReleaseMemObject)                                                                            \
    X(CreateProgramWithSource)                                                                     \
    X(CreateProgramWithBinary)                                                                     \
    X(BuildProgram)                                                                                \
    X(GetProgramInfo)                                                                              \
    X(GetProgramBuildInfo)                                                                         \
    X(ReleaseProgram)                                                                              \
    X(CreateKernel)                                                                                \
    X(ReleaseKernel)                                                                               \
    X(SetKernelArg)                                                                                \
    X(EnqueueNDRangeKernel)                                                                        \
    X(EnqueueReadBuffer)                                                                           \
    X(EnqueueWriteBuffer)                                                                          \
    X(EnqueueMapBuffer)                                                                            \
    X(EnqueueUnmapMemObject)                                                                       \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(EnqueueFillBuffer)                                                                           \
    X(GetEventProfilingInfo)                                                                       \
    X(GetEventInfo)                                                                                \
    X(ReleaseEvent)                                                                                \
    X(Flush)                                                                                       \
    X(Finish)

struct ifd_cl {
    void *library; /* of dlopen */
#define IFD_X(name) __typeof__(&cl##name) name;
    IFD_CL_FUNCTIONS(IFD_X)
#undef IFD_X
};

/** Functions of cl_khr_command_buffer. */
struct ifd_cl_recording {
    clCreateCommandBufferKHR_fn create;
    clCommandNDRangeKernelKHR_fn kernel;
    clFinalizeCommandBufferKHR_fn finalize;
    clEnqueueCommandBufferKHR_fn enqueue;
    clReleaseCommandBufferKHR_fn release;
};

/** Opens a library by name (NULL: the system's libOpenCL). UNAVAILABLE, with what the system says,
 *  if it is absent or lacks a function. */
IFD_NODISCARD enum ifd_code ifd_cl_open(const char *library, struct ifd_cl *ret,
                                        struct ifd_err *err);
/** A zeroed one is fine. */
void ifd_cl_close(struct ifd_cl *cl);

/** "CL_OUT_OF_RESOURCES"; "?" for a number without a name. Static. */
const char *ifd_cl_error_name(cl_int error);
/** Reports what failed and why: NOMEM where the device has no memory left, UNAVAILABLE where the
 *  device is lost, else INTERNAL. */
enum ifd_code ifd_cl_fail(struct ifd_err *err, cl_int error, const char *what);

#endif
