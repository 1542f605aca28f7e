/* Matrix product and convolution over the vector vocabulary: tiles of rows x vectors of sums in
 * registers, weights loaded once for all rows of a tile, inputs broadcast. A block that would not
 * stay in the second-level cache is done in parts of its inputs, which add to what the part before
 * has left in the output. The tiles of a part also fetch the next one's weights into that cache, a
 * line every STEP inputs, or up to four where there are few tiles. */
#include "backends/cpuacc/kernels/pack.h"
#include "backends/cpuacc/kernels/gemm/rows.h"
#include "backends/cpuacc/kernels/simd/simd.h"

/* What is multiplied: floats, unless the file that includes this one says otherwise.
 *   GEMM_INPUT    an input in memory; a lane multiplies GEMM_PAIR of them at a time
 *   GEMM_WEIGHT   what a lane multiplies them with, in memory
 *   GEMM_FORMAT   how pack() makes weights of floats
 *   gemm_weights  a vector of them, gemm_inputs the same inputs in all lanes, gemm_add adds their products */
#if !defined(GEMM_INPUT)
#define GEMM_INPUT       float
#define GEMM_PAIR        1
#define GEMM_WEIGHT      float
#define GEMM_FORMAT      IFD_PACK_AS_IS
#define GEMM_BLOCKS_EVEN GEMM_EVEN
#if defined(VF_HAS_PAIRS)
#define GEMM_HAS_HALVES
#endif
#if GEMM_MAX_NV == 4 && VF_REGISTERS == 32 && !defined(VF_GEMM_TILES)
#define GEMM_STREAMS
#endif
#if defined(VF_GEMM_TILES)
#define GEMM_TILES VF_GEMM_TILES
#else
INLINE vf gemm_weights(const GEMM_WEIGHT *w)
{
    return vf_load(w);
}
INLINE vf gemm_inputs(const GEMM_INPUT *in)
{
    return vf_broadcast(in);
}
INLINE vf gemm_add(vf inputs, vf weights, vf sum)
{
    return vf_fma(inputs, weights, sum);
}
#endif
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

/* Inputs k_begin .. k_end-1 (counted as lanes take them) of taps t_begin .. t_end-1: all, or some of one tap. */
struct part {
    size_t t_begin, t_end, k_begin, k_end;
    int is_first, is_last;
};

/* Rows m0 .. m0+valid-1 of the block's `columns` columns, the first of which is n0.
 *   is_regular   the rows are a_stride apart: no need of an address for each
 *   count        tiles one behind the other, more than 1 only of regular rows; m0 and start are the first one's
 *   fetch, ahead what to fetch next, and how far to go on after every line of it */
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

/* The bias, or what the part before has left. */
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

#if defined(GEMM_TILES)
#include GEMM_TILES
#else
/* A tile that lies inside the matrix: the usual one. add: NULL, or what is added to it. */
INLINE void store_full(const struct job *job, const float *add, const size_t mr, const size_t nv,
                       vf sum[][4])
{
    const struct ifd_gemm_args *args = job->args;
    const vf lo = vf_set1(job->min), hi = vf_set1(job->max);
    float *out = (float *)args->out + job->m0 * args->out_stride + job->n0;
    if (add) {
        add += job->m0 * args->add_stride + job->n0;
        UNROLL for (size_t i = 0; i < mr; i++, add += args->add_stride)
        {
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                sum[i][j] = vf_add(sum[i][j], vf_load(add + j * VF_LANES));
            }
        }
    }
    UNROLL for (size_t i = 0; i < mr; i++, out += args->out_stride)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            vf_store(out + j * VF_LANES, vf_min(hi, vf_max(lo, sum[i][j])));
        }
    }
}

/* The input rows of a tile at one tap. */
struct rows {
    const GEMM_INPUT *base;
    size_t stride;
    const unsigned char *each[12];
};

/* Of twelve rows every fourth has an address that is computed: left to itself the compiler advances twelve pointers. */
INLINE const GEMM_INPUT *row_at(const struct rows *rows, size_t i, const size_t mr,
                                const int is_regular)
{
    if (!is_regular) {
        return (const GEMM_INPUT *)(const void *)rows->each[i];
    }
    if (mr <= 8) {
        return rows->base + i * rows->stride;
    }
    const GEMM_INPUT *fourth = rows->base + i / 4 * 4 * rows->stride;
    __asm__("" : "+r"(fourth));
    return fourth + i % 4 * rows->stride;
}

