/* Q8 gemm of 24 or 40 columns with vpdpbusd: half vectors of columns, eight inputs of each.
 * Whole vectors, four inputs of each, would leave the last one half empty. Neighbouring sums are
 * added at the end. A block has three halves, or two at the end of 40 columns. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_HALVES_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_HALVES_IMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_job_impl.h"

enum {
    HALVES_COLUMNS = 24,
    HALVES_INPUTS = 8,
    HALVES_ROWS = 8,
    HALVES_WIDTH = 32, /* of a tail */
    HALVES_TAIL_BYTES = IFD_TAIL_ROWS * HALVES_WIDTH * 4
};

/* Halves of the block that begins at column n0 of n. */
INLINE size_t block_halves(size_t n, size_t n0)
{
    return n - n0 >= HALVES_COLUMNS ? 3 : 2;
}

/* Column of the block for pair c of lanes of half h. Folding puts four neighbouring columns into
 * four neighbouring lanes, or, of the third half, two columns of two rows. */
INLINE size_t half_column(size_t h, size_t c)
{
    return h == 2 ? 16 + c : c / 2 * 4 + 2 * h + c % 2;
}

/* The one that a slot of a tail is for. */
INLINE size_t half_tail_column(size_t slot)
{
    return slot < 16 ? slot : 16 + slot % 16 / 4 * 2 + slot % 2;
}

INLINE __m512i fold_halves(__m512i a, __m512i b)
{
    const __m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xdd)));
}

INLINE __m512i load_inputs(const unsigned char *p)
{
    int64_t x;
    __builtin_memcpy(&x, p, sizeof(x));
    return _mm512_set1_epi64(x);
}

/* Scaled sums of rows i and i + 1: columns 0 to 15 of the one, of the other, and the rest of
 * both. */
INLINE void store_halves(const struct job *job, const struct bounds *bounds, const __m512i *sum,
                         const size_t i, const size_t halves)
{
    static const uint16_t order[32]
        __attribute__((aligned(64))) = {0, 1, 8, 9, 16, 17, 24, 25, 4,  12, 20, 28, 0,  0,
                                        0, 0, 2, 3, 10, 11, 18, 19, 26, 27, 5,  13, 21, 29};
    const __m512i rest = sum[halves - 1];
    const __m512i bytes = _mm512_permutexvar_epi16(_mm512_load_si512(order),
                                                   pack_bytes(sum[0], sum[1], rest, rest, bounds));
    uint8_t *out = job->out + i * job->args->out_stride;
    store_32(_mm512_castsi512_si256(bytes), 8 * halves, out);
    if (i + 1 < job->valid) {
        store_32(_mm512_extracti64x4_epi64(bytes, 1), 8 * halves, out + job->args->out_stride);
    }
}

INLINE void finish_halves(const struct job *job, const int way, const size_t halves,
                          __m512i sum[][3])
{
    const struct bounds bounds = load_bounds(job->args->packed);
    __m512i folded[HALVES_ROWS / 2][3];
    UNROLL for (size_t i = 0; i < HALVES_ROWS / 2; i++)
    {
        const __m512i *a = sum[2 * i], *b = sum[2 * i + 1];
        const __m512i bias = _mm512_load_si512(job->tail);
        folded[i][0] = _mm512_add_epi32(bias, fold_halves(a[0], a[1]));
        folded[i][1] = _mm512_add_epi32(bias, fold_halves(b[0], b[1]));
        if (halves == 3) {
            folded[i][2] =
                _mm512_add_epi32(_mm512_load_si512(job->tail + 16), fold_halves(a[2], b[2]));
        }
    }
    UNROLL for (size_t j = 0; j < halves; j++)
    {
        scale_column(way, job->tail + (j == 2 ? 16 : 0), HALVES_WIDTH, &folded[0][j],
                     HALVES_ROWS / 2, 3);
    }
    UNROLL for (size_t i = 0; i < HALVES_ROWS / 2; i++)
    {
        if (2 * i < job->valid) {
            store_halves(job, &bounds, folded[i], 2 * i, halves);
        }
    }
}

INLINE void tile_halves(const struct job *job, const int way, const size_t halves)
{
    const struct ifd_packed *header = job->args->packed;
    const int8_t *w = job->weights;
    __m512i sum[HALVES_ROWS][3];
    UNROLL for (size_t i = 0; i < HALVES_ROWS; i++)
    {
        UNROLL for (size_t h = 0; h < halves; h++)
        {
            sum[i][h] = _mm512_setzero_si512();
        }
    }
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *a[HALVES_ROWS];
        ifd_rows_tap(job->args, 1, job->m0, HALVES_ROWS, job->valid, t, job->start, a);
        for (size_t k = 0; k < header->k; k += HALVES_INPUTS, w += 64 * halves) {
            __m512i column[3];
            UNROLL for (size_t h = 0; h < halves; h++)
            {
                column[h] = _mm512_load_si512(w + 64 * h);
            }
            UNROLL for (size_t i = 0; i < HALVES_ROWS; i++)
            {
                const __m512i x = load_inputs(a[i] + k);
                UNROLL for (size_t h = 0; h < halves; h++)
                {
                    sum[i][h] = dot4(sum[i][h], x, column[h]);
                }
            }
        }
    }
    finish_halves(job, way, halves, sum);
}

#define TILE(halves, way)                                                                          \
    __attribute__((noinline)) static void halves_##halves##_##way(const struct job *job)           \
    {                                                                                              \
        tile_halves(job, IFD_FINISH_##way, halves);                                                \
    }
TILE(2, FAST)
TILE(2, EXACT)
TILE(2, EXACT_SIGN)
TILE(3, FAST)
TILE(3, EXACT)
TILE(3, EXACT_SIGN)
#undef TILE

/* All rows of the job's block. */
static void run_halves(struct job *job, size_t halves)
{
    static void (*const run_tile[2][3])(const struct job *) = {
        {halves_2_FAST, halves_2_EXACT, halves_2_EXACT_SIGN},
        {halves_3_FAST, halves_3_EXACT, halves_3_EXACT_SIGN}};
    const struct ifd_gemm_args *args = job->args;
    const struct ifd_packed *header = args->packed;
    uint8_t *out = job->out;
    struct ifd_row_cursor cursor = {0, 0};
    for (job->m0 = 0; job->m0 < args->m; job->m0 += job->valid) {
        const size_t left = args->m - job->m0;
        job->valid = left < HALVES_ROWS ? left : HALVES_ROWS;
        job->out = out + job->m0 * args->out_stride;
        if (!args->rows) {
            ifd_rows_next(args, 1, HALVES_ROWS, job->valid, &cursor, job->start);
        }
        run_tile[halves - 2][header->private_[IFD_PACKED_FINISH]](job);
    }
}

#endif
