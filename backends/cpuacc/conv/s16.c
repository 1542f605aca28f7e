/* conv2d, depthwise_conv2d and fully_connected of 16-bit numbers with 8-bit weights. Sums are
 * exact and rounded as the reference kernels round them, in every mode: results are equal, bit
 * for bit. */
#include "backends/cpuacc/driver.h"
#include "backends/lowering/requantize.h"
#include "backends/lowering/window.h"
#include "engine/tensor/fixed.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <string.h>

/* Windows that are multiplied at a time. */
#define ROWS ((size_t)16)

/* Positions of a depthwise window whose products fit 32 bits. */
#define TAPS_MAX 511

struct channel {
    int64_t bias;
    double real; /* what sums are multiplied with, and the same as a fixed-point number */
    int32_t multiplier, shift;
};

struct conv_s16 {
    struct ifd_low_window window; /* not of fully_connected */
    size_t rows, n, k, k_packed;  /* k_packed: a multiple of IFD_S16_STEP, weights behind k are 0 */
    bool is_plain;                /* a row of the input is a window */
    bool is_real, is_wide;        /* rounding of fully connected layers; without a 32-bit bias */
    const int8_t *weights;
    const struct channel *channel;
    int32_t min, max;
};

static int32_t activation_of(const struct ifd_node_view *node)
{
    if (node->op == IFD_OP_FULLY_CONNECTED) {
        return ((const struct ifd_fully_connected_attrs *)node->attrs)->activation;
    }
    return ((const struct ifd_conv2d_attrs *)node->attrs)->activation;
}

static bool takes_shapes(const struct ifd_node_view *node)
{
    const struct ifd_shape *in = &node->input[0].desc->shape;
    const struct ifd_shape *weights = &node->input[1].desc->shape;
    switch ((unsigned)node->op) {
    case IFD_OP_CONV2D:
        return in->dim[3] == weights->dim[3];
    case IFD_OP_DEPTHWISE_CONV2D:
        return in->dim[3] == weights->dim[3] && weights->dim[1] * weights->dim[2] <= TAPS_MAX;
    default:
        return true;
    }
}

static bool conv_s16_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    const bool is_product = node->op == IFD_OP_CONV2D || node->op == IFD_OP_DEPTHWISE_CONV2D ||
                            node->op == IFD_OP_FULLY_CONNECTED;
    if (!is_product || node->input[0].desc->dtype != IFD_S16 ||
        node->input[1].desc->dtype != IFD_S8 || node->output[0].dtype != IFD_S16) {
        return false;
    }
    const struct ifd_quant *quant = &node->input[1].desc->quant;
    const bool has_bias = node->input_count > 2 && node->input[2].desc;
    float min = 0, max = 0;
    bool takes = node->input[1].data.size > 0 && (!has_bias || node->input[2].data.data) &&
                 ifd_low_clamp_f32(activation_of(node), &min, &max) && takes_shapes(node);
    for (uint32_t i = 0; i < quant->count; i++) {
        takes = takes && quant->zero_point[i] == 0;
    }
    return takes;
}

/* ---- run ---- */

static int16_t round_sum(const struct conv_s16 *p, size_t c, int64_t product)
{
    const struct channel *channel = &p->channel[c];
    /* a crafted bias may overflow */
    const int64_t sum = (int64_t)((uint64_t)product + (uint64_t)channel->bias);
    const int32_t low = (int32_t)(uint32_t)(uint64_t)sum;
    double value = 0;
    if (p->is_real) {
        value = ifd_fixed_scale_real(p->is_wide ? sum : low, channel->real);
    } else if (p->is_wide) {
        value = (double)ifd_fixed_scale_wide(sum, channel->multiplier, channel->shift);
    } else {
        value = ifd_fixed_scale_double(low, channel->multiplier, channel->shift);
    }
    return (int16_t)(value < p->min ? p->min : value > p->max ? p->max : value);
}

/* The pixel that window position (ky, kx) of an output pixel sees; NULL outside. */
static const int16_t *see(const struct ifd_low_window *w, const int16_t *in, size_t row, size_t ky,
                          size_t kx)
{
    const size_t image = row / (w->out_h * w->out_w);
    size_t pixel = 0;
    return ifd_low_window_sees(w, row % (w->out_h * w->out_w), ky, kx, &pixel)
               ? in + (image * w->in_h * w->in_w + pixel) * w->in_c
               : NULL;
}

