/* Q8 depthwise 3x3 with sdot: 8 channels at a time, four input rows interleaved byte by byte, so
 * that one instruction takes a whole column of 4 channels. Two output lines use one interleaving
 * (the second line's weights are one byte further). Other windows, and weights that do not fit 8
 * bits without their zero point, run as plain NEON. */
#include "backends/cpuacc/kernels/depthwise/dw_q8_neon_impl.h"

enum {
    SETS = 6,                    /* vectors of a line: window columns, halves of the channels */
    WEIGHT_BYTES = 2 * SETS * 16 /* of a block: two lines */
};

static int fits(const struct ifd_dw_weights *weights, int32_t zero)
{
    if (weights->kh != 3 || weights->kw != 3) {
        return 0;
    }
    for (size_t i = 0; i < 9 * weights->channels; i++) {
        int w = weight_at(weights, zero, i / weights->channels, i % weights->channels);
        if (w < -128 || w > 127) {
            return 0;
        }
    }
    return 1;
}

static size_t dot_packed_bytes(size_t channels)
{
    return IFD_PACKED_HEADER +
           (channels + BLOCK - 1) / BLOCK * (WEIGHT_BYTES + IFD_TAIL_ROWS * 4 * BLOCK);
}

static size_t packed_bytes(size_t channels, size_t kh, size_t kw)
{
    size_t wide = wide_packed_bytes(channels, kh, kw), dot = dot_packed_bytes(channels);
    return wide > dot ? wide : dot;
}

static void pack(const struct ifd_dw_weights *weights, const struct ifd_requant *requant, void *dst)
{
    struct ifd_packed *header = dst;
    if (!fits(weights, requant->weight_zero)) {
        wide_pack(weights, requant, dst);
        header->bytes = packed_bytes(weights->channels, weights->kh, weights->kw);
        return;
    }
    size_t block = WEIGHT_BYTES + IFD_TAIL_ROWS * 4 * BLOCK;
    pack_header(weights, requant, packed_bytes(weights->channels, 3, 3), block, header);
    header->private_[IFD_PACKED_TAIL_OFFSET] = WEIGHT_BYTES;
    for (size_t c0 = 0; c0 < weights->channels; c0 += BLOCK) {
        int8_t *w = (int8_t *)dst + IFD_PACKED_HEADER + c0 / BLOCK * block;
        for (size_t i = 0; i < WEIGHT_BYTES; i++) {
            size_t r = i % 4, c = c0 + i / 4 % BLOCK, kx = i / (4 * BLOCK) % 3,
                   down = i / (12 * BLOCK);
            int inside = r >= down && r - down < 3;
            w[i] =
                (int8_t)(inside ? weight_at(weights, requant->weight_zero, (r - down) * 3 + kx, c)
                                : 0);
        }
        pack_tails(weights, requant, c0, (int32_t *)(void *)(w + WEIGHT_BYTES));
    }
}

/* Addresses of the four rows of the next column. A row outside the image has step 0 and stays on
 * the zero point. */
struct cursor {
    const int8_t *row[4];
    size_t step[4];
};

INLINE struct cursor start_cursor(const struct job *job, size_t y)
{
    struct line line;
    struct cursor at;
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        set_row(job, &line, r,
                (int64_t)(y * job->args->stride_y + r * job->args->dilation_y) -
                    (int64_t)job->args->pad_top);
        at.row[r] = line.row[r];
        at.step[r] = line.step[r];
    }
    return at;
}

/* Four rows of one column, interleaved: channels 0-3 and 4-7. */
struct quad {
    int8x16_t v[2];
};

/* Interleaves the column at the cursor; `rows` of its rows only, if the fourth has no weight.
 * Assembly, since no intrinsic loads 8 bytes and advances in one instruction, and gcc does not
 * fill neighbouring registers, as table lookups need them, without copies. */
