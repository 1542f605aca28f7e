/* Convolutions and products: channels go last on the way in and come back on the way out. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/window.h"

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t value)
{
    return ifd_build_desc(call->b, value)->shape;
}

/* ---- convolutions ---- */

static uint32_t conv3d(struct ifd_builder *b, uint32_t x, uint32_t filter, uint32_t bias,
                       const struct ifd_onnx_window *w)
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
                               uint32_t bias, const struct ifd_onnx_window *w)
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

/* The filter, whose channels lie along an axis, with its quantization. */
static uint32_t labelled(struct ifd_builder *b, uint32_t filter, const struct ifd_onnx_stored *s,
                         uint32_t axis)
{
    struct ifd_desc desc = s->filter;
    desc.shape = ifd_build_desc(b, filter)->shape;
    desc.quant.axis = axis;
    return ifd_build_constant(b, &desc, ifd_build_content(b, filter), IFD_TENSOR_PAD);
}

static uint32_t conv2d(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias,
                       const struct ifd_onnx_window *w, const struct ifd_onnx_stored *stored)
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
    const struct ifd_conv2d_attrs attrs = {.window = ifd_onnx_plane(w),
                                           .activation = stored ? stored->activation : 0,
                                           .rounds_even = stored != NULL};
    const uint32_t order[2][4] = {{0, 2, 3, 1}, {1, 2, 3, 0}};
    const uint32_t turned = ifd_build_transpose(b, filter, order[is_depthwise]);
    const uint32_t input[3] = {ifd_build_to_nhwc(b, x),
                               stored ? labelled(b, turned, stored, is_depthwise ? 3 : 0) : turned,
                               bias};
    const uint32_t y =
        ifd_build_node(b, is_depthwise ? IFD_OP_DEPTHWISE_CONV2D : IFD_OP_CONV2D, input,
                       bias == IFD_NONE ? 2 : 3, stored ? &stored->output : NULL, &attrs);
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

/* x and filter have the same rank of 3 to 5. */
static uint32_t convolve(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias,
                         const struct ifd_onnx_window *w, const struct ifd_onnx_stored *stored)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    if (rank == 5) {
        return grouped_conv3d(call, x, filter, bias, w);
    }
    const uint32_t y =
        conv2d(call, ifd_onnx_with_height(b, x), ifd_onnx_with_height(b, filter), bias, w, stored);
    return rank == 3 ? ifd_onnx_without_height(b, y) : y;
}

uint32_t ifd_onnx_convolve(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias,
                           const struct ifd_onnx_stored *stored)
{
    if (!check_layer(call, x, filter)) {
        return IFD_NONE;
    }
    const struct ifd_shape input = shape_of(call, x);
    const struct ifd_shape f = shape_of(call, filter);
    const struct ifd_onnx_window w =
        ifd_onnx_window(call, input.rank - 2, input.dim + 2, f.dim + 2);
    return convolve(call, x, filter, bias, &w, stored);
}

/* ---- transposed convolutions ---- */

/* What the padding cuts from the full size, and what "output_padding" adds behind. */
struct transposed {
    struct ifd_onnx_window w;
    int64_t full[IFD_ONNX_DIRECTIONS], extra[IFD_ONNX_DIRECTIONS];
};

/* Padding so that the result has the size wanted: SAME_UPPER puts an odd one behind. */
static void pad_to(struct ifd_onnx_call *call, struct transposed *t, uint32_t i, int64_t wanted)
{
    const bool is_upper = ifd_onnx_text_is(call, "auto_pad", "SAME_UPPER", false);
    const int64_t full = t->full[i] + t->extra[i];
    if (wanted < 1 || wanted > INT32_MAX) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"output_shape\" has the number %lld",
                       (long long)wanted);
        return;
    }
    const int64_t total = full > wanted ? full - wanted : 0;
    t->extra[i] += wanted > full ? wanted - full : 0;
    t->w.before[i] = is_upper ? total / 2 : total - total / 2;
    t->w.after[i] = total - t->w.before[i];
}

static struct transposed describe_transposed(struct ifd_onnx_call *call,
                                             const struct ifd_shape *input,
                                             const struct ifd_shape *f)
{
    const uint32_t dims = input->rank - 2;
    struct transposed t = {.w = ifd_onnx_window(call, dims, input->dim + 2, f->dim + 2)};
    struct ifd_ints wanted;
    const bool has_shape = ifd_onnx_ints(call, "output_shape", &wanted) && wanted.count >= dims;
    const bool is_same = ifd_onnx_text_is(call, "auto_pad", "SAME_UPPER", false) ||
                         ifd_onnx_text_is(call, "auto_pad", "SAME_LOWER", false);
    ifd_onnx_numbers(call, "output_padding", t.extra, dims, 0);
    for (uint32_t i = 0; i < dims; i++) {
        t.full[i] =
            t.w.stride[i] * (input->dim[2 + i] - 1) + (f->dim[2 + i] - 1) * t.w.dilation[i] + 1;
        if (has_shape) {
            pad_to(call, &t, i, wanted.value[wanted.count - dims + i]);
        } else if (is_same) {
            pad_to(call, &t, i, t.w.stride[i] * input->dim[2 + i]);
        }
        if (t.full[i] - t.w.before[i] - t.w.after[i] + t.extra[i] < 1) {
            ifd_build_fail(call->b, IFD_INVALID,
                           "padding by %lld and %lld cuts all of %lld elements",
                           (long long)t.w.before[i], (long long)t.w.after[i],
                           (long long)(t.full[i] + t.extra[i]));
        }
    }
    return t;
}

