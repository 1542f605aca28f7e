/* Exponential and its relatives over the vector vocabulary. Coefficients are Chebyshev fits of the
 * named ranges. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_MATH_SIMD_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_MATH_SIMD_H

#include "backends/cpuacc/kernels/simd/simd.h"

/* exp(x) for x in [-87.3, 88.3], to 2 ulp; outside, the value at the nearer end. */
INLINE vf math_exp_clamped(vf x)
{
    x = vf_min(vf_set1(88.3f), vf_max(vf_set1(-87.3f), x));
    vi n = vf_to_vi(vf_mul(x, vf_set1(1.44269504f)));
    vf whole = vi_to_vf(n);
    /* ln 2 in two parts, the first exact in any product with n */
    vf r = vf_fma(whole, vf_set1(-0x1.62ep-1f), x);
    r = vf_fma(whole, vf_set1(-3.194618495e-05f), r);
    vf p = vf_fma(vf_set1(0.000198909908f), r, vf_set1(0.001393365f));
    p = vf_fma(p, r, vf_set1(0.00833331093f));
    p = vf_fma(p, r, vf_set1(0.0416664649f));
    p = vf_fma(p, r, vf_set1(0.166666667f));
    p = vf_fma(p, r, vf_set1(0.5f));
    p = vf_add(vf_fma(p, vf_mul(r, r), r), vf_set1(1.0f));
    return vf_mul(p, vf_from_bits(vi_shl23(vi_add(n, vi_set1(127)))));
}

INLINE vf math_exp(vf x)
{
    vf y = math_exp_clamped(x);
    y = vf_select(vf_lt(x, vf_set1(-87.3f)), vf_set1(0.0f), y);
    y = vf_select(vf_lt(vf_set1(88.3f), x),
                  vf_mul(math_exp_clamped(vf_sub(x, vf_set1(1.0f))), vf_set1(2.71828183f)), y);
    return vf_select(vf_lt(vf_set1(88.8f), x), vf_set1(__builtin_inff()), y);
}

/* log(x) to 1 ulp: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), and a series of s = (m - 1) / (m +
 * 1). Numbers below the normal ones count as the smallest of those. */
INLINE vf math_log(vf x)
{
    const vi half = vi_set1(0x3f3504f3); /* sqrt(1/2) */
    vi bits = vi_sub(vf_bits(vf_max(x, vf_set1(0x1p-126f))), half);
    vf e = vi_to_vf(vi_sra(bits, 23));
    vf f = vf_sub(vf_from_bits(vi_add(vi_and(bits, vi_set1(0x007fffff)), half)), vf_set1(1.0f));
    vf s = vf_div(f, vf_add(f, vf_set1(2.0f))), z = vf_mul(s, s);
    vf p = vf_fma(vf_set1(0.233416274f), z, vf_set1(0.285504013f));
    p = vf_fma(p, z, vf_set1(0.400001258f));
    p = vf_mul(vf_fma(p, z, vf_set1(0.666666687f)), z);
    vf square = vf_mul(vf_set1(0.5f), vf_mul(f, f));
    /* ln 2 in two parts, the first exact in any product with e */
    vf low = vf_fma(s, vf_add(square, p), vf_mul(e, vf_set1(3.194618495e-05f)));
    vf y = vf_fma(e, vf_set1(0x1.62ep-1f), vf_sub(f, vf_sub(square, low)));
    y = vf_select(vf_lt(vf_set1(0.0f), x), y, vf_set1(-__builtin_inff()));
    y = vf_select(vf_lt(x, vf_set1(0.0f)), vf_set1(__builtin_nanf("")), y);
    return vf_select(vf_lt(x, vf_set1(__builtin_inff())), y, x);
}

INLINE vf math_logistic(vf x)
{
    return vf_reciprocal(vf_add(vf_set1(1.0f), math_exp_clamped(vf_sub(vf_set1(0.0f), x))));
}

INLINE vf math_abs(vf x)
{
    return vf_from_bits(vi_and(vf_bits(x), vi_set1(0x7fffffff)));
}

