/* Convolutions, pools, products, normalizations, resizing: channels go last on the way in and come
 * back on the way out. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t value)
{
    return ifd_build_desc(call->b, value)->shape;
}

/* ---- windows ---- */

/* Attributes of a window over up to three directions, in the format's order: depth, height, width.
 */
struct window {
    uint32_t dims;
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
    int32_t padding; /* enum ifd_padding */
};

static void take_numbers(struct ifd_onnx_call *call, const char *name, int64_t *to, uint32_t count,
                         int64_t otherwise)
{
    struct ifd_ints ints;
    const bool has = ifd_onnx_ints(call, name, &ints);
    if (has && ints.count != count) {
        ifd_build_fail(call->b, IFD_INVALID, "attribute \"%s\" has %u numbers, expected %u", name,
                       ints.count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        to[i] = has ? ints.value[i] : otherwise;
        if (to[i] < 0 || to[i] > INT32_MAX) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"%s\" has the number %lld", name,
                           (long long)to[i]);
        }
    }
}

/* input: the extent of each direction. kernel is set. */
static struct window window_of(struct ifd_onnx_call *call, uint32_t dims, const int64_t *input,
                               const int64_t *kernel)
{
    struct window w = {.dims = dims, .padding = IFD_PAD_EXPLICIT};
    int64_t pads[6] = {0};
    memcpy(w.kernel, kernel, dims * sizeof(*kernel));
    take_numbers(call, "strides", w.stride, dims, 1);
    take_numbers(call, "dilations", w.dilation, dims, 1);
    take_numbers(call, "pads", pads, 2 * dims, 0);
    const bool same_upper = ifd_onnx_text_is(call, "auto_pad", "SAME_UPPER", false);
    const bool same_lower = ifd_onnx_text_is(call, "auto_pad", "SAME_LOWER", false);
    const bool valid = ifd_onnx_text_is(call, "auto_pad", "VALID", false);
    for (uint32_t i = 0; i < dims && call->b->code == IFD_OK; i++) {
        w.before[i] = valid ? 0 : pads[i];
        w.after[i] = valid ? 0 : pads[dims + i];
        if ((same_upper || same_lower) && w.stride[i] > 0) {
            const int64_t out = (input[i] + w.stride[i] - 1) / w.stride[i];
            const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
            int64_t need = (out - 1) * w.stride[i] + reach - input[i];
            need = need > 0 ? need : 0;
            w.before[i] = same_upper ? need / 2 : need - need / 2;
            w.after[i] = need - w.before[i];
        }
    }
    return w;
}

/* The last two directions; a window over one direction lies along the width. */
static struct ifd_window plane(const struct window *w)
{
    const uint32_t x = w->dims - 1;
    struct ifd_window plane = {.padding = IFD_PAD_EXPLICIT,
                               .stride_h = 1,
                               .stride_w = (int32_t)w->stride[x],
                               .dilation_h = 1,
                               .dilation_w = (int32_t)w->dilation[x],
                               .pad_left = (int32_t)w->before[x],
                               .pad_right = (int32_t)w->after[x]};
    if (w->dims > 1) {
        plane.stride_h = (int32_t)w->stride[x - 1];
        plane.dilation_h = (int32_t)w->dilation[x - 1];
        plane.pad_top = (int32_t)w->before[x - 1];
        plane.pad_bottom = (int32_t)w->after[x - 1];
    }
    return plane;
}

/* [n,c,l] as [n,c,1,l]. */
static uint32_t with_height(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    return shape.rank == 3
               ? ifd_build_reshape(
                     b, x, (const int64_t[]){shape.dim[0], shape.dim[1], 1, shape.dim[2]}, 4)
               : x;
}

static uint32_t without_height(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    return ifd_build_reshape(b, x, (const int64_t[]){shape.dim[0], shape.dim[1], shape.dim[3]}, 3);
}

/* ---- convolutions ---- */