/* Our own operator: one group, no dilation, nothing behind the full size. */
static bool is_plain(struct ifd_onnx_call *call, const struct transposed *t)
{
    bool plain = ifd_onnx_int(call, "group", 1) == 1 && t->w.dims <= 2;
    for (uint32_t i = 0; i < t->w.dims; i++) {
        plain = plain && t->w.dilation[i] == 1 && t->extra[i] <= t->w.after[i];
    }
    return plain;
}

/* VALID gives the full size, from which the padding is cut. */
static uint32_t plain_transposed(struct ifd_onnx_call *call, uint32_t x, uint32_t filter,
                                 uint32_t bias, const struct transposed *t)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape input = shape_of(call, x);
    const struct ifd_shape f = shape_of(call, filter);
    const struct ifd_onnx_window *w = &t->w;
    int64_t full[2] = {1, 1}, begin[2] = {0, 0}, size[2] = {1, 1};
    for (uint32_t i = 0; i < w->dims; i++) {
        const uint32_t to = 2 - w->dims + i;
        full[to] = t->full[i];
        begin[to] = w->before[i];
        size[to] = full[to] - w->before[i] - w->after[i] + t->extra[i];
    }
    const struct ifd_transpose_conv2d_attrs attrs = {
        .window = {.padding = IFD_PAD_VALID,
                   .stride_h = w->dims == 2 ? (int32_t)w->stride[0] : 1,
                   .stride_w = (int32_t)w->stride[w->dims - 1],
                   .dilation_h = 1,
                   .dilation_w = 1}};
    const uint32_t operands[4] = {
        ifd_build_list(b, (const int64_t[]){input.dim[0], full[0], full[1], f.dim[1]}, 4),
        ifd_build_transpose(b, ifd_onnx_with_height(b, filter), (const uint32_t[]){1, 2, 3, 0}),
        ifd_build_to_nhwc(b, ifd_onnx_with_height(b, x)), bias};
    const struct ifd_desc desc = {.dtype = IFD_F32};
    uint32_t y = ifd_build_node(b, IFD_OP_TRANSPOSE_CONV2D, operands, bias == IFD_NONE ? 3 : 4,
                                &desc, &attrs);
    const struct ifd_slice_attrs inner = {
        .begin = {.count = 4, .value = {0, begin[0], begin[1], 0}},
        .size = {.count = 4, .value = {input.dim[0], size[0], size[1], f.dim[1]}}};
    y = ifd_build_to_nchw(b, ifd_build_node(b, IFD_OP_SLICE, &y, 1, NULL, &inner));
    return input.rank == 3 ? ifd_onnx_without_height(b, y) : y;
}

/* x with stride - 1 zeros between its elements along dimension d. */
static uint32_t spread(struct ifd_builder *b, uint32_t x, uint32_t d, int64_t stride)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    struct ifd_shape apart = shape;
    struct ifd_pad_attrs pad = {.before = {.count = shape.rank + 1},
                                .after = {.count = shape.rank + 1}};
    if (stride == 1) {
        return x;
    }
    for (uint32_t i = shape.rank; i > d + 1; i--) {
        apart.dim[i] = apart.dim[i - 1];
    }
    apart.rank = shape.rank + 1;
    apart.dim[d + 1] = 1;
    pad.after.value[d + 1] = stride - 1;
    const uint32_t columns = ifd_build_reshape(b, x, apart.dim, apart.rank);
    const uint32_t padded = ifd_build_node(b, IFD_OP_PAD, &columns, 1, NULL, &pad);
    struct ifd_shape whole = shape;
    whole.dim[d] *= stride;
    return ifd_build_cut(b, ifd_build_reshape(b, padded, whole.dim, whole.rank), d, 0,
                         (shape.dim[d] - 1) * stride + 1);
}

