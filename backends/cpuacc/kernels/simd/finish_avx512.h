/* From 32-bit sums to stored bytes, AVX-512: see pack.h for the arrays of a tail and the order of
 * columns. All functions want their sizes as constants and are inlined into each tile. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_AVX512_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_AVX512_H

#include <immintrin.h>
#include "backends/cpuacc/kernels/simd/inline.h"
#include "backends/cpuacc/kernels/pack.h"

/* floor(sum * multiplier / 2^30), left being the shift by 2 and any left shift of the factor. */
INLINE __m512i high_product(__m512i sum, __m512i left, __m512i multiplier, __m512i multiplier_odd)
{
    const __m512i upper =
        _mm512_set_epi32(31, 15, 29, 13, 27, 11, 25, 9, 23, 7, 21, 5, 19, 3, 17, 1);
    sum = _mm512_sllv_epi32(sum, left);
    __m512i even = _mm512_mul_epi32(sum, multiplier);
    __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(sum, 32), multiplier_odd);
    return _mm512_permutex2var_epi32(even, upper, odd);
}

/* Keeps a loaded value in a register: gcc would load it again for every use, and a core loads no
 * more than one vector a cycle. */
INLINE __m512i in_register(__m512i v)
{
    __asm__("" : "+v"(v));
    return v;
}

/* Scales `rows` vectors of sums of one column vector in place, `step` apart. tail points at that
 * vector's columns, width is the block's. */
INLINE void scale_column(int finish, const int32_t *tail, size_t width, __m512i *sum,
                         const size_t rows, const size_t step)
{
    if (finish == IFD_FINISH_FAST) {
        __m512 scale =
            _mm512_castsi512_ps(in_register(_mm512_load_si512(tail + IFD_TAIL_SCALE * width)));
        UNROLL for (size_t i = 0; i < rows; i++)
        {
            sum[i * step] =
                _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sum[i * step]), scale));
        }
        return;
    }
    __m512i multiplier = _mm512_load_si512(tail + IFD_TAIL_MULTIPLIER * width);
    __m512i odd = _mm512_srli_epi64(multiplier, 32);
    __m512i left = _mm512_load_si512(tail + IFD_TAIL_LEFT * width);
    __m512i right = _mm512_load_si512(tail + IFD_TAIL_RIGHT * width);
    __m512i plus = _mm512_load_si512(tail + IFD_TAIL_PLUS * width);
    if (finish == IFD_FINISH_EXACT) {
        UNROLL for (size_t i = 0; i < rows; i++)
        {
            __m512i y = high_product(sum[i * step], left, multiplier, odd);
            sum[i * step] = _mm512_srav_epi32(_mm512_add_epi32(y, plus), right);
        }
        return;
    }
    __m512i minus = _mm512_load_si512(tail + IFD_TAIL_PLUS_NEG * width);
    UNROLL for (size_t i = 0; i < rows; i++)
    {
        __m512i y = high_product(sum[i * step], left, multiplier, odd);
        __m512i sign = _mm512_srai_epi32(y, 31);
        __m512i round =
            _mm512_ternarylogic_epi32(sign, minus, plus, 0xca); /* sign ? minus : plus */
        sum[i * step] = _mm512_srav_epi32(_mm512_add_epi32(y, round), right);
    }
}

/* Zero point and bounds, each in every 16-bit or 8-bit lane, and whether they change anything.
 * Behind most activations the zero point is 0 and the bounds are those of the type. Behind
 * others the lower bound is the zero point: then 0 is the lower bound before the zero point is
 * added in 8 bits, and no other is needed. */
struct bounds {
    __m512i zero, min, max;
    int shifts, clamps, lifts, caps;
};

INLINE struct bounds load_bounds(const struct ifd_packed *header)
{
    const int32_t zero = header->private_[IFD_PACKED_OUT_ZERO];
    const int32_t min = header->private_[IFD_PACKED_OUT_MIN];
    const int32_t max = header->private_[IFD_PACKED_OUT_MAX];
    return (struct bounds){.zero = _mm512_set1_epi16((short)zero),
                           .min = _mm512_set1_epi8((char)min),
                           .max = _mm512_set1_epi8((char)max),
                           .shifts = zero != 0,
                           .clamps = min > IFD_Q8_MIN || max < IFD_Q8_MAX,
                           .lifts = zero != 0 && min == zero,
                           .caps = max < IFD_Q8_MAX};
}

