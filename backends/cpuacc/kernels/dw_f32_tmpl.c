/* f32 depthwise convolution over the vector vocabulary: a vector of channels at a time.
 *
 * 3x3 windows keep their nine weights in registers, and with stride 1 compute two output lines at
 * once; columns roll, so that every input is loaded once for both lines and three positions. Dilated
 * ones and those of five or seven columns are summed a line at a time over strips of positions. Rows and
 * columns outside the image contribute nothing. */
#include "backends/cpuacc/kernels/pack.h"
#include "backends/cpuacc/kernels/simd.h"

static size_t block_floats(size_t taps)
{
    return (taps + 1) * VF_LANES;
}

static size_t packed_bytes(size_t channels, size_t kh, size_t kw)
{
    return IFD_PACKED_HEADER +
           (channels + VF_LANES - 1) / VF_LANES * block_floats(kh * kw) * sizeof(float);
}

/* Blocks of VF_LANES channels: the bias, then the taps. */
static void pack(const struct ifd_dw_weights *weights, const float *bias, void *dst)
{
    size_t taps = weights->kh * weights->kw;
    struct ifd_packed *header = dst;
    *header =
        (struct ifd_packed){.bytes = packed_bytes(weights->channels, weights->kh, weights->kw),
                            .n = (uint32_t)weights->channels,
                            .k = 1,
                            .taps = (uint32_t)taps,
                            .nr = VF_LANES,
                            .mr = 2,
                            .unit_bytes = (uint32_t)(block_floats(taps) * sizeof(float))};
    header->private_[IFD_PACKED_KH] = (int32_t)weights->kh;
    header->private_[IFD_PACKED_KW] = (int32_t)weights->kw;
    float *at = (float *)(void *)((unsigned char *)dst + IFD_PACKED_HEADER);
    for (size_t c0 = 0; c0 < weights->channels; c0 += VF_LANES) {
        for (size_t t = 0; t <= taps; t++) {
            for (size_t l = 0; l < VF_LANES; l++, at++) {
                int present = c0 + l < weights->channels;
                if (t == 0) {
                    *at = present && bias ? bias[c0 + l] : 0.0f;
                } else {
                    const float *w = (const float *)weights->w + (t - 1) * weights->stride_tap;
                    *at = present ? w[c0 + l] : 0.0f;
                }
            }
        }
    }
}

static size_t scratch_bytes(const struct ifd_dw_args *args, size_t kh, size_t kw)
{
    (void)args;
    (void)kh;
    (void)kw;
    return 0;
}

/* One block of one call, from its channel c0 on. */
struct job {
    const struct ifd_dw_args *args;
    const float *packed; /* bias and taps */
    size_t kh, kw, c0, channels;
};

struct line {
    const float *row[4]; /* a line of the image, or zeros with step 0 */
    size_t step[4];
    int64_t in_w;
    float *out;
    size_t out_pixel, out_line, out_w, channels;
    vf bias, lo, hi;
};

static const float zeros[16] = {0.0f};

INLINE struct line start_line(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    return (struct line){.in_w = (int64_t)args->in_w,
                         .out = (float *)args->out + y * args->out_line_stride + job->c0,
                         .out_pixel = args->out_pixel_stride,
                         .out_line = args->out_line_stride,
                         .out_w = args->out_w,
                         .channels = job->channels,
                         .bias = vf_load(job->packed),
                         .lo = vf_set1(args->min),
                         .hi = vf_set1(args->max)};
}

INLINE void set_row(const struct job *job, struct line *line, size_t r, int64_t iy)
{
    int inside = iy >= 0 && iy < (int64_t)job->args->in_h;
    line->step[r] = inside ? job->args->in_pixel_stride : 0;
    line->row[r] =
        inside ? (const float *)job->args->in + (size_t)iy * job->args->in_line_stride + job->c0
               : zeros;
}

INLINE void store(const struct line *line, vf sum, size_t i, size_t x)
{
    float *out = line->out + i * line->out_line + x * line->out_pixel;
    sum = vf_min(line->hi, vf_max(line->lo, sum));
    if (line->channels == VF_LANES) {
        vf_store(out, sum);
    } else {
        vf_store_n(out, sum, line->channels);
    }
}

struct column {
    vf v[4];
};

INLINE struct column load_column(const struct line *line, int64_t x, const size_t rows)
{
    struct column column;
    const int inside = x >= 0 && x < line->in_w;
    UNROLL for (size_t r = 0; r < rows; r++)
    {
        column.v[r] = inside ? vf_load(line->row[r] + x * (int64_t)line->step[r]) : vf_set1(0.0f);
    }
    return column;
}

/* Adds column kx of the window to the sums of `lines` lines. */
INLINE void add_column(vf *sum, const struct column *column, const vf *w, const size_t kx,
                       const size_t lines)
{
    UNROLL for (size_t ky = 0; ky < 3; ky++)
    {
        UNROLL for (size_t i = 0; i < lines; i++)
        {
            sum[i] = vf_fma(column->v[ky + i], w[3 * ky + kx], sum[i]);
        }
    }
}

