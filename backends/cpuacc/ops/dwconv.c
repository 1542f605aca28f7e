/* depthwise_conv2d. The kernel handles padding, strides and dilation. A channel multiplier above 1
 * is reduced to 1: every input channel is repeated in work memory. */
#include "backends/cpuacc/ops/dynamic.h"
#include "backends/cpuacc/ops/tail.h"
#include "backends/cpuacc/schedule/threads.h"
#include "backends/lowering/window.h"

#include <string.h>

struct dw_params {
    struct ifd_acc_product product; /* for packing */
    struct ifd_low_window window;
    size_t element, channels, multiplier;
    struct ifd_dw_args args; /* what does not change from call to call */
    size_t call_lines;       /* output lines of one call at most */
    size_t wide_bytes;       /* work memory: one image with repeated channels */
    struct ifd_acc_tail tail;
};

static void pack_weights(const void *context, const void *params, uint8_t *workspace,
                         uint8_t *packed)
{
    const struct ifd_kernels *kernels = context;
    const struct dw_params *p = params;
    const void *weights = ifd_acc_product_weights(&p->product, workspace);
    const struct ifd_dw_weights dw = {.w = weights,
                                      .channels = p->channels,
                                      .kh = p->window.kh,
                                      .kw = p->window.kw,
                                      .stride_tap = p->channels};
    if (p->product.is_q8) {
        const struct ifd_requant requant = ifd_acc_product_requant(&p->product, workspace);
        kernels->dw_q8.pack(&dw, &requant, packed);
    } else {
        kernels->dw_f32.pack(&dw, p->product.bias_f32, packed);
    }
}

/* One call of the kernel, and the tail. line: the output line at args->out, counted over all
 * images. */
static void call(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                 const struct ifd_dw_args *args, size_t line)
{
    const struct dw_params *p = step->params;
    if (p->product.is_q8) {
        step->kernels->dw_q8.run(args);
    } else {
        step->kernels->dw_f32.run(args);
    }
    if (p->tail.count) {
        uint8_t *out = args->out;
        out += (args->y_begin * args->out_line_stride + args->c_begin) * p->element;
        ifd_acc_run_tail(
            &p->tail, step, frame,
            &(struct ifd_acc_chunk){.in = out,
                                    .out = out,
                                    .rows = (args->y_end - args->y_begin) * p->window.out_w,
                                    .n = args->c_end - args->c_begin,
                                    .stride = args->out_pixel_stride,
                                    .row = (line + args->y_begin) * p->window.out_w,
                                    .column = args->c_begin,
                                    .width = p->channels});
    }
}

/* Repeats every channel of one image multiplier times. */
static void widen(const struct dw_params *p, const uint8_t *image, uint8_t *to)
{
    for (size_t i = 0; i < p->window.in_h * p->window.in_w * p->window.in_c; i++) {
        for (size_t m = 0; m < p->multiplier; m++, to += p->element) {
            memcpy(to, image + i * p->element, p->element);
        }
    }
}

/* Threads share large images by lines and small ones by channels, as gemms of few rows are shared
 * by columns: each thread finds its part in its cache. */
static bool goes_by_lines(const struct dw_params *p, uint32_t threads)
{
    return p->window.out_h >= 2 * (size_t)threads &&
           p->window.out_h * p->window.out_w > 32 * (size_t)threads;
}

static void run_dw(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct dw_params *p = step->params;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    uint8_t *work = step->work_stride ? ifd_acc_work(step, frame) : NULL;
    struct ifd_dw_args args = p->args;
    args.packed = frame->packed + step->packed;
    args.scratch = work ? work + p->wide_bytes : NULL;
    const struct ifd_packed *packed = args.packed;
    struct ifd_acc_range lines = {0, p->window.out_h};
    if (goes_by_lines(p, frame->threads)) {
        lines = ifd_acc_share(frame, p->window.out_h, 1);
    } else {
        const struct ifd_acc_range channels = ifd_acc_share(frame, p->channels, packed->nr);
        args.c_begin = channels.begin;
        args.c_end = channels.end;
    }
    if (lines.begin == lines.end || args.c_begin == args.c_end) {
        return;
    }
    for (size_t b = 0; b < p->window.batch; b++) {
        args.in = in + b * p->window.in_h * p->args.in_line_stride / p->multiplier * p->element;
        if (p->multiplier > 1) {
            widen(p, args.in, work);
            args.in = work;
        }
        args.out = out + b * p->window.out_h * p->window.out_w * p->channels * p->element;
        for (args.y_begin = lines.begin; args.y_begin < lines.end; args.y_begin = args.y_end) {
            const size_t left = lines.end - args.y_begin;
            args.y_end = args.y_begin + (left < p->call_lines ? left : p->call_lines);
            call(step, frame, &args, b * p->window.out_h);
        }
    }
}

