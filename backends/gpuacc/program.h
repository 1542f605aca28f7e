/** Programs of a device: kernel files, built once for each set of definitions, kept until the
 *  device is closed.
 *
 *  A program is named by its file and its definitions. Definitions are C text that is put in front
 *  of the file: "#define BLOCK 4\n". Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_PROGRAM_H
#define INFERD_BACKENDS_GPUACC_PROGRAM_H

#include "backends/gpuacc/device.h"

/** One .cl file, as text in the program (kernels/kernel_list.inc). */
struct ifd_gpu_file {
    const char *name;
    const char *text;
};

/** One of a device's list. */
struct ifd_gpu_program {
    struct ifd_gpu_program *next;
    const struct ifd_gpu_file *file;
    cl_program handle;
    bool is_cached; /* it was not built from its text */
    size_t bytes;   /* of this struct with the text */
    char defines[]; /* ends with NUL */
};

/** Finds a built program or builds it. The device owns it. Errors: INTERNAL with the first line of
 *  the compiler's log. */
IFD_NODISCARD enum ifd_code ifd_gpu_program(struct ifd_device *device,
                                            const struct ifd_gpu_file *file, const char *defines,
                                            cl_program *ret_program, struct ifd_err *err);

/** Of a device that is being closed. */
void ifd_gpu_release_programs(struct ifd_device *device);

#endif
