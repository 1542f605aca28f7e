/* 3x3 windows of the VNNI depthwise kernels: each column of the input is interleaved once and
 * used by up to three output pixels, and with stride 1 by two output lines (the second line's
 * weights are one byte further). Columns and rows outside the image are the zero point, so there
 * is no padding copy and no table of addresses. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_VNNI_3X3_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_VNNI_3X3_IMPL_H

#include "backends/cpuacc/kernels/depthwise/dw_q8_vnni_lines_impl.h"

/* Adds column kx of the windows of `count` neighbouring output positions; position p has
 * column[p * stride]. Each vector of weights is loaded once for all. */
INLINE void add_column(const struct line *line, const int8_t *w, const size_t kx,
                       const struct column *column, const size_t count, const size_t stride,
                       const enum way way, __m512i *sum)
{
    const size_t parts = way == WAY_ANY ? (size_t)line->tail[PARTS] : 1;
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        __m512i wv = _mm512_load_si512(w + (kx * VECTORS + j) * BLOCK);
        UNROLL for (size_t p = 0; p < count; p++)
        {
            sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], column[p * stride].v[j], wv);
        }
        for (size_t part = 1; part < parts; part++) {
            if (!(line->rests >> ((3 * (part - 1) + kx) * VECTORS + j) & 1)) {
                continue;
            }
            wv = _mm512_load_si512(w + ((6 * part + kx) * VECTORS + j) * BLOCK);
            UNROLL for (size_t p = 0; p < count; p++)
            {
                sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], column[p * stride].v[j], wv);
            }
        }
    }
}

/* `count` neighbouring output positions of `lines` lines; position p has the columns from
 * column[p] on. The first line is stored last: its address stands in for the second line's where
 * that is not computed. */
INLINE void output_3x3(const struct line *line, const struct column *column, size_t x,
                       const size_t count, const size_t lines, const size_t pixels,
                       const enum way way)
{
    UNROLL for (size_t i = lines; i-- > 0;)
    {
        __m512i sum[2 * VECTORS];
        start_positions(line, count, sum);
        UNROLL for (size_t kx = 0; kx < 3; kx++)
        {
            add_column(line, line->weights + i * 3 * VECTORS * BLOCK, kx, column + kx, count, 1,
                       way, sum);
        }
        finish_positions(line, way, sum, line->out + i * line->out_line, x, count, count, pixels);
    }
}

/* Loads column ix + ahead of the line at ix. is_edge: the column may be outside the image. */
INLINE struct column next_column(const struct line *line, const struct line *at, int64_t ix,
                                 int64_t ahead, const size_t pixels, const size_t rows,
                                 const int is_edge)
{
    return is_edge ? load_column(line, ix + ahead, pixels, rows)
                   : inner_column(at, ahead, pixels, rows);
}

/* Stride 1, two positions at a time with four columns; the first two are loaded already. */
INLINE void output_pair(const struct line *line, const struct line *at, struct column *c, size_t x,
                        int64_t ix, const size_t lines, const size_t pixels, const enum way way,
                        const int is_edge)
{
    c[2] = next_column(line, at, ix, 0, pixels, 4, is_edge);
    c[3] = next_column(line, at, ix, 1, pixels, 4, is_edge);
    output_3x3(line, c, x, 2, lines, pixels, way);
    c[0] = c[2];
    c[1] = c[3];
}

INLINE void roll(const struct line *line, int64_t ix, const size_t lines, const size_t pixels,
                 const enum way way)
{
    struct line at = *line;
    struct column c[4];
    size_t x = 0;
    c[0] = load_column(line, ix, pixels, 4);
    c[1] = load_column(line, ix + 1, pixels, 4);
    ix += 2;
    walk(&at, ix);
    for (; x + 1 < line->count && ix + 1 < line->inner_w; x += 2, ix += 2) {
        output_pair(line, &at, c, x, ix, lines, pixels, way, 0);
        walk(&at, 2);
    }
    for (; x + 1 < line->count; x += 2, ix += 2) {
        output_pair(line, &at, c, x, ix, lines, pixels, way, 1);
    }
    if (x < line->count) {
        c[2] = load_column(line, ix, pixels, 4);
        output_3x3(line, c, x, 1, lines, pixels, way);
    }
}

/* Stride 2, two positions at a time, column by column, so that all of them stay in registers.
 * The first column of c is loaded already. */
INLINE void output_strided(const struct line *line, const struct line *at, struct column *c,
                           size_t x, int64_t ix, const size_t pixels, const enum way way,
                           const int is_edge)
{
    __m512i sum[2 * VECTORS];
    start_positions(line, 2, sum);
    c[2] = next_column(line, at, ix, 1, pixels, 3, is_edge);
    add_column(line, line->weights, 0, c, 2, 2, way, sum);
    c[1] = next_column(line, at, ix, 0, pixels, 3, is_edge);
    c[3] = next_column(line, at, ix, 2, pixels, 3, is_edge);
    add_column(line, line->weights, 1, c + 1, 2, 2, way, sum);
    c[4] = next_column(line, at, ix, 3, pixels, 3, is_edge);
    add_column(line, line->weights, 2, c + 2, 2, 2, way, sum);
    finish_positions(line, way, sum, line->out, x, 2, 2, pixels);
    c[0] = c[4];
}

