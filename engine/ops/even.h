/** Sums and products of 8-bit tensors as ONNX Runtime rounds them (attribute rounds_even): one
 *  float for each result, halves to the even neighbour. Thread: any. */
#ifndef INFERD_ENGINE_OPS_EVEN_H
#define INFERD_ENGINE_OPS_EVEN_H

#include "inferd/op.h"

/** The part of a shape rule: 8 bits, all quantized per tensor (checked before), and factors that
 *  floats hold. */
IFD_NODISCARD enum ifd_code ifd_even_infer(const struct ifd_infer *in,
                                           const struct ifd_desc *output, struct ifd_err *err);

/** Reference kernels: add and mul. */
void ifd_even_add(const struct ifd_ref_call *call);
void ifd_even_mul(const struct ifd_ref_call *call);

#endif