static uint32_t conv3d(struct ifd_builder *b, uint32_t x, uint32_t filter, uint32_t bias,
                       const struct window *w)
{
    const uint32_t whole[5] = {0, 2, 3, 4, 1};
    /* its padding counts for all directions: explicit amounts go into a pad of their own */
    struct ifd_pad_attrs pad = {.before = {.count = 5}, .after = {.count = 5}};
    for (uint32_t i = 0; i < 3; i++) {
        pad.before.value[1 + i] = w->before[i];
        pad.after.value[1 + i] = w->after[i];
    }
    const uint32_t last = ifd_build_transpose(b, x, whole);
    const uint32_t padded = ifd_build_node(b, IFD_OP_PAD, &last, 1, NULL, &pad);
    const struct ifd_conv3d_attrs attrs = {.window = {.padding = IFD_PAD_VALID,
                                                      .stride_h = (int32_t)w->stride[1],
                                                      .stride_w = (int32_t)w->stride[2],
                                                      .dilation_h = (int32_t)w->dilation[1],
                                                      .dilation_w = (int32_t)w->dilation[2]},
                                           .stride_d = (int32_t)w->stride[0],
                                           .dilation_d = (int32_t)w->dilation[0]};
    const uint32_t input[3] = {
        padded, ifd_build_transpose(b, filter, (const uint32_t[]){2, 3, 4, 1, 0}), bias};
    const uint32_t y =
        ifd_build_node(b, IFD_OP_CONV3D, input, bias == IFD_NONE ? 2 : 3, NULL, &attrs);
    return ifd_build_transpose(b, y, (const uint32_t[]){0, 4, 1, 2, 3});
}

#define GROUPS_MAX                                                                                 \
    1024 /* of a convolution over three directions, each of which is one of its own */

static uint32_t grouped_conv3d(struct ifd_onnx_call *call, uint32_t x, uint32_t filter,
                               uint32_t bias, const struct window *w)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape f = shape_of(call, filter);
    const int64_t groups = ifd_onnx_int(call, "group", 1);
    const int64_t channels = shape_of(call, x).dim[1];
    uint32_t y[GROUPS_MAX];
    if (groups == 1) {
        return conv3d(b, x, filter, bias, w);
    }
    if (groups < 1 || groups > GROUPS_MAX || channels != f.dim[1] * groups ||
        f.dim[0] % groups != 0) {
        return ifd_build_fail(
            b, IFD_UNSUPPORTED, "filter %s in %lld groups for %lld channels, limit %d groups",
            ifd_shape_text(&f).s, (long long)groups, (long long)channels, GROUPS_MAX);
    }
    const int64_t out = f.dim[0] / groups;
    for (int64_t i = 0; i < groups; i++) {
        y[i] = conv3d(b, ifd_build_cut(b, x, 1, i * f.dim[1], f.dim[1]),
                      ifd_build_cut(b, filter, 0, i * out, out),
                      bias == IFD_NONE ? IFD_NONE : ifd_build_cut(b, bias, 0, i * out, out), w);
    }
    const struct ifd_axis_attrs attrs = {.axis = 1};
    return ifd_build_node(b, IFD_OP_CONCAT, y, (uint32_t)groups, NULL, &attrs);
}

static uint32_t conv2d(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias,
                       const struct window *w)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape f = shape_of(call, filter);
    const int64_t groups = ifd_onnx_int(call, "group", 1);
    const bool is_depthwise = groups > 1 && f.dim[1] == 1 && shape_of(call, x).dim[1] == groups;
    if (groups < 1 || shape_of(call, x).dim[1] != f.dim[1] * groups) {
        return ifd_build_fail(b, IFD_INVALID, "filter %s in %lld groups for %lld channels",
                              ifd_shape_text(&f).s, (long long)groups,
                              (long long)shape_of(call, x).dim[1]);
    }
    const struct ifd_conv2d_attrs attrs = {.window = plane(w)};
    const uint32_t order[2][4] = {{0, 2, 3, 1}, {1, 2, 3, 0}};
    const uint32_t input[3] = {ifd_build_to_nhwc(b, x),
                               ifd_build_transpose(b, filter, order[is_depthwise]), bias};
    const uint32_t y = ifd_build_node(b, is_depthwise ? IFD_OP_DEPTHWISE_CONV2D : IFD_OP_CONV2D,
                                      input, bias == IFD_NONE ? 2 : 3, NULL, &attrs);
    return ifd_build_to_nchw(b, y);
}

