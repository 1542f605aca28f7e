/* transpose_conv2d: one plain convolution for each phase of the stride.
 *
 * Counted from the padding's corner, output pixel q*stride + phase is the sum over t of input pixel
 * q - t times the weight at t*stride + phase. So all phases of one q are the channels of one pixel
 * of a convolution with ceil(window / stride) taps, and along a line they lie where the output
 * wants them. Each phase of lines has its weights. Padding cuts off the surplus. */
#include "backends/cpuacc/ops/product.h"
#include "backends/lowering/window.h"

#include <string.h>

struct tconv {
    struct ifd_acc_product product;
    size_t element;
    size_t batch, in_h, in_w, in_c, out_h, out_w, out_c;
    size_t kh, kw, stride_y, stride_x, pad_top, pad_left;
    size_t taps_y, taps_x;
    size_t n, k;        /* of a product: phases of x by channels, taps of x by channels */
    size_t m;           /* rows of a product: q from 0 to where the line's last pixel is */
    size_t line;        /* elements of an input line with its padding */
    size_t phase_bytes; /* packed weights of one phase of y */
    size_t lines_bytes, sums_bytes;
    bool has_row_add;
};

/* ---- packing ---- */

static size_t weights_bytes(const struct tconv *p)
{
    const size_t bytes = p->n * p->taps_y * p->k * p->element;
    return (bytes + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
}

/* Gathers the weights of one phase of y: channels by taps of y by taps of x by input channels.
 * Leaves `to` as it is where there is no weight. */
static void pick_weights(const struct tconv *p, const uint8_t *from, size_t phase_y, uint8_t *to)
{
    const size_t bytes = p->in_c * p->element;
    for (size_t n = 0; n < p->n; n++) {
        for (size_t t = 0; t < p->taps_y * p->taps_x; t++, to += bytes) {
            const size_t y = (p->taps_y - 1 - t / p->taps_x) * p->stride_y + phase_y;
            const size_t x = (p->taps_x - 1 - t % p->taps_x) * p->stride_x + n / p->out_c;
            if (y < p->kh && x < p->kw) {
                memcpy(to, from + ((n % p->out_c * p->kh + y) * p->kw + x) * bytes, bytes);
            }
        }
    }
}

/* Repeats the numbers of each channel for every phase of x. Returns to, or NULL for none. */
static const void *repeat(const struct tconv *p, const void *from, void *to)
{
    for (size_t i = 0; from && i < p->n; i++) {
        memcpy((int32_t *)to + i, (const int32_t *)from + i % p->out_c, sizeof(int32_t));
    }
    return from ? to : NULL;
}

static void pack_weights(const void *context, const void *params, uint8_t *workspace,
                         uint8_t *packed)
{
    const struct ifd_kernels *kernels = context;
    const struct tconv *p = params;
    int32_t *own = (int32_t *)(void *)(workspace + weights_bytes(p));
    uint8_t *rest = (uint8_t *)(own + 3 * p->n);
    const void *weights = ifd_acc_product_weights(&p->product, rest);
    const struct ifd_gemm_weights gemm = {.w = workspace,
                                          .n = p->n,
                                          .k = p->k,
                                          .taps = p->taps_y,
                                          .stride_n = p->taps_y * p->k,
                                          .stride_t = p->k,
                                          .stride_k = 1};
    struct ifd_requant requant = {0};
    if (p->product.is_q8) {
        requant = ifd_acc_product_requant(&p->product, rest);
        requant.multiplier = repeat(p, requant.multiplier, own);
        requant.shift = repeat(p, requant.shift, own + p->n);
        requant.bias = repeat(p, requant.bias, own + 2 * p->n);
    }
    for (size_t phase = 0; phase < p->stride_y; phase++, packed += p->phase_bytes) {
        memset(workspace, requant.weight_zero, weights_bytes(p));
        pick_weights(p, weights, phase, workspace);
        if (p->product.is_q8) {
            kernels->gemm_q8.pack(&gemm, &requant, packed);
        } else {
            kernels->gemm_f32.pack(&gemm, repeat(p, p->product.bias_f32, own), packed);
        }
    }
}

/* ---- running ---- */

/* The input lines q - taps_y + 1 … q of an image, with zeros round them. */
static void copy_lines(const struct tconv *p, const uint8_t *image, size_t q, uint8_t *to)
{
    const int zero = p->product.is_q8 ? (uint8_t)p->product.requant.in_zero : 0;
    const size_t pixel = p->in_c * p->element, line = p->line * p->element;
    const size_t left = (p->taps_x - 1) * pixel, width = p->in_w < p->m ? p->in_w : p->m;
    memset(to, zero, p->taps_y * line);
    for (size_t t = 0; t < p->taps_y; t++, to += line) {
        const size_t y = q + t + 1 - p->taps_y; /* wraps round above the image */
        if (y < p->in_h) {
            memcpy(to + left, image + y * p->in_w * pixel, width * pixel);
        }
    }
}

static const int32_t *row_sums(const struct ifd_kernels *kernels, const struct tconv *p,
                               const struct ifd_gemm_args *args, int32_t *sums)
{
    int32_t *part = sums + p->m;
    for (size_t t = 0; t < p->taps_y; t++) {
        kernels->gemm_q8.row_sum((const ifd_q8 *)args->a + t * args->tap_stride, args->m, p->k,
                                 args->a_stride, -p->product.requant.weight_zero,
                                 t == 0 ? sums : part);
        for (size_t i = 0; t > 0 && i < args->m; i++) {
            sums[i] += part[i];
        }
    }
    return sums;
}

/* Pixels that rows q.begin … q.end-1 make, as far as they are in the output line. */
static void store(const struct tconv *p, const struct ifd_acc_range *q, const uint8_t *from,
                  uint8_t *line)
{
    const size_t pixel = p->out_c * p->element;
    size_t begin = q->begin * p->stride_x, end = q->end * p->stride_x;
    const size_t first = begin;
    begin = begin > p->pad_left ? begin : p->pad_left;
    end = end < p->pad_left + p->out_w ? end : p->pad_left + p->out_w;
    if (begin < end) {
        memcpy(line + (begin - p->pad_left) * pixel, from + (begin - first) * pixel,
               (end - begin) * pixel);
    }
}

static void run_tconv(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct tconv *p = step->params;
    const uint8_t *in = ifd_acc_in(step, frame, 0), *packed = frame->packed + step->packed;
    uint8_t *out = ifd_acc_out(step, frame), *lines = ifd_acc_work(step, frame);
    int32_t *sums = (int32_t *)(void *)(lines + p->lines_bytes);
    uint8_t *made = lines + p->lines_bytes + p->sums_bytes;
    const size_t line_bytes = p->out_w * p->out_c * p->element;
    /* lines, or parts of each where there are too few */
    struct ifd_acc_range y = {0, p->batch * p->out_h}, q = {0, p->m};
    if (y.end >= frame->threads) {
        y = ifd_acc_share(frame, y.end, 1);
    } else {
        q = ifd_acc_share(frame, p->m, 1);
    }
    struct ifd_gemm_args args = {.a = lines + q.begin * p->in_c * p->element,
                                 .out = made,
                                 .m = q.end - q.begin,
                                 .n_end = p->n,
                                 .a_stride = p->in_c,
                                 .tap_stride = p->line,
                                 .out_stride = p->n,
                                 .min = p->product.min,
                                 .max = p->product.max};
    size_t held = SIZE_MAX; /* image and line that lines are for */
    for (size_t i = y.begin; i < y.end && q.begin < q.end; i++) {
        const size_t b = i / p->out_h, at = i % p->out_h + p->pad_top;
        const size_t want = b * (p->out_h + p->pad_top) + at / p->stride_y;
        if (want != held) {
            held = want;
            copy_lines(p, in + b * p->in_h * p->in_w * p->in_c * p->element, at / p->stride_y,
                       lines);
        }
        args.packed = packed + at % p->stride_y * p->phase_bytes;
        if (p->product.is_q8) {
            const struct ifd_packed *header = args.packed;
            args.row_add = p->has_row_add && !header->folds_zero
                               ? row_sums(step->kernels, p, &args, sums)
                               : NULL;
            step->kernels->gemm_q8.run(&args);
        } else {
            step->kernels->gemm_f32.run(&args);
        }
        store(p, &q, made, out + i * line_bytes);
    }
}

/* ---- compiling ---- */

/* The node with the operands of other layers: input, weights, bias. */
struct as_product {
    struct ifd_operand input[3];
    struct ifd_node_view node;
};

static void make_product(const struct ifd_node_view *node, struct as_product *ret)
{
    ret->node = *node;
    ret->input[0] = node->input[2];
    ret->input[1] = node->input[1];
    ret->input[2] = node->input_count > 3 ? node->input[3] : (struct ifd_operand){0};
    ret->node.input = ret->input;
    ret->node.input_count = node->input_count - 1;
}

static bool tconv_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->attrs;
    const struct ifd_shape *filter = &node->input[1].desc->shape;
    struct as_product product;
    if (attrs->window.dilation_h != 1 || attrs->window.dilation_w != 1) {
        ifd_fail(reason, IFD_UNSUPPORTED, "dilation %d x %d, expected 1 x 1",
                 attrs->window.dilation_h, attrs->window.dilation_w);
        return false;
    }
    /* each phase of a stride has its weights, most of which would be zero */
    if (attrs->window.stride_h > 4 * filter->dim[1] ||
        attrs->window.stride_w > 4 * filter->dim[2]) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "strides %d x %d of a window of %lld x %lld, expected at most 4 times the window",
                 attrs->window.stride_h, attrs->window.stride_w, (long long)filter->dim[1],
                 (long long)filter->dim[2]);
        return false;
    }
    make_product(node, &product);
    return ifd_acc_product_takes(&product.node, attrs->activation, reason);
}

