/* The tiles of the f32 product on aarch64, in assembly: one to four rows by one to four vectors of
 * sums, none of which ever leaves its register.
 *
 *   v8 .. v23    sums, four registers a row
 *   v0 .. v7     eight inputs of every row; products take one lane of them
 *   v24 .. v31   the weights of two inputs: one half is loaded while the other is used, so that
 *                cores which do not reorder instructions wait for nothing
 *
 * Eight inputs of a 4 x 16 tile take 128 products, 12 loads and 3 more. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_F32_A64_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_F32_A64_TMPL_H

#include <stddef.h>
#include <stdint.h>
#include "backends/cpuacc/kernels/gemm/gemm_float_job_tmpl.h"

/* Tiles below each other. Strides are in bytes.
 *   count             of tiles, at least 1
 *   a, a_stride       row 0 at the first tap, and the step to the next row, of the next tile too
 *   rows, rows_step   not NULL (and count 1): the rows' addresses instead, and the step to those of
 *                     the next tap
 *   offset, tap_step  added to all addresses at the first tap, and at each further one
 *   taps, depth       summed: depth inputs of every tap, at least one
 *   fetch             added to where weights are read: what to fetch into the second-level cache,
 *                     each tile every eighth line
 *   from              what sums start with
 *   add               NULL, or what is added to them
 *   has_min, has_max  whether sums are clamped */
struct a64_tiles {
    size_t count;
    const unsigned char *a;
    size_t a_stride;
    const unsigned char *const *rows;
    size_t rows_step, offset, tap_step, taps, depth;
    const float *weights;
    size_t fetch;
    const float *from;
    size_t from_stride;
    const float *add;
    size_t add_stride;
    float *out;
    size_t out_stride;
    float min, max;
    int32_t has_min, has_max;
};

enum { A64_ROWS_MAX = 4 };

/* ---- text ---- */

/* clang-format off */

/* Registers of one column of sums, by row; then of the first four inputs of every row and of the
 * next four. */
#define SUMS_0   8, 12, 16, 20
#define SUMS_1   9, 13, 17, 21
#define SUMS_2   10, 14, 18, 22
#define SUMS_3   11, 15, 19, 23
#define INPUTS_0 0, 2, 4, 6
#define INPUTS_1 1, 3, 5, 7

#define MAD(sum, w, x, lane) "fmla v" #sum ".4s, v" #w ".4s, v" #x ".s[" #lane "]\n"
#define COLUMN_1(w, l, s0, s1, s2, s3, x0, x1, x2, x3) MAD(s0, w, x0, l)
#define COLUMN_2(w, l, s0, s1, s2, s3, x0, x1, x2, x3) MAD(s0, w, x0, l) MAD(s1, w, x1, l)
#define COLUMN_3(w, l, s0, s1, s2, s3, x0, x1, x2, x3)                                             \
    MAD(s0, w, x0, l) MAD(s1, w, x1, l) MAD(s2, w, x2, l)
#define COLUMN_4(w, l, s0, s1, s2, s3, x0, x1, x2, x3)                                             \
    MAD(s0, w, x0, l) MAD(s1, w, x1, l) MAD(s2, w, x2, l) MAD(s3, w, x3, l)
#define SPREAD(macro, ...)         macro(__VA_ARGS__)
#define COLUMN(R, w, lane, c, four) SPREAD(COLUMN_##R, w, lane, SUMS_##c, INPUTS_##four)

/* The weights of one input, which follow each other at x5. */
#define WEIGHTS_1(a, d) "ldr q" #a ", [x5], #16\n"
#define WEIGHTS_2(a, d) "ld1 {v" #a ".4s, v" #d ".4s}, [x5], #32\n"
#define WEIGHTS_3(a, d) "ld1 {v" #a ".4s - v" #d ".4s}, [x5], #48\n"
#define WEIGHTS_4(a, d) "ld1 {v" #a ".4s - v" #d ".4s}, [x5], #64\n"
#define EVEN_WEIGHTS_1  WEIGHTS_1(24, 24)
#define EVEN_WEIGHTS_2  WEIGHTS_2(24, 25)
#define EVEN_WEIGHTS_3  WEIGHTS_3(24, 26)
#define EVEN_WEIGHTS_4  WEIGHTS_4(24, 27)
#define ODD_WEIGHTS_1   WEIGHTS_1(28, 28)
#define ODD_WEIGHTS_2   WEIGHTS_2(28, 29)
#define ODD_WEIGHTS_3   WEIGHTS_3(28, 30)
#define ODD_WEIGHTS_4   WEIGHTS_4(28, 31)

