/** Tensors in half precision: which values between the steps of a partition are stored so. Thread:
 *  one at a time. */
#ifndef INFERD_BACKENDS_GPUACC_HALVES_H
#define INFERD_BACKENDS_GPUACC_HALVES_H

#include "backends/gpuacc/lower.h"

/** Chooses the values and gives lowering a view of its own, in the partition's arena, in which
 *  their type is f16. Nodes that compute keep f32 in their descriptions: kernels widen what they
 *  load. Nodes that only move elements see f16. For precision fp16, when the view and drivers of
 *  lowering are set, and before its values are made. */
IFD_NODISCARD enum ifd_code ifd_gpu_choose_halves(struct ifd_gpu_lowering *lowering,
                                                  struct ifd_err *err);

bool ifd_gpu_is_half(const struct ifd_gpu_lowering *lowering, uint32_t value);

/** Defines how the operands and the result of a call are stored, and the operands of its tail. */
void ifd_gpu_define_reals(const struct ifd_gpu_lowering *lowering, struct ifd_gpu_call *call);

#endif
