/* What all parts of the float gemm share: the parameters of the template
 * (gemm_float_tmpl.h), the packed layout, one call of a tile, and how its sums begin and end. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_JOB_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_JOB_TMPL_H

#include "backends/cpuacc/kernels/pack.h"
#include "backends/cpuacc/kernels/gemm/rows_impl.h"
#include "backends/cpuacc/kernels/simd/simd.h"

#if !defined(GEMM_INPUT) || !defined(GEMM_PAIR) || !defined(GEMM_WEIGHT) || !defined(GEMM_FORMAT)
#error "gemm_float_tmpl.h says what to define before it is included"
#endif
#if !defined(GEMM_K_TILE)
#define GEMM_K_TILE 0
#endif
#if !defined(GEMM_BLOCKS_EVEN)
#define GEMM_BLOCKS_EVEN 0
#endif

static const struct ifd_pack_layout layout = {.lanes = VF_LANES,
                                              .quad = VF_LANES,
                                              .kr = GEMM_PAIR,
                                              .bytes = sizeof(GEMM_WEIGHT) / GEMM_PAIR,
                                              .format = GEMM_FORMAT,
                                              .max_nv = GEMM_MAX_NV,
                                              .k_tile = GEMM_K_TILE,
                                              .mr = GEMM_ROWS,
                                              .even = GEMM_BLOCKS_EVEN};

/* Weights of a part. */
#define PART_BYTES_MAX ((size_t)256 * 1024)

/* Inputs k_begin .. k_end-1 (counted as lanes take them) of taps t_begin .. t_end-1: all, or some
 * of one tap. */
struct part {
    size_t t_begin, t_end, k_begin, k_end;
    int is_first, is_last;
};

/* Rows m0 .. m0+valid-1 of the block's `columns` columns, which begin at n0.
 *   is_regular   the rows are a_stride apart, so one address is enough
 *   count        number of stacked tiles, above 1 only if is_regular; m0 and start belong to the
 *                first
 *   fetch, ahead what to fetch next, and the step after each of its lines */
struct job {
    const struct ifd_gemm_args *args;
    struct part part;
    const GEMM_WEIGHT *weights;
    const float *bias;
    float min, max;
    size_t m0, valid, n0, columns, count;
    int is_regular;
    const unsigned char *start[12];
    const unsigned char *fetch;
    size_t ahead, fetch_bytes;
};

enum { STEP = 4, CACHE_LINE = 64 };

/* Columns of one of a block's vectors. */
INLINE size_t lanes_of(const struct ifd_packed *header)
{
    return header->nr < VF_LANES ? header->nr : VF_LANES;
}

/* Inputs of a tap as lanes take them. */
INLINE size_t lane_inputs(const struct ifd_packed *header)
{
    return (size_t)header->private_[IFD_PACKED_DEPTH] / GEMM_PAIR;
}

/* The bias, or the sums that the part before left in the output. */
INLINE void begin_sums(const struct job *job, vf sum[][4], const size_t mr, const size_t nv,
                       const int is_regular)
{
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = vf_load(job->bias + VF_LANES * j);
        }
        if (!job->part.is_first && (is_regular || i < job->valid)) {
            const float *out =
                (const float *)job->args->out + (job->m0 + i) * job->args->out_stride + job->n0;
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                const size_t c = j * VF_LANES;
                if (c + VF_LANES <= job->columns) {
                    sum[i][j] = vf_load(out + c);
                } else if (c < job->columns) {
                    sum[i][j] = vf_load_n(out + c, job->columns - c);
                }
            }
        }
    }
}

INLINE void store(const struct job *job, const size_t mr, const size_t nv, vf sum[][4],
                  const int is_regular)
{
    const struct ifd_gemm_args *args = job->args;
    const vf lo = vf_set1(job->min), hi = vf_set1(job->max);
    const size_t columns = job->columns;
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        if (is_regular || i < job->valid) {
            float *out = (float *)args->out + (job->m0 + i) * args->out_stride + job->n0;
            const float *add = job->part.is_last ? args->add : NULL;
            add = add ? add + (job->m0 + i) * args->add_stride + job->n0 : NULL;
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                const size_t c = j * VF_LANES;
                vf v = sum[i][j];
                if (c + VF_LANES <= columns) {
                    v = add ? vf_add(v, vf_load(add + c)) : v;
                    vf_store(out + c, vf_min(hi, vf_max(lo, v)));
                } else if (c < columns) {
                    v = add ? vf_add(v, vf_load_n(add + c, columns - c)) : v;
                    vf_store_n(out + c, vf_min(hi, vf_max(lo, v)), columns - c);
                }
            }
        }
    }
}

#endif
