/* Q8 depthwise convolution for NEON: 8 channels at a time in 16-bit products (smlal), so weights
 * with a zero point fit as they are. All of the plain NEON table, and what the dotprod table
 * falls back to.
 *
 * 3x3 windows keep their nine weights in registers, compute two output lines at once where the
 * stride is 1, and load each column once for both lines and three positions. Columns and rows
 * outside the image are the zero point: no padding copy, no table of addresses. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_NEON_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_NEON_IMPL_H

#include "backends/cpuacc/kernels/simd/finish_neon.h"

enum { BLOCK = 8 };

static size_t wide_block_bytes(size_t taps)
{
    return taps * BLOCK * sizeof(int16_t) + IFD_TAIL_ROWS * 4 * BLOCK;
}

/* Weight of channel c at tap t without its zero point; 0 outside window and channels. */
static int weight_at(const struct ifd_dw_weights *weights, int32_t zero, size_t t, size_t c)
{
    if (t >= weights->kh * weights->kw || c >= weights->channels) {
        return 0;
    }
    return ((const int8_t *)weights->w)[t * weights->stride_tap + c] - zero;
}

static void pack_tails(const struct ifd_dw_weights *weights, const struct ifd_requant *requant,
                       size_t c0, int32_t *tail)
{
    for (size_t slot = 0; slot < BLOCK; slot++) {
        size_t c = c0 + slot;
        int64_t sum = 0;
        for (size_t t = 0; t < weights->kh * weights->kw; t++) {
            sum += weight_at(weights, requant->weight_zero, t, c);
        }
        int32_t bias = c < weights->channels && requant->bias ? requant->bias[c] : 0;
        ifd_pack_tail(requant, c, weights->channels, (int32_t)(bias - requant->in_zero * sum),
                      BLOCK, slot, tail);
    }
    neon_tail(requant, BLOCK, tail);
}

static int all_small(const struct ifd_dw_weights *weights, const struct ifd_requant *requant)
{
    for (size_t c = 0; c < weights->channels; c++) {
        int64_t sum = 0;
        for (size_t t = 0; t < weights->kh * weights->kw; t++) {
            const int w = weight_at(weights, requant->weight_zero, t, c);
            sum += w < 0 ? -w : w;
        }
        if (!is_small(requant, c, sum)) {
            return 0;
        }
    }
    return 1;
}

static void pack_header(const struct ifd_dw_weights *weights, const struct ifd_requant *requant,
                        size_t bytes, size_t block_bytes, struct ifd_packed *header)
{
    *header = (struct ifd_packed){.bytes = bytes,
                                  .n = (uint32_t)weights->channels,
                                  .k = 1,
                                  .taps = (uint32_t)(weights->kh * weights->kw),
                                  .nr = BLOCK,
                                  .mr = 2,
                                  .unit_bytes = (uint32_t)block_bytes};
    ifd_pack_header(requant, header);
    header->private_[IFD_PACKED_FINISH] = neon_finish(requant, all_small(weights, requant));
    header->private_[IFD_PACKED_KH] = (int32_t)weights->kh;
    header->private_[IFD_PACKED_KW] = (int32_t)weights->kw;
}

static size_t wide_packed_bytes(size_t channels, size_t kh, size_t kw)
{
    return IFD_PACKED_HEADER + (channels + BLOCK - 1) / BLOCK * wide_block_bytes(kh * kw);
}

static void wide_pack(const struct ifd_dw_weights *weights, const struct ifd_requant *requant,
                      void *dst)
{
    size_t taps = weights->kh * weights->kw;
    pack_header(weights, requant, wide_packed_bytes(weights->channels, weights->kh, weights->kw),
                wide_block_bytes(taps), dst);
    unsigned char *at = (unsigned char *)dst + IFD_PACKED_HEADER;
    for (size_t c0 = 0; c0 < weights->channels; c0 += BLOCK, at += wide_block_bytes(taps)) {
        int16_t *w = (int16_t *)(void *)at;
        for (size_t i = 0; i < taps * BLOCK; i++) {
            w[i] = (int16_t)weight_at(weights, requant->weight_zero, i / BLOCK, c0 + i % BLOCK);
        }
        pack_tails(weights, requant, c0, (int32_t *)(void *)(w + taps * BLOCK));
    }
}

