/* Q8 gemm for NEON without dot products, 32 and 64 bit: 4 columns of one input an
 * instruction (smlal by lane), weights kept as 16 bit so that only inputs are widened. */
#define SQUARES 0
#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_job_tmpl.h"

#define KR     1
#define WEIGHT int16_t

/* sum += half of the columns * a[lane] */
#if defined(__aarch64__)
/* Not intrinsics: see dot() of gemm_q8_dot.c. */
#define ADD(lane)                                                                                  \
    if (high) {                                                                                    \
        __asm__("smlal2 %0.4s, %1.8h, %2.h[" #lane "]" : "+w"(sum) : "w"(column), "x"(a));         \
    } else {                                                                                       \
        __asm__("smlal %0.4s, %1.4h, %2.h[" #lane "]" : "+w"(sum) : "w"(column), "x"(a));          \
    }
#else
#define ADD(lane)                                                                                  \
    sum = vmlal_lane_s16(sum, high ? vget_high_s16(column) : vget_low_s16(column),                 \
                         (lane) < 4 ? vget_low_s16(a) : vget_high_s16(a), (lane) % 4);
#endif
INLINE int32x4_t add(int32x4_t sum, int16x8_t column, const int high, int16x8_t a, const int lane)
{
    switch (lane) {
    case 0:
        ADD(0)
        break;
    case 1:
        ADD(1)
        break;
    case 2:
        ADD(2)
        break;
    case 3:
        ADD(3)
        break;
    case 4:
        ADD(4)
        break;
    case 5:
        ADD(5)
        break;
    case 6:
        ADD(6)
        break;
    default:
        ADD(7)
    }
    return sum;
}

/* Adds one input of every row: the lane of its vector. column holds its weights and receives
 * those of the next input, at w, each vector as soon as its register is free: so cores that do
 * not reorder instructions have half of the products to hide the load. */
INLINE const int16_t *step(const int16_t *w, int16x8_t *column, const int16x8_t *a, const size_t mr,
                           const size_t nv, const int lane, int32x4_t SUMS)
{
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            sum[i][j] = add(sum[i][j], column[j / 2], j % 2, a[i], lane);
        }
        if (j % 2 != 0 || j + 1 == nv) {
            column[j / 2] = vld1q_s16(w + j / 2 * 8);
        }
    }
    return w + 4 * nv;
}

INLINE const int16_t *sum_tap(const int16_t *w, const unsigned char *const *a, size_t offset,
                              size_t depth, const size_t mr, const size_t nv, int32x4_t SUMS)
{
    const size_t end = offset + depth, whole = offset + depth / 8 * 8;
    int16x8_t x[TALL], column[WIDE / 2];
    UNROLL for (size_t j = 0; j < nv; j += 2)
    {
        column[j / 2] = vld1q_s16(w + 4 * j);
    }
    w += 4 * nv;
    for (; offset < whole; offset += 8) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vmovl_s8(vld1_s8((const int8_t *)a[i] + offset));
        }
        UNROLL for (int lane = 0; lane < 8; lane++)
        {
            w = step(w, column, x, mr, nv, lane, sum);
        }
    }
    for (; offset < end; offset++) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vdupq_n_s16(((const int8_t *)a[i])[offset]);
        }
        w = step(w, column, x, mr, nv, 0, sum);
    }
    return w - 4 * nv;
}

#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_tmpl.h"
