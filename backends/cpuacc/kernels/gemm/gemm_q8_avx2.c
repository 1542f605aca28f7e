/* Q8 gemm with vpmaddwd: 2 inputs x 8 columns an instruction.
 *
 * There is no exact 8-bit product of unsigned and signed here (vpmaddubsw saturates), so weights
 * are packed as 16 bit and each tile widens its input rows to 16 bit, a chunk at a time, on the
 * stack. */
#include "backends/cpuacc/kernels/simd/finish_avx2.h"
#include "backends/cpuacc/kernels/gemm/rows_impl.h"

enum {
    CHUNK = 128, /* inputs widened at a time: rows of a tile stay in L1 */
    TALL = 6
};

static const struct ifd_pack_layout layout = {
    .lanes = 8, .quad = 4, .kr = 2, .bytes = 2, .max_nv = 2, .mr = {TALL, TALL, 0, 0}};

/* Rows m0 .. m0+valid-1 of the block's `columns` columns; out is the first of them. */
struct job {
    const struct ifd_gemm_args *args;
    const int16_t *weights;
    const int32_t *tail;
    size_t m0, valid, columns;
    uint8_t *out;
    const unsigned char *start[TALL];
};

INLINE uint8_t *row_out(const struct job *job, size_t i)
{
    return job->out + (i < job->valid ? i : job->valid - 1) * job->args->out_stride;
}

/* Rows past the valid ones repeat the last, which then is stored again with the same bytes. */
INLINE void store(const struct job *job, const size_t mr, const size_t nv, __m256i sum[][2])
{
    const struct bounds bounds = load_bounds(job->args->packed);
    UNROLL for (size_t i = 0; i < mr; i += 2)
    {
        const size_t i1 = i + 1 < mr ? i + 1 : i;
        uint8_t *a = row_out(job, i), *b = row_out(job, i1);
        if (nv == 2) {
            store_rows_2(sum[i], sum[i1], job->columns, &bounds, a, b);
        } else {
            store_rows_1(sum[i][0], sum[i1][0], job->columns, &bounds, a, b);
        }
    }
}

/* The sums themselves, where out is int32_t: job->out still counts its elements. */
INLINE void store_sums(const struct job *job, const size_t mr, const size_t nv, __m256i sum[][2])
{
    int32_t *out = (int32_t *)job->args->out + (job->out - (uint8_t *)job->args->out);
    const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            const __m256i left = _mm256_set1_epi32((int32_t)job->columns - 8 * (int32_t)j);
            if (i < job->valid) {
                _mm256_maskstore_epi32(out + i * job->args->out_stride + 8 * j,
                                       _mm256_cmpgt_epi32(left, lanes), sum[i][j]);
            }
        }
    }
}

/* 16 inputs of one row, from k on; only those below count are read in full vectors. */
INLINE void widen(const unsigned char *a, size_t count, uint16_t *ret_wide)
{
    for (size_t k = 0; k < count; k += 16) {
        __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(a + k)));
        _mm256_store_si256((__m256i *)(void *)(ret_wide + k), x);
    }
}

INLINE void tile(const struct job *job, const size_t mr, const size_t nv)
{
    const struct ifd_packed *header = job->args->packed;
    const size_t depth = (header->k + 1) / 2 * 2;
    const int16_t *w = job->weights;
    __m256i sum[TALL][2];
    __attribute__((aligned(32))) uint16_t wide[TALL][CHUNK];
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        __m256i add = _mm256_setzero_si256();
        if (job->args->row_add) {
            add = _mm256_set1_epi32(
                job->args->row_add[job->m0 + (i < job->valid ? i : job->valid - 1)]);
        }
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = _mm256_add_epi32(add, load_tail(job->tail + 8 * j));
        }
    }
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *a[TALL];
        ifd_rows_tap(job->args, 1, job->m0, mr, job->valid, t, job->start, a);
        for (size_t k0 = 0; k0 < depth; k0 += CHUNK) {
            const size_t count = depth - k0 < CHUNK ? depth - k0 : CHUNK;
            UNROLL for (size_t i = 0; i < mr; i++)
            {
                widen(a[i] + k0, count, wide[i]);
            }
            for (size_t k = 0; k < count; k += 2, w += 16 * nv) {
                __m256i column[2];
                UNROLL for (size_t j = 0; j < nv; j++)
                {
                    column[j] = _mm256_load_si256((const __m256i *)(const void *)(w + 16 * j));
                }
                UNROLL for (size_t i = 0; i < mr; i++)
                {
                    __m256i x = _mm256_set1_epi32(*(const int32_t *)(const void *)(wide[i] + k));
                    UNROLL for (size_t j = 0; j < nv; j++)
                    {
                        sum[i][j] = _mm256_add_epi32(sum[i][j], _mm256_madd_epi16(x, column[j]));
                    }
                }
            }
        }
    }
    if (header->private_[IFD_PACKED_FINISH] == IFD_FINISH_NONE) {
        store_sums(job, mr, nv, sum);
        return;
    }
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        scale_column(header->private_[IFD_PACKED_FINISH], job->tail + 8 * j, 8 * nv, &sum[0][j], mr,
                     2);
    }
    store(job, mr, nv, sum);
}

