/** Layers of f32 data and 8-bit weights: as LiteRT runs them, each image is quantized by its range;
 *  as ONNX's DynamicQuantizeLinear, all images are by the range of all. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_DYNAMIC_H
#define INFERD_BACKENDS_CPUACC_OPS_DYNAMIC_H

#include "backends/cpuacc/ops/product.h"

/** A quantized input: one of these per image, then (ifd_acc_quantized_bytes further on) the images'
 *  elements in native form. With as_floats: the dequantized floats only. */
struct ifd_acc_quantized {
    float scale;
    int32_t zero; /* native */
};

/** With a zero point from each image's range; with 0; as the dequantized numbers. The last two: as
 *  ONNX. */
enum ifd_acc_quantize_form {
    IFD_ACC_QUANTIZE_ASYMMETRIC,
    IFD_ACC_QUANTIZE_SYMMETRIC,
    IFD_ACC_QUANTIZE_AS_FLOATS,
    IFD_ACC_QUANTIZE_WHOLE,
    IFD_ACC_QUANTIZE_WHOLE_AS_FLOATS
};

/** What a conv2d takes: one scale serves all channels, or several. */
enum ifd_acc_quantize_form ifd_acc_conv_form(const struct ifd_acc_product *product);

size_t ifd_acc_quantized_bytes(size_t count);

/** Adds a step that quantizes value (count images of elements each), and returns the quantized
 *  value. */
IFD_NODISCARD enum ifd_code ifd_acc_quantize_input(struct ifd_acc_lowering *lowering,
                                                   uint32_t value, size_t count, size_t elements,
                                                   enum ifd_acc_quantize_form form,
                                                   uint32_t *ret_value, struct ifd_err *err);

#endif
