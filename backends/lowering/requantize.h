/** How sums of quantized products become quantized results: factors, bounds, and whether the sums
 *  fit. */
#ifndef INFERD_BACKENDS_LOWERING_REQUANTIZE_H
#define INFERD_BACKENDS_LOWERING_REQUANTIZE_H

#include "inferd/backend.h"

/** Bounds of an activation that is a clamp; false for another one. */
bool ifd_low_clamp_f32(int32_t activation, float *ret_min, float *ret_max);
/** Bound of an activation in steps of a quantized output, limited to lowest … highest. In single
 *  precision, as in the reference: double rounds halves between two steps differently. */
int32_t ifd_low_bound(float real, float scale, int32_t zero, int32_t lowest, int32_t highest);

/** The factor of a channel is in * weight / out; LiteRT's reference kernels multiply in * weight in
 *  single precision for some layers. */
struct ifd_low_scales {
    const struct ifd_quant *weights;
    float in;
    double out;
    bool in_single;
    bool all_single; /* rounds_even: the factor is a float */
};

/** Are results of this layer, sum or product rounded as ONNX Runtime does it? */
bool ifd_low_rounds_even(const struct ifd_node_view *node);

/** Is a factor from stored inputs to the stored output so large that results may wrap in LiteRT
 *  (ifd_fixed_scale_double), or that of a sum 1 or more? Kernels hold no such factors. */
bool ifd_low_wraps(const struct ifd_node_view *node);

/** Is a scale of the node 0 or denormal, so that single-precision factors of it are no numbers, or
 *  zero where a device has no denormal ones, or such that the operator's factors in fixed point do
 *  not hold it? The reference computes such nodes. */
bool ifd_low_has_odd_scale(const struct ifd_node_view *node);

/** Of a convolution or fully connected layer: input 0, weights 1. Of f32 data: those of the weights
 *  only. */
struct ifd_low_scales ifd_low_read_scales(const struct ifd_node_view *node);
/** The factor of one channel's sums. */
double ifd_low_factor(const struct ifd_low_scales *scales, size_t channel);

/** Are all 8-bit weights of channel c zero? Then its result is constant, whatever its bias:
 *  converters make channels like that, with a bias of up to 2^30. zero: the byte that stands for
 *  0. */
bool ifd_low_is_nothing(const struct ifd_bytes *weights, size_t channels, bool channel_is_last,
                        uint8_t zero, size_t c);
/** Do sums of 8-bit products, bias included, stay below sum_max in every channel? Less is left
 *  where factors shift to the left. */
bool ifd_low_sums_fit(const struct ifd_node_view *node, const struct ifd_low_scales *scales,
                      int64_t sum_max);

#endif