static size_t scratch_bytes(const struct ifd_dw_args *args, size_t kh, size_t kw)
{
    (void)args;
    (void)kh;
    (void)kw;
    return 0;
}

/* One block of one call. */
struct job {
    const struct ifd_dw_args *args;
    const struct ifd_packed *header;
    const void *weights;
    const int32_t *tail;
    size_t kh, kw;
    size_t c0, channels; /* first of the block, and how many of it */
    int8_t zero[BLOCK];
};

/* A line's parameters, copied to locals because stores through int8_t may alias everything else.
 * A row outside the image has step 0 and stays on the zero point. */
struct line {
    const int8_t *row[4];
    size_t step[4];
    int64_t in_w;
    int32x4_t bias[2];
    struct factors factors[2];
    int8_t *out;
    size_t out_pixel, out_line, out_w, channels;
    int finish;
    struct bounds bounds;
    int8x8_t zero;
};

INLINE struct line start_line(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    const int finish = job->header->private_[IFD_PACKED_FINISH];
    return (struct line){
        .in_w = (int64_t)args->in_w,
        .bias = {vld1q_s32(job->tail), vld1q_s32(job->tail + 4)},
        .factors = {load_factors(job->tail, BLOCK), load_factors(job->tail + 4, BLOCK)},
        .out = (int8_t *)args->out + y * args->out_line_stride + job->c0,
        .out_pixel = args->out_pixel_stride,
        .out_line = args->out_line_stride,
        .out_w = args->out_w,
        .channels = job->channels,
        .finish = finish,
        .bounds = load_bounds(job->header),
        .zero = vdup_n_s8((int8_t)job->header->private_[IFD_PACKED_IN_ZERO])};
}

/* Points row r at input line iy. */
INLINE void set_row(const struct job *job, struct line *line, size_t r, int64_t iy)
{
    int inside = iy >= 0 && iy < (int64_t)job->args->in_h;
    line->step[r] = inside ? job->args->in_pixel_stride : 0;
    line->row[r] =
        inside ? (const int8_t *)job->args->in + (size_t)iy * job->args->in_line_stride + job->c0
               : job->zero;
}

INLINE int8x8_t load_pixel(const struct line *line, size_t r, int64_t x)
{
    if (x < 0 || x >= line->in_w) {
        return line->zero;
    }
    return vld1_s8(line->row[r] + x * (int64_t)line->step[r]);
}

/* Loads 8 bytes, or the upper 8 of 16, and advances in the same instruction, which no intrinsic
 * does. */
INLINE void store_low(int8x8_t bytes, size_t step, int8_t **out)
{
#if defined(__aarch64__)
    __asm__("st1 {%2.8b}, [%0], %3"
            : "+r"(*out), "=m"(*(int8_t(*)[8]) * out)
            : "w"(bytes), "r"(step));
#else
    vst1_s8(*out, bytes);
    *out += step;
#endif
}

INLINE void store_high(int8x16_t bytes, size_t step, int8_t **out)
{
#if defined(__aarch64__)
    __asm__("st1 {%2.d}[1], [%0], %3"
            : "+r"(*out), "=m"(*(int8_t(*)[8]) * out)
            : "w"(bytes), "r"(step));
#else
    store_low(vget_high_s8(bytes), step, out);
#endif
}

/* Scales, packs and stores the 8 sums of one position of one or two lines at each line's `out`,
 * and advances it. finish is line->finish; usual: it is a constant, the block is complete, and
 * bounds are those of the type. */
INLINE void store(const struct line *line, const int usual, const int finish,
                  const int32x4_t sum[][2], int8_t **out, const size_t lines)
{
    const struct bounds *bounds = &line->bounds;
    int16x8_t words[2];
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        words[i] = narrow_32(finish, scale_sums(finish, &line->factors[0], sum[i][0]),
                             scale_sums(finish, &line->factors[1], sum[i][1]));
    }
    if (usual && lines == 2) {
        const int8x16_t bytes = narrow_16(finish, words[0], words[1], bounds->zero);
        store_low(vget_low_s8(bytes), line->out_pixel, &out[0]);
        store_high(bytes, line->out_pixel, &out[1]);
        return;
    }
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        const int8x8_t bytes = narrow_8(finish, words[i], bounds->zero);
        if (usual) {
            store_low(bytes, line->out_pixel, &out[i]);
        } else {
            store_8(vmin_s8(vmax_s8(bytes, bounds->min), bounds->max), line->channels, out[i]);
            out[i] += line->out_pixel;
        }
    }
}

