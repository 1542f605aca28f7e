/* f32 layers whose operands become 16 bits.
 *
 * Inputs of f32 are narrowed in work memory, the rows of one call at a time: there they are read
 * many times. Inputs that are narrow already are read where they lie, unless pixels need padding.
 * Results that stay narrow are stored so by the kernel, or, behind a tail, after it. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/pack.h"
#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/conv/shape.h"

#include <math.h>
#include <string.h>

static bool plain_fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return layer->is_plain && ifd_acc_narrow_suits(lowering, layer);
}

static bool lines_fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return !layer->is_plain && ifd_acc_narrow_suits(lowering, layer);
}

static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return ifd_acc_direct_cost(lowering, layer,
                               ifd_acc_direct_speed(ifd_acc_narrow_gemm(lowering)));
}

/* Elements from pixel to pixel such that the kernel reads whole windows: then zeros meet padding
 * only, and nothing that is not finite. */
static size_t pixel_stride(const struct ifd_kern_gemm_f32 *gemm, size_t pixels, size_t c)
{
    while (gemm->depth(pixels * c) != pixels * c) {
        c++;
    }
    return c;
}

/* ---- weights ---- */

/* Weights in the shape of narrow lines: zeros for the padding of pixels. */
static size_t workspace_bytes(const struct ifd_acc_conv *conv)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const bool is_wider = !conv->layer.is_plain && direct->narrow_c != conv->layer.window.in_c;
    return is_wider ? conv->layer.out_c * direct->taps * direct->k * sizeof(float) : 0;
}

static const float *widen_weights(const struct ifd_acc_conv *conv, uint8_t *workspace)
{
    const size_t bytes = workspace_bytes(conv), c = conv->layer.window.in_c;
    const float *from = conv->layer.product.weights;
    float *to = (float *)(void *)workspace;
    if (bytes == 0) {
        return from;
    }
    memset(to, 0, bytes);
    for (; (uint8_t *)to < workspace + bytes; from += c, to += conv->plan.direct.narrow_c) {
        memcpy(to, from, c * sizeof(*to));
    }
    return (const float *)(const void *)workspace;
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    (void)context;
    const struct ifd_acc_conv *conv = params;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_gemm_weights gemm = {.w = widen_weights(conv, workspace),
                                          .n = conv->plan.n,
                                          .k = direct->k,
                                          .taps = direct->taps,
                                          .stride_n = direct->taps * direct->k,
                                          .stride_t = direct->k,
                                          .stride_k = 1};
    conv->plan.gemm->pack(&gemm, conv->layer.product.bias_f32, packed);
}

/* ---- inputs ---- */

/* Does the kernel read pixels as they lie? */
static bool reads_pixels(const struct ifd_acc_layer *layer, size_t narrow_c)
{
    return layer->narrow_in && narrow_c == layer->window.in_c;
}

/* Pixels of c floats each, `stride` apart in the input, narrow_c in the output. */
static void narrow_pixels(const struct ifd_acc_conv *conv, size_t pixels, size_t c, size_t stride,
                          const uint8_t *from, uint16_t *out)
{
    const size_t narrow_c = conv->plan.direct.narrow_c;
    const float *in = (const float *)(const void *)from;
    if (c == narrow_c && c == stride) {
        conv->plan.gemm->narrow(pixels * c, in, out);
        return;
    }
    if (conv->plan.gemm->narrow_rows) {
        conv->plan.gemm->narrow_rows(pixels, c, in, stride, out, narrow_c);
        return;
    }
    for (size_t i = 0; i < pixels; i++, in += stride, out += narrow_c) {
        conv->plan.gemm->narrow(c, in, out);
        memset(out + c, 0, (narrow_c - c) * sizeof(*out));
    }
}

/* The same of pixels that are narrow. */
static void copy_pixels(const struct ifd_acc_conv *conv, size_t pixels, size_t c, size_t stride,
                        const uint8_t *from, uint16_t *out)
{
    const size_t narrow_c = conv->plan.direct.narrow_c;
    const uint16_t *in = (const uint16_t *)(const void *)from;
    if (c == narrow_c && c == stride) {
        memcpy(out, in, pixels * c * sizeof(*out));
        return;
    }
    for (size_t i = 0; i < pixels; i++, in += stride, out += narrow_c) {
        memcpy(out, in, c * sizeof(*out));
        memset(out + c, 0, (narrow_c - c) * sizeof(*out));
    }
}

static void fetch_pixels(const struct ifd_acc_conv *conv, size_t pixels, size_t c, size_t stride,
                         const uint8_t *from, uint16_t *out)
{
    if (conv->layer.narrow_in) {
        copy_pixels(conv, pixels, c, stride, from, out);
    } else {
        narrow_pixels(conv, pixels, c, stride, from, out);
    }
}

