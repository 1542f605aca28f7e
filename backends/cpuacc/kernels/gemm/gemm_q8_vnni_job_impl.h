/* The q8 gemm with vpdpbusd: a block of columns as a tile sees it, and how the sums of a
 * tile begin and end. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_JOB_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_JOB_IMPL_H

#include "backends/cpuacc/kernels/gemm/rows_impl.h"
#include "backends/cpuacc/kernels/simd/finish_avx512.h"

enum { ROWS_MAX = 16 }; /* of a tile */

/* Extra products of a block: where pack() took the zero point off its weights, a few have nine
 * bits. What exceeds eight bits is here, with the tap and the four inputs that it belongs to. */
enum { EXTRAS_MAX = 2 };

struct extras {
    __attribute__((aligned(64))) uint32_t count;
    uint32_t tap[EXTRAS_MAX], k[EXTRAS_MAX];
    __attribute__((aligned(64))) int8_t weights[EXTRAS_MAX][4 * 64];
};

/* Behind the last block, of all of them. */
INLINE struct extras *block_extras(const struct ifd_packed *header, size_t block)
{
    return (struct extras *)((uintptr_t)header + header->bytes) - header->blocks + block;
}

/* Rows m0 .. m0+valid-1 of the block's `columns` columns; out is the first of them. */
struct job {
    const struct ifd_gemm_args *args;
    const int8_t *weights;
    const int32_t *tail;
    size_t m0, valid, columns;
    uint8_t *out;
    const unsigned char *start[ROWS_MAX];
    size_t spacing;     /* of the rows of each four of start[], or 0 */
    const char *next;   /* weights of the block to come, of which each turn of a tile fetches */
    size_t next_step;   /* bytes of next that a turn fetches, */
    size_t next_inputs; /* or inputs for which it fetches a line */
    const struct extras *extras; /* NULL: none */
};

/* Inputs a tap from which a row's weights count as far: a block of them takes 64 KB. */
enum { FAR_INPUTS_MIN = 1024 };

/* Rows of a call between which the next block's weights are fetched while this block is
 * computed: the time would be spent waiting for them otherwise. */
enum { AHEAD_ROWS_MIN = 24, AHEAD_ROWS_MAX = 512 };
_Static_assert(AHEAD_ROWS_MAX <= 64 * 16, "a turn of the narrowest tile fetches a byte at least");

/* Assembly: with the intrinsic gcc 12 spills the sums. */
INLINE __m512i dot4(__m512i sum, __m512i a, __m512i w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
}

/* Stores the sums as they are: out is int32_t, and `at` still counts its elements. */
INLINE void store_sums(const struct job *job, const uint8_t *at, size_t valid, const size_t mr,
                       const size_t nv, __m512i sum[][4])
{
    int32_t *out = (int32_t *)job->args->out + (at - (const uint8_t *)job->args->out);
    const uint64_t columns = job->columns >= 64 ? ~0ull : (1ull << job->columns) - 1;
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            if (i < valid) {
                _mm512_mask_storeu_epi32(out + i * job->args->out_stride + 16 * j,
                                         (__mmask16)(columns >> (16 * j)), sum[i][j]);
            }
        }
    }
}

/* way: enum ifd_finish, of the exact ones and FAST. */
INLINE void scale_and_store(const struct job *job, const int way, const struct bounds *bounds,
                            uint8_t *const *out, const size_t mr, const size_t nv, __m512i sum[][4])
{
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        scale_column(way, job->tail + 16 * j, 16 * nv, &sum[0][j], mr, 4);
    }
    store_rows(bounds, job->columns, out, mr, nv, sum);
}

/* Rows past the valid ones repeat the last one, which is stored again with the same bytes. */
INLINE void finish(const struct job *job, const size_t mr, const size_t nv, __m512i sum[][4])
{
    const struct ifd_packed *header = job->args->packed;
    const int way = header->private_[IFD_PACKED_FINISH];
    if (way == IFD_FINISH_NONE) {
        store_sums(job, job->out, job->valid, mr, nv, sum);
        return;
    }
    const struct bounds bounds = load_bounds(header);
    uint8_t *out[ROWS_MAX] = {job->out};
    UNROLL for (size_t i = 1; i < mr; i++)
    {
        out[i] = out[i - 1] + (i < job->valid ? job->args->out_stride : 0);
    }
    if (way == IFD_FINISH_FAST) {
        scale_and_store(job, IFD_FINISH_FAST, &bounds, out, mr, nv, sum);
    } else if (way == IFD_FINISH_EXACT) {
        scale_and_store(job, IFD_FINISH_EXACT, &bounds, out, mr, nv, sum);
    } else {
        scale_and_store(job, IFD_FINISH_EXACT_SIGN, &bounds, out, mr, nv, sum);
    }
}

INLINE void add_to_row(__m512i *sum, int32_t value, const size_t nv)
{
    const __m512i add = _mm512_set1_epi32(value);
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        sum[j] = _mm512_add_epi32(sum[j], add);
    }
}

/* Bias, and the row's own addend where there is one. */
INLINE void start_sums(const struct job *job, const size_t mr, const size_t nv, __m512i sum[][4])
{
    const int32_t *row_add = job->args->row_add;
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = _mm512_load_si512(job->tail + 16 * j);
        }
    }
    if (row_add) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            add_to_row(sum[i], row_add[job->m0 + (i < job->valid ? i : job->valid - 1)], nv);
        }
    }
}

/* Four bytes from anywhere. */
INLINE int32_t load_4(const unsigned char *p)
{
    int32_t x;
    __builtin_memcpy(&x, p, sizeof(x));
    return x;
}

#endif
