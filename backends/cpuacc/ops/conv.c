/* conv2d and fully_connected: products of rows of the input with packed weights.
 *
 * Three ways to find the rows:
 *   plain   every output row reads one contiguous input row (1×1 stride 1, fully connected)
 *   lines   dilation 1: kw pixels of a line are contiguous, so a tap is a line of the window; lines that reach over the
 *           edge are copied with their padding into work memory first
 *   rows    dilation: a table of row pointers per tile, padding points to a row of zero points
 * and, unless exact results are asked for, Winograd's algorithm for f32 3×3 windows of enough channels:
 *   tiles   whole lines of tiles at a time are transformed to work memory, multiplied matrix by matrix, transformed back
 *
 * f32 layers with fewer channels than a vector holds compute a group of neighbouring pixels as one row (plain and lines):
 * the same convolution with `group` times the channels and the step, whose weights repeat once a pixel, shifted along
 * the line, with zeros round them. What is not finite times zero would reach the neighbours: such rows are computed again,
 * pixel by pixel. */
#include "backends/cpuacc/ops/dynamic.h"

#include <math.h>
#include <string.h>

enum mode { PLAIN, LINES, ROWS, TILES };

struct conv_params {
    struct ifd_acc_product product; /* for packing */
    enum mode mode;
    size_t element, out_element; /* bytes: 1 or 4 */
    size_t batch, in_h, in_w, in_c, out_h, out_w, out_c;
    size_t kh, kw, stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    size_t taps, k;                /* as packed */
    size_t line;                   /* LINES: elements of a padded line */
    size_t line_rows;              /* output rows of a line; 0: lines do not fall into rows */
    size_t tile_rows;              /* output rows (pixels) of one call at most */
    size_t tile_lines;             /* LINES: output lines of one call at most, ≥ 1 */
    size_t out_stride, out_offset; /* elements: more than out_c apart inside of a concatenation */
    uint32_t tile_size;            /* TILES: outputs of a tile along one side, 4 or 2 */
    size_t group;                  /* pixels a row; what follows is of one of them: */
    size_t pixel_n, pixel_k, pixel_step; /* channels, inputs a tap, inputs to the next pixel */
    struct ifd_acc_tail tail;            /* f32: applied to every tile while it is in the cache */
    bool has_row_add;                    /* weights with a zero point */
    bool is_padded;                      /* LINES: some window reaches over the edge */
    size_t sums_bytes; /* work memory: row_add and temporary sums, then lines or pointers */
};

/* ---- packing ---- */

/* Weights and bias of a group: those of one pixel, repeated and shifted; returns the bias, or NULL for none. */
static const float *group_weights(const struct conv_params *p, float *to)
{
    const float *from = p->product.weights, *bias = p->product.bias_f32;
    memset(to, 0, p->out_c * p->taps * p->k * sizeof(*to));
    for (size_t n = 0; n < p->out_c; n++) {
        const float *w = from + n % p->pixel_n * p->taps * p->pixel_k;
        for (size_t t = 0; t < p->taps; t++, to += p->k, w += p->pixel_k) {
            memcpy(to + n / p->pixel_n * p->pixel_step, w, p->pixel_k * sizeof(*to));
        }
    }
    for (size_t n = 0; bias && n < p->out_c; n++) {
        to[n] = bias[n % p->pixel_n];
    }
    return bias ? to : NULL;
}