static bool check_layer(struct ifd_onnx_call *call, uint32_t x, uint32_t filter)
{
    const struct ifd_shape input = shape_of(call, x);
    const struct ifd_shape f = shape_of(call, filter);
    if (call->b->code == IFD_OK && (input.rank < 3 || input.rank > 5 || f.rank != input.rank)) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "input %s and filter %s", ifd_shape_text(&input).s,
                       ifd_shape_text(&f).s);
    }
    return call->b->code == IFD_OK;
}

uint32_t ifd_onnx_convolve(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias)
{
    struct ifd_builder *b = call->b;
    if (!check_layer(call, x, filter)) {
        return IFD_NONE;
    }
    const struct ifd_shape input = shape_of(call, x);
    const struct ifd_shape f = shape_of(call, filter);
    const struct window w = window_of(call, input.rank - 2, input.dim + 2, f.dim + 2);
    if (input.rank == 5) {
        return grouped_conv3d(call, x, filter, bias, &w);
    }
    const uint32_t y = conv2d(call, with_height(b, x), with_height(b, filter), bias, &w);
    return input.rank == 3 ? without_height(b, y) : y;
}

/* Size of one direction: stride * (in - 1) + reach - padding + output_padding; the padding in front
 * and behind. */
static uint32_t transposed(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias)
{
    struct ifd_builder *b = call->b;
    if (!check_layer(call, x, filter)) {
        return IFD_NONE;
    }
    const struct ifd_shape input = shape_of(call, x);
    const struct ifd_shape f = shape_of(call, filter);
    const uint32_t dims = input.rank - 2;
    const struct window w = window_of(call, dims, input.dim + 2, f.dim + 2);
    int64_t extra[3] = {0};
    struct ifd_ints wanted;
    take_numbers(call, "output_padding", extra, dims, 0);
    const bool is_plain = ifd_onnx_text_is(call, "auto_pad", "NOTSET", true) &&
                          !ifd_onnx_ints(call, "output_shape", &wanted) && dims <= 2 &&
                          ifd_onnx_int(call, "group", 1) == 1 && w.dilation[0] == 1 &&
                          (dims < 2 || w.dilation[1] == 1);
    if (!is_plain) {
        return ifd_build_fail(b, IFD_UNSUPPORTED,
                              "a transposed convolution with groups, dilation, three directions, "
                              "\"output_shape\" or \"auto_pad\"");
    }
    /* VALID gives the full size, from which the padding is cut */
    int64_t full[2] = {1, 1}, begin[2] = {0, 0}, size[2] = {1, 1};
    for (uint32_t i = 0; i < dims; i++) {
        const uint32_t to = 2 - dims + i;
        full[to] = w.stride[i] * (input.dim[2 + i] - 1) + f.dim[2 + i];
        begin[to] = w.before[i];
        size[to] = full[to] - w.before[i] - w.after[i] + extra[i];
        if (size[to] < 1 || begin[to] + size[to] > full[to]) {
            return ifd_build_fail(b, IFD_UNSUPPORTED,
                                  "a transposed convolution whose padding cuts %lld and "
                                  "\"output_padding\" adds %lld of %lld elements",
                                  (long long)(w.before[i] + w.after[i]), (long long)extra[i],
                                  (long long)full[to]);
        }
    }
    const struct ifd_transpose_conv2d_attrs attrs = {
        .window = {.padding = IFD_PAD_VALID,
                   .stride_h = dims == 2 ? (int32_t)w.stride[0] : 1,
                   .stride_w = (int32_t)w.stride[dims - 1],
                   .dilation_h = 1,
                   .dilation_w = 1}};
    const uint32_t operands[4] = {
        ifd_build_list(b, (const int64_t[]){input.dim[0], full[0], full[1], f.dim[1]}, 4),
        ifd_build_transpose(b, with_height(b, filter), (const uint32_t[]){1, 2, 3, 0}),
        ifd_build_to_nhwc(b, with_height(b, x)), bias};
    const struct ifd_desc desc = {.dtype = IFD_F32};
    uint32_t y = ifd_build_node(b, IFD_OP_TRANSPOSE_CONV2D, operands, bias == IFD_NONE ? 3 : 4,
                                &desc, &attrs);
    const struct ifd_slice_attrs inner = {
        .begin = {.count = 4, .value = {0, begin[0], begin[1], 0}},
        .size = {.count = 4, .value = {input.dim[0], size[0], size[1], f.dim[1]}}};
    y = ifd_build_to_nchw(b, ifd_build_node(b, IFD_OP_SLICE, &y, 1, NULL, &inner));
    return input.rank == 3 ? without_height(b, y) : y;
}

