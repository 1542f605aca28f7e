/* 5x5 windows of the VNNI depthwise kernels: lines are interleaved by groups of four, each once,
 * into the scratch, which holds the last two groups. A window lies in two groups; its weights
 * are shifted by the number of bytes between the start of the first group and its own. The
 * scratch holds a segment of the lines, so that it stays in the first-level cache. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_VNNI_5X5_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_VNNI_5X5_IMPL_H

#include "backends/cpuacc/kernels/depthwise/dw_q8_vnni_lines_impl.h"

enum { SIDE = 5, GROUPS = 2, SEGMENT = 16, COLUMNS_MAX = (SEGMENT - 1) * 2 + SIDE };

struct scratch_5x5 {
    __m512i weights[4][VECTORS][GROUPS][SIDE]; /* by shift */
    __m512i columns[GROUPS][COLUMNS_MAX][VECTORS];
};

/* The weights as they are packed, and shifted down by one, two, three bytes. */
static void shift_weights(const struct job *job, struct scratch_5x5 *scratch)
{
    const int8_t *w = job->weights;
    for (size_t v = 0; v < SIDE * VECTORS; v++) {
        const size_t kx = v / VECTORS, j = v % VECTORS;
        const int8_t *at = w + (kx * GROUPS * VECTORS + j) * BLOCK;
        const __m512i upper = _mm512_load_si512(at);
        const __m512i lower = _mm512_load_si512(at + VECTORS * BLOCK);
        for (unsigned shift = 0; shift < 4; shift += job->args->stride_y) {
            const __m512i passed = _mm512_srl_epi32(upper, _mm_cvtsi32_si128(32 - 8 * (int)shift));
            const __m128i bits = _mm_cvtsi32_si128(8 * (int)shift);
            scratch->weights[shift][j][0][kx] = _mm512_sll_epi32(upper, bits);
            scratch->weights[shift][j][1][kx] =
                _mm512_or_si512(_mm512_sll_epi32(lower, bits), passed);
        }
    }
}

/* Columns x … of four rows. */
INLINE void interleave_rows(const struct line *line, int64_t x, size_t count, const size_t pixels,
                            __m512i (*to)[VECTORS])
{
    struct line at = *line;
    walk(&at, x);
    for (size_t i = 0; i < count; i++, x++) {
        const struct column column = x >= 0 && x < line->inner_w ? inner_column(&at, 0, pixels, 4)
                                                                 : load_column(line, x, pixels, 4);
        walk(&at, 1);
        UNROLL for (size_t j = 0; j < VECTORS; j++)
        {
            to[i][j] = column.v[j];
        }
    }
}

__attribute__((noinline)) static void interleave_columns(const struct line *line, int64_t x,
                                                         size_t count, size_t pixels,
                                                         __m512i (*to)[VECTORS])
{
    if (pixels == 1) {
        interleave_rows(line, x, count, 1, to);
    } else if (pixels == 2) {
        interleave_rows(line, x, count, 2, to);
    } else {
        interleave_rows(line, x, count, 4, to);
    }
}

/* A line's windows in two groups of rows. */
struct window {
    const __m512i (*weights)[GROUPS][SIDE];
    const __m512i (*columns[GROUPS])[VECTORS];
};

/* `count` positions from x on, of which `present` exist. Each vector of a column is loaded once
 * for all windows that use it. */
INLINE void positions_5x5(const struct line *line, const struct window *window, size_t first,
                          size_t x, const size_t count, size_t present, const size_t stride,
                          const size_t pixels, const enum way way)
{
    const size_t at = (x - first) * stride;
    __m512i sum[4 * VECTORS];
    start_positions(line, count, sum);
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        UNROLL for (size_t g = 0; g < GROUPS; g++)
        {
            __m512i column[3 * 2 + SIDE];
            UNROLL for (size_t i = 0; i < (count - 1) * stride + SIDE; i++)
            {
                column[i] = window->columns[g][at + i][j];
            }
            UNROLL for (size_t kx = 0; kx < SIDE; kx++)
            {
                const __m512i w = window->weights[j][g][kx];
                UNROLL for (size_t p = 0; p < count; p++)
                {
                    sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], column[p * stride + kx], w);
                }
            }
        }
    }
    finish_positions(line, way, sum, line->out, x, count, present, pixels);
}

