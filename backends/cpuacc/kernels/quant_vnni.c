/* Tables of 256 bytes with VBMI, sums of two tensors with VNNI: 64 values at a time. */
#include <immintrin.h>
#include "backends/cpuacc/kernels.h"
#include "backends/cpuacc/kernels/simd.h"

/* Pairs of 16-bit inputs meet pairs of factors, in two parts: high*2^8 + low. */
struct blend {
    __m512i high, low, bias, shift, min, max;
};

INLINE __m512i blend_pairs(__m512i pairs, const struct blend *k)
{
    const __m512i high = _mm512_madd_epi16(pairs, k->high);
    const __m512i low = _mm512_dpwssd_epi32(k->bias, pairs, k->low);
    return _mm512_srav_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low), k->shift);
}

INLINE __m512i set_pairs(int32_t a, int32_t b)
{
    return _mm512_set1_epi32((int32_t)((uint32_t)b << 16 | ((uint32_t)a & 0xffff)));
}

/* Lanes of 128 bits are taken apart and put together again in the same order. */
INLINE __m512i blend_64(__m512i a, __m512i b, const struct blend *k)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i lo = _mm512_unpacklo_epi8(a, b), hi = _mm512_unpackhi_epi8(a, b);
    __m512i v0 = blend_pairs(_mm512_unpacklo_epi8(lo, zero), k);
    __m512i v1 = blend_pairs(_mm512_unpackhi_epi8(lo, zero), k);
    __m512i v2 = blend_pairs(_mm512_unpacklo_epi8(hi, zero), k);
    __m512i v3 = blend_pairs(_mm512_unpackhi_epi8(hi, zero), k);
    __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(v0, v1), _mm512_packs_epi32(v2, v3));
    return _mm512_min_epu8(_mm512_max_epu8(bytes, k->min), k->max);
}

INLINE __m512i load_operand(const ifd_q8 *p, size_t i, size_t step, __mmask64 mask)
{
    return step ? _mm512_maskz_loadu_epi8(mask, p + i) : _mm512_set1_epi8((char)*p);
}

static void blend_q8(const struct ifd_q8_binary_args *args)
{
    const struct blend k = {.high = set_pairs(args->a_factor >> 8, args->b_factor >> 8),
                            .low = set_pairs(args->a_factor & 0xff, args->b_factor & 0xff),
                            .bias = _mm512_set1_epi32(args->bias),
                            .shift = _mm512_set1_epi32(args->fast_shift),
                            .min = _mm512_set1_epi8((char)args->out_min),
                            .max = _mm512_set1_epi8((char)args->out_max)};
    const ifd_q8 *a = args->a, *b = args->b;
    ifd_q8 *out = args->out;
    for (size_t r = 0; r < args->rows; r++) {
        for (size_t i = 0; i < args->n; i += 64) {
            const __mmask64 mask = args->n - i >= 64 ? ~0ull : (1ull << (args->n - i)) - 1;
            _mm512_mask_storeu_epi8(out + i, mask,
                                    blend_64(load_operand(a, i, args->a_step, mask),
                                             load_operand(b, i, args->b_step, mask), &k));
        }
        a += args->a_row;
        b += args->b_row;
        out += args->out_row;
    }
}

/* Two permutes of 128 entries and a choice. */

static void lut_8(size_t n, const uint8_t *in, const uint8_t *table, uint8_t *out)
{
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
    const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 mask = n - i >= 64 ? ~0ull : (1ull << (n - i)) - 1;
        const __m512i x = _mm512_maskz_loadu_epi8(mask, in + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, x, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, x, t3);
        _mm512_mask_storeu_epi8(out + i, mask,
                                _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
    }
}

const struct ifd_kern_quant ifd_kern_quant_vnni = {.blend_q8 = blend_q8, .lut_8 = lut_8};