static void copy_window(const struct conv_s16 *p, const int16_t *in, size_t row, int16_t *to)
{
    const struct ifd_low_window *w = &p->window;
    for (size_t ky = 0; ky < w->kh; ky++) {
        for (size_t kx = 0; kx < w->kw; kx++, to += w->in_c) {
            const int16_t *from = see(w, in, row, ky, kx);
            if (from) {
                memcpy(to, from, w->in_c * sizeof(*to));
            } else {
                memset(to, 0, w->in_c * sizeof(*to));
            }
        }
    }
}

static void run_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct conv_s16 *p = step->params;
    const int16_t *in = ifd_acc_in(step, frame, 0);
    int16_t *out = ifd_acc_out(step, frame);
    int64_t *sum = ifd_acc_work(step, frame);
    int16_t *windows = (int16_t *)(sum + ROWS * p->n);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, 1);
    struct ifd_s16_args args = {.w = (const int16_t *)(const void *)(frame->packed + step->packed),
                                .w_stride = p->k_packed,
                                .a_stride = p->is_plain ? p->k : p->k_packed,
                                .sum = sum,
                                .n = p->n,
                                .k = p->k_packed};
    for (size_t row = range.begin; row < range.end; row += args.m) {
        args.m = range.end - row < ROWS ? range.end - row : ROWS;
        args.a = p->is_plain ? in + row * p->k : windows;
        for (size_t i = 0; !p->is_plain && i < args.m; i++) {
            copy_window(p, in, row + i, windows + i * p->k_packed);
        }
        step->kernels->gemm_s16.dot(&args);
        for (size_t i = 0; i < args.m * p->n; i++) {
            out[row * p->n + i] = round_sum(p, i % p->n, sum[i]);
        }
    }
}

static void run_depthwise(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct conv_s16 *p = step->params;
    const struct ifd_low_window *w = &p->window;
    const int16_t *in = ifd_acc_in(step, frame, 0);
    const int16_t *weights = (const int16_t *)(const void *)(frame->packed + step->packed);
    int32_t *sum = ifd_acc_work(step, frame);
    int16_t *out = ifd_acc_out(step, frame);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, 1);
    for (size_t row = range.begin; row < range.end; row++) {
        memset(sum, 0, p->n * sizeof(*sum));
        for (size_t t = 0; t < w->kh * w->kw; t++) {
            const int16_t *from = see(w, in, row, t / w->kw, t % w->kw);
            if (from) {
                step->kernels->gemm_s16.multiply(p->n, from, weights + t * p->n, sum);
            }
        }
        for (size_t c = 0; c < p->n; c++) {
            out[row * p->n + c] = round_sum(p, c, sum[c]);
        }
    }
}

/* ---- lower ---- */

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    (void)context;
    (void)workspace;
    const struct conv_s16 *p = params;
    int16_t *to = (int16_t *)(void *)packed;
    const size_t rows = p->k_packed ? p->n : 1, k = p->k_packed ? p->k : p->k * p->n;
    for (size_t r = 0; r < rows; r++, to += p->k_packed) {
        for (size_t i = 0; i < k; i++) {
            to[i] = p->weights[r * k + i];
        }
        if (p->k_packed > k) {
            memset(to + k, 0, (p->k_packed - k) * sizeof(*to));
        }
    }
}

static const struct channel *make_channels(struct ifd_acc_lowering *lowering,
                                           const struct ifd_node_view *node, size_t n)
{
    struct channel *channel = ifd_low_params(&lowering->base, n, sizeof(*channel));
    const struct ifd_quant *weights = &node->input[1].desc->quant;
    const uint8_t *bias = node->input_count > 2 ? node->input[2].data.data : NULL;
    for (size_t c = 0; channel && c < n; c++) {
        const float scale = weights->scale[weights->count > 1 ? c : 0];
        int32_t low = 0;
        int exponent = 0;
        channel[c].real = (double)node->input[0].desc->quant.scale[0] * (double)scale /
                          (double)node->output[0].quant.scale[0];
        ifd_fixed_from_any(channel[c].real, &channel[c].multiplier, &exponent);
        channel[c].shift = exponent;
        if (bias && node->input[2].desc->dtype == IFD_S64) {
            memcpy(&channel[c].bias, bias + c * sizeof(int64_t), sizeof(int64_t));
        } else if (bias) {
            memcpy(&low, bias + c * sizeof(low), sizeof(low));
            channel[c].bias = low;
        }
    }
    return channel;
}

