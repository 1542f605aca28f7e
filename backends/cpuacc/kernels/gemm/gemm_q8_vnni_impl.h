/* The q8 matrix product with vpdpbusd: 4 inputs x 16 columns an instruction. The whole of the VNNI
 * table, and the small cases of the AMX table.
 *
 * Tiles keep 24 sums (16 for one vector) in registers; weights are loaded once for all rows of a
 * tile and inputs are broadcast by plain loads, because a broadcast memory operand halves the rate
 * on some cores. The column order of pack.h makes packs and packus yield natural order. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_IMPL_H

#include "backends/cpuacc/kernels/simd/finish_avx512.h"
#include "backends/cpuacc/kernels/gemm/rows.h"

enum { ROWS_MAX = 16 }; /* of a tile */

/* What a block adds to the products of its weights: where pack() took the zero point off them, a few have nine bits. Their
 * rest stands here, with the four inputs each that it is for. */
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
    size_t next_step;   /* so many bytes, */
    size_t next_inputs; /* or a line for so many inputs */
    const struct extras *extras; /* NULL: none */
};

/* A row's weights are far where a tap has so many inputs: a block of them takes 64 KB. */
enum { FAR_INPUTS_MIN = 1024 };

/* Weights that so few rows use are waited for, unless they are fetched while those before them are at work. */
enum { AHEAD_ROWS_MIN = 24, AHEAD_ROWS_MAX = 512 };
_Static_assert(AHEAD_ROWS_MAX <= 64 * 16, "a turn of the narrowest tile fetches a byte at least");

/* One instruction by hand: with the intrinsic gcc 12 spills the sums. */
INLINE __m512i dot4(__m512i sum, __m512i a, __m512i w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
}

/* The sums themselves, where out is int32_t: at still counts its elements. */
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

/* Rows past the valid ones repeat the last, which then is stored again with the same bytes. */
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

/* Four inputs of each of mr rows: those of row i are at a[i / group] + i % group * step + k. */
INLINE void add_products(const int8_t *w, const unsigned char *const *a, const size_t k,
                         const size_t group, const size_t step, const size_t mr, const size_t nv,
                         __m512i sum[][4])
{
    __m512i column[4];
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        column[j] = _mm512_load_si512(w + 64 * j);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        __m512i x = _mm512_set1_epi32(load_4(a[i / group] + i % group * step + k));
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = dot4(sum[i][j], x, column[j]);
        }
    }
}

/* All inputs of a tap of mr rows, which share an address by fours: as many as rows would not stay in registers. No line is fetched
 * twice, which takes its time as well. */
INLINE void add_fours(const struct job *job, const int8_t *w, const unsigned char **a,
                      size_t spacing, size_t k_bytes, const char *next, const size_t mr,
                      const size_t nv, __m512i sum[][4])
{
    for (size_t k = 0; k < k_bytes; next += job->next_inputs / 4 * job->next_step) {
        const size_t left = k_bytes - k,
                     end = k + (left < job->next_inputs ? left : job->next_inputs);
        _mm_prefetch(next, _MM_HINT_T1);
        do {
            add_products(w, a, 0, 4, spacing, mr, nv, sum);
            UNROLL for (size_t i = 0; 4 * i < mr; i++)
            {
                a[i] += 4;
            }
            k += 4;
            w += 64 * nv;
        } while (k < end);
    }
}

INLINE void tile(const struct job *job, const size_t mr, const size_t nv)
{
    const struct ifd_packed *header = job->args->packed;
    const size_t k_bytes = (size_t)header->private_[IFD_PACKED_DEPTH];
    const int8_t *w = job->weights;
    const char *next = job->next;
    __m512i sum[ROWS_MAX][4];
    start_sums(job, mr, nv, sum);
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *a[ROWS_MAX];
        if (mr % 4 == 0 && mr > 4 && job->spacing != 0) {
            UNROLL for (size_t i = 0; i < mr / 4; i++)
            {
                a[i] = job->start[4 * i] + t * job->args->tap_stride;
            }
            add_fours(job, w, a, job->spacing, k_bytes, next, mr, nv, sum);
            w += 16 * nv * k_bytes;
            next += k_bytes / 4 * job->next_step;
            continue;
        }
        ifd_rows_tap(job->args, 1, job->m0, mr, job->valid, t, job->start, a);
        for (size_t k = 0; k < k_bytes; k += 4, w += 64 * nv) {
            _mm_prefetch(next, _MM_HINT_T1);
            next += job->next_step;
            add_products(w, a, k, 1, 0, mr, nv, sum);
        }
    }
    for (size_t e = 0; job->extras && e < job->extras->count; e++) {
        const unsigned char *a[ROWS_MAX];
        ifd_rows_tap(job->args, 1, job->m0, mr, job->valid, job->extras->tap[e], job->start, a);
        add_products(job->extras->weights[e], a, job->extras->k[e], 1, 0, mr, nv, sum);
    }
    finish(job, mr, nv, sum);
}