/* Four vectors of scaled sums to bytes. */
INLINE __m512i pack_bytes(__m512i a, __m512i b, __m512i c, __m512i d, const struct bounds *bounds)
{
    __m512i lo = _mm512_packs_epi32(a, b), hi = _mm512_packs_epi32(c, d);
    if (bounds->shifts) {
        if (bounds->lifts) {
            const __m512i lifted = _mm512_adds_epu8(_mm512_packus_epi16(lo, hi), bounds->min);
            return bounds->caps ? _mm512_min_epu8(lifted, bounds->max) : lifted;
        }
        lo = _mm512_adds_epi16(lo, bounds->zero);
        hi = _mm512_adds_epi16(hi, bounds->zero);
    }
    __m512i bytes = _mm512_packus_epi16(lo, hi);
    if (bounds->clamps) {
        bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, bounds->min), bounds->max);
    }
    return bytes;
}

INLINE void store_row_4(const __m512i *v, size_t columns, const struct bounds *bounds, uint8_t *out)
{
    __m512i bytes = pack_bytes(v[0], v[1], v[2], v[3], bounds);
    if (columns >= 64) {
        _mm512_storeu_si512(out, bytes);
    } else {
        _mm512_mask_storeu_epi8(out, (1ull << columns) - 1, bytes);
    }
}

INLINE void store_row_3(const __m512i *v, size_t columns, const struct bounds *bounds, uint8_t *out)
{
    const __m512i join = _mm512_set_epi32(15, 11, 7, 3, 14, 13, 12, 10, 9, 8, 6, 5, 4, 2, 1, 0);
    __m512i bytes = pack_bytes(v[0], v[1], v[2], v[2], bounds);
    bytes = _mm512_permutexvar_epi32(join, bytes);
    uint64_t mask = columns >= 48 ? 0xffffffffffffull : (1ull << columns) - 1;
    _mm512_mask_storeu_epi8(out, mask, bytes);
}

INLINE void store_32(__m256i bytes, size_t columns, uint8_t *out)
{
    if (columns >= 32) {
        _mm256_storeu_si256((__m256i *)(void *)out, bytes);
    } else {
        _mm256_mask_storeu_epi8(out, (__mmask32)((1u << columns) - 1), bytes);
    }
}

/* Two rows of two vectors. */
INLINE void store_rows_2(const __m512i *a, const __m512i *b, size_t columns,
                         const struct bounds *bounds, uint8_t *out_a, uint8_t *out_b)
{
    __m512i bytes = pack_bytes(a[0], a[1], b[0], b[1], bounds);
    bytes = _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), bytes);
    store_32(_mm512_castsi512_si256(bytes), columns, out_a);
    store_32(_mm512_extracti64x4_epi64(bytes, 1), columns, out_b);
}

INLINE void store_16(__m128i bytes, size_t columns, uint8_t *out)
{
    if (columns >= 16) {
        _mm_storeu_si128((__m128i *)(void *)out, bytes);
    } else {
        _mm_mask_storeu_epi8(out, (__mmask16)((1u << columns) - 1), bytes);
    }
}

/* Four rows of one vector, out[i] being row i's address. */
INLINE void store_rows_1(__m512i a, __m512i b, __m512i c, __m512i d, size_t columns,
                         const struct bounds *bounds, uint8_t *const *out)
{
    const __m512i split = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i bytes = pack_bytes(a, b, c, d, bounds);
    bytes = _mm512_permutexvar_epi32(split, bytes);
    store_16(_mm512_castsi512_si128(bytes), columns, out[0]);
    store_16(_mm512_extracti32x4_epi32(bytes, 1), columns, out[1]);
    store_16(_mm512_extracti32x4_epi32(bytes, 2), columns, out[2]);
    store_16(_mm512_extracti32x4_epi32(bytes, 3), columns, out[3]);
}

/* Scaled sums of rows that go to out[]. */
INLINE void store_rows(const struct bounds *bounds, size_t columns, uint8_t *const *out,
                       const size_t mr, const size_t nv, __m512i sum[][4])
{
    if (nv == 4) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            store_row_4(sum[i], columns, bounds, out[i]);
        }
    } else if (nv == 3) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            store_row_3(sum[i], columns, bounds, out[i]);
        }
    } else if (nv == 2) {
        UNROLL for (size_t i = 0; i < mr; i += 2)
        {
            const size_t i1 = i + 1 < mr ? i + 1 : i;
            store_rows_2(sum[i], sum[i1], columns, bounds, out[i], out[i1]);
        }
    } else {
        UNROLL for (size_t i = 0; i < mr; i += 4)
        {
            const size_t i1 = i + 1 < mr ? i + 1 : i, i2 = i + 2 < mr ? i + 2 : i;
            const size_t i3 = i + 3 < mr ? i + 3 : i;
            uint8_t *const four[4] = {out[i], out[i1], out[i2], out[i3]};
            store_rows_1(sum[i][0], sum[i1][0], sum[i2][0], sum[i3][0], columns, bounds, four);
        }
    }
}

#endif
