/* conv3d: windows over depth, height and width; floats only. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/window_attrs.h"

extern const struct ifd_op_def ifd_op_conv3d;

/* Dimensions of input and output [n,d,h,w,c]; of the filter [kd,kh,kw,ic,oc]. */
enum { N, D, H, W, C };

/* Padding in front and number of results of the three directions. */
struct volume {
    int64_t pad[3], out[3];
};

/* Depth is resolved as the height of a window that is one wide. */
static bool resolve(const struct ifd_conv3d_attrs *attrs, const struct ifd_shape *input,
                    const struct ifd_shape *filter, struct volume *ret)
{
    struct ifd_window along = attrs->window;
    along.stride_h = attrs->stride_d;
    along.dilation_h = attrs->dilation_d;
    along.stride_w = along.dilation_w = 1;
    struct ifd_window_size depth;
    struct ifd_window_size plane;
    if (!ifd_window_resolve(&along, filter->dim[0], 1, input->dim[D], 1, &depth) ||
        !ifd_window_resolve(&attrs->window, filter->dim[1], filter->dim[2], input->dim[H],
                            input->dim[W], &plane)) {
        return false;
    }
    *ret = (struct volume){{depth.pad_top, plane.pad_top, plane.pad_left},
                           {depth.out_h, plane.out_h, plane.out_w}};
    return true;
}

static enum ifd_code check_operands(const struct ifd_infer *in, const struct ifd_desc *output,
                                    struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_conv3d;
    enum ifd_code code = ifd_infer_rank(def, in, 0, 5, err);
    for (uint32_t i = 1; code == IFD_OK && i < 3; i++) {
        if (ifd_infer_input(in, i)) {
            code = ifd_infer_dtype(def, in, i, IFD_BIT(IFD_F32), err);
            if (code == IFD_OK) {
                code = ifd_infer_rank(def, in, i, i == 1 ? 5 : 1, err);
            }
        }
    }
    return code == IFD_OK ? ifd_infer_output_dtype(def, output, 0, IFD_F32, err) : code;
}

static enum ifd_code conv3d_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_conv3d;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = check_operands(in, output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    const struct ifd_shape *filter = &in->input[1].desc->shape;
    const struct ifd_desc *bias = ifd_infer_input(in, 2);
    struct volume volume;
    if (filter->dim[3] == 0 || filter->dim[3] != input->dim[C] ||
        (bias && bias->shape.dim[0] != filter->dim[4]) ||
        !resolve(in->attrs, input, filter, &volume)) {
        return ifd_fail(err, IFD_INVALID, "conv3d: filter %s does not fit input %s",
                        ifd_shape_text(filter).s, ifd_shape_text(input).s);
    }
    const struct ifd_shape shape = {
        .rank = 5,
        .dim = {input->dim[N], volume.out[0], volume.out[1], volume.out[2], filter->dim[4]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* Sum of one output element: channel oc of the window that begins at first. */
static float window_sum(const struct ifd_ref_call *call, int64_t n, const int64_t first[3],
                        int64_t oc)
{
    const struct ifd_conv3d_attrs *attrs = call->attrs;
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t *filter = call->in[1]->shape.dim;
    const float *x = call->input[0];
    const float *w = call->input[1];
    float sum = 0;
    for (int64_t kd = 0; kd < filter[0]; kd++) {
        const int64_t d = first[0] + kd * attrs->dilation_d;
        for (int64_t kh = 0; d >= 0 && d < in[D] && kh < filter[1]; kh++) {
            const int64_t h = first[1] + kh * attrs->window.dilation_h;
            for (int64_t kw = 0; h >= 0 && h < in[H] && kw < filter[2]; kw++) {
                const int64_t column = first[2] + kw * attrs->window.dilation_w;
                if (column < 0 || column >= in[W]) {
                    continue;
                }
                const int64_t from = (((n * in[D] + d) * in[H] + h) * in[W] + column) * in[C];
                const int64_t tap = ((kd * filter[1] + kh) * filter[2] + kw) * filter[3];
                for (int64_t c = 0; c < in[C]; c++) {
                    sum += x[from + c] * w[(tap + c) * filter[4] + oc];
                }
            }
        }
    }
    return sum;
}

static enum ifd_code conv3d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_conv3d_attrs *attrs = call->attrs;
    const struct ifd_shape *out = &call->out[0]->shape;
    struct volume volume;
    if (!resolve(attrs, &call->in[0]->shape, &call->in[1]->shape, &volume)) {
        return ifd_fail(err, IFD_INTERNAL, "conv3d: unchecked shapes");
    }
    float min = 0;
    float max = 0;
    ifd_ref_act_range_f32(attrs->activation, &min, &max);
    const float *bias = call->input_count > 2 ? call->input[2] : NULL;
    struct ifd_walk walk;
    for (ifd_walk_init(&walk, out); walk.left > 0; ifd_walk_next(&walk)) {
        const int64_t first[3] = {walk.index[D] * attrs->stride_d - volume.pad[0],
                                  walk.index[H] * attrs->window.stride_h - volume.pad[1],
                                  walk.index[W] * attrs->window.stride_w - volume.pad[2]};
        const float sum = window_sum(call, walk.index[N], first, walk.index[C]);
        ((float *)call->output[0])[walk.done] =
            ifd_ref_clamp_f32(sum + (bias ? bias[walk.index[C]] : 0), min, max);
    }
    return IFD_OK;
}

static const struct ifd_attr_def conv3d_attrs[] = {
    IFD_WINDOW_ATTRS(struct ifd_conv3d_attrs, INT32_MAX),
    {"stride_d", IFD_ATTR_INT, offsetof(struct ifd_conv3d_attrs, stride_d), 1, 1, INT32_MAX},
    {"dilation_d", IFD_ATTR_INT, offsetof(struct ifd_conv3d_attrs, dilation_d), 1, 1, INT32_MAX},
    IFD_ACTIVATION_ATTR(struct ifd_conv3d_attrs),
};

const struct ifd_op_def ifd_op_conv3d = {
    .name = "conv3d",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = conv3d_attrs,
    .attr_count = sizeof(conv3d_attrs) / sizeof(conv3d_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_conv3d_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .batch = IFD_BATCH_SAMPLE,
    .infer = conv3d_infer,
    .ref = conv3d_ref,
    .multiplies = true,
};