/* Input number `lane` of the first or next four of every row, while the weights of the next
 * input are loaded. */
#define EVEN_1(R, l, x)     COLUMN(R, 24, l, 0, x)
#define EVEN_2(R, l, x)     EVEN_1(R, l, x) COLUMN(R, 25, l, 1, x)
#define EVEN_3(R, l, x)     EVEN_2(R, l, x) COLUMN(R, 26, l, 2, x)
#define EVEN_4(R, l, x)     EVEN_3(R, l, x) COLUMN(R, 27, l, 3, x)
#define ODD_1(R, l, x)      COLUMN(R, 28, l, 0, x)
#define ODD_2(R, l, x)      ODD_1(R, l, x) COLUMN(R, 29, l, 1, x)
#define ODD_3(R, l, x)      ODD_2(R, l, x) COLUMN(R, 30, l, 2, x)
#define ODD_4(R, l, x)      ODD_3(R, l, x) COLUMN(R, 31, l, 3, x)
#define EVEN(NV, R, l, x)   ODD_WEIGHTS_##NV EVEN_##NV(R, l, x)
#define ODD(NV, R, l, x)    EVEN_WEIGHTS_##NV ODD_##NV(R, l, x)
#define FOUR(NV, R, x)      EVEN(NV, R, 0, x) ODD(NV, R, 1, x) EVEN(NV, R, 2, x) ODD(NV, R, 3, x)
#define EIGHT(NV, R)        FOUR(NV, R, 0) FOUR(NV, R, 1)

/* One of the last few inputs, of which x6 are left. */
#define LAST(step, NV, R, l, x) step(NV, R, l, x) "subs x6, x6, #1\nb.eq 4f\n"

#define LOAD_EIGHT(a, b, row) "ldp q" #a ", q" #b ", [x" #row "], #32\n"
#define LOAD_1                LOAD_EIGHT(0, 1, 0)
#define LOAD_2                LOAD_1 LOAD_EIGHT(2, 3, 1)
#define LOAD_3                LOAD_2 LOAD_EIGHT(4, 5, 2)
#define LOAD_4                LOAD_3 LOAD_EIGHT(6, 7, 3)

/* Addresses of the rows at a tap: a_stride (x14) apart, or from the table x9, plus the offset
 * x10. */
#define STEP_1          "add x0, x13, x10\n"
#define STEP_2          STEP_1 "add x1, x0, x14\n"
#define STEP_3          STEP_2 "add x2, x1, x14\n"
#define STEP_4          STEP_3 "add x3, x2, x14\n"
#define NEXT_1          "add x13, x13, x14\n"
#define NEXT_2          "add x13, x13, x14, lsl #1\n"
#define NEXT_3          NEXT_1 NEXT_2
#define NEXT_4          "add x13, x13, x14, lsl #2\n"
#define ROW_AT(row, at) "ldr x" #row ", [x9, #" #at "]\nadd x" #row ", x" #row ", x10\n"
#define TABLE_1         ROW_AT(0, 0)
#define TABLE_2         TABLE_1 ROW_AT(1, 8)
#define TABLE_3         TABLE_2 ROW_AT(2, 16)
#define TABLE_4         TABLE_3 ROW_AT(3, 24)

/* DO(a, b, c, d) for the four sums of every row. */
#define EACH_ROW_1(DO) DO(8, 9, 10, 11)
#define EACH_ROW_2(DO) EACH_ROW_1(DO) DO(12, 13, 14, 15)
#define EACH_ROW_3(DO) EACH_ROW_2(DO) DO(16, 17, 18, 19)
#define EACH_ROW_4(DO) EACH_ROW_3(DO) DO(20, 21, 22, 23)

/* The vectors of a row at x15, which then advances by the stride x16. */
#define ONE_OF(op, a, at)      op "r q" #a ", [x15, #" #at "]\n"
#define TWO_OF(op, a, b, at)   op "p q" #a ", q" #b ", [x15, #" #at "]\n"
#define NEXT_LINE              "add x15, x15, x16\n"
#define MOVE_1(op, a, b, c, d) ONE_OF(op, a, 0) NEXT_LINE
#define MOVE_2(op, a, b, c, d) TWO_OF(op, a, b, 0) NEXT_LINE
#define MOVE_3(op, a, b, c, d) TWO_OF(op, a, b, 0) ONE_OF(op, c, 32) NEXT_LINE
#define MOVE_4(op, a, b, c, d) TWO_OF(op, a, b, 0) TWO_OF(op, c, d, 32) NEXT_LINE

