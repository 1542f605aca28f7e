/** Helpers of reference kernels: walks over elements, activation ranges, access to quantized
 *  numbers. Nothing here allocates or fails. Thread: any. */
#ifndef INFERD_ENGINE_OPS_REF_UTIL_H
#define INFERD_ENGINE_OPS_REF_UTIL_H

#include "engine/tensor/fixed.h"
#include "inferd/op.h"
#include "inferd/op_attrs.h"

/** Maximum number of operands of a walk. */
#define IFD_WALK_OPERANDS 3

/** A walk over the elements of a shape in row-major order. For every element it gives the offset
 *  of the matching element of each operand, in elements.
 *
 *      struct ifd_walk walk;
 *      ifd_walk_init(&walk, &output->shape);
 *      ifd_walk_broadcast(&walk, 0, &input->shape);
 *      for (; walk.left > 0; ifd_walk_next(&walk)) {
 *          out[walk.done] = in[walk.offset[0]];
 *      } */
struct ifd_walk {
    size_t left, done; /* elements to visit, elements visited */
    uint32_t rank;
    int64_t dim[IFD_MAX_RANK], index[IFD_MAX_RANK];
    int64_t stride[IFD_WALK_OPERANDS][IFD_MAX_RANK];
    int64_t offset[IFD_WALK_OPERANDS];
};

/** shape's dimensions are known. */
void ifd_walk_init(struct ifd_walk *walk, const struct ifd_shape *shape);
/** Operand k has this shape, broadcast to the walk's; the shape rule checked that it can be. */
void ifd_walk_broadcast(struct ifd_walk *walk, uint32_t k, const struct ifd_shape *shape);
/** Operand k begins at start and moves by stride[d] along dimension d. */
void ifd_walk_strided(struct ifd_walk *walk, uint32_t k, int64_t start, const int64_t *stride);
void ifd_walk_next(struct ifd_walk *walk);

/** Product of dimensions first … last-1; 1 if there are none. */
int64_t ifd_ref_product(const struct ifd_shape *shape, uint32_t first, uint32_t last);
/** Number of elements of a shape that a shape rule accepted. */
size_t ifd_ref_elements(const struct ifd_desc *desc);

/** Copies element from of source to element to of target; bytes is the size of an element. */
void ifd_ref_copy(size_t bytes, void *target, size_t to, const void *source, size_t from);
/** Copies count elements likewise. */
void ifd_ref_copy_run(size_t bytes, void *target, size_t to, const void *source, size_t from,
                      size_t count);

/** Copies block_bytes count times, one behind the other; they may lie where the first copy goes. */
void ifd_ref_repeat(uint8_t *target, const void *block, size_t block_bytes, size_t count);

/** Writes the element that pads a tensor to ret_element, 16 bytes: the zero point if it is
 *  quantized, else 0. */
void ifd_ref_pad_element(const struct ifd_desc *desc, uint8_t ret_element[16]);

/** Range of an activation's clamp, for floats. TANH and SIGN_BIT are no clamps: shape rules
 *  refuse them. */
void ifd_ref_act_range_f32(int32_t activation, float *ret_min, float *ret_max);
/** The same on stored numbers of a quantized type (TFLite's CalculateActivationRangeQuantized). */
void ifd_ref_act_range_quant(int32_t activation, const struct ifd_desc *desc, int32_t *ret_min,
                             int32_t *ret_max);

/** Reads and writes element i of type u8, s8, s16 or s32 as int32; a written value must fit. */
int32_t ifd_ref_load(enum ifd_dtype dtype, const void *data, size_t i);
void ifd_ref_store(enum ifd_dtype dtype, void *data, size_t i, int32_t value);

/** A real factor in the form of engine/tensor/fixed.h. */
struct ifd_multiplier {
    int32_t fraction;
    int shift;
};

/** Splits a real factor as ifd_fixed_from_any. */
struct ifd_multiplier ifd_multiplier(double real);

/** 1 / sqrt(x), x >= 0, by five Newton steps in fixed point with 3 integer bits (the arithmetic of
 *  LiteRT's GetInvSqrtQuantizedMultiplierExp; gemmlowp rounds its products as ifd_fixed_mul_high
 *  does). 1 for 0. */
struct ifd_multiplier ifd_ref_inverse_root(int32_t x);

static inline int32_t ifd_requantize_double(int32_t x, struct ifd_multiplier m)
{
    return ifd_fixed_scale_double(x, m.fraction, m.shift);
}

/** Do numbers below 2^bits become the same in all loops of LiteRT that take factors below 1? A
 *  greater one is a shift to the right by a negative number: vectors leave the sign, what remains
 *  of a loop counts modulo 32. By 1 LiteRT aborts. */
static inline bool ifd_shifts_alike(struct ifd_multiplier m, int bits)
{
    const bool is_one = m.shift == 1 && m.fraction == 1 << 30;
    return m.shift <= 0 || (!is_one && (-m.shift & 31) >= bits);
}

static inline int32_t ifd_requantize_single(int32_t x, struct ifd_multiplier m)
{
    return ifd_fixed_scale_single(x, m.fraction, m.shift);
}

/** Quantization of a tensor that is quantized per tensor. */
float ifd_ref_scale(const struct ifd_desc *desc);
int32_t ifd_ref_zero_point(const struct ifd_desc *desc);

static inline int32_t ifd_ref_clamp(int64_t x, int32_t min, int32_t max)
{
    return x < min ? min : x > max ? max : (int32_t)x;
}

static inline float ifd_ref_clamp_f32(float x, float min, float max)
{
    return x < min ? min : x > max ? max : x;
}

#endif
