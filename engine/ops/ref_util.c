/* Helpers of reference kernels. */
#include "engine/ops/ref_util.h"

#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"

#include <math.h>
#include <string.h>

void ifd_walk_init(struct ifd_walk *walk, const struct ifd_shape *shape)
{
    *walk = (struct ifd_walk){.rank = shape->rank, .left = 1};
    for (uint32_t d = 0; d < shape->rank; d++) {
        walk->dim[d] = shape->dim[d];
        walk->left *= (size_t)shape->dim[d];
    }
}

void ifd_walk_broadcast(struct ifd_walk *walk, uint32_t k, const struct ifd_shape *shape)
{
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(shape, stride);
    const uint32_t missing = walk->rank - shape->rank;
    for (uint32_t d = 0; d < walk->rank; d++) {
        walk->stride[k][d] = d < missing || shape->dim[d - missing] == 1 ? 0 : stride[d - missing];
    }
    walk->offset[k] = 0;
}

void ifd_walk_strided(struct ifd_walk *walk, uint32_t k, int64_t start, const int64_t *stride)
{
    for (uint32_t d = 0; d < walk->rank; d++) {
        walk->stride[k][d] = stride[d];
    }
    walk->offset[k] = start;
}

void ifd_walk_next(struct ifd_walk *walk)
{
    walk->left--;
    walk->done++;
    for (uint32_t d = walk->rank; d-- > 0;) {
        const bool wraps = ++walk->index[d] == walk->dim[d];
        const int64_t steps = wraps ? 1 - walk->dim[d] : 1;
        for (uint32_t k = 0; k < IFD_WALK_OPERANDS; k++) {
            walk->offset[k] += steps * walk->stride[k][d];
        }
        if (!wraps) {
            return;
        }
        walk->index[d] = 0;
    }
}

int64_t ifd_ref_product(const struct ifd_shape *shape, uint32_t first, uint32_t last)
{
    int64_t product = 1;
    for (uint32_t d = first; d < last; d++) {
        product *= shape->dim[d];
    }
    return product;
}

size_t ifd_ref_elements(const struct ifd_desc *desc)
{
    return (size_t)ifd_ref_product(&desc->shape, 0, desc->shape.rank);
}

void ifd_ref_copy(size_t bytes, void *target, size_t to, const void *source, size_t from)
{
    ifd_ref_copy_run(bytes, target, to, source, from, 1);
}

void ifd_ref_copy_run(size_t bytes, void *target, size_t to, const void *source, size_t from,
                      size_t count)
{
    if (count > 0) {
        memcpy((uint8_t *)target + to * bytes, (const uint8_t *)source + from * bytes,
               count * bytes);
    }
}

void ifd_ref_repeat(uint8_t *target, const void *block, size_t block_bytes, size_t count)
{
    const size_t all = block_bytes * count;
    size_t done = count > 0 ? block_bytes : 0;
    if (all > 0) {
        memmove(target, block, done);
    }
    while (done < all) { /* what is there is doubled */
        const size_t more = done < all - done ? done : all - done;
        memcpy(target + done, target, more);
        done += more;
    }
}

void ifd_ref_pad_element(const struct ifd_desc *desc, uint8_t ret_element[16])
{
    memset(ret_element, 0, 16);
    if (ifd_dtype_is_quantized(desc->dtype) && desc->quant.count == 1) {
        ifd_ref_store(desc->dtype, ret_element, 0, ifd_ref_zero_point(desc));
    }
}

void ifd_ref_act_range_f32(int32_t activation, float *ret_min, float *ret_max)
{
    *ret_min = activation == IFD_ACT_RELU || activation == IFD_ACT_RELU6 ? 0.0f
               : activation == IFD_ACT_RELU_N1_TO_1                      ? -1.0f
                                                                         : -INFINITY;
    *ret_max = activation == IFD_ACT_RELU6          ? 6.0f
               : activation == IFD_ACT_RELU_N1_TO_1 ? 1.0f
                                                    : INFINITY;
}