/* Where the weights of one pixel begin that lie behind those of a group. */
static size_t grouped_bytes(const struct conv_params *p, const struct ifd_kernels *kernels)
{
    const size_t bytes = kernels->gemm_f32.packed_bytes(p->out_c, p->k, p->taps);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

static void pack_pixel(const struct ifd_kernels *kernels, const struct conv_params *p, uint8_t *to)
{
    const struct ifd_gemm_weights gemm = {.w = p->product.weights,
                                          .n = p->pixel_n,
                                          .k = p->pixel_k,
                                          .taps = p->taps,
                                          .stride_n = p->taps * p->pixel_k,
                                          .stride_t = p->pixel_k,
                                          .stride_k = 1};
    kernels->gemm_f32.pack(&gemm, p->product.bias_f32, to);
}

static size_t workspace_bytes(const struct conv_params *p)
{
    return p->group > 1 ? (p->out_c * p->taps * p->k + p->out_c) * sizeof(float)
                        : ifd_acc_product_workspace(&p->product);
}

/* n values, up to where the next array of them may begin. */
static size_t padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* What makes floats of the sums of a dynamic layer, behind its weights: per channel the scale, the sum of the weights and
 * the bias. */
struct channels {
    float *scale;
    int32_t *sum;
    float *bias;
};

static struct channels packed_channels(const struct conv_params *p, uint8_t *packed)
{
    const struct ifd_packed *header = (const struct ifd_packed *)(const void *)packed;
    float *scale = (float *)(void *)(packed + header->bytes);
    const size_t n = padded(p->out_c);
    return (struct channels){
        .scale = scale, .sum = (int32_t *)(void *)(scale + n), .bias = scale + 2 * n};
}

static void pack_channels(const struct conv_params *p, uint8_t *packed)
{
    const struct channels to = packed_channels(p, packed);
    const size_t length = p->taps * p->k;
    const int8_t *w = p->product.weights;
    for (size_t c = 0; c < p->out_c; c++, w += length) {
        to.scale[c] = ifd_acc_product_scale(&p->product, c);
        to.bias[c] = p->product.bias_f32 ? p->product.bias_f32[c] : 0;
        to.sum[c] = 0;
        for (size_t i = 0; i < length; i++) {
            to.sum[c] += w[i];
        }
    }
}

static void pack_weights(const struct ifd_kernels *kernels, const void *context, uint8_t *workspace,
                         uint8_t *packed)
{
    const struct conv_params *p = context;
    const float *bias = p->product.bias_f32;
    if (p->group > 1) {
        bias = group_weights(p, (float *)(void *)workspace);
    }
    const void *weights =
        p->group > 1 ? workspace : ifd_acc_product_weights(&p->product, workspace);
    const struct ifd_gemm_weights gemm = {.w = weights,
                                          .n = p->out_c,
                                          .k = p->k,
                                          .taps = p->taps,
                                          .stride_n = p->taps * p->k,
                                          .stride_t = p->k,
                                          .stride_k = 1};
    if (p->product.is_q8) {
        kernels->gemm_q8.pack(&gemm, &p->product.requant, packed);
        if (p->product.is_dynamic) {
            pack_channels(p, packed);
        }
    } else {
        kernels->gemm_f32.pack(&gemm, bias, packed);
    }
    if (p->group > 1) {
        pack_pixel(kernels, p, packed + grouped_bytes(p, kernels));
    }
}

/* TILES: matrices, and the bytes of one when packed. */
static size_t tile_matrices(const struct conv_params *p)
{
    return (p->tile_size + 2) * (p->tile_size + 2);
}

static void pack_tiles(const struct ifd_kernels *kernels, const void *context, uint8_t *workspace,
                       uint8_t *packed)
{
    const struct conv_params *p = context;
    const size_t bytes = kernels->gemm_f32.packed_bytes(p->out_c, p->in_c, 1);
    float *matrix = (float *)(void *)workspace;
    kernels->wino.weights(p->tile_size,
                          &(struct ifd_gemm_weights){.w = p->product.weights,
                                                     .n = p->out_c,
                                                     .k = p->in_c,
                                                     .taps = 9,
                                                     .stride_n = 9 * p->in_c,
                                                     .stride_t = p->in_c,
                                                     .stride_k = 1},
                          matrix);
    for (size_t t = 0; t < tile_matrices(p); t++, matrix += p->out_c * p->in_c, packed += bytes) {
        const struct ifd_gemm_weights gemm = {.w = matrix,
                                              .n = p->out_c,
                                              .k = p->in_c,
                                              .taps = 1,
                                              .stride_n = p->in_c,
                                              .stride_t = p->in_c,
                                              .stride_k = 1};
        kernels->gemm_f32.pack(&gemm, NULL, packed);
    }
}

/* ---- running ---- */

struct run {
    const struct ifd_acc_step *step;
    const struct conv_params *p;
    const uint8_t *in;
    uint8_t *out;
    const uint8_t *add; /* residual, f32 */
    size_t in_first;    /* LINES: the line of the image that in starts with */
    int32_t *sums;      /* p->tile_rows of row_add, then as many temporary ones */
    uint8_t *rest;      /* of the work memory */
    struct ifd_gemm_args args;
    const struct ifd_acc_image *images; /* dynamic: of all images, */
    size_t image;                       /* and the one that rescale is for, counted from 1 */
    struct ifd_rescale_args rescale;
};

static void begin(struct run *run, const struct ifd_acc_step *step,
                  const struct ifd_acc_frame *frame)
{
    const struct conv_params *p = step->params;
    uint8_t *work = step->work_stride ? ifd_acc_work(step, frame) : NULL;
    *run = (struct run){
        .step = step,
        .p = p,
        .in = ifd_acc_in(step, frame, 0),
        .out = ifd_acc_out(step, frame),
        .add = ifd_acc_in(step, frame, 1),
        .sums = (int32_t *)(void *)work,
        .rest = work ? work + p->sums_bytes : NULL,
        .args = {.packed = frame->packed + step->packed,
                 .n_begin = 0,
                 .n_end = p->out_c,
                 .out_stride = p->out_stride,
                 .add_stride = p->out_c,
                 .min = p->product.min,
                 .max = p->product.max},
    };
    if (p->product.is_dynamic) {
        run->images = (const struct ifd_acc_image *)(const void *)run->in;
        run->in += ifd_acc_images_bytes(p->batch);
    }
}

/* Turns to another image: its offsets and scales go to the work memory. */
static void begin_image(struct run *run, size_t image)
{
    const struct conv_params *p = run->p;
    if (!p->product.is_dynamic || run->image == image + 1) {
        return;
    }
    run->image = image + 1;
    const struct channels from = packed_channels(p, (uint8_t *)(uintptr_t)run->args.packed);
    const struct ifd_acc_image *at = &run->images[image];
    int32_t *offset = run->sums;
    float *scale = (float *)(void *)(run->sums + padded(p->out_c));
    for (size_t c = run->args.n_begin; c < run->args.n_end; c++) {
        offset[c] = at->zero * from.sum[c];
        scale[c] = at->scale * from.scale[c];
    }
    run->rescale = (struct ifd_rescale_args){.n = run->args.n_end - run->args.n_begin,
                                             .row = p->out_stride,
                                             .offset = offset + run->args.n_begin,
                                             .scale = scale + run->args.n_begin,
                                             .bias = from.bias + run->args.n_begin,
                                             .min = p->product.min,
                                             .max = p->product.max};
}

/* Rows of one call from row on, before end: tiles of dynamic layers stay within an image. */
static size_t begin_rows(struct run *run, size_t row, size_t end)
{
    const struct conv_params *p = run->p;
    const size_t pixels = p->out_h * p->out_w;
    size_t count = end - row < p->tile_rows ? end - row : p->tile_rows;
    if (p->product.is_dynamic) {
        begin_image(run, row / pixels);
        count = pixels - row % pixels < count ? pixels - row % pixels : count;
    }
    return count;
}

/* -weight_zero × the sum of every row's inputs, over all taps. */
static const int32_t *row_sums(const struct run *run)
{
    const struct conv_params *p = run->p;
    const struct ifd_gemm_args *args = &run->args;
    const struct ifd_kern_gemm_q8 *gemm = &run->step->kernels->gemm_q8;
    const int32_t factor = -p->product.requant.weight_zero;
    int32_t *total = run->sums, *part = run->sums + p->tile_rows;
    const size_t row_len = args->row_len ? args->row_len : args->m;
    for (size_t t = 0; t < p->taps; t++) {
        int32_t *to = t == 0 ? total : part;
        if (args->rows) {
            for (size_t i = 0; i < args->m; i++) {
                gemm->row_sum(args->rows[t * args->m + i], 1, p->k, p->k, factor, &to[i]);
            }
        } else {
            for (size_t i = 0; i < args->m; i += row_len) {
                const size_t count = args->m - i < row_len ? args->m - i : row_len;
                gemm->row_sum((const ifd_q8 *)args->a + i / row_len * args->row_stride +
                                  t * args->tap_stride,
                              count, p->k, args->a_stride, factor, &to[i]);
            }
        }
        for (size_t i = 0; t > 0 && i < args->m; i++) {
            total[i] += part[i];
        }
    }
    return total;
}

static void apply_tail(const struct run *run)
{
    const struct conv_params *p = run->p;
    const struct ifd_gemm_args *args = &run->args;
    void (*kernel)(size_t, const float *, float *, float, float) =
        run->step->kernels->eltwise.unary[p->tail.kernel];
    float *out = (float *)args->out + args->n_begin;
    const size_t columns = args->n_end - args->n_begin;
    if (columns == p->out_stride) {
        kernel(args->m * columns, out, out, p->tail.p0, p->tail.p1);
        return;
    }
    for (size_t i = 0; i < args->m; i++, out += p->out_stride) {
        kernel(columns, out, out, p->tail.p0, p->tail.p1);
    }
}

/* The call that has just been made, pixel by pixel. */
static void call_pixels(const struct run *run)
{
    const struct conv_params *p = run->p;
    struct ifd_gemm_args args = run->args;
    args.packed = (const uint8_t *)args.packed + grouped_bytes(p, run->step->kernels);
    args.m *= p->group;
    args.n_end = p->pixel_n;
    args.row_len *= p->group;
    args.a_stride /= p->group;
    args.out_stride /= p->group;
    args.add_stride /= p->group;
    run->step->kernels->gemm_f32.run(&args);
}

/* LiteRT's reference kernel rounds the product with a real number: halves away from zero. */
static void call_exact(struct run *run, size_t first_row)
{
    const struct conv_params *p = run->p;
    const struct ifd_requant *to = &p->product.requant;
    const size_t stride = padded(p->out_c);
    const int32_t *sums = (const int32_t *)(const void *)run->rest;
    run->args.out = run->rest;
    run->args.out_stride = stride;
    run->step->kernels->gemm_q8.run(&run->args);
    for (size_t i = 0; i < run->args.m; i++) {
        ifd_q8 *out = (ifd_q8 *)run->out + (first_row + i) * p->out_stride + p->out_offset;
        for (size_t c = run->args.n_begin; c < run->args.n_end; c++) {
            const double y = round(sums[i * stride + c] * p->product.real[c]) + to->out_zero;
            out[c] = (ifd_q8)(y < to->out_min ? to->out_min : y > to->out_max ? to->out_max : y);
        }
    }
}

/* One call of the kernel; a, rows, m and strides are set. */
static void call(struct run *run, size_t first_row)
{
    const struct conv_params *p = run->p;
    run->args.out = run->out + (first_row * p->out_stride + p->out_offset) * p->out_element;
    if (p->product.is_dynamic) {
        run->step->kernels->gemm_q8.run(&run->args);
        run->rescale.rows = run->args.m;
        run->rescale.out = (float *)run->args.out + run->args.n_begin;
        run->rescale.sums = (const int32_t *)(const void *)run->rescale.out;
        run->step->kernels->quant.rescale(&run->rescale);
        if (p->tail.exists) {
            apply_tail(run);
        }
    } else if (p->product.is_q8) {
        run->args.row_add = p->has_row_add ? row_sums(run) : NULL;
        if (p->product.real) {
            call_exact(run, first_row);
            return;
        }
        run->step->kernels->gemm_q8.run(&run->args);
    } else {
        run->args.add =
            run->add ? (const float *)(const void *)run->add + first_row * p->out_c : NULL;
        run->step->kernels->gemm_f32.run(&run->args);
        if (p->group > 1 &&
            !isfinite(run->step->kernels->reduce.sum_f32(run->args.m * p->out_c, run->args.out))) {
            call_pixels(run);
        }
        if (p->tail.exists) {
            apply_tail(run);
        }
    }
}

/* Splits items over the team in multiples of unit, or columns where there are too few items for all, or far more weights
 * than values: then each thread reads its part of the weights only, at the price of values that other cores have made. */
static struct ifd_acc_range share(struct run *run, const struct ifd_acc_frame *frame, size_t items,
                                  size_t unit)
{
    const struct conv_params *p = run->p;
    const size_t nr = ((const struct ifd_packed *)run->args.packed)->nr;
    const size_t tiles = (items + unit - 1) / unit, threads = frame->threads;
    const size_t matrices = p->mode == TILES ? tile_matrices(p) : p->taps;
    const size_t values = p->batch * (p->in_h * p->in_w * p->in_c + p->out_h * p->out_w * p->out_c);
    const bool is_heavy = !p->product.is_q8 && 2 * matrices * p->k * p->out_c > 3 * values &&
                          p->out_c >= threads * nr;
    if (threads > 1 && p->group == 1 && (is_heavy || tiles < 2 * threads)) {
        const struct ifd_acc_range columns = ifd_acc_share(frame, p->out_c, nr);
        run->args.n_begin = columns.begin;
        run->args.n_end = columns.end;
        return (struct ifd_acc_range){0, columns.begin < columns.end ? items : 0};
    }
    return ifd_acc_share(frame, items, unit);
}

/* PLAIN: rows begin … end-1. */
static void plain_rows(struct run *run, size_t begin, size_t end)
{
    const struct conv_params *p = run->p;
    run->args.a_stride = p->k;
    for (size_t row = begin; row < end; row += run->args.m) {
        run->args.m = begin_rows(run, row, end);
        run->args.a = run->in + row * p->k * p->element;
        call(run, row);
    }
}

static void run_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct run run;
    begin(&run, step, frame);
    const struct conv_params *p = run.p;
    const struct ifd_packed *packed = run.args.packed;
    const struct ifd_acc_range range =
        share(&run, frame, p->batch * p->out_h * p->out_w, packed->mr);
    plain_rows(&run, range.begin, range.end);
}