#define WITH(op, a, v)                    op " v" #a ".4s, v" #a ".4s, v" #v ".4s\n"
#define ALL_1(op, a, b, c, d, v, w, x, y) WITH(op, a, v)
#define ALL_2(op, a, b, c, d, v, w, x, y) WITH(op, a, v) WITH(op, b, w)
#define ALL_3(op, a, b, c, d, v, w, x, y) WITH(op, a, v) WITH(op, b, w) WITH(op, c, x)
#define ALL_4(op, a, b, c, d, v, w, x, y)                                                          \
    WITH(op, a, v) WITH(op, b, w) WITH(op, c, x) WITH(op, d, y)

#define LOAD_ROW_1(a, b, c, d)  MOVE_1("ld", a, b, c, d)
#define LOAD_ROW_2(a, b, c, d)  MOVE_2("ld", a, b, c, d)
#define LOAD_ROW_3(a, b, c, d)  MOVE_3("ld", a, b, c, d)
#define LOAD_ROW_4(a, b, c, d)  MOVE_4("ld", a, b, c, d)
#define STORE_ROW_1(a, b, c, d) MOVE_1("st", a, b, c, d)
#define STORE_ROW_2(a, b, c, d) MOVE_2("st", a, b, c, d)
#define STORE_ROW_3(a, b, c, d) MOVE_3("st", a, b, c, d)
#define STORE_ROW_4(a, b, c, d) MOVE_4("st", a, b, c, d)
#define ADD_ROW_1(a, b, c, d)   LOAD_ROW_1(0, 1, 2, 3) ALL_1("fadd", a, b, c, d, 0, 1, 2, 3)
#define ADD_ROW_2(a, b, c, d)   LOAD_ROW_2(0, 1, 2, 3) ALL_2("fadd", a, b, c, d, 0, 1, 2, 3)
#define ADD_ROW_3(a, b, c, d)   LOAD_ROW_3(0, 1, 2, 3) ALL_3("fadd", a, b, c, d, 0, 1, 2, 3)
#define ADD_ROW_4(a, b, c, d)   LOAD_ROW_4(0, 1, 2, 3) ALL_4("fadd", a, b, c, d, 0, 1, 2, 3)
#define MAX_ROW_1(a, b, c, d)   ALL_1("fmax", a, b, c, d, 0, 0, 0, 0)
#define MAX_ROW_2(a, b, c, d)   ALL_2("fmax", a, b, c, d, 0, 0, 0, 0)
#define MAX_ROW_3(a, b, c, d)   ALL_3("fmax", a, b, c, d, 0, 0, 0, 0)
#define MAX_ROW_4(a, b, c, d)   ALL_4("fmax", a, b, c, d, 0, 0, 0, 0)
#define MIN_ROW_1(a, b, c, d)   ALL_1("fmin", a, b, c, d, 0, 0, 0, 0)
#define MIN_ROW_2(a, b, c, d)   ALL_2("fmin", a, b, c, d, 0, 0, 0, 0)
#define MIN_ROW_3(a, b, c, d)   ALL_3("fmin", a, b, c, d, 0, 0, 0, 0)
#define MIN_ROW_4(a, b, c, d)   ALL_4("fmin", a, b, c, d, 0, 0, 0, 0)

/* x6 inputs left, x7 from weights to what is fetched, x8 taps left, x11 tap_step, x12 depth, x13 a,
 * x17 tiles left. */
