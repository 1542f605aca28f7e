/* conv3d of f32: products over lines of the volume.
 *
 * For each output line, the input lines that its windows see are copied to work memory, one for
 * each of kd*kh taps, with zeros where they lie outside. A call takes a few output lines, or a part
 * of one, whose copies stay in the cache. kw pixels of a copied line are contiguous; where windows
 * are dilated or far apart along the line, those of each window are copied one behind the other.
 * Windows of one pixel read the input where it lies. */
#include "backends/cpuacc/ops/product.h"
#include "backends/cpuacc/ops/tail.h"
#include "backends/lowering/window.h"

#include <string.h>

/* Sizes in the order depth, height, width. */
enum { D, H, W };

struct conv3d {
    struct ifd_acc_product product;
    struct ifd_acc_tail tail;
    struct ifd_low_volume volume;
    size_t in_c, out_c;
    size_t lines, line_w;      /* of the output, its pixels */
    size_t taps, k;            /* of a product: kd*kh lines, kw pixels of one */
    size_t step;               /* elements from window to window of a copied line */
    size_t line;               /* elements of a copied line */
    size_t call_lines, call_w; /* of a call at most: lines, or pixels of a line */
    bool is_gathered;          /* windows lie one behind the other */
    bool is_plain;             /* of one pixel each: all pixels are one line, nothing is copied */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- packing ---- */

static void pack_weights(const void *context, const void *params, uint8_t *workspace,
                         uint8_t *packed)
{
    (void)workspace;
    const struct ifd_kernels *kernels = context;
    const struct conv3d *p = params;
    const struct ifd_gemm_weights gemm = {.w = p->product.weights,
                                          .n = p->out_c,
                                          .k = p->k,
                                          .taps = p->taps,
                                          .stride_n = 1,
                                          .stride_t = p->k * p->out_c,
                                          .stride_k = p->out_c};
    kernels->gemm_f32.pack(&gemm, p->product.bias_f32, packed);
}

/* ---- running ---- */

/* count pixels of an input line from pixel `first` on, counted from the padding's edge. */
static void copy_pixels(const struct conv3d *p, const float *line, size_t first, size_t count,
                        float *to)
{
    const size_t pad = p->volume.pad[W], end = pad + p->volume.in[W];
    const size_t from = first < pad ? least(pad - first, count) : 0;
    const size_t inside = first + from < end ? least(end - first - from, count - from) : 0;
    memset(to, 0, from * p->in_c * sizeof(*to));
    if (inside > 0) {
        memcpy(to + from * p->in_c, line + (first + from - pad) * p->in_c,
               inside * p->in_c * sizeof(*to));
    }
    memset(to + (from + inside) * p->in_c, 0, (count - from - inside) * p->in_c * sizeof(*to));
}

/* What output pixels x … x+count-1 see of an input line. */
static void copy_line(const struct conv3d *p, const float *line, size_t x, size_t count, float *to)
{
    const size_t kw = p->volume.window[W], stride = p->volume.stride[W];
    if (!p->is_gathered) {
        copy_pixels(p, line, x * stride, (count - 1) * stride + kw, to);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t kx = 0; kx < kw; kx++, to += p->in_c) {
            copy_pixels(p, line, (x + i) * stride + kx * p->volume.dilation[W], 1, to);
        }
    }
}

/* The same of all input lines that output line number i sees. */
static void copy_taps(const struct conv3d *p, const float *in, size_t i, size_t x, size_t count,
                      float *to)
{
    const struct ifd_low_volume *v = &p->volume;
    const size_t out_y = i % v->out[H], out_z = i / v->out[H] % v->out[D];
    const size_t line = v->in[W] * p->in_c;
    in += i / v->out[H] / v->out[D] * v->in[D] * v->in[H] * line;
    for (size_t t = 0; t < p->taps; t++, to += p->line) {
        /* above the volume and in front of it they wrap round to more than its size */
        const size_t z = out_z * v->stride[D] + t / v->window[H] * v->dilation[D] - v->pad[D];
        const size_t y = out_y * v->stride[H] + t % v->window[H] * v->dilation[H] - v->pad[H];
        if (z < v->in[D] && y < v->in[H]) {
            copy_line(p, in + (z * v->in[H] + y) * line, x, count, to);
        } else {
            memset(to, 0, p->line * sizeof(*to));
        }
    }
}

