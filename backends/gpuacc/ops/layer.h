/** What convolutions, depthwise convolutions and fully connected layers share. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_LAYER_H
#define INFERD_BACKENDS_GPUACC_OPS_LAYER_H

#include "backends/gpuacc/lower.h"

/** Constant weights and bias of f32, and an activation that is a clamp? If not, says why. */
bool ifd_gpu_layer_takes(const struct ifd_node_view *node, int32_t activation,
                         struct ifd_err *reason);

/** Adds the bias of a layer (input 2; absent: zeros) for channels, filled with zeros up to padded,
 *  as an argument. */
IFD_NODISCARD enum ifd_code ifd_gpu_layer_bias(struct ifd_gpu_lowering *lowering,
                                               const struct ifd_node_view *node, size_t channels,
                                               size_t padded, struct ifd_gpu_call *call,
                                               struct ifd_err *err);

#endif
