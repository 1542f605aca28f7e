/* Tiles of the float gemm (gemm_float_tmpl.h) in C: which sizes there are, and which of
 * them the rows of a call take. Defines run_part(). */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_STACK_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_FLOAT_STACK_TMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_float_tile_tmpl.h"

#if defined(GEMM_HAS_HALVES)
#include "backends/cpuacc/kernels/gemm/gemm_float_halves_tmpl.h"
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

/* The tile of five rows where tall tiles would leave a single row (7 x 7 pixels, for example),
 * which waits for its weights as long as several rows do: five such tiles end m. NULL otherwise.
 * Only for plain gemms: rows with an address each gain nothing. */
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

/* Step of the fetched weights for every STEP inputs of a tile: one to four lines, so that all
 * tiles of a part together fetch about the bytes of a part. */
static size_t choose_ahead(const struct ifd_gemm_args *args, size_t nv, size_t tall)
{
    const size_t row = nv * lanes_of(args->packed) * sizeof(GEMM_WEIGHT);
    const size_t passes = (args->m + tall - 1) / tall;
    const size_t lines = (STEP * row / CACHE_LINE + passes - 1) / passes;
    return (lines < 1 ? 1 : lines > 4 ? 4 : lines) * CACHE_LINE;
}

/* All rows of one part, which fetch fetch_bytes meanwhile. Takes the shortest tile that holds
 * all rows left, or the tallest. */
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
