/* average_pool2d, max_pool2d: lines of the output are shared by the team. */
#include "backends/cpuacc/driver.h"
#include "backends/cpuacc/narrow.h"
#include "backends/lowering/requantize.h"

#include <stdint.h>

struct pool_params {
    struct ifd_pool_args args; /* what does not change from image to image */
    void (*kernel)(const struct ifd_pool_args *args);
    size_t batch, lines, in_image_bytes, out_image_bytes;
    bool narrow_in, narrow_out;
};

static void run_pool(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct pool_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->lines, 1);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    struct ifd_pool_args args = p->args;
    args.y_begin = range.begin;
    args.y_end = range.end;
    for (size_t b = 0; b < p->batch && range.begin < range.end; b++) {
        args.in = in + b * p->in_image_bytes;
        args.out = out + b * p->out_image_bytes;
        p->kernel(&args);
    }
}

/* Elements of all lines that a window sees. */
static size_t window_elements(const struct pool_params *p)
{
    const size_t lines = p->args.kh < p->args.in_h ? p->args.kh : p->args.in_h;
    return lines * p->args.in_line_stride;
}

/* One output line, where input or output are narrow: floats are in work memory. */
static void narrow_line(const struct ifd_acc_step *step, const uint8_t *image, size_t y,
                        float *work, uint8_t *out)
{
    const struct pool_params *p = step->params;
    const struct ifd_kern_gemm_f32 *kernels = &step->kernels->gemm_bf16;
    const size_t top = y * p->args.stride_y, pad = p->args.pad_top;
    const size_t first = top > pad ? top - pad : 0, below = top + p->args.kh;
    const size_t end = below - pad < p->args.in_h ? below - pad : p->args.in_h;
    const size_t count = (end - first) * p->args.in_line_stride;
    struct ifd_pool_args args = p->args;
    args.in_h = end - first;
    args.pad_top = (uint32_t)(first + pad - top);
    args.y_begin = 0;
    args.y_end = 1;
    args.in = image + first * p->args.in_line_stride * (p->narrow_in ? 2 : 4);
    args.out = out;
    if (p->narrow_in) {
        kernels->widen(count, args.in, work);
        args.in = work;
    }
    if (p->narrow_out) {
        args.out = work + window_elements(p);
    }
    p->kernel(&args);
    if (p->narrow_out) {
        kernels->narrow(args.out_line_stride, args.out, (uint16_t *)(void *)out);
    }
}

static void run_pool_narrow(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct pool_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->lines, 1);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    for (size_t b = 0; b < p->batch; b++) {
        for (size_t y = range.begin; y < range.end; y++) {
            narrow_line(step, in + b * p->in_image_bytes, y, ifd_acc_work(step, frame),
                        out + b * p->out_image_bytes + y * (p->out_image_bytes / p->lines));
        }
    }
}

/* Averages are sums of at most this many bytes, which stay below 2^31. */
#define WINDOW_MAX 8000000

static bool sums_fit(const struct ifd_node_view *node)
{
    const struct ifd_pool2d_attrs *attrs = node->attrs;
    const int64_t *in = node->input[0].desc->shape.dim;
    const int64_t height = attrs->filter_h < in[1] ? attrs->filter_h : in[1];
    const int64_t width = attrs->filter_w < in[2] ? attrs->filter_w : in[2];
    return node->op == IFD_OP_MAX_POOL2D || height * width <= WINDOW_MAX;
}

static bool pool_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_pool2d_attrs *attrs = node->attrs;
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    float min = 0, max = 0;
    bool fits = (in->dtype == IFD_F32 || ifd_acc_is_q8(in->dtype)) && out->dtype == in->dtype &&
                ifd_low_clamp_f32(attrs->activation, &min, &max);
    if (fits && ifd_acc_is_q8(in->dtype)) {
        fits = sums_fit(node) && in->quant.scale[0] == out->quant.scale[0] &&
               in->quant.zero_point[0] == out->quant.zero_point[0];
    }
    if (!fits) {
        ifd_fail(
            reason, IFD_UNSUPPORTED,
            "type %s, an activation that is not a clamp, another output scale or a huge window",
            ifd_dtype_name(in->dtype));
    }
    return fits;
}

