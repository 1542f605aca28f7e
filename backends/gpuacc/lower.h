/** Compile time: drivers turn nodes into drafts of steps, which are calls of kernels that are built
 *  but not bound to memory.
 *
 *  Drivers are rows of ops/op_list.inc. Thread: one at a time. */
#ifndef INFERD_BACKENDS_GPUACC_LOWER_H
#define INFERD_BACKENDS_GPUACC_LOWER_H

#include "backends/gpuacc/call.h"
#include "backends/lowering/subtensors.h"

/** A call that is kept, with its program. */
struct ifd_gpu_draft {
    enum ifd_gpu_kernel kernel;
    struct ifd_gpu_program *program;
    struct ifd_gpu_arg *arg;
    uint32_t arg_count;
    size_t items[3], group[3];
    struct ifd_step_info info;
};

struct ifd_gpu_driver;

struct ifd_gpu_lowering {
    struct ifd_lowering base;
    struct ifd_device *device;
    const struct ifd_gpu_driver *const *driver; /* per node */
    struct ifd_gpu_draft *draft;
    uint32_t draft_count, draft_capacity;
    enum ifd_precision precision; /* the lowest of the factors of any layer */
};

/** Keeps a call as the next step: builds its kernel and touches the memory of its values. name: of
 *  the step, for people ("conv2d+relu"); copied. */
IFD_NODISCARD enum ifd_code ifd_gpu_add_step(struct ifd_gpu_lowering *lowering,
                                             const struct ifd_gpu_call *call, const char *name,
                                             uint64_t macs, struct ifd_err *err);

/** The program of a call's kernel, for operands and results as they are stored. It is built behind
 *  the last step; the error of a program that did not build then stays with it, and all is lowered
 *  once more. */
IFD_NODISCARD enum ifd_code ifd_gpu_program_of(const struct ifd_gpu_lowering *lowering,
                                               const struct ifd_gpu_call *call,
                                               struct ifd_gpu_program **ret_program,
                                               struct ifd_err *err);

/** Lets the kernel load vectors: defines ALIGNED, if the tensors of the call so far begin at
 *  multiples of 4 elements. The caller knows that their rows are multiples of 4. */
void ifd_gpu_define_aligned(struct ifd_gpu_lowering *lowering, struct ifd_gpu_call *call);

/** It gets only nodes that it takes. */
struct ifd_gpu_driver {
    /** Can it run this node? If not, says why in reason (may be NULL). */
    bool (*takes)(const struct ifd_node_view *node, struct ifd_err *reason);
    IFD_NODISCARD enum ifd_code (*lower)(struct ifd_gpu_lowering *lowering,
                                         const struct ifd_partition_node *node,
                                         struct ifd_err *err);
};

#define DRIVER(op, symbol) extern const struct ifd_gpu_driver ifd_gpu_driver_##symbol;
#include "backends/gpuacc/ops/op_list.inc"
#undef DRIVER

/** The driver of a node; NULL, with a reason (may be NULL), if there is none that takes it. */
const struct ifd_gpu_driver *ifd_gpu_driver_of(const struct ifd_node_view *node,
                                               struct ifd_err *reason);

/** "conv2d". Static. */
const char *ifd_gpu_op_name(enum ifd_op op);

/** The OpenCL type whose elements have this size; NULL if there is none. Static. */
const char *ifd_gpu_element_type(size_t bytes);

/** The OpenCL type of numbers of a type; NULL if kernels do not compute with it. Static. */
const char *ifd_gpu_number_type(enum ifd_dtype dtype);

/** Elements of a shape. */
size_t ifd_gpu_elements(const struct ifd_shape *shape);

#endif