INLINE void store_lines(const struct line *line, const vf *sum, size_t x, const size_t lines)
{
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        store(line, sum[i], i, x);
    }
}

/* One or two output lines: three sums a line are open at a time, each column is loaded once. */
INLINE void line_3x3(const struct job *job, size_t y, const size_t lines)
{
    struct line line = start_line(job, y);
    UNROLL for (size_t r = 0; r < lines + 2; r++)
    {
        set_row(job, &line, r,
                (int64_t)(y * job->args->stride_y + r) - (int64_t)job->args->pad_top);
    }
    vf w[9];
    UNROLL for (size_t t = 0; t < 9; t++)
    {
        w[t] = vf_load(job->packed + (t + 1) * VF_LANES);
    }
    int64_t ix = -(int64_t)job->args->pad_left;
    vf a[2] = {line.bias, line.bias}, b[2] = {line.bias, line.bias};
    struct column c = load_column(&line, ix, lines + 2);
    add_column(a, &c, w, 0, lines);
    c = load_column(&line, ix + 1, lines + 2);
    add_column(a, &c, w, 1, lines);
    add_column(b, &c, w, 0, lines);
    ix += 2;
    for (size_t x = 0; x < line.out_w; x++, ix++) {
        vf next[2] = {line.bias, line.bias};
        c = load_column(&line, ix, lines + 2);
        add_column(a, &c, w, 2, lines);
        add_column(b, &c, w, 1, lines);
        add_column(next, &c, w, 0, lines);
        store_lines(&line, a, x, lines);
        UNROLL for (size_t i = 0; i < lines; i++)
        {
            a[i] = b[i];
            b[i] = next[i];
        }
    }
}

static void line_3x3_one(const struct job *job, size_t y)
{
    line_3x3(job, y, 1);
}

static void line_3x3_two(const struct job *job, size_t y)
{
    line_3x3(job, y, 2);
}

/* 3x3 with stride 2 across: the last column of one position is the first of the next. */
static void line_3x3_strided(const struct job *job, size_t y)
{
    struct line line = start_line(job, y);
    UNROLL for (size_t r = 0; r < 3; r++)
    {
        set_row(job, &line, r,
                (int64_t)(y * job->args->stride_y + r) - (int64_t)job->args->pad_top);
    }
    vf w[9];
    UNROLL for (size_t t = 0; t < 9; t++)
    {
        w[t] = vf_load(job->packed + (t + 1) * VF_LANES);
    }
    int64_t ix = -(int64_t)job->args->pad_left;
    vf a[1] = {line.bias};
    struct column c = load_column(&line, ix, 3);
    add_column(a, &c, w, 0, 1);
    for (size_t x = 0; x < line.out_w; x++, ix += 2) {
        vf next[1] = {line.bias};
        c = load_column(&line, ix + 1, 3);
        add_column(a, &c, w, 1, 1);
        c = load_column(&line, ix + 2, 3);
        add_column(a, &c, w, 2, 1);
        add_column(next, &c, w, 0, 1);
        store(&line, a[0], 0, x);
        a[0] = next[0];
    }
}

/* `count` output positions of one line, dilation_x apart from each other so that their windows share
 * columns: each is loaded once for all of them. checked: some may lie outside the image. */
INLINE void strip(const struct job *job, struct line *line, size_t y, size_t x, const size_t kw,
                  const size_t stride, const size_t count, const int checked)
{
    const struct ifd_dw_args *args = job->args;
    const float *packed = job->packed + VF_LANES;
    const int64_t first = (int64_t)(x * stride) - (int64_t)args->pad_left;
    const int64_t apart = (int64_t)args->dilation_x;
    vf sum[8];
    UNROLL for (size_t p = 0; p < count; p++)
    {
        sum[p] = line->bias;
    }
    for (size_t ky = 0; ky < job->kh; ky++, packed += kw * VF_LANES) {
        int64_t iy = (int64_t)(y * args->stride_y + ky * args->dilation_y) - (int64_t)args->pad_top;
        if (iy < 0 || iy >= (int64_t)args->in_h) {
            continue;
        }
        set_row(job, line, 0, iy);
        const int64_t pixel = (int64_t)line->step[0];
        const float *row = line->row[0] + first * pixel;
        vf w[7];
        UNROLL for (size_t kx = 0; kx < kw; kx++)
        {
            w[kx] = vf_load(packed + kx * VF_LANES);
        }
        UNROLL for (size_t c = 0; c < (count - 1) * stride + kw; c++, row += apart * pixel)
        {
            if (checked && (uint64_t)(first + (int64_t)c * apart) >= (uint64_t)line->in_w) {
                continue;
            }
            const vf v = vf_load(row);
            UNROLL for (size_t p = 0; p < count; p++)
            {
                if (c >= p * stride && c < p * stride + kw) {
                    sum[p] = vf_fma(v, w[c - p * stride], sum[p]);
                }
            }
        }
    }
    UNROLL for (size_t p = 0; p < count; p++)
    {
        store(line, sum[p], 0, x + p * args->dilation_x);
    }
}