/* [c, m/g, ...] as [m, c/g, ...], mirrored in all directions. */
static uint32_t turned_filter(struct ifd_builder *b, uint32_t filter, int64_t groups)
{
    const struct ifd_shape f = ifd_build_desc(b, filter)->shape;
    struct ifd_reverse_attrs mirror = {.axes = {.count = f.rank - 2}};
    for (uint32_t i = 0; i < mirror.axes.count; i++) {
        mirror.axes.value[i] = 2 + i;
    }
    struct ifd_shape split = f, joined = f;
    split.rank = f.rank + 1;
    split.dim[0] = groups;
    split.dim[1] = f.dim[0] / groups;
    for (uint32_t d = 1; d < f.rank; d++) {
        split.dim[d + 1] = f.dim[d];
    }
    joined.dim[0] = f.dim[1] * groups;
    joined.dim[1] = f.dim[0] / groups;
    const uint32_t mirrored = ifd_build_node(b, IFD_OP_REVERSE, &filter, 1, NULL, &mirror);
    const uint32_t parts = ifd_build_reshape(b, mirrored, split.dim, split.rank);
    return ifd_build_reshape(b, ifd_build_swap(b, parts, 1, 2), joined.dim, joined.rank);
}

/* A convolution by the mirrored filter over elements that lie the stride apart. */
static uint32_t general_transposed(struct ifd_onnx_call *call, uint32_t x, uint32_t filter,
                                   uint32_t bias, const struct transposed *t)
{
    struct ifd_builder *b = call->b;
    struct ifd_onnx_window w = t->w;
    const int64_t groups = ifd_onnx_int(call, "group", 1);
    const int64_t channels = shape_of(call, x).dim[1];
    if (groups < 1 || channels % groups != 0 || channels != shape_of(call, filter).dim[0]) {
        return ifd_build_fail(b, IFD_INVALID, "%lld channels in %lld groups", (long long)channels,
                              (long long)groups);
    }
    for (uint32_t i = 0; i < w.dims; i++) {
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i];
        const int64_t front = w.before[i] > reach ? w.before[i] - reach : 0;
        const int64_t back =
            w.after[i] > reach + t->extra[i] ? w.after[i] - reach - t->extra[i] : 0;
        x = spread(b, x, 2 + i, w.stride[i]);
        if (front + back > 0) {
            x = ifd_build_cut(b, x, 2 + i, front, shape_of(call, x).dim[2 + i] - front - back);
        }
        w.before[i] = reach - w.before[i] + front;
        w.after[i] = reach + t->extra[i] - w.after[i] + back;
        w.stride[i] = 1;
    }
    if (b->code != IFD_OK) {
        return IFD_NONE; /* the filter has no description any more */
    }
    return convolve(call, x, turned_filter(b, filter, groups), bias, &w, NULL);
}

static uint32_t transposed(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias)
{
    if (!check_layer(call, x, filter)) {
        return IFD_NONE;
    }
    const struct ifd_shape input = shape_of(call, x);
    const struct ifd_shape f = shape_of(call, filter);
    const struct transposed t = describe_transposed(call, &input, &f);
    if (call->b->code != IFD_OK) {
        return IFD_NONE;
    }
    return is_plain(call, &t) ? plain_transposed(call, x, filter, bias, &t)
                              : general_transposed(call, x, filter, bias, &t);
}

#define ATTRS_MAX 8

/* Padding is an input, in front of the bias. */
static uint32_t transposed_with_pads(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t given = ifd_onnx_input(call, 2);
    struct ifd_ints pads = {.count = 0};
    struct ifd_onnx_attr attrs[ATTRS_MAX + 1] = {{.i = 0}};
    struct ifd_onnx_node node = *call->node;
    struct ifd_onnx_call inner = *call;
    if (node.attr_count > ATTRS_MAX) {
        return ifd_build_fail(b, IFD_INVALID, "%u attributes", node.attr_count);
    }
    for (uint32_t i = 0; i < node.attr_count; i++) {
        attrs[i] = node.attr[i];
    }
    if (given != IFD_NONE) {
        pads = ifd_build_ints_of(b, given, "the padding");
        attrs[node.attr_count++] = (struct ifd_onnx_attr){
            .name = {.data = "pads", .size = 4}, .ints = pads.value, .int_count = pads.count};
    }
    node.attr = attrs;
    inner.node = &node;
    return transposed(&inner, call->input[0], call->input[1], ifd_onnx_input(call, 3));
}

/* ---- products ---- */

uint32_t ifd_onnx_product(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    uint32_t x = call->input[0], y = call->input[1], c = ifd_onnx_input(call, 2);
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

static uint32_t layer(struct ifd_onnx_call *call, enum ifd_onnx_layer which)
{
    const uint32_t x = call->input[0];
    switch (which) {
    case IFD_ONNX_CONV:
        return ifd_onnx_convolve(call, x, call->input[1], ifd_onnx_input(call, 2), NULL);
    case IFD_ONNX_CONV_TRANSPOSE:
        return transposed(call, x, call->input[1], ifd_onnx_input(call, 2));
    case IFD_ONNX_CONV_TRANSPOSE_WITH_PADS:
        return transposed_with_pads(call);
    case IFD_ONNX_GEMM:
        return ifd_onnx_product(call);
    case IFD_ONNX_MATMUL:
        return ifd_build_matmul(call->b, x, call->input[1]);
    }
    return IFD_NONE;
}

void ifd_onnx_layer(struct ifd_onnx_call *call, int which)
{
    call->output[0] = layer(call, (enum ifd_onnx_layer)which);
}
