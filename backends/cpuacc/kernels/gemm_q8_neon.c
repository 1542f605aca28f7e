/* Q8 matrix product for NEON without dot products, 32 and 64 bit: 4 columns of one input an
 * instruction (smlal by lane), weights kept as 16 bit so that only inputs are widened. */
#define SQUARES 0
#include "backends/cpuacc/kernels/gemm_q8_neon_job.h"

#define KR     1
#define WEIGHT int16_t

/* sum + column * a[lane], of the columns' lower and upper half. */
INLINE int32x4_t add_low(int32x4_t sum, int16x8_t column, int16x4_t a, const int lane)
{
    const int16x4_t x = vget_low_s16(column);
    switch (lane) {
    case 0:
        return vmlal_lane_s16(sum, x, a, 0);
    case 1:
        return vmlal_lane_s16(sum, x, a, 1);
    case 2:
        return vmlal_lane_s16(sum, x, a, 2);
    default:
        return vmlal_lane_s16(sum, x, a, 3);
    }
}

#if defined(__aarch64__)
#define ADD_HIGH(sum, column, a, lane) vmlal_high_lane_s16(sum, column, a, lane)
#else
#define ADD_HIGH(sum, column, a, lane) vmlal_lane_s16(sum, vget_high_s16(column), a, lane)
#endif
INLINE int32x4_t add_high(int32x4_t sum, int16x8_t column, int16x4_t a, const int lane)
{
    switch (lane) {
    case 0:
        return ADD_HIGH(sum, column, a, 0);
    case 1:
        return ADD_HIGH(sum, column, a, 1);
    case 2:
        return ADD_HIGH(sum, column, a, 2);
    default:
        return ADD_HIGH(sum, column, a, 3);
    }
}

/* Adds one input of every row: the lane of its vector. */
INLINE const int16_t *step(const int16_t *w, const int16x4_t *a, const size_t mr, const size_t nv,
                           const int lane, int32x4_t SUMS)
{
    UNROLL for (size_t j = 0; j < nv; j += 2)
    {
        const int16x8_t column = vld1q_s16(w + 4 * j);
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            sum[i][j] = add_low(sum[i][j], column, a[i], lane);
            if (j + 1 < nv) {
                sum[i][j + 1] = add_high(sum[i][j + 1], column, a[i], lane);
            }
        }
    }
    return w + 4 * nv;
}

INLINE const int16_t *sum_tap(const int16_t *w, const unsigned char *const *a, size_t offset,
                              size_t depth, const size_t mr, const size_t nv, int32x4_t SUMS)
{
    const size_t end = offset + depth;
    for (; offset + 8 <= end; offset += 8) {
        int16x8_t x[TALL];
        int16x4_t half[TALL];
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vmovl_s8(vld1_s8((const int8_t *)a[i] + offset));
            half[i] = vget_low_s16(x[i]);
        }
        UNROLL for (int lane = 0; lane < 4; lane++)
        {
            w = step(w, half, mr, nv, lane, sum);
        }
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            half[i] = vget_high_s16(x[i]);
        }
        UNROLL for (int lane = 0; lane < 4; lane++)
        {
            w = step(w, half, mr, nv, lane, sum);
        }
    }
    for (; offset < end; offset++) {
        int16x4_t one[TALL];
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            one[i] = vdup_n_s16(((const int8_t *)a[i])[offset]);
        }
        w = step(w, one, mr, nv, 0, sum);
    }
    return w;
}

#include "backends/cpuacc/kernels/gemm_q8_neon_tmpl.h"