#define TILE(mr, nv)                                                                               \
    static void tile_##mr##x##nv(const struct job *job)                                            \
    {                                                                                              \
        tile(job, mr, nv);                                                                         \
    }
TILE(6, 1)
TILE(2, 1)
TILE(1, 1)
TILE(6, 2)
TILE(4, 2)
TILE(2, 2)
TILE(1, 2)
#undef TILE

/* By width: the tiles from tallest to shortest. */
static const struct {
    size_t rows;
    void (*run)(const struct job *);
} tiles[2][4] = {
    {{6, tile_6x1}, {2, tile_2x1}, {2, tile_2x1}, {1, tile_1x1}},
    {{6, tile_6x2}, {4, tile_4x2}, {2, tile_2x2}, {1, tile_1x2}},
};

/* All rows of one block: the shortest tile that takes all that is left, or the tallest. */
static void run_block(struct job *job, size_t nv)
{
    struct ifd_row_cursor cursor = {0, 0};
    uint8_t *out = job->out;
    for (job->m0 = 0; job->m0 < job->args->m; job->m0 += job->valid) {
        size_t left = job->args->m - job->m0;
        size_t pick = 3;
        while (pick > 0 && tiles[nv - 1][pick].rows < left) {
            pick--;
        }
        size_t rows = tiles[nv - 1][pick].rows;
        job->valid = left < rows ? left : rows;
        job->out = out + job->m0 * job->args->out_stride;
        if (!job->args->rows) {
            ifd_rows_next(job->args, 1, rows, job->valid, &cursor, job->start);
        }
        tiles[nv - 1][pick].run(job);
    }
}

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const unsigned char *blocks = (const unsigned char *)args->packed + IFD_PACKED_HEADER;
    const size_t depth = (size_t)header->taps * ((header->k + 1) / 2 * 2);
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        size_t columns = header->n - n0 < header->nr ? header->n - n0 : header->nr;
        size_t nv = (columns + 7) / 8;
        const int16_t *weights =
            (const int16_t *)(const void *)(blocks + n0 / header->nr * header->unit_bytes);
        struct job job = {.args = args,
                          .weights = weights,
                          .tail = (const int32_t *)(const void *)(weights + depth * nv * 8),
                          .columns = columns,
                          .out = (uint8_t *)args->out + n0};
        run_block(&job, nv);
    }
}

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS);
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    ifd_pack_gemm_q8(&layout, weights, requant, dst);
}

static void row_sum(const uint8_t *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum)
{
    for (size_t i = 0; i < m; i++, a += a_stride) {
        __m256i sum = _mm256_setzero_si256();
        size_t j = 0;
        for (; j + 32 <= k; j += 32) {
            __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(a + j));
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(x, _mm256_setzero_si256()));
        }
        __m128i both = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        int32_t total = _mm_cvtsi128_si32(both) + _mm_extract_epi32(both, 2);
        for (; j < k; j++) {
            total += a[j];
        }
        ret_sum[i] = factor * total;
    }
}

const struct ifd_kern_gemm_q8 ifd_kern_gemm_q8_avx2 = {packed_bytes, pack, run, row_sum};