static int32_t bound(float real, const struct ifd_desc *output)
{
    return ifd_low_bound(real, output->quant.scale[0], 0, INT16_MIN, INT16_MAX);
}

static enum ifd_code init(struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                          struct conv_s16 *p, struct ifd_err *err)
{
    const struct ifd_shape *weights = &node->input[1].desc->shape;
    const struct ifd_shape *out = &node->output[0].shape;
    const bool is_depthwise = node->op == IFD_OP_DEPTHWISE_CONV2D;
    float min = 0, max = 0;
    (void)ifd_low_clamp_f32(activation_of(node), &min, &max);
    *p = (struct conv_s16){
        .rows = 1,
        .n = (size_t)weights->dim[is_depthwise ? 3 : 0],
        .is_plain = node->op == IFD_OP_FULLY_CONNECTED,
        .is_real = node->op == IFD_OP_FULLY_CONNECTED,
        .is_wide = !(node->input_count > 2 && node->input[2].desc &&
                     node->input[2].desc->dtype == IFD_S32),
        .weights = (const int8_t *)node->input[1].data.data,
        .min = bound(min, &node->output[0]),
        .max = bound(max, &node->output[0]),
    };
    p->k = node->input[1].data.size / p->n;
    for (uint32_t d = 0; d < out->rank; d++) {
        p->rows *= (size_t)out->dim[d];
    }
    p->rows /= p->n;
    if (!is_depthwise) {
        p->k_packed = (p->k + IFD_S16_STEP - 1) / IFD_S16_STEP * IFD_S16_STEP;
    }
    p->channel = make_channels(lowering, node, p->n);
    if (!p->channel) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    if (node->op == IFD_OP_FULLY_CONNECTED) {
        return IFD_OK;
    }
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    const enum ifd_code code = ifd_low_window_init(node, &attrs->window, &p->window, err);
    const struct ifd_low_window *w = &p->window;
    p->is_plain = w->kh * w->kw == 1 && w->stride_y * w->stride_x == 1 && !w->is_padded;
    return code;
}

/* Sums and windows of one thread. */
static bool work_bytes(const struct conv_s16 *p, size_t *ret)
{
    size_t sums = 0, windows = 0;
    return ifd_size_mul(p->n, ROWS * sizeof(int64_t), &sums) &&
           ifd_size_mul(p->k_packed, ROWS * sizeof(int16_t), &windows) &&
           ifd_size_add(sums, windows, ret);
}

static enum ifd_code conv_s16_lower(struct ifd_acc_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    const bool is_depthwise = node->view.op == IFD_OP_DEPTHWISE_CONV2D;
    struct conv_s16 *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    size_t work = 0, weights = 0;
    enum ifd_code code =
        p ? init(lowering, &node->view, p, err) : ifd_fail(err, IFD_NOMEM, "no memory for a step");
    if (code == IFD_OK &&
        (!work_bytes(p, &work) || !ifd_size_mul(p->n, p->k_packed ? p->k_packed : p->k, &weights) ||
         !ifd_size_mul(weights, sizeof(int16_t), &weights))) {
        code = ifd_fail(err, IFD_TOO_LARGE, "work memory overflows");
    }
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, is_depthwise ? run_depthwise : run_rows, p,
                                node->input_value, 1, node->output_value[0], &step, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    step->rate = 20.0f;
    ifd_acc_name_step(lowering, "gemm_s16", (uint64_t)p->rows * p->n * p->k, "%s%s",
                      ifd_op_def(node->view.op)->name,
                      activation_of(&node->view) == IFD_ACT_NONE ? "" : "+act");
    code = ifd_acc_add_pack(lowering, p->weights, weights, 0, pack, p, err);
    return code == IFD_OK ? ifd_acc_add_work(lowering, work, err) : code;
}

const struct ifd_acc_driver ifd_acc_conv_s16 = {.takes = conv_s16_takes, .lower = conv_s16_lower};
