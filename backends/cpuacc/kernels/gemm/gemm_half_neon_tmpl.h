/* gemm of 16-bit operands with NEON, the body of a table: all but the sums of a tile.
 *
 * The includer defines before
 *   VECTOR, MAX_NV   columns a vector; vectors a block at most (3 or 4)
 *   KR, FORMAT       inputs a lane; how pack() makes weights of floats
 * and after
 *   add_tap(row, k, w, sum, mr, nv)   adds the products of the k inputs of each row with the
 *                                     weights from w on; inlined
 *   narrow(), speed() and the table. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_HALF_NEON_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_HALF_NEON_TMPL_H

#include <arm_neon.h>

#include "backends/cpuacc/kernels/simd/inline.h"
#include "backends/cpuacc/kernels/pack.h"
#include "backends/cpuacc/kernels/gemm/rows_impl.h"

enum {
    TALL = 6,                    /* rows of the tallest tile */
    QUADS = VECTOR / 4 * MAX_NV, /* vectors of f32 sums a row, at most */
};

static const struct ifd_pack_layout layout = {.lanes = VECTOR,
                                              .quad = VECTOR,
                                              .kr = KR,
                                              .bytes = 2,
                                              .format = FORMAT,
                                              .max_nv = MAX_NV,
                                              .mr = {TALL, TALL, TALL, TALL}};

/* A tile that begins at row m0 of the block's `columns` columns, the first of which is n0. */
struct job {
    const struct ifd_gemm_args *args;
    const uint16_t *weights;
    const float *bias;
    size_t m0, n0, columns;
    const unsigned char *start[TALL];
};

INLINE float32x4_t finish(const struct ifd_gemm_args *args, float32x4_t v, const float *add)
{
    v = add ? vaddq_f32(v, vld1q_f32(add)) : v;
    return vminq_f32(vdupq_n_f32(args->max), vmaxq_f32(vdupq_n_f32(args->min), v));
}

/* For tiles with fewer columns than their vectors hold. */
static void store_part(const struct job *job, size_t rows, float32x4_t sum[][QUADS])
{
    const struct ifd_gemm_args *args = job->args;
    for (size_t i = 0; i < rows; i++) {
        float row[4 * QUADS];
        float *out = (float *)args->out + (job->m0 + i) * args->out_stride + job->n0;
        const float *add = args->add;
        add = add ? add + (job->m0 + i) * args->add_stride + job->n0 : NULL;
        for (size_t c = 0; c < job->columns; c += 4) {
            vst1q_f32(row + c, finish(args, sum[i][c / 4], add ? add + c : NULL));
        }
        for (size_t c = 0; c < job->columns; c++) {
            out[c] = row[c];
        }
    }
}

INLINE void store(const struct job *job, const size_t mr, const size_t quads,
                  float32x4_t sum[][QUADS])
{
    const struct ifd_gemm_args *args = job->args;
    if (job->columns < 4 * quads) {
        store_part(job, mr, sum);
        return;
    }
    float *out = (float *)args->out + job->m0 * args->out_stride + job->n0;
    const float *add = args->add ? args->add + job->m0 * args->add_stride + job->n0 : NULL;
    UNROLL for (size_t i = 0; i < mr; i++, out += args->out_stride)
    {
        UNROLL for (size_t q = 0; q < quads; q++)
        {
            vst1q_f32(out + 4 * q, finish(args, sum[i][q], add ? add + 4 * q : NULL));
        }
        add = add ? add + args->add_stride : NULL;
    }
}

INLINE void add_tap(const unsigned char *const *row, size_t k, const uint16_t *w,
                    float32x4_t sum[][QUADS], const size_t mr, const size_t nv);

INLINE void tile(const struct job *job, const size_t mr, const size_t nv)
{
    const struct ifd_packed *header = job->args->packed;
    const size_t quads = VECTOR / 4 * nv;
    const size_t step = (size_t)header->private_[IFD_PACKED_DEPTH] * VECTOR * nv;
    float32x4_t sum[TALL][QUADS];
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t q = 0; q < quads; q++)
        {
            sum[i][q] = vld1q_f32(job->bias + 4 * q);
        }
    }
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *row[TALL];
        ifd_rows_tap(job->args, sizeof(uint16_t), job->m0, mr, mr, t, job->start, row);
        add_tap(row, header->k, job->weights + t * step, sum, mr, nv);
    }
    store(job, mr, quads, sum);
}

#define TILE(mr, nv)                                                                               \
    static void tile_##mr##x##nv(const struct job *job)                                            \
    {                                                                                              \
        tile(job, mr, nv);                                                                         \
    }
#define TILES(nv) TILE(6, nv) TILE(4, nv) TILE(2, nv) TILE(1, nv)
#define TILE_ROW(nv)                                                                               \
    {                                                                                              \
        {6, tile_6x##nv}, {4, tile_4x##nv}, {2, tile_2x##nv},                                      \
        {                                                                                          \
            1, tile_1x##nv                                                                         \
        }                                                                                          \
    }
/* clang-format off */
TILES(1)
TILES(2)
TILES(3)
#if MAX_NV > 3
TILES(4)
#endif

/* By vectors a row: the tiles from tallest to shortest. */
static const struct {
    size_t rows;
    void (*run)(const struct job *);
} tiles[MAX_NV][4] = {
    TILE_ROW(1),
    TILE_ROW(2),
    TILE_ROW(3),
#if MAX_NV > 3
    TILE_ROW(4),
#endif
};
/* clang-format on */

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const size_t depth = (size_t)header->taps * (size_t)header->private_[IFD_PACKED_DEPTH];
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        struct job job = {.args = args, .n0 = n0};
        job.columns = header->n - n0 < header->nr ? header->n - n0 : header->nr;
        const size_t nv = (job.columns + VECTOR - 1) / VECTOR;
        job.weights = (const uint16_t *)(const void *)((const unsigned char *)args->packed +
                                                       IFD_PACKED_HEADER +
                                                       n0 / header->nr * header->unit_bytes);
        job.bias = (const float *)(const void *)(job.weights + depth * VECTOR * nv);
        struct ifd_row_cursor cursor = {0, 0};
        for (size_t pick = 0; job.m0 < args->m; job.m0 += tiles[nv - 1][pick].rows) {
            while (tiles[nv - 1][pick].rows > args->m - job.m0) {
                pick++;
            }
            const size_t rows = tiles[nv - 1][pick].rows;
            if (!args->rows) {
                ifd_rows_next(args, sizeof(uint16_t), rows, rows, &cursor, job.start);
            }
            tiles[nv - 1][pick].run(&job);
        }
    }
}

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, 1);
}

static void pack(const struct ifd_gemm_weights *weights, const float *bias, void *dst)
{
    ifd_pack_gemm_f32(&layout, weights, bias, dst);
}

static size_t lanes(void)
{
    return VECTOR;
}

static size_t depth(size_t k)
{
    return ifd_pack_depth(&layout, k);
}

#endif
