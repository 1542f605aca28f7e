/* Q8 matrix product with sdot by lane: 4 columns of 4 inputs an instruction, tiles of 8 rows x 8
 * columns, 16 inputs of each row loaded at once. */
#include "backends/cpuacc/kernels/gemm_q8_neon_job.h"

#define TALL   8
#define KR     4
#define WEIGHT int8_t

/* Adds inputs 4*lane .. 4*lane+3 of every row's vector. */
INLINE void step(const int8_t *w, const int8x16_t *a, const size_t mr, const size_t nv,
                 const int lane, int32x4_t sum[][2])
{
    int8x16_t column[2];
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        column[j] = vld1q_s8(w + 16 * j);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            switch (lane) {
            case 0:
                sum[i][j] = vdotq_laneq_s32(sum[i][j], column[j], a[i], 0);
                break;
            case 1:
                sum[i][j] = vdotq_laneq_s32(sum[i][j], column[j], a[i], 1);
                break;
            case 2:
                sum[i][j] = vdotq_laneq_s32(sum[i][j], column[j], a[i], 2);
                break;
            default:
                sum[i][j] = vdotq_laneq_s32(sum[i][j], column[j], a[i], 3);
                break;
            }
        }
    }
}

INLINE void sum_tile(const struct job *job, const size_t mr, const size_t nv, int32x4_t sum[][2])
{
    const struct ifd_packed *header = job->args->packed;
    const int8_t *w = job->weights;
    const size_t depth = (header->k + 3) / 4 * 4;
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *a[8];
        ifd_rows_tap(job->args, 1, job->m0, mr, job->valid, t, job->start, a);
        size_t k = 0;
        for (; k + 16 <= depth; k += 16) {
            int8x16_t x[8];
            UNROLL for (size_t i = 0; i < mr; i++)
            {
                x[i] = vld1q_s8((const int8_t *)a[i] + k);
            }
            UNROLL for (int lane = 0; lane < 4; lane++, w += 16 * nv)
            {
                step(w, x, mr, nv, lane, sum);
            }
        }
        for (; k < depth; k += 4, w += 16 * nv) {
            int8x16_t x[8];
            UNROLL for (size_t i = 0; i < mr; i++)
            {
                x[i] = vld1q_s8((const int8_t *)a[i] + k);
            }
            step(w, x, mr, nv, 0, sum);
        }
    }
}

#include "backends/cpuacc/kernels/gemm_q8_neon_tmpl.h"
