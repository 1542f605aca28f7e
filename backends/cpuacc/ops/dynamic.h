/** Layers of f32 data and s8 weights, as LiteRT runs them: every image is brought to 8 bits by its own range. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_DYNAMIC_H
#define INFERD_BACKENDS_CPUACC_OPS_DYNAMIC_H

#include "backends/cpuacc/ops/product.h"

/** What a step that quantizes leaves behind: one of these per image, then (ifd_acc_quantized_bytes further on) the images'
 *  elements, native. Where they were made floats again instead, those lie in its place. */
struct ifd_acc_quantized {
    float scale;
    int32_t zero; /* native */
};

size_t ifd_acc_quantized_bytes(size_t count);

/** Adds a step that quantizes value, count images of elements each, for a product with such weights, and returns the value
 *  that it makes. as_floats: the numbers that the 8 bits stand for, and nothing else. */
IFD_NODISCARD enum ifd_code ifd_acc_quantize_input(struct ifd_acc_lowering *lowering,
                                                   uint32_t value, size_t count, size_t elements,
                                                   bool as_floats,
                                                   const struct ifd_acc_product *product,
                                                   uint32_t *ret_value, struct ifd_err *err);

#endif
