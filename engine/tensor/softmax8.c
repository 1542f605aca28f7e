/* Softmax of 8-bit numbers in fixed point. */
#include "engine/tensor/softmax8.h"

#include "engine/tensor/fixed.h"

#include <math.h>

/* Exponents have 5 bits before the binary point and 26 behind it; sums of exponentials have 12
 * and 19. */
#define DIFF_FRACTION_BITS 26
#define SUM_INTEGER_BITS   12

static int32_t saturate(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

/* exp(a) for a in [-1/4, 0), a and the result with 31 fraction bits: the Taylor series around
 * -1/8 up to x^4. */
static int32_t exp_last_quarter(int32_t a)
{
    const int32_t exp_minus_eighth = 1895147668;
    const int32_t third = 715827883;
    const int32_t x = a + (1 << 28);
    const int32_t x2 = ifd_fixed_mul_high(x, x);
    const int32_t x3 = ifd_fixed_mul_high(x2, x);
    const int32_t x4_by_4 = ifd_fixed_shift_right(ifd_fixed_mul_high(x2, x2), 2);
    const int32_t tail = ifd_fixed_shift_right(ifd_fixed_mul_high(x4_by_4 + x3, third) + x2, 1);
    return exp_minus_eighth + ifd_fixed_mul_high(exp_minus_eighth, x + tail);
}

/* exp(a) for a ≤ 0 with 26 fraction bits; the result has 31. The series handles a modulo 1/4;
 * each remaining power of two multiplies the result by a constant. */
static int32_t exp_fixed(int32_t a)
{
    static const int32_t factor[] = {/* exp(-2^k), k = -2 … 4 */
                                     1672461947, 1302514674, 790015084, 290630308,
                                     39332535,   720401,     242};
    const int32_t quarter = 1 << (DIFF_FRACTION_BITS - 2);
    if (a == 0) {
        return INT32_MAX;
    }
    const int32_t last = (a & (quarter - 1)) - quarter;
    const int32_t rest = last - a;
    int32_t result = exp_last_quarter(saturate((int64_t)last * 32));
    for (int k = 0; k < 7; k++) {
        if ((rest & (quarter << k)) != 0) {
            result = ifd_fixed_mul_high(result, factor[k]);
        }
    }
    return result;
}

/* 1 / (1 + a) for a in [0, 1), 31 fraction bits: three Newton-Raphson steps on (1 + a) / 2, with
 * 29 fraction bits. */
static int32_t reciprocal_of_1_plus(int32_t a)
{
    const int32_t forty_eight_by_17 = 1515870810;
    const int32_t minus_thirty_two_by_17 = -1010580540;
    const int32_t one = 1 << 29;
    const int32_t half_denominator = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2);
    int32_t x = forty_eight_by_17 + ifd_fixed_mul_high(half_denominator, minus_thirty_two_by_17);
    for (int step = 0; step < 3; step++) {
        const int32_t error = one - ifd_fixed_mul_high(half_denominator, x);
        x += saturate((int64_t)ifd_fixed_mul_high(x, error) * 4);
    }
    return saturate((int64_t)x * 2);
}

static int leading_zeros(uint32_t x)
{
    int count = 0;
    while (count < 32 && (x & (UINT32_C(1) << 31 >> count)) == 0) {
        count++;
    }
    return count;
}

void ifd_softmax8_init(struct ifd_softmax8 *table, double factor)
{
    const double scaled = factor * (1 << DIFF_FRACTION_BITS);
    const double limit = 2147483647.0; /* exp is 0 there anyway */
    int32_t multiplier = 0;
    int shift = 0;
    ifd_fixed_from_real(scaled < limit ? scaled : limit, &multiplier, &shift);
    /* larger distances would not fit 5 integer bits */
    const int32_t longest =
        (int32_t)floor(31.0 * (1 << DIFF_FRACTION_BITS) / (double)(INT64_C(1) << shift));
    for (int32_t i = 0; i < 256; i++) {
        const int32_t exponential =
            i > longest ? 0 : exp_fixed(ifd_fixed_scale_double(-i, multiplier, shift));
        table->exponential[i] = exponential;
        table->rounded[i] = ifd_fixed_shift_right(exponential, SUM_INTEGER_BITS);
    }
}

struct ifd_softmax8_row ifd_softmax8_divide(int64_t sum)
{
    const uint32_t limited = (uint32_t)saturate(sum);
    const int headroom = leading_zeros(limited);
    return (struct ifd_softmax8_row){
        .reciprocal = reciprocal_of_1_plus((int32_t)((limited << headroom) - (UINT32_C(1) << 31))),
        .exponent = SUM_INTEGER_BITS - headroom + 31 - 8,
    };
}

int32_t ifd_softmax8_steps(const struct ifd_softmax8_row *row, int32_t exponential)
{
    const int32_t share = ifd_fixed_mul_high(row->reciprocal, exponential);
    const int32_t steps = row->exponent > 31 ? 0 : ifd_fixed_shift_right(share, row->exponent);
    return steps < 0 ? 0 : steps > 255 ? 255 : steps;
}
