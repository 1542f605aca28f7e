/* The vector vocabulary of AVX-512 F, BW, DQ, VL. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_AVX512_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_AVX512_H

#include <immintrin.h>

#define VF_LANES     16
#define VF_REGISTERS 32
#define GEMM_MAX_NV  4
#define GEMM_EVEN    1
#define GEMM_ROWS                                                                                  \
    {                                                                                              \
        12, 12, 8, 6                                                                               \
    }
#define GEMM_TALL_1 12
#define GEMM_TALL_2 12
#define GEMM_TALL_3 8
#define GEMM_TALL_4 6
#define GEMM_FIVES  /* 25 rows are one more than a multiple of each tall tile */

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

INLINE vm vm_first(size_t n)
{
    return (vm)((1u << n) - 1);
}
INLINE vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
INLINE vf vf_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}
INLINE vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
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
    _mm512_storeu_ps(p, v);
}
INLINE void vf_store_n(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, vm_first(n), v);
}
/* First within quarters, four vectors at a time; two more steps exchange quarters. */
INLINE void vf_transpose(vf *v)
{
    vf part[16];
    UNROLL for (size_t i = 0; i < 16; i += 4)
    {
        const vf ab_lo = _mm512_unpacklo_ps(v[i], v[i + 1]);
        const vf ab_hi = _mm512_unpackhi_ps(v[i], v[i + 1]);
        const vf cd_lo = _mm512_unpacklo_ps(v[i + 2], v[i + 3]);
        const vf cd_hi = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
        part[i] = _mm512_shuffle_ps(ab_lo, cd_lo, 0x44);
        part[i + 1] = _mm512_shuffle_ps(ab_lo, cd_lo, 0xee);
        part[i + 2] = _mm512_shuffle_ps(ab_hi, cd_hi, 0x44);
        part[i + 3] = _mm512_shuffle_ps(ab_hi, cd_hi, 0xee);
    }
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        const vf low_even = _mm512_shuffle_f32x4(part[i], part[i + 4], 0x88);
        const vf low_odd = _mm512_shuffle_f32x4(part[i], part[i + 4], 0xdd);
        const vf high_even = _mm512_shuffle_f32x4(part[i + 8], part[i + 12], 0x88);
        const vf high_odd = _mm512_shuffle_f32x4(part[i + 8], part[i + 12], 0xdd);
        v[i] = _mm512_shuffle_f32x4(low_even, high_even, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(low_odd, high_odd, 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(low_even, high_even, 0xdd);
        v[i + 12] = _mm512_shuffle_f32x4(low_odd, high_odd, 0xdd);
    }
}
INLINE vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}
/* A separate load: as a memory operand of the multiply it runs at half rate on some cores. */
INLINE vf vf_broadcast(const float *p)
{
    vf v;
    __asm__("vbroadcastss %1, %0" : "=v"(v) : "m"(*p));
    return v;
}
INLINE vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
INLINE vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
INLINE vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
INLINE vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
/* Into the register of c: gcc would add in another one and move the sums back. */
INLINE vf vf_fma(vf a, vf b, vf c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
/* An estimate of 14 bits and one Newton step: a division takes as long as all the rest of most
 * functions. */
INLINE vf vf_reciprocal(vf a)
{
    const vf y = _mm512_rcp14_ps(a);
    return _mm512_fmadd_ps(y, _mm512_fnmadd_ps(a, y, _mm512_set1_ps(1.0f)), y);
}
INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
INLINE vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
/* Two values a lane of 64 bits. */
#define VF_HAS_PAIRS
INLINE vf vf_broadcast_pair(const float *p)
{
    vf v;
    __asm__("vbroadcastsd %1, %0" : "=v"(v) : "m"(*(const double *)(const void *)p));
    return v;
}
INLINE vf vf_broadcast_even(const float *p)
{
    return _mm512_maskz_mov_ps(0x5555, _mm512_set1_ps(*p));
}
INLINE vf vf_load_even(const float *p, size_t n)
{
    const __mmask8 present = (__mmask8)((1u << n) - 1);
    return _mm512_castsi512_ps(_mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(present, p)));
}
INLINE vf vf_fold_pairs(vf a, vf b)
{
    const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const vi odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_add_ps(_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b));
}
INLINE vi vi_set1(int32_t x)
{
    return _mm512_set1_epi32(x);
}
INLINE vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
INLINE vi vi_shl23(vi a)
{
    return _mm512_slli_epi32(a, 23);
}
INLINE vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
INLINE vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}
INLINE vf vf_from_bits(vi a)
{
    return _mm512_castsi512_ps(a);
}
INLINE vi vf_bits(vf a)
{
    return _mm512_castps_si512(a);
}
INLINE vi vf_to_vi(vf a)
{
    return _mm512_cvtps_epi32(a);
}
INLINE vf vi_to_vf(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
INLINE vm vf_lt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
INLINE vf vf_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
INLINE float vf_reduce_add(vf a)
{
    return _mm512_reduce_add_ps(a);
}
INLINE float vf_reduce_max(vf a)
{
    return _mm512_reduce_max_ps(a);
}

/* ---- integers and native 8-bit values ---- */
INLINE vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
INLINE vi vi_mul(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}
INLINE vi vi_mul_high(vi a, vi b)
{
    vi even = _mm512_mul_epi32(a, b);
    vi odd = _mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
}
INLINE vi vi_shl(vi a, int n)
{
    return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n));
}
INLINE vi vi_sra(vi a, int n)
{
    return _mm512_sra_epi32(a, _mm_cvtsi32_si128(n));
}
INLINE vi vi_min(vi a, vi b)
{
    return _mm512_min_epi32(a, b);
}
INLINE vi vi_max(vi a, vi b)
{
    return _mm512_max_epi32(a, b);
}
INLINE vi vf_trunc(vf a)
{
    return _mm512_cvttps_epi32(a);
}
INLINE vi vi_load_q8(const ifd_q8 *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
INLINE void vi_store_q8(ifd_q8 *p, vi v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(v));
}
INLINE void vi_store_q8_n(ifd_q8 *p, vi v, size_t n)
{
    _mm_mask_storeu_epi8(p, vm_first(n), _mm512_cvtepi32_epi8(v));
}

#endif
