/* Begin and end of a NEON q8 tile; see gemm_q8_neon_tmpl.h. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_Q8_NEON_JOB_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_Q8_NEON_JOB_H

#include "backends/cpuacc/kernels/finish_neon.h"
#include "backends/cpuacc/kernels/rows.h"

/* Rows m0 .. m0+valid-1 of the block's `columns` columns; out is the first of them. */
struct job {
    const struct ifd_gemm_args *args;
    const void *weights;
    const int32_t *tail;
    size_t m0, valid, columns;
    int8_t *out;
    const unsigned char *start[8];
};

INLINE void start_sums(const struct job *job, const size_t mr, const size_t nv, int32x4_t sum[][2])
{
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        int32x4_t add = vdupq_n_s32(0);
        if (job->args->row_add) {
            add = vdupq_n_s32(job->args->row_add[job->m0 + (i < job->valid ? i : job->valid - 1)]);
        }
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = vaddq_s32(add, vld1q_s32(job->tail + 4 * j));
        }
    }
}

/* The sums themselves, where out is int32_t: job->out still counts its elements. */
INLINE void store_sums(const struct job *job, const size_t mr, const size_t nv, int32x4_t sum[][2])
{
    int32_t *out = (int32_t *)job->args->out + (job->out - (int8_t *)job->args->out);
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            int32_t *to = out + i * job->args->out_stride + 4 * j;
            if (i < job->valid && 4 * j + 4 <= job->columns) {
                vst1q_s32(to, sum[i][j]);
            } else if (i < job->valid) {
                int32_t rest[4];
                vst1q_s32(rest, sum[i][j]);
                for (size_t c = 0; 4 * j + c < job->columns; c++) {
                    to[c] = rest[c];
                }
            }
        }
    }
}

INLINE void finish_tile(const struct job *job, const size_t mr, const size_t nv, int32x4_t sum[][2])
{
    const struct ifd_packed *header = job->args->packed;
    const struct bounds bounds = load_bounds(header);
    if (header->private_[IFD_PACKED_FINISH] == IFD_FINISH_NONE) {
        store_sums(job, mr, nv, sum);
        return;
    }
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        scale_column(header->private_[IFD_PACKED_FINISH], job->tail + 4 * j, 4 * nv, &sum[0][j], mr,
                     2);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        if (i < job->valid) {
            int8x8_t bytes = pack_8(sum[i][0], sum[i][nv - 1], &bounds);
            store_8(bytes, job->columns, job->out + i * job->args->out_stride);
        }
    }
}

#endif
