/* Q8 matrix product for NEON without dot products, 32 and 64 bit: 4 columns of one input an
 * instruction (smlal by lane), weights kept as 16 bit so that only inputs are widened. */
#define SQUARES 0
#include "backends/cpuacc/kernels/gemm_q8_neon_job.h"

#define KR     1
#define WEIGHT int16_t

/* sum + half of the columns * a[lane] */
#if defined(__aarch64__)
#define ADD(lane)                                                                                  \
    (high ? vmlal_high_laneq_s16(sum, column, a, lane)                                             \
          : vmlal_laneq_s16(sum, vget_low_s16(column), a, lane))
#else
#define ADD(lane)                                                                                  \
    vmlal_lane_s16(sum, high ? vget_high_s16(column) : vget_low_s16(column),                       \
                   (lane) < 4 ? vget_low_s16(a) : vget_high_s16(a), (lane) % 4)
#endif
INLINE int32x4_t add(int32x4_t sum, int16x8_t column, const int high, int16x8_t a, const int lane)
{
    switch (lane) {
    case 0:
        return ADD(0);
    case 1:
        return ADD(1);
    case 2:
        return ADD(2);
    case 3:
        return ADD(3);
    case 4:
        return ADD(4);
    case 5:
        return ADD(5);
    case 6:
        return ADD(6);
    default:
        return ADD(7);
    }
}

/* Adds one input of every row: the lane of its vector. */
INLINE const int16_t *step(const int16_t *w, const int16x8_t *a, const size_t mr, const size_t nv,
                           const int lane, int32x4_t SUMS)
{
    int16x8_t column[WIDE / 2]; /* one instruction loads two */
    UNROLL for (size_t j = 0; j < nv; j += 2)
    {
        column[j / 2] = vld1q_s16(w + 4 * j);
    }
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            sum[i][j] = add(sum[i][j], column[j / 2], j % 2, a[i], lane);
        }
    }
    return w + 4 * nv;
}

INLINE const int16_t *sum_tap(const int16_t *w, const unsigned char *const *a, size_t offset,
                              size_t depth, const size_t mr, const size_t nv, int32x4_t SUMS)
{
    const size_t end = offset + depth, whole = offset + depth / 8 * 8;
    int16x8_t x[TALL];
    for (; offset < whole; offset += 8) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vmovl_s8(vld1_s8((const int8_t *)a[i] + offset));
        }
        UNROLL for (int lane = 0; lane < 8; lane++)
        {
            w = step(w, x, mr, nv, lane, sum);
        }
    }
    for (; offset < end; offset++) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vdupq_n_s16(((const int8_t *)a[i])[offset]);
        }
        w = step(w, x, mr, nv, 0, sum);
    }
    return w;
}

#include "backends/cpuacc/kernels/gemm_q8_neon_tmpl.h"
