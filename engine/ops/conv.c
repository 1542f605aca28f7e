/* conv2d, depthwise_conv2d, transpose_conv2d: windows over height and width; the arithmetic of a
 * row of output channels is contract.c's. */
#include "engine/ir/shape.h"
#include "engine/ops/contract.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/window_attrs.h"

extern const struct ifd_op_def ifd_op_conv2d;
extern const struct ifd_op_def ifd_op_depthwise_conv2d;
extern const struct ifd_op_def ifd_op_transpose_conv2d;

/* Dimensions of input [n,h,w,c], filter and output [n,h,w,c]. */
enum { N, H, W, C };

static const struct ifd_contract_roles conv_roles = {.input = 0,
                                                     .weights = {.input = 1, .bias = 2, .axis = 0},
                                                     .rounding = IFD_CONTRACT_FIXED,
                                                     .may_be_dynamic = true};
static const struct ifd_contract_roles depthwise_roles = {
    .input = 0,
    .weights = {.input = 1, .bias = 2, .axis = 3},
    .rounding = IFD_CONTRACT_FIXED,
    .may_be_dynamic = true};
static const struct ifd_contract_roles transpose_roles = {
    .input = 2,
    .weights = {.input = 1, .bias = 3, .axis = 0},
    .rounding = IFD_CONTRACT_FIXED,
    .may_be_dynamic = true};

static struct ifd_contract_roles roles_of(const struct ifd_contract_roles *roles,
                                          const struct ifd_conv2d_attrs *attrs)
{
    struct ifd_contract_roles own = *roles;
    own.rounding = attrs->rounds_even ? IFD_CONTRACT_EVEN : roles->rounding;
    return own;
}

/* Checks that all three share: the definition's, ranks, a filter that is not empty. */
static enum ifd_code begin(const struct ifd_op_def *def, const struct ifd_infer *in, uint32_t input,
                           struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, input, 4, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 1, 4, err);
    }
    for (uint32_t d = 0; code == IFD_OK && d < 4; d++) {
        if (in->input[1].desc->shape.dim[d] == 0) {
            code = ifd_fail(err, IFD_INVALID, "%s: the filter has shape %s", def->name,
                            ifd_shape_text(&in->input[1].desc->shape).s);
        }
    }
    return code;
}

