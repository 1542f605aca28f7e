/* Q8 gemm with smmla: 2 rows x 2 columns of 8 inputs an instruction, tiles of 6 rows x 16
 * columns, whose sums stay 2x2 squares until they are 16 bits. */
#define SQUARES 1
#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_job_tmpl.h"

#define KR     8
#define WEIGHT int8_t

INLINE const int8_t *step(const int8_t *w, const int8x16_t *a, const size_t mr, const size_t nv,
                          int32x4_t SUMS)
{
    UNROLL for (size_t j = 0; j < 2 * nv; j += 2)
    {
        int8x16_t column[2];
        w = load_weights(w, 2, column);
        UNROLL for (size_t i = 0; i < 2 * GROUPS(mr); i++)
        {
            __asm__("smmla %0.4s, %1.16b, %2.16b" /* see dot() of gemm_q8_dot.c */
                    : "+w"(sum[i % GROUPS(mr)][j + i / GROUPS(mr)])
                    : "w"(a[i % GROUPS(mr)]), "w"(column[i / GROUPS(mr)]));
        }
    }
    return w;
}

INLINE const int8_t *sum_tap(const int8_t *w, const unsigned char *const *a, size_t offset,
                             size_t depth, const size_t mr, const size_t nv, int32x4_t SUMS)
{
    const size_t end = offset + depth, whole = offset + depth / 16 * 16;
    int8x16_t lo[TALL / 2], hi[TALL / 2];
    for (; offset < whole; offset += 16) {
        UNROLL for (size_t i = 0; i < GROUPS(mr); i++)
        {
            const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
            int64x2_t x = vreinterpretq_s64_s8(vld1q_s8((const int8_t *)a[2 * i] + offset));
            int64x2_t y = vreinterpretq_s64_s8(vld1q_s8((const int8_t *)a[second] + offset));
            lo[i] = vreinterpretq_s8_s64(vzip1q_s64(x, y));
            hi[i] = vreinterpretq_s8_s64(vzip2q_s64(x, y));
        }
        w = step(w, lo, mr, nv, sum);
        w = step(w, hi, mr, nv, sum);
    }
    if (offset < end) {
        UNROLL for (size_t i = 0; i < GROUPS(mr); i++)
        {
            const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
            lo[i] = vcombine_s8(vld1_s8((const int8_t *)a[2 * i] + offset),
                                vld1_s8((const int8_t *)a[second] + offset));
        }
        w = step(w, lo, mr, nv, sum);
    }
    return w;
}

#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_tmpl.h"
