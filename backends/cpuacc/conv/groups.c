/* Windows of f32 over groups of channels: each group is a small layer of its own, whose channels
 * are gathered to lines first. Where there are kernels for it, several groups that fill a vector
 * are gathered and computed together. */
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

/* Groups that are computed together; the last block may have fewer. */
struct block {
    size_t group, count;
    size_t n; /* channels of all of them */
};

static size_t blocks_of(const struct ifd_acc_conv *conv)
{
    const size_t together = conv->plan.direct.together;
    return (conv->layer.groups + together - 1) / together;
}

static struct block block_at(const struct ifd_acc_conv *conv, size_t index)
{
    const size_t together = conv->plan.direct.together, group = index * together;
    const size_t left = conv->layer.groups - group, count = left < together ? left : together;
    return (struct block){.group = group, .count = count, .n = count * conv->plan.n};
}

/* Floats from pixel to pixel of gathered lines. */
static size_t pixel_of(const struct ifd_acc_conv *conv)
{
    return conv->plan.direct.together * conv->layer.window.in_c;
}

/* Bytes of work memory: padded lines of one block. */
static size_t lines_bytes(const struct ifd_acc_conv *conv)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_low_window *w = &conv->layer.window;
    return ((direct->call_lines - 1) * w->stride_y + w->kh) * direct->line * sizeof(float) +
           IFD_TENSOR_PAD;
}

/* Threads share calls: fewer blocks than these are cut into parts of an image. */
#define FEW_BLOCKS 16

static size_t calls_of(const struct ifd_acc_conv *conv)
{
    const size_t lines = conv->plan.direct.call_lines;
    return (conv->layer.window.out_h + lines - 1) / lines;
}

static size_t choose_together(const struct ifd_acc_lowering *lowering,
                              const struct ifd_acc_layer *layer)
{
    const struct ifd_kern_dw_groups *kernels = &lowering->kernels->dw_groups;
    const struct ifd_low_window *w = &layer->window;
    const bool fits = kernels->run && w->kw == IFD_GROUPS_KW && w->stride_x <= 2 && !layer->adds &&
                      w->in_c == layer->out_c && (w->in_c == 4 || w->in_c == 8);
    return fits ? kernels->lanes() / w->in_c : 1;
}

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, &lowering->kernels->gemm_f32, w->kh, w->kw * w->in_c, ret);
    struct ifd_acc_direct *direct = &ret->direct;
    direct->together = choose_together(lowering, layer);
    ret->kernel = direct->together > 1 ? "dw_groups" : ret->kernel;
    direct->line = ((w->out_w - 1) * w->stride_x + w->kw) * w->in_c * direct->together;
    direct->call_lines = ifd_acc_direct_choose_lines(layer, ret, sizeof(float), lowering->host);
    if (layer->groups < FEW_BLOCKS * direct->together && direct->call_lines > w->out_h / 4) {
        direct->call_lines = w->out_h / 4 + 1;
    }
    direct->call_rows = direct->call_lines * direct->out_w;
    ifd_acc_direct_finish(lowering, layer, true, w->batch * layer->groups / direct->together, ret);
    ret->load.is_whole = true;
    ret->load.has_columns = false;
}

/* ---- packed weights: one block behind the other ---- */

static size_t block_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const size_t bytes =
        direct->together > 1
            ? kernels->dw_groups.packed_bytes(conv->layer.window.kh, conv->layer.window.in_c)
            : conv->plan.gemm->packed_bytes(conv->plan.n, direct->k, direct->taps);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

/* context: the kernels. */
static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    (void)workspace;
    const struct ifd_kernels *kernels = context;
    const struct ifd_acc_conv *conv = params;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_acc_product *product = &conv->layer.product;
    const size_t n = conv->plan.n, length = direct->taps * direct->k;
    for (size_t i = 0; i < blocks_of(conv); i++, packed += block_bytes(conv, kernels)) {
        const struct block block = block_at(conv, i);
        const float *w = (const float *)product->weights + block.group * n * length;
        const float *bias = product->bias_f32 ? product->bias_f32 + block.group * n : NULL;
        if (direct->together > 1) {
            const struct ifd_groups_weights groups = {.w = w,
                                                      .bias = bias,
                                                      .channels = block.n,
                                                      .kh = conv->layer.window.kh,
                                                      .width = conv->layer.window.in_c};
            kernels->dw_groups.pack(&groups, packed);
            continue;
        }
        const struct ifd_gemm_weights gemm = {.w = w,
                                              .n = n,
                                              .k = direct->k,
                                              .taps = direct->taps,
                                              .stride_n = length,
                                              .stride_t = direct->k,
                                              .stride_k = 1};
        conv->plan.gemm->pack(&gemm, bias, packed);
    }
}

static size_t packed_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    return blocks_of(conv) * block_bytes(conv, kernels);
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

