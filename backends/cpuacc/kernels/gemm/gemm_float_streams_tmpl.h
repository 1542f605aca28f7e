/* Single rows of the f32 gemm (gemm_float_tmpl.h): several streams of weights at a
 * time. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_STREAMS_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_STREAMS_TMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_float_job_tmpl.h"

/* A single row takes as long as reading its weights, and memory gives more to several streams
 * than to one: STREAMS blocks at a time. A block of fewer than four vectors reads on up to its
 * bias; the extra sums are dropped. */
enum { STREAMS = 4, STREAM_INPUTS_MIN = 512 };

static void run_streams(const struct ifd_gemm_args *args, size_t b)
{
    const struct ifd_packed *header = args->packed;
    const unsigned char *units = (const unsigned char *)args->packed + IFD_PACKED_HEADER;
    const size_t depth = lane_inputs(header);
    const float *a = args->a, *w[STREAMS];
    size_t row[STREAMS];
    struct job job[STREAMS];
    vf sum[STREAMS][4];
    UNROLL for (size_t s = 0; s < STREAMS; s++)
    {
        const size_t n0 = ifd_packed_column(header, b + s),
                     end = ifd_packed_column(header, b + s + 1);
        row[s] = (end - n0 + VF_LANES - 1) / VF_LANES * VF_LANES;
        w[s] = (const float *)(const void *)(units + n0 / header->nr * header->unit_bytes);
        job[s] = (struct job){.args = args,
                              .n0 = n0,
                              .columns = end - n0,
                              .valid = 1,
                              .min = args->min,
                              .max = args->max,
                              .bias = w[s] + depth * row[s],
                              .part = {.is_first = 1, .is_last = 1}};
        UNROLL for (size_t j = 0; j < 4; j++)
        {
            sum[s][j] = vf_load(job[s].bias + (VF_LANES * j < row[s] ? VF_LANES * j : 0));
        }
    }
    for (size_t k = 0; k < depth; k++) {
        const vf x = vf_broadcast(a + k);
        UNROLL for (size_t s = 0; s < STREAMS; s++)
        {
            UNROLL for (size_t j = 0; j < 4; j++)
            {
                sum[s][j] = vf_fma(x, vf_load(w[s] + VF_LANES * j), sum[s][j]);
            }
            w[s] += row[s];
        }
    }
    UNROLL for (size_t s = 0; s < STREAMS; s++)
    {
        store(&job[s], 1, 4, &sum[s], 1);
    }
}

/* Whether the STREAMS blocks from b on can be streamed. Each has two vectors at least. */
static int can_stream(const struct ifd_gemm_args *args, size_t b)
{
    const struct ifd_packed *header = args->packed;
    return args->m == 1 && header->n >= 2 * VF_LANES * header->blocks && header->taps == 1 &&
           header->nr == VF_LANES && !args->rows && lane_inputs(header) >= STREAM_INPUTS_MIN &&
           b + STREAMS <= header->blocks && ifd_packed_column(header, b + STREAMS) <= args->n_end;
}

#endif