static void fetch_rows(struct ifd_acc_conv_run *run, const uint8_t *image, size_t first,
                       size_t count)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    uint8_t *to = ifd_acc_direct_rest(run);
    fetch_pixels(run->conv, count, layer->window.in_c, layer->in_stride,
                 image + first * layer->in_stride * layer->element, (uint16_t *)(void *)to);
    run->args.a = to;
}

/* Lines without padding, as they lie. */
static void read_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y, size_t count)
{
    (void)count;
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_low_window *w = &layer->window;
    run->args.a = image + (y * w->stride_y - run->in_first) * w->in_w * w->in_c * layer->element;
}

static void fetch_lines(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y, size_t count)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_acc_direct *direct = &run->conv->plan.direct;
    const struct ifd_low_window *w = &layer->window;
    const size_t narrow_c = direct->narrow_c, pixels = direct->line / narrow_c;
    const size_t left = ifd_acc_direct_padding(layer, direct->line, narrow_c) / narrow_c;
    const size_t copied = w->in_w < pixels - left ? w->in_w : pixels - left;
    uint16_t *to = (uint16_t *)(void *)ifd_acc_direct_rest(run);
    run->args.a = to;
    for (size_t i = 0; i < (count - 1) * w->stride_y + w->kh; i++, to += direct->line) {
        const size_t in_y = y * w->stride_y + i; /* counted from the padding's edge */
        if (i % w->stride_y >= w->kh) {
            continue; /* between the windows */
        }
        if (in_y < w->pad_top || in_y - w->pad_top >= w->in_h) {
            memset(to, 0, direct->line * sizeof(*to));
            continue;
        }
        const size_t line = in_y - w->pad_top - run->in_first;
        memset(to, 0, left * narrow_c * sizeof(*to));
        fetch_pixels(run->conv, copied, w->in_c, w->in_c,
                     image + line * w->in_w * w->in_c * layer->element, to + left * narrow_c);
        memset(to + (left + copied) * narrow_c, 0,
               (pixels - left - copied) * narrow_c * sizeof(*to));
    }
}

/* ---- tails of narrow results ---- */

/* A leaky ReLU, or one and a sum with a tensor: what the kernel computes before it narrows. */
static bool is_leaky(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const struct ifd_kern_eltwise *eltwise = &lowering->kernels->eltwise;
    const struct ifd_acc_tail_op *op = layer->tail.op;
    const uint32_t count = layer->tail.count;
    return layer->narrow_out && count > 0 && !layer->adds &&
           op[0].unary == eltwise->unary[IFD_UNARY_LEAKY_RELU] &&
           (count == 1 || (count == 2 && op[1].binary == eltwise->binary[IFD_BINARY_ADD] &&
                           op[1].kind == IFD_LOW_OPERAND_SAME && op[1].min == -INFINITY &&
                           op[1].max == INFINITY));
}

/* One call: floats in work memory, the tail, then what is stored. */
static void multiply_wide(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_conv *conv = run->conv;
    const size_t n = conv->plan.n, column = run->args.n_begin, columns = run->args.n_end - column;
    float *wide = (float *)(void *)(ifd_acc_direct_rest(run) + conv->plan.direct.wide_at);
    uint16_t *out = (uint16_t *)run->args.out + column;
    run->args.out = wide;
    run->args.out_stride = n;
    run->args.narrow_out = 0;
    conv->plan.gemm->run(&run->args);
    wide += column;
    ifd_acc_run_tail(&conv->layer.tail, run->step, run->frame,
                     &(struct ifd_acc_chunk){.in = wide,
                                             .out = wide,
                                             .rows = run->args.m,
                                             .n = columns,
                                             .stride = n,
                                             .row = run->row + first_row,
                                             .column = column,
                                             .width = conv->layer.out_c});
    if (columns == n && run->out_stride == n) {
        conv->plan.gemm->narrow(run->args.m * n, wide, out);
        return;
    }
    for (size_t i = 0; i < run->args.m; i++, wide += n, out += run->out_stride) {
        conv->plan.gemm->narrow(columns, wide, out);
    }
}

static void multiply_leaky(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_acc_tail *tail = &conv->layer.tail;
    run->args.is_leaky = 1;
    run->args.slope = tail->op[0].p0;
    if (tail->count > 1) {
        const struct ifd_acc_tail_op *sum = &tail->op[1];
        const size_t element = sum->is_narrow ? sizeof(uint16_t) : sizeof(float);
        const uint8_t *other = ifd_acc_in(run->step, run->frame, sum->input);
        other += (run->row + first_row) * conv->layer.out_c * element;
        run->args.add = (const float *)(const void *)other;
        run->args.narrow_add = sum->is_narrow;
    }
    conv->plan.gemm->run(&run->args);
}

