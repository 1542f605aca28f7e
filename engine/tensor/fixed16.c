#include "engine/tensor/fixed16.h"

#include <stdbool.h>

#include "engine/tensor/fixed.h"

#define ONE    INT16_MAX /* with no integer digit */
#define ONE_Q2 (1 << 13) /* with two */

static int16_t saturate(int32_t x)
{
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

/* Digits of both factors add up. Rounded to nearest, halves away from 0. */
static int16_t mul(int16_t a, int16_t b)
{
    const int32_t product = (int32_t)a * b;
    const int32_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
    return a == INT16_MIN && b == INT16_MIN ? INT16_MAX : (int16_t)((product + nudge) / (1 << 15));
}

static int16_t add(int32_t a, int32_t b)
{
    return (int16_t)(uint16_t)(uint32_t)(a + b);
}

/* x * 2^exponent */
static int16_t scale(int16_t x, int exponent)
{
    return exponent > 0 ? saturate((int32_t)x * (1 << exponent))
                        : (int16_t)ifd_fixed_shift_right(x, -exponent);
}

/* exp(x) for x in [-1/4, 0), by its series around -1/8. */
static int16_t exp_near_zero(int16_t x)
{
    const int16_t exp_eighth = 28918; /* exp(-1/8) */
    const int16_t third = 10923;
    const int16_t y = add(x, 1 << 12);
    const int16_t y2 = mul(y, y), y3 = mul(y2, y), y4 = mul(y2, y2);
    const int16_t rest = scale(add(mul(add(scale(y4, -2), y3), third), y2), -1);
    return saturate(exp_eighth + mul(exp_eighth, add(y, rest)));
}

/* exp(x) for x <= 0: the part below a quarter by the series, the others by their powers. */
static int16_t exp_of_negative(int16_t x, int bits)
{
    static const int16_t power[] = {25520, 19875, 12055, 4435, 600, 11, 0}; /* exp(-1/4) … -16 */
    const int fraction = 15 - bits;
    const int32_t quarter = 1 << (fraction - 2);
    const int16_t below = (int16_t)((x & (quarter - 1)) - quarter);
    const int32_t rest = below - x;
    int16_t y = exp_near_zero(scale(below, bits));
    for (int e = -2; e <= 4; e++) {
        if (bits > e && (rest & (1 << (fraction + e))) != 0) {
            y = mul(y, power[e + 2]);
        }
    }
    if (bits > 5 && x < -(1 << (20 - bits))) {
        y = 0;
    }
    return x == 0 ? ONE : y;
}

/* 2 / (1 + x) with two integer digits, for x in [0, 1]: three steps of Newton's division. */
static int16_t reciprocal_of_half_sum(int16_t x)
{
    const int16_t start = 23130, slope = -15420; /* 48/17, -32/17 */
    const int16_t half = (int16_t)((x + ONE + 1) / 2);
    int16_t y = add(start, mul(half, slope));
    for (int i = 0; i < 3; i++) {
        const int16_t error = add(ONE_Q2, -mul(half, y));
        y = add(y, scale(mul(y, error), 2));
    }
    return y;
}

int16_t ifd_fixed16_tanh(int16_t x, int bits)
{
    const int16_t negative = x < 0 ? x : (int16_t)-x;
    /* exp(2x): one more integer digit for the same bits */
    const int16_t power = exp_of_negative(negative, bits + 1);
    const int16_t y = scale(add(reciprocal_of_half_sum(power), -ONE_Q2), 2);
    return x == 0 ? 0 : x < 0 ? (int16_t)-y : y;
}

int16_t ifd_fixed16_logistic(int16_t x, int bits)
{
    const int16_t negative = x < 0 ? x : saturate(-x);
    const int16_t y = scale(reciprocal_of_half_sum(exp_of_negative(negative, bits)), 1);
    return x == 0 ? 1 << 14 : x > 0 ? y : add(ONE, -y);
}
