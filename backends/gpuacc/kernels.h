/** The kernel files, as text, and the kernels in them. */
#ifndef INFERD_BACKENDS_GPUACC_KERNELS_H
#define INFERD_BACKENDS_GPUACC_KERNELS_H

#include "backends/gpuacc/program.h"

/** Rows of kernels/kernel_list.inc. */
enum ifd_gpu_kernel {
#define KERNEL(name, file, ...) IFD_GPU_##name,
#include "backends/gpuacc/kernels/kernel_list.inc"
#undef KERNEL
    IFD_GPU_KERNEL_COUNT
};

/** What stands in front of every file. */
extern const struct ifd_gpu_file ifd_gpu_file_common;

/** The file of a kernel; its function in there. */
const struct ifd_gpu_file *ifd_gpu_kernel_file(enum ifd_gpu_kernel kernel);
const char *ifd_gpu_kernel_name(enum ifd_gpu_kernel kernel);

#endif
