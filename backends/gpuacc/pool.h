/** Contexts of runs: a queue, memory and kernels with their arguments. Each run borrows one; there
 *  are at most IFD_GPU_CONTEXTS_MAX of a partition, and further runs wait. Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_POOL_H
#define INFERD_BACKENDS_GPUACC_POOL_H

#include "backends/gpuacc/device.h"

#define IFD_GPU_CONTEXTS_MAX 8

/** One run's things on the device. */
struct ifd_gpu_context {
    struct ifd_gpu_context *next; /* free ones */
    cl_command_queue queue;
    cl_mem scratch;
    cl_mem *input, *output; /* per slot */
    cl_kernel *kernel;      /* per step */
};

struct ifd_gpu_pool {
    struct ifd_mutex lock;
    struct ifd_cond is_back;
    struct ifd_gpu_context *free;
    uint32_t count; /* free and borrowed */
};

void ifd_gpu_pool_init(struct ifd_gpu_pool *pool);
/** All contexts are free. */
void ifd_gpu_pool_finish(struct ifd_partition *partition);

/** Borrows a context; makes one where all are borrowed and there may be more. */
IFD_NODISCARD enum ifd_code ifd_gpu_borrow(struct ifd_partition *partition,
                                           struct ifd_gpu_context **ret, struct ifd_err *err);
void ifd_gpu_give_back(struct ifd_partition *partition, struct ifd_gpu_context *context);

#endif