/* Every fourth address of evenly spaced rows. */
INLINE void every_fourth(const unsigned char *first, size_t spacing, const size_t mr,
                         const unsigned char **ret_rows)
{
    UNROLL for (size_t i = 0; 4 * i < mr; i++)
    {
        ret_rows[i] = first + 4 * i * spacing;
    }
}

/* A stack of tiles, of evenly spaced rows on one line: nearly all there are. The way to finish is known when the loop
 * is compiled, and so little else is alive in it that neither sums nor addresses leave their registers. */
INLINE void stack(const struct job *job, const int way, size_t tiles, const size_t mr,
                  const size_t nv)
{
    const struct ifd_gemm_args *args = job->args;
    const struct ifd_packed *header = args->packed;
    const size_t k_bytes = (size_t)header->private_[IFD_PACKED_DEPTH], taps = header->taps;
    const size_t spacing = args->a_stride, stride = args->out_stride;
    const size_t extra_count = job->extras ? job->extras->count : 0;
    const struct bounds bounds = load_bounds(header);
    const int32_t *row_add = args->row_add ? args->row_add + job->m0 : NULL;
    const unsigned char *first = job->start[0];
    const char *next = job->next;
    uint8_t *to = job->out;
    for (; tiles > 0; tiles--, first += mr * spacing, to += mr * stride) {
        const int8_t *w = job->weights;
        __m512i sum[ROWS_MAX][4];
        uint8_t *out[ROWS_MAX];
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
                add_to_row(sum[i], row_add[i], nv);
            }
            row_add += mr;
        }
        for (size_t e = 0; e < extra_count; e++) {
            const unsigned char *a[4];
            every_fourth(first + job->extras->tap[e] * args->tap_stride + job->extras->k[e],
                         spacing, mr, a);
            add_products(job->extras->weights[e], a, 0, 4, spacing, mr, nv, sum);
        }
        for (size_t t = 0; t < taps; t++) {
            const unsigned char *a[4];
            every_fourth(first + t * args->tap_stride, spacing, mr, a);
            add_fours(job, w, a, spacing, k_bytes, next, mr, nv, sum);
            w += 16 * nv * k_bytes;
            next += k_bytes / 4 * job->next_step;
        }
        if (way == IFD_FINISH_NONE) {
            store_sums(job, to, mr, mr, nv, sum);
            continue;
        }
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            out[i] = to + i * stride;
        }
        scale_and_store(job, way, &bounds, out, mr, nv, sum);
    }
}

/* Products of inputs k, k + apart … of a row, `streams` of them, for k = 0, step … below end: each to sums of its own, since
 * one product waits for the one before it. */
INLINE void add_row(const int8_t *w, const unsigned char *a, size_t end, const size_t step,
                    const size_t apart, const size_t streams, const int is_far, const size_t nv,
                    __m512i sum[][4])
{
    for (size_t k = 0; k < end; k += step) {
        UNROLL for (size_t i = 0; i < streams; i++)
        {
            __m512i x = _mm512_set1_epi32(load_4(a + i * apart + k));
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                const int8_t *from = w + 16 * nv * (i * apart + k) + 64 * j;
                if (is_far) {
                    _mm_prefetch((const char *)from + 1024, _MM_HINT_T0);
                }
                sum[i][j] = dot4(sum[i][j], x, _mm512_load_si512(from));
            }
        }
    }
}

/* One row. What takes the time are the weights. Far ones are read at STREAMS places at once and fetched ahead: memory and
 * outer caches give more to several streams (VGG16's 103 MB come at 16.6 GB/s in place of 14.2, of 16 to 17 that a core gets).
 * Others are read as they lie, and while the sums are finished the first of those that follow, of this layer or the next, come:
 * the second-level cache of Zen 4 gives half of what the core can multiply. */