/* A part of a chain: everything lies where the strip says. */
static void begin_strip(struct run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame, const struct ifd_acc_strip *strip)
{
    begin(run, step, frame);
    run->in = strip->in;
    run->in_first = strip->in_first;
    run->out = strip->out;
    run->add = strip->add;
}

static void strip_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                        const struct ifd_acc_strip *strip)
{
    struct run run;
    begin_strip(&run, step, frame, strip);
    run.in += (strip->begin - strip->in_first) * step->lines->in_line;
    plain_rows(&run, 0, (strip->end - strip->begin) * run.p->line_rows);
}

/* Zero, as the input stores it. Floats are 0 in all bytes. */
static int zero_byte(const struct run *run)
{
    const struct ifd_acc_product *product = &run->p->product;
    return product->is_dynamic ? (uint8_t)run->images[run->image - 1].zero
           : product->is_q8    ? (uint8_t)product->requant.in_zero
                               : 0;
}

/* Copies the input lines that output lines y … y+count-1 of an image look at, with their padding, to the work memory. */
static void copy_lines(const struct run *run, const uint8_t *image, size_t y, size_t count)
{
    const struct conv_params *p = run->p;
    const int zero = zero_byte(run);
    const size_t line_bytes = p->line * p->element, left = p->pad_left * p->in_c * p->element;
    const size_t content = p->in_w * p->in_c * p->element;
    const size_t copied = content < line_bytes - left ? content : line_bytes - left;
    uint8_t *to = run->rest;
    for (size_t i = 0; i < (count - 1) * p->stride_y + p->kh; i++, to += line_bytes) {
        const size_t in_y = y * p->stride_y + i; /* counted from the padding's edge */
        if (in_y < p->pad_top || in_y - p->pad_top >= p->in_h) {
            memset(to, zero, line_bytes);
            continue;
        }
        memset(to, zero, left);
        memcpy(to + left, image + (in_y - p->pad_top - run->in_first) * content, copied);
        memset(to + left + copied, zero, line_bytes - left - copied);
    }
}

