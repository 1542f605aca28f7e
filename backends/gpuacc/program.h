/** Programs of a device: kernel files, built once for each set of definitions, kept until the
 *  device is closed; and operators whose kernels do not build there.
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

/** Finds a built program or builds it. The device owns it. Errors: UNSUPPORTED if the compiler
 *  refuses it or the device has no room for it, else INTERNAL, both with the first line of the
 *  compiler's log that names an error. */
IFD_NODISCARD enum ifd_code ifd_gpu_program(struct ifd_device *device,
                                            const struct ifd_gpu_file *file, const char *defines,
                                            cl_program *ret_program, struct ifd_err *err);

/** Of a device that is being closed. */
void ifd_gpu_release_programs(struct ifd_device *device);

/** An operator, by the type of its first input, of which a kernel does not build on a device: its
 *  nodes are not taken any more. */
struct ifd_gpu_unbuilt {
    struct ifd_gpu_unbuilt *next;
    enum ifd_op op;
    enum ifd_dtype dtype;
    struct ifd_err why;
};

/** Thread of these three: one at a time per device, as cost() and compile(). Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_gpu_note_unbuilt(struct ifd_device *device,
                                                 const struct ifd_node_view *node,
                                                 const struct ifd_err *why, struct ifd_err *err);
/** Why nodes like this one are not taken; NULL if they are. */
const struct ifd_err *ifd_gpu_why_unbuilt(const struct ifd_device *device,
                                          const struct ifd_node_view *node);
/** Of a device that is being closed. */
void ifd_gpu_forget_unbuilt(struct ifd_device *device);

#endif
