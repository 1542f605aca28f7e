/** Layers with constant weights: what conv2d, depthwise_conv2d and fully_connected share at compile
 *  time. Turns a node's weights, bias, scales and activation into the arguments of a kernel's
 *  pack() and run(). */
#ifndef INFERD_BACKENDS_CPUACC_OPS_PRODUCT_H
#define INFERD_BACKENDS_CPUACC_OPS_PRODUCT_H

#include "backends/cpuacc/driver.h"
#include "backends/lowering/requantize.h"

/** Operand numbers are the same for all three: input 0, weights 1, bias 2. */
struct ifd_acc_product {
    bool is_q8;
    const void *weights; /* s8, u8 or f32, as the file has them */
    size_t weight_bytes;
    bool flip_weights; /* u8: become s8 by XOR 0x80 */
    /** f32 data and 8-bit weights: each image is quantized first (ops/dynamic.h), or all at once
     *  (is_whole: rounds_even). conv2d then multiplies 8 bits (is_q8) and turns its sums into
     *  floats; depthwise_conv2d multiplies floats. */
    bool is_dynamic, is_whole;
    struct ifd_low_scales scales; /* of f32 data: weights only */
    size_t channels;              /* of the output */
    bool channel_is_last;         /* of the weights; else first */
    const float *bias_f32;
    struct ifd_requant requant; /* q8, without multipliers and shifts */
    /** exact fully_connected: the factor of its 32-bit sums, per channel. */
    const double *real;
    float min, max; /* f32 */
};

/** Can the kernels run it? f32 weights with f32 data, s8 or u8 weights with the same data (with
 *  rounds_even with either, also with f32 data), s8 convolutions with f32 data; constant weights
 *  and bias; an activation that is a clamp. */
bool ifd_acc_product_takes(const struct ifd_node_view *node, int32_t activation,
                           struct ifd_err *reason);

/** round: how the reference kernel rounds quantized sums. Used if exact results are asked for or
 *  cost nothing here; the cheapest rounding otherwise. rounds_even: that of ONNX Runtime. */
IFD_NODISCARD enum ifd_code ifd_acc_product_init(struct ifd_acc_lowering *lowering,
                                                 const struct ifd_node_view *node,
                                                 int32_t activation, size_t channels,
                                                 enum ifd_round round, struct ifd_acc_product *ret,
                                                 struct ifd_err *err);

/** A number of the weights, of 8 bits, less their zero point. */
int32_t ifd_acc_product_weight(const struct ifd_acc_product *product, size_t i);
/** Scale of one channel's weights. */
float ifd_acc_product_scale(const struct ifd_acc_product *product, size_t channel);

/** Temporary memory that packing wants. */
size_t ifd_acc_product_workspace(const struct ifd_acc_product *product);

/** How sums are requantized; the numbers of each channel are in workspace, behind the weights. */
struct ifd_requant ifd_acc_product_requant(const struct ifd_acc_product *product,
                                           uint8_t *workspace);

/** Weights as s8 (or f32): those of the file, or a copy in workspace. */
const void *ifd_acc_product_weights(const struct ifd_acc_product *product, uint8_t *workspace);

#endif
