/* gemm of 16-bit inputs with 8-bit weights that are widened to 16. Instructions multiply
 * neighbours and add the pairs in 32 bits, which hold the sums of some hundred pairs; these are
 * added up in 64 bits. */
#include "backends/cpuacc/kernels/simd/simd.h"

/* vp          VP_LANES sums of 32 bits
 * vp_add(s, a, b)  adds VP_STEP products of neighbours in a and b to them, two to each
 * vp_total    their sum */
#if defined(IFD_SIMD_avx512)
typedef __m512i vp;
#define VP_STEP 32
INLINE vp vp_zero(void)
{
    return _mm512_setzero_si512();
}
INLINE vp vp_add(vp sum, const int16_t *a, const int16_t *b)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
}
INLINE int64_t vp_total(vp sum)
{
    const __m512i low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(sum));
    const __m512i high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(sum, 1));
    return _mm512_reduce_add_epi64(_mm512_add_epi64(low, high));
}
#elif defined(IFD_SIMD_avx2)
typedef __m256i vp;
#define VP_STEP 16
INLINE vp vp_zero(void)
{
    return _mm256_setzero_si256();
}
INLINE vp vp_add(vp sum, const int16_t *a, const int16_t *b)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)a);
    const __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
}
INLINE int64_t vp_total(vp sum)
{
    const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(sum));
    const __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(sum, 1));
    const __m256i four = _mm256_add_epi64(low, high);
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
}
#elif defined(IFD_SIMD_neon)
typedef int32x4_t vp;
#define VP_STEP 8
INLINE vp vp_zero(void)
{
    return vdupq_n_s32(0);
}
INLINE vp vp_add(vp sum, const int16_t *a, const int16_t *b)
{
    const int16x8_t x = vld1q_s16(a), y = vld1q_s16(b);
    sum = vmlal_s16(sum, vget_low_s16(x), vget_low_s16(y));
    return vmlal_s16(sum, vget_high_s16(x), vget_high_s16(y));
}
INLINE int64_t vp_total(vp sum)
{
    const int64x2_t two = vpaddlq_s32(sum);
    return vgetq_lane_s64(two, 0) + vgetq_lane_s64(two, 1);
}
#else
typedef int32_t vp;
#define VP_STEP 2
INLINE vp vp_zero(void)
{
    return 0;
}
INLINE vp vp_add(vp sum, const int16_t *a, const int16_t *b)
{
    return sum + a[0] * b[0] + a[1] * b[1];
}
INLINE int64_t vp_total(vp sum)
{
    return sum;
}
#endif

/* Two products of 2^15 * 2^7 at a time reach 2^31 after 256 steps, so fewer go into 32 bits. */
enum { COLUMNS = 4, PART = 255 * VP_STEP, TALL = VF_REGISTERS < 32 ? 2 : 4 };

INLINE void tile(const struct ifd_s16_args *args, size_t row, size_t column, const size_t rows,
                 const size_t columns)
{
    const int16_t *a = args->a + row * args->a_stride, *w = args->w + column * args->w_stride;
    for (size_t k = 0; k < args->k; k += PART) {
        const size_t end = args->k - k < PART ? args->k : k + PART;
        vp sum[TALL][COLUMNS];
        UNROLL for (size_t r = 0; r < rows; r++)
        {
            UNROLL for (size_t c = 0; c < columns; c++)
            {
                sum[r][c] = vp_zero();
            }
        }
        for (size_t i = k; i < end; i += VP_STEP) {
            UNROLL for (size_t r = 0; r < rows; r++)
            {
                UNROLL for (size_t c = 0; c < columns; c++)
                {
                    sum[r][c] =
                        vp_add(sum[r][c], a + r * args->a_stride + i, w + c * args->w_stride + i);
                }
            }
        }
        UNROLL for (size_t r = 0; r < rows; r++)
        {
            UNROLL for (size_t c = 0; c < columns; c++)
            {
                int64_t *to = args->sum + (row + r) * args->n + column + c;
                *to = vp_total(sum[r][c]) + (k ? *to : 0);
            }
        }
    }
}

INLINE void rows_of(const struct ifd_s16_args *args, size_t row, const size_t rows)
{
    size_t c = 0;
    for (; c + COLUMNS <= args->n; c += COLUMNS) {
        tile(args, row, c, rows, COLUMNS);
    }
    for (; c < args->n; c++) {
        tile(args, row, c, rows, 1);
    }
}

static void dot(const struct ifd_s16_args *args)
{
    size_t row = 0;
    for (; row + TALL <= args->m; row += TALL) {
        rows_of(args, row, TALL);
    }
    for (; row < args->m; row++) {
        rows_of(args, row, 1);
    }
}

static void multiply(size_t n, const int16_t *restrict in, const int16_t *restrict w,
                     int32_t *restrict sum)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += in[i] * w[i];
    }
}

const struct ifd_kern_gemm_s16 IFD_TABLE = {.dot = dot, .multiply = multiply};
