/* f32 depthwise convolution over the vector vocabulary: a vector of channels at a time.
 *
 * 3x3 windows keep their nine weights in registers and compute several output lines at once;
 * columns roll, so every input is loaded once for all lines and positions. Windows of five or
 * seven columns are summed a line at a time over strips of positions. Rows and columns outside
 * the image contribute nothing. A dilated window sees, for every d-th output, only every d-th
 * line and column: it is computed as d x d interleaved convolutions without dilation. */
#include "backends/cpuacc/kernels/pack.h"
#include "backends/cpuacc/kernels/simd/simd.h"

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

/* Line iy of the image; NULL if it is outside. */
INLINE const float *line_at(const struct job *job, int64_t iy)
{
    const struct ifd_dw_args *args = job->args;
    if (iy < 0 || iy >= (int64_t)args->in_h) {
        return NULL;
    }
    size_t at = (size_t)iy + args->in_at;
    at -= at >= args->in_round ? args->in_round : 0;
    return (const float *)args->in + at * args->in_line_stride + job->c0;
}

static const float zeros[32] = {0.0f};

/* ---- 3x3, rolling ---- */

/* Output lines whose sums fit into registers beside the weights, by stride. */
enum { LINES_1 = VF_REGISTERS == 32 ? 4 : 2, LINES_2 = VF_REGISTERS == 32 ? 2 : 1, ROWS_MAX = 6 };

/* Neighbouring output lines of a block, and the column they are at. */
struct rolling {
    const float *row[ROWS_MAX]; /* at the next column; zeros outside the image, with step 0 */
    size_t step[ROWS_MAX];
    float *out;
    size_t out_pixel, out_line, channels;
    int is_far;
    vf bias, lo, hi, w[9];
};

/* Sums of one position of all lines. */
struct sums {
    vf line[LINES_1];
};

INLINE struct rolling start_rolling(const struct job *job, size_t y, const size_t lines,
                                    const size_t stride, const int is_far)
{
    const struct ifd_dw_args *args = job->args;
    struct rolling at = {.out = (float *)args->out + y * args->out_line_stride + job->c0,
                         .out_pixel = args->out_pixel_stride,
                         .out_line = args->out_line_stride,
                         .channels = job->channels,
                         .is_far = is_far,
                         .bias = vf_load(job->packed),
                         .lo = vf_set1(args->min),
                         .hi = vf_set1(args->max)};
    UNROLL for (size_t r = 0; r < (lines - 1) * stride + 3; r++)
    {
        const float *row = line_at(job, (int64_t)(y * stride + r) - (int64_t)args->pad_top);
        at.step[r] = row ? args->in_pixel_stride : 0;
        at.row[r] = row ? row : zeros;
    }
    UNROLL for (size_t t = 0; t < 9; t++)
    {
        at.w[t] = vf_load(job->packed + (t + 1) * VF_LANES);
    }
    return at;
}

INLINE struct sums start_sums(const struct rolling *at, const size_t lines)
{
    struct sums sums;
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        sums.line[i] = at->bias;
    }
    return sums;
}

/* The next column of the image: column kx of window a, kx - stride of window b, and so on. Of a
 * far image the channels of the next block are fetched, too. */
INLINE void add_column(struct rolling *at, const size_t lines, const size_t stride, const size_t kx,
                       struct sums *a, struct sums *b, struct sums *c)
{
    UNROLL for (size_t r = 0; r < (lines - 1) * stride + 3; r++)
    {
        if (at->is_far) {
            __builtin_prefetch(at->row[r] + VF_LANES, 0, 2);
        }
        const vf v = vf_load_step(&at->row[r], at->step[r]);
        UNROLL for (size_t i = 0; i < lines; i++)
        {
            if (r >= i * stride && r < i * stride + 3) {
                const vf *w = at->w + 3 * (r - i * stride);
                a->line[i] = vf_fma(v, w[kx], a->line[i]);
                if (kx >= stride) {
                    b->line[i] = vf_fma(v, w[kx - stride], b->line[i]);
                }
                if (kx >= 2 * stride) {
                    c->line[i] = vf_fma(v, w[kx - 2 * stride], c->line[i]);
                }
            }
        }
    }
}

