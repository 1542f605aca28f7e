/* The vector vocabulary in plain C: vectors of one lane. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_SCALAR_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_SCALAR_H

#define VF_LANES     1
#define VF_REGISTERS 16
/* Rows of a gemm tile, by vectors a row. */
#define GEMM_MAX_NV 4
#define GEMM_EVEN   0
#define GEMM_ROWS                                                                                  \
    {                                                                                              \
        4, 4, 4, 4                                                                                 \
    }
#define GEMM_TALL_1 4
#define GEMM_TALL_2 4
#define GEMM_TALL_3 4
#define GEMM_TALL_4 4

typedef float vf;
typedef int32_t vi;
typedef int vm;

INLINE vf vf_load(const float *p)
{
    return *p;
}
INLINE vf vf_load_n(const float *p, size_t n)
{
    (void)n;
    return *p;
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
    *p = v;
}
INLINE void vf_store_n(float *p, vf v, size_t n)
{
    if (n != 0) {
        *p = v;
    }
}
INLINE void vf_transpose(vf *v)
{
    (void)v;
}
INLINE vf vf_set1(float x)
{
    return x;
}
INLINE vf vf_broadcast(const float *p)
{
    return *p;
}
INLINE vf vf_add(vf a, vf b)
{
    return a + b;
}
INLINE vf vf_sub(vf a, vf b)
{
    return a - b;
}
INLINE vf vf_mul(vf a, vf b)
{
    return a * b;
}
INLINE vf vf_div(vf a, vf b)
{
    return a / b;
}
INLINE vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
INLINE vf vf_reciprocal(vf a)
{
    return vf_div(vf_set1(1.0f), a);
}
INLINE vf vf_min(vf a, vf b)
{
    return a < b ? a : b;
}
INLINE vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}
INLINE vf vf_sqrt(vf a)
{
    return __builtin_sqrtf(a);
}
INLINE vi vi_set1(int32_t x)
{
    return x;
}
INLINE vi vi_add(vi a, vi b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
INLINE vi vi_shl23(vi a)
{
    return (int32_t)((uint32_t)a << 23);
}
INLINE vf vf_from_bits(vi a)
{
    union {
        int32_t i;
        float f;
    } bits = {.i = a};
    return bits.f;
}
INLINE vi vf_bits(vf a)
{
    union {
        float f;
        int32_t i;
    } bits = {.f = a};
    return bits.i;
}
INLINE vi vi_and(vi a, vi b)
{
    return a & b;
}
INLINE vi vi_or(vi a, vi b)
{
    return a | b;
}
/* |x| < 2^22, which the templates guarantee: adding and subtracting 1.5 * 2^23 rounds. Of what is
 * no number it makes any. */
INLINE vi vf_to_vi(vf a)
{
    volatile float shifted = a + 12582912.0f;
    return (vi)((uint32_t)vf_bits(shifted) - (uint32_t)vf_bits(12582912.0f));
}
INLINE vf vi_to_vf(vi a)
{
    return (float)a;
}
INLINE vm vf_lt(vf a, vf b)
{
    return a < b;
}
INLINE vf vf_select(vm m, vf a, vf b)
{
    return m ? a : b;
}
INLINE float vf_reduce_add(vf a)
{
    return a;
}
INLINE float vf_reduce_max(vf a)
{
    return a;
}

/* ---- integers and native 8-bit values ---- */
INLINE vi vi_sub(vi a, vi b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}
INLINE vi vi_mul(vi a, vi b)
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
INLINE vi vi_mul_high(vi a, vi b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}
INLINE vi vi_shl(vi a, int n)
{
    return (int32_t)((uint32_t)a << n);
}
INLINE vi vi_sra(vi a, int n)
{
    return a >> n;
}
INLINE vi vi_min(vi a, vi b)
{
    return a < b ? a : b;
}
INLINE vi vi_max(vi a, vi b)
{
    return a > b ? a : b;
}
INLINE vi vf_trunc(vf a)
{
    return a >= -0x1p31f && a < 0x1p31f ? (int32_t)a : INT32_MIN; /* beyond and NaN: as on x86 */
}
INLINE vi vi_load_q8(const ifd_q8 *p)
{
    return *p;
}
INLINE void vi_store_q8(ifd_q8 *p, vi v)
{
    *p = (ifd_q8)v;
}
INLINE void vi_store_q8_n(ifd_q8 *p, vi v, size_t n)
{
    if (n != 0) {
        *p = (ifd_q8)v;
    }
}

#endif