#define TILES_TEXT(R, NV)                                                                          \
    "ldp x13, x14, [%[t], %[a]]\n"                                                                 \
    "ldp x11, x8, [%[t], %[tap_step]]\n"                                                           \
    "ldr x12, [%[t], %[depth]]\n"                                                                  \
    "ldr x17, [%[t], %[count]]\n"                                                                  \
    "20: ldp x15, x16, [%[t], %[from]]\n"                                                          \
    EACH_ROW_##R(LOAD_ROW_##NV)                                                                    \
    "str x15, [%[t], %[from]]\n"                                                                   \
    "ldp x9, x16, [%[t], %[rows]]\n"                                                               \
    "ldr x10, [%[t], %[offset]]\n"                                                                 \
    "ldp x5, x15, [%[t], %[weights]]\n"                                                            \
    "and x7, x17, #7\n"                                                                            \
    "add x7, x15, x7, lsl #6\n"                                                                    \
    "1: cbnz x9, 6f\n" /* a tap */                                                                 \
    STEP_##R                                                                                       \
    "7: lsr x6, x12, #3\n"                                                                         \
    LOAD_##R                                                                                       \
    EVEN_WEIGHTS_##NV                                                                              \
    "cbz x6, 3f\n"                                                                                 \
    "2: prfm pldl2keep, [x5, x7]\n" /* eight inputs */                                             \
    "subs x6, x6, #1\n"                                                                            \
    EIGHT(NV, R)                                                                                   \
    LOAD_##R                                                                                       \
    "b.ne 2b\n"                                                                                    \
    "3: ands x6, x12, #7\n" /* the last few */                                                     \
    "b.eq 4f\n"                                                                                    \
    LAST(EVEN, NV, R, 0, 0) LAST(ODD, NV, R, 1, 0) LAST(EVEN, NV, R, 2, 0)                         \
    LAST(ODD, NV, R, 3, 0) LAST(EVEN, NV, R, 0, 1) LAST(ODD, NV, R, 1, 1) EVEN(NV, R, 2, 1)        \
    "4: sub x5, x5, #16 * " #NV "\n" /* one input too many */                                      \
    "subs x8, x8, #1\n"                                                                            \
    "add x10, x10, x11\n"                                                                          \
    "b.ne 1b\n"                                                                                    \
    "ldp x15, x16, [%[t], %[add]]\n"                                                               \
    "cbz x15, 5f\n"                                                                                \
    EACH_ROW_##R(ADD_ROW_##NV)                                                                     \
    "str x15, [%[t], %[add]]\n"                                                                    \
    "5: ldp w1, w2, [%[t], %[has]]\n"                                                              \
    "cbz w1, 8f\n"                                                                                 \
    "ldr s0, [%[t], %[min]]\n"                                                                     \
    "dup v0.4s, v0.s[0]\n"                                                                         \
    EACH_ROW_##R(MAX_ROW_##NV)                                                                     \
    "8: cbz w2, 9f\n"                                                                              \
    "ldr s0, [%[t], %[max]]\n"                                                                     \
    "dup v0.4s, v0.s[0]\n"                                                                         \
    EACH_ROW_##R(MIN_ROW_##NV)                                                                     \
    "9: ldp x15, x16, [%[t], %[out]]\n"                                                            \
    EACH_ROW_##R(STORE_ROW_##NV)                                                                   \
    "str x15, [%[t], %[out]]\n"                                                                    \
    NEXT_##R                                                                                       \
    "ldr x8, [%[t], %[taps]]\n"                                                                    \
    "subs x17, x17, #1\n"                                                                          \
    "b.ne 20b\n"                                                                                   \
    "b 30f\n"                                                                                      \
    "6: " TABLE_##R                                                                                \
    "add x9, x9, x16\n"                                                                            \
    "b 7b\n"                                                                                       \
    "30:\n"
/* clang-format on */