/* Output lines y … end-1 of one image, to rows from first_row on. */
static void image_lines(struct run *run, const uint8_t *image, size_t y, size_t end,
                        size_t first_row)
{
    const struct conv_params *p = run->p;
    const size_t in_line = p->in_w * p->in_c;
    run->args.row_len = p->out_w;
    run->args.a_stride = p->stride_x * p->in_c;
    run->args.tap_stride = p->is_padded ? p->line : in_line;
    run->args.row_stride = p->stride_y * run->args.tap_stride;
    for (size_t count = 0; y < end; y += count, first_row += count * p->out_w) {
        count = end - y < p->tile_lines ? end - y : p->tile_lines;
        run->args.m = count * p->out_w;
        if (p->is_padded) {
            copy_lines(run, image, y, count);
            run->args.a = run->rest;
        } else {
            run->args.a = image + (y * p->stride_y - run->in_first) * in_line * p->element;
        }
        call(run, first_row);
    }
}

static void run_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct run run;
    begin(&run, step, frame);
    const struct conv_params *p = run.p;
    const struct ifd_acc_range range = share(&run, frame, p->batch * p->out_h, 1);
    size_t count = 0;
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % p->out_h, left = p->out_h - y;
        count = range.end - line < left ? range.end - line : left;
        begin_image(&run, line / p->out_h);
        image_lines(&run, run.in + line / p->out_h * p->in_h * p->in_w * p->in_c * p->element, y,
                    y + count, line * p->out_w);
    }
}

static void strip_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                        const struct ifd_acc_strip *strip)
{
    struct run run;
    begin_strip(&run, step, frame, strip);
    image_lines(&run, strip->in, strip->begin, strip->end, 0);
}

/* Row pointers of output pixels row … row+m-1, tap by tap. */
static void point_rows(const struct run *run, const void **rows, const uint8_t *zeros, size_t row)
{
    const struct conv_params *p = run->p;
    for (size_t i = 0; i < run->args.m; i++) {
        const size_t pixel = (row + i) % (p->out_h * p->out_w);
        const uint8_t *image =
            run->in + (row + i) / (p->out_h * p->out_w) * p->in_h * p->in_w * p->in_c * p->element;
        for (size_t t = 0; t < p->taps; t++) {
            const size_t y = pixel / p->out_w * p->stride_y + t / p->kw * p->dilation_y;
            const size_t x = pixel % p->out_w * p->stride_x + t % p->kw * p->dilation_x;
            const bool inside = y >= p->pad_top && y - p->pad_top < p->in_h && x >= p->pad_left &&
                                x - p->pad_left < p->in_w;
            rows[t * run->args.m + i] =
                inside
                    ? image + ((y - p->pad_top) * p->in_w + x - p->pad_left) * p->in_c * p->element
                    : zeros;
        }
    }
}

