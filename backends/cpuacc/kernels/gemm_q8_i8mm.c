/* Q8 matrix product with smmla: 2 rows x 2 columns of 8 inputs an instruction, tiles of 8 rows x 8
 * columns. A vector of 4 columns is two pairs; sums are kept as 2x2 squares and set in rows at the
 * end of a tile. */
#include "backends/cpuacc/kernels/gemm_q8_neon_job.h"

#define TALL   8
#define KR     8
#define WEIGHT int8_t

/* sum[i][j] of rows 2i, 2i+1 and columns 2j, 2j+1. */
struct squares {
    int32x4_t sum[4][4];
};

INLINE void step(const int8_t *w, const int8x16_t *a, const size_t pairs, const size_t nv,
                 struct squares *s)
{
    UNROLL for (size_t j = 0; j < 2 * nv; j++)
    {
        const int8x16_t column = vld1q_s8(w + 16 * j);
        UNROLL for (size_t i = 0; i < pairs; i++)
        {
            s->sum[i][j] = vmmlaq_s32(s->sum[i][j], a[i], column);
        }
    }
}

INLINE int8x16_t join(int8x8_t a, int8x8_t b)
{
    return vcombine_s8(a, b);
}

INLINE int32x4_t swap_halves(int32x4_t a, int32x4_t b, const int high)
{
    int64x2_t x = vreinterpretq_s64_s32(a), y = vreinterpretq_s64_s32(b);
    return vreinterpretq_s32_s64(high ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

INLINE void sum_tile(const struct job *job, const size_t mr, const size_t nv, int32x4_t sum[][2])
{
    const struct ifd_packed *header = job->args->packed;
    const int8_t *w = job->weights;
    const size_t depth = (header->k + 7) / 8 * 8, pairs = (mr + 1) / 2;
    struct squares s;
    UNROLL for (size_t i = 0; i < pairs; i++)
    {
        UNROLL for (size_t j = 0; j < 2 * nv; j++)
        {
            s.sum[i][j] = vdupq_n_s32(0);
        }
    }
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *a[8];
        ifd_rows_tap(job->args, 1, job->m0, mr, job->valid, t, job->start, a);
        size_t k = 0;
        for (; k + 16 <= depth; k += 16, w += 64 * nv) {
            int8x16_t lo[4], hi[4];
            UNROLL for (size_t i = 0; i < pairs; i++)
            {
                const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
                int64x2_t x = vreinterpretq_s64_s8(vld1q_s8((const int8_t *)a[2 * i] + k));
                int64x2_t y = vreinterpretq_s64_s8(vld1q_s8((const int8_t *)a[second] + k));
                lo[i] = vreinterpretq_s8_s64(vzip1q_s64(x, y));
                hi[i] = vreinterpretq_s8_s64(vzip2q_s64(x, y));
            }
            step(w, lo, pairs, nv, &s);
            step(w + 32 * nv, hi, pairs, nv, &s);
        }
        for (; k < depth; k += 8, w += 32 * nv) {
            int8x16_t x[4];
            UNROLL for (size_t i = 0; i < pairs; i++)
            {
                const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
                x[i] = join(vld1_s8((const int8_t *)a[2 * i] + k),
                            vld1_s8((const int8_t *)a[second] + k));
            }
            step(w, x, pairs, nv, &s);
        }
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            int32x4_t row = swap_halves(s.sum[i / 2][2 * j], s.sum[i / 2][2 * j + 1], (int)(i % 2));
            sum[i][j] = vaddq_s32(sum[i][j], row);
        }
    }
}

#include "backends/cpuacc/kernels/gemm_q8_neon_tmpl.h"
