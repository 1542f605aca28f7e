/* Q8 depthwise 3x3 with sdot: 8 channels at a time, four input rows interleaved byte by byte, so that
 * one instruction takes a whole column of 4 channels, and two output lines come of one interleaving
 * (the second line's weights sit one byte further). Other windows, and weights that do not fit 8 bits
 * without their zero point, go the way of plain NEON. */
#include "backends/cpuacc/kernels/dw_q8_neon_impl.h"

enum {
    SETS = 6,                       /* window columns of two lines */
    WEIGHT_BYTES = SETS * 4 * BLOCK /* of a block */
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
        pack_tails(weights, requant, c0, header, (int32_t *)(void *)(w + WEIGHT_BYTES));
    }
}

/* Four rows of one column, interleaved: channels 0-3 and 4-7. */
struct four_rows {
    int8x16_t v[2];
};

INLINE struct four_rows load_rows(const struct line *line, int64_t x)
{
    int8x16_t r[4];
    if (x < 0 || x >= line->in_w) {
        const int8x16_t zero = vcombine_s8(line->zero, line->zero);
        return (struct four_rows){{zero, zero}};
    }
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        r[i] = vcombine_s8(vld1_s8(line->row[i] + x * (int64_t)line->step[i]), vdup_n_s8(0));
    }
    int16x8_t top = vreinterpretq_s16_s8(vzip1q_s8(r[0], r[1]));
    int16x8_t bottom = vreinterpretq_s16_s8(vzip1q_s8(r[2], r[3]));
    return (struct four_rows){{vreinterpretq_s8_s16(vzip1q_s16(top, bottom)),
                               vreinterpretq_s8_s16(vzip2q_s16(top, bottom))}};
}

/* One position of `lines` lines from its three columns; w[line*6 + kx*2 + half]. */
INLINE void output_3x3(const struct line *line, const struct four_rows *a,
                       const struct four_rows *b, const struct four_rows *c, const int8x16_t *w,
                       size_t x, const size_t lines, const int finish)
{
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        int32x4_t sum[2];
        start_sum(line, sum);
        UNROLL for (size_t j = 0; j < 2; j++)
        {
            sum[j] = vdotq_s32(sum[j], a->v[j], w[i * 6 + j]);
            sum[j] = vdotq_s32(sum[j], b->v[j], w[i * 6 + 2 + j]);
            sum[j] = vdotq_s32(sum[j], c->v[j], w[i * 6 + 4 + j]);
        }
        store(line, finish, sum, i, x);
    }
}

/* stride 1 and 2 share columns between positions; 0 stands for any stride and dilation. */
INLINE void line_3x3(const struct job *job, size_t y, const size_t lines, const size_t stride,
                     const int finish)
{
    const struct ifd_dw_args *args = job->args;
    const int64_t apart = stride == 0 ? (int64_t)args->dilation_x : 1;
    const int64_t advance = stride == 0 ? (int64_t)args->stride_x : (int64_t)stride;
    struct line line = start_line(job, y);
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        set_row(job, &line, r,
                (int64_t)(y * args->stride_y + r * args->dilation_y) - (int64_t)args->pad_top);
    }
    int8x16_t w[12];
    UNROLL for (size_t i = 0; i < 6 * lines; i++)
    {
        w[i] = vld1q_s8((const int8_t *)job->weights + 16 * i);
    }
    int64_t ix = -(int64_t)args->pad_left;
    struct four_rows column[3] = {load_rows(&line, ix), load_rows(&line, ix + apart)};
    for (size_t x = 0; x < line.out_w; x += 3) { /* the columns take turns */
        UNROLL for (size_t t = 0; t < 3; t++, ix += advance)
        {
            const size_t first = stride == 1 ? t : 2 * t % 3;
            struct four_rows *a = &column[first], *b = &column[(first + 1) % 3],
                             *c = &column[(first + 2) % 3];
            if (x + t >= line.out_w) {
                break;
            }
            if (stride == 0) {
                *a = load_rows(&line, ix);
            }
            if (stride != 1) {
                *b = load_rows(&line, ix + apart);
            }
            *c = load_rows(&line, ix + 2 * apart);
            output_3x3(&line, a, b, c, w, x + t, lines, finish);
        }
    }
}

LINE_BY_FINISH(line_two, line_3x3, 2, 1)
LINE_BY_FINISH(line_one, line_3x3, 1, 1)
LINE_BY_FINISH(line_strided, line_3x3, 1, 2)

static void line_any(const struct job *job, size_t y)
{
    line_3x3(job, y, 1, 0, job->header->private_[IFD_PACKED_FINISH]);
}

static void run_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    int dense = args->dilation_x == 1 && args->dilation_y == 1;
    for (size_t y = args->y_begin; y < args->y_end;) {
        if (dense && args->stride_x == 1 && args->stride_y == 1 && y + 1 < args->y_end) {
            line_two(job, y);
            y += 2;
        } else if (dense && args->stride_x == 1) {
            line_one(job, y++);
        } else if (dense && args->stride_x == 2) {
            line_strided(job, y++);
        } else {
            line_any(job, y++);
        }
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
