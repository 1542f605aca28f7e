/** Helpers of shape rules: checks of operands and quantization, axes, outputs.
 *
 *  Every error names the operator, the operand, the value got and the value expected. A shape
 *  rule begins with ifd_infer_begin() and ends with one ifd_infer_output() per output; the rest
 *  is specific to the operator. Thread: any. */
#ifndef INFERD_ENGINE_OPS_INFER_UTIL_H
#define INFERD_ENGINE_OPS_INFER_UTIL_H

#include "engine/ir/shape.h"
#include "inferd/op.h"
#include "inferd/op_attrs.h"

/** Sets of data types for definitions. */
#define IFD_DTYPES_QUANT (IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16))
#define IFD_DTYPES_INDEX (IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))
/** All types of fixed size, for operators that only move elements: all but STR. */
#define IFD_DTYPES_MOVE (((uint32_t)1 << IFD_STR) - 1)
/** The same with STR: what moves elements and never fills. */
#define IFD_DTYPES_PASS (IFD_DTYPES_MOVE | IFD_BIT(IFD_STR))

/** The checks of every shape rule: attributes within their ranges; numbers of inputs and outputs
 *  as defined; the required inputs (the first min_inputs) present; every shape known and its
 *  size in bytes representable; the type of input 0 allowed; constants as large as their
 *  description; inputs in def->shape_inputs constant (if present). After OK, every shape's
 *  element count, strides and byte size fit int64_t and size_t. */
IFD_NODISCARD enum ifd_code ifd_infer_begin(const struct ifd_op_def *def,
                                            const struct ifd_infer *in, struct ifd_err *err);

/** Description of input i, NULL if it is absent or beyond the last. */
const struct ifd_desc *ifd_infer_input(const struct ifd_infer *in, uint32_t i);

/** The type of input i must be in dtypes. */
IFD_NODISCARD enum ifd_code ifd_infer_dtype(const struct ifd_op_def *def,
                                            const struct ifd_infer *in, uint32_t i, uint32_t dtypes,
                                            struct ifd_err *err);

/** Input i must have this rank. */
IFD_NODISCARD enum ifd_code ifd_infer_rank(const struct ifd_op_def *def, const struct ifd_infer *in,
                                           uint32_t i, uint32_t rank, struct ifd_err *err);

/** The type of output i must be dtype. */
IFD_NODISCARD enum ifd_code ifd_infer_output_dtype(const struct ifd_op_def *def,
                                                   const struct ifd_desc *output, uint32_t i,
                                                   enum ifd_dtype dtype, struct ifd_err *err);

/** desc must be quantized per tensor, with a positive normal scale and a zero point within its
 *  type (0 for s16 and s32). what: the operand's name in messages, "input 0". For quantized
 *  types only. */
IFD_NODISCARD enum ifd_code ifd_infer_per_tensor(const struct ifd_op_def *def, const char *what,
                                                 const struct ifd_desc *desc, struct ifd_err *err);

/** Like ifd_infer_per_tensor, but the scale may be denormal or 0: converters write zeros so, and
 *  LiteRT computes such operators (engine/README.md, Scales). */
IFD_NODISCARD enum ifd_code ifd_infer_any_scale(const struct ifd_op_def *def, const char *what,
                                                const struct ifd_desc *desc, struct ifd_err *err);

/** Behind ifd_infer_any_scale of the output: the bounds of its activation must be numbers of 32
 *  bits, if the scale is not normal. */
IFD_NODISCARD enum ifd_code ifd_infer_act_bounds(const struct ifd_op_def *def, int32_t activation,
                                                 const struct ifd_desc *output,
                                                 struct ifd_err *err);

/** Like ifd_infer_any_scale, but also per channel along axis, where every zero point must be 0
 *  (one count of scales per channel, or 1). */
IFD_NODISCARD enum ifd_code ifd_infer_per_channel(const struct ifd_op_def *def, const char *what,
                                                  const struct ifd_desc *desc, uint32_t axis,
                                                  struct ifd_err *err);

/** The same along desc's own axis; zero points are any of the type. */
IFD_NODISCARD enum ifd_code ifd_infer_each_channel(const struct ifd_op_def *def, const char *what,
                                                   const struct ifd_desc *desc,
                                                   struct ifd_err *err);

/** Both not quantized, or both per tensor with the same scale and zero point. */
bool ifd_quant_equal(const struct ifd_desc *a, const struct ifd_desc *b);

/** Is this type stored as quantized numbers (u8, s8, s16)? */
bool ifd_dtype_is_quantized(enum ifd_dtype dtype);

/** Range of an integer type of at most 32 bits. */
void ifd_dtype_range(enum ifd_dtype dtype, int32_t *ret_min, int32_t *ret_max);

/** Resolves an axis of a shape; a negative one counts from the end. */
IFD_NODISCARD enum ifd_code ifd_infer_axis(const struct ifd_op_def *def,
                                           const struct ifd_shape *shape, int64_t axis,
                                           uint32_t *ret_axis, struct ifd_err *err);

/** Writes the common broadcast shape of all inputs to output 0. */
IFD_NODISCARD enum ifd_code ifd_infer_broadcast(const struct ifd_op_def *def,
                                                const struct ifd_infer *in, struct ifd_desc *output,
                                                struct ifd_err *err);

/** Writes the shape of output i; TOO_LARGE if its size in bytes overflows. */
IFD_NODISCARD enum ifd_code ifd_infer_output(const struct ifd_op_def *def, struct ifd_desc *output,
                                             uint32_t i, const struct ifd_shape *shape,
                                             struct ifd_err *err);

/** Reads a shape parameter that is an input: a constant s32 or s64 tensor of up to IFD_MAX_RANK
 *  elements, of any rank. data must have desc's bytes. */
IFD_NODISCARD enum ifd_code ifd_infer_ints(const struct ifd_op_def *def, const char *what,
                                           const struct ifd_desc *desc, const void *data,
                                           struct ifd_ints *ret_ints, struct ifd_err *err);

/** The same for a tensor [n,2] of amounts before and after. */
IFD_NODISCARD enum ifd_code ifd_infer_pairs(const struct ifd_op_def *def, const char *what,
                                            const struct ifd_desc *desc, const void *data,
                                            struct ifd_ints *ret_before, struct ifd_ints *ret_after,
                                            struct ifd_err *err);

/** Product of non-negative dimensions or factors; false if it does not fit. */
bool ifd_dim_mul(int64_t a, int64_t b, int64_t *ret) IFD_NODISCARD;
bool ifd_dim_add(int64_t a, int64_t b, int64_t *ret) IFD_NODISCARD;

#endif
