/* The direct algorithms without dilation: rows are contiguous in the input, or in its lines. */
#include "backends/cpuacc/conv/direct.h"

#include "backends/cpuacc/conv/pack.h"
#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/conv/q8.h"
#include "backends/cpuacc/conv/shape.h"

#include <math.h>
#include <string.h>

/* ---- costs ---- */

double ifd_acc_direct_cost_of(const struct ifd_acc_lowering *lowering,
                              const struct ifd_acc_layer *layer, size_t matrices, double products,
                              double transform, int far)
{
    const size_t in_c = layer->window.in_c, cache = ifd_acc_cache_bytes(lowering->host);
    const bool is_near = matrices * in_c * layer->out_c * layer->element <= cache / 4;
    const double values = 1.0 / (double)in_c + 1.0 / (double)layer->out_c;
    return products * (1 + transform * values) +
           (double)matrices * (is_near ? IFD_ACC_READ_NEAR : far);
}

double ifd_acc_direct_cost(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer, double speed)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t taps = w->kh * w->kw;
    const double rows = floor((double)(w->out_h * w->out_w) / speed);
    return ifd_acc_direct_cost_of(lowering, layer, taps, (double)taps * rows, 0, IFD_ACC_KEEP_FAR);
}

double ifd_acc_direct_speed(const struct ifd_kern_gemm_f32 *gemm)
{
    return gemm->speed ? (double)gemm->speed() : 1.0;
}

static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return ifd_acc_direct_cost(
        lowering, layer,
        layer->product.is_q8 ? 1.0 : ifd_acc_direct_speed(ifd_acc_direct_gemm(lowering)));
}

/* ---- calls ---- */

size_t ifd_acc_direct_rows(struct ifd_acc_conv_run *run, size_t row, size_t end)
{
    const struct ifd_acc_direct *direct = &run->conv->plan.direct;
    const size_t left = direct->image_rows - row % direct->image_rows;
    const size_t count = end - row < direct->call_rows ? end - row : direct->call_rows;
    ifd_acc_q8_begin_image(run, row / direct->image_rows);
    return left < count ? left : count;
}

void ifd_acc_direct_multiply(struct ifd_acc_conv_run *run, size_t first_row)
{
    (void)first_row;
    run->conv->plan.gemm->run(&run->args);
}

/* The call that has just been made, pixel by pixel. */
static void multiply_pixels(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_conv_plan *plan = &run->conv->plan;
    struct ifd_gemm_args args = run->args;
    args.packed = (const uint8_t *)args.packed + ifd_acc_direct_grouped_bytes(run->conv);
    args.m *= plan->group;
    args.n_end = run->conv->layer.out_c;
    args.row_len *= plan->group;
    args.a_stride /= plan->group;
    args.out_stride /= plan->group;
    args.add_stride /= plan->group;
    plan->gemm->run(&args);
}

/* Non-finite values of one pixel must not reach the others of its group. */
static void multiply_groups(struct ifd_acc_conv_run *run, size_t first_row)
{
    ifd_acc_direct_multiply(run, first_row);
    const size_t count = run->args.m * run->conv->plan.n;
    if (!isfinite(run->step->kernels->reduce.sum_f32(count, run->args.out))) {
        multiply_pixels(run);
    }
}

static size_t add_bytes(const struct ifd_acc_conv_run *run)
{
    return run->conv->layer.narrow_add ? sizeof(uint16_t) : sizeof(float);
}

void ifd_acc_direct_call(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_conv *conv = run->conv;
    run->args.out = run->out + first_row * run->out_stride * conv->layer.out_element;
    run->args.add =
        run->add
            ? (const float *)(const void *)(run->add + first_row * conv->plan.n * add_bytes(run))
            : NULL;
    conv->plan.direct.multiply(run, first_row);
    ifd_acc_conv_tail(run, first_row, run->args.m);
}

/* The last call of a step: while it computes, the kernel fetches the weights that come next, as far
 * as there is time. */
static void fetch_later(struct ifd_acc_conv_run *run)
{
    const struct ifd_packed *later = run->frame->threads == 1 ? run->step->later : NULL;
    run->args.next = later;
    run->args.next_bytes = later ? (size_t)later->bytes : 0;
}

/* ---- plans ---- */

