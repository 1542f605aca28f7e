/* From 32-bit sums to stored bytes, AVX2: see pack.h for the arrays of a tail and the order of
 * columns. All functions want their sizes as constants and are inlined into each tile. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_AVX2_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_AVX2_H

#include <immintrin.h>
#include "backends/cpuacc/kernels/simd/inline.h"
#include "backends/cpuacc/kernels/pack.h"

INLINE __m256i load_tail(const int32_t *p)
{
    return _mm256_load_si256((const __m256i *)(const void *)p);
}

/* floor(sum * multiplier / 2^30), left being the shift by 2 and any left shift of the factor. */
INLINE __m256i high_product(__m256i sum, __m256i left, __m256i multiplier)
{
    sum = _mm256_sllv_epi32(sum, left);
    __m256i even = _mm256_mul_epi32(sum, multiplier);
    __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(sum, 32), _mm256_srli_epi64(multiplier, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

/* Scales `rows` vectors of sums of one column vector in place, `step` apart. tail points at that
 * vector's columns, width is the block's. */
INLINE void scale_column(int finish, const int32_t *tail, size_t width, __m256i *sum,
                         const size_t rows, const size_t step)
{
    if (finish == IFD_FINISH_FAST) {
        __m256 scale = _mm256_castsi256_ps(load_tail(tail + IFD_TAIL_SCALE * width));
        UNROLL for (size_t i = 0; i < rows; i++)
        {
            sum[i * step] =
                _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[i * step]), scale));
        }
        return;
    }
    const __m256i multiplier = load_tail(tail + IFD_TAIL_MULTIPLIER * width);
    const __m256i left = load_tail(tail + IFD_TAIL_LEFT * width);
    const __m256i right = load_tail(tail + IFD_TAIL_RIGHT * width);
    const __m256i plus = load_tail(tail + IFD_TAIL_PLUS * width);
    const __m256i minus =
        finish == IFD_FINISH_EXACT ? plus : load_tail(tail + IFD_TAIL_PLUS_NEG * width);
    UNROLL for (size_t i = 0; i < rows; i++)
    {
        __m256i y = high_product(sum[i * step], left, multiplier);
        __m256i round = _mm256_castps_si256(_mm256_blendv_ps(
            _mm256_castsi256_ps(plus), _mm256_castsi256_ps(minus), _mm256_castsi256_ps(y)));
        sum[i * step] = _mm256_srav_epi32(_mm256_add_epi32(y, round), right);
    }
}

/* Zero point and bounds, each in every 16-bit or 8-bit lane. */
struct bounds {
    __m256i zero, min, max;
};

INLINE struct bounds load_bounds(const struct ifd_packed *header)
{
    return (struct bounds){_mm256_set1_epi16((short)header->private_[IFD_PACKED_OUT_ZERO]),
                           _mm256_set1_epi8((char)header->private_[IFD_PACKED_OUT_MIN]),
                           _mm256_set1_epi8((char)header->private_[IFD_PACKED_OUT_MAX])};
}

INLINE __m256i pack_16(__m256i lo, __m256i hi, const struct bounds *bounds)
{
    return _mm256_adds_epi16(_mm256_packs_epi32(lo, hi), bounds->zero);
}

INLINE void store_16(__m128i bytes, size_t columns, uint8_t *out)
{
    if (columns >= 16) {
        _mm_storeu_si128((__m128i *)(void *)out, bytes);
        return;
    }
    if (columns >= 8) {
        _mm_storel_epi64((__m128i *)(void *)out, bytes);
        bytes = _mm_srli_si128(bytes, 8);
        out += 8;
        columns -= 8;
    }
    uint64_t rest = (uint64_t)_mm_cvtsi128_si64(bytes);
    for (size_t i = 0; i < columns; i++, rest >>= 8) {
        out[i] = (uint8_t)rest;
    }
}

/* Two rows of 16 columns each, a and b being two scaled vectors in the order of pack.h. */
INLINE void store_rows_2(const __m256i *a, const __m256i *b, size_t columns,
                         const struct bounds *bounds, uint8_t *out_a, uint8_t *out_b)
{
    __m256i bytes = _mm256_packus_epi16(pack_16(a[0], a[1], bounds), pack_16(b[0], b[1], bounds));
    bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, bounds->min), bounds->max);
    bytes = _mm256_permute4x64_epi64(bytes, 0xd8);
    store_16(_mm256_castsi256_si128(bytes), columns, out_a);
    store_16(_mm256_extracti128_si256(bytes, 1), columns, out_b);
}

/* Two rows of 8 columns each. */
INLINE void store_rows_1(__m256i a, __m256i b, size_t columns, const struct bounds *bounds,
                         uint8_t *out_a, uint8_t *out_b)
{
    /* 16-bit lanes: a 0-3, b 0-3 | a 4-7, b 4-7 */
    __m256i words = pack_16(a, b, bounds);
    __m256i bytes = _mm256_packus_epi16(words, words);
    bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, bounds->min), bounds->max);
    const __m256i split = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    __m128i both = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, split));
    store_16(both, columns, out_a);
    store_16(_mm_srli_si128(both, 8), columns, out_b);
}

#endif