INLINE void tile_row(const struct job *job, const size_t nv, const int is_far)
{
    enum { STREAMS = 4, NEXT_BYTES = 512 };
    const size_t streams = is_far || nv < 3 ? STREAMS : 2;
    const struct ifd_packed *header = job->args->packed;
    const size_t k_bytes = (size_t)header->private_[IFD_PACKED_DEPTH];
    const size_t part = k_bytes / 4 / streams * 4, end = part * streams;
    const int8_t *w = job->weights;
    __m512i sum[STREAMS][4];
    start_sums(job, 1, nv, sum);
    UNROLL for (size_t i = 1; i < streams; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = _mm512_setzero_si512();
        }
    }
    for (size_t t = 0; t < header->taps; t++, w += 16 * nv * k_bytes) {
        const unsigned char *a[1];
        ifd_rows_tap(job->args, 1, job->m0, 1, job->valid, t, job->start, a);
        if (is_far) {
            add_row(w, a[0], part, 4, part, streams, 1, nv, sum);
        } else {
            add_row(w, a[0], end, 4 * streams, 4, streams, 0, nv, sum);
        }
        add_row(w + 16 * nv * end, a[0] + end, k_bytes - end, 4, 0, 1, 0, nv, sum);
    }
    for (size_t e = 0; job->extras && e < job->extras->count; e++) {
        const unsigned char *a[1];
        ifd_rows_tap(job->args, 1, job->m0, 1, job->valid, job->extras->tap[e], job->start, a);
        add_products(job->extras->weights[e], a, job->extras->k[e], 1, 0, 1, nv, sum);
    }
    for (size_t i = 0; i < NEXT_BYTES; i += 64) {
        _mm_prefetch(job->next + i, _MM_HINT_T0);
    }
    UNROLL for (size_t i = 1; i < streams; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[0][j] = _mm512_add_epi32(sum[0][j], sum[i][j]);
        }
    }
    finish(job, 1, nv, sum);
}

#define TILE(mr, nv)                                                                               \
    static void tile_##mr##x##nv(const struct job *job)                                            \
    {                                                                                              \
        tile(job, mr, nv);                                                                         \
    }
#define TILE_ROW(nv)                                                                               \
    static void tile_1x##nv(const struct job *job)                                                 \
    {                                                                                              \
        const struct ifd_packed *header = job->args->packed;                                       \
        if (header->private_[IFD_PACKED_DEPTH] < FAR_INPUTS_MIN) {                                 \
            tile_row(job, nv, 0);                                                                  \
        } else {                                                                                   \
            tile_row(job, nv, 1);                                                                  \
        }                                                                                          \
    }
TILE(16, 1)
TILE(8, 1)
TILE(4, 1)
TILE_ROW(1)
TILE(12, 2)
TILE(6, 2)
TILE(2, 2)
TILE_ROW(2)
TILE(8, 3)
TILE(4, 3)
TILE(2, 3)
TILE_ROW(3)
TILE(6, 4)
TILE(4, 4)
TILE(2, 4)
TILE_ROW(4)
#undef TILE
#undef TILE_ROW

#define STACK(mr, nv)                                                                              \
    static void stack_##mr##x##nv(const struct job *job, size_t tiles)                             \
    {                                                                                              \
        const struct ifd_packed *header = job->args->packed;                                       \
        const int way = header->private_[IFD_PACKED_FINISH];                                       \
        if (way == IFD_FINISH_FAST) {                                                              \
            stack(job, IFD_FINISH_FAST, tiles, mr, nv);                                            \
        } else if (way == IFD_FINISH_EXACT) {                                                      \
            stack(job, IFD_FINISH_EXACT, tiles, mr, nv);                                           \
        } else if (way == IFD_FINISH_EXACT_SIGN) {                                                 \
            stack(job, IFD_FINISH_EXACT_SIGN, tiles, mr, nv);                                      \
        } else {                                                                                   \
            stack(job, IFD_FINISH_NONE, tiles, mr, nv);                                            \
        }                                                                                          \
    }
STACK(16, 1)
STACK(12, 2)
STACK(8, 3)
STACK(6, 4)
#undef STACK

/* By width: stacks of the tallest tiles. */
static void (*const stacks[4])(const struct job *, size_t) = {stack_16x1, stack_12x2, stack_8x3,
                                                              stack_6x4};