#define A64_AT(member) [member] "i"(offsetof(struct a64_tiles, member))
#define A64_TILES(R, NV)                                                                           \
    static void a64_tiles_##NV##_##R(struct a64_tiles *tiles)                                      \
    {                                                                                              \
        __asm__ volatile(TILES_TEXT(R, NV)                                                         \
                         :                                                                         \
                         : [t] "r"(tiles), A64_AT(count), A64_AT(a), A64_AT(rows), A64_AT(offset), \
                           A64_AT(tap_step), A64_AT(taps), A64_AT(depth), A64_AT(weights),         \
                           A64_AT(from), A64_AT(add), A64_AT(out), A64_AT(min),                    \
                           A64_AT(max), [has] "i"(offsetof(struct a64_tiles, has_min))             \
                         : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10",      \
                           "x11", "x12", "x13", "x14", "x15", "x16", "x17", "v0", "v1", "v2",      \
                           "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",   \
                           "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",   \
                           "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc",           \
                           "memory");                                                              \
    }
#define A64_ALL(NV) A64_TILES(1, NV) A64_TILES(2, NV) A64_TILES(3, NV) A64_TILES(4, NV)
#define A64_NAMES(NV)                                                                              \
    {                                                                                              \
        a64_tiles_##NV##_1, a64_tiles_##NV##_2, a64_tiles_##NV##_3, a64_tiles_##NV##_4             \
    }

/* ---- functions ---- */

/* clang-format off */
A64_ALL(1)
A64_ALL(2)
A64_ALL(3)
A64_ALL(4)

/* By vectors a row and rows, from 1. */
static void (*const a64_run[4][A64_ROWS_MAX])(struct a64_tiles *) = {
    A64_NAMES(1), A64_NAMES(2), A64_NAMES(3), A64_NAMES(4)};
/* clang-format on */

/* ---- a part of a block ---- */

/* What all tiles of a part have in common. */
static struct a64_tiles begin_tiles(const struct job *job, size_t nv, int is_fetching)
{
    const struct ifd_gemm_args *args = job->args;
    const struct part *part = &job->part;
    struct a64_tiles tiles = {
        .a_stride = args->a_stride * sizeof(float),
        .offset = (part->t_begin * args->tap_stride + part->k_begin) * sizeof(float),
        .tap_step = args->tap_stride * sizeof(float),
        .taps = part->t_end - part->t_begin,
        .depth = part->k_end - part->k_begin,
        .weights = job->weights,
        .fetch = is_fetching ? (uintptr_t)job->fetch - (uintptr_t)job->weights : 0,
        .min = job->min,
        .max = job->max,
        .has_min = job->min > -__builtin_inff(),
        .has_max = job->max < __builtin_inff()};
    if (args->rows) {
        tiles.rows_step = args->m * sizeof(*args->rows);
        tiles.offset = part->k_begin * sizeof(float);
        tiles.tap_step = 0;
    }
    if (job->columns == nv * VF_LANES) {
        tiles.out_stride = args->out_stride * sizeof(float);
        tiles.from_stride = part->is_first ? 0 : tiles.out_stride;
        tiles.add_stride = args->add_stride * sizeof(float);
    }
    return tiles;
}

/* Where the next tiles of `rows` rows find their inputs: `most` tiles, or as many as a line has. */
static void place_inputs(const struct job *job, size_t rows, size_t most,
                         struct ifd_row_cursor *cursor, const unsigned char **start,
                         struct a64_tiles *tiles)
{
    const struct ifd_gemm_args *args = job->args;
    const size_t line = args->row_len ? args->row_len : args->m;
    tiles->count = 1;
    if (args->rows) {
        tiles->rows =
            (const unsigned char *const *)args->rows + job->part.t_begin * args->m + job->m0;
    } else if (cursor->x + rows > line) {
        ifd_rows_next(args, sizeof(float), rows, rows, cursor, start);
        tiles->rows = start;
    } else {
        const size_t left = (line - cursor->x) / rows;
        tiles->count = left < most ? left : most;
        tiles->rows = NULL;
        tiles->a = (const unsigned char *)args->a +
                   (cursor->y * args->row_stride + cursor->x * args->a_stride) * sizeof(float);
        cursor->x += tiles->count * rows;
        cursor->y += cursor->x == line;
        cursor->x = cursor->x == line ? 0 : cursor->x;
    }
}

static void run_whole(const struct job *job, size_t nv, size_t rows, struct a64_tiles *tiles)
{
    const struct ifd_gemm_args *args = job->args;
    tiles->out = (float *)args->out + job->m0 * args->out_stride + job->n0;
    tiles->from = job->part.is_first ? job->bias : tiles->out;
    tiles->add =
        job->part.is_last && args->add ? args->add + job->m0 * args->add_stride + job->n0 : NULL;
    a64_run[nv - 1][rows - 1](tiles);
}

/* A tile whose last vector is incomplete: computed in a buffer, of which only the columns that
 * exist are stored. */
static void run_narrow(const struct job *job, size_t nv, size_t rows, struct a64_tiles *tiles)
{
    vf sum[A64_ROWS_MAX][4];
    begin_sums(job, sum, rows, nv, 1);
    tiles->from = tiles->out = (float *)(void *)sum;
    tiles->from_stride = tiles->out_stride = sizeof(sum[0]);
    tiles->has_min = tiles->has_max = 0;
    a64_run[nv - 1][rows - 1](tiles);
    store(job, rows, nv, sum, 1);
}

/* All rows of one part, in tiles of about equal height. */
static void run_part(struct job *job, size_t nv, size_t fetch_bytes)
{
    const struct ifd_gemm_args *args = job->args;
    const size_t count = (args->m + A64_ROWS_MAX - 1) / A64_ROWS_MAX;
    const size_t rows = args->m / count, taller = args->m % count;
    const int is_whole = job->columns == nv * VF_LANES;
    struct a64_tiles tiles = begin_tiles(job, nv, fetch_bytes > 0);
    const unsigned char *start[A64_ROWS_MAX];
    struct ifd_row_cursor cursor = {0, 0};
    job->m0 = 0;
    for (size_t i = 0; i < count; i += tiles.count) {
        const size_t height = rows + (i < taller), alike = (i < taller ? taller : count) - i;
        place_inputs(job, height, is_whole ? alike : 1, &cursor, start, &tiles);
        (is_whole ? run_whole : run_narrow)(job, nv, height, &tiles);
        job->m0 += height * tiles.count;
    }
}

#endif
