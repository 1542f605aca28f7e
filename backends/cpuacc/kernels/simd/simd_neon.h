/* The vector vocabulary of NEON, 32 and 64 bit. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_NEON_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_NEON_H

#include <arm_neon.h>

#define VF_LANES  4
#define GEMM_EVEN 0
#if defined(__aarch64__)
#define VF_REGISTERS 32
#define GEMM_MAX_NV  4
#define GEMM_ROWS                                                                                  \
    {                                                                                              \
        4, 4, 4, 4                                                                                 \
    }
#define VF_GEMM_A64 /* tiles of floats in assembly, instead of those in C */
#else
#define VF_REGISTERS 16
#define GEMM_MAX_NV  2
#define GEMM_ROWS                                                                                  \
    {                                                                                              \
        8, 4, 0, 0                                                                                 \
    }
#define GEMM_TALL_1 8
#define GEMM_TALL_2 4
#endif

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;

INLINE vf vf_load(const float *p)
{
    return vld1q_f32(p);
}
/* Inputs may be over-read, so the lanes past n hold any values. */
INLINE vf vf_load_n(const float *p, size_t n)
{
    (void)n;
    return vld1q_f32(p);
}
/* Loads and advances p by `step` floats in one instruction, which gcc does not choose. The
 * memory must have been written before the function was called. */
INLINE vf vf_load_step(const float **p, size_t step)
{
    vf v;
#if defined(__aarch64__)
    __asm__("ld1 {%0.4s}, [%1], %2" : "=w"(v), "+r"(*p) : "r"(step * sizeof(float)));
#else
    v = vf_load(*p);
    *p += step;
#endif
    return v;
}
INLINE void vf_store(float *p, vf v)
{
    vst1q_f32(p, v);
}
INLINE void vf_store_n(float *p, vf v, size_t n)
{
    if (n & 2) {
        vst1_f32(p, vget_low_f32(v));
        p += 2;
        v = vcombine_f32(vget_high_f32(v), vget_high_f32(v));
    }
    if (n & 1) {
        vst1q_lane_f32(p, v, 0);
    }
}
/* Combines pairs as 64-bit values: for halves gcc emits moves. */
#if defined(__aarch64__)
INLINE void vf_transpose(vf *v)
{
    float64x2_t pair[4];
    UNROLL for (size_t i = 0; i < 4; i += 2)
    {
        pair[i] = vreinterpretq_f64_f32(vtrn1q_f32(v[i], v[i + 1]));
        pair[i + 1] = vreinterpretq_f64_f32(vtrn2q_f32(v[i], v[i + 1]));
    }
    UNROLL for (size_t i = 0; i < 2; i++)
    {
        v[i] = vreinterpretq_f32_f64(vtrn1q_f64(pair[i], pair[i + 2]));
        v[i + 2] = vreinterpretq_f32_f64(vtrn2q_f64(pair[i], pair[i + 2]));
    }
}
#else
INLINE void vf_transpose(vf *v)
{
    const float32x4x2_t ab = vtrnq_f32(v[0], v[1]), cd = vtrnq_f32(v[2], v[3]);
    v[0] = vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0]));
    v[1] = vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1]));
    v[2] = vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0]));
    v[3] = vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1]));
}
#endif
INLINE vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}
INLINE vf vf_broadcast(const float *p)
{
    return vld1q_dup_f32(p);
}
INLINE vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}
INLINE vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}
INLINE vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}
#if defined(__aarch64__)
INLINE vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}
INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}
INLINE vf vf_sqrt(vf a)
{
    return vsqrtq_f32(a);
}
INLINE vi vf_to_vi(vf a)
{
    return vcvtnq_s32_f32(a);
}
INLINE float vf_reduce_add(vf a)
{
    return vaddvq_f32(a);
}
INLINE float vf_reduce_max(vf a)
{
    return vmaxvq_f32(a);
}
#else
INLINE vf vf_div(vf a, vf b)
{
    vf r = {
        vgetq_lane_f32(a, 0) / vgetq_lane_f32(b, 0), vgetq_lane_f32(a, 1) / vgetq_lane_f32(b, 1),
        vgetq_lane_f32(a, 2) / vgetq_lane_f32(b, 2), vgetq_lane_f32(a, 3) / vgetq_lane_f32(b, 3)};
    return r;
}
INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vmlaq_f32(c, a, b);
}
INLINE vf vf_sqrt(vf a)
{
    vf r = {__builtin_sqrtf(vgetq_lane_f32(a, 0)), __builtin_sqrtf(vgetq_lane_f32(a, 1)),
            __builtin_sqrtf(vgetq_lane_f32(a, 2)), __builtin_sqrtf(vgetq_lane_f32(a, 3))};
    return r;
}
/* |x| < 2^22: adding 1.5 * 2^23 rounds to nearest even in the low bits. */
INLINE vi vf_to_vi(vf a)
{
    vf magic = vdupq_n_f32(12582912.0f);
    return vsubq_s32(vreinterpretq_s32_f32(vaddq_f32(a, magic)), vreinterpretq_s32_f32(magic));
}
INLINE float vf_reduce_add(vf a)
{
    float32x2_t x = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(vpadd_f32(x, x), 0);
}
INLINE float vf_reduce_max(vf a)
{
    float32x2_t x = vmax_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(vpmax_f32(x, x), 0);
}
#endif
INLINE vf vf_reciprocal(vf a)
{
    return vf_div(vf_set1(1.0f), a);
}
INLINE vf vf_min(vf a, vf b)
{
    return vminq_f32(a, b);
}
INLINE vf vf_max(vf a, vf b)
{
    return vmaxq_f32(a, b);
}
INLINE vi vi_set1(int32_t x)
{
    return vdupq_n_s32(x);
}
INLINE vi vi_add(vi a, vi b)
{
    return vaddq_s32(a, b);
}
INLINE vi vi_shl23(vi a)
{
    return vshlq_n_s32(a, 23);
}
INLINE vi vi_and(vi a, vi b)
{
    return vandq_s32(a, b);
}
INLINE vi vi_or(vi a, vi b)
{
    return vorrq_s32(a, b);
}
INLINE vf vf_from_bits(vi a)
{
    return vreinterpretq_f32_s32(a);
}
INLINE vi vf_bits(vf a)
{
    return vreinterpretq_s32_f32(a);
}
INLINE vf vi_to_vf(vi a)
{
    return vcvtq_f32_s32(a);
}
INLINE vm vf_lt(vf a, vf b)
{
    return vcltq_f32(a, b);
}
INLINE vf vf_select(vm m, vf a, vf b)
{
    return vbslq_f32(m, a, b);
}