INLINE void finish_sums(struct rolling *at, const size_t lines, const int is_whole,
                        const struct sums *sums)
{
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        const vf v = vf_min(at->hi, vf_max(at->lo, sums->line[i]));
        if (at->is_far) {
            __builtin_prefetch(at->out + i * at->out_line + VF_LANES, 0, 2);
        }
        if (is_whole) {
            vf_store(at->out + i * at->out_line, v);
        } else {
            vf_store_n(at->out + i * at->out_line, v, at->channels);
        }
    }
    at->out += at->out_pixel;
}

/* The last column of a's position, which is finished; c is begun. */
INLINE void roll_1(struct rolling *at, const size_t lines, const int is_whole, struct sums *a,
                   struct sums *b, struct sums *c)
{
    *c = start_sums(at, lines);
    add_column(at, lines, 1, 2, a, b, c);
    finish_sums(at, lines, is_whole, a);
}

INLINE void roll_2(struct rolling *at, const size_t lines, const int is_whole, struct sums *a,
                   struct sums *b)
{
    *b = start_sums(at, lines);
    add_column(at, lines, 2, 1, a, NULL, NULL);
    add_column(at, lines, 2, 2, a, b, NULL);
    finish_sums(at, lines, is_whole, a);
}

INLINE void lines_stride_1(const struct job *job, size_t y, const size_t lines, const int is_whole,
                           const int is_far)
{
    const struct ifd_dw_args *args = job->args;
    const size_t begin = 2 - args->pad_left, columns = args->in_w - begin;
    const size_t inside = columns < args->out_w ? columns : args->out_w;
    struct rolling at = start_rolling(job, y, lines, 1, is_far);
    struct sums a = start_sums(&at, lines), b = a, c = a;
    if (begin == 2) {
        add_column(&at, lines, 1, 0, &a, NULL, NULL);
    }
    if (begin > 0) {
        add_column(&at, lines, 1, 1, &a, &b, NULL);
    }
    size_t x = 0;
    for (; x + 3 <= inside; x += 3) {
        roll_1(&at, lines, is_whole, &a, &b, &c);
        roll_1(&at, lines, is_whole, &b, &c, &a);
        roll_1(&at, lines, is_whole, &c, &a, &b);
    }
    for (; x < inside; x++, a = b, b = c) {
        roll_1(&at, lines, is_whole, &a, &b, &c);
    }
    for (; x < args->out_w; x++, a = b, b = start_sums(&at, lines)) {
        finish_sums(&at, lines, is_whole, &a);
    }
}

INLINE void lines_stride_2(const struct job *job, size_t y, const size_t lines, const int is_whole,
                           const int is_far)
{
    const struct ifd_dw_args *args = job->args;
    const size_t begin = 1 - args->pad_left, columns = args->in_w - begin;
    const size_t inside = columns / 2 < args->out_w ? columns / 2 : args->out_w;
    struct rolling at = start_rolling(job, y, lines, 2, is_far);
    struct sums a = start_sums(&at, lines), b = a;
    if (begin > 0) {
        add_column(&at, lines, 2, 0, &a, NULL, NULL);
    }
    size_t x = 0;
    for (; x + 2 <= inside; x += 2) {
        roll_2(&at, lines, is_whole, &a, &b);
        roll_2(&at, lines, is_whole, &b, &a);
    }
    for (; x < inside; x++, a = b) {
        roll_2(&at, lines, is_whole, &a, &b);
    }
    if (x < args->out_w && columns % 2 != 0) {
        add_column(&at, lines, 2, 1, &a, NULL, NULL);
    }
    for (; x < args->out_w; x++, a = start_sums(&at, lines)) {
        finish_sums(&at, lines, is_whole, &a);
    }
}

INLINE void any_lines(const struct job *job, size_t y, size_t lines, const size_t stride,
                      const int is_whole, const int is_far)
{
    if (stride == 2 && lines == 1) {
        lines_stride_2(job, y, 1, is_whole, is_far);
    } else if (stride == 2) {
        lines_stride_2(job, y, LINES_2, is_whole, is_far);
    } else if (lines == 1) {
        lines_stride_1(job, y, 1, is_whole, is_far);
    } else if (lines == 2) {
        lines_stride_1(job, y, 2, is_whole, is_far);
    } else if (lines < LINES_1) {
        lines_stride_1(job, y, LINES_1 - 1, is_whole, is_far);
    } else {
        lines_stride_1(job, y, LINES_1, is_whole, is_far);
    }
}