/* One input of every row. */
INLINE void add_input(const struct rows *rows, size_t k, const GEMM_WEIGHT *w, vf sum[][4],
                      const size_t mr, const size_t nv, const int is_regular)
{
    vf column[4];
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        column[j] = gemm_weights(w + VF_LANES * j);
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        const vf x = gemm_inputs(row_at(rows, i, mr, is_regular) + k * GEMM_PAIR);
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = gemm_add(x, column[j], sum[i][j]);
        }
    }
}

INLINE struct rows rows_of_tap(const struct job *job, const size_t mr, size_t t,
                               const int is_regular)
{
    struct rows rows = {.stride = job->args->a_stride};
    if (is_regular) {
        rows.base = (const GEMM_INPUT *)(const void *)job->start[0] + t * job->args->tap_stride;
    } else {
        ifd_rows_tap(job->args, sizeof(GEMM_INPUT), job->m0, mr, job->valid, t, job->start,
                     rows.each);
    }
    return rows;
}

INLINE void end_tile(const struct job *job, const size_t mr, const size_t nv, vf sum[][4],
                     const int is_regular)
{
    if (job->valid == mr && job->columns == nv * VF_LANES) {
        store_full(job, job->part.is_last ? job->args->add : NULL, mr, nv, sum);
    } else {
        store(job, mr, nv, sum, is_regular);
    }
}

/* One to four lines, as many as `ahead` has: neighbours are not fetched by themselves on every CPU. */
INLINE void fetch_lines(const unsigned char *fetch, size_t ahead)
{
    __builtin_prefetch(fetch, 0, 2);
    __builtin_prefetch(fetch + ahead / 4, 0, 2);
    __builtin_prefetch(fetch + ahead / 2, 0, 2);
    __builtin_prefetch(fetch + ahead / 4 * 3, 0, 2);
}

INLINE void tile_whole(const struct job *job, const size_t mr, const size_t nv,
                       const int is_regular)
{
    const GEMM_WEIGHT *w = job->weights;
    const unsigned char *fetch = job->fetch;
    const size_t depth = job->part.k_end, ahead = job->ahead;
    vf sum[12][4];
    begin_sums(job, sum, mr, nv, is_regular);
    for (size_t t = job->part.t_begin; t < job->part.t_end; t++) {
        const struct rows rows = rows_of_tap(job, mr, t, is_regular);
        size_t k = job->part.k_begin;
        for (; k + STEP <= depth; k += STEP, fetch += ahead) {
            fetch_lines(fetch, ahead);
            UNROLL for (size_t step = 0; step < STEP; step++, w += VF_LANES * nv)
            {
                add_input(&rows, k + step, w, sum, mr, nv, is_regular);
            }
        }
        for (; k < depth; k++, w += VF_LANES * nv) {
            add_input(&rows, k, w, sum, mr, nv, is_regular);
        }
    }
    end_tile(job, mr, nv, sum, is_regular);
}

#if defined(GEMM_HAS_HALVES)
#include "backends/cpuacc/kernels/gemm/gemm_f32_halves.h"
#endif

/* is_regular implies that all rows are there. */
#define TILE(kind, nv, name, mr)                                                                   \
    static void kind##_##nv##_##name(const struct job *job)                                        \
    {                                                                                              \
        if (!job->is_regular) {                                                                    \
            tile_##kind(job, mr, nv, 0);                                                           \
            return;                                                                                \
        }                                                                                          \
        struct job own = *job;                                                                     \
        for (size_t i = 0; i < job->count; i++) {                                                  \
            tile_##kind(&own, mr, nv, 1);                                                          \
            own.m0 += mr;                                                                          \
            own.start[0] += mr * job->args->a_stride * sizeof(GEMM_INPUT);                         \
            own.fetch += job->fetch_bytes;                                                         \
        }                                                                                          \
    }
