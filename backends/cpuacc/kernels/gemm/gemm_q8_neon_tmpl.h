/* The q8 gemm with NEON, the body of a table: all but the sums of a tile.
 *
 * The includer defines before
 *   SQUARES       0 or 1: how the sums of a tile lie (gemm_q8_neon_job_tmpl.h, which it includes
 *                 for its types)
 *   KR, WEIGHT    inputs a lane, and the packed type
 *   sum_tap(w, a, offset, depth, mr, nv, sum)
 *                 adds the products of one tap to the sums of a tile and returns the weights behind
 *                 those that it used. The inputs begin at a[row] + offset; depth is a multiple of
 *                 KR; mr and nv are constants, it is inlined
 *   IFD_TABLE     the table to define (on the command line) */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_NEON_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_NEON_TMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_q8_neon_job_tmpl.h"

INLINE void sum_table(const struct job *job, size_t depth, const size_t mr, const size_t nv,
                      int32x4_t SUMS)
{
    const struct ifd_gemm_args *args = job->args;
    const struct ifd_packed *header = args->packed;
    const WEIGHT *w = job->weights;
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *row[TALL];
        ifd_rows_tap(args, 1, job->m0, mr, job->valid, t, job->start, row);
        w = sum_tap(w, row, 0, depth, mr, nv, sum);
    }
}

/* Stacked tiles. usual: finish is a constant, there is no table of rows and no row_add, and
 * tiles are complete. one_tap: a constant 1 if there is one tap and all is usual. */
INLINE void run_tiles(const struct job *job, const int finish, const int usual, const int one_tap,
                      const size_t mr, const size_t nv)
{
    const struct ifd_gemm_args *args = job->args;
    const struct ifd_packed *header = args->packed;
    const size_t depth = (header->k + KR - 1) / KR * KR, taps = header->taps;
    const size_t advance = mr * args->a_stride, tap_stride = args->tap_stride;
    const struct output output = load_output(args);
    const unsigned char *a[TALL];
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        a[i] = job->start[i];
    }
    int8_t *out = job->out;
    size_t m0 = job->m0, offset = 0;
    for (size_t left = job->tiles; left > 0; left--, m0 += mr, offset += advance) {
        int32x4_t SUMS;
        start_sums(job, usual, m0, mr, nv, sum);
        if (one_tap) {
            (void)sum_tap(job->weights, a, offset, depth, mr, nv, sum);
        } else if (!usual && args->rows) {
            sum_table(job, depth, mr, nv, sum);
        } else {
            const WEIGHT *w = job->weights;
            size_t at = offset;
            for (size_t t = 0; t < taps; t++, at += tap_stride) {
                w = sum_tap(w, a, at, depth, mr, nv, sum);
            }
        }
        finish_tile(job, &output, finish, usual, out, mr, nv, sum);
        out += mr * output.stride;
    }
}

static int is_usual(const struct job *job, size_t mr, size_t nv)
{
    const struct ifd_gemm_args *args = job->args;
    return !args->rows && !args->row_add && job->valid == mr && job->columns == 4 * nv;
}

#define PASTE_(a, b, c) a##b##x##c
#define PASTE(a, b, c)  PASTE_(a, b, c)
#define TILES(mr, nv)                                                                              \
    static void PASTE(tiles_, mr, nv)(const struct job *job)                                       \
    {                                                                                              \
        const struct ifd_packed *header = job->args->packed;                                       \
        const int finish = header->private_[IFD_PACKED_FINISH];                                    \
        const int usual = mr == TALL && is_usual(job, mr, nv), one_tap = header->taps == 1;        \
        if (usual && finish == NEON_FINISH_RELU && one_tap) {                                      \
            run_tiles(job, NEON_FINISH_RELU, 1, 1, mr, nv);                                        \
        } else if (usual && finish == NEON_FINISH_RELU) {                                          \
            run_tiles(job, NEON_FINISH_RELU, 1, 0, mr, nv);                                        \
        } else if (usual && finish == NEON_FINISH_LINEAR && one_tap) {                             \
            run_tiles(job, NEON_FINISH_LINEAR, 1, 1, mr, nv);                                      \
        } else {                                                                                   \
            run_tiles(job, finish, 0, 0, mr, nv);                                                  \
        }                                                                                          \
    }
#define WIDTH(nv) TILES(TALL, nv) TILES(2, nv) TILES(1, nv)
#define ROW(nv)                                                                                    \
    {                                                                                              \
        {TALL, PASTE(tiles_, TALL, nv)}, {2, PASTE(tiles_, 2, nv)},                                \
        {                                                                                          \
            1, PASTE(tiles_, 1, nv)                                                                \
        }                                                                                          \
    }
WIDTH(1)
WIDTH(2)
#if WIDE == 4
WIDTH(3)
WIDTH(4)
#endif

static const struct ifd_pack_layout layout = {.lanes = 4,
                                              .quad = 4,
                                              .kr = KR,
                                              .bytes = sizeof(WEIGHT),
                                              .max_nv = WIDE,
                                              .mr = {TALL, TALL, TALL, TALL}};

/* By width: the tiles from tallest to shortest. */
static const struct {
    size_t rows;
    void (*run)(const struct job *);
} tiles[WIDE][3] = {
    ROW(1),
    ROW(2),
#if WIDE == 4
    ROW(3),
    ROW(4),
#endif
};