INLINE struct quad next_column(struct cursor *at, const size_t rows)
{
    static const uint8_t order[2][16] = {
        {0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27},
        {4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31},
    };
    register int8x16_t upper __asm__("v30"), lower __asm__("v31");
    struct quad column;
#define LOAD(text, constraint, vector, r)                                                          \
    __asm__(text                                                                                   \
            : constraint(vector), "+r"(at->row[r])                                                 \
            : "r"(at->step[r]), "m"(*(const int8_t(*)[8])at->row[r]))
    LOAD("ld1 {%0.8b}, [%1], %2", "=w", upper, 0);
    LOAD("ld1 {%0.d}[1], [%1], %2", "+w", upper, 1);
    LOAD("ld1 {%0.8b}, [%1], %2", "=w", lower, 2);
    if (rows == 4) {
        LOAD("ld1 {%0.d}[1], [%1], %2", "+w", lower, 3);
    }
#undef LOAD
    UNROLL for (size_t i = 0; i < 2; i++)
    {
        __asm__("tbl %0.16b, {%1.16b, %2.16b}, %3.16b"
                : "=w"(column.v[i])
                : "w"(upper), "w"(lower), "w"(vld1q_u8(order[i])));
    }
    return column;
}

/* Column x of the image; the cursor is at x if that is inside. */
INLINE struct quad column_at(const struct line *line, struct cursor *at, int64_t x,
                             const size_t rows)
{
    if (x < 0 || x >= line->in_w) {
        const int8x16_t zero = vcombine_s8(line->zero, line->zero);
        return (struct quad){{zero, zero}};
    }
    return next_column(at, rows);
}

/* Parameters of a line. usual: see store(). */
struct weights {
    int8x16_t v[12]; /* [line][column][half] */
    const int32_t *bias;
};

INLINE struct weights load_weights(const struct job *job, const size_t lines)
{
    struct weights weights = {.bias = job->tail};
    UNROLL for (size_t i = 0; i < SETS * lines; i++)
    {
        weights.v[i] = vld1q_s8((const int8_t *)job->weights + 16 * i);
    }
    return weights;
}

/* One instruction, where copies of registers would be two. */
INLINE void load_biases(const int32_t *bias, int32x4_t *ret_sum)
{
    __asm__("ldp %q0, %q1, [%2]"
            : "=w"(ret_sum[0]), "=w"(ret_sum[1])
            : "r"(bias), "m"(*(const int32_t(*)[2 * 4]) bias));
}

/* Assembly: for the intrinsic gcc copies sums from one register to another. */
INLINE void add_quad(int32x4_t *sum, int8x16_t a, int8x16_t w)
{
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(*sum) : "w"(a), "w"(w));
}

/* One position of `lines` lines from its three columns. */
INLINE void output_3x3(const struct line *line, struct weights *weights, const struct quad *a,
                       const struct quad *b, const struct quad *c, int8_t **out, const size_t lines,
                       const int usual, const int finish)
{
    int32x4_t sum[2][2];
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        const int8x16_t *w = weights->v + i * SETS;
        load_biases(weights->bias, sum[i]);
        UNROLL for (size_t j = 0; j < 2; j++)
        {
            add_quad(&sum[i][j], a->v[j], w[j]);
            add_quad(&sum[i][j], b->v[j], w[2 + j]);
            add_quad(&sum[i][j], c->v[j], w[4 + j]);
        }
    }
    store(line, usual, finish, sum, out, lines);
}

/* Number of positions from the left whose columns are inside, but for those of the padding's
 * width. */
INLINE size_t inner_positions(const struct line *line, int64_t first, const size_t stride)
{
    const int64_t last = (line->in_w - first - 3) / (int64_t)stride;
    if (first < -1 || line->in_w - first < 3) {
        return 0;
    }
    return (size_t)last < line->out_w ? (size_t)last + 1 : line->out_w;
}