/* ---- pools ---- */

/* Behind the last direction's end there is room for one more window where the size is rounded up.
 */
static void round_up(struct window *w, const int64_t *input)
{
    for (uint32_t i = 0; i < w->dims; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t span = input[i] + w->before[i] + w->after[i] - reach;
        const int64_t rest = span < 0 || w->stride[i] == 0 ? 0 : span % w->stride[i];
        const int64_t begin = span - rest + w->stride[i]; /* of the window more */
        if (rest != 0 && begin < input[i] + w->before[i]) {
            w->after[i] += w->stride[i] - rest;
        }
    }
}

static bool pool_window(struct ifd_onnx_call *call, uint32_t x, struct window *ret)
{
    const struct ifd_shape input = shape_of(call, x);
    struct ifd_ints kernel;
    if (call->b->code != IFD_OK || !ifd_onnx_ints(call, "kernel_shape", &kernel) ||
        input.rank < 3 || input.rank > 5 || kernel.count != input.rank - 2) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "a pool over shape %s", ifd_shape_text(&input).s);
        return false;
    }
    *ret = window_of(call, kernel.count, input.dim + 2, kernel.value);
    for (uint32_t i = 0; i < ret->dims; i++) {
        if (ret->dilation[i] != 1) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "a pool with dilation %lld",
                           (long long)ret->dilation[i]);
        }
    }
    if (call->b->code == IFD_OK && ifd_onnx_int(call, "ceil_mode", 0) != 0) {
        round_up(ret, input.dim + 2);
    }
    return call->b->code == IFD_OK;
}

static uint32_t pooled(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x,
                       const struct window *w)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    const uint32_t nhwc = ifd_build_to_nhwc(b, with_height(b, x));
    const struct ifd_pool2d_attrs attrs = {.window = plane(w),
                                           .filter_h = w->dims == 2 ? (int32_t)w->kernel[0] : 1,
                                           .filter_w = (int32_t)w->kernel[w->dims - 1]};
    const uint32_t y = ifd_build_to_nchw(b, ifd_build_node(b, op, &nhwc, 1, NULL, &attrs));
    return rank == 3 ? without_height(b, y) : y;
}

/* Over three directions: height and width first, then depth, which is exact for maxima, and for
 * averages without padding. */
static uint32_t pooled_3d(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x,
                          const struct window *w)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = shape_of(call, x);
    struct window inner = {.dims = 2}, outer = {.dims = 2};
    for (uint32_t i = 0; i < 2; i++) {
        inner.kernel[i] = w->kernel[1 + i];
        inner.stride[i] = w->stride[1 + i];
        inner.dilation[i] = outer.dilation[i] = 1;
        inner.before[i] = w->before[1 + i];
        inner.after[i] = w->after[1 + i];
    }
    outer.kernel[0] = w->kernel[0];
    outer.stride[0] = w->stride[0];
    outer.before[0] = w->before[0];
    outer.after[0] = w->after[0];
    outer.kernel[1] = outer.stride[1] = 1;
    const int64_t planes[4] = {in.dim[0], in.dim[1] * in.dim[2], in.dim[3], in.dim[4]};
    const uint32_t flat = pooled(call, op, ifd_build_reshape(b, x, planes, 4), &inner);
    const struct ifd_shape mid = shape_of(call, flat);
    const int64_t columns[4] = {in.dim[0], in.dim[1], in.dim[2], mid.dim[2] * mid.dim[3]};
    const uint32_t y = pooled(call, op, ifd_build_reshape(b, flat, columns, 4), &outer);
    const int64_t whole[5] = {in.dim[0], in.dim[1], shape_of(call, y).dim[2], mid.dim[2],
                              mid.dim[3]};
    return ifd_build_reshape(b, y, whole, 5);
}