/* All rows of one block: as many of the tallest tiles as one line holds, else the shortest tile
 * that holds all rows left. */
static void run_block(struct job *job, size_t nv)
{
    const struct ifd_gemm_args *args = job->args;
    const size_t len = args->row_len != 0 ? args->row_len : args->m;
    struct ifd_row_cursor cursor = {0, 0};
    int8_t *out = job->out;
    for (job->m0 = 0; job->m0 < args->m; job->m0 += job->valid * job->tiles) {
        const size_t left = args->m - job->m0;
        size_t pick = 2;
        while (pick > 0 && tiles[nv - 1][pick].rows < left) {
            pick--;
        }
        const size_t rows = tiles[nv - 1][pick].rows;
        job->valid = left < rows ? left : rows;
        job->out = out + job->m0 * args->out_stride;
        job->tiles = 1;
        if (!args->rows) {
            const size_t line = len - cursor.x < left ? len - cursor.x : left;
            ifd_rows_next(args, 1, rows, job->valid, &cursor, job->start);
            if (pick == 0 && line >= rows) {
                job->tiles = line / rows;
                cursor.x += (job->tiles - 1) * rows;
                if (job->tiles > 1 && cursor.x == len) {
                    cursor.x = 0;
                    cursor.y++;
                }
            }
        } else {
            for (size_t i = 0; i < TALL; i++) {
                job->start[i] = args->a; /* not used */
            }
        }
        tiles[nv - 1][pick].run(job);
    }
}

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const unsigned char *blocks = (const unsigned char *)args->packed + IFD_PACKED_HEADER;
    const size_t depth = (size_t)header->taps * ((header->k + KR - 1) / KR * KR);
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        size_t columns = header->n - n0 < header->nr ? header->n - n0 : header->nr;
        size_t nv = (columns + 3) / 4;
        const WEIGHT *weights =
            (const WEIGHT *)(const void *)(blocks + n0 / header->nr * header->unit_bytes);
        struct job job = {.args = args,
                          .weights = weights,
                          .tail = (const int32_t *)(const void *)(weights + depth * nv * 4),
                          .columns = columns,
                          .out = (int8_t *)args->out + n0};
        run_block(&job, nv);
    }
}

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS);
}

/* Sum of the magnitudes of `count` weights, before the zero point is taken off. */
static int64_t magnitude(const int8_t *w, size_t count, size_t stride)
{
    int64_t sum = 0;
    size_t i = 0;
    for (; stride == 1 && i + 16 <= count; i += 16) {
        const uint8x16_t x = vreinterpretq_u8_s8(vabsq_s8(vld1q_s8(w + i)));
        const uint64x2_t pairs = vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(x)));
        sum += (int64_t)(vgetq_lane_u64(pairs, 0) + vgetq_lane_u64(pairs, 1));
    }
    for (; i < count; i++) {
        const int x = w[i * stride];
        sum += x < 0 ? -x : x;
    }
    return sum;
}

static int all_small(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant)
{
    const int64_t zero = requant->weight_zero < 0 ? -requant->weight_zero : requant->weight_zero;
    for (size_t c = 0; c < weights->n; c++) {
        const int8_t *w = (const int8_t *)weights->w + c * weights->stride_n;
        int64_t sum = zero * (int64_t)(weights->taps * weights->k);
        for (size_t t = 0; t < weights->taps; t++) {
            sum += magnitude(w + t * weights->stride_t, weights->k, weights->stride_k);
        }
        if (!is_small(requant, c, sum)) {
            return 0;
        }
    }
    return 1;
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    ifd_pack_gemm_q8(&layout, weights, requant, dst);
    struct ifd_packed *header = dst;
    unsigned char *block = (unsigned char *)dst + IFD_PACKED_HEADER;
    const size_t depth = (size_t)header->taps * ((header->k + KR - 1) / KR * KR);
    for (size_t n0 = 0; n0 < weights->n; n0 += header->nr, block += header->unit_bytes) {
        const size_t columns = weights->n - n0 < header->nr ? weights->n - n0 : header->nr;
        const size_t width = (columns + 3) / 4 * 4;
        WEIGHT *w = (WEIGHT *)(void *)block;
        int32_t *tail = (int32_t *)(void *)(w + depth * width);
        neon_tail(requant, width, tail);
#if SQUARES
        repeat_columns(width, tail);
#endif
    }
    header->private_[IFD_PACKED_FINISH] =
        neon_finish(requant, requant->round == IFD_ROUND_DOUBLE && all_small(weights, requant));
}

static void row_sum(const int8_t *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum)
{
    for (size_t i = 0; i < m; i++, a += a_stride) {
        int32x4_t sum = vdupq_n_s32(0);
        size_t j = 0;
        for (; j + 16 <= k; j += 16) {
            sum = vpadalq_s16(sum, vpaddlq_s8(vld1q_s8(a + j)));
        }
        int32_t total = vgetq_lane_s32(sum, 0) + vgetq_lane_s32(sum, 1) + vgetq_lane_s32(sum, 2) +
                        vgetq_lane_s32(sum, 3);
        for (; j < k; j++) {
            total += a[j];
        }
        ret_sum[i] = factor * total;
    }
}

const struct ifd_kern_gemm_q8 IFD_TABLE = {packed_bytes, pack, run, row_sum};

#endif
