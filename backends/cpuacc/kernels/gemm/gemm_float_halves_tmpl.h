/* gemm of half vectors of columns, two inputs of each, where the instruction set has pairs
 * (gemm_float_tmpl.h). A number of columns that leaves the last vector half empty wastes
 * nothing, and tiles of 16 columns broadcast half as often; neighbouring sums are added at the
 * end. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_HALVES_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_HALVES_TMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_float_tile_tmpl.h"

static const struct ifd_pack_layout paired = {.lanes = VF_LANES / 2,
                                              .quad = VF_LANES / 2,
                                              .kr = 2,
                                              .bytes = 4,
                                              .max_nv = GEMM_MAX_NV,
                                              .even = 1,
                                              .mr = GEMM_ROWS};

/* Whether halves cost less than whole vectors, in multiply-adds; single vectors count a fourth
 * more, because they wait for broadcasts. */
INLINE int halves_pay(size_t n, size_t k, size_t taps)
{
    const size_t vectors = (n + VF_LANES - 1) / VF_LANES;
    const size_t halves = (n + VF_LANES / 2 - 1) / (VF_LANES / 2);
    const size_t whole = vectors * (k * taps + 1), pairs = halves * ((k + 1) / 2 * taps + 2);
    return 17 * pairs < (vectors == 1 ? 20 : 16) * whole;
}

/* Two inputs of every row, or the last one of a tap. */
INLINE void add_pair(const struct rows *rows, size_t k, const float *w, vf sum[][4],
                     const size_t mr, const size_t nv, const int is_regular, const int is_single)
{
    vf column[4];
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        column[j] = vf_load(w + VF_LANES * j);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        const float *at = row_at(rows, i, mr, is_regular) + k;
        const vf x = is_single ? vf_broadcast_even(at) : vf_broadcast_pair(at);
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = vf_fma(x, column[j], sum[i][j]);
        }
    }
}

INLINE void begin_pairs(const struct job *job, vf sum[][4], const size_t mr, const size_t nv,
                        const int is_regular)
{
    const size_t half = VF_LANES / 2;
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = vf_load_even(job->bias + j * half, half);
        }
        if (!job->part.is_first && (is_regular || i < job->valid)) {
            const float *out =
                (const float *)job->args->out + (job->m0 + i) * job->args->out_stride + job->n0;
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                const size_t left = job->columns - j * half; /* only the last half may have fewer */
                sum[i][j] = vf_load_even(out + j * half, left < half ? left : half);
            }
        }
    }
}

INLINE void tile_paired(const struct job *job, const size_t mr, const size_t nv,
                        const int is_regular)
{
    const struct ifd_packed *header = job->args->packed;
    const float *w = job->weights;
    const unsigned char *fetch = job->fetch;
    const size_t end = job->part.k_end, depth = end < header->k ? end : header->k;
    const size_t ahead = job->ahead;
    vf sum[12][4];
    begin_pairs(job, sum, mr, nv, is_regular);
    for (size_t t = job->part.t_begin; t < job->part.t_end; t++) {
        const struct rows rows = rows_of_tap(job, mr, t, is_regular);
        size_t k = job->part.k_begin;
        for (; k + STEP <= depth; k += STEP, w += STEP / 2 * VF_LANES * nv, fetch += ahead) {
            fetch_lines(fetch, ahead);
            add_pair(&rows, k, w, sum, mr, nv, is_regular, 0);
            add_pair(&rows, k + 2, w + VF_LANES * nv, sum, mr, nv, is_regular, 0);
        }
        for (; k + 2 <= depth; k += 2, w += VF_LANES * nv) {
            add_pair(&rows, k, w, sum, mr, nv, is_regular, 0);
        }
        if (k < depth) {
            add_pair(&rows, k, w, sum, mr, nv, is_regular, 1);
            w += VF_LANES * nv;
        }
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j += 2)
        {
            sum[i][j / 2] = vf_fold_pairs(sum[i][j], sum[i][j + 1 < nv ? j + 1 : j]);
        }
    }
    end_tile(job, mr, (nv + 1) / 2, sum, is_regular);
}

#endif