static uint32_t max_pool(struct ifd_onnx_call *call, uint32_t x)
{
    struct window w;
    if (!pool_window(call, x, &w)) {
        return IFD_NONE;
    }
    return w.dims == 3 ? pooled_3d(call, IFD_OP_MAX_POOL2D, x, &w)
                       : pooled(call, IFD_OP_MAX_POOL2D, x, &w);
}

uint32_t ifd_onnx_average(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    struct window w;
    if (!pool_window(call, x, &w)) {
        return IFD_NONE;
    }
    if (ifd_onnx_int(call, "count_include_pad", 0) != 0) {
        struct ifd_pad_attrs pad = {.before = {.count = w.dims + 2},
                                    .after = {.count = w.dims + 2}};
        for (uint32_t i = 0; i < w.dims; i++) {
            pad.before.value[2 + i] = w.before[i];
            pad.after.value[2 + i] = w.after[i];
            w.before[i] = w.after[i] = 0;
        }
        if (ifd_onnx_int(call, "ceil_mode", 0) != 0) {
            return ifd_build_fail(b, IFD_UNSUPPORTED,
                                  "an average that counts padding, with \"ceil_mode\"");
        }
        x = ifd_build_node(b, IFD_OP_PAD, &x, 1, NULL, &pad);
    }
    if (w.dims < 3) {
        return pooled(call, IFD_OP_AVERAGE_POOL2D, x, &w);
    }
    for (uint32_t i = 0; i < w.dims; i++) {
        if (w.before[i] != 0 || w.after[i] != 0) {
            return ifd_build_fail(b, IFD_UNSUPPORTED,
                                  "an average over three directions that "
                                  "leaves padding out");
        }
    }
    return pooled_3d(call, IFD_OP_AVERAGE_POOL2D, x, &w);
}

uint32_t ifd_onnx_global(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x)
{
    const uint32_t rank = shape_of(call, x).rank;
    struct ifd_ints axes = {.count = rank > 2 ? rank - 2 : 0};
    for (uint32_t i = 0; i < axes.count; i++) {
        axes.value[i] = 2 + i;
    }
    return ifd_build_reduce(call->b, op, x, &axes, true);
}

/* ---- products ---- */

/* alpha * x' * y' + beta * c */
static uint32_t general_product(struct ifd_onnx_call *call, uint32_t x, uint32_t y, uint32_t c)
{
    struct ifd_builder *b = call->b;
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    const double beta = ifd_onnx_f32(call, "beta", 1);
    x = ifd_onnx_int(call, "transA", 0) != 0 ? ifd_build_swap(b, x, 0, 1) : x;
    y = ifd_onnx_int(call, "transB", 0) != 0 ? ifd_build_swap(b, y, 0, 1) : y;
    uint32_t product = ifd_build_matmul(b, x, y);
    product = alpha == 1 ? product : ifd_build_with(b, IFD_OP_MUL, product, alpha);
    if (c == IFD_NONE || beta == 0) {
        return product;
    }
    c = beta == 1 ? c : ifd_build_with(b, IFD_OP_MUL, c, beta);
    return ifd_build_binary(b, IFD_OP_ADD, product, c);
}

/* ---- normalizations ---- */

/* A list [c] as [1,c,1,…] beside a tensor of this rank. */
static uint32_t per_channel(struct ifd_builder *b, uint32_t list, uint32_t rank)
{
    int64_t dim[IFD_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dim[1] = ifd_build_desc(b, list)->shape.dim[0];
    return ifd_build_reshape(b, list, dim, rank);
}

static uint32_t scaled(struct ifd_builder *b, uint32_t x, uint32_t scale, uint32_t bias)
{
    x = scale == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_MUL, x, scale);
    return bias == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_ADD, x, bias);
}

