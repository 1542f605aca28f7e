/** Convolutions of 8 bits by dot products of 4 input channels (kernels/conv_q8.cl, DOT). */
#ifndef INFERD_BACKENDS_GPUACC_OPS_DOT_H
#define INFERD_BACKENDS_GPUACC_OPS_DOT_H

#include "backends/gpuacc/lower.h"

/** inner: taps × input channels of a group, a multiple of 4; row: out_c filled up. */
struct ifd_gpu_dot_size {
    size_t out_c, row, inner;
};

/** Adds definitions, weights, bias and factors to the call of a layer (node: input 0, weights 1,
 *  bias 2). The bias includes what the zero point of the input adds to each sum. */
IFD_NODISCARD enum ifd_code ifd_gpu_dot_constants(struct ifd_gpu_lowering *lowering,
                                                  const struct ifd_node_view *node,
                                                  const struct ifd_gpu_dot_size *size,
                                                  struct ifd_gpu_call *call, struct ifd_err *err);

#endif
