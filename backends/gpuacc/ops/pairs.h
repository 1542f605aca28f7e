/** Operators of two operands that repeat along any dimensions, one element at a time
 *  (kernels/pairs.cl); integers of 32 and 64 bits, which wrap around; quantized numbers of 16. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_PAIRS_H
#define INFERD_BACKENDS_GPUACC_OPS_PAIRS_H

#include "backends/gpuacc/lower.h"

/** Can the kernel find the operands' elements? */
bool ifd_gpu_pairs_fit(const struct ifd_node_view *node);

/** in, out: OpenCL types. combine: C text of the result of a and b. */
IFD_NODISCARD enum ifd_code ifd_gpu_pairs_lower(struct ifd_gpu_lowering *lowering,
                                                const struct ifd_partition_node *node,
                                                const char *in, const char *out,
                                                const char *combine, struct ifd_err *err);

/** Element-wise arithmetic of integers, or operators of bits? */
bool ifd_gpu_integers_take(const struct ifd_node_view *node);
IFD_NODISCARD enum ifd_code ifd_gpu_integers_lower(struct ifd_gpu_lowering *lowering,
                                                   const struct ifd_partition_node *node,
                                                   struct ifd_err *err);

/** A sum, difference or product of s16, with the bits of the reference? */
bool ifd_gpu_words_take(const struct ifd_node_view *node);
IFD_NODISCARD enum ifd_code ifd_gpu_words_lower(struct ifd_gpu_lowering *lowering,
                                                const struct ifd_partition_node *node,
                                                struct ifd_err *err);

#endif