/* One line or two, of stride 1 or 2: neighbouring positions share columns, which rotate. */
INLINE void line_3x3(const struct job *job, const struct line *line, struct weights *weights,
                     size_t y, const size_t lines, const size_t stride, const int usual,
                     const int finish)
{
    struct cursor at = start_cursor(job, y);
    int8_t *out[2] = {line->out + y * line->out_line, line->out + (y + 1) * line->out_line};
    int64_t ix = -(int64_t)job->args->pad_left;
    const size_t inner = inner_positions(line, ix, stride) / 3 * 3;
    struct quad column[3];
    column[0] = column_at(line, &at, ix++, lines + 2);
    if (stride == 1) {
        column[1] = column_at(line, &at, ix++, lines + 2);
    }
    size_t x = 0;
    for (; x < inner; x += 3) {
        UNROLL for (size_t t = 0; t < 3; t++)
        {
            const size_t a = stride * t % 3, b = (a + 1) % 3, c = (a + 2) % 3;
            if (stride == 2) {
                column[b] = next_column(&at, lines + 2);
            }
            column[c] = next_column(&at, lines + 2);
            output_3x3(line, weights, &column[a], &column[b], &column[c], out, lines, usual,
                       finish);
        }
    }
    ix += (int64_t)(stride * inner);
    for (; x < line->out_w; x++) {
        if (stride == 2) {
            column[1] = column_at(line, &at, ix++, lines + 2);
        }
        column[2] = column_at(line, &at, ix++, lines + 2);
        output_3x3(line, weights, &column[0], &column[1], &column[2], out, lines, usual, finish);
        column[0] = column[stride];
        column[1] = column[2];
    }
}

/* Lines y .. y_end-1, by twos where the stride is 1. */
INLINE void lines_3x3(const struct job *job, size_t y, size_t y_end, const size_t stride,
                      const int usual, const int finish)
{
    const struct line line = start_line(job, 0);
    struct weights weights = load_weights(job, stride == 1 ? 2 : 1);
    for (; stride == 1 && y + 1 < y_end; y += 2) {
        line_3x3(job, &line, &weights, y, 2, stride, usual, finish);
    }
    for (; y < y_end; y++) {
        line_3x3(job, &line, &weights, y, 1, stride, usual, finish);
    }
}

/* Any stride and dilation. */
static void lines_any(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const struct line line = start_line(job, 0);
    struct weights weights = load_weights(job, 1);
    for (size_t y = args->y_begin; y < args->y_end; y++) {
        const struct cursor start = start_cursor(job, y);
        int8_t *out = line.out + y * line.out_line;
        for (size_t x = 0; x < line.out_w; x++) {
            struct quad column[3];
            for (size_t kx = 0; kx < 3; kx++) {
                const int64_t ix =
                    (int64_t)(x * args->stride_x + kx * args->dilation_x) - (int64_t)args->pad_left;
                struct cursor at = start;
                for (size_t r = 0; r < 4; r++) {
                    at.row[r] += ix * (int64_t)at.step[r];
                }
                column[kx] = column_at(&line, &at, ix, 3);
            }
            output_3x3(&line, &weights, &column[0], &column[1], &column[2], &out, 1, 0,
                       line.finish);
        }
    }
}

LINES_BY_FINISH(lines_dense, lines_3x3, 1)
LINES_BY_FINISH(lines_strided, lines_3x3, 2)

static void run_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const int is_dense = args->dilation_x * args->dilation_y == 1;
    if (is_dense && args->stride_x == 1 && args->stride_y == 1) {
        lines_dense(job);
    } else if (is_dense && args->stride_x == 2) {
        lines_strided(job);
    } else {
        lines_any(job);
    }
}

static void run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    if (header->private_[IFD_PACKED_TAIL_OFFSET] == WEIGHT_BYTES) {
        run_blocks(args, WEIGHT_BYTES, run_block);
    } else {
        wide_run(args);
    }
}

const struct ifd_kern_dw_q8 ifd_kern_dw_q8_dot = {packed_bytes, pack, scratch_bytes, run};
