/** How long a call takes on the device, by the device's own clock. Its memory holds numbers that
 *  mean nothing. Thread: one at a time per device. */
#ifndef INFERD_BACKENDS_GPUACC_MEASURE_H
#define INFERD_BACKENDS_GPUACC_MEASURE_H

#include "backends/gpuacc/cl.h"

enum { IFD_GPU_MEASURE_BUFFERS = 3 };

/** Zeroed: nothing is held. */
struct ifd_gpu_measure {
    cl_command_queue queue;
    cl_mem buffer[IFD_GPU_MEASURE_BUFFERS]; /* inputs, outputs, constants */
    size_t bytes[IFD_GPU_MEASURE_BUFFERS];
    cl_mem image;  /* a constant of the call that is measured; NULL: it has none */
    bool is_stuck; /* a kernel did not end: nothing is measured any more, nothing given back */
};

struct ifd_gpu_call;
struct ifd_gpu_lowering;

/** The shortest of some runs, in ns. Errors: of building, of memory, of running. */
IFD_NODISCARD enum ifd_code ifd_gpu_measure(struct ifd_gpu_measure *measure,
                                            struct ifd_gpu_lowering *lowering,
                                            const struct ifd_gpu_call *call, uint64_t *ret_ns,
                                            struct ifd_err *err);
/** Gives back what it holds. */
void ifd_gpu_measure_finish(struct ifd_gpu_measure *measure, const struct ifd_cl *cl);

#endif
