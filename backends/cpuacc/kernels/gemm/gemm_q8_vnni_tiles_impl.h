/* The q8 gemm with vpdpbusd: 4 inputs x 16 columns an instruction, one block of whole
 * vectors of columns.
 *
 * Tiles keep 24 sums (16 for one vector) in registers; weights are loaded once for all rows of a
 * tile and inputs are broadcast by plain loads, because a broadcast memory operand halves the rate
 * on some cores. The column order of pack.h makes packs and packus yield natural order. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_TILES_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_TILES_IMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_job_impl.h"

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

/* All inputs of a tap of mr rows. Four rows share an address, because an address a row would not
 * stay in registers. No line is fetched twice, since a second fetch costs time too. */
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

/* A stack of tiles of evenly spaced rows on one line: nearly all there are. The way to finish is
 * a constant in the loop, and few other values are alive, so that sums and addresses stay in
 * registers. */
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

/* Products of inputs k, k + apart … of a row, `streams` of them, for k = 0, step … below end.
 * Each has its own sums, since one product waits for the one before it. */
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

/* One row, whose time is that of reading the weights. Far weights are read at STREAMS places at
 * once and fetched ahead: memory and outer caches give more to several streams (VGG16's 103 MB
 * come at 16.6 GB/s instead of 14.2, where a core gets 16 to 17). Near weights are read in
 * order, and the first of the following weights, of this layer or the next, are fetched while
 * the sums are finished: the second-level cache of Zen 4 gives half of what the core can
 * multiply. */
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

/* Computes the next rows: as many of the tallest tiles as fit on the line, else the shortest
 * tile that holds all rows left, or the tallest. Returns the number of tiles. */
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
    /* no four rows cross a line whose length four divides */
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

#endif
