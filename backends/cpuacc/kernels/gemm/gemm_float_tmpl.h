/* gemm and convolution over the vector vocabulary, the body of a table: tiles of rows x
 * vectors of sums in registers; weights are loaded once for all rows of a tile, inputs are
 * broadcast. A block that would not stay in the second-level cache is done in parts of its inputs,
 * which add to what the part before has left in the output. The tiles of a part also fetch the next
 * part's weights into that cache, a line every STEP inputs, or up to four where there are few
 * tiles.
 *
 * The includer defines before
 *   GEMM_INPUT         type of an input in memory; a lane multiplies GEMM_PAIR of them at a time
 *   GEMM_WEIGHT        type of what a lane multiplies them with, in memory
 *   GEMM_FORMAT        how pack() makes weights of floats (enum ifd_pack_format)
 *   gemm_weights(w)    loads a vector of weights
 *   gemm_inputs(in)    the same inputs in all lanes
 *   gemm_add(inputs, weights, sum)   adds their products
 * and may define
 *   GEMM_K_TILE        inputs a tile register of the same table takes, 0 without
 *   GEMM_BLOCKS_EVEN   1: blocks share their vectors evenly
 *   GEMM_HAS_HALVES    f32 only: half vectors of columns where they pay (gemm_float_halves_tmpl.h)
 *   GEMM_STREAMS       f32 only: single rows by streams (gemm_float_streams_tmpl.h)
 *   GEMM_A64           f32 only: tiles in assembly (gemm_f32_a64_tmpl.h); gemm_weights, _inputs,
 *                      _add are not needed
 * and gets run(), packed_bytes(), pack(), lanes() and choose_layout(). */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_TMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_float_job_tmpl.h"

#if defined(GEMM_A64)
#include "backends/cpuacc/kernels/gemm/gemm_f32_a64_tmpl.h"
#else
#include "backends/cpuacc/kernels/gemm/gemm_float_stack_tmpl.h"
#endif
#if defined(GEMM_STREAMS)
#include "backends/cpuacc/kernels/gemm/gemm_float_streams_tmpl.h"
#endif

/* The part behind another one: as many inputs as may be in one, of a tap if a tap has more. */
static struct part next_part(const struct ifd_gemm_args *args, const struct part *from, size_t nv)
{
    const struct ifd_packed *header = args->packed;
    const size_t k = lane_inputs(header);
    const size_t most = PART_BYTES_MAX / (nv * lanes_of(header) * sizeof(GEMM_WEIGHT));
    struct part part = {.t_begin = from->t_end, .k_end = k};
    if (from->k_end < k) { /* the rest of a tap */
        part.t_begin = from->t_begin;
        part.k_begin = from->k_end;
    }
    part.t_end = part.t_begin + 1;
    part.is_first = part.t_begin == 0 && part.k_begin == 0;
    if (k * header->taps <= most || args->add == args->out) { /* sums have no place to wait in */
        part.t_end = header->taps;
    } else if (k <= most) {
        part.t_end += most / k - 1;
        part.t_end = part.t_end < header->taps ? part.t_end : header->taps;
    } else if (k - part.k_begin > most) {
        const size_t parts = (k - part.k_begin + most - 1) / most;
        part.k_end = part.k_begin + (k - part.k_begin) / parts / STEP * STEP;
    }
    part.is_last = part.t_end == header->taps && part.k_end == k;
    return part;
}

static void run_block(struct job *job, size_t nv, int is_last)
{
    const struct ifd_gemm_args *args = job->args;
    const struct ifd_packed *header = args->packed;
    const size_t row = nv * lanes_of(header), k = lane_inputs(header);
    const GEMM_WEIGHT *weights = job->weights;
    job->bias = (const float *)(const void *)(weights + header->taps * k * row);
    job->part = (struct part){.k_end = k};
    do {
        job->part = next_part(args, &job->part, nv);
        const struct part *part = &job->part;
        job->min = part->is_last ? args->min : -__builtin_inff();
        job->max = part->is_last ? args->max : __builtin_inff();
        job->weights = weights + (part->t_begin * k + part->k_begin) * row;
        const size_t bytes = ((part->t_end - part->t_begin - 1) * k + part->k_end - part->k_begin) *
                             row * sizeof(GEMM_WEIGHT);
        const int ends = part->is_last && is_last;
        const unsigned char *here = (const unsigned char *)job->weights;
        const unsigned char *next = ends ? args->next : here + bytes;
        size_t fetches = ends ? args->next_bytes : bytes;
        /* few rows: the weights are all there is to wait for, and come in order anyway */
        fetches = next && args->m >= 8 ? fetches : 0;
        job->fetch = next ? next : here;
        run_part(job, nv, fetches < PART_BYTES_MAX ? fetches : PART_BYTES_MAX);
    } while (!job->part.is_last);
}

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const unsigned char *units = (const unsigned char *)args->packed + IFD_PACKED_HEADER;
    size_t b = 0, end = 0;
    while (ifd_packed_column(header, b) < args->n_begin) {
        b++;
    }
    size_t n0 = args->n_begin;
#if defined(GEMM_STREAMS)
    for (; can_stream(args, b); b += STREAMS) {
        run_streams(args, b);
        n0 = ifd_packed_column(header, b + STREAMS);
    }
#endif
    for (; n0 < args->n_end; n0 = end) {
        end = ifd_packed_column(header, ++b);
        struct job job = {
            .args = args,
            .weights =
                (const GEMM_WEIGHT *)(const void *)(units + n0 / header->nr * header->unit_bytes),
            .n0 = n0,
            .columns = end - n0};
        run_block(&job, (end - n0 + lanes_of(header) - 1) / lanes_of(header), end >= args->n_end);
    }
}

static const struct ifd_pack_layout *choose_layout(size_t n, size_t k, size_t taps)
{
#if defined(GEMM_HAS_HALVES)
    return halves_pay(n, k, taps) ? &paired : &layout;
#else
    (void)n;
    (void)k;
    (void)taps;
    return &layout;
#endif
}

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(choose_layout(n, k, taps), n, k, taps, 1);
}

static void pack(const struct ifd_gemm_weights *weights, const float *bias, void *dst)
{
    ifd_pack_gemm_f32(choose_layout(weights->n, weights->k, weights->taps), weights, bias, dst);
}

static size_t lanes(void)
{
    return VF_LANES;
}

#endif
