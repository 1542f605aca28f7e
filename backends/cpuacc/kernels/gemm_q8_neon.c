/* Q8 matrix product for NEON without dot products, 32 and 64 bit: 4 columns of one input an
 * instruction (smlal by lane), weights kept as 16 bit so that only inputs are widened. */
#include "backends/cpuacc/kernels/gemm_q8_neon_job.h"

#define TALL   4
#define KR     1
#define WEIGHT int16_t

/* Adds input k0 + lane of every row. */
INLINE void step(const int16_t *w, const int16x4_t *a, const size_t mr, const size_t nv,
                 const int lane, int32x4_t sum[][2])
{
    int16x4_t column[2];
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        column[j] = vld1_s16(w + 4 * j);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            switch (lane) {
            case 0:
                sum[i][j] = vmlal_lane_s16(sum[i][j], column[j], a[i], 0);
                break;
            case 1:
                sum[i][j] = vmlal_lane_s16(sum[i][j], column[j], a[i], 1);
                break;
            case 2:
                sum[i][j] = vmlal_lane_s16(sum[i][j], column[j], a[i], 2);
                break;
            default:
                sum[i][j] = vmlal_lane_s16(sum[i][j], column[j], a[i], 3);
                break;
            }
        }
    }
}

INLINE void sum_tile(const struct job *job, const size_t mr, const size_t nv, int32x4_t sum[][2])
{
    const struct ifd_packed *header = job->args->packed;
    const int16_t *w = job->weights;
    const size_t depth = header->k;
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *a[8];
        ifd_rows_tap(job->args, 1, job->m0, mr, job->valid, t, job->start, a);
        size_t k = 0;
        for (; k + 8 <= depth; k += 8) {
            int16x4_t lo[8], hi[8];
            UNROLL for (size_t i = 0; i < mr; i++)
            {
                int16x8_t x = vmovl_s8(vld1_s8((const int8_t *)a[i] + k));
                lo[i] = vget_low_s16(x);
                hi[i] = vget_high_s16(x);
            }
            UNROLL for (int lane = 0; lane < 4; lane++, w += 4 * nv)
            {
                step(w, lo, mr, nv, lane, sum);
            }
            UNROLL for (int lane = 0; lane < 4; lane++, w += 4 * nv)
            {
                step(w, hi, mr, nv, lane, sum);
            }
        }
        for (; k < depth; k++, w += 4 * nv) {
            int16x4_t one[8];
            UNROLL for (size_t i = 0; i < mr; i++)
            {
                one[i] = vdup_n_s16(((const int8_t *)a[i])[k]);
            }
            step(w, one, mr, nv, 0, sum);
        }
    }
}

#include "backends/cpuacc/kernels/gemm_q8_neon_tmpl.h"
