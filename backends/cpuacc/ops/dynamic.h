/** Layers of f32 data and s8 weights, as LiteRT runs them: each image is quantized by its range. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_DYNAMIC_H
#define INFERD_BACKENDS_CPUACC_OPS_DYNAMIC_H

#include "backends/cpuacc/ops/product.h"

/** A quantized input: one of these per image, then (ifd_acc_quantized_bytes further on) the images'
 *  elements in native form. With as_floats: the dequantized floats only. */
struct ifd_acc_quantized {
    float scale;
    int32_t zero; /* native */
};

size_t ifd_acc_quantized_bytes(size_t count);

/** Adds a step that quantizes value (count images of elements each) for a layer with the weights of
 *  product, and returns the quantized value. as_floats: returns the dequantized numbers. */
IFD_NODISCARD enum ifd_code ifd_acc_quantize_input(struct ifd_acc_lowering *lowering,
                                                   uint32_t value, size_t count, size_t elements,
                                                   bool as_floats,
                                                   const struct ifd_acc_product *product,
                                                   uint32_t *ret_value, struct ifd_err *err);

#endif