static void whole_1(const struct job *job, size_t y, size_t lines)
{
    any_lines(job, y, lines, 1, 1, 0);
}

static void far_1(const struct job *job, size_t y, size_t lines)
{
    any_lines(job, y, lines, 1, 1, 1);
}

static void narrow_1(const struct job *job, size_t y, size_t lines)
{
    any_lines(job, y, lines, 1, 0, 0);
}

static void whole_2(const struct job *job, size_t y, size_t lines)
{
    any_lines(job, y, lines, 2, 1, 0);
}

static void far_2(const struct job *job, size_t y, size_t lines)
{
    any_lines(job, y, lines, 2, 1, 1);
}

static void narrow_2(const struct job *job, size_t y, size_t lines)
{
    any_lines(job, y, lines, 2, 0, 0);
}

/* ---- 3x3, two pixels a vector ---- */

enum { HALF = VF_LANES / 2 };

/* Whether pixels of half a vector of channels are contiguous, in the input and in the output. */
static int are_twins(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    return HALF > 0 && job->channels == HALF && args->stride_x == 1 && args->pad_left == 1 &&
           args->in_pixel_stride == HALF && args->out_pixel_stride == HALF &&
           args->out_w == args->in_w && args->in_w % 2 == 0;
}

/* Half a vector, twice. */
INLINE vf load_twice(const float *half)
{
    float both[2 * VF_LANES];
    vf_store(both, vf_load(half));
    vf_store(both + HALF, vf_load(half));
    return vf_load(both);
}

/* Half a vector and zeros, or zeros and half a vector. */
INLINE vf load_half(const float *half, const int is_upper)
{
    float padded[VF_LANES] = {0.0f};
    __builtin_memcpy(padded + (is_upper ? HALF : 0), half, HALF * sizeof(float));
    return vf_load(padded);
}

/* Two positions: columns left (of the last call's right), here, and right. */
INLINE void add_twins(struct rolling *at, const size_t lines, const int is_last, vf *left)
{
    vf right[ROWS_MAX];
    struct sums sums = start_sums(at, lines);
    UNROLL for (size_t kx = 0; kx < 3; kx++)
    {
        UNROLL for (size_t r = 0; r < lines + 2; r++)
        {
            const vf v = kx == 0   ? left[r]
                         : kx == 1 ? vf_load(at->row[r])
                         : is_last ? load_half(at->row[r] + HALF, 0)
                                   : vf_load(at->row[r] + HALF);
            right[r] = v;
            UNROLL for (size_t i = 0; i < lines; i++)
            {
                if (r >= i && r < i + 3) {
                    sums.line[i] = vf_fma(v, at->w[3 * (r - i) + kx], sums.line[i]);
                }
            }
        }
    }
    UNROLL for (size_t r = 0; r < lines + 2; r++)
    {
        left[r] = right[r];
        at->row[r] += at->step[r];
    }
    finish_sums(at, lines, 1, &sums);
}

INLINE void lines_of_twins(const struct job *job, size_t y, const size_t lines)
{
    struct rolling at = start_rolling(job, y, lines, 1, 0);
    vf left[ROWS_MAX];
    UNROLL for (size_t r = 0; r < lines + 2; r++)
    {
        at.step[r] *= 2;
        left[r] = load_half(at.row[r], 1);
    }
    UNROLL for (size_t t = 0; t < 9; t++)
    {
        at.w[t] = load_twice(job->packed + (t + 1) * VF_LANES);
    }
    at.bias = load_twice(job->packed);
    at.out_pixel = VF_LANES;
    for (size_t x = 2; x < job->args->out_w; x += 2) {
        add_twins(&at, lines, 0, left);
    }
    add_twins(&at, lines, 1, left);
}

static void twins_1(const struct job *job, size_t y, size_t lines)
{
    if (lines == 1) {
        lines_of_twins(job, y, 1);
    } else if (lines == 2) {
        lines_of_twins(job, y, 2);
    } else if (lines < LINES_1) {
        lines_of_twins(job, y, LINES_1 - 1);
    } else {
        lines_of_twins(job, y, LINES_1);
    }
}