/** The stored number nearest to a real one, not clamped to the type's range. */
static int32_t stored_bound(const struct ifd_desc *desc, float real)
{
    const float steps = roundf(real / desc->quant.scale[0]);
    const int32_t limit =
        1 << 24; /* far outside of every type's range, and safe to add a zero point to */
    if (!(steps > (float)-limit)) {
        return -limit;
    }
    return steps < (float)limit ? desc->quant.zero_point[0] + (int32_t)steps : limit;
}

void ifd_ref_act_range_quant(int32_t activation, const struct ifd_desc *desc, int32_t *ret_min,
                             int32_t *ret_max)
{
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(desc->dtype, &min, &max);
    float real_min = 0;
    float real_max = 0;
    ifd_ref_act_range_f32(activation, &real_min, &real_max);
    *ret_min = isinf(real_min) ? min : ifd_ref_clamp(stored_bound(desc, real_min), min, max);
    *ret_max = isinf(real_max) ? max : ifd_ref_clamp(stored_bound(desc, real_max), min, max);
}

int32_t ifd_ref_load(enum ifd_dtype dtype, const void *data, size_t i)
{
    switch ((unsigned)dtype) {
    case IFD_U8:
        return ((const uint8_t *)data)[i];
    case IFD_S8:
        return ((const int8_t *)data)[i];
    case IFD_S16:
        return ((const int16_t *)data)[i];
    default:
        return ((const int32_t *)data)[i];
    }
}

void ifd_ref_store(enum ifd_dtype dtype, void *data, size_t i, int32_t value)
{
    switch ((unsigned)dtype) {
    case IFD_U8:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    case IFD_S8:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    case IFD_S16:
        ((int16_t *)data)[i] = (int16_t)value;
        break;
    default:
        ((int32_t *)data)[i] = value;
        break;
    }
}

struct ifd_multiplier ifd_multiplier(double real)
{
    struct ifd_multiplier multiplier;
    ifd_fixed_from_any(real, &multiplier.fraction, &multiplier.shift);
    return multiplier;
}

float ifd_ref_scale(const struct ifd_desc *desc)
{
    return desc->quant.scale[0];
}

int32_t ifd_ref_zero_point(const struct ifd_desc *desc)
{
    return desc->quant.zero_point[0];
}

static int32_t saturate(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

struct ifd_multiplier ifd_ref_inverse_root(int32_t x)
{
    if (x <= 1) { /* of 0 the result is multiplied by 0 */
        return (struct ifd_multiplier){INT32_MAX, 0};
    }
    int shift = 11;
    while (x >= 1 << 29) {
        x /= 4;
        shift++;
    }
    int left = 0; /* pairs of leading zeros */
    while ((x << (2 * left)) < 1 << 27) {
        left++;
    }
    shift -= left;
    x <<= 2 * left;
    const int32_t half = ifd_fixed_shift_right(x >> 1, 1); /* of the fraction */
    const int32_t half_three = (1 << 28) + (1 << 27);      /* 1.5 with 3 integer bits */
    int32_t root = 1 << 28;                                /* 1 */
    for (int i = 0; i < 5; i++) {
        const int32_t square = ifd_fixed_mul_high(root, root); /* 6 integer bits */
        const int32_t cube =
            saturate((int64_t)ifd_fixed_mul_high(square, root) * (1 << 6)); /* 9, then 3 */
        const int32_t product = ifd_fixed_mul_high(half_three, root);       /* 6 */
        const int32_t correction = ifd_fixed_mul_high(half, cube);          /* 6 */
        root = saturate(((int64_t)product - correction) * (1 << 3));        /* 3 */
    }
    const int32_t half_root_2 = 1518500250; /* sqrt(2)/2 with 0 integer bits */
    root = ifd_fixed_mul_high(root, half_root_2);
    if (shift < 0) {
        root = (int32_t)((uint32_t)root << -shift);
        shift = 0;
    }
    return (struct ifd_multiplier){root, -shift};
}
