/* Finds the rows of the input and calls the kernels: plain, by lines, by a table of rows. */
#include "backends/cpuacc/conv/layer.h"

#include <math.h>
#include <string.h>

void ifd_acc_conv_begin(struct ifd_acc_conv_run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame)
{
    const struct ifd_acc_conv *p = step->params;
    uint8_t *work = step->work_stride ? ifd_acc_work(step, frame) : NULL;
    /* all members are named: a small layer would wait for the rest to be cleared */
    *run = (struct ifd_acc_conv_run){
        .step = step,
        .frame = frame,
        .p = p,
        .in = ifd_acc_in(step, frame, 0),
        .out = ifd_acc_out(step, frame),
        .add = ifd_acc_in(step, frame, 1),
        .row = 0,
        .out_stride = p->out_stride,
        .in_first = 0,
        .in_end = p->window.in_h,
        .is_strip = false,
        .sums = (int32_t *)(void *)work,
        .rest = work ? work + p->sums_bytes : NULL,
        .args = {.packed = frame->packed + step->packed,
                 .a = NULL,
                 .rows = NULL,
                 .out = NULL,
                 .m = 0,
                 .n_begin = 0,
                 .n_end = p->out_c,
                 .row_len = 0,
                 .row_stride = 0,
                 .a_stride = p->narrow_c ? p->narrow_c : p->in_stride, /* PLAIN */
                 .tap_stride = 0,
                 .out_stride = p->out_stride,
                 .row_add = NULL,
                 .add = NULL,
                 .add_stride = p->out_c,
                 .min = p->product.min,
                 .max = p->product.max,
                 .next = NULL,
                 .next_bytes = 0},
        .images = NULL,
        .image = 0,
    };
    if (p->product.is_dynamic) {
        run->images = (const struct ifd_acc_image *)(const void *)run->in;
        run->in += ifd_acc_images_bytes(p->window.batch);
    }
}

void ifd_acc_conv_tail(const struct ifd_acc_conv_run *run, size_t first_row, size_t rows)
{
    const struct ifd_acc_conv *p = run->p;
    if (p->tail.count == 0) {
        return;
    }
    const size_t group = p->group, column = run->args.n_begin, stride = run->out_stride;
    uint8_t *out = run->out + (first_row * stride + column) * p->out_element;
    ifd_acc_run_tail(&p->tail, run->step, run->frame,
                     &(struct ifd_acc_piece){.in = out,
                                             .out = out,
                                             .rows = rows * group,
                                             .n = (run->args.n_end - column) / group,
                                             .stride = stride / group,
                                             .row = (run->row + first_row) * group,
                                             .column = column,
                                             .width = p->out_c / group});
}

/* The call that has just been made, pixel by pixel. */
static void call_pixels(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_conv *p = run->p;
    struct ifd_gemm_args args = run->args;
    args.packed = (const uint8_t *)args.packed + ifd_acc_conv_grouped_bytes(p);
    args.m *= p->group;
    args.n_end = p->pixel_n;
    args.row_len *= p->group;
    args.a_stride /= p->group;
    args.out_stride /= p->group;
    args.add_stride /= p->group;
    p->gemm->run(&args);
}

/* One call of the kernel; a, rows, m and strides are set. */
static void call(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_conv *p = run->p;
    run->args.out = run->out + first_row * run->out_stride * p->out_element;
    if (p->product.is_q8) {
        ifd_acc_conv_call_q8(run, first_row);
        ifd_acc_conv_tail(run, first_row, run->args.m);
        return;
    }
    run->args.add = run->add ? (const float *)(const void *)run->add + first_row * p->out_c : NULL;
    if (p->is_strassen) {
        ifd_acc_strassen_run(run);
    } else {
        p->gemm->run(&run->args);
    }
    if (p->group > 1 &&
        !isfinite(run->step->kernels->reduce.sum_f32(run->args.m * p->out_c, run->args.out))) {
        call_pixels(run);
    }
    ifd_acc_conv_tail(run, first_row, run->args.m);
}

/* Far more weights than values? */
static bool is_heavy(const struct ifd_acc_conv *p)
{
    const struct ifd_low_window *w = &p->window;
    const size_t matrices = p->mode == IFD_ACC_CONV_TILES ? ifd_acc_winograd_matrices(p) : p->taps;
    const size_t values = w->batch * (w->in_h * w->in_w * w->in_c + w->out_h * w->out_w * p->out_c);
    return !p->product.is_q8 && 2 * matrices * p->k * p->out_c > 3 * values;
}

/* Rows of a product's tile, or a few more. */
#define TILE_ROWS 16

/* Does each call prepare all of its rows, whichever columns it computes? */
static bool prepares_columns(const struct ifd_acc_conv *p, uint32_t threads)
{
    const struct ifd_low_window *w = &p->window;
    const bool prepares =
        p->mode >= IFD_ACC_CONV_ROWS || w->is_padded || p->narrow_c || p->has_row_add;
    const size_t lines = p->mode == IFD_ACC_CONV_TILES ? w->out_h / p->tile_size : w->out_h;
    const size_t tiles = p->mode == IFD_ACC_CONV_LINES || p->mode == IFD_ACC_CONV_TILES
                             ? w->batch * lines
                             : w->batch * lines * w->out_w / TILE_ROWS;
    return prepares && (is_heavy(p) || tiles < 2 * (size_t)threads);
}