/* x * factor + (bias - mean * factor), where the factor is scale / sqrt(variance + epsilon). */
static uint32_t batch_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    if (ifd_onnx_int(call, "training_mode", 0) != 0 || rank < 2) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "a batch normalization that trains");
    }
    const uint32_t variance =
        ifd_build_with(b, IFD_OP_ADD, call->input[4], ifd_onnx_f32(call, "epsilon", 1e-5));
    const uint32_t factor =
        ifd_build_binary(b, IFD_OP_DIV, call->input[1], ifd_build_unary(b, IFD_OP_SQRT, variance));
    const uint32_t shift = ifd_build_binary(
        b, IFD_OP_SUB, call->input[2], ifd_build_binary(b, IFD_OP_MUL, call->input[3], factor));
    return scaled(b, x, per_channel(b, factor, rank), per_channel(b, shift, rank));
}

static uint32_t instance_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    struct ifd_ints axes = {.count = rank > 2 ? rank - 2 : 0};
    for (uint32_t i = 0; i < axes.count; i++) {
        axes.value[i] = 2 + i;
    }
    if (rank < 3) {
        return ifd_build_fail(b, IFD_INVALID, "an instance of %u dimensions", rank);
    }
    const uint32_t y = ifd_build_standardize(b, x, &axes, ifd_onnx_f32(call, "epsilon", 1e-5));
    return scaled(b, y, per_channel(b, call->input[1], rank), per_channel(b, call->input[2], rank));
}

static uint32_t layer_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "axis", -1), rank);
    struct ifd_ints axes = {.count = rank - axis};
    for (uint32_t i = 0; i < axes.count; i++) {
        axes.value[i] = axis + i;
    }
    const uint32_t y = ifd_build_standardize(b, x, &axes, ifd_onnx_f32(call, "epsilon", 1e-5));
    return scaled(b, y, ifd_onnx_input(call, 1), ifd_onnx_input(call, 2));
}

/* ---- resizing ---- */

/* Content of a constant list of f32, or of attribute "scales". */
static bool resize_scales(struct ifd_onnx_call *call, uint32_t i, uint32_t rank, float *ret)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "scales");
    const uint32_t input = ifd_onnx_input(call, i);
    const struct ifd_bytes content = ifd_build_content(call->b, input);
    if (input != IFD_NONE && content.size == rank * sizeof(float) &&
        ifd_build_desc(call->b, input)->dtype == IFD_F32) {
        memcpy(ret, content.data, content.size);
        return true;
    }
    if (attr && attr->float_count == rank) {
        memcpy(ret, attr->floats, rank * sizeof(float));
        return true;
    }
    return false;
}

/* Height and width of the result; false if other dimensions change. */
static bool resize_size(struct ifd_onnx_call *call, const struct ifd_shape *shape, bool is_old,
                        int64_t ret[2])
{
    float scale[IFD_MAX_RANK];
    const uint32_t sizes = ifd_onnx_input(call, 3);
    int64_t size[IFD_MAX_RANK];
    if (!is_old && sizes != IFD_NONE) {
        const struct ifd_ints ints = ifd_build_ints_of(call->b, sizes, "the list of sizes");
        if (ints.count != shape->rank) {
            return false;
        }
        memcpy(size, ints.value, sizeof(size));
    } else if (resize_scales(call, is_old ? 1 : 2, shape->rank, scale)) {
        for (uint32_t d = 0; d < shape->rank; d++) {
            const double exact = (double)shape->dim[d] * (double)scale[d];
            size[d] = exact >= 0 && exact < INT32_MAX ? (int64_t)floor(exact) : 0;
        }
    } else {
        return false;
    }
    ret[0] = size[2];
    ret[1] = size[3];
    return size[0] == shape->dim[0] && size[1] == shape->dim[1];
}

/* Nearest neighbours agree for every rounding where each element becomes a block of equal ones. */
static bool is_whole_multiple(const struct ifd_shape *shape, const int64_t size[2])
{
    return shape->dim[2] > 0 && shape->dim[3] > 0 && size[0] % shape->dim[2] == 0 &&
           size[1] % shape->dim[3] == 0;
}

