/* Fixed-point requantization: scaling an integer accumulator by a real factor held as a 31-bit
 * fraction and a power of two. Shared by the reference kernels and the CPU kernels so that both
 * round alike.
 *
 * A factor is multiplier * 2^(shift - 31), multiplier in [2^30, 2^31) or 0. The two roundings are
 * those of LiteRT's reference kernels: double rounding for convolutions, additions and
 * multiplications, single rounding for fully connected layers.
 *
 * Thread: any. */
#ifndef INFERD_ENGINE_TENSOR_FIXED_H
#define INFERD_ENGINE_TENSOR_FIXED_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* High half of 2*a*b, rounded to nearest, halves upwards; saturates the one overflow. */
static inline int32_t ifd_fixed_mul_high(int32_t a, int32_t b)
{
    int64_t product = (int64_t)a * b;
    int64_t high = (product + (INT64_C(1) << 30)) >> 31;
    return high > INT32_MAX ? INT32_MAX : (int32_t)high;
}

/* x / 2^exponent rounded to nearest, halves away from zero; exponent in [0, 31]. */
static inline int32_t ifd_fixed_shift_right(int32_t x, int exponent)
{
    int64_t half = exponent > 0 ? INT64_C(1) << (exponent - 1) : 0;
    int64_t toward = x < 0 && exponent > 0 ? 1 : 0;
    return (int32_t)((x + half - toward) >> exponent);
}

/* A float as an integer: what 32 bits do not hold, NaN too, becomes the lowest number. C++ leaves
 * that open; LiteRT's kernels give what x86 converts it to. */
static inline int32_t ifd_fixed_from_float(float real)
{
    return real >= -0x1p31f && real < 0x1p31f ? (int32_t)real : INT32_MIN;
}

/* a + b modulo 2^32. */
static inline int32_t ifd_fixed_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* The same for any exponent: those not in [0, 31] give what x86 gives in LiteRT's kernels, where
 * shifts count modulo the number of bits. */
static inline int32_t ifd_fixed_shift_any(int32_t x, int exponent)
{
    const int32_t mask = (int32_t)(uint32_t)((UINT64_C(1) << (exponent & 63)) - 1);
    return ifd_fixed_add(x >> (exponent & 31), (x & mask) > (mask >> 1) + (x < 0));
}

/* Double rounding: the product is rounded to 32 bits, then rounded again by the right shift. A left
 * shift counts modulo 32 and wraps, as x86 has it in LiteRT's kernels. */
static inline int32_t ifd_fixed_scale_double(int32_t x, int32_t multiplier, int shift)
{
    int32_t wide = shift > 0 ? (int32_t)((uint32_t)x << (shift & 31)) : x;
    return ifd_fixed_shift_right(ifd_fixed_mul_high(wide, multiplier), shift > 0 ? 0 : -shift);
}

/* Single rounding: one rounded shift of the 64-bit product, halves upwards; shift in [-31, 30]. */
static inline int32_t ifd_fixed_scale_single(int32_t x, int32_t multiplier, int shift)
{
    int64_t product = (int64_t)x * multiplier;
    return (int32_t)((product + (INT64_C(1) << (30 - shift))) >> (31 - shift));
}

/* x times a factor in double precision, halves away from zero: fully connected layers. What 32 bits
 * do not hold becomes the lowest number, as x86 converts it in LiteRT's kernel. */
static inline int32_t ifd_fixed_scale_real(int64_t x, double factor)
{
    const double real = round((double)x * factor);
    return real >= INT32_MIN && real <= INT32_MAX ? (int32_t)real : INT32_MIN;
}

/* 64-bit sums beyond this are cut before they are scaled, so that scaling cannot overflow. */
#define IFD_FIXED_WIDE_LIMIT (INT64_C(1) << 47)

/* A 64-bit sum times a multiplier that is first rounded to 15 bits; shift from -31. The result
 * keeps its low 32 bits, and shifts count modulo 64: x86 has it so in LiteRT's kernels. */
static inline int32_t ifd_fixed_scale_wide(int64_t sum, int32_t multiplier, int shift)
{
    const int64_t limit = IFD_FIXED_WIDE_LIMIT;
    const int64_t limited = sum > limit ? limit : sum < -limit ? -limit : sum;
    const int64_t fraction = multiplier < 0x7fff0000 ? (multiplier + (1 << 15)) >> 16 : 0x7fff;
    const uint64_t half = UINT64_C(1) << ((14 - shift) & 63);
    return (int32_t)(uint32_t)((int64_t)((uint64_t)(limited * fraction) + half) >>
                               ((15 - shift) & 63));
}

/* Writes the factor nearest to real, which must be finite and >= 0, as LiteRT's QuantizeMultiplier
 * does: factors below 2^-32 become 0, those of 2^30 and more the largest representable. */
static inline void ifd_fixed_from_real(double real, int32_t *ret_multiplier, int *ret_shift)
{
    int shift = 0;
    real = real < 0x1p31 ? real : 0x1p31; /* NaN, too */
    while (real >= 1.0 && shift < 31) {
        real *= 0.5;
        shift++;
    }
    while (real > 0.0 && real < 0.5 && shift > -32) {
        real *= 2.0;
        shift--;
    }
    /* real is now in [0.5, 1), where adding a half and truncating rounds halves away from zero */
    int64_t fraction = (int64_t)(real * 2147483648.0 + 0.5);
    if (fraction == INT64_C(1) << 31) {
        fraction >>= 1;
        shift++;
    }
    if (shift < -31) {
        fraction = 0;
        shift = 0;
    }
    if (shift > 30) {
        fraction = INT32_MAX;
        shift = 30;
    }
    *ret_multiplier = (int32_t)fraction;
    *ret_shift = shift;
}

/* Is a factor, which must be >= 0, so large that its shift to the left may be 31 and more? */
static inline bool ifd_fixed_wraps(double real)
{
    return !(real < (double)(1 << 30));
}

/* A factor of any size and sign, with any shift from -31; 0 of what is not finite. */
static inline void ifd_fixed_from_any(double real, int32_t *ret_multiplier, int *ret_shift)
{
    int shift = 0;
    const double fraction = isfinite(real) ? round(frexp(real, &shift) * 0x1p31) : 0;
    const bool is_one = fraction == 0x1p31;
    shift += is_one ? 1 : 0;
    const bool is_nothing = fraction == 0 || shift < -31;
    *ret_multiplier = is_nothing ? 0 : is_one ? 1 << 30 : (int32_t)fraction;
    *ret_shift = is_nothing ? 0 : shift;
}

#endif