/* Treats the lines of a strip as an image: its first line is the first that the window reads. */
static void strip_dw(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                     const struct ifd_acc_strip *strip)
{
    const struct dw_params *p = step->params;
    const struct ifd_acc_lines *lines = step->lines;
    struct ifd_dw_args args = p->args;
    args.is_far = args.is_far && strip->in_end - strip->in_first == lines->in_h; /* no buffer */
    args.packed = frame->packed + step->packed;
    args.scratch = step->work_stride ? ifd_acc_work(step, frame) : NULL;
    args.in_pixel_stride += strip->in_pitch.gap / p->element;
    args.in_line_stride = strip->in_pitch.line / p->element;
    args.out_pixel_stride += strip->out_pitch.gap / p->element;
    args.out_line_stride = strip->out_pitch.line / p->element;
    size_t count = 0;
    for (size_t y = strip->begin; y < strip->end; y += count) {
        count = strip->end - y < p->call_lines ? strip->end - y : p->call_lines;
        const size_t top = y * lines->stride, pad = top < lines->pad ? lines->pad - top : 0;
        const size_t first = top + pad - lines->pad;
        const size_t end = (y + count - 1) * lines->stride + lines->window - lines->pad;
        args.in = strip->in;
        if (strip->in_round) {
            args.in_round = strip->in_round;
            args.in_at = first % strip->in_round;
        } else {
            args.in = strip->in + (first - strip->in_first) * strip->in_pitch.line;
        }
        args.in_h = (end < lines->in_h ? end : lines->in_h) - first;
        args.pad_top = (uint32_t)pad;
        args.out = strip->out + (y - strip->begin) * strip->out_pitch.line;
        args.y_begin = 0;
        args.y_end = count;
        call(step, frame, &args, strip->line + y - strip->begin);
    }
}

/* Lines of one call take a part of the second-level cache: half of the smallest one at least.
 * 8-bit calls take more, because each reads the weights, and 5x5 windows interleave what two
 * calls share. */
#define LINES_BYTES_MIN ((size_t)128 * 1024)
#define LINES_PART      16
#define LINES_PART_Q8   4

/* Lines of a dilated window that share inputs are far apart: calls are that much taller. */
#define LINES_DILATED 4

/* Kernels pass over their lines once for every vector of channels, so the lines of a call should
 * stay in a part of the second-level cache. An even number: some are done in pairs. */
static size_t choose_call_lines(const struct dw_params *p, const struct ifd_host *host)
{
    const size_t part = host->cpu.l2_bytes / (p->product.is_q8 ? LINES_PART_Q8 : LINES_PART);
    const size_t cache = part > LINES_BYTES_MIN ? part : LINES_BYTES_MIN;
    const size_t in = p->args.stride_y * p->args.in_line_stride, out = p->args.out_line_stride;
    const size_t lines = cache / ((in + out) * p->element + 1);
    const size_t dilation = p->args.dilation_y, most = p->window.out_h;
    const size_t least = dilation > 1 ? LINES_DILATED * (dilation < most ? dilation : most) : 2;
    return lines < least ? least : lines / 2 * 2;
}

static bool depthwise_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

/* in_pixel: elements from one to the next. */
static struct ifd_dw_args constant_args(const struct dw_params *p, size_t in_pixel)
{
    const struct ifd_low_window *w = &p->window;
    return (struct ifd_dw_args){
        .in_h = w->in_h,
        .in_w = w->in_w,
        .in_pixel_stride = in_pixel,
        .in_line_stride = w->in_w * in_pixel,
        .out_w = w->out_w,
        .out_pixel_stride = p->channels,
        .out_line_stride = w->out_w * p->channels,
        .y_end = w->out_h,
        .c_end = p->channels,
        .stride_y = (uint32_t)w->stride_y,
        .stride_x = (uint32_t)w->stride_x,
        .dilation_y = (uint32_t)w->dilation_y,
        .dilation_x = (uint32_t)w->dilation_x,
        .pad_top = (uint32_t)w->pad_top,
        .pad_left = (uint32_t)w->pad_left,
        .min = p->product.min,
        .max = p->product.max,
    };
}

static enum ifd_code add_lines(struct ifd_acc_lowering *lowering, const struct dw_params *p,
                               struct ifd_err *err)
{
    const bool is_dilated = p->args.dilation_y > 1 || p->args.dilation_x > 1;
    struct ifd_acc_lines *lines = ifd_low_params(&lowering->base, 1, sizeof(*lines));
    if (!lines) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    *lines = (struct ifd_acc_lines){.batch = p->window.batch,
                                    .in_h = p->window.in_h,
                                    .out_h = p->window.out_h,
                                    .in_line = p->args.in_line_stride * p->element,
                                    .out_line = p->args.out_line_stride * p->element,
                                    .in_pixel = p->channels * p->element,
                                    .out_pixel = p->channels * p->element,
                                    .window = (p->window.kh - 1) * p->args.dilation_y + 1,
                                    .stride = p->args.stride_y,
                                    .pad = p->args.pad_top,
                                    .is_q8 = p->product.is_q8,
                                    .goes_round = !p->product.is_q8 && !is_dilated,
                                    .run = strip_dw};
    lowering->draft[lowering->draft_count - 1].lines = lines;
    return IFD_OK;
}