/* Rows of a piece at least: each reads the weights. Winograd's tiles have calls of their own size. */
#define PIECE_ROWS    24
#define PIECE_ROWS_Q8 48

uint32_t ifd_acc_conv_pieces(const struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p)
{
    const struct ifd_low_window *w = &p->window;
    const uint32_t threads = lowering->view->max_threads;
    const bool is_far =
        p->taps * p->k * p->out_c * p->element > ifd_acc_cache_bytes(lowering->host) / 2;
    if (p->is_strassen || prepares_columns(p, threads) || (is_far && !is_heavy(p))) {
        return 1;
    }
    if (is_heavy(p)) {
        return IFD_ACC_PIECES_MAX; /* of columns */
    }
    const size_t pixels = w->batch * w->out_h * w->out_w / threads;
    const size_t least = p->tile_size       ? p->tile_rows * p->tile_size * p->tile_size
                         : p->product.is_q8 ? PIECE_ROWS_Q8
                                            : PIECE_ROWS;
    return ifd_acc_pieces_of(pixels, least);
}

struct ifd_acc_range ifd_acc_conv_share(struct ifd_acc_conv_run *run,
                                        const struct ifd_acc_frame *frame, size_t items,
                                        size_t unit)
{
    if (frame->threads == 1) {
        return (struct ifd_acc_range){0, items};
    }
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_packed *packed = run->args.packed;
    const size_t tiles = (items + unit - 1) / unit, threads = frame->threads;
    if (p->group == 1 && !p->is_strassen &&
        (tiles < 2 * threads || (is_heavy(p) && packed->blocks >= threads))) {
        const struct ifd_acc_range blocks = ifd_acc_share(frame, packed->blocks, 1);
        run->args.n_begin = ifd_packed_column(packed, blocks.begin);
        run->args.n_end = ifd_packed_column(packed, blocks.end);
        return (struct ifd_acc_range){0, blocks.begin < blocks.end ? items : 0};
    }
    return ifd_acc_share(frame, items, unit);
}

/* The last call of a step: while it computes, the kernel fetches the weights that come next, as far as there is time. */
static void fetch_later(struct ifd_acc_conv_run *run)
{
    const struct ifd_packed *later = run->frame->threads == 1 ? run->step->later : NULL;
    run->args.next = later;
    run->args.next_bytes = later ? (size_t)later->bytes : 0;
}

/* PLAIN: rows begin … end-1. */
static void plain_rows(struct ifd_acc_conv_run *run, size_t begin, size_t end)
{
    const struct ifd_acc_conv *p = run->p;
    for (size_t row = begin; row < end; row += run->args.m) {
        run->args.m = ifd_acc_conv_begin_rows(run, row, end);
        if (p->narrow_c) {
            ifd_acc_conv_narrow_rows(run, row, run->args.m);
            run->args.a = run->rest;
        } else {
            run->args.a = run->in + row * run->args.a_stride * p->element;
        }
        if (row + run->args.m == end && !run->is_strip) {
            fetch_later(run);
        }
        call(run, row);
    }
}

void ifd_acc_conv_run_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const struct ifd_packed *packed = run.args.packed;
    const struct ifd_acc_range range = ifd_acc_conv_share(
        &run, frame, p->window.batch * p->window.out_h * p->window.out_w, packed->mr);
    plain_rows(&run, range.begin, range.end);
}

/* A part of a chain: everything lies where the strip says. */
static void begin_strip(struct ifd_acc_conv_run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame, const struct ifd_acc_strip *strip)
{
    ifd_acc_conv_begin(run, step, frame);
    run->in = strip->in;
    run->in_first = strip->in_first;
    run->in_end = strip->in_end;
    run->is_strip = true;
    run->out_stride += strip->out_pitch.gap / run->p->out_element;
    run->args.out_stride = run->out_stride;
    run->out = strip->out;
    run->row = strip->line * run->p->line_rows;
    if (run->add) {
        run->add += run->row * run->p->out_c * sizeof(float);
    }
}

void ifd_acc_conv_strip_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                              const struct ifd_acc_strip *strip)
{
    struct ifd_acc_conv_run run;
    begin_strip(&run, step, frame, strip);
    run.in += (strip->begin - strip->in_first) * strip->in_pitch.line;
    run.args.a_stride += strip->in_pitch.gap / run.p->element;
    plain_rows(&run, 0, (strip->end - strip->begin) * run.p->line_rows);
}

