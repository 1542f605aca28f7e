/* Sums of two tensors with VNNI, 64 values at a time. */
#include <immintrin.h>
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/simd.h"
#include "engine/tensor/fixed.h"

extern const struct ifd_kern_quant ifd_kern_quant_avx512; /* for sums whose factors do not fit */

/* Pairs of 16-bit inputs are multiplied with pairs of factors in two parts: high*2^7 + low. An
 * input has eight bits, so it can be multiplied by 2^7 in its lane. */
struct blend {
    __m512i high, low, bias, shift, min, max;
};

INLINE __m512i blend_pairs(__m512i pairs, const struct blend *k)
{
    const __m512i low = _mm512_dpwssd_epi32(k->bias, pairs, k->low);
    return _mm512_dpwssd_epi32(low, _mm512_slli_epi16(pairs, 7), k->high);
}

INLINE __m512i set_pairs(int32_t a, int32_t b)
{
    return _mm512_set1_epi32((int32_t)((uint32_t)b << 16 | ((uint32_t)a & 0xffff)));
}

/* Unpacks within lanes of 128 bits; finish() packs them in the same order. */
INLINE void blend_64(__m512i a, __m512i b, const struct blend *k, __m512i sum[4])
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i lo = _mm512_unpacklo_epi8(a, b), hi = _mm512_unpackhi_epi8(a, b);
    sum[0] = blend_pairs(_mm512_unpacklo_epi8(lo, zero), k);
    sum[1] = blend_pairs(_mm512_unpackhi_epi8(lo, zero), k);
    sum[2] = blend_pairs(_mm512_unpacklo_epi8(hi, zero), k);
    sum[3] = blend_pairs(_mm512_unpackhi_epi8(hi, zero), k);
}

INLINE __m512i finish(const __m512i sum[4], const struct blend *k)
{
    const __m512i v0 = _mm512_srav_epi32(sum[0], k->shift),
                  v1 = _mm512_srav_epi32(sum[1], k->shift);
    const __m512i v2 = _mm512_srav_epi32(sum[2], k->shift),
                  v3 = _mm512_srav_epi32(sum[3], k->shift);
    const __m512i bytes =
        _mm512_packus_epi16(_mm512_packs_epi32(v0, v1), _mm512_packs_epi32(v2, v3));
    return _mm512_min_epu8(_mm512_max_epu8(bytes, k->min), k->max);
}

INLINE __m512i load_operand(const ifd_q8 *p, size_t i, size_t step, __mmask64 mask)
{
    return step ? _mm512_maskz_loadu_epi8(mask, p + i) : _mm512_set1_epi8((char)*p);
}

INLINE struct blend make_blend(const struct ifd_q8_binary_args *args)
{
    return (struct blend){.high = set_pairs(args->a_factor >> 7, args->b_factor >> 7),
                          .low = set_pairs(args->a_factor & 0x7f, args->b_factor & 0x7f),
                          .bias = _mm512_set1_epi32(args->bias),
                          .shift = _mm512_set1_epi32(args->fast_shift),
                          .min = _mm512_set1_epi8((char)args->out_min),
                          .max = _mm512_set1_epi8((char)args->out_max)};
}

static void blend_q8(const struct ifd_q8_binary_args *args)
{
    const struct blend k = make_blend(args);
    const ifd_q8 *a = args->a, *b = args->b;
    ifd_q8 *out = args->out;
    for (size_t r = 0; r < args->rows; r++) {
        for (size_t i = 0; i < args->n; i += 64) {
            const __mmask64 mask = args->n - i >= 64 ? ~0ull : (1ull << (args->n - i)) - 1;
            __m512i sum[4];
            blend_64(load_operand(a, i, args->a_step, mask), load_operand(b, i, args->b_step, mask),
                     &k, sum);
            _mm512_mask_storeu_epi8(out + i, mask, finish(sum, &k));
        }
        a += args->a_row;
        b += args->b_row;
        out += args->out_row;
    }
}

