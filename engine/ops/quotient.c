/* Division in fixed point: three Newton steps for the reciprocal (gemmlowp's
 * one_over_one_plus_x_for_x_in_0_1), then the product with the dividend. */
#include "engine/ops/quotient.h"

#include "engine/tensor/fixed.h"

#define BEYOND (1 << 20)

static int leading_zeros(uint32_t x)
{
    int count = 0;
    for (uint32_t bit = (uint32_t)1 << 31; bit != 0 && (x & bit) == 0; bit >>= 1) {
        count++;
    }
    return count;
}

/* Leading bits that are only copies of the sign. */
static int leading_signs(int32_t x)
{
    return leading_zeros(x < 0 ? ~(uint32_t)x : (uint32_t)x) - 1;
}

/* x * 2^bits, saturated. */
static int32_t widen(int32_t x, int bits)
{
    const int64_t wide = (int64_t)x * ((int64_t)1 << bits);
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

/* 1 / (1 + x) for x in 0 … 1: 31 bits behind the point, inside 29. */
static int32_t inverse_of_one_plus(int32_t x)
{
    static const int32_t one = 1 << 29, start = 1515870810, slope = -1010580540; /* 48/17, -32/17 */
    const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) / 2);            /* (1 + x) / 2 */
    int32_t y = start + ifd_fixed_mul_high(half, slope);
    for (int i = 0; i < 3; i++) {
        const int32_t error = one - ifd_fixed_mul_high(half, y);
        y += widen(ifd_fixed_mul_high(y, error), 2);
    }
    return widen(y, 1);
}

int32_t ifd_quotient(int32_t a, int32_t b, struct ifd_multiplier factor)
{
    if (b == 0) {
        return a > 0 ? BEYOND : a < 0 ? -BEYOND : 0;
    }
    if (b < 0) {
        a = -a;
        b = -b;
    }
    const int zeros = leading_zeros((uint32_t)b);
    const int32_t fraction = (int32_t)((uint32_t)b << zeros & INT32_MAX); /* behind the first 1 */
    const int room = leading_signs(a);
    const int32_t whole =
        ifd_fixed_mul_high((int32_t)((uint32_t)a << room), inverse_of_one_plus(fraction));
    const int shift = factor.shift - (31 - zeros) - room;
    const int32_t scaled = ifd_fixed_mul_high(whole, factor.fraction);
    return ifd_fixed_shift_any(scaled, -shift);
}