static size_t aligned(size_t bytes)
{
    return (bytes + IFD_TENSOR_PAD + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
}

static enum ifd_code init(struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                          struct tconv *p, struct ifd_err *err)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->attrs;
    const struct ifd_shape *filter = &node->input[1].desc->shape, *out = &node->output[0].shape;
    const struct ifd_shape *in = &node->input[2].desc->shape;
    struct ifd_window_size size;
    struct as_product product;
    if (!ifd_window_resolve(&attrs->window, filter->dim[1], filter->dim[2], out->dim[1],
                            out->dim[2], &size)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    *p = (struct tconv){.batch = (size_t)in->dim[0],
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
                        .pad_top = (size_t)size.pad_top,
                        .pad_left = (size_t)size.pad_left};
    make_product(node, &product);
    const enum ifd_code code = ifd_acc_product_init(lowering, &product.node, attrs->activation,
                                                    p->out_c, IFD_ROUND_DOUBLE, &p->product, err);
    p->element = p->product.is_q8 ? 1 : sizeof(float);
    p->has_row_add = p->product.is_q8 && p->product.requant.weight_zero != 0;
    p->taps_y = (p->kh + p->stride_y - 1) / p->stride_y;
    p->taps_x = (p->kw + p->stride_x - 1) / p->stride_x;
    p->n = p->stride_x * p->out_c;
    p->k = p->taps_x * p->in_c;
    p->m = (p->pad_left + p->out_w + p->stride_x - 1) / p->stride_x;
    p->line = (p->m + p->taps_x - 1) * p->in_c;
    p->lines_bytes = aligned(p->taps_y * p->line * p->element);
    p->sums_bytes = p->has_row_add ? aligned(2 * p->m * sizeof(int32_t)) : 0;
    return code;
}

static enum ifd_code tconv_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    struct tconv *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = init(lowering, &node->view, p, err);
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, run_tconv, p, &node->input_value[2], 1,
                                node->output_value[0], &step, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_kernels *kernels = lowering->kernels;
    const size_t bytes = p->product.is_q8 ? kernels->gemm_q8.packed_bytes(p->n, p->k, p->taps_y)
                                          : kernels->gemm_f32.packed_bytes(p->n, p->k, p->taps_y);
    p->phase_bytes = (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
    step->is_gemm_f32 = !p->product.is_q8;
    step->rate = p->product.is_q8 ? 300.0f : 60.0f;
    if (p->batch * p->out_h < lowering->base.view->max_threads) {
        step->chunks = 1; /* each call copies lines */
    }
    const uint64_t macs =
        (uint64_t)p->batch * p->in_h * p->in_w * p->in_c * p->out_c * p->kh * p->kw;
    ifd_acc_name_step(lowering, p->product.is_q8 ? "gemm_q8" : "gemm_f32", macs,
                      "transpose_conv2d %zux%zu/%zu", p->kh, p->kw, p->stride_y);
    const size_t workspace = weights_bytes(p) + 3 * p->n * sizeof(int32_t) + IFD_TENSOR_ALIGN +
                             ifd_acc_product_workspace(&p->product);
    code = ifd_acc_add_pack(lowering, p->product.weights, p->phase_bytes * p->stride_y, workspace,
                            pack_weights, p, err);
    return code == IFD_OK
               ? ifd_acc_add_work(lowering,
                                  p->lines_bytes + p->sums_bytes + p->m * p->n * p->element, err)
               : code;
}

const struct ifd_acc_driver ifd_acc_transpose_conv2d = {.takes = tconv_takes, .lower = tconv_lower};