void ifd_acc_direct_init(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                         const struct ifd_kern_gemm_f32 *gemm, size_t taps, size_t k,
                         struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    const struct ifd_kernels *kernels = lowering->kernels;
    *ret = (struct ifd_acc_conv_plan){
        .kernel = layer->product.is_q8          ? "gemm_q8"
                  : gemm == &kernels->gemm_bf16 ? "gemm_bf16"
                  : gemm == &kernels->gemm_f16  ? "gemm_f16"
                                                : "gemm_f32",
        .gemm = gemm,
        .is_gemm_f32 = !layer->product.is_q8 && gemm == &kernels->gemm_f32,
        .group = 1,
        .n = layer->out_c,
        .a_stride = k,
        .out_stride = layer->out_stride,
        .direct = {.batch = w->batch,
                   .out_h = w->out_h,
                   .out_w = w->out_w,
                   .stride_x = w->stride_x,
                   .taps = taps,
                   .k = k,
                   .pixel_k = k,
                   .pixel_step = w->stride_x * w->in_c,
                   .line_rows = w->out_w,
                   .image_rows = layer->product.is_dynamic ? w->out_h * w->out_w : SIZE_MAX},
    };
}

static size_t sums_bytes(const struct ifd_acc_layer *layer, const struct ifd_acc_conv_plan *plan)
{
    const size_t channels = /* offsets and scales */
        layer->product.is_dynamic ? 2 * ifd_acc_conv_padded(layer->out_c) * sizeof(float) : 0;
    const size_t rows = layer->has_row_add ? 2 * plan->direct.call_rows * sizeof(int32_t) : 0;
    return (channels + rows + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
}

void ifd_acc_direct_finish(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer, bool prepares, size_t units,
                           struct ifd_acc_conv_plan *plan)
{
    struct ifd_acc_direct *direct = &plan->direct;
    const struct ifd_low_window *w = &layer->window;
    const size_t weights = direct->taps * direct->k * plan->n;
    if (layer->product.is_q8) {
        ifd_acc_q8_choose_multiply(layer, direct);
    } else {
        direct->multiply = plan->group > 1 ? multiply_groups : ifd_acc_direct_multiply;
    }
    direct->sums_bytes = sums_bytes(layer, plan);
    plan->load = (struct ifd_acc_load){
        .is_heavy =
            ifd_acc_conv_is_heavy(layer, weights,
                                  direct->batch * (w->in_h * w->in_w * w->in_c +
                                                   direct->out_h * direct->out_w * plan->n)),
        .is_far = weights * layer->element > ifd_acc_cache_bytes(lowering->host) / 2,
        .prepares = prepares || layer->has_row_add,
        .units = units,
        .rows = direct->batch * direct->out_h * direct->out_w,
        .least = ifd_acc_conv_least_rows(layer),
        .has_columns = plan->group == 1};
}

size_t ifd_acc_direct_work_bytes(const struct ifd_acc_conv *conv, size_t rest)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    return direct->sums_bytes + (conv->layer.product.real
                                     ? ifd_acc_q8_exact_bytes(&conv->layer, direct->call_rows)
                                     : rest);
}

/* ---- strips ---- */

/* A part of a chain: everything lies where the strip says. */
static void begin_strip(struct ifd_acc_conv_run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame, const struct ifd_acc_strip *strip)
{
    ifd_acc_conv_begin(run, step, frame);
    const struct ifd_acc_conv *conv = run->conv;
    run->in = strip->in;
    run->in_first = strip->in_first;
    run->in_end = strip->in_end;
    run->is_strip = true;
    run->out_stride += strip->out_pitch.gap / conv->layer.out_element;
    run->args.out_stride = run->out_stride;
    run->out = strip->out;
    run->row = strip->line * conv->plan.direct.line_rows;
    if (run->add) {
        run->add += run->row * conv->plan.n * add_bytes(run);
    }
}

/* False where lines do not fall into rows, or each image has a scale. */
static bool describe_lines(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret)
{
    const struct ifd_acc_layer *layer = &conv->layer;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_low_window *w = &layer->window;
    const bool has_pixels = conv->plan.group == 1 && !layer->is_slice;
    *ret = (struct ifd_acc_lines){
        .batch = w->batch,
        .in_h = w->in_h,
        .out_h = w->out_h,
        .in_line = w->in_w * layer->in_stride * layer->element,
        .out_line = direct->line_rows * conv->plan.out_stride * layer->out_element,
        .out_pixel = has_pixels ? conv->plan.n * layer->out_element : 0,
        .window = w->kh,
        .stride = w->stride_y,
        .pad = w->pad_top,
        .is_q8 = layer->product.is_q8,
        .is_head = layer->product.is_q8 && w->kh > 1 /* too many products to make any twice */
    };
    return !layer->product.is_dynamic && direct->line_rows > 0;
}

/* ---- plain ---- */

static bool plain_fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return layer->is_plain && !ifd_acc_narrow_suits(lowering, layer);
}

/* Only f32 rows without gaps can be grouped. */
static bool can_group(const struct ifd_acc_layer *layer)
{
    return !layer->product.is_q8 && !layer->is_slice && !layer->is_subtensor;
}