/* Resolves the window over the input, checks the rest and writes the output's shape. */
static enum ifd_code finish(const struct ifd_op_def *def, const struct ifd_infer *in,
                            const struct ifd_contract_roles *roles, struct ifd_desc *output,
                            struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = in->attrs;
    const struct ifd_shape *input = &in->input[0].desc->shape;
    const struct ifd_shape *filter = &in->input[1].desc->shape;
    struct ifd_window_size size;
    if (!ifd_window_resolve(&attrs->window, filter->dim[H], filter->dim[W], input->dim[H],
                            input->dim[W], &size)) {
        return ifd_fail(err, IFD_INVALID, "%s: filter %s does not fit input %s", def->name,
                        ifd_shape_text(filter).s, ifd_shape_text(input).s);
    }
    const enum ifd_code code =
        ifd_contract_infer(def, in, roles, attrs->activation, &output[0], err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape shape = {
        .rank = 4,
        .dim = {input->dim[N], size.out_h, size.out_w, filter->dim[roles->weights.axis]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code conv2d_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_conv2d;
    const enum ifd_code code = begin(def, in, 0, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    const struct ifd_shape *filter = &in->input[1].desc->shape;
    const int64_t groups = input->dim[C] / filter->dim[C];
    if (groups == 0 || input->dim[C] % filter->dim[C] != 0 || filter->dim[N] % groups != 0) {
        return ifd_fail(err, IFD_INVALID,
                        "conv2d: filter %s does not divide input %s into equal groups of channels",
                        ifd_shape_text(filter).s, ifd_shape_text(input).s);
    }
    const struct ifd_contract_roles roles = roles_of(&conv_roles, in->attrs);
    return finish(def, in, &roles, output, err);
}

static enum ifd_code conv2d_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                    size_t *ret_bytes, struct ifd_err *err)
{
    const struct ifd_shape *filter = &in->input[1].desc->shape;
    const struct ifd_contract_sizes sizes = {.channels = output[0].shape.dim[C],
                                             .window = ifd_ref_product(filter, 1, 4),
                                             .sample =
                                                 ifd_ref_product(&in->input[0].desc->shape, 1, 4)};
    const struct ifd_contract_roles roles = roles_of(&conv_roles, in->attrs);
    return ifd_contract_scratch(&ifd_op_conv2d, in, &roles, &sizes, ret_bytes, err);
}

/* A convolution with its sizes resolved. */
struct sweep {
    struct ifd_window_size size;
    int64_t stride_h, stride_w, dilation_h, dilation_w;
    int64_t in_h, in_w, in_c;
    int64_t filter_h, filter_w, filter_c;
    int64_t batches, out_c;
};

static enum ifd_code sweep_begin(const struct ifd_ref_call *call, struct sweep *ret_sweep,
                                 struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = call->attrs;
    const struct ifd_shape *input = &call->in[0]->shape;
    const struct ifd_shape *filter = &call->in[1]->shape;
    struct sweep sweep = {
        .stride_h = attrs->window.stride_h,
        .stride_w = attrs->window.stride_w,
        .dilation_h = attrs->window.dilation_h,
        .dilation_w = attrs->window.dilation_w,
        .in_h = input->dim[H],
        .in_w = input->dim[W],
        .in_c = input->dim[C],
        .filter_h = filter->dim[H],
        .filter_w = filter->dim[W],
        .filter_c = filter->dim[C],
        .batches = input->dim[N],
        .out_c = call->out[0]->shape.dim[C],
    };
    if (!ifd_window_resolve(&attrs->window, sweep.filter_h, sweep.filter_w, sweep.in_h, sweep.in_w,
                            &sweep.size)) {
        return ifd_fail(err, IFD_INTERNAL, "convolution: unchecked shapes");
    }
    *ret_sweep = sweep;
    return IFD_OK;
}

/* Fills the window with the input under the filter, channels first_c … first_c + filter_c - 1,
 * with its corner at (y, x). */
static void gather(struct ifd_contraction *row, const struct sweep *s, int64_t n, int64_t y,
                   int64_t x, int64_t first_c)
{
    int64_t at = 0;
    for (int64_t fy = 0; fy < s->filter_h; fy++) {
        const int64_t in_y = y + fy * s->dilation_h;
        for (int64_t fx = 0; fx < s->filter_w; fx++, at += s->filter_c) {
            const int64_t in_x = x + fx * s->dilation_w;
            if (in_y < 0 || in_y >= s->in_h || in_x < 0 || in_x >= s->in_w) {
                ifd_contract_pad(row, at, s->filter_c);
            } else {
                const int64_t pixel = (n * s->in_h + in_y) * s->in_w + in_x;
                ifd_contract_load(row, at, pixel * s->in_c + first_c, s->filter_c);
            }
        }
    }
}

static enum ifd_code conv2d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = call->attrs;
    struct sweep s;
    const enum ifd_code code = sweep_begin(call, &s, err);
    if (code != IFD_OK) {
        return code;
    }
    const int64_t groups = s.in_c / s.filter_c;
    const int64_t group_c = s.out_c / groups;
    const int64_t taps = s.filter_h * s.filter_w * s.filter_c;
    const struct ifd_contract_roles roles = roles_of(&conv_roles, attrs);
    struct ifd_contraction row;
    const struct ifd_contract_sizes sizes = {
        .channels = s.out_c, .window = taps, .sample = s.in_h * s.in_w * s.in_c};
    ifd_contract_begin(&row, call, &roles, &sizes, attrs->activation);

    int64_t first = 0;
    for (int64_t n = 0; n < s.batches; n++) {
        ifd_contract_sample(&row, n * sizes.sample, sizes.sample, groups > 1 || row.scales_differ);
        for (int64_t y = 0; y < s.size.out_h; y++) {
            for (int64_t x = 0; x < s.size.out_w; x++, first += s.out_c) {
                ifd_contract_clear(&row);
                for (int64_t g = 0; g < groups; g++) {
                    gather(&row, &s, n, y * s.stride_h - s.size.pad_top,
                           x * s.stride_w - s.size.pad_left, g * s.filter_c);
                    ifd_contract_dot(&row, g * group_c, group_c, taps, g * group_c * taps, taps);
                }
                ifd_contract_store(&row, first);
            }
        }
    }
    return IFD_OK;
}

static enum ifd_code depthwise_conv2d_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                            struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_depthwise_conv2d;
    const enum ifd_code code = begin(def, in, 0, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    const struct ifd_shape *filter = &in->input[1].desc->shape;
    if (filter->dim[N] != 1 || input->dim[C] == 0 || filter->dim[C] % input->dim[C] != 0) {
        return ifd_fail(err, IFD_INVALID,
                        "depthwise_conv2d: filter %s, expected [1,h,w,a multiple of %lld]",
                        ifd_shape_text(filter).s, (long long)input->dim[C]);
    }
    const struct ifd_contract_roles roles = roles_of(&depthwise_roles, in->attrs);
    return finish(def, in, &roles, output, err);
}

static enum ifd_code depthwise_conv2d_scratch(const struct ifd_infer *in,
                                              const struct ifd_desc *output, size_t *ret_bytes,
                                              struct ifd_err *err)
{
    const struct ifd_shape *input = &in->input[0].desc->shape;
    const struct ifd_contract_sizes sizes = {.channels = output[0].shape.dim[C],
                                             .window = input->dim[C],
                                             .sample = ifd_ref_product(input, 1, 4)};
    const struct ifd_contract_roles roles = roles_of(&depthwise_roles, in->attrs);
    return ifd_contract_scratch(&ifd_op_depthwise_conv2d, in, &roles, &sizes, ret_bytes, err);
}

/* Adds up the output pixel whose window has its corner at (y, x). */
static void depthwise_pixel(struct ifd_contraction *row, const struct sweep *s, int64_t n,
                            int64_t y, int64_t x)
{
    for (int64_t fy = 0; fy < s->filter_h; fy++) {
        const int64_t in_y = y + fy * s->dilation_h;
        if (in_y < 0 || in_y >= s->in_h) {
            continue;
        }
        for (int64_t fx = 0; fx < s->filter_w; fx++) {
            const int64_t in_x = x + fx * s->dilation_w;
            if (in_x < 0 || in_x >= s->in_w) {
                continue;
            }
            const int64_t pixel = (n * s->in_h + in_y) * s->in_w + in_x;
            ifd_contract_load(row, 0, pixel * s->in_c, s->in_c);
            ifd_contract_multiply(row, s->in_c, s->out_c / s->in_c,
                                  (fy * s->filter_w + fx) * s->out_c);
        }
    }
}

static enum ifd_code depthwise_conv2d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = call->attrs;
    struct sweep s;
    const enum ifd_code code = sweep_begin(call, &s, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_contract_roles roles = roles_of(&depthwise_roles, attrs);
    struct ifd_contraction row;
    const struct ifd_contract_sizes sizes = {
        .channels = s.out_c, .window = s.in_c, .sample = s.in_h * s.in_w * s.in_c};
    ifd_contract_begin(&row, call, &roles, &sizes, attrs->activation);

    int64_t first = 0;
    for (int64_t n = 0; n < s.batches; n++) {
        ifd_contract_sample(&row, n * sizes.sample, sizes.sample, true);
        for (int64_t y = 0; y < s.size.out_h; y++) {
            for (int64_t x = 0; x < s.size.out_w; x++, first += s.out_c) {
                ifd_contract_clear(&row);
                depthwise_pixel(&row, &s, n, y * s.stride_h - s.size.pad_top,
                                x * s.stride_w - s.size.pad_left);
                ifd_contract_store(&row, first);
            }
        }
    }
    return IFD_OK;
}

/* A transposed convolution goes from a convolution's output (the input here) to its input (the
 * output here): the window is resolved over the output, and must give the input's size. */
static bool transpose_window(const struct ifd_transpose_conv2d_attrs *attrs,
                             const struct ifd_shape *filter, const int64_t *out, const int64_t *in,
                             struct ifd_window_size *ret)
{
    return ifd_window_resolve(&attrs->window, filter->dim[H], filter->dim[W], out[H], out[W],
                              ret) &&
           ret->out_h == in[H] && ret->out_w == in[W];
}

/* The output's size: input 0 if it is constant, else the file's shape of the output, which the
 * reference kernel compares with input 0 when it runs. */
static enum ifd_code transpose_output_dims(const struct ifd_infer *in,
                                           const struct ifd_desc *output, struct ifd_ints *ret_dims,
                                           struct ifd_err *err)
{
    const struct ifd_operand *operand = &in->input[0];
    size_t count = 0;
    if (!ifd_shape_elements(&operand->desc->shape, &count) || count != 4) {
        return ifd_fail(
            err, IFD_INVALID,
            "transpose_conv2d: input 0 has shape %s, expected the output's 4 dimensions",
            ifd_shape_text(&operand->desc->shape).s);
    }
    if (operand->data.data) {
        return ifd_infer_ints(&ifd_op_transpose_conv2d, "input 0", operand->desc,
                              operand->data.data, ret_dims, err);
    }
    if (output->shape.rank != 4) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "transpose_conv2d: the output's shape is neither constant nor declared");
    }
    *ret_dims = (struct ifd_ints){.count = 4};
    for (uint32_t d = 0; d < 4; d++) {
        ret_dims->value[d] = output->shape.dim[d];
    }
    return IFD_OK;
}

