/** Several programs as the text of one: compilers take longer to begin than to compile a kernel.
 *
 *  Every name that a kernel file makes for functions, types and kernels gets the number of the
 *  program behind it, and its macros end with it. Names are found by what stands at the begin of a
 *  line: "inline", "kernel void", "typedef" (one name each), "struct" without an indent and
 *  "#define". Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_MERGE_H
#define INFERD_BACKENDS_GPUACC_MERGE_H

#include "backends/gpuacc/program.h"
#include "engine/base/buf.h"

/** Appends a program. */
void ifd_gpu_merge(struct ifd_buf *merged, const struct ifd_gpu_program *program, uint32_t number);

/** The name of a kernel of a merged program. */
#define IFD_GPU_KERNEL_NAME 64
void ifd_gpu_merged_name(const char *kernel, uint32_t number, char ret[IFD_GPU_KERNEL_NAME]);

#endif