static void run_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct run run;
    begin(&run, step, frame);
    const struct conv_params *p = run.p;
    const struct ifd_packed *packed = run.args.packed;
    const struct ifd_acc_range range =
        share(&run, frame, p->batch * p->out_h * p->out_w, packed->mr);
    const void **rows = (const void **)(void *)run.rest;
    uint8_t *zeros = run.rest + p->tile_rows * p->taps * sizeof(void *);
    for (size_t row = range.begin; row < range.end; row += run.args.m) {
        run.args.m = begin_rows(&run, row, range.end);
        memset(zeros, zero_byte(&run), p->in_c * p->element + IFD_TENSOR_PAD);
        run.args.rows = rows;
        point_rows(&run, rows, zeros, row);
        call(&run, row);
    }
}

/* One call of the transforms: lines of tiles from the first tile line y of an image on. */
static void call_tiles(struct run *run, const uint8_t *image, size_t y, size_t count,
                       size_t first_row)
{
    const struct conv_params *p = run->p;
    const struct ifd_kernels *kernels = run->step->kernels;
    const size_t tiles_x = (p->out_w + p->tile_size - 1) / p->tile_size, tiles = count * tiles_x;
    float *inputs = (float *)(void *)run->rest, *sums = inputs + tile_matrices(p) * tiles * p->in_c;
    const struct ifd_packed *packed = run->args.packed;
    struct ifd_wino_args args = {.size = p->tile_size,
                                 .channels = p->in_c,
                                 .tiles_x = tiles_x,
                                 .tile_begin = y * tiles_x,
                                 .tile_count = tiles,
                                 .image = (float *)(uintptr_t)image,
                                 .height = p->in_h,
                                 .width = p->in_w,
                                 .pixel_stride = p->in_c,
                                 .line_stride = p->in_w * p->in_c,
                                 .pad_top = (uint32_t)p->pad_top,
                                 .pad_left = (uint32_t)p->pad_left,
                                 .matrices = inputs,
                                 .matrix_stride = tiles * p->in_c,
                                 .row_stride = p->in_c};
    kernels->wino.input(&args);
    const size_t n = run->args.n_begin, columns = run->args.n_end - n;
    const size_t before = n / packed->nr * packed->block_bytes;
    for (size_t t = 0; t < tile_matrices(p); t++) {
        const uint8_t *next = (const uint8_t *)packed + packed->bytes;
        kernels->gemm_f32.run(&(struct ifd_gemm_args){
            .packed = packed,
            .a = inputs + t * args.matrix_stride,
            .out = sums + t * tiles * p->out_c,
            .m = tiles,
            .n_begin = n,
            .n_end = run->args.n_end,
            .a_stride = p->in_c,
            .out_stride = p->out_c,
            .min = -INFINITY,
            .max = INFINITY,
            .next = t + 1 < tile_matrices(p) ? next + before : NULL,
            .next_bytes = packed->block_bytes,
        });
        packed = (const struct ifd_packed *)(const void *)next;
    }
    float *out = (float *)(void *)run->out + p->out_offset + first_row * p->out_stride;
    args.channels = columns;
    args.image = out + n;
    args.height = p->out_h;
    args.width = p->out_w;
    args.pixel_stride = p->out_stride;
    args.line_stride = p->out_w * p->out_stride;
    args.matrices = sums + n;
    args.matrix_stride = tiles * p->out_c;
    args.row_stride = p->out_c;
    args.bias = p->product.bias_f32 ? p->product.bias_f32 + n : NULL;
    args.add = run->add ? (const float *)(const void *)run->add + first_row * p->out_c + n : NULL;
    args.min = p->product.min;
    args.max = p->product.max;
    kernels->wino.output(&args);
    if (p->tail.exists) {
        const size_t lines = p->out_h - y * p->tile_size;
        run->args.out = out + y * p->tile_size * args.line_stride;
        run->args.m = (count * p->tile_size < lines ? count * p->tile_size : lines) * p->out_w;
        apply_tail(run);
    }
}

static void run_tiles(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct run run;
    begin(&run, step, frame);
    const struct conv_params *p = run.p;
    const size_t tiles_y = (p->out_h + p->tile_size - 1) / p->tile_size;
    const struct ifd_acc_range range = share(&run, frame, p->batch * tiles_y, 1);
    size_t count = 0;
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % tiles_y, b = line / tiles_y;
        count = range.end - line < p->tile_lines ? range.end - line : p->tile_lines;
        count = tiles_y - y < count ? tiles_y - y : count;
        call_tiles(&run, run.in + b * p->in_h * p->in_w * p->in_c * p->element, y, count,
                   b * p->out_h * p->out_w);
    }
}

/* ---- compiling ---- */

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What a group of pixels costs, in vector operations a pixel: sums, and a handful for what comes after them, twice where
 * the last vector is stored in part. */
static double group_cost(const struct conv_params *p, size_t group, size_t lanes)
{
    const size_t columns = group * p->pixel_n, vectors = (columns + lanes - 1) / lanes;
    const size_t k = p->pixel_k + (group - 1) * p->pixel_step;
    const size_t stores = 4 * (vectors + (columns % lanes != 0));
    return (double)(vectors * p->taps * k + stores) / (double)group;
}

/* Weights of a group stay in a part of L1. */
#define GROUP_BYTES_MAX ((size_t)32 * 1024)

/* The number of pixels to compute as one row: a power of two by which lines (or, where lines do not matter, all pixels of
 * a sample) can be divided. */
static size_t choose_group(const struct conv_params *p, size_t lanes)
{
    const size_t pixels = p->mode == PLAIN ? p->out_h * p->out_w : p->out_w;
    size_t best = 1;
    for (size_t group = 2; p->pixel_n < lanes && group <= lanes && pixels % group == 0;
         group *= 2) {
        const size_t weights = p->taps * (p->pixel_k + (group - 1) * p->pixel_step);
        if (weights * group * p->pixel_n * sizeof(float) <= GROUP_BYTES_MAX &&
            group_cost(p, group, lanes) < group_cost(p, best, lanes)) {
            best = group;
        }
    }
    return best;
}