static size_t aligned(size_t bytes)
{
    return (bytes + IFD_TENSOR_PAD + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
}

/* inputs: bytes of a call that fetch() writes. */
static void choose_multiply(const struct ifd_acc_layer *layer, struct ifd_acc_direct *direct,
                            size_t inputs)
{
    if (layer->narrow_out && layer->tail.count > 0) {
        direct->has_wide = !direct->is_leaky;
        direct->multiply = direct->is_leaky ? multiply_leaky : multiply_wide;
    }
    direct->wide_at = aligned(inputs);
}

static size_t work_bytes(const struct ifd_acc_conv *conv, size_t inputs)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    return ifd_acc_direct_work_bytes(
        conv, direct->has_wide ? direct->wide_at + direct->call_rows * conv->plan.n * sizeof(float)
                               : inputs);
}

/* ---- plain ---- */

/* Bytes of a call that fetch() writes. */
static size_t plain_inputs(const struct ifd_acc_layer *layer, const struct ifd_acc_direct *direct)
{
    return reads_pixels(layer, direct->narrow_c)
               ? 0
               : direct->call_rows * direct->narrow_c * sizeof(uint16_t);
}

static void plan_plain(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                       struct ifd_acc_conv_plan *ret)
{
    const struct ifd_kern_gemm_f32 *gemm = ifd_acc_narrow_gemm(lowering);
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, gemm, 1, w->in_c, ret);
    struct ifd_acc_direct *direct = &ret->direct;
    direct->narrow_c = pixel_stride(gemm, 1, w->in_c);
    direct->is_leaky = is_leaky(lowering, layer);
    const bool reads = reads_pixels(layer, direct->narrow_c);
    direct->fetch = reads ? ifd_acc_direct_fetch : fetch_rows;
    ret->a_stride = reads ? layer->in_stride : direct->narrow_c;
    direct->call_rows =
        ifd_acc_direct_choose_rows(layer, ret, direct->narrow_c * sizeof(uint16_t), lowering->host);
    ifd_acc_direct_finish(lowering, layer, !reads,
                          w->batch * w->out_h * w->out_w / IFD_ACC_UNIT_ROWS, ret);
    choose_multiply(layer, direct, plain_inputs(layer, direct));
}

static size_t plain_work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    return work_bytes(conv, plain_inputs(&conv->layer, &conv->plan.direct));
}

const struct ifd_acc_algorithm ifd_acc_conv_narrow_plain = {
    .name = "narrow plain",
    .label = "",
    .fits = plain_fits,
    .cost = cost,
    .plan = plan_plain,
    .pack = pack,
    .packed_bytes = ifd_acc_direct_packed_bytes,
    .workspace_bytes = workspace_bytes,
    .work_bytes = plain_work_bytes,
    .run = ifd_acc_direct_run_plain,
    .strip = ifd_acc_direct_strip_plain,
};

/* ---- lines ---- */

static size_t lines_inputs(const struct ifd_acc_layer *layer, const struct ifd_acc_direct *direct)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t lines = (direct->call_lines - 1) * w->stride_y + w->kh;
    return direct->fetch == read_lines ? 0 : lines * direct->line * sizeof(uint16_t);
}

static void plan_lines(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                       struct ifd_acc_conv_plan *ret)
{
    const struct ifd_kern_gemm_f32 *gemm = ifd_acc_narrow_gemm(lowering);
    const struct ifd_low_window *w = &layer->window;
    const size_t narrow_c = pixel_stride(gemm, w->kw, w->in_c);
    ifd_acc_direct_init(lowering, layer, gemm, w->kh, w->kw * narrow_c, ret);
    struct ifd_acc_direct *direct = &ret->direct;
    direct->narrow_c = narrow_c;
    direct->is_leaky = is_leaky(lowering, layer);
    direct->line = ifd_acc_direct_line(layer, narrow_c);
    const bool reads = !w->is_padded && reads_pixels(layer, narrow_c);
    direct->fetch = reads ? read_lines : fetch_lines;
    direct->call_lines = ifd_acc_direct_choose_lines(layer, ret, sizeof(uint16_t), lowering->host);
    direct->call_rows = direct->call_lines * direct->out_w;
    ifd_acc_direct_finish(lowering, layer, !reads, w->batch * w->out_h, ret);
    choose_multiply(layer, direct, lines_inputs(layer, direct));
}

static size_t lines_work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    return work_bytes(conv, lines_inputs(&conv->layer, &conv->plan.direct));
}

/* Windows of several lines are fast: lines made twice cost more than the cache saves. */
static bool strip_lines(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret)
{
    return conv->layer.window.kh == 1 && ifd_acc_direct_strip_lines(conv, ret);
}

const struct ifd_acc_algorithm ifd_acc_conv_narrow_lines = {
    .name = "narrow lines",
    .label = "",
    .fits = lines_fits,
    .cost = cost,
    .plan = plan_lines,
    .pack = pack,
    .packed_bytes = ifd_acc_direct_packed_bytes,
    .workspace_bytes = workspace_bytes,
    .work_bytes = lines_work_bytes,
    .run = ifd_acc_direct_run_lines,
    .strip = strip_lines,
};
