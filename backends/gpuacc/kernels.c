/* The table of kernels. The files' text is made by embed.cmake. */
#include "backends/gpuacc/kernels.h"

struct row {
    const struct ifd_gpu_file *file;
    const char *name;
};

#define KERNEL(name, file, ...) extern const struct ifd_gpu_file ifd_gpu_file_##file;
#include "backends/gpuacc/kernels/kernel_list.inc"
#undef KERNEL

static const struct row *row_of(enum ifd_gpu_kernel kernel)
{
    static const struct row rows[] = {
#define KERNEL(name, file, ...) {&ifd_gpu_file_##file, #name},
#include "backends/gpuacc/kernels/kernel_list.inc"
#undef KERNEL
    };
    return &rows[kernel];
}

const struct ifd_gpu_file *ifd_gpu_kernel_file(enum ifd_gpu_kernel kernel)
{
    return row_of(kernel)->file;
}

const char *ifd_gpu_kernel_name(enum ifd_gpu_kernel kernel)
{
    return row_of(kernel)->name;
}
