/** Shared by the functions of two tensors: the shape rule of arithmetic, walks over elements with
 *  broadcasting, definitions. Thread: any. */
#ifndef INFERD_ENGINE_OPS_BINARY_H
#define INFERD_ENGINE_OPS_BINARY_H

#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#define BINARY_NUMBERS (IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))

enum { IFD_BINARY_ATTRS = 3 };
extern const struct ifd_attr_def ifd_binary_attr_defs[IFD_BINARY_ATTRS];

/** Shape and type of the output. Quantized operands have one scale a tensor; rounds_even is refused
 *  where it has no kernel. Errors as of infer functions. */
IFD_NODISCARD enum ifd_code ifd_binary_arithmetic_infer(const struct ifd_infer *in,
                                                        struct ifd_desc *output,
                                                        struct ifd_err *err);

/** output = fn(a, b), with the activation of the attributes. */
void ifd_binary_map_f32(const struct ifd_ref_call *call, float (*fn)(float, float));
/** Of stored integers; results of s32 and s64 wrap around. */
void ifd_binary_map_int(const struct ifd_ref_call *call, int64_t (*fn)(int64_t, int64_t));
/** Of quantized numbers without their zero points; the output's is added to fn's result, which is
 *  then clamped. */
void ifd_binary_map_quant(const struct ifd_ref_call *call,
                          int32_t (*fn)(int32_t, int32_t, const void *), const void *context);

/** Definitions. op: its name; rule: the shape rule; types: of the inputs; activates: it applies the
 *  activation. They need the function <op>_ref. */
#define DEFINE_BINARY(op, rule, types, activates, bounds_fn)                                       \
    const struct ifd_op_def ifd_op_##op = {.name = #op,                                            \
                                           .min_inputs = 2,                                        \
                                           .max_inputs = 2,                                        \
                                           .outputs = 1,                                           \
                                           .attrs = ifd_binary_attr_defs,                          \
                                           .attr_count = IFD_BINARY_ATTRS,                         \
                                           .attrs_bytes = sizeof(struct ifd_binary_attrs),         \
                                           .dtypes = (types),                                      \
                                           .batch = IFD_BATCH_ELEMENTWISE,                         \
                                           .can_alias = true,                                      \
                                           .is_elementwise = true,                                 \
                                           .infer = (rule),                                        \
                                           .ref = op##_ref,                                        \
                                           .bounds = (bounds_fn),                                  \
                                           .applies_activation = (activates)};

#endif