/* Near zero a polynomial, elsewhere 1 - 2 / (exp(2|x|) + 1) with the sign of x. */
INLINE vf math_tanh(vf x)
{
    vf size = math_abs(x), u = vf_mul(x, x);
    vf p = vf_fma(vf_set1(-0.00609671416f), u, vf_set1(0.020997179f));
    p = vf_fma(p, u, vf_set1(-0.0538509096f));
    p = vf_fma(p, u, vf_set1(0.133327697f));
    p = vf_fma(p, u, vf_set1(-0.333333289f));
    vf small = vf_fma(vf_mul(p, u), x, x);
    vf e = math_exp_clamped(vf_add(size, size));
    vf large = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
    large = vf_from_bits(vi_or(vf_bits(large), vi_and(vf_bits(x), vi_set1(INT32_MIN))));
    return vf_select(vf_lt(size, vf_set1(0.625f)), small, large);
}

/* Up to 1 a polynomial, beyond it 1 - exp(-x^2) times one of 1 / (1 + 0.3275911 |x|). */
INLINE vf math_erf(vf x)
{
    const vf one = vf_set1(1.0f);
    vf size = math_abs(x), u = vf_mul(x, x);
    vf p = vf_fma(vf_set1(-9.673590284364764e-06f), u, vf_set1(0.00011268253729213029f));
    p = vf_fma(p, u, vf_set1(-0.0008484396385028958f));
    p = vf_fma(p, u, vf_set1(0.005221053492277861f));
    p = vf_fma(p, u, vf_set1(-0.026865437626838684f));
    p = vf_fma(p, u, vf_set1(0.11283782869577408f));
    p = vf_fma(p, u, vf_set1(-0.37612637877464294f));
    vf small = vf_mul(vf_fma(p, u, vf_set1(1.128379225730896f)), x);
    /* from 4.2 on it is 1 */
    vf near = vf_min(size, vf_set1(4.2f));
    vf t = vf_div(one, vf_fma(near, vf_set1(0.3275911f), one));
    vf q = vf_fma(vf_set1(0.3166406750679016f), t, vf_set1(-0.10295194387435913f));
    q = vf_fma(q, t, vf_set1(0.26448994874954224f));
    q = vf_fma(q, t, vf_set1(0.15140438079833984f));
    q = vf_fma(q, t, vf_set1(0.18591518700122833f));
    q = vf_mul(vf_fma(q, t, vf_set1(0.18504002690315247f)), t);
    vf large = vf_sub(one, vf_mul(q, math_exp_clamped(vf_mul(near, vf_sub(vf_set1(0.0f), near)))));
    large = vf_from_bits(vi_or(vf_bits(large), vi_and(vf_bits(x), vi_set1(INT32_MIN))));
    large = vf_select(vf_lt(vf_set1(0.5f), size), large, x); /* NaN stays */
    return vf_select(vf_lt(size, one), small, large);
}

/* The share of a normal distribution below x, to 2e-7: 1/2 plus x times a quotient of polynomials
 * of x^2, a minimax fit up to |x| = 5.4 with an error of 5.5e-9. Beyond, it is 0 or 1. */
INLINE vf math_normal(vf x)
{
    const vf one = vf_set1(1.0f);
    vf u = vf_min(vf_mul(x, x), vf_set1(29.16f));
    vf p = vf_fma(vf_set1(2.3386814e-08f), u, vf_set1(6.3600132e-06f));
    p = vf_fma(p, u, vf_set1(0.00016432065f));
    p = vf_fma(p, u, vf_set1(0.0046508447f));
    p = vf_fma(p, u, vf_set1(0.033372127f));
    p = vf_fma(p, u, vf_set1(0.39894223f));
    vf q = vf_fma(vf_set1(1.2165929e-06f), u, vf_set1(7.2399860e-05f));
    q = vf_fma(q, u, vf_set1(0.0018589755f));
    q = vf_fma(q, u, vf_set1(0.028378628f));
    q = vf_fma(q, u, vf_set1(0.25031760f));
    q = vf_fma(q, u, one);
    vf share = vf_fma(vf_mul(x, p), vf_reciprocal(q), vf_set1(0.5f));
    return vf_min(one, vf_max(vf_set1(0.0f), share));
}

#endif
