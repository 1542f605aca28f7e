/* Q8 gemm with sdot by lane: 4 columns of 4 inputs an instruction, tiles of 6 rows x 16
 * columns, 16 inputs of each row loaded at once. */
#define SQUARES 0
#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_job_tmpl.h"

#define KR     4
#define WEIGHT int8_t

/* Not intrinsics: gcc moves those past the next loads, and then spills sums. */
#define DOT(lane) __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(sum) : "w"(column), "w"(a))
INLINE int32x4_t dot(int32x4_t sum, int8x16_t column, int8x16_t a, const int lane)
{
    switch (lane) {
    case 0:
        DOT(0);
        break;
    case 1:
        DOT(1);
        break;
    case 2:
        DOT(2);
        break;
    default:
        DOT(3);
    }
    return sum;
}

/* Adds inputs 4*lane .. 4*lane+3 of every row's vector. */
INLINE const int8_t *step(const int8_t *w, const int8x16_t *a, const size_t mr, const size_t nv,
                          const int lane, int32x4_t SUMS)
{
    UNROLL for (size_t j = 0; j < nv; j += 2)
    {
        const size_t count = j + 1 < nv ? 2 : 1;
        int8x16_t column[2];
        w = load_weights(w, count, column);
        UNROLL for (size_t i = 0; i < mr * count; i++)
        {
            int32x4_t *to = &sum[i % mr][j + i / mr];
            *to = dot(*to, column[i / mr], a[i % mr], lane);
        }
    }
    return w;
}

INLINE const int8_t *sum_tap(const int8_t *w, const unsigned char *const *a, size_t offset,
                             size_t depth, const size_t mr, const size_t nv, int32x4_t SUMS)
{
    int8x16_t x[TALL];
    const size_t rest = depth % 16, whole = offset + depth - rest;
    for (; offset < whole; offset += 16) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vld1q_s8((const int8_t *)a[i] + offset);
        }
        UNROLL for (int lane = 0; lane < 4; lane++)
        {
            w = step(w, x, mr, nv, lane, sum);
        }
    }
    if (rest > 0) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vld1q_s8((const int8_t *)a[i] + offset);
        }
        w = step(w, x, mr, nv, 0, sum);
        if (rest > 4) {
            w = step(w, x, mr, nv, 1, sum);
        }
        if (rest > 8) {
            w = step(w, x, mr, nv, 2, sum);
        }
    }
    return w;
}

#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_tmpl.h"