/* By width: the tiles from tallest to shortest. */
static const struct {
    size_t rows;
    void (*run)(const struct job *);
} tiles[4][4] = {
    {{16, tile_16x1}, {8, tile_8x1}, {4, tile_4x1}, {1, tile_1x1}},
    {{12, tile_12x2}, {6, tile_6x2}, {2, tile_2x2}, {1, tile_1x2}},
    {{8, tile_8x3}, {4, tile_4x3}, {2, tile_2x3}, {1, tile_1x3}},
    {{6, tile_6x4}, {4, tile_4x4}, {2, tile_2x4}, {1, tile_1x4}},
};

/* The next rows: as many of the tallest tiles as fit on the line, or the shortest tile that takes all that is left, or the
 * tallest. Returns how many tiles that were. */
static size_t run_rows(struct job *job, size_t nv, size_t line_length, struct ifd_row_cursor *at)
{
    const struct ifd_gemm_args *args = job->args;
    const size_t left = args->m - job->m0, tallest = tiles[nv - 1][0].rows;
    const size_t on_line = line_length - at->x < left ? line_length - at->x : left;
    if (!args->rows && on_line >= tallest) {
        const size_t count = on_line / tallest;
        job->valid = count * tallest;
        job->start[0] =
            (const unsigned char *)args->a + at->y * args->row_stride + at->x * args->a_stride;
        stacks[nv - 1](job, count);
        at->x = on_line == job->valid ? 0 : at->x + job->valid;
        at->y += at->x == 0;
        return count;
    }
    size_t pick = 3;
    while (pick > 0 && tiles[nv - 1][pick].rows < left) {
        pick--;
    }
    const size_t rows = tiles[nv - 1][pick].rows;
    job->valid = left < rows ? left : rows;
    /* lines that fours divide end between them */
    job->spacing = job->valid == rows && line_length % 4 == 0 ? args->a_stride : 0;
    if (args->rows) {
        job->spacing = 0;
    } else {
        ifd_rows_next(args, 1, rows, job->valid, at, job->start);
    }
    tiles[nv - 1][pick].run(job);
    return 1;
}

static void run_block(struct job *job, size_t nv, int is_last)
{
    const struct ifd_gemm_args *args = job->args;
    const struct ifd_packed *header = args->packed;
    const size_t turns = header->taps * (size_t)header->private_[IFD_PACKED_DEPTH] / 4;
    const int is_ahead = args->m >= AHEAD_ROWS_MIN && args->m <= AHEAD_ROWS_MAX;
    const size_t line_length = args->row_len != 0 ? args->row_len : args->m;
    struct ifd_row_cursor cursor = {0, 0};
    uint8_t *out = job->out;
    const char *behind = is_last ? (const char *)header + header->bytes
                                 : (const char *)job->weights + header->unit_bytes;
    job->next = is_ahead ? behind : (const char *)job->weights;
    job->next_step = is_ahead ? 64 * nv / (args->m / tiles[nv - 1][0].rows) : 0;
    job->next_inputs = is_ahead ? 64 / job->next_step * 4 : 4 * turns;
    for (job->m0 = 0; job->m0 < args->m; job->m0 += job->valid) {
        job->out = out + job->m0 * args->out_stride;
        job->next += run_rows(job, nv, line_length, &cursor) * turns * job->next_step;
    }
}

#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_halves.h"

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const size_t k_bytes = (size_t)header->taps * (size_t)header->private_[IFD_PACKED_DEPTH];
    const int8_t *weights = (const int8_t *)args->packed + IFD_PACKED_HEADER;
    struct job job;
    job.args = args;
    job.m0 = 0;
    job.valid = 1;
    if (args->n_begin > 0) {
        weights += args->n_begin / header->nr * header->unit_bytes;
    }
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        const size_t left = header->n - n0;
        const int is_last = left <= header->nr;
        const size_t nv = ((is_last ? left : header->nr) + 15) / 16;
        job.columns = is_last ? left : header->nr;
        job.weights = weights;
        job.out = (uint8_t *)args->out + n0;
        if (header->nr == HALVES_COLUMNS) {
            const size_t halves = block_halves(header->n, n0);
            job.tail = (const int32_t *)(const void *)(weights + k_bytes * halves * 8);
            weights += header->unit_bytes;
            run_halves(&job, halves);
            continue;
        }
        job.tail = (const int32_t *)(const void *)(weights + k_bytes * nv * 16);
        job.extras = header->folds_zero ? block_extras(header, n0 / header->nr) : NULL;
        weights += header->unit_bytes;
        if (args->m == 1) {
            job.next = is_last ? (const char *)header + header->bytes : (const char *)weights;
            job.start[0] = args->a;
            tiles[nv - 1][3].run(&job);
        } else {
            run_block(&job, nv, is_last);
        }
    }
}