/* Rewrites the layer as one of fewer pixels with more channels. */
static void group_pixels(struct conv_params *p, size_t group)
{
    p->group = group;
    p->line_rows = p->out_w % group == 0 ? p->out_w / group : 0;
    p->out_c *= group;
    p->out_stride *= group;
    p->k += (group - 1) * p->pixel_step;
    if (p->mode == PLAIN) {
        p->out_w = p->batch * p->out_h * p->out_w / group;
        p->batch = p->out_h = 1;
    } else {
        p->out_w /= group;
        p->stride_x *= group;
    }
}

/* What a convolution costs, in multiply-accumulates by weight: `products` matrices that meet `rows` rows each, every value
 * in and out of which takes `transform` operations; reading a weight costs as much as some products, more if it comes
 * from beyond the cache. */
static double product_cost(const struct conv_params *p, size_t products, size_t rows,
                           double transform, size_t cache)
{
    const bool is_near = products * p->in_c * p->out_c * p->element <= cache / 4;
    const double values = 1.0 / (double)p->in_c + 1.0 / (double)p->out_c;
    return (double)products * ((double)rows * (1 + transform * values) + (is_near ? 8 : 32));
}

/* Winograd's algorithm pays where products outweigh transforms (channels), tiles are rows enough for the matrix product
 * and few of their outputs lie outside. 0: it does not. */
static uint32_t choose_tile_size(const struct conv_params *p, const struct ifd_host *host)
{
    if (p->mode != LINES || p->kh * p->kw != 9 || p->kh != 3 || p->stride_x * p->stride_y != 1 ||
        p->in_c < 32 || p->out_c < 32) {
        return 0;
    }
    const size_t cache = host->cpu.l2_bytes ? host->cpu.l2_bytes : 256 * 1024;
    double best = product_cost(p, 9, p->out_h * p->out_w, 0, cache);
    uint32_t best_size = 0;
    for (uint32_t size = 4; size >= 2; size -= 2) {
        const size_t tiles = ((p->out_h + size - 1) / size) * ((p->out_w + size - 1) / size);
        const double cost = product_cost(p, (size + 2) * (size + 2), tiles, 8, cache);
        if (tiles >= 12 && cost < best) {
            best = cost;
            best_size = size;
        }
    }
    return best_size;
}

/* How many rows a call takes: their inputs should stay in the second-level cache while the weights go by block by block. */
static void choose_tiles(struct conv_params *p, const struct ifd_host *host)
{
    const size_t cache = host->cpu.l2_bytes ? host->cpu.l2_bytes / 4 : 64 * 1024;
    if (p->mode == TILES) {
        /* matrices in a part of the cache, but enough rows that streaming the weights does not outweigh the products */
        const size_t line = (p->out_w + p->tile_size - 1) / p->tile_size;
        const size_t row_bytes = tile_matrices(p) * (p->in_c + p->out_c) * p->element;
        const size_t rows =
            max_size(2 * cache / row_bytes, p->in_c * p->out_c / (p->in_c + p->out_c));
        const size_t tiles_y = (p->out_h + p->tile_size - 1) / p->tile_size;
        const size_t calls = (tiles_y * line + rows - 1) / rows;
        p->tile_lines = (tiles_y + calls - 1) / calls;
        p->tile_rows = p->tile_lines * line;
        return;
    }
    if (p->mode == LINES) {
        /* a window of one line that needs no padding reads the pixels of its stride only */
        const size_t elements =
            p->kh == 1 && !p->is_padded ? p->out_w * p->k : p->stride_y * p->line;
        const size_t lines = cache / (elements * p->element);
        p->tile_lines = max_size(1, lines > p->kh ? lines - p->kh : 1);
        p->tile_lines = p->tile_lines < p->out_h ? p->tile_lines : p->out_h;
        p->tile_rows = p->tile_lines * p->out_w;
        return;
    }
    const size_t row_bytes =
        p->mode == ROWS ? p->taps * sizeof(void *) + p->in_c * p->element : p->k * p->element;
    const size_t rows = p->batch * p->out_h * p->out_w, unit = 48;
    const size_t most = max_size(unit, (p->product.is_q8 ? 1 : 2) * cache / max_size(1, row_bytes));
    const size_t calls = max_size(1, rows / most + (rows % most != 0));
    p->tile_rows = (rows / calls + unit) / unit * unit;
}

/* Says how the newest step is run strip by strip. height: of the output, before pixels were grouped. */
static enum ifd_code add_lines(struct ifd_acc_lowering *lowering, const struct conv_params *p,
                               size_t batch, size_t height, struct ifd_err *err)
{
    if (p->product.is_q8 || p->mode > LINES || p->line_rows == 0) {
        return IFD_OK;
    }
    struct ifd_acc_lines *lines = ifd_acc_params(lowering, 1, sizeof(*lines));
    if (!lines) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    *lines = (struct ifd_acc_lines){.batch = batch,
                                    .in_h = p->in_h,
                                    .out_h = height,
                                    .in_line = p->in_w * p->in_c * p->element,
                                    .out_line = p->line_rows * p->out_stride * p->element,
                                    .window = p->kh,
                                    .stride = p->stride_y,
                                    .pad = p->pad_top,
                                    .run = p->mode == PLAIN ? strip_plain : strip_lines};
    lowering->step[lowering->step_count - 1].lines = lines;
    return IFD_OK;
}

/* Rows of 32-bit sums that are kept until they are rounded. */
#define EXACT_ROWS_MAX 48