/* Positions x, x + dilation_x, ... of a line. */
INLINE void strips(const struct job *job, struct line *line, size_t y, size_t x, const size_t kw,
                   const size_t stride, const size_t most)
{
    const struct ifd_dw_args *args = job->args;
    const size_t apart = args->dilation_x;
    while (x < line->out_w) {
        const size_t left = (line->out_w - x + apart - 1) / apart;
        const size_t count = left >= most ? most : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        const int64_t first = (int64_t)(x * stride) - (int64_t)args->pad_left;
        const int64_t last = first + (int64_t)(((count - 1) * stride + kw - 1) * apart);
        if (count == most && first >= 0 && last < line->in_w) {
            strip(job, line, y, x, kw, stride, most, 0);
        } else if (count == most) {
            strip(job, line, y, x, kw, stride, most, 1);
        } else if (count == 4) {
            strip(job, line, y, x, kw, stride, 4, 1);
        } else if (count == 2) {
            strip(job, line, y, x, kw, stride, 2, 1);
        } else {
            strip(job, line, y, x, kw, stride, 1, 1);
        }
        x += count * apart;
    }
}

INLINE void line_strips(const struct job *job, size_t y, const size_t kw, const size_t stride,
                        const size_t most)
{
    struct line line = start_line(job, y);
    for (size_t phase = 0; phase < job->args->dilation_x; phase++) {
        strips(job, &line, y, phase, kw, stride, most);
    }
}

static void line_3(const struct job *job, size_t y)
{
    line_strips(job, y, 3, 1, 8);
}

static void line_5(const struct job *job, size_t y)
{
    line_strips(job, y, 5, 1, 8);
}

static void line_7(const struct job *job, size_t y)
{
    line_strips(job, y, 7, 1, 4);
}

static void line_5_strided(const struct job *job, size_t y)
{
    line_strips(job, y, 5, 2, 4);
}

/* Any other window: one position at a time. */
static void line_any(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    struct line line = start_line(job, y);
    for (size_t x = 0; x < line.out_w; x++) {
        const float *w = job->packed + VF_LANES;
        vf sum = line.bias;
        for (size_t ky = 0; ky < job->kh; ky++, w += job->kw * VF_LANES) {
            set_row(job, &line, 0,
                    (int64_t)(y * args->stride_y + ky * args->dilation_y) - (int64_t)args->pad_top);
            for (size_t kx = 0; kx < job->kw; kx++) {
                int64_t ix =
                    (int64_t)(x * args->stride_x + kx * args->dilation_x) - (int64_t)args->pad_left;
                if (ix >= 0 && ix < line.in_w) {
                    vf v = vf_load(line.row[0] + ix * (int64_t)line.step[0]);
                    sum = vf_fma(v, vf_load(w + kx * VF_LANES), sum);
                }
            }
        }
        store(&line, sum, 0, x);
    }
}

/* The fastest way to do a line, other than two at once. */
static void (*choose_line(const struct job *job))(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    const int is_dense = args->dilation_x == 1 && args->dilation_y == 1;
    if (job->kw == 3 && job->kh == 3 && is_dense && args->stride_x <= 2) {
        return args->stride_x == 1 ? line_3x3_one : line_3x3_strided;
    }
    if (job->kw == 5 && args->stride_x == 2 && args->dilation_x == 1) {
        return line_5_strided;
    }
    if (args->stride_x == 1) {
        return job->kw == 3 ? line_3 : job->kw == 5 ? line_5 : job->kw == 7 ? line_7 : line_any;
    }
    return line_any;
}

static void run_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    void (*const line)(const struct job *, size_t) = choose_line(job);
    for (size_t y = args->y_begin; y < args->y_end;) {
        if (line == line_3x3_one && args->stride_y == 1 && y + 1 < args->y_end) {
            line_3x3_two(job, y);
            y += 2;
        } else {
            line(job, y++);
        }
    }
}

static void run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    for (size_t c0 = args->c_begin; c0 < args->c_end; c0 += VF_LANES) {
        const unsigned char *block = (const unsigned char *)args->packed + IFD_PACKED_HEADER +
                                     c0 / VF_LANES * header->unit_bytes;
        size_t left = args->c_end - c0;
        struct job job = {.args = args,
                          .packed = (const float *)(const void *)block,
                          .kh = (size_t)header->private_[IFD_PACKED_KH],
                          .kw = (size_t)header->private_[IFD_PACKED_KW],
                          .c0 = c0,
                          .channels = left < VF_LANES ? left : VF_LANES};
        run_block(&job);
    }
}

const struct ifd_kern_dw_f32 IFD_TABLE = {packed_bytes, pack, scratch_bytes, run};
