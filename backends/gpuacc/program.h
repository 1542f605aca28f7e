/** Programs of a device: kernel files, built once for each set of definitions, kept until the
 *  device is closed; and operators whose kernels do not build there. Those that a partition needs
 *  are built together, as one (merge.h), or one by one if that fails.
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

/** What was built at once. */
struct ifd_gpu_unit {
    struct ifd_gpu_unit *next;
    cl_program handle;
};

/** One of a device's list. */
struct ifd_gpu_program {
    struct ifd_gpu_program *next;
    const struct ifd_gpu_file *file;
    const struct ifd_gpu_unit *unit; /* NULL: not built yet */
    bool is_merged;                  /* kernels have its number behind their names (merge.h) */
    uint32_t number;
    bool is_cached;     /* it was not built from its text */
    bool is_used;       /* a partition has it; else the tuner may have built it to measure it */
    enum ifd_code code; /* not OK: it does not build, why */
    struct ifd_err why;
    size_t bytes;   /* of this struct with the text */
    char defines[]; /* ends with NUL */
};

/** Finds a program, or notes one that is to be built. The device owns it. Errors: NOMEM; that of
 *  an earlier try to build it. */
IFD_NODISCARD enum ifd_code ifd_gpu_program(struct ifd_device *device,
                                            const struct ifd_gpu_file *file, const char *defines,
                                            struct ifd_gpu_program **ret_program,
                                            struct ifd_err *err);

/** Builds those of a set that are not built. is_part: only those that no partition has; else a set
 *  of which one is missing is built as a whole, so that the next start finds it in the cache
 *  whatever was built before; so is one that the tuner built piece by piece. Programs in the set
 *  are different ones. Errors: UNSUPPORTED if the compiler refuses one or the device has no room
 *  for it, else INTERNAL, both with the first line of the compiler's log that names an error; they
 *  stay with their program. */
IFD_NODISCARD enum ifd_code ifd_gpu_build_programs(struct ifd_device *device,
                                                   struct ifd_gpu_program *const *set,
                                                   uint32_t count, bool is_part,
                                                   struct ifd_err *err);

/** Builds one, to measure it. Errors as above. */
IFD_NODISCARD enum ifd_code ifd_gpu_build_program(struct ifd_device *device,
                                                  struct ifd_gpu_program *program,
                                                  struct ifd_err *err);

/** A kernel of a program that is built; NULL and an error. */
cl_kernel ifd_gpu_create_kernel(const struct ifd_device *device,
                                const struct ifd_gpu_program *program, const char *name,
                                cl_int *ret_error);

/** Lets programs be built again that failed by anything but themselves. */
void ifd_gpu_forgive_programs(struct ifd_device *device);

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