static enum ifd_code add_work(struct ifd_acc_lowering *lowering, struct conv_params *p,
                              struct ifd_err *err)
{
    size_t bytes = 0;
    if (p->product.real && p->tile_rows > EXACT_ROWS_MAX) {
        p->tile_rows = EXACT_ROWS_MAX;
    }
    if (p->has_row_add &&
        !ifd_size_align(2 * p->tile_rows * sizeof(int32_t), IFD_TENSOR_ALIGN, &p->sums_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "work memory overflows");
    }
    if (p->product.is_dynamic) { /* offsets and scales */
        p->sums_bytes = 2 * padded(p->out_c) * sizeof(float);
    }
    bytes = p->sums_bytes;
    if (p->product.real) { /* sums of fully connected rows */
        bytes += p->tile_rows * padded(p->out_c) * sizeof(int32_t);
    } else if (p->mode == LINES && p->is_padded) {
        bytes += ((p->tile_lines - 1) * p->stride_y + p->kh) * p->line * p->element;
    } else if (p->mode == TILES) {
        bytes +=
            p->tile_rows * tile_matrices(p) * (p->in_c + p->out_c) * p->element + IFD_TENSOR_PAD;
    } else if (p->mode == ROWS) {
        bytes += p->tile_rows * p->taps * sizeof(void *) + p->in_c * p->element + IFD_TENSOR_PAD;
    }
    return bytes ? ifd_acc_add_work(lowering, bytes, err) : IFD_OK;
}

/* The add that alone reads a convolution's result and adds a tensor of the same shape that is there already: it can be
 * done while the sums are stored. */
static bool find_residual(const struct ifd_acc_lowering *lowering,
                          const struct ifd_partition_node *node, uint32_t *ret_add,
                          uint32_t *ret_other, float *ret_min, float *ret_max)
{
    const uint32_t made = node->output_value[0];
    const struct ifd_partition_node *add = ifd_acc_sole_reader(lowering, made, ret_add);
    if (!add || add->view.op != IFD_OP_ADD) {
        return false;
    }
    const struct ifd_binary_attrs *attrs = add->view.attrs;
    *ret_other = add->input_value[add->input_value[0] == made ? 1 : 0];
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const struct ifd_shape *other = &lowering->value[*ret_other].view->desc.shape;
    return *ret_other != made && memcmp(shape, other, sizeof(*shape)) == 0 &&
           ifd_acc_is_ready(lowering, *ret_other) &&
           ifd_acc_clamp_f32(attrs->activation, ret_min, ret_max);
}

static enum ifd_code finish(struct ifd_acc_lowering *lowering,
                            const struct ifd_partition_node *node, struct conv_params *p,
                            int32_t activation, const char *name, struct ifd_err *err)
{
    static const ifd_acc_step_fn run[] = {
        [PLAIN] = run_plain, [LINES] = run_lines, [ROWS] = run_rows, [TILES] = run_tiles};
    uint32_t operands[2] = {node->input_value[0], IFD_NO_VALUE}, out = node->output_value[0],
             add = 0, other = 0;
    const size_t lanes = lowering->kernels->gemm_f32.lanes();
    const bool fuses =
        !p->product.is_q8 && activation == IFD_ACT_NONE &&
        find_residual(lowering, node, &add, &other, &p->product.min, &p->product.max);
    if (fuses) {
        operands[1] = other;
        out = lowering->view->node[add].output_value[0];
        ifd_acc_fuse_node(lowering, add);
        if (p->out_c >=
            lanes) { /* else pixels may be grouped, and then what is added is needed twice */
            (void)ifd_acc_in_place(lowering, other, out);
        }
    }
    if (p->out_element == sizeof(float) && !fuses && activation == IFD_ACT_NONE) {
        p->tail = ifd_acc_take_tail(lowering, out);
        out = p->tail.exists ? p->tail.out : out;
    }
    const struct ifd_acc_slice slice = ifd_acc_take_slice(lowering, out);
    p->out_stride = slice.exists ? slice.stride : p->out_c;
    p->out_offset = slice.offset;
    const struct ifd_kernels *kernels = lowering->kernels;
    const uint64_t macs = (uint64_t)p->batch * p->out_h * p->out_w * p->out_c * p->taps * p->k;
    if (!p->product.is_q8 && !lowering->view->exact && !(fuses && slice.exists)) {
        p->tile_size = choose_tile_size(p, lowering->host);
        p->mode = p->tile_size ? TILES : p->mode;
    }
    p->pixel_n = p->out_c;
    p->pixel_k = p->k;
    p->pixel_step = p->stride_x * p->in_c;
    const size_t batch = p->batch, height = p->out_h;
    group_pixels(p,
                 p->product.is_q8 || slice.exists || p->mode >= ROWS ? 1 : choose_group(p, lanes));
    choose_tiles(p, lowering->host);
    struct ifd_acc_step *step = NULL;
    enum ifd_code code = IFD_OK;
    if (p->product.is_dynamic) {
        code = ifd_acc_add_images(lowering, operands[0], p->batch, p->in_h * p->in_w * p->in_c,
                                  false, &p->product, &operands[0], err);
    }
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, run[p->mode], p, operands, 2, out, &step, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    step->rate = p->product.is_q8 ? 300.0f : 60.0f;
    ifd_acc_name_step(lowering,
                      p->product.is_q8   ? "gemm_q8"
                      : p->mode == TILES ? "wino"
                                         : "gemm_f32",
                      macs, "%s %zux%zu/%zu%s%s%s%s", name, p->kh, p->kw, p->stride_y,
                      activation == IFD_ACT_NONE ? "" : "+act", fuses ? "+add" : "",
                      p->tail.exists ? "+" : "", p->tail.exists ? p->tail.name : "");
    size_t bytes = p->product.is_q8 ? kernels->gemm_q8.packed_bytes(p->out_c, p->k, p->taps)
                                    : kernels->gemm_f32.packed_bytes(p->out_c, p->k, p->taps);
    size_t workspace = workspace_bytes(p);
    if (p->group > 1) {
        bytes = grouped_bytes(p, kernels) +
                kernels->gemm_f32.packed_bytes(p->pixel_n, p->pixel_k, p->taps);
    }
    if (p->product.is_dynamic) {
        bytes += 3 * padded(p->out_c) * sizeof(float);
    }
    if (p->mode == TILES) {
        bytes = tile_matrices(p) * kernels->gemm_f32.packed_bytes(p->out_c, p->in_c, 1);
        workspace = tile_matrices(p) * p->out_c * p->in_c * sizeof(float);
    }
    code = ifd_acc_add_pack(lowering, p->product.weights, bytes, workspace,
                            p->mode == TILES ? pack_tiles : pack_weights, p, err);
    code = code == IFD_OK ? add_work(lowering, p, err) : code;
    return code == IFD_OK ? add_lines(lowering, p, batch, height, err) : code;
}