/* Positions first … end-1 of a line. */
INLINE void line_5x5(const struct line *line, const struct window *window, size_t first, size_t end,
                     const size_t stride, const size_t pixels, const enum way way)
{
    size_t x = first;
    for (; x + 2 < end; x += 4) {
        const size_t left = end - x;
        positions_5x5(line, window, first, x, 4, left < 4 ? left : 4, stride, pixels, way);
    }
    if (x < end) {
        positions_5x5(line, window, first, x, 2, end - x, stride, pixels, way);
    }
}

/* All lines of a segment. */
INLINE void segment_5x5(const struct job *job, size_t first, size_t end, const size_t stride,
                        const size_t pixels, const enum way way)
{
    const struct ifd_dw_args *args = job->args;
    struct scratch_5x5 *scratch = args->scratch;
    struct line line = start_line(job, args->y_begin, pixels);
    const int64_t iy = (int64_t)(args->y_begin * args->stride_y) - (int64_t)args->pad_top;
    const int64_t ix = (int64_t)(first * stride) - (int64_t)args->pad_left;
    const size_t columns = ((end - first + 1) / 2 * 2 - 1) * stride + SIDE;
    size_t ready = 0; /* groups of rows, from iy on */
    for (size_t y = 0; y < args->y_end - args->y_begin; y++) {
        const size_t row = y * args->stride_y, group = row / 4;
        for (; ready < group + GROUPS; ready++) {
            set_rows(&line, iy + 4 * (int64_t)ready);
            interleave_columns(&line, ix, columns, pixels, scratch->columns[ready % GROUPS]);
        }
        const struct window window = {
            scratch->weights[row % 4],
            {scratch->columns[group % GROUPS], scratch->columns[(group + 1) % GROUPS]}};
        line_5x5(&line, &window, first, end, stride, pixels, way);
        line.out += line.out_line;
    }
}

/* Separate functions, as for 3x3 windows. */
typedef void segment_fn(const struct job *job, size_t first, size_t end);

#define SEGMENT_FN(stride, pixels, way)                                                            \
    __attribute__((noinline)) static void segment_s##stride##_p##pixels##_##way(                   \
        const struct job *job, size_t first, size_t end)                                           \
    {                                                                                              \
        segment_5x5(job, first, end, stride, pixels, WAY_##way);                                   \
    }
SEGMENT_FN(1, 1, PLAIN)
SEGMENT_FN(1, 1, FAST)
SEGMENT_FN(1, 1, EXACT)
SEGMENT_FN(1, 1, ANY)
SEGMENT_FN(2, 1, PLAIN)
SEGMENT_FN(2, 1, FAST)
SEGMENT_FN(2, 1, EXACT)
SEGMENT_FN(2, 1, ANY)
SEGMENT_FN(1, 2, PLAIN)
SEGMENT_FN(1, 2, ANY)
SEGMENT_FN(2, 2, PLAIN)
SEGMENT_FN(2, 2, ANY)
SEGMENT_FN(1, 4, PLAIN)
SEGMENT_FN(1, 4, ANY)
SEGMENT_FN(2, 4, PLAIN)
SEGMENT_FN(2, 4, ANY)
#undef SEGMENT_FN

/* All lines of a block whose weights have one part. */
static void run_5x5(const struct job *job)
{
    static segment_fn *const segment[2][3][WAYS] = {
        {{segment_s1_p1_PLAIN, segment_s1_p1_FAST, segment_s1_p1_EXACT, segment_s1_p1_ANY},
         {segment_s1_p2_PLAIN, segment_s1_p2_ANY, segment_s1_p2_ANY, segment_s1_p2_ANY},
         {segment_s1_p4_PLAIN, segment_s1_p4_ANY, segment_s1_p4_ANY, segment_s1_p4_ANY}},
        {{segment_s2_p1_PLAIN, segment_s2_p1_FAST, segment_s2_p1_EXACT, segment_s2_p1_ANY},
         {segment_s2_p2_PLAIN, segment_s2_p2_ANY, segment_s2_p2_ANY, segment_s2_p2_ANY},
         {segment_s2_p4_PLAIN, segment_s2_p4_ANY, segment_s2_p4_ANY, segment_s2_p4_ANY}}};
    const size_t segments = (job->count + SEGMENT - 1) / SEGMENT;
    const size_t width = ((job->count + segments - 1) / segments + 3) / 4 * 4;
    segment_fn *const run = segment[job->args->stride_x - 1][job->pixels / 2][job->way];
    shift_weights(job, job->args->scratch);
    for (size_t x = 0; x < job->count; x += width) {
        run(job, x, x + width < job->count ? x + width : job->count);
    }
}

#endif
