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

/* Double rounding: the product is rounded to 32 bits, then rounded again by the right shift. A left
 * shift wraps, as the hardware's does; callers keep x * 2^shift inside 32 bits. */
static inline int32_t ifd_fixed_scale_double(int32_t x, int32_t multiplier, int shift)
{
    int32_t wide = shift > 0 ? (int32_t)((uint32_t)x << shift) : x;
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

/* A 64-bit sum times a multiplier that is first rounded to 15 bits; shift in [-31, 6]. */
static inline int64_t ifd_fixed_scale_wide(int64_t sum, int32_t multiplier, int shift)
{
    const int64_t limit = IFD_FIXED_WIDE_LIMIT;
    const int64_t limited = sum > limit ? limit : sum < -limit ? -limit : sum;
    const int64_t fraction = multiplier < 0x7fff0000 ? (multiplier + (1 << 15)) >> 16 : 0x7fff;
    return (limited * fraction + (INT64_C(1) << (14 - shift))) >> (15 - shift);
}

/* Writes the factor nearest to real, which must be finite and >= 0, as LiteRT's QuantizeMultiplier
 * does: factors below 2^-32 become 0, those of 2^30 and more the largest representable. */
static inline void ifd_fixed_from_real(double real, int32_t *ret_multiplier, int *ret_shift)
{
    int shift = 0;
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

/* Is a factor, which must be >= 0, so large that ifd_fixed_from_any counts its shift modulo 32?
 * Such a shift is not to be added to. */
static inline bool ifd_fixed_wraps(double real)
{
    return !(real < (double)(1 << 30));
}

/* A factor of any size, for ifd_fixed_scale_double: from 2^30 on the shift to the left counts
 * modulo 32, which is what LiteRT's kernels, whose multiplier has no bound, make of it on x86. */
static inline void ifd_fixed_from_any(double real, int32_t *ret_multiplier, int *ret_shift)
{
    int shift = 0;
    if (!ifd_fixed_wraps(real)) {
        ifd_fixed_from_real(real, ret_multiplier, ret_shift);
        return;
    }
    while (real >= 1.0) {
        real *= 0.5;
        shift++;
    }
    const int64_t fraction = (int64_t)(real * 2147483648.0 + 0.5);
    const bool is_one = fraction == INT64_C(1) << 31;
    *ret_multiplier = (int32_t)(is_one ? fraction >> 1 : fraction);
    *ret_shift = (shift + (is_one ? 1 : 0)) % 32;
}

#endif
