/* Windows of f32 over groups of channels: each group is a small layer of its own, whose channels
 * are gathered to lines first. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/shape.h"

#include <string.h>

static bool fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    (void)lowering;
    return layer->groups > 1;
}

static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return ifd_acc_direct_cost(lowering, layer, 1.0);
}

/* Bytes of work memory: padded lines of one group. */
static size_t lines_bytes(const struct ifd_acc_conv *conv)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_low_window *w = &conv->layer.window;
    return ((direct->call_lines - 1) * w->stride_y + w->kh) * direct->line * sizeof(float) +
           IFD_TENSOR_PAD;
}

/* Threads share calls: fewer groups than these are cut into parts of an image. */
#define FEW_GROUPS 16

static size_t calls_of(const struct ifd_acc_conv *conv)
{
    const size_t lines = conv->plan.direct.call_lines;
    return (conv->layer.window.out_h + lines - 1) / lines;
}

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, &lowering->kernels->gemm_f32, w->kh, w->kw * w->in_c, ret);
    struct ifd_acc_direct *direct = &ret->direct;
    direct->line = ((w->out_w - 1) * w->stride_x + w->kw) * w->in_c;
    direct->call_lines = ifd_acc_direct_choose_lines(layer, ret, sizeof(float), lowering->host);
    if (layer->groups < FEW_GROUPS && direct->call_lines > w->out_h / 4) {
        direct->call_lines = w->out_h / 4 + 1;
    }
    direct->call_rows = direct->call_lines * direct->out_w;
    ifd_acc_direct_finish(lowering, layer, true, w->batch * layer->groups, ret);
    ret->load.is_whole = true;
    ret->load.has_columns = false;
}

/* ---- packed weights: one group behind the other ---- */

static size_t group_bytes(const struct ifd_acc_conv *conv)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const size_t bytes = conv->plan.gemm->packed_bytes(conv->plan.n, direct->k, direct->taps);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    (void)context;
    (void)workspace;
    const struct ifd_acc_conv *conv = params;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_acc_product *product = &conv->layer.product;
    const size_t n = conv->plan.n, length = direct->taps * direct->k;
    for (size_t g = 0; g < conv->layer.groups; g++) {
        const struct ifd_gemm_weights gemm = {.w = (const float *)product->weights + g * n * length,
                                              .n = n,
                                              .k = direct->k,
                                              .taps = direct->taps,
                                              .stride_n = length,
                                              .stride_t = direct->k,
                                              .stride_k = 1};
        const float *bias = product->bias_f32 ? product->bias_f32 + g * n : NULL;
        conv->plan.gemm->pack(&gemm, bias, packed + g * group_bytes(conv));
    }
}

static size_t packed_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    return conv->layer.groups * group_bytes(conv);
}

static size_t workspace_bytes(const struct ifd_acc_conv *conv)
{
    (void)conv;
    return 0;
}

static size_t work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    return ifd_acc_direct_work_bytes(conv, lines_bytes(conv));
}

/* ---- running ---- */

static void copy_pixel(float *to, const float *from, size_t count)
{
    for (; count >= 4; count -= 4, to += 4, from += 4) {
        to[0] = from[0];
        to[1] = from[1];
        to[2] = from[2];
        to[3] = from[3];
    }
    for (size_t c = 0; c < count; c++) {
        to[c] = from[c];
    }
}

/* The input lines that output lines y … y+count-1 see, with zeros around them. image: its first
 * pixel's channel of the group. */
static void gather(const struct ifd_acc_conv *conv, const float *image, size_t y, size_t count,
                   float *to)
{
    const struct ifd_low_window *w = &conv->layer.window;
    const size_t stride = conv->layer.in_stride, line = conv->plan.direct.line;
    const size_t left = ifd_acc_direct_padding(&conv->layer, line, w->in_c);
    const size_t room = (line - left) / w->in_c, pixels = w->in_w < room ? w->in_w : room;
    for (size_t i = 0; i < (count - 1) * w->stride_y + w->kh; i++, to += line) {
        const size_t in_y = y * w->stride_y + i; /* counted from the padding's edge */
        if (in_y < w->pad_top || in_y - w->pad_top >= w->in_h) {
            memset(to, 0, line * sizeof(*to));
            continue;
        }
        const float *from = image + (in_y - w->pad_top) * w->in_w * stride;
        float *at = to + left;
        memset(to, 0, left * sizeof(*to));
        for (size_t x = 0; x < pixels; x++, at += w->in_c, from += stride) {
            copy_pixel(at, from, w->in_c);
        }
        memset(at, 0, (size_t)(to + line - at) * sizeof(*to));
    }
}

/* Output lines y … y+count-1 of one image and group. */
static void run_lines(struct ifd_acc_conv_run *run, size_t image, size_t group, size_t y,
                      size_t count)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_acc_layer *layer = &conv->layer;
    const struct ifd_low_window *w = &layer->window;
    const size_t n = conv->plan.n, row = (image * w->out_h + y) * w->out_w;
    const size_t column = group * n, width = layer->groups * n;
    const float *in = (const float *)(const void *)run->in;
    float *lines = (float *)(void *)ifd_acc_direct_rest(run);
    gather(conv, in + image * w->in_h * w->in_w * layer->in_stride + group * w->in_c, y, count,
           lines);
    run->args.a = lines;
    run->args.m = count * w->out_w;
    run->args.out = (float *)(void *)run->out + row * run->out_stride + column;
    run->args.add = run->add ? (const float *)(const void *)run->add + row * width + column : NULL;
    conv->plan.gemm->run(&run->args);
    if (layer->tail.count > 0) {
        ifd_acc_run_tail(&layer->tail, run->step, run->frame,
                         &(struct ifd_acc_chunk){.in = run->args.out,
                                                 .out = run->args.out,
                                                 .rows = run->args.m,
                                                 .n = n,
                                                 .stride = run->out_stride,
                                                 .row = row,
                                                 .column = column,
                                                 .width = width});
    }
}

static void run_groups(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *conv = run.conv;
    const struct ifd_low_window *w = &conv->layer.window;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const uint8_t *packed = run.args.packed;
    const size_t groups = conv->layer.groups, bytes = group_bytes(conv), calls = calls_of(conv);
    const struct ifd_acc_range range = ifd_acc_share(frame, w->batch * groups * calls, 1);
    run.args.row_len = w->out_w;
    run.args.a_stride = w->stride_x * w->in_c;
    run.args.tap_stride = direct->line;
    run.args.row_stride = w->stride_y * direct->line;
    run.args.add_stride = groups * conv->plan.n;
    for (size_t i = range.begin; i < range.end; i++) {
        const size_t group = i / calls % groups, y = i % calls * direct->call_lines;
        const size_t left = w->out_h - y;
        run.args.packed = packed + group * bytes;
        run_lines(&run, i / calls / groups, group, y,
                  left < direct->call_lines ? left : direct->call_lines);
    }
}

const struct ifd_acc_algorithm ifd_acc_conv_groups = {
    .name = "groups",
    .label = " groups",
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .pack = pack,
    .packed_bytes = packed_bytes,
    .workspace_bytes = workspace_bytes,
    .work_bytes = work_bytes,
    .run = run_groups,
};
