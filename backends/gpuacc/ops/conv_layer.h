/** Convolutions, transposed ones and fully connected layers as one kind of layer. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_CONV_LAYER_H
#define INFERD_BACKENDS_GPUACC_OPS_CONV_LAYER_H

#include "backends/gpuacc/ops/blocking.h"
#include "backends/gpuacc/ops/layer.h"

struct ifd_gpu_conv_layer {
    const char *name;
    struct ifd_low_window window;
    size_t pixels, out_c, groups;
    int32_t activation;
    bool is_transposed;
};

static inline size_t ifd_gpu_conv_group_in(const struct ifd_gpu_conv_layer *layer)
{
    return layer->window.in_c / layer->groups;
}

static inline size_t ifd_gpu_conv_weights_row(const struct ifd_gpu_conv_layer *layer)
{
    return (layer->out_c + 3) / 4 * 4;
}

static inline size_t ifd_gpu_conv_taps(const struct ifd_gpu_conv_layer *layer)
{
    return layer->window.kh * layer->window.kw;
}

/** Adds the arguments between input and output: weights, bias and factors. node: input 0, weights
 *  1, bias 2. */
IFD_NODISCARD enum ifd_code ifd_gpu_conv_constants(struct ifd_gpu_lowering *lowering,
                                                   const struct ifd_gpu_conv_layer *layer,
                                                   const struct ifd_node_view *node,
                                                   enum ifd_gpu_weights weights,
                                                   struct ifd_gpu_call *call, struct ifd_err *err);

/** Adds its steps. node: input 0, weights 1, bias 2. in, result: values. */
IFD_NODISCARD enum ifd_code ifd_gpu_lower_conv_layer(struct ifd_gpu_lowering *lowering,
                                                     const struct ifd_gpu_conv_layer *layer,
                                                     const struct ifd_node_view *node, uint32_t in,
                                                     uint32_t result, struct ifd_err *err);

#endif