/* Copies the input lines that output lines y … y+count-1 of an image look at, with their padding, to the work memory. */
static void copy_lines(const struct ifd_acc_conv_run *run, const uint8_t *image, size_t y,
                       size_t count)
{
    const struct ifd_acc_conv *p = run->p;
    const int zero = ifd_acc_conv_zero_byte(run);
    const size_t line_bytes = p->line * p->element;
    const size_t left = ifd_acc_conv_padding(p, p->window.in_c) * p->element;
    const size_t content = p->window.in_w * p->window.in_c * p->element;
    const size_t copied = content < line_bytes - left ? content : line_bytes - left;
    uint8_t *to = run->rest;
    for (size_t i = 0; i < (count - 1) * p->window.stride_y + p->window.kh; i++, to += line_bytes) {
        const size_t in_y = y * p->window.stride_y + i; /* counted from the padding's edge */
        if (in_y < p->window.pad_top || in_y - p->window.pad_top >= p->window.in_h) {
            memset(to, zero, line_bytes);
            continue;
        }
        memset(to, zero, left);
        memcpy(to + left, image + (in_y - p->window.pad_top - run->in_first) * content, copied);
        memset(to + left + copied, zero, line_bytes - left - copied);
    }
}

/* What the call for output lines from y on will copy and this one has not: fetched meanwhile, as images come from outside. */
static void fetch_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y)
{
    const struct ifd_low_window *w = &run->p->window;
    const size_t line = w->in_w * w->in_c * run->p->element;
    const size_t below = (y - 1) * w->stride_y + w->kh; /* counted from the padding's edge */
    const size_t first = below > w->pad_top ? below - w->pad_top : 0;
    const size_t lines = run->in_end > first ? run->in_end - first : 0;
    run->args.next = lines ? image + (first - run->in_first) * line : NULL;
    run->args.next_bytes = lines * line;
}

/* Output lines y … end-1 of one image, to rows from first_row on. */
static void image_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y, size_t end,
                        size_t first_row)
{
    const struct ifd_acc_conv *p = run->p;
    const size_t in_line = p->window.in_w * p->window.in_c;
    run->args.row_len = p->window.out_w;
    run->args.a_stride = p->window.stride_x * (p->narrow_c ? p->narrow_c : p->window.in_c);
    run->args.tap_stride = p->window.is_padded || p->narrow_c ? p->line : in_line;
    run->args.row_stride = p->window.stride_y * run->args.tap_stride;
    for (size_t count = 0; y < end; y += count, first_row += count * p->window.out_w) {
        count = end - y < p->tile_lines ? end - y : p->tile_lines;
        run->args.m = count * p->window.out_w;
        if (p->narrow_c) {
            ifd_acc_conv_narrow_lines(run, image, y, count);
            run->args.a = run->rest;
        } else if (p->window.is_padded) {
            copy_lines(run, image, y, count);
            fetch_lines(run, image, y + count);
            run->args.a = run->rest;
        } else {
            run->args.a = image + (y * p->window.stride_y - run->in_first) * in_line * p->element;
        }
        call(run, first_row);
    }
}

void ifd_acc_conv_run_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const struct ifd_acc_range range =
        ifd_acc_conv_share(&run, frame, p->window.batch * p->window.out_h, 1);
    size_t count = 0;
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % p->window.out_h, left = p->window.out_h - y;
        count = range.end - line < left ? range.end - line : left;
        ifd_acc_conv_begin_image(&run, line / p->window.out_h);
        image_lines(&run,
                    run.in + line / p->window.out_h * p->window.in_h * p->window.in_w *
                                 p->window.in_c * p->element,
                    y, y + count, line * p->window.out_w);
    }
}

void ifd_acc_conv_strip_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                              const struct ifd_acc_strip *strip)
{
    struct ifd_acc_conv_run run;
    begin_strip(&run, step, frame, strip);
    image_lines(&run, strip->in, strip->begin, strip->end, 0);
}

/* Row pointers of output pixels row … row+m-1, tap by tap. */
static void point_rows(const struct ifd_acc_conv_run *run, const void **rows, const uint8_t *zeros,
                       size_t row)
{
    const struct ifd_low_window *w = &run->p->window;
    const size_t pixel_bytes = w->in_c * run->p->element, pixels = w->out_h * w->out_w;
    for (size_t i = 0; i < run->args.m; i++) {
        const size_t pixel = (row + i) % pixels;
        const uint8_t *image = run->in + (row + i) / pixels * w->in_h * w->in_w * pixel_bytes;
        for (size_t t = 0; t < run->p->taps; t++) {
            size_t seen = 0;
            rows[t * run->args.m + i] = ifd_low_window_sees(w, pixel, t / w->kw, t % w->kw, &seen)
                                            ? image + seen * pixel_bytes
                                            : zeros;
        }
    }
}

void ifd_acc_conv_run_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const struct ifd_packed *packed = run.args.packed;
    const struct ifd_acc_range range = ifd_acc_conv_share(
        &run, frame, p->window.batch * p->window.out_h * p->window.out_w, packed->mr);
    const void **rows = (const void **)(void *)run.rest;
    uint8_t *zeros = run.rest + p->tile_rows * p->taps * sizeof(void *);
    for (size_t row = range.begin; row < range.end; row += run.args.m) {
        run.args.m = ifd_acc_conv_begin_rows(&run, row, range.end);
        memset(zeros, ifd_acc_conv_zero_byte(&run), p->window.in_c * p->element + IFD_TENSOR_PAD);
        run.args.rows = rows;
        point_rows(&run, rows, zeros, row);
        call(&run, row);
    }
}