static uint32_t resize(struct ifd_onnx_call *call, uint32_t x, bool is_upsample)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, x);
    const bool is_old = is_upsample || call->opset < 11;
    int64_t size[2] = {0, 0};
    if (b->code == IFD_OK && (shape.rank != 4 || !resize_size(call, &shape, is_old, size))) {
        return ifd_build_fail(b, IFD_UNSUPPORTED,
                              "a resize of %s other than of height and width to a constant size",
                              ifd_shape_text(&shape).s);
    }
    if (size[0] == shape.dim[2] && size[1] == shape.dim[3]) {
        return x;
    }
    const char *mode = "coordinate_transformation_mode";
    const bool is_nearest = ifd_onnx_text_is(call, "mode", "nearest", true);
    const bool is_linear = ifd_onnx_text_is(call, "mode", "linear", false) ||
                           ifd_onnx_text_is(call, "mode", "bilinear", false);
    const bool align = ifd_onnx_text_is(call, mode, "align_corners", false);
    const bool asymmetric = is_old || ifd_onnx_text_is(call, mode, "asymmetric", false);
    const bool half = !is_old && (ifd_onnx_text_is(call, mode, "half_pixel", true) ||
                                  ifd_onnx_text_is(call, mode, "pytorch_half_pixel", false));
    const bool floors = ifd_onnx_text_is(call, "nearest_mode", "floor", is_old);
    const bool exact = is_whole_multiple(&shape, size);
    if (!(is_linear && (align || asymmetric || half)) &&
        !(is_nearest && ((asymmetric && (floors || exact)) || (half && exact)))) {
        return ifd_build_fail(b, IFD_UNSUPPORTED,
                              "a resize of %s to %lld x %lld in a mode other than linear, nearest "
                              "with floor, or nearest to whole multiples",
                              ifd_shape_text(&shape).s, (long long)size[0], (long long)size[1]);
    }
    const struct ifd_resize_attrs attrs = {.height = (int32_t)size[0],
                                           .width = (int32_t)size[1],
                                           .align_corners = is_linear && align,
                                           .half_pixel_centers = is_linear && half};
    const uint32_t nhwc = ifd_build_to_nhwc(b, x);
    return ifd_build_to_nchw(
        b, ifd_build_node(b, is_linear ? IFD_OP_RESIZE_BILINEAR : IFD_OP_RESIZE_NEAREST, &nhwc, 1,
                          NULL, &attrs));
}

static uint32_t layer(struct ifd_onnx_call *call, enum ifd_onnx_layer which)
{
    const uint32_t x = call->input[0];
    switch (which) {
    case IFD_ONNX_CONV:
        return ifd_onnx_convolve(call, x, call->input[1], ifd_onnx_input(call, 2));
    case IFD_ONNX_CONV_TRANSPOSE:
        return transposed(call, x, call->input[1], ifd_onnx_input(call, 2));
    case IFD_ONNX_MAX_POOL:
        return max_pool(call, x);
    case IFD_ONNX_AVERAGE_POOL:
        return ifd_onnx_average(call, x);
    case IFD_ONNX_GLOBAL_AVERAGE_POOL:
        return ifd_onnx_global(call, IFD_OP_REDUCE_MEAN, x);
    case IFD_ONNX_GLOBAL_MAX_POOL:
        return ifd_onnx_global(call, IFD_OP_REDUCE_MAX, x);
    case IFD_ONNX_GEMM:
        return general_product(call, x, call->input[1], ifd_onnx_input(call, 2));
    case IFD_ONNX_MATMUL:
        return ifd_build_matmul(call->b, x, call->input[1]);
    case IFD_ONNX_BATCH_NORMALIZATION:
        return batch_normalization(call, x);
    case IFD_ONNX_INSTANCE_NORMALIZATION:
        return instance_normalization(call, x);
    case IFD_ONNX_LAYER_NORMALIZATION:
        return layer_normalization(call, x);
    case IFD_ONNX_RESIZE:
        return resize(call, x, false);
    case IFD_ONNX_UPSAMPLE:
        return resize(call, x, true);
    }
    return IFD_NONE;
}

void ifd_onnx_layer(struct ifd_onnx_call *call, int which)
{
    call->output[0] = layer(call, (enum ifd_onnx_layer)which);
}