/* Pixels of count floats. */
static void copy_pixels(float *to, size_t pixels, const float *from, size_t stride, size_t count)
{
    enum { BLOCK = 16 };
    for (size_t x = 0; count == BLOCK && x < pixels; x++, to += BLOCK, from += stride) {
        memcpy(to, from, BLOCK * sizeof(*to));
    }
    for (size_t x = 0; count != BLOCK && x < pixels; x++, to += count, from += stride) {
        for (size_t c = 0; c < count; c++) {
            to[c] = from[c];
        }
    }
}

/* The input lines that output lines y … y+count-1 see, with zeros around them. image: its first
 * pixel's channel of the block. Behind a block that is not full lies what follows it, which no lane
 * that counts sees: tensors can be read so far behind their end. */
static void gather(const struct ifd_acc_conv *conv, const float *image, size_t y, size_t count,
                   float *to)
{
    const struct ifd_low_window *w = &conv->layer.window;
    const size_t stride = conv->layer.in_stride, line = conv->plan.direct.line;
    const size_t pixel = pixel_of(conv);
    const size_t left = ifd_acc_direct_padding(&conv->layer, line, pixel);
    const size_t room = (line - left) / pixel, pixels = w->in_w < room ? w->in_w : room;
    for (size_t i = 0; i < (count - 1) * w->stride_y + w->kh; i++, to += line) {
        const size_t in_y = y * w->stride_y + i; /* counted from the padding's edge */
        if (in_y < w->pad_top || in_y - w->pad_top >= w->in_h) {
            memset(to, 0, line * sizeof(*to));
            continue;
        }
        const float *from = image + (in_y - w->pad_top) * w->in_w * stride;
        float *at = to + left + pixels * pixel;
        memset(to, 0, left * sizeof(*to));
        copy_pixels(to + left, pixels, from, stride, pixel);
        memset(at, 0, (size_t)(to + line - at) * sizeof(*to));
    }
}

/* The lines that were gathered, of several groups. */
static void run_together(const struct ifd_acc_conv_run *run, const struct block *block,
                         size_t count)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_low_window *w = &conv->layer.window;
    const size_t line = conv->plan.direct.line;
    const struct ifd_groups_args args = {.packed = run->args.packed,
                                         .in = run->args.a,
                                         .out = run->args.out,
                                         .lines = count,
                                         .out_w = w->out_w,
                                         .stride_x = w->stride_x,
                                         .in_line = line,
                                         .in_step = w->stride_y * line,
                                         .out_pixel = run->out_stride,
                                         .out_line = w->out_w * run->out_stride,
                                         .channels = block->n,
                                         .kh = w->kh,
                                         .width = w->in_c,
                                         .min = run->args.min,
                                         .max = run->args.max};
    run->step->kernels->dw_groups.run(&args);
}

/* Output lines y … y+count-1 of one image and block. */
static void run_lines(struct ifd_acc_conv_run *run, size_t image, const struct block *block,
                      size_t y, size_t count)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_acc_layer *layer = &conv->layer;
    const struct ifd_low_window *w = &layer->window;
    const size_t n = conv->plan.n, row = (image * w->out_h + y) * w->out_w;
    const size_t column = block->group * n, width = layer->groups * n;
    const float *in = (const float *)(const void *)run->in;
    float *lines = (float *)(void *)ifd_acc_direct_rest(run);
    gather(conv, in + image * w->in_h * w->in_w * layer->in_stride + block->group * w->in_c, y,
           count, lines);
    run->args.a = lines;
    run->args.m = count * w->out_w;
    run->args.out = (float *)(void *)run->out + row * run->out_stride + column;
    run->args.add = run->add ? (const float *)(const void *)run->add + row * width + column : NULL;
    if (conv->plan.direct.together > 1) {
        run_together(run, block, count);
    } else {
        conv->plan.gemm->run(&run->args);
    }
    if (layer->tail.count > 0) {
        ifd_acc_run_tail(&layer->tail, run->step, run->frame,
                         &(struct ifd_acc_chunk){.in = run->args.out,
                                                 .out = run->args.out,
                                                 .rows = run->args.m,
                                                 .n = block->n,
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
    const size_t blocks = blocks_of(conv), bytes = block_bytes(conv, step->kernels);
    const size_t calls = calls_of(conv);
    const struct ifd_acc_range range = ifd_acc_share(frame, w->batch * blocks * calls, 1);
    run.args.row_len = w->out_w;
    run.args.a_stride = w->stride_x * w->in_c;
    run.args.tap_stride = direct->line;
    run.args.row_stride = w->stride_y * direct->line;
    run.args.add_stride = conv->layer.groups * conv->plan.n;
    for (size_t i = range.begin; i < range.end; i++) {
        const size_t index = i / calls % blocks, y = i % calls * direct->call_lines;
        const size_t left = w->out_h - y;
        const struct block block = block_at(conv, index);
        run.args.packed = packed + index * bytes;
        run_lines(&run, i / calls / blocks, &block, y,
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