/* Whether columns roll: the usual window, no wider padding than usual. */
static int rolls(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const size_t stride = args->stride_x;
    return job->kw == 3 && job->kh == 3 && args->dilation_x == 1 && args->dilation_y == 1 &&
           args->stride_y == stride && stride <= 2 && args->pad_left + stride <= 3 &&
           args->in_w >= 2;
}

static void (*choose_roll(const struct job *job))(const struct job *job, size_t y, size_t lines)
{
    const int is_whole = job->channels == VF_LANES;
    if (job->args->stride_x == 2) {
        return !is_whole ? narrow_2 : job->args->is_far ? far_2 : whole_2;
    }
    return are_twins(job) ? twins_1 : !is_whole ? narrow_1 : job->args->is_far ? far_1 : whole_1;
}

/* Groups of lines of about equal height, each as high as registers allow. */
static void roll_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const size_t most = args->stride_x == 1 ? LINES_1 : LINES_2;
    void (*const run)(const struct job *, size_t, size_t) = choose_roll(job);
    size_t lines = 0;
    for (size_t y = args->y_begin; y < args->y_end; y += lines) {
        const size_t left = args->y_end - y, groups = (left + most - 1) / most;
        lines = (left + groups - 1) / groups;
        run(job, y, lines);
    }
}

/* ---- other windows ---- */

struct line {
    int64_t in_w;
    float *out;
    size_t out_pixel, out_w, channels;
    vf bias, lo, hi;
};

INLINE struct line start_line(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    return (struct line){.in_w = (int64_t)args->in_w,
                         .out = (float *)args->out + y * args->out_line_stride + job->c0,
                         .out_pixel = args->out_pixel_stride,
                         .out_w = args->out_w,
                         .channels = job->channels,
                         .bias = vf_load(job->packed),
                         .lo = vf_set1(args->min),
                         .hi = vf_set1(args->max)};
}

INLINE void store(const struct line *line, vf sum, size_t x)
{
    float *out = line->out + x * line->out_pixel;
    sum = vf_min(line->hi, vf_max(line->lo, sum));
    if (line->channels == VF_LANES) {
        vf_store(out, sum);
    } else {
        vf_store_n(out, sum, line->channels);
    }
}

/* `count` neighbouring output positions of one line, whose windows share columns: each column is
 * loaded once for all of them. checked: some may be outside the image. */
