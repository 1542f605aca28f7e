/** Quantized operators: how tensors of the file are quantized, and the operators that compute on
 *  stored numbers, as ONNX Runtime's kernels do, not on floats (stored.c). */
#ifndef INFERD_ENGINE_PARSE_ONNX_QUANTIZED_H
#define INFERD_ENGINE_PARSE_ONNX_QUANTIZED_H

#include "engine/parse/onnx/onnx_impl.h"

/** Quantization of a tensor: scale and zero point as values; the latter may be IFD_NONE. */
struct ifd_onnx_quant {
    uint32_t scale, zero_point;
};

/** The quantization that inputs i and i + 1 of a call say. */
struct ifd_onnx_quant ifd_onnx_quant_at(const struct ifd_onnx_call *call, uint32_t i);

/** The quantization as a description, if it is constant, of 8 bits and of the whole tensor. */
bool ifd_onnx_describe(struct ifd_builder *b, const struct ifd_onnx_quant *q, struct ifd_desc *ret);

/** A list of one number per channel, along an axis of a tensor of this rank; a scalar stays one,
 *  and so do numbers of each element. */
uint32_t ifd_onnx_along(struct ifd_builder *b, uint32_t list, uint32_t rank, int64_t axis);

/** x in floats as stored numbers, and back; the quantization may lie along an axis. */
uint32_t ifd_onnx_quantize(struct ifd_builder *b, uint32_t x, struct ifd_onnx_quant q,
                           int64_t axis);
uint32_t ifd_onnx_dequantize(struct ifd_builder *b, uint32_t x, struct ifd_onnx_quant q,
                             int64_t axis);

/** QuantizeLinear and DequantizeLinear (linear.c). */
uint32_t ifd_onnx_quantize_linear(struct ifd_onnx_call *call, int64_t axis);
uint32_t ifd_onnx_dequantize_linear(struct ifd_onnx_call *call, int64_t axis);

/** Operators on stored numbers, with the inputs of their ONNX forms QLinearConv, QLinearMatMul,
 *  QGemm and QLinearAdd or QLinearMul (op). IFD_NONE, and nothing is made, if scales, zero points
 *  or weights are not constant, or not of a form that our operators have. activation: enum
 *  ifd_activation. */
uint32_t ifd_onnx_stored_conv(struct ifd_onnx_call *call, int32_t activation);
uint32_t ifd_onnx_stored_matmul(struct ifd_onnx_call *call, int32_t activation);
uint32_t ifd_onnx_stored_gemm(struct ifd_onnx_call *call, int32_t activation);
uint32_t ifd_onnx_stored_binary(struct ifd_onnx_call *call, enum ifd_op op, int32_t activation);

/** The same of f32 data: x is input 0; weights, their scales and zero point are inputs 3 to 5. x is
 *  quantized by DynamicQuantizeLinear, the result is f32. */
uint32_t ifd_onnx_dynamic_conv(struct ifd_onnx_call *call);
uint32_t ifd_onnx_dynamic_matmul(struct ifd_onnx_call *call);

/** A QuantizeLinear behind an operator whose inputs are made by DequantizeLinear: that operator on
 *  stored numbers. IFD_NONE if it is another pattern (qdq.c). */
uint32_t ifd_onnx_fused_qdq(struct ifd_onnx_call *call);
/** A Mul of the sums of ConvInteger or MatMulInteger, whose data DynamicQuantizeLinear makes, and
 *  both scales: that operator of f32 data. IFD_NONE if it is another pattern. */
uint32_t ifd_onnx_dynamic_product(struct ifd_onnx_call *call);

#endif