static enum ifd_code pool_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_pool2d_attrs *attrs = node->view.attrs;
    const struct ifd_shape *in = &node->view.input[0].desc->shape,
                           *out = &node->view.output[0].shape;
    const bool is_q8 = ifd_acc_is_q8(node->view.output[0].dtype),
               is_max = node->view.op == IFD_OP_MAX_POOL2D;
    const struct ifd_kern_pool *pool = &lowering->kernels->pool;
    const bool narrow_in = ifd_acc_is_narrow(lowering, node->input_value[0]);
    const bool narrow_out = ifd_acc_is_narrow(lowering, node->output_value[0]);
    const size_t in_element = is_q8 ? 1 : narrow_in ? sizeof(uint16_t) : sizeof(float);
    const size_t out_element = is_q8 ? 1 : narrow_out ? sizeof(uint16_t) : sizeof(float);
    const size_t channels = (size_t)in->dim[3];
    struct ifd_window_size size;
    struct pool_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    if (!ifd_window_resolve(&attrs->window, attrs->filter_h, attrs->filter_w, in->dim[1],
                            in->dim[2], &size)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    const bool is_narrow = narrow_in || narrow_out;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, is_narrow ? run_pool_narrow : run_pool, p, node->input_value, 1,
                         node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    p->kernel = is_q8 ? (is_max ? pool->max_q8 : pool->average_q8)
                      : (is_max ? pool->max_f32 : pool->average_f32);
    p->batch = (size_t)in->dim[0];
    p->lines = (size_t)out->dim[1];
    p->in_image_bytes = (size_t)(in->dim[1] * in->dim[2]) * channels * in_element;
    p->out_image_bytes = (size_t)(out->dim[1] * out->dim[2]) * channels * out_element;
    p->args = (struct ifd_pool_args){
        .channels = channels,
        .in_h = (size_t)in->dim[1],
        .in_w = (size_t)in->dim[2],
        .in_pixel_stride = channels,
        .in_line_stride = (size_t)in->dim[2] * channels,
        .out_w = (size_t)out->dim[2],
        .out_pixel_stride = channels,
        .out_line_stride = (size_t)out->dim[2] * channels,
        .kh = (uint32_t)attrs->filter_h,
        .kw = (uint32_t)attrs->filter_w,
        .stride_y = (uint32_t)attrs->window.stride_h,
        .stride_x = (uint32_t)attrs->window.stride_w,
        .pad_top = (uint32_t)size.pad_top,
        .pad_left = (uint32_t)size.pad_left,
    };
    (void)ifd_low_clamp_f32(attrs->activation, &p->args.min, &p->args.max);
    if (is_q8) {
        p->args.shift = node->view.output[0].dtype == IFD_S8 ? IFD_Q8_SHIFT_S8 : IFD_Q8_SHIFT_U8;
        (void)ifd_acc_clamp_q8(attrs->activation, &node->view.output[0], &p->args.q_min,
                               &p->args.q_max);
    }
    step->max_threads = (uint32_t)(p->batch * p->in_image_bytes / 4096) + 1;
    ifd_acc_name_step(lowering, is_q8 ? "pool_q8" : "pool_f32", 0, "%s %dx%d/%d",
                      ifd_op_def(node->view.op)->name, (int)attrs->filter_h, (int)attrs->filter_w,
                      (int)attrs->window.stride_h);
    p->narrow_in = narrow_in;
    p->narrow_out = narrow_out;
    const size_t line = p->args.out_line_stride;
    return is_narrow ? ifd_acc_add_work(lowering, (window_elements(p) + line) * sizeof(float), err)
                     : IFD_OK;
}

const struct ifd_acc_driver ifd_acc_average_pool2d = {.takes = pool_takes, .lower = pool_lower};
const struct ifd_acc_driver ifd_acc_max_pool2d = {.takes = pool_takes, .lower = pool_lower};