/* Pixels x … x+count-1 of output lines i … i+lines-1; more than one are whole. */
static void run_part(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                     struct ifd_gemm_args *args, size_t i, size_t lines, size_t x, size_t count)
{
    const struct conv3d *p = step->params;
    const float *in = ifd_acc_in(step, frame, 0);
    const size_t first = i * p->line_w + x;
    float *out = (float *)ifd_acc_out(step, frame) + first * p->out_c;
    if (p->is_plain) {
        args->a = in + first * p->in_c;
    } else {
        float *to = ifd_acc_work(step, frame);
        args->a = to;
        for (size_t l = 0; l < lines; l++, to += p->taps * p->line) {
            copy_taps(p, in, i + l, x, count, to);
        }
    }
    args->out = out;
    args->m = lines * count;
    args->row_len = count;
    step->kernels->gemm_f32.run(args);
    if (p->tail.count > 0) {
        ifd_acc_run_tail(&p->tail, step, frame,
                         &(struct ifd_acc_chunk){.in = out,
                                                 .out = out,
                                                 .rows = args->m,
                                                 .n = p->out_c,
                                                 .stride = p->out_c,
                                                 .row = first,
                                                 .width = p->out_c});
    }
}

static void run_conv3d(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct conv3d *p = step->params;
    const struct ifd_packed *packed = (const void *)(frame->packed + step->packed);
    /* lines, or parts of each where there are too few */
    struct ifd_acc_range i = {0, p->lines}, x = {0, p->line_w};
    if (p->lines >= frame->threads) {
        i = ifd_acc_share(frame, p->lines, 1);
    } else {
        x = ifd_acc_share(frame, p->line_w, packed->mr);
    }
    const bool is_whole = x.end - x.begin == p->line_w;
    struct ifd_gemm_args args = {.packed = packed,
                                 .n_end = p->out_c,
                                 .row_stride = p->taps * p->line,
                                 .a_stride = p->step,
                                 .tap_stride = p->line,
                                 .out_stride = p->out_c,
                                 .min = p->product.min,
                                 .max = p->product.max};
    for (size_t lines = 0; i.begin < i.end; i.begin += lines) {
        lines = is_whole ? least(p->call_lines, i.end - i.begin) : 1;
        for (size_t at = x.begin, count = 0; at < x.end; at += count) {
            count = least(p->call_w, x.end - at);
            run_part(step, frame, &args, i.begin, lines, at, count);
        }
    }
}

/* ---- compiling ---- */

static bool conv3d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv3d_attrs *attrs = node->attrs;
    if (ifd_low_desc_bytes(node->input[1].desc) == 0) {
        ifd_fail(reason, IFD_UNSUPPORTED, "nothing to multiply");
        return false;
    }
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

/* Lines and pixels of a call: their copies fit into a part of the cache, or all of it where the
 * weights do not and each call reads them from beyond. */