/* ---- exact sums ----
 *
 * With factors of fast_shift bits behind the point, a blend differs by less than EDGE units of
 * the last bit from the three roundings of the definition: each factor is off by half a unit,
 * times 255, and the roundings by about 12. Both give the same result unless a sum is that close
 * to an edge, which one in a thousand is; those are computed as defined. */
#define EDGE 300

/* Bit i: sum i is close to where the result changes. */
INLINE __mmask16 near_edge(__m512i sum, const struct blend *k)
{
    const __m512i below = _mm512_sllv_epi32(_mm512_set1_epi32(-1), k->shift);
    const __m512i rest = _mm512_andnot_si512(below, _mm512_add_epi32(sum, _mm512_set1_epi32(EDGE)));
    return _mm512_cmplt_epu32_mask(rest, _mm512_set1_epi32(2 * EDGE));
}

static ifd_q8 add_one(const struct ifd_q8_binary_args *p, int subtracts, int32_t a, int32_t b)
{
    a = ifd_fixed_scale_double((a - p->a_zero) * (1 << 20), p->a_multiplier, p->a_shift);
    b = ifd_fixed_scale_double((b - p->b_zero) * (1 << 20), p->b_multiplier, p->b_shift);
    const int32_t sum = subtracts ? a - b : a + b;
    const int32_t y = ifd_fixed_scale_double(sum, p->out_multiplier, p->out_shift) + p->out_zero;
    return (ifd_q8)(y < p->out_min ? p->out_min : y > p->out_max ? p->out_max : y);
}

/* The sums of 64 that near says: bit 16*q + i is number i of sum[q]. */
static __attribute__((noinline)) void repair(const struct ifd_q8_binary_args *args, int subtracts,
                                             __m512i a, __m512i b, uint64_t near, size_t count,
                                             ifd_q8 *out)
{
    uint8_t x[64], y[64];
    _mm512_storeu_si512(x, a);
    _mm512_storeu_si512(y, b);
    for (; near; near &= near - 1) {
        const size_t bit = (size_t)__builtin_ctzll(near), i = bit % 16;
        const size_t at = i / 4 * 16 + bit / 16 * 4 + i % 4;
        if (at < count) {
            out[at] = add_one(args, subtracts, x[at], y[at]);
        }
    }
}

static void exact_sums(const struct ifd_q8_binary_args *args, int subtracts)
{
    const struct blend k = make_blend(args);
    const ifd_q8 *a = args->a, *b = args->b;
    ifd_q8 *out = args->out;
    for (size_t r = 0; r < args->rows; r++) {
        for (size_t i = 0; i < args->n; i += 64) {
            const __mmask64 mask = args->n - i >= 64 ? ~0ull : (1ull << (args->n - i)) - 1;
            const __m512i x = load_operand(a, i, args->a_step, mask);
            const __m512i y = load_operand(b, i, args->b_step, mask);
            __m512i sum[4];
            blend_64(x, y, &k, sum);
            const uint64_t near =
                (uint64_t)near_edge(sum[0], &k) | (uint64_t)near_edge(sum[1], &k) << 16 |
                (uint64_t)near_edge(sum[2], &k) << 32 | (uint64_t)near_edge(sum[3], &k) << 48;
            _mm512_mask_storeu_epi8(out + i, mask, finish(sum, &k));
            if (near) {
                repair(args, subtracts, x, y, near, args->n - i, out + i);
            }
        }
        a += args->a_row;
        b += args->b_row;
        out += args->out_row;
    }
}

static void add_q8(const struct ifd_q8_binary_args *args)
{
    if (args->fast_shift == 0) {
        ifd_kern_quant_avx512.add_q8(args);
        return;
    }
    exact_sums(args, 0);
}

static void sub_q8(const struct ifd_q8_binary_args *args)
{
    if (args->fast_shift == 0) {
        ifd_kern_quant_avx512.sub_q8(args);
        return;
    }
    exact_sums(args, 1);
}

const struct ifd_kern_quant ifd_kern_quant_vnni = {
    .add_q8 = add_q8, .sub_q8 = sub_q8, .blend_q8 = blend_q8};