INLINE void start_sum(const struct line *line, int32x4_t *sum)
{
    sum[0] = line->bias[0];
    sum[1] = line->bias[1];
}

INLINE void add_tap(int32x4_t *sum, int16x8_t a, int16x8_t w)
{
    sum[0] = vmlal_s16(sum[0], vget_low_s16(a), vget_low_s16(w));
#if defined(__aarch64__)
    sum[1] = vmlal_high_s16(sum[1], a, w);
#else
    sum[1] = vmlal_s16(sum[1], vget_high_s16(a), vget_high_s16(w));
#endif
}

/* One position of `lines` lines from the rows of its three columns. */
struct column {
    int16x8_t v[4];
};

INLINE struct column load_column(const struct line *line, int64_t x, const size_t rows)
{
    struct column column;
    if (x < 0 || x >= line->in_w) {
        UNROLL for (size_t r = 0; r < rows; r++)
        {
            column.v[r] = vmovl_s8(line->zero);
        }
        return column;
    }
    UNROLL for (size_t r = 0; r < rows; r++)
    {
        column.v[r] = vmovl_s8(vld1_s8(line->row[r] + x * (int64_t)line->step[r]));
    }
    return column;
}

INLINE void add_column(int32x4_t sum[][2], const struct column *column, const int16x8_t *w,
                       const size_t kx, const size_t lines)
{
    UNROLL for (size_t ky = 0; ky < 3; ky++)
    {
        UNROLL for (size_t i = 0; i < lines; i++)
        {
            add_tap(sum[i], column->v[ky + i], w[3 * ky + kx]);
        }
    }
}

/* One or two output lines with stride 1, or one with stride 2: sums of three positions are open. */
INLINE void wide_line_3x3(const struct job *job, size_t y, const size_t lines, const size_t stride,
                          const int usual, const int finish)
{
    struct line line = start_line(job, y);
    UNROLL for (size_t r = 0; r < lines + 2; r++)
    {
        set_row(job, &line, r,
                (int64_t)(y * job->args->stride_y + r) - (int64_t)job->args->pad_top);
    }
    int16x8_t w[9];
    UNROLL for (size_t t = 0; t < 9; t++)
    {
        w[t] = vld1q_s16((const int16_t *)job->weights + t * BLOCK);
    }
    int64_t ix = -(int64_t)job->args->pad_left;
    int8_t *out[2] = {line.out, line.out + line.out_line};
    int32x4_t a[2][2], b[2][2], next[2][2];
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        start_sum(&line, a[i]);
        start_sum(&line, b[i]);
    }
    struct column c = load_column(&line, ix, lines + 2);
    add_column(a, &c, w, 0, lines);
    if (stride == 1) {
        c = load_column(&line, ix + 1, lines + 2);
        add_column(a, &c, w, 1, lines);
        add_column(b, &c, w, 0, lines);
    }
    for (size_t x = 0; x < line.out_w; x++, ix += (int64_t)stride) {
        UNROLL for (size_t i = 0; i < lines; i++)
        {
            start_sum(&line, next[i]);
        }
        if (stride == 2) {
            c = load_column(&line, ix + 1, lines + 2);
            add_column(a, &c, w, 1, lines);
        }
        c = load_column(&line, ix + 2, lines + 2);
        add_column(a, &c, w, 2, lines);
        if (stride == 1) {
            add_column(b, &c, w, 1, lines);
        }
        add_column(next, &c, w, 0, lines);
        store(&line, usual, finish, a, out, lines);
        UNROLL for (size_t i = 0; i < lines; i++)
        {
            UNROLL for (size_t j = 0; j < 2; j++)
            {
                a[i][j] = stride == 1 ? b[i][j] : next[i][j];
                b[i][j] = next[i][j];
            }
        }
    }
}

