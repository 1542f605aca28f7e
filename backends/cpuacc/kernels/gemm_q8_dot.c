/* Q8 matrix product with sdot by lane: 4 columns of 4 inputs an instruction, tiles of 6 rows x 16
 * columns, 16 inputs of each row loaded at once. */
#define SQUARES 0
#include "backends/cpuacc/kernels/gemm_q8_neon_job.h"

#define KR     4
#define WEIGHT int8_t

INLINE int32x4_t dot(int32x4_t sum, int8x16_t column, int8x16_t a, const int lane)
{
    switch (lane) {
    case 0:
        return vdotq_laneq_s32(sum, column, a, 0);
    case 1:
        return vdotq_laneq_s32(sum, column, a, 1);
    case 2:
        return vdotq_laneq_s32(sum, column, a, 2);
    default:
        return vdotq_laneq_s32(sum, column, a, 3);
    }
}

/* Adds inputs 4*lane .. 4*lane+3 of every row's vector. */
INLINE const int8_t *step(const int8_t *w, const int8x16_t *a, const size_t mr, const size_t nv,
                          const int lane, int32x4_t SUMS)
{
    UNROLL for (size_t j = 0; j < nv; j += 2) /* one instruction loads two vectors */
    {
        const size_t next = j + 1 < nv ? j + 1 : j;
        const int8x16_t column[2] = {vld1q_s8(w + 16 * j), vld1q_s8(w + 16 * next)};
        UNROLL for (size_t i = 0; i < mr * (next - j + 1); i++)
        {
            int32x4_t *to = &sum[i % mr][j + i / mr];
            *to = dot(*to, column[i / mr], a[i % mr], lane);
        }
    }
    return w + 16 * nv;
}

INLINE const int8_t *sum_tap(const int8_t *w, const unsigned char *const *a, size_t offset,
                             size_t depth, const size_t mr, const size_t nv, int32x4_t SUMS)
{
    int8x16_t x[TALL];
    const size_t end = offset + depth;
    for (; offset + 16 <= end; offset += 16) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vld1q_s8((const int8_t *)a[i] + offset);
        }
        UNROLL for (int lane = 0; lane < 4; lane++)
        {
            w = step(w, x, mr, nv, lane, sum);
        }
    }
    if (offset < end) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vld1q_s8((const int8_t *)a[i] + offset);
        }
        w = step(w, x, mr, nv, 0, sum);
        if (offset + 4 < end) {
            w = step(w, x, mr, nv, 1, sum);
        }
        if (offset + 8 < end) {
            w = step(w, x, mr, nv, 2, sum);
        }
    }
    return w;
}

#include "backends/cpuacc/kernels/gemm_q8_neon_tmpl.h"