INLINE void roll_strided(const struct line *line, int64_t ix, const size_t pixels,
                         const enum way way)
{
    struct line at = *line;
    struct column c[5];
    size_t x = 0;
    c[0] = load_column(line, ix, pixels, 3);
    ix++;
    walk(&at, ix);
    for (; x + 1 < line->count && ix + 3 < line->inner_w; x += 2, ix += 4) {
        output_strided(line, &at, c, x, ix, pixels, way, 0);
        walk(&at, 4);
    }
    for (; x + 1 < line->count; x += 2, ix += 4) {
        output_strided(line, &at, c, x, ix, pixels, way, 1);
    }
    if (x < line->count) {
        c[1] = load_column(line, ix, pixels, 3);
        c[2] = load_column(line, ix + 1, pixels, 3);
        output_3x3(line, c, x, 1, 1, pixels, way);
    }
}

/* Output line y, or with stride 1 lines y and y + 1; the second may not exist. */
INLINE void line_3x3(const struct job *job, size_t y, const size_t lines, const size_t stride,
                     const size_t pixels, const enum way way)
{
    struct line line = start_line(job, y, pixels);
    set_rows(&line, (int64_t)(y * job->args->stride_y) - (int64_t)job->args->pad_top);
    const int64_t ix = -(int64_t)job->args->pad_left;
    if (stride == 2) {
        roll_strided(&line, ix, pixels, way);
    } else {
        line.out_line = y + 1 < job->args->y_end ? line.out_line : 0;
        roll(&line, ix, lines, pixels, way);
    }
}

/* Separate functions: in one function for all ways gcc 12 keeps sums on the stack. */
typedef void line_fn(const struct job *job, size_t y);

#define LINE(lines, stride, pixels, way)                                                           \
    __attribute__((noinline)) static void line_##lines##_s##stride##_p##pixels##_##way(            \
        const struct job *job, size_t y)                                                           \
    {                                                                                              \
        line_3x3(job, y, lines, stride, pixels, WAY_##way);                                        \
    }
LINE(1, 1, 1, PLAIN)
LINE(1, 1, 1, FAST)
LINE(1, 1, 1, EXACT)
LINE(1, 1, 1, ANY)
LINE(2, 1, 1, PLAIN)
LINE(2, 1, 1, FAST)
LINE(2, 1, 1, EXACT)
LINE(2, 1, 1, ANY)
LINE(1, 2, 1, PLAIN)
LINE(1, 2, 1, FAST)
LINE(1, 2, 1, EXACT)
LINE(1, 2, 1, ANY)
LINE(2, 1, 2, PLAIN)
LINE(2, 1, 2, FAST)
LINE(2, 1, 2, EXACT)
LINE(2, 1, 2, ANY)
LINE(1, 2, 2, PLAIN)
LINE(1, 2, 2, ANY)
LINE(2, 1, 4, PLAIN)
LINE(2, 1, 4, ANY)
LINE(1, 2, 4, PLAIN)
LINE(1, 2, 4, ANY)
#undef LINE

/* Functions for all lines of a block, by pixels a vector (1, 2, 4) and way. */
static void run_3x3(const struct job *job)
{
    static line_fn *const one[WAYS] = {line_1_s1_p1_PLAIN, line_1_s1_p1_FAST, line_1_s1_p1_EXACT,
                                       line_1_s1_p1_ANY};
    static line_fn *const two[3][WAYS] = {
        {line_2_s1_p1_PLAIN, line_2_s1_p1_FAST, line_2_s1_p1_EXACT, line_2_s1_p1_ANY},
        {line_2_s1_p2_PLAIN, line_2_s1_p2_FAST, line_2_s1_p2_EXACT, line_2_s1_p2_ANY},
        {line_2_s1_p4_PLAIN, line_2_s1_p4_ANY, line_2_s1_p4_ANY, line_2_s1_p4_ANY}};
    static line_fn *const strided[3][WAYS] = {
        {line_1_s2_p1_PLAIN, line_1_s2_p1_FAST, line_1_s2_p1_EXACT, line_1_s2_p1_ANY},
        {line_1_s2_p2_PLAIN, line_1_s2_p2_ANY, line_1_s2_p2_ANY, line_1_s2_p2_ANY},
        {line_1_s2_p4_PLAIN, line_1_s2_p4_ANY, line_1_s2_p4_ANY, line_1_s2_p4_ANY}};
    const struct ifd_dw_args *args = job->args;
    const size_t pick = job->pixels / 2;
    const int in_pairs = args->stride_x == 1 && args->stride_y == 1;
    for (size_t y = args->y_begin; y < args->y_end;) {
        const int is_last = y + 1 == args->y_end;
        if (args->stride_x == 2) {
            strided[pick][job->way](job, y++);
        } else if (pick == 0 && (is_last || !in_pairs)) {
            one[job->way](job, y++);
        } else {
            two[pick][job->way](job, y);
            y += in_pairs ? 2 : 1;
        }
    }
}

#endif
