/** Shared by the families of element-wise functions of one tensor: shape rules, functions
 *  through floats, definitions. */
#ifndef INFERD_ENGINE_OPS_UNARY_H
#define INFERD_ENGINE_OPS_UNARY_H

#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#define TYPES_F32    IFD_BIT(IFD_F32)
#define TYPES_8BIT   (IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8))
#define TYPES_QUANT  IFD_DTYPES_QUANT
#define TYPES_SIGNED (IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16))

/** The output has the input's shape and type; quantized types have one scale a tensor. Errors as
 *  of infer functions. */
IFD_NODISCARD enum ifd_code ifd_unary_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                            struct ifd_err *err);

/** Real multipliers of quantized operators are floats where TFLite has floats. */
float ifd_unary_scale_ratio(const struct ifd_desc *input, const struct ifd_desc *output);

/** output = fn(input), for f32, for 8-bit types through floats, for s16 through a table of 513
 *  points, as LiteRT has it. */
void ifd_unary_map(const struct ifd_ref_call *call, float (*fn)(float));

/** Points of a table over the range of s16, both ends included. */
#define IFD_TABLE16_POINTS 513
/** Value of such a table at x, between its points. A slope has 16 bits, as in LiteRT: it wraps
 *  between points that are further apart. */
static inline int32_t ifd_table16_at(const int16_t *table, int32_t x)
{
    const int32_t limited = ifd_ref_clamp(x, INT16_MIN, INT16_MAX) - INT16_MIN;
    const int32_t base = table[limited >> 7];
    const int32_t slope = (int16_t)(table[(limited >> 7) + 1] - base);
    return (int16_t)(base + ((slope * (limited & 127) + 64) >> 7));
}

/** Definitions. op: its name; rule: the shape rule; types: of the input. They need the function
 *  <op>_ref and, WITH_ATTRS, the table <op>_attrs of struct ifd_<op>_attrs. */
#define UNARY_COMMON(op, rule, types)                                                              \
    .name = #op, .min_inputs = 1, .max_inputs = 1, .outputs = 1, .dtypes = (types),                \
    .batch = IFD_BATCH_SAMPLE, .can_alias = true, .is_elementwise = true, .infer = (rule),         \
    .ref = op##_ref

#define DEFINE_UNARY(op, rule, types)                                                              \
    const struct ifd_op_def ifd_op_##op = {UNARY_COMMON(op, rule, types)};

/* Operators that clamp: op##_bounds says to which interval. */
#define DEFINE_UNARY_BOUNDED(op, rule, types)                                                      \
    const struct ifd_op_def ifd_op_##op = {UNARY_COMMON(op, rule, types), .bounds = op##_bounds};

#define DEFINE_UNARY_WITH_ATTRS(op, rule, types, bounds_fn)                                        \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        UNARY_COMMON(op, rule, types), .attrs = op##_attrs,                                        \
        .attr_count = sizeof(op##_attrs) / sizeof(op##_attrs[0]),                                  \
        .attrs_bytes = sizeof(struct ifd_##op##_attrs), .bounds = (bounds_fn)};

#endif