INLINE void strip(const struct job *job, struct line *line, size_t y, size_t x, const size_t kw,
                  const size_t stride, const size_t count, const int checked)
{
    const struct ifd_dw_args *args = job->args;
    const float *packed = job->packed + VF_LANES;
    const int64_t first = (int64_t)(x * stride) - (int64_t)args->pad_left;
    vf sum[8];
    UNROLL for (size_t p = 0; p < count; p++)
    {
        sum[p] = line->bias;
    }
    for (size_t ky = 0; ky < job->kh; ky++, packed += kw * VF_LANES) {
        int64_t iy = (int64_t)(y * args->stride_y + ky) - (int64_t)args->pad_top;
        const int64_t pixel = (int64_t)args->in_pixel_stride;
        const float *row = line_at(job, iy);
        if (!row) {
            continue;
        }
        row += first * pixel;
        vf w[7];
        UNROLL for (size_t kx = 0; kx < kw; kx++)
        {
            w[kx] = vf_load(packed + kx * VF_LANES);
        }
        UNROLL for (size_t c = 0; c < (count - 1) * stride + kw; c++, row += pixel)
        {
            if (checked && (uint64_t)(first + (int64_t)c) >= (uint64_t)line->in_w) {
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
        store(line, sum[p], x + p);
    }
}

INLINE void line_strips(const struct job *job, size_t y, const size_t kw, const size_t stride,
                        const size_t most)
{
    struct line own = start_line(job, y), *line = &own;
    for (size_t x = 0, count = 0; x < line->out_w; x += count) {
        const size_t left = line->out_w - x;
        count = left >= most ? most : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        const int64_t first = (int64_t)(x * stride) - (int64_t)job->args->pad_left;
        const int64_t last = first + (int64_t)((count - 1) * stride + kw - 1);
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

static void line_3_strided(const struct job *job, size_t y)
{
    line_strips(job, y, 3, 2, 4);
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
            const float *row = line_at(job, (int64_t)(y * args->stride_y + ky * args->dilation_y) -
                                                (int64_t)args->pad_top);
            for (size_t kx = 0; row && kx < job->kw; kx++) {
                int64_t ix =
                    (int64_t)(x * args->stride_x + kx * args->dilation_x) - (int64_t)args->pad_left;
                if (ix >= 0 && ix < line.in_w) {
                    vf v = vf_load(row + ix * (int64_t)args->in_pixel_stride);
                    sum = vf_fma(v, vf_load(w + kx * VF_LANES), sum);
                }
            }
        }
        store(&line, sum, x);
    }
}

static void (*choose_line(const struct job *job))(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    if (args->dilation_x > 1 || args->dilation_y > 1) {
        return line_any;
    }
    if (args->stride_x == 2) {
        return job->kw == 3 ? line_3_strided : job->kw == 5 ? line_5_strided : line_any;
    }
    if (args->stride_x == 1) {
        return job->kw == 3 ? line_3 : job->kw == 5 ? line_5 : job->kw == 7 ? line_7 : line_any;
    }
    return line_any;
}

static void run_block(const struct job *job)
{
    void (*const line)(const struct job *, size_t) = choose_line(job);
    for (size_t y = job->args->y_begin; y < job->args->y_end; y++) {
        line(job, y);
    }
}

static void run_image(const struct job *job)
{
    if (rolls(job)) {
        roll_block(job);
    } else {
        run_block(job);
    }
}

/* ---- dilation ---- */

/* Number of lines or columns among `count` that are at first, first + apart, … */
static size_t every(size_t count, size_t first, size_t apart)
{
    return count > first ? (count - first + apart - 1) / apart : 0;
}

/* The lines (or columns) of an image that the outputs from `out` on, a dilation apart, see. */
struct part {
    size_t first, count;
    uint32_t pad;
};

static struct part part_of(size_t out, size_t in_count, size_t dilation, uint32_t pad)
{
    const size_t first = (out + dilation - pad % dilation) % dilation;
    return (struct part){.first = first < in_count ? first : 0,
                         .count = every(in_count, first, dilation),
                         .pad = (uint32_t)((first + pad) / dilation)};
}

/* The outputs from line y and column x on, a dilation apart: a convolution without dilation. */
static void run_part(const struct job *job, size_t y, size_t x)
{
    const struct ifd_dw_args *args = job->args;
    const size_t dy = args->dilation_y, dx = args->dilation_x;
    const struct part lines = part_of(y, args->in_h, dy, args->pad_top);
    const struct part columns = part_of(x, args->in_w, dx, args->pad_left);
    struct ifd_dw_args part = *args;
    part.in = (const float *)args->in + lines.first * args->in_line_stride +
              columns.first * args->in_pixel_stride;
    part.in_h = lines.count;
    part.in_w = columns.count;
    part.in_line_stride *= dy;
    part.in_pixel_stride *= dx;
    part.pad_top = lines.pad;
    part.pad_left = columns.pad;
    part.out = (float *)args->out + y * args->out_line_stride + x * args->out_pixel_stride;
    part.out_w = every(args->out_w, x, dx);
    part.out_line_stride *= dy;
    part.out_pixel_stride *= dx;
    part.y_begin = every(args->y_begin, y, dy);
    part.y_end = every(args->y_end, y, dy);
    part.dilation_y = part.dilation_x = 1;
    struct job own = *job;
    own.args = &part;
    run_image(&own);
}

static void run_parts(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    for (size_t y = 0; y < args->dilation_y && y < args->y_end; y++) {
        for (size_t x = 0; x < args->dilation_x && x < args->out_w; x++) {
            run_part(job, y, x);
        }
    }
}

static void run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    const int is_dilated = args->dilation_y > 1 || args->dilation_x > 1;
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
        if (is_dilated && args->stride_y == 1 && args->stride_x == 1) {
            run_parts(&job);
        } else {
            run_image(&job);
        }
    }
}

const struct ifd_kern_dw_f32 IFD_TABLE = {packed_bytes, pack, scratch_bytes, run};