/* Lines y .. y_end-1, by twos where the stride is 1. */
INLINE void wide_lines_3x3(const struct job *job, size_t y, size_t y_end, const size_t stride,
                           const int usual, const int finish)
{
    for (; stride == 1 && y + 1 < y_end; y += 2) {
        wide_line_3x3(job, y, 2, stride, usual, finish);
    }
    for (; y < y_end; y++) {
        wide_line_3x3(job, y, 1, stride, usual, finish);
    }
}

static int is_unbounded(const struct ifd_packed *header)
{
    return header->private_[IFD_PACKED_OUT_MIN] == INT8_MIN &&
           header->private_[IFD_PACKED_OUT_MAX] == INT8_MAX;
}

/* A function NAME of lines with `usual` and `finish` constants in the usual cases. */
#define LINES_BY_FINISH(name, lines, stride)                                                       \
    static void name(const struct job *job)                                                        \
    {                                                                                              \
        const size_t y = job->args->y_begin, y_end = job->args->y_end;                             \
        const int finish = job->header->private_[IFD_PACKED_FINISH];                               \
        const int usual = job->channels == BLOCK && is_unbounded(job->header);                     \
        if (usual && finish == NEON_FINISH_RELU) {                                                 \
            lines(job, y, y_end, stride, 1, NEON_FINISH_RELU);                                     \
        } else if (usual && finish == NEON_FINISH_LINEAR) {                                        \
            lines(job, y, y_end, stride, 1, NEON_FINISH_LINEAR);                                   \
        } else {                                                                                   \
            lines(job, y, y_end, stride, 0, finish);                                               \
        }                                                                                          \
    }
LINES_BY_FINISH(wide_dense, wide_lines_3x3, 1)
LINES_BY_FINISH(wide_strided, wide_lines_3x3, 2)

/* Any window, tap by tap. */
static void wide_any(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    for (size_t y = args->y_begin; y < args->y_end; y++) {
        struct line line = start_line(job, y);
        int8_t *out = line.out;
        for (size_t x = 0; x < line.out_w; x++) {
            const int16_t *w = job->weights;
            int32x4_t sum[1][2];
            start_sum(&line, sum[0]);
            for (size_t ky = 0; ky < job->kh; ky++) {
                const size_t iy = y * args->stride_y + ky * args->dilation_y;
                set_row(job, &line, 0, (int64_t)iy - (int64_t)args->pad_top);
                for (size_t kx = 0; kx < job->kw; kx++, w += BLOCK) {
                    const size_t ix = x * args->stride_x + kx * args->dilation_x;
                    const int8x8_t a = load_pixel(&line, 0, (int64_t)ix - (int64_t)args->pad_left);
                    add_tap(sum[0], vmovl_s8(a), vld1q_s16(w));
                }
            }
            store(&line, 0, line.finish, sum, &out, 1);
        }
    }
}

static void wide_run_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const int rolls = job->kh == 3 && job->kw == 3 && args->dilation_x * args->dilation_y == 1;
    if (rolls && args->stride_x == 1 && args->stride_y == 1) {
        wide_dense(job);
    } else if (rolls && args->stride_x == 2) {
        wide_strided(job);
    } else {
        wide_any(job);
    }
}

/* Calls run_block for every block of the call; weight_bytes lie before each tail. */
INLINE void run_blocks(const struct ifd_dw_args *args, size_t weight_bytes,
                       void (*run_block)(const struct job *))
{
    const struct ifd_packed *header = args->packed;
    for (size_t c0 = args->c_begin; c0 < args->c_end; c0 += BLOCK) {
        const unsigned char *block = (const unsigned char *)args->packed + IFD_PACKED_HEADER +
                                     c0 / BLOCK * header->unit_bytes;
        struct job job = {.args = args,
                          .header = header,
                          .weights = block,
                          .tail = (const int32_t *)(const void *)(block + weight_bytes),
                          .kh = (size_t)header->private_[IFD_PACKED_KH],
                          .kw = (size_t)header->private_[IFD_PACKED_KW],
                          .c0 = c0,
                          .channels = args->c_end - c0 < BLOCK ? args->c_end - c0 : BLOCK};
        vst1_s8(job.zero, vdup_n_s8((int8_t)header->private_[IFD_PACKED_IN_ZERO]));
        run_block(&job);
    }
}

static void wide_run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    run_blocks(args, (size_t)header->taps * BLOCK * sizeof(int16_t), wide_run_block);
}

#endif
