/** What convolutions, depthwise convolutions and fully connected layers share: f32, or 8 bits with
 *  the roundings of the reference. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_LAYER_H
#define INFERD_BACKENDS_GPUACC_OPS_LAYER_H

#include "backends/gpuacc/lower.h"
#include "backends/lowering/window.h"

/** Constant weights and bias of f32 or 8 bits, and an activation that is a clamp? If not, says
 *  why. */
bool ifd_gpu_layer_takes(const struct ifd_node_view *node, int32_t activation,
                         struct ifd_err *reason);

/** Layers with so few weights or fewer keep them in f32: they are 2 KB at most, and of the first
 *  layers of a network, whose rounding errors all others amplify. */
#define IFD_GPU_F32_WEIGHTS 512

/** Are the weights of an f32 layer stored in half precision, as the model's owner allows? */
bool ifd_gpu_has_f16_weights(const struct ifd_gpu_lowering *lowering,
                             const struct ifd_node_view *node);

/** Defines the type of a layer's sums, f32 or as the user and the model's owner allow. */
void ifd_gpu_define_sums(struct ifd_gpu_lowering *lowering, const struct ifd_node_view *node,
                         struct ifd_gpu_call *call);

/** Is it a layer of 8 bits? */
bool ifd_gpu_is_q8(enum ifd_dtype dtype);
/** The OpenCL type of 8-bit elements. Static. */
const char *ifd_gpu_q8_type(enum ifd_dtype dtype);
/** What 8-bit numbers and s16 hold. */
void ifd_gpu_stored_range(enum ifd_dtype dtype, int32_t *ret_min, int32_t *ret_max);
/** Bounds of an activation in steps of an output of such numbers. */
void ifd_gpu_stored_bounds(int32_t activation, const struct ifd_desc *out, int32_t *ret_min,
                           int32_t *ret_max);

/** Adds the arguments between the weights and the output: the bias (input 2; absent: zeros), and of
 *  8 bits the factors, filled up to padded channels. */
IFD_NODISCARD enum ifd_code ifd_gpu_layer_constants(struct ifd_gpu_lowering *lowering,
                                                    const struct ifd_node_view *node,
                                                    size_t channels, size_t padded,
                                                    struct ifd_gpu_call *call, struct ifd_err *err);

/** Of those, the factors of 8 bits. */
IFD_NODISCARD enum ifd_code ifd_gpu_layer_factors(struct ifd_gpu_lowering *lowering,
                                                  const struct ifd_node_view *node, size_t channels,
                                                  size_t padded, struct ifd_gpu_call *call,
                                                  struct ifd_err *err);

/** Adds the last arguments: bounds, and of 8 bits the zero points before them. */
void ifd_gpu_layer_bounds(const struct ifd_node_view *node, int32_t activation,
                          struct ifd_gpu_call *call);

#endif