static void choose_call(struct conv3d *p, const struct ifd_host *host)
{
    const size_t kw = p->volume.window[W], stride = p->volume.stride[W];
    const size_t cache = ifd_acc_cache_bytes(host), pixel = p->taps * p->in_c * sizeof(float);
    const bool is_far = pixel * kw * p->out_c > cache;
    const size_t room = is_far ? cache : cache / 4, fitting = room / pixel; /* pixels of a line */
    const size_t most = p->is_gathered ? fitting / kw
                        : fitting > kw ? (fitting - kw) / stride + 1
                                       : 1;
    const size_t tile = 48; /* a multiple of all kernels' rows */
    p->call_w = p->line_w <= most ? p->line_w : most > tile ? most / tile * tile : most;
    p->call_w = p->call_w > 0 ? p->call_w : 1;
    p->line = p->is_gathered ? p->call_w * p->k : ((p->call_w - 1) * stride + kw) * p->in_c;
    const size_t lines = p->call_w == p->line_w ? room / (p->line * p->taps * sizeof(float)) : 1;
    p->call_lines = lines > 1 ? least(lines, p->lines) : 1;
}

static enum ifd_code init(struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                          struct conv3d *p, struct ifd_err *err)
{
    const struct ifd_conv3d_attrs *attrs = node->attrs;
    const int64_t *filter = node->input[1].desc->shape.dim;
    *p = (struct conv3d){.in_c = (size_t)filter[3], .out_c = (size_t)filter[4]};
    enum ifd_code code = ifd_low_volume_init(node, &p->volume, err);
    if (code == IFD_OK) {
        code = ifd_acc_product_init(lowering, node, attrs->activation, p->out_c, IFD_ROUND_DOUBLE,
                                    &p->product, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_low_volume *v = &p->volume;
    p->lines = v->batch * v->out[D] * v->out[H];
    p->line_w = v->out[W];
    p->taps = v->window[D] * v->window[H];
    p->k = v->window[W] * p->in_c;
    p->is_gathered = (v->window[W] > 1 && v->dilation[W] > 1) || v->stride[W] > v->window[W];
    p->step = p->is_gathered ? p->k : v->stride[W] * p->in_c;
    p->is_plain = p->taps == 1 && v->window[W] == 1 && !v->is_padded && v->stride[D] == 1 &&
                  v->stride[H] == 1 && v->stride[W] == 1;
    if (p->is_plain) {
        p->line_w *= p->lines;
        p->lines = 1;
        p->is_gathered = false;
    }
    choose_call(p, lowering->host);
    return IFD_OK;
}

static enum ifd_code conv3d_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv3d_attrs *attrs = node->view.attrs;
    struct conv3d *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    uint32_t operands[IFD_ACC_STEP_INPUTS] = {node->input_value[0], IFD_NO_VALUE, IFD_NO_VALUE,
                                              IFD_NO_VALUE};
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = init(lowering, &node->view, p, err);
    if (code == IFD_OK) {
        const uint32_t out =
            ifd_acc_take_tail(lowering, node->output_value[0], 1, operands, false, &p->tail);
        code = ifd_acc_add_step(lowering, run_conv3d, p, operands, IFD_ACC_STEP_INPUTS, out, &step,
                                err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const size_t weights = p->taps * p->k * p->out_c;
    step->is_gemm_f32 = true;
    step->rate = 60.0f;
    if (weights * sizeof(float) > ifd_acc_cache_bytes(lowering->host) / 2) {
        step->chunks = 1; /* each reads the weights */
    }
    ifd_acc_name_step(lowering, "gemm_f32", (uint64_t)p->lines * p->line_w * weights,
                      "conv3d %zux%zux%zu/%zu%s%s", p->volume.window[D], p->volume.window[H],
                      p->volume.window[W], p->volume.stride[H],
                      attrs->activation == IFD_ACT_NONE ? "" : "+act", p->tail.name);
    code = ifd_acc_add_pack(lowering, p->product.weights,
                            lowering->kernels->gemm_f32.packed_bytes(p->out_c, p->k, p->taps), 0,
                            pack_weights, p, err);
    return code == IFD_OK && !p->is_plain
               ? ifd_acc_add_work(
                     lowering, p->call_lines * p->taps * p->line * sizeof(float) + IFD_TENSOR_PAD,
                     err)
               : code;
}

const struct ifd_acc_driver ifd_acc_conv3d = {.takes = conv3d_takes, .lower = conv3d_lower};
