/* Hyperbolic tangent and logistic function of 16-bit fixed-point numbers, as gemmlowp computes
 * them: LiteRT's quantized LSTM is defined by their bits. Plain arithmetic of 32 bits without
 * branches, so that compilers make vectors of it.
 *
 * A number has 15 - bits fraction digits, bits being its integer digits; results have none before
 * the point. Thread: any. */
#ifndef INFERD_ENGINE_TENSOR_FIXED16_H
#define INFERD_ENGINE_TENSOR_FIXED16_H

#include <stdint.h>

#define IFD_FIXED16_ONE    INT16_MAX /* with no integer digit */
#define IFD_FIXED16_ONE_Q2 (1 << 13) /* with two */

static inline int32_t ifd_fixed16_saturate(int32_t x)
{
    const int32_t low = x < INT16_MIN ? INT16_MIN : x;
    return low > INT16_MAX ? INT16_MAX : low;
}

/* The lowest 16 bits. */
static inline int32_t ifd_fixed16_wrap(int32_t x)
{
    return ((x + 0x8000) & 0xffff) - 0x8000;
}

/* a where mask is all ones, b where it is 0. */
static inline int32_t ifd_fixed16_select(int32_t mask, int32_t a, int32_t b)
{
    return b ^ ((a ^ b) & mask);
}

/* The mask of x != 0. */
static inline int32_t ifd_fixed16_is_some(int32_t x)
{
    return (x | -x) >> 31;
}

/* Digits of both factors add up. Rounded to nearest, halves upwards. */
static inline int32_t ifd_fixed16_mul(int32_t a, int32_t b)
{
    const int32_t product = a * b, sign = product >> 31;
    const int32_t rounded = ((product ^ sign) - sign + (1 << 14) + sign) >> 15;
    const int32_t most = rounded > INT16_MAX ? INT16_MAX : rounded; /* of -1 * -1 */
    return (most ^ sign) - sign;
}

/* x * 2^exponent */
static inline int32_t ifd_fixed16_up(int32_t x, int exponent)
{
    return ifd_fixed16_saturate(x * (1 << exponent));
}

/* x / 2^exponent to nearest, halves away from 0; exponent from 1 on. */
static inline int32_t ifd_fixed16_down(int32_t x, int exponent)
{
    return (x + (1 << (exponent - 1)) + (x >> 31)) >> exponent;
}

/* exp(x) for x in [-1/4, 0), by its series around -1/8. */
static inline int32_t ifd_fixed16_exp_near_zero(int32_t x)
{
    const int32_t exp_eighth = 28918; /* exp(-1/8) */
    const int32_t third = 10923;
    const int32_t y = ifd_fixed16_wrap(x + (1 << 12));
    const int32_t y2 = ifd_fixed16_mul(y, y), y3 = ifd_fixed16_mul(y2, y);
    const int32_t y4 = ifd_fixed16_mul(y2, y2);
    const int32_t part = ifd_fixed16_wrap(ifd_fixed16_down(y4, 2) + y3);
    const int32_t sum = ifd_fixed16_wrap(ifd_fixed16_mul(part, third) + y2);
    const int32_t rest = ifd_fixed16_down(sum, 1);
    return ifd_fixed16_saturate(exp_eighth +
                                ifd_fixed16_mul(exp_eighth, ifd_fixed16_wrap(y + rest)));
}

/* y or its product with the power of e, whose bit of rest is set. */
static inline int32_t ifd_fixed16_power(int32_t y, int32_t rest, int bits, int e, int32_t power)
{
    const int32_t mask = bits > e ? 1 << (15 - bits + e) : 0;
    return ifd_fixed16_select(ifd_fixed16_is_some(rest & mask), ifd_fixed16_mul(y, power), y);
}

/* exp(x) for x <= 0: the part below a quarter by the series, the others by their powers. bits: 0 to
 * 7. */
static inline int32_t ifd_fixed16_exp_of_negative(int32_t x, int bits)
{
    const int32_t quarter = 1 << (13 - bits);
    const int32_t below = (x & (quarter - 1)) - quarter;
    const int32_t rest = below - x;
    int32_t y = ifd_fixed16_exp_near_zero(ifd_fixed16_up(below, bits));
    y = ifd_fixed16_power(y, rest, bits, -2, 25520); /* exp(-1/4) … */
    y = ifd_fixed16_power(y, rest, bits, -1, 19875);
    y = ifd_fixed16_power(y, rest, bits, 0, 12055);
    y = ifd_fixed16_power(y, rest, bits, 1, 4435);
    y = ifd_fixed16_power(y, rest, bits, 2, 600);
    y = ifd_fixed16_power(y, rest, bits, 3, 11);
    y = ifd_fixed16_power(y, rest, bits, 4, 0); /* … exp(-16) */
    const int32_t least = bits > 5 ? -(1 << (20 - bits)) : INT16_MIN;
    y = ifd_fixed16_select((x - least) >> 31, 0, y);
    return ifd_fixed16_select(ifd_fixed16_is_some(x), y, IFD_FIXED16_ONE);
}

/* 2 / (1 + x) with two integer digits, for x in [0, 1]: three steps of Newton's division. */
static inline int32_t ifd_fixed16_reciprocal_of_half_sum(int32_t x)
{
    const int32_t start = 23130, slope = -15420; /* 48/17, -32/17 */
    const int32_t half = (x + IFD_FIXED16_ONE + 1) >> 1;
    int32_t y = ifd_fixed16_wrap(start + ifd_fixed16_mul(half, slope));
    for (int i = 0; i < 3; i++) {
        const int32_t error = ifd_fixed16_wrap(IFD_FIXED16_ONE_Q2 - ifd_fixed16_mul(half, y));
        y = ifd_fixed16_wrap(y + ifd_fixed16_up(ifd_fixed16_mul(y, error), 2));
    }
    return y;
}

/* Both functions, bits from 0 to 6. is_tanh: all ones, or 0 for the logistic function. */
static inline int16_t ifd_fixed16_function(int16_t x, int bits, int32_t is_tanh)
{
    const int32_t sign = (int32_t)x >> 31, negative = -((x ^ sign) - sign);
    /* tanh knows exp(2x): one more integer digit for the same bits */
    const int32_t power = ifd_fixed16_exp_of_negative(negative, bits - is_tanh);
    const int32_t half = ifd_fixed16_reciprocal_of_half_sum(power);
    const int32_t of_tanh = ifd_fixed16_up(ifd_fixed16_wrap(half - IFD_FIXED16_ONE_Q2), 2);
    const int32_t of_logistic = ifd_fixed16_up(half, 1);
    const int32_t y = ifd_fixed16_select(is_tanh, of_tanh, of_logistic);
    const int32_t other = ifd_fixed16_wrap((IFD_FIXED16_ONE & ~is_tanh) - y);
    return (int16_t)ifd_fixed16_select(ifd_fixed16_is_some(x), ifd_fixed16_select(sign, other, y),
                                       (1 << 14) & ~is_tanh);
}

static inline int16_t ifd_fixed16_tanh(int16_t x, int bits)
{
    return ifd_fixed16_function(x, bits, -1);
}

static inline int16_t ifd_fixed16_logistic(int16_t x, int bits)
{
    return ifd_fixed16_function(x, bits, 0);
}

#endif