static enum ifd_code finish(struct ifd_acc_lowering *lowering,
                            const struct ifd_partition_node *node, struct dw_params *p,
                            struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    const struct ifd_kernels *kernels = lowering->kernels;
    struct ifd_acc_draft *step = NULL;
    uint32_t operands[IFD_ACC_STEP_INPUTS] = {node->input_value[0], IFD_NO_VALUE, IFD_NO_VALUE,
                                              IFD_NO_VALUE};
    const uint32_t out =
        ifd_acc_take_tail(lowering, node->output_value[0], 1, operands, false, &p->tail);
    enum ifd_code code = IFD_OK;
    if (p->product.is_dynamic) {
        code = ifd_acc_quantize_input(lowering, operands[0], p->window.batch,
                                      p->window.in_h * p->window.in_w * p->window.in_c,
                                      p->product.is_whole ? IFD_ACC_QUANTIZE_WHOLE_AS_FLOATS
                                                          : IFD_ACC_QUANTIZE_AS_FLOATS,
                                      &operands[0], err);
    }
    if (code == IFD_OK) {
        code =
            ifd_acc_add_step(lowering, run_dw, p, operands, IFD_ACC_STEP_INPUTS, out, &step, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const uint64_t macs = (uint64_t)p->window.batch * p->window.out_h * p->window.out_w *
                          p->channels * p->window.kh * p->window.kw;
    step->rate = 50.0f;
    if (p->multiplier > 1) {
        step->chunks = 1; /* each call repeats all channels */
    } else if (goes_by_lines(p, lowering->base.view->max_threads)) {
        step->chunks = ifd_acc_chunks_of_lines(lowering, p->window.out_h,
                                               (p->window.kh - 1) * p->args.dilation_y + 1);
    }
    ifd_acc_name_step(lowering, p->product.is_q8 ? "dw_q8" : "dw_f32", macs,
                      "depthwise_conv2d %zux%zu/%d%s%s", p->window.kh, p->window.kw,
                      (int)attrs->window.stride_h, attrs->activation == IFD_ACT_NONE ? "" : "+act",
                      p->tail.name);
    const size_t packed =
        p->product.is_q8 ? kernels->dw_q8.packed_bytes(p->channels, p->window.kh, p->window.kw)
                         : kernels->dw_f32.packed_bytes(p->channels, p->window.kh, p->window.kw);
    code = ifd_acc_add_pack(lowering, p->product.weights, packed,
                            ifd_acc_product_workspace(&p->product), pack_weights, p, err);
    const size_t kernel_work =
        p->product.is_q8 ? kernels->dw_q8.scratch_bytes(&p->args, p->window.kh, p->window.kw)
                         : kernels->dw_f32.scratch_bytes(&p->args, p->window.kh, p->window.kw);
    const bool overlaps = p->args.pad_top <= (p->window.kh - 1) * p->args.dilation_y;
    if (code == IFD_OK && !p->product.is_dynamic && p->multiplier == 1 && overlaps) {
        code = add_lines(lowering, p, err);
    }
    if (code == IFD_OK && p->wide_bytes + kernel_work > 0) {
        code = ifd_acc_add_work(lowering, p->wide_bytes + kernel_work, err);
    }
    return code;
}

static enum ifd_code depthwise_lower(struct ifd_acc_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    const size_t channels = (size_t)node->view.output[0].shape.dim[3];
    struct dw_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    struct ifd_low_window window;
    enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &window, err);
    struct ifd_acc_product product;
    if (code == IFD_OK) {
        code = ifd_acc_product_init(lowering, &node->view, attrs->activation, channels,
                                    IFD_ROUND_DOUBLE, &product, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct dw_params){
        .product = product,
        .window = window,
        .element = product.is_q8 ? 1 : sizeof(float),
        .channels = channels,
        .multiplier = channels / window.in_c,
    };
    const size_t pitch = lowering->base.value[node->input_value[0]].pitch;
    p->args = constant_args(p, pitch ? pitch / p->element : channels);
    p->args.is_far =
        window.in_h * p->args.in_line_stride * p->element > ifd_acc_cache_bytes(lowering->host) / 2;
    p->call_lines = choose_call_lines(p, lowering->host);
    if (p->multiplier > 1) {
        const size_t image = window.in_h * window.in_w * p->channels * p->element + IFD_TENSOR_PAD;
        p->wide_bytes = (image + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
    }
    return finish(lowering, node, p, err);
}

/* Rows of a sub-tensor of the channels; not where channels are repeated or quantized first. */
static bool depthwise_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    const struct ifd_desc *in = node->input[0].desc;
    return i == 0 && in->dtype == node->input[1].desc->dtype &&
           in->shape.dim[3] == node->output[0].shape.dim[3];
}

const struct ifd_acc_driver ifd_acc_depthwise_conv2d = {
    .takes = depthwise_takes, .lower = depthwise_lower, .reads_apart = depthwise_reads_apart};