/* Sums of four rows of at most 16 inputs each. */
INLINE void row_sum_4(const uint8_t *a, size_t k, size_t a_stride, int32_t factor, int32_t *ret_sum)
{
    const __m128i mask = _mm_movm_epi8((__mmask16)((1u << k) - 1));
    __m128i row[4];
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        row[i] = _mm_loadu_si128((const __m128i *)(const void *)(a + i * a_stride));
    }
    __m256i lo = _mm256_inserti128_si256(_mm256_castsi128_si256(row[0]), row[1], 1);
    __m256i hi = _mm256_inserti128_si256(_mm256_castsi128_si256(row[2]), row[3], 1);
    __m512i x = _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
    x = _mm512_sad_epu8(_mm512_and_si512(x, _mm512_broadcast_i32x4(mask)), _mm512_setzero_si512());
    x = _mm512_add_epi64(x, _mm512_unpackhi_epi64(x, x));
    __m512i sums = _mm512_permutexvar_epi32(
        _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0), x);
    _mm_storeu_si128((__m128i *)(void *)ret_sum,
                     _mm_mullo_epi32(_mm512_castsi512_si128(sums), _mm_set1_epi32(factor)));
}

/* The sums of two vectors' halves, quarters ...: lanes of a below, those of b above. */
INLINE __m512i add_halves(__m512i a, __m512i b)
{
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee));
}

INLINE __m512i add_quarters(__m512i a, __m512i b)
{
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}

INLINE __m512i add_eighths(__m512i a, __m512i b)
{
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Sums of eight rows: those of every row in eight lanes, then a tree that adds lanes of all rows at once. */
INLINE void row_sum_8(const uint8_t *a, size_t k, size_t a_stride, int32_t factor, int32_t *ret_sum)
{
    __m512i x[8];
    UNROLL for (size_t i = 0; i < 8; i++)
    {
        x[i] = _mm512_setzero_si512();
    }
    for (size_t j = 0; j < k; j += 64) {
        const __mmask64 mask = k - j >= 64 ? ~0ull : (1ull << (k - j)) - 1;
        UNROLL for (size_t i = 0; i < 8; i++)
        {
            const __m512i v = _mm512_maskz_loadu_epi8(mask, a + i * a_stride + j);
            x[i] = _mm512_add_epi64(x[i], _mm512_sad_epu8(v, _mm512_setzero_si512()));
        }
    }
    /* lanes of the result: rows 0 1, 2 3, 4 5, 6 7 */
    __m512i ab = add_halves(add_eighths(x[0], x[1]), add_eighths(x[2], x[3]));
    __m512i cd = add_halves(add_eighths(x[4], x[5]), add_eighths(x[6], x[7]));
    __m256i sums = _mm512_cvtepi64_epi32(add_quarters(ab, cd));
    _mm256_storeu_si256((__m256i *)(void *)ret_sum,
                        _mm256_mullo_epi32(sums, _mm256_set1_epi32(factor)));
}

static void row_sum(const uint8_t *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum)
{
    size_t i = 0;
    for (; k <= 16 && i + 4 <= m; i += 4, a += 4 * a_stride) {
        row_sum_4(a, k, a_stride, factor, ret_sum + i);
    }
    for (; i + 8 <= m; i += 8, a += 8 * a_stride) {
        row_sum_8(a, k, a_stride, factor, ret_sum + i);
    }
    for (; i < m; i++, a += a_stride) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t j = 0; j < k; j += 64) {
            __mmask64 mask = k - j >= 64 ? ~0ull : (1ull << (k - j)) - 1;
            __m512i x = _mm512_maskz_loadu_epi8(mask, a + j);
            sum = _mm512_add_epi64(sum, _mm512_sad_epu8(x, _mm512_setzero_si512()));
        }
        ret_sum[i] = factor * (int32_t)_mm512_reduce_add_epi64(sum);
    }
}

#endif
