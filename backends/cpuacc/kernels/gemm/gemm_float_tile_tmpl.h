/* One tile of the float gemm (gemm_float_tmpl.h): the inputs of its rows, its products,
 * its end. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_TILE_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_TILE_TMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_float_job_tmpl.h"

/* A tile that lies inside the matrix, as most do. add: NULL, or the tensor to add. */
INLINE void store_full(const struct job *job, const float *add, const size_t mr, const size_t nv,
                       vf sum[][4])
{
    const struct ifd_gemm_args *args = job->args;
    const vf lo = vf_set1(job->min), hi = vf_set1(job->max);
    float *out = (float *)args->out + job->m0 * args->out_stride + job->n0;
    if (add) {
        add += job->m0 * args->add_stride + job->n0;
        UNROLL for (size_t i = 0; i < mr; i++, add += args->add_stride)
        {
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                sum[i][j] = vf_add(sum[i][j], vf_load(add + j * VF_LANES));
            }
        }
    }
    UNROLL for (size_t i = 0; i < mr; i++, out += args->out_stride)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            vf_store(out + j * VF_LANES, vf_min(hi, vf_max(lo, sum[i][j])));
        }
    }
}

/* The input rows of a tile at one tap. */
struct rows {
    const GEMM_INPUT *base;
    size_t stride;
    const unsigned char *each[12];
};

/* Of twelve rows every fourth has a computed address: otherwise the compiler advances twelve
 * pointers. */
INLINE const GEMM_INPUT *row_at(const struct rows *rows, size_t i, const size_t mr,
                                const int is_regular)
{
    if (!is_regular) {
        return (const GEMM_INPUT *)(const void *)rows->each[i];
    }
    if (mr <= 8) {
        return rows->base + i * rows->stride;
    }
    const GEMM_INPUT *fourth = rows->base + i / 4 * 4 * rows->stride;
    __asm__("" : "+r"(fourth));
    return fourth + i % 4 * rows->stride;
}

/* One input of every row. */
INLINE void add_input(const struct rows *rows, size_t k, const GEMM_WEIGHT *w, vf sum[][4],
                      const size_t mr, const size_t nv, const int is_regular)
{
    vf column[4];
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        column[j] = gemm_weights(w + VF_LANES * j);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        const vf x = gemm_inputs(row_at(rows, i, mr, is_regular) + k * GEMM_PAIR);
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = gemm_add(x, column[j], sum[i][j]);
        }
    }
}

INLINE struct rows rows_of_tap(const struct job *job, const size_t mr, size_t t,
                               const int is_regular)
{
    struct rows rows = {.stride = job->args->a_stride};
    if (is_regular) {
        rows.base = (const GEMM_INPUT *)(const void *)job->start[0] + t * job->args->tap_stride;
    } else {
        ifd_rows_tap(job->args, sizeof(GEMM_INPUT), job->m0, mr, job->valid, t, job->start,
                     rows.each);
    }
    return rows;
}

INLINE void end_tile(const struct job *job, const size_t mr, const size_t nv, vf sum[][4],
                     const int is_regular)
{
    if (job->valid == mr && job->columns == nv * VF_LANES) {
        store_full(job, job->part.is_last ? job->args->add : NULL, mr, nv, sum);
    } else {
        store(job, mr, nv, sum, is_regular);
    }
}

/* Fetches one to four lines, as many as `ahead` holds: not every CPU fetches neighbours itself. */
INLINE void fetch_lines(const unsigned char *fetch, size_t ahead)
{
    __builtin_prefetch(fetch, 0, 2);
    __builtin_prefetch(fetch + ahead / 4, 0, 2);
    __builtin_prefetch(fetch + ahead / 2, 0, 2);
    __builtin_prefetch(fetch + ahead / 4 * 3, 0, 2);
}

INLINE void tile_whole(const struct job *job, const size_t mr, const size_t nv,
                       const int is_regular)
{
    const GEMM_WEIGHT *w = job->weights;
    const unsigned char *fetch = job->fetch;
    const size_t depth = job->part.k_end, ahead = job->ahead;
    vf sum[12][4];
    begin_sums(job, sum, mr, nv, is_regular);
    for (size_t t = job->part.t_begin; t < job->part.t_end; t++) {
        const struct rows rows = rows_of_tap(job, mr, t, is_regular);
        size_t k = job->part.k_begin;
        for (; k + STEP <= depth; k += STEP, fetch += ahead) {
            fetch_lines(fetch, ahead);
            UNROLL for (size_t step = 0; step < STEP; step++, w += VF_LANES * nv)
            {
                add_input(&rows, k + step, w, sum, mr, nv, is_regular);
            }
        }
        for (; k < depth; k++, w += VF_LANES * nv) {
            add_input(&rows, k, w, sum, mr, nv, is_regular);
        }
    }
    end_tile(job, mr, nv, sum, is_regular);
}

#endif