/* ---- integers and native 8-bit values ---- */
INLINE vi vi_sub(vi a, vi b)
{
    return vsubq_s32(a, b);
}
INLINE vi vi_mul(vi a, vi b)
{
    return vmulq_s32(a, b);
}
INLINE vi vi_mul_high(vi a, vi b)
{
    int32x2_t lo = vshrn_n_s64(vmull_s32(vget_low_s32(a), vget_low_s32(b)), 32);
    int32x2_t hi = vshrn_n_s64(vmull_s32(vget_high_s32(a), vget_high_s32(b)), 32);
    return vcombine_s32(lo, hi);
}
INLINE vi vi_shl(vi a, int n)
{
    return vshlq_s32(a, vdupq_n_s32(n));
}
INLINE vi vi_sra(vi a, int n)
{
    return vshlq_s32(a, vdupq_n_s32(-n));
}
INLINE vi vi_min(vi a, vi b)
{
    return vminq_s32(a, b);
}
INLINE vi vi_max(vi a, vi b)
{
    return vmaxq_s32(a, b);
}
INLINE vi vf_trunc(vf a)
{
    return vcvtq_s32_f32(a);
}
INLINE vi vi_load_q8(const ifd_q8 *p)
{
    return vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(p))));
}
#if defined(__aarch64__)
#define IFD_SIMD_HAS_Q8_4 1
INLINE void vi_load_q8_4(const ifd_q8 *p, vi *ret_v)
{
    const int8x16_t bytes = vld1q_s8(p);
    const int16x8_t lo = vmovl_s8(vget_low_s8(bytes)), hi = vmovl_high_s8(bytes);
    ret_v[0] = vmovl_s16(vget_low_s16(lo));
    ret_v[1] = vmovl_high_s16(lo);
    ret_v[2] = vmovl_s16(vget_low_s16(hi));
    ret_v[3] = vmovl_high_s16(hi);
}
INLINE void vi_store_q8_4(ifd_q8 *p, const vi *v)
{
    const int16x8_t lo = vuzp1q_s16(vreinterpretq_s16_s32(v[0]), vreinterpretq_s16_s32(v[1]));
    const int16x8_t hi = vuzp1q_s16(vreinterpretq_s16_s32(v[2]), vreinterpretq_s16_s32(v[3]));
    vst1q_s8(p, vuzp1q_s8(vreinterpretq_s8_s16(lo), vreinterpretq_s8_s16(hi)));
}
#endif
INLINE void vi_store_q8_n(ifd_q8 *p, vi v, size_t n)
{
    int16x4_t words = vmovn_s32(v);
    uint32_t bytes = vget_lane_u32(vreinterpret_u32_s8(vmovn_s16(vcombine_s16(words, words))), 0);
    for (size_t i = 0; i < n; i++, bytes >>= 8) {
        p[i] = (ifd_q8)bytes;
    }
}
INLINE void vi_store_q8(ifd_q8 *p, vi v)
{
    int16x4_t words = vmovn_s32(v);
    uint32_t bytes = vget_lane_u32(vreinterpret_u32_s8(vmovn_s16(vcombine_s16(words, words))), 0);
    __builtin_memcpy(p, &bytes, sizeof(bytes));
}

#endif