#define TILES(kind, nv)                                                                            \
    TILE(kind, nv, tall, GEMM_TALL_##nv)                                                           \
    TILE(kind, nv, 4, 4) TILE(kind, nv, 2, 2) TILE(kind, nv, 1, 1)
#define TILE_ROW(kind, nv)                                                                         \
    {                                                                                              \
        {GEMM_TALL_##nv, kind##_##nv##_tall}, {4, kind##_##nv##_4}, {2, kind##_##nv##_2},          \
        {                                                                                          \
            1, kind##_##nv##_1                                                                     \
        }                                                                                          \
    }

/* By vectors a row: the tiles from tallest to shortest. */
struct tile {
    size_t rows;
    void (*run)(const struct job *);
};

/* clang-format off */
TILES(whole, 1)
TILES(whole, 2)
#if GEMM_MAX_NV > 2
TILES(whole, 3)
#endif
#if GEMM_MAX_NV > 3
TILES(whole, 4)
#endif

static const struct tile tiles[GEMM_MAX_NV][4] = {
    TILE_ROW(whole, 1),
    TILE_ROW(whole, 2),
#if GEMM_MAX_NV > 2
    TILE_ROW(whole, 3),
#endif
#if GEMM_MAX_NV > 3
    TILE_ROW(whole, 4),
#endif
};

#if defined(GEMM_HAS_HALVES)
TILES(paired, 1)
TILES(paired, 2)
TILES(paired, 3)
TILES(paired, 4)

static const struct tile paired_tiles[GEMM_MAX_NV][4] = {
    TILE_ROW(paired, 1),
    TILE_ROW(paired, 2),
    TILE_ROW(paired, 3),
    TILE_ROW(paired, 4),
};
#endif

#if defined(GEMM_FIVES)
#define FIVES(kind)                                                                                \
    TILE(kind, 1, 5, 5) TILE(kind, 2, 5, 5) TILE(kind, 3, 5, 5) TILE(kind, 4, 5, 5)                \
    static const struct tile kind##_fives[GEMM_MAX_NV] = {                                         \
        {5, kind##_1_5}, {5, kind##_2_5}, {5, kind##_3_5}, {5, kind##_4_5}};
FIVES(whole)
#if defined(GEMM_HAS_HALVES)
FIVES(paired)
#endif
#endif
/* clang-format on */

/* nv: vectors a row, or halves of one. */
static const struct tile *tiles_for(const struct ifd_packed *header, size_t nv)
{
#if defined(GEMM_HAS_HALVES)
    return header->nr < VF_LANES ? paired_tiles[nv - 1] : tiles[nv - 1];
#else
    (void)header;
    return tiles[nv - 1];
#endif
}

#define FIVES_ROWS 25

/* Where tall tiles would leave a single row, which waits for its weights as long as several do, the tile of five rows, five
 * of which end m; else NULL. 7 x 7 pixels are such. Only for plain products: rows with an address each gain nothing. */
static const struct tile *five_for(const struct ifd_packed *header, size_t nv, size_t m,
                                   size_t tall)
{
    (void)header;
#if defined(GEMM_HAS_HALVES) && defined(GEMM_FIVES)
    const struct tile *const fives = header->nr < VF_LANES ? paired_fives : whole_fives;
#elif defined(GEMM_FIVES)
    const struct tile *const fives = whole_fives;
#else
    const struct tile *const fives = NULL;
#endif
    return fives && m >= FIVES_ROWS && m % tall == 1 ? &fives[nv - 1] : NULL;
}

/* How far the weights to fetch go on for every STEP inputs of a tile: one to four lines, as the part's own ones do in all of
 * its tiles together. */
static size_t choose_ahead(const struct ifd_gemm_args *args, size_t nv, size_t tall)
{
    const size_t row = nv * lanes_of(args->packed) * sizeof(GEMM_WEIGHT);
    const size_t passes = (args->m + tall - 1) / tall;
    const size_t lines = (STEP * row / CACHE_LINE + passes - 1) / passes;
    return (lines < 1 ? 1 : lines > 4 ? 4 : lines) * CACHE_LINE;
}

/* All rows of one part, which fetch so much meanwhile: the shortest tile that takes all that is left, or the tallest. */
static void run_part(struct job *job, size_t nv, size_t fetch_bytes)
{
    const struct ifd_gemm_args *args = job->args;
    const struct part *part = &job->part;
    const size_t line = args->row_len ? args->row_len : args->m;
    const size_t steps = (part->k_end - part->k_begin) / STEP * (part->t_end - part->t_begin);
    const struct tile *const by_rows = tiles_for(args->packed, nv);
    const size_t tall = by_rows[0].rows;
    const int is_plain = !args->rows && line == args->m;
    const struct tile *const five = is_plain ? five_for(args->packed, nv, args->m, tall) : NULL;
    const size_t ahead = choose_ahead(args, nv, tall);
    struct ifd_row_cursor cursor = {0, 0};
    size_t fetched = 0;
    for (job->m0 = 0; job->m0 < args->m; job->m0 += job->count * job->valid) {
        const size_t left = args->m - job->m0;
        size_t pick = 3;
        while (pick > 0 && by_rows[pick].rows < left) {
            pick--;
        }
        const struct tile *const tile = five && left <= FIVES_ROWS ? five : &by_rows[pick];
        const size_t rows = tile->rows;
        job->valid = left < rows ? left : rows;
        job->is_regular = !args->rows && rows <= left && cursor.x + rows <= line;
        job->ahead = steps > 0 && fetched < fetch_bytes ? ahead : 0;
        job->fetch_bytes = job->ahead * steps;
        job->count = 1;
        if (job->is_regular) {
            job->start[0] =
                (const unsigned char *)args->a +
                (cursor.y * args->row_stride + cursor.x * args->a_stride) * sizeof(GEMM_INPUT);
            const size_t tiled = five && tile != five ? left - FIVES_ROWS : left;
            job->count = (tiled < line - cursor.x ? tiled : line - cursor.x) / rows;
            if (job->ahead) {
                const size_t fetches =
                    (fetch_bytes - fetched + job->fetch_bytes - 1) / job->fetch_bytes;
                job->count = job->count < fetches ? job->count : fetches;
            }
            cursor.x += rows * job->count;
            cursor.y += cursor.x == line;
            cursor.x = cursor.x == line ? 0 : cursor.x;
        } else if (!args->rows) {
            ifd_rows_next(args, sizeof(GEMM_INPUT), rows, job->valid, &cursor, job->start);
        }
        tile->run(job);
        job->fetch += job->fetch_bytes * job->count;
        fetched += job->fetch_bytes * job->count;
    }
}

#endif

/* Inputs of a tap as lanes take them. */
INLINE size_t lane_inputs(const struct ifd_packed *header)
{
    return (size_t)header->private_[IFD_PACKED_DEPTH] / GEMM_PAIR;
}

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

#if defined(GEMM_STREAMS)
/* A single row takes as long as its weights do, and memory gives more of several streams than of one: so many blocks at a
 * time. One of fewer than four vectors reads on, up to its bias, for sums that nobody wants. */
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

/* Are the blocks from b on for that? Each has two vectors at least. */
static int can_stream(const struct ifd_gemm_args *args, size_t b)
{
    const struct ifd_packed *header = args->packed;
    return args->m == 1 && header->n >= 2 * VF_LANES * header->blocks && header->taps == 1 &&
           header->nr == VF_LANES && !args->rows && lane_inputs(header) >= STREAM_INPUTS_MIN &&
           b + STREAMS <= header->blocks && ifd_packed_column(header, b + STREAMS) <= args->n_end;
}
#endif

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

#if !defined(GEMM_OWN_TABLE)
static void pack_part(const struct ifd_gemm_weights *part, size_t n0, size_t k0, void *dst)
{
    const struct ifd_packed *header = dst;
    ifd_pack_gemm_f32_part(choose_layout(header->n, header->k, 1), part, n0, k0, dst);
}
#endif

static size_t lanes(void)
{
    return VF_LANES;
}

#if !defined(GEMM_OWN_TABLE)
const struct ifd_kern_gemm_f32 IFD_TABLE = {
    .packed_bytes = packed_bytes, .pack = pack, .pack_part = pack_part, .run = run, .lanes = lanes};
#endif