static enum ifd_code no_memory(struct ifd_err *err)
{
    return ifd_fail(err, IFD_NOMEM, "no memory for a step");
}

/* ---- conv2d ---- */

static bool conv2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    if (node->input[0].desc->shape.dim[3] != node->input[1].desc->shape.dim[3]) {
        ifd_fail(reason, IFD_UNSUPPORTED, "groups");
        return false;
    }
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

static enum ifd_code conv2d_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    const struct ifd_shape *in = &node->view.input[0].desc->shape;
    const struct ifd_shape *filter = &node->view.input[1].desc->shape;
    const struct ifd_shape *out = &node->view.output[0].shape;
    struct ifd_window_size size;
    struct conv_params *p = ifd_acc_params(lowering, 1, sizeof(*p));
    if (!p) {
        return no_memory(err);
    }
    if (!ifd_window_resolve(&attrs->window, filter->dim[1], filter->dim[2], in->dim[1], in->dim[2],
                            &size)) {
        return ifd_fail(err, IFD_INTERNAL, "window that infer did not accept");
    }
    struct ifd_acc_product product;
    const enum ifd_code code =
        ifd_acc_product_init(lowering, &node->view, attrs->activation, (size_t)out->dim[3],
                             IFD_ROUND_DOUBLE, &product, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct conv_params){
        .product = product,
        .element = product.is_q8 ? 1 : sizeof(float),
        .out_element = product.is_q8 && !product.is_dynamic ? 1 : sizeof(float),
        .batch = (size_t)in->dim[0],
        .in_h = (size_t)in->dim[1],
        .in_w = (size_t)in->dim[2],
        .in_c = (size_t)in->dim[3],
        .out_h = (size_t)out->dim[1],
        .out_w = (size_t)out->dim[2],
        .out_c = (size_t)out->dim[3],
        .kh = (size_t)filter->dim[1],
        .kw = (size_t)filter->dim[2],
        .stride_y = (size_t)attrs->window.stride_h,
        .stride_x = (size_t)attrs->window.stride_w,
        .dilation_y = (size_t)attrs->window.dilation_h,
        .dilation_x = (size_t)attrs->window.dilation_w,
        .pad_top = (size_t)size.pad_top,
        .pad_left = (size_t)size.pad_left,
        .has_row_add = product.is_q8 && product.requant.weight_zero != 0,
        .is_padded = size.pad_top || size.pad_left || size.pad_bottom || size.pad_right,
    };
    const bool is_dilated = (p->dilation_y > 1 && p->kh > 1) || (p->dilation_x > 1 && p->kw > 1);
    p->mode = is_dilated                                                              ? ROWS
              : p->kh * p->kw == 1 && p->stride_y * p->stride_x == 1 && !p->is_padded ? PLAIN
                                                                                      : LINES;
    p->taps = p->mode == ROWS ? p->kh * p->kw : p->mode == LINES ? p->kh : 1;
    p->k = p->mode == LINES ? p->kw * p->in_c : p->in_c;
    p->line = ((p->out_w - 1) * p->stride_x + p->kw) * p->in_c;
    if (!p->is_padded) {
        p->line = p->in_w * p->in_c;
    }
    return finish(lowering, node, p, attrs->activation, "conv2d", err);
}

const struct ifd_acc_driver ifd_acc_conv2d = {.takes = conv2d_takes, .lower = conv2d_lower};

/* ---- fully_connected ---- */

static bool fully_connected_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

static enum ifd_code fully_connected_lower(struct ifd_acc_lowering *lowering,
                                           const struct ifd_partition_node *node,
                                           struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const struct ifd_shape *weights = &node->view.input[1].desc->shape;
    const struct ifd_shape *out = &node->view.output[0].shape;
    struct conv_params *p = ifd_acc_params(lowering, 1, sizeof(*p));
    if (!p) {
        return no_memory(err);
    }
    struct ifd_acc_product product;
    const enum ifd_code code =
        ifd_acc_product_init(lowering, &node->view, attrs->activation, (size_t)weights->dim[0],
                             IFD_ROUND_SINGLE, &product, err);
    if (code != IFD_OK) {
        return code;
    }
    size_t rows = 1; /* of one sample */
    for (uint32_t i = 1; i + 1 < out->rank; i++) {
        rows *= (size_t)out->dim[i];
    }
    *p = (struct conv_params){
        .product = product,
        .mode = PLAIN,
        .element = product.is_q8 ? 1 : sizeof(float),
        .out_element = product.is_q8 && !product.is_dynamic ? 1 : sizeof(float),
        .batch = out->rank > 1 ? (size_t)out->dim[0] : 1,
        .in_h = rows,
        .in_w = 1,
        .in_c = (size_t)weights->dim[1],
        .out_h = rows,
        .out_w = 1,
        .out_c = (size_t)weights->dim[0],
        .kh = 1,
        .kw = 1,
        .stride_y = 1,
        .stride_x = 1,
        .taps = 1,
        .k = (size_t)weights->dim[1],
        .has_row_add = product.is_q8 && product.requant.weight_zero != 0,
    };
    return finish(lowering, node, p, attrs->activation, "fully_connected", err);
}

const struct ifd_acc_driver ifd_acc_fully_connected = {.takes = fully_connected_takes,
                                                       .lower = fully_connected_lower};