void ifd_acc_direct_fetch(struct ifd_acc_conv_run *run, const uint8_t *image, size_t first,
                          size_t count)
{
    (void)count;
    run->args.a = image + first * run->args.a_stride * run->conv->layer.element;
}

static void plan_plain(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                       struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, ifd_acc_direct_gemm(lowering), 1, w->in_c, ret);
    ifd_acc_direct_group(
        ret, can_group(layer) ? ifd_acc_direct_choose_group(layer, ret, w->out_h * w->out_w) : 1,
        true);
    struct ifd_acc_direct *direct = &ret->direct;
    ret->a_stride = layer->is_subtensor ? layer->in_stride : direct->k;
    direct->fetch = ifd_acc_direct_fetch;
    direct->call_rows =
        ifd_acc_direct_choose_rows(layer, ret, direct->k * layer->element, lowering->host);
    ifd_acc_direct_finish(lowering, layer, false,
                          direct->batch * direct->out_h * direct->out_w / IFD_ACC_UNIT_ROWS, ret);
}

static size_t plain_work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    return ifd_acc_direct_work_bytes(conv, 0);
}

/* Rows begin … end-1. */
static void plain_rows(struct ifd_acc_conv_run *run, size_t begin, size_t end)
{
    const struct ifd_acc_direct *direct = &run->conv->plan.direct;
    for (size_t row = begin; row < end; row += run->args.m) {
        run->args.m = ifd_acc_direct_rows(run, row, end);
        direct->fetch(run, run->in, row, run->args.m);
        if (row + run->args.m == end && !run->is_strip) {
            fetch_later(run);
        }
        ifd_acc_direct_call(run, row);
    }
}

void ifd_acc_direct_run_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_direct *direct = &run.conv->plan.direct;
    const struct ifd_packed *packed = run.args.packed;
    const struct ifd_acc_range range =
        ifd_acc_conv_share(&run, frame, direct->batch * direct->out_h * direct->out_w, packed->mr);
    plain_rows(&run, range.begin, range.end);
}

static void strip_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                        const struct ifd_acc_strip *strip)
{
    struct ifd_acc_conv_run run;
    begin_strip(&run, step, frame, strip);
    run.in += (strip->begin - strip->in_first) * strip->in_pitch.line;
    run.args.a_stride += strip->in_pitch.gap / run.conv->layer.element;
    plain_rows(&run, 0, (strip->end - strip->begin) * run.conv->plan.direct.line_rows);
}

bool ifd_acc_direct_strip_plain(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret)
{
    const bool can = describe_lines(conv, ret);
    const bool has_gaps = ret->out_pixel > 0 && conv->plan.direct.narrow_c == 0;
    ret->in_pixel =
        has_gaps && !conv->layer.is_subtensor ? conv->plan.direct.k * conv->layer.element : 0;
    ret->run = strip_plain;
    return can;
}

const struct ifd_acc_algorithm ifd_acc_conv_plain = {
    .name = "plain",
    .label = "",
    .fits = plain_fits,
    .cost = cost,
    .plan = plan_plain,
    .pack = ifd_acc_direct_pack,
    .packed_bytes = ifd_acc_direct_packed_bytes,
    .workspace_bytes = ifd_acc_direct_workspace_bytes,
    .work_bytes = plain_work_bytes,
    .run = ifd_acc_direct_run_plain,
    .strip = ifd_acc_direct_strip_plain,
};

/* ---- lines ---- */

static bool lines_fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return !layer->is_plain && !layer->is_dilated && !ifd_acc_narrow_suits(lowering, layer);
}

static void fetch_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y, size_t count)
{
    (void)count;
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_low_window *w = &layer->window;
    run->args.a = image + (y * w->stride_y - run->in_first) * w->in_w * w->in_c * layer->element;
}

/* Prefetches the lines that the call for output lines from y on copies and this one does not:
 * images come from outside the cache. */
static void fetch_next_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y)
{
    const struct ifd_low_window *w = &run->conv->layer.window;
    const size_t line = w->in_w * w->in_c * run->conv->layer.element;
    const size_t below = (y - 1) * w->stride_y + w->kh; /* counted from the padding's edge */
    const size_t first = below > w->pad_top ? below - w->pad_top : 0;
    const size_t lines = run->in_end > first ? run->in_end - first : 0;
    run->args.next = lines ? image + (first - run->in_first) * line : NULL;
    run->args.next_bytes = lines * line;
}

/* Copies the input lines of output lines y … y+count-1 of an image, with their padding, to work
 * memory. */