static enum ifd_code transpose_conv2d_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                            struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_transpose_conv2d;
    const struct ifd_transpose_conv2d_attrs *attrs = in->attrs;
    struct ifd_ints dims = {.count = 0};
    enum ifd_code code = begin(def, in, 2, err);
    if (code == IFD_OK) {
        code = transpose_output_dims(in, output, &dims, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *filter = &in->input[1].desc->shape;
    const struct ifd_shape *input = &in->input[2].desc->shape;
    struct ifd_window_size size;
    if (dims.value[N] != input->dim[N] || dims.value[C] != filter->dim[N] ||
        filter->dim[C] != input->dim[C] ||
        !transpose_window(attrs, filter, dims.value, input->dim, &size)) {
        return ifd_fail(err, IFD_INVALID,
                        "transpose_conv2d: input %s and filter %s do not give output "
                        "[%lld,%lld,%lld,%lld]",
                        ifd_shape_text(input).s, ifd_shape_text(filter).s, (long long)dims.value[N],
                        (long long)dims.value[H], (long long)dims.value[W],
                        (long long)dims.value[C]);
    }
    code = ifd_contract_infer(def, in, &transpose_roles, attrs->activation, &output[0], err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape shape = {
        .rank = 4, .dim = {dims.value[N], dims.value[H], dims.value[W], dims.value[C]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code transpose_conv2d_scratch(const struct ifd_infer *in,
                                              const struct ifd_desc *output, size_t *ret_bytes,
                                              struct ifd_err *err)
{
    const struct ifd_contract_sizes sizes = {.channels = output[0].shape.dim[C],
                                             .window = in->input[2].desc->shape.dim[C],
                                             .sample =
                                                 ifd_ref_product(&in->input[2].desc->shape, 1, 4)};
    return ifd_contract_scratch(&ifd_op_transpose_conv2d, in, &transpose_roles, &sizes, ret_bytes,
                                err);
}

/* First input index whose window reaches output position at (padding included). */
static int64_t first_reaching(int64_t at, int64_t reach, int64_t stride)
{
    return at < reach ? 0 : (at - reach) / stride + 1;
}

/* Adds up one output pixel, (y, x) counted from the padding's corner: the input pixels whose
 * windows cover it. */
static void transpose_pixel(struct ifd_contraction *row, const struct ifd_window *window,
                            const struct ifd_shape *input, const struct ifd_shape *filter,
                            const int64_t position[3])
{
    const int64_t n = position[N];
    const int64_t y = position[H];
    const int64_t x = position[W];
    const int64_t in_c = input->dim[C];
    const int64_t filter_size = filter->dim[H] * filter->dim[W] * in_c;
    const int64_t reach_h = (filter->dim[H] - 1) * window->dilation_h + 1;
    const int64_t reach_w = (filter->dim[W] - 1) * window->dilation_w + 1;
    for (int64_t in_y = first_reaching(y, reach_h, window->stride_h);
         in_y < input->dim[H] && in_y * window->stride_h <= y; in_y++) {
        const int64_t from_y = y - in_y * window->stride_h;
        if (from_y % window->dilation_h != 0) {
            continue;
        }
        for (int64_t in_x = first_reaching(x, reach_w, window->stride_w);
             in_x < input->dim[W] && in_x * window->stride_w <= x; in_x++) {
            const int64_t from_x = x - in_x * window->stride_w;
            if (from_x % window->dilation_w != 0) {
                continue;
            }
            const int64_t tap =
                from_y / window->dilation_h * filter->dim[W] + from_x / window->dilation_w;
            const int64_t pixel = (n * input->dim[H] + in_y) * input->dim[W] + in_x;
            ifd_contract_load(row, 0, pixel * in_c, in_c);
            ifd_contract_dot(row, 0, filter->dim[N], in_c, tap * in_c, filter_size);
        }
    }
}

static enum ifd_code transpose_conv2d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_transpose_conv2d_attrs *attrs = call->attrs;
    const struct ifd_shape *filter = &call->in[1]->shape;
    const struct ifd_shape *input = &call->in[2]->shape;
    const struct ifd_shape *output = &call->out[0]->shape;
    struct ifd_window_size size;
    if (!transpose_window(attrs, filter, output->dim, input->dim, &size)) {
        return ifd_fail(err, IFD_INTERNAL, "transpose_conv2d: unchecked shapes");
    }
    for (uint32_t d = 0; d < 4; d++) {
        const int64_t wanted = call->in[0]->dtype == IFD_S32 ? ((const int32_t *)call->input[0])[d]
                                                             : ((const int64_t *)call->input[0])[d];
        if (wanted != output->dim[d]) {
            return ifd_fail(err, IFD_INVALID,
                            "transpose_conv2d: dimension %u of the output is %lld, planned as %lld",
                            d, (long long)wanted, (long long)output->dim[d]);
        }
    }
    struct ifd_contraction row;
    const struct ifd_contract_sizes sizes = {.channels = output->dim[C],
                                             .window = input->dim[C],
                                             .sample = ifd_ref_product(input, 1, 4)};
    ifd_contract_begin(&row, call, &transpose_roles, &sizes, attrs->activation);

    int64_t first = 0;
    for (int64_t n = 0; n < output->dim[N]; n++) {
        ifd_contract_sample(&row, n * sizes.sample, sizes.sample, true);
        for (int64_t y = 0; y < output->dim[H]; y++) {
            for (int64_t x = 0; x < output->dim[W]; x++, first += output->dim[C]) {
                const int64_t position[3] = {n, y + size.pad_top, x + size.pad_left};
                ifd_contract_clear(&row);
                transpose_pixel(&row, &attrs->window, input, filter, position);
                ifd_contract_store(&row, first);
            }
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def conv2d_attrs[] = {
    IFD_WINDOW_ATTRS(struct ifd_conv2d_attrs, INT32_MAX),
    IFD_ACTIVATION_ATTR(struct ifd_conv2d_attrs),
    IFD_ROUNDS_EVEN_ATTR(struct ifd_conv2d_attrs),
};

static const struct ifd_attr_def transpose_conv2d_attrs[] = {
    IFD_WINDOW_ATTRS(struct ifd_transpose_conv2d_attrs, INT32_MAX),
    IFD_ACTIVATION_ATTR(struct ifd_transpose_conv2d_attrs),
};

#define DEFINE(op, roles)                                                                          \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        .name = #op,                                                                               \
        .min_inputs = 2,                                                                           \
        .max_inputs = 3,                                                                           \
        .outputs = 1,                                                                              \
        .attrs = conv2d_attrs,                                                                     \
        .attr_count = sizeof(conv2d_attrs) / sizeof(conv2d_attrs[0]),                              \
        .attrs_bytes = sizeof(struct ifd_conv2d_attrs),                                            \
        .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT,                                             \
        .batch = IFD_BATCH_SAMPLE,                                                                 \
        .infer = op##_infer,                                                                       \
        .scratch = op##_scratch,                                                                   \
        .ref = op##_ref,                                                                           \
        .applies_activation = true,                                                                \
        .weights = &(roles).weights,                                                               \
    }

DEFINE(conv2d, conv_roles);
DEFINE(depthwise_conv2d, depthwise_roles);

const struct ifd_op_def ifd_op_transpose_conv2d = {
    .name = "transpose_conv2d",
    .min_inputs = 3,
    .max_inputs = 4,
    .outputs = 1,
    .attrs = transpose_conv2d_attrs,
    .attr_count = sizeof(transpose_conv2d_attrs) / sizeof(transpose_conv2d_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_transpose_conv2d_attrs),
    .dtypes = IFD_DTYPES_INDEX,
    .batch = IFD_BATCH_SIZED,
    .infer = transpose_conv2d_infer,
    .scratch = transpose_conv2d_scratch,
    .ref = transpose_conv2d_ref,
    .applies_activation = true,
    .weights = &transpose_roles.weights,
};
