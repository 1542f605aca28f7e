/* The vector vocabulary of AVX2 with FMA. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_AVX2_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_AVX2_H

#include <immintrin.h>

#define VF_LANES     8
#define VF_REGISTERS 16
#define GEMM_MAX_NV  3
#define GEMM_EVEN    0
#define GEMM_ROWS                                                                                  \
    {                                                                                              \
        12, 6, 4, 0                                                                                \
    }
#define GEMM_TALL_1 12
#define GEMM_TALL_2 6
#define GEMM_TALL_3 4

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

INLINE __m256i vi_first(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
INLINE vf vf_load_n(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, vi_first(n));
}
INLINE vf vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Loads and advances p by `step` floats. */
INLINE vf vf_load_step(const float **p, size_t step)
{
    const vf v = vf_load(*p);
    *p += step;
    return v;
}
INLINE void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
INLINE void vf_store_n(float *p, vf v, size_t n)
{
    _mm256_maskstore_ps(p, vi_first(n), v);
}
INLINE void vf_transpose(vf *v)
{
    vf half[8];
    UNROLL for (size_t i = 0; i < 8; i += 4)
    {
        const vf ab_lo = _mm256_unpacklo_ps(v[i], v[i + 1]);
        const vf ab_hi = _mm256_unpackhi_ps(v[i], v[i + 1]);
        const vf cd_lo = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
        const vf cd_hi = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
        half[i] = _mm256_shuffle_ps(ab_lo, cd_lo, 0x44);
        half[i + 1] = _mm256_shuffle_ps(ab_lo, cd_lo, 0xee);
        half[i + 2] = _mm256_shuffle_ps(ab_hi, cd_hi, 0x44);
        half[i + 3] = _mm256_shuffle_ps(ab_hi, cd_hi, 0xee);
    }
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        v[i] = _mm256_permute2f128_ps(half[i], half[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(half[i], half[i + 4], 0x31);
    }
}
INLINE vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}
INLINE vf vf_broadcast(const float *p)
{
    return _mm256_broadcast_ss(p);
}
INLINE vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
INLINE vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
INLINE vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
INLINE vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
INLINE vf vf_reciprocal(vf a)
{
    return vf_div(vf_set1(1.0f), a);
}
INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
INLINE vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
INLINE vi vi_set1(int32_t x)
{
    return _mm256_set1_epi32(x);
}
INLINE vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
INLINE vi vi_shl23(vi a)
{
    return _mm256_slli_epi32(a, 23);
}
INLINE vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
INLINE vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
INLINE vf vf_from_bits(vi a)
{
    return _mm256_castsi256_ps(a);
}
INLINE vi vf_bits(vf a)
{
    return _mm256_castps_si256(a);
}
INLINE vi vf_to_vi(vf a)
{
    return _mm256_cvtps_epi32(a);
}
INLINE vf vi_to_vf(vi a)
{
    return _mm256_cvtepi32_ps(a);
}
INLINE vm vf_lt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
INLINE vf vf_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}
INLINE float vf_reduce_add(vf a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
INLINE float vf_reduce_max(vf a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

/* ---- integers and native 8-bit values ---- */
INLINE vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
INLINE vi vi_mul(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}
INLINE vi vi_mul_high(vi a, vi b)
{
    vi even = _mm256_mul_epi32(a, b);
    vi odd = _mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
INLINE vi vi_shl(vi a, int n)
{
    return _mm256_sll_epi32(a, _mm_cvtsi32_si128(n));
}
INLINE vi vi_sra(vi a, int n)
{
    return _mm256_sra_epi32(a, _mm_cvtsi32_si128(n));
}
INLINE vi vi_min(vi a, vi b)
{
    return _mm256_min_epi32(a, b);
}
INLINE vi vi_max(vi a, vi b)
{
    return _mm256_max_epi32(a, b);
}
INLINE vi vf_trunc(vf a)
{
    return _mm256_cvttps_epi32(a);
}
INLINE vi vi_load_q8(const ifd_q8 *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
INLINE __m128i vi_narrow(vi v)
{
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return _mm_packus_epi16(words, words);
}
INLINE void vi_store_q8(ifd_q8 *p, vi v)
{
    _mm_storel_epi64((__m128i *)(void *)p, vi_narrow(v));
}
INLINE void vi_store_q8_n(ifd_q8 *p, vi v, size_t n)
{
    uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(vi_narrow(v));
    for (size_t i = 0; i < n; i++, bytes >>= 8) {
        p[i] = (ifd_q8)bytes;
    }
}

#endif