static void fetch_padded_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y,
                               size_t count)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_low_window *w = &layer->window;
    const int zero = ifd_acc_q8_zero_byte(run);
    const size_t line = run->conv->plan.direct.line, line_bytes = line * layer->element;
    const size_t left = ifd_acc_direct_padding(layer, line, w->in_c) * layer->element;
    const size_t content = w->in_w * w->in_c * layer->element;
    const size_t copied = content < line_bytes - left ? content : line_bytes - left;
    uint8_t *to = ifd_acc_direct_rest(run);
    run->args.a = to;
    for (size_t i = 0; i < (count - 1) * w->stride_y + w->kh; i++, to += line_bytes) {
        const size_t in_y = y * w->stride_y + i; /* counted from the padding's edge */
        if (in_y < w->pad_top || in_y - w->pad_top >= w->in_h) {
            memset(to, zero, line_bytes);
            continue;
        }
        memset(to, zero, left);
        memcpy(to + left, image + (in_y - w->pad_top - run->in_first) * content, copied);
        memset(to + left + copied, zero, line_bytes - left - copied);
    }
    fetch_next_lines(run, image, y + count);
}

static void plan_lines(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                       struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, ifd_acc_direct_gemm(lowering), w->kh, w->kw * w->in_c,
                        ret);
    ifd_acc_direct_group(
        ret, can_group(layer) ? ifd_acc_direct_choose_group(layer, ret, w->out_w) : 1, false);
    struct ifd_acc_direct *direct = &ret->direct;
    direct->line = ifd_acc_direct_line(layer, w->in_c);
    direct->fetch = w->is_padded ? fetch_padded_lines : fetch_lines;
    direct->call_lines = ifd_acc_direct_choose_lines(layer, ret, layer->element, lowering->host);
    direct->call_rows = direct->call_lines * direct->out_w;
    ifd_acc_direct_finish(lowering, layer, w->is_padded, direct->batch * direct->out_h, ret);
}

static size_t lines_work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    const struct ifd_low_window *w = &conv->layer.window;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const size_t lines = (direct->call_lines - 1) * w->stride_y + w->kh;
    return ifd_acc_direct_work_bytes(conv,
                                     w->is_padded ? lines * direct->line * conv->layer.element : 0);
}

/* Output lines y … end-1 of one image, to rows from first_row on. */
static void image_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y, size_t end,
                        size_t first_row)
{
    const struct ifd_acc_direct *direct = &run->conv->plan.direct;
    const struct ifd_low_window *w = &run->conv->layer.window;
    run->args.row_len = direct->out_w;
    run->args.a_stride = direct->stride_x * (direct->narrow_c ? direct->narrow_c : w->in_c);
    run->args.tap_stride = direct->line;
    run->args.row_stride = w->stride_y * direct->line;
    for (size_t count = 0; y < end; y += count, first_row += count * direct->out_w) {
        count = end - y < direct->call_lines ? end - y : direct->call_lines;
        run->args.m = count * direct->out_w;
        direct->fetch(run, image, y, count);
        ifd_acc_direct_call(run, first_row);
    }
}

void ifd_acc_direct_run_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_layer *layer = &run.conv->layer;
    const struct ifd_acc_direct *direct = &run.conv->plan.direct;
    const size_t out_h = direct->out_h;
    const size_t image_bytes =
        layer->window.in_h * layer->window.in_w * layer->window.in_c * layer->element;
    const struct ifd_acc_range range = ifd_acc_conv_share(&run, frame, direct->batch * out_h, 1);
    size_t count = 0;
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % out_h, left = out_h - y;
        count = range.end - line < left ? range.end - line : left;
        ifd_acc_q8_begin_image(&run, line / out_h);
        image_lines(&run, run.in + line / out_h * image_bytes, y, y + count, line * direct->out_w);
    }
}

static void strip_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                        const struct ifd_acc_strip *strip)
{
    struct ifd_acc_conv_run run;
    begin_strip(&run, step, frame, strip);
    image_lines(&run, strip->in, strip->begin, strip->end, 0);
}

bool ifd_acc_direct_strip_lines(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret)
{
    const bool can = describe_lines(conv, ret);
    ret->run = strip_lines;
    return can;
}

const struct ifd_acc_algorithm ifd_acc_conv_lines = {
    .name = "lines",
    .label = "",
    .fits = lines_fits,
    .cost = cost,
    .plan = plan_lines,
    .pack = ifd_acc_direct_pack,
    .packed_bytes = ifd_acc_direct_packed_bytes,
    .workspace_bytes = ifd_acc_direct_workspace_bytes,
    .work_bytes = lines_work_bytes,
    .run = ifd_acc_direct_run_lines,
    .strip = ifd_acc_direct_strip_lines,
};
