/* Pools over up to three directions. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/window.h"

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t value)
{
    return ifd_build_desc(call->b, value)->shape;
}

/* Behind the last direction's end there is room for one more window where the size is rounded up.
 */
static void round_up(struct ifd_onnx_window *w, const int64_t *input)
{
    for (uint32_t i = 0; i < w->dims; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t span = input[i] + w->before[i] + w->after[i] - reach;
        if (span < 0 && -span < w->stride[i] && -span < w->kernel[i] && w->dilation[i] == 1) {
            w->kernel[i] += span; /* the one window there is reads what there is */
            continue;
        }
        const int64_t rest = span < 0 || w->stride[i] == 0 ? 0 : span % w->stride[i];
        const int64_t begin = span - rest + w->stride[i]; /* of the window more */
        if (rest != 0 && begin < input[i] + w->before[i]) {
            w->after[i] += w->stride[i] - rest;
        }
    }
}

static bool pool_window(struct ifd_onnx_call *call, uint32_t x, struct ifd_onnx_window *ret)
{
    const struct ifd_shape input = shape_of(call, x);
    struct ifd_ints kernel;
    if (call->b->code != IFD_OK || !ifd_onnx_kernel(call, &kernel) || input.rank < 3 ||
        input.rank > 5 || kernel.count != input.rank - 2) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "a pool over shape %s", ifd_shape_text(&input).s);
        return false;
    }
    *ret = ifd_onnx_window(call, kernel.count, input.dim + 2, kernel.value);
    if (call->b->code == IFD_OK && ifd_onnx_int(call, "ceil_mode", 0) != 0) {
        round_up(ret, input.dim + 2);
    }
    return call->b->code == IFD_OK;
}

static bool has_dilation(const struct ifd_onnx_window *w)
{
    bool has = false;
    for (uint32_t i = 0; i < w->dims; i++) {
        has = has || w->dilation[i] != 1;
    }
    return has;
}

static uint32_t pooled(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x,
                       const struct ifd_onnx_window *w)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    const uint32_t nhwc = ifd_build_to_nhwc(b, ifd_onnx_with_height(b, x));
    const struct ifd_pool2d_attrs attrs = {.window = ifd_onnx_plane(w),
                                           .filter_h = w->dims == 2 ? (int32_t)w->kernel[0] : 1,
                                           .filter_w = (int32_t)w->kernel[w->dims - 1]};
    const uint32_t y = ifd_build_to_nchw(b, ifd_build_node(b, op, &nhwc, 1, NULL, &attrs));
    return rank == 3 ? ifd_onnx_without_height(b, y) : y;
}

/* Over three directions: height and width first, then depth, which is exact for maxima, and for
 * averages without padding. */
static uint32_t pooled_3d(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x,
                          const struct ifd_onnx_window *w)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = shape_of(call, x);
    struct ifd_onnx_window inner = {.dims = 2}, outer = {.dims = 2};
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

/* ---- windows place by place ---- */

#define TAPS_MAX 512 /* elements of a window */

static struct ifd_shape pooled_shape(const struct ifd_onnx_window *w, const struct ifd_shape *in)
{
    struct ifd_shape shape = *in;
    for (uint32_t i = 0; i < w->dims; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t span = in->dim[2 + i] + w->before[i] + w->after[i] - reach;
        shape.dim[2 + i] = span < 0 || w->stride[i] < 1 ? 0 : span / w->stride[i] + 1;
    }
    return shape;
}

/* x with the least number around it. */
static uint32_t padded(struct ifd_builder *b, uint32_t x, const struct ifd_onnx_window *w,
                       bool has_least)
{
    struct ifd_pad_attrs pad = {.before = {.count = w->dims + 2},
                                .after = {.count = w->dims + 2},
                                .has_value = has_least,
                                .value = has_least ? -HUGE_VALF : 0};
    for (uint32_t i = 0; i < w->dims; i++) {
        pad.before.value[2 + i] = w->before[i];
        pad.after.value[2 + i] = w->after[i];
    }
    return ifd_build_node(b, IFD_OP_PAD, &x, 1, NULL, &pad);
}

/* What every window has at one of its places. */
static uint32_t tap(struct ifd_builder *b, uint32_t x, const struct ifd_onnx_window *w,
                    const int64_t *at, const struct ifd_shape *out)
{
    struct ifd_strided_slice_attrs attrs = {.begin = {.count = out->rank},
                                            .end = {.count = out->rank},
                                            .strides = {.count = out->rank}};
    for (uint32_t d = 0; d < out->rank; d++) {
        const bool is_outer = d < 2;
        const int64_t begin = is_outer ? 0 : at[d - 2] * w->dilation[d - 2];
        const int64_t stride = is_outer ? 1 : w->stride[d - 2];
        attrs.begin.value[d] = begin;
        attrs.end.value[d] = begin + (out->dim[d] - 1) * stride + 1;
        attrs.strides.value[d] = stride;
    }
    return ifd_build_node(b, IFD_OP_STRIDED_SLICE, &x, 1, NULL, &attrs);
}

/* Steps from an element to the next along direction i, in the numbers that "Indices" has. */
static int64_t step_along(const struct ifd_onnx_call *call, const struct ifd_shape *in, uint32_t i)
{
    const bool is_column_major = ifd_onnx_int(call, "storage_order", 0) != 0;
    int64_t step = 1;
    for (uint32_t d = 2; d < in->rank; d++) {
        step *= (is_column_major ? d < 2 + i : d > 2 + i) ? in->dim[d] : 1;
    }
    return step;
}

/* Numbers 0, step, 2 step … along dimension d. */
static uint32_t ramp(struct ifd_builder *b, int64_t count, int64_t first, int64_t step, uint32_t d,
                     uint32_t rank)
{
    int64_t dim[IFD_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, (double)first),
                                ifd_build_number(b, IFD_S64, (double)(first + count * step)),
                                ifd_build_number(b, IFD_S64, (double)step)};
    dim[d] = count;
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL), dim, rank);
}

/* The number in the whole tensor of the element that the window has at place: that of its first
 * element, which may lie in the padding, and what the place adds. */
static uint32_t element_numbers(struct ifd_onnx_call *call, uint32_t place, const int64_t *offsets,
                                uint32_t count, const struct ifd_onnx_window *w,
                                const struct ifd_shape *in, const struct ifd_shape *out)
{
    struct ifd_builder *b = call->b;
    int64_t size = 1;
    for (uint32_t d = 2; d < in->rank; d++) {
        size *= in->dim[d];
    }
    const uint32_t list[2] = {ifd_build_list(b, offsets, count), place};
    uint32_t number = ifd_build_node(b, IFD_OP_GATHER, list, 2, NULL, NULL);
    number = ifd_build_binary(b, IFD_OP_ADD, number,
                              ramp(b, in->dim[0], 0, in->dim[1] * size, 0, out->rank));
    number = ifd_build_binary(b, IFD_OP_ADD, number, ramp(b, in->dim[1], 0, size, 1, out->rank));
    for (uint32_t i = 0; i < w->dims; i++) {
        const int64_t step = step_along(call, in, i);
        number = ifd_build_binary(
            b, IFD_OP_ADD, number,
            ramp(b, out->dim[2 + i], -w->before[i] * step, w->stride[i] * step, 2 + i, out->rank));
    }
    return number;
}

/* The places of a window one after the other. */
struct taps {
    uint32_t count;
    uint32_t value[TAPS_MAX]; /* what all windows have there */
    int64_t offset[TAPS_MAX]; /* of the element behind the window's first one */
};

static bool find_taps(struct ifd_onnx_call *call, uint32_t x, const struct ifd_onnx_window *w,
                      bool has_least, struct taps *ret)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = shape_of(call, x);
    const struct ifd_shape out = pooled_shape(w, &in);
    uint32_t count = 1;
    for (uint32_t i = 0; i < w->dims; i++) {
        count = w->kernel[i] >= 1 && w->kernel[i] <= TAPS_MAX ? count * (uint32_t)w->kernel[i] : 0;
        if (count < 1 || count > TAPS_MAX || out.dim[2 + i] < 1) {
            ifd_build_fail(b, IFD_UNSUPPORTED,
                           "a window of %lld elements along direction %u, limit %d in all",
                           (long long)w->kernel[i], i, TAPS_MAX);
            return false;
        }
    }
    ret->count = count;
    const uint32_t whole = padded(b, x, w, has_least);
    for (uint32_t t = 0; b->code == IFD_OK && t < count; t++) {
        int64_t at[IFD_ONNX_DIRECTIONS] = {0};
        uint32_t rest = t;
        ret->offset[t] = 0;
        for (uint32_t i = w->dims; i-- > 0;) {
            at[i] = rest % (uint32_t)w->kernel[i];
            rest /= (uint32_t)w->kernel[i];
            ret->offset[t] += at[i] * w->dilation[i] * step_along(call, &in, i);
        }
        ret->value[t] = tap(b, whole, w, at, &out);
    }
    return b->code == IFD_OK;
}

static uint32_t fold(struct ifd_builder *b, enum ifd_op op, const struct taps *taps)
{
    uint32_t y = taps->value[0];
    for (uint32_t t = 1; b->code == IFD_OK && t < taps->count; t++) {
        y = ifd_build_binary(b, op, y, taps->value[t]);
    }
    return y;
}

static uint32_t sum_by_taps(struct ifd_onnx_call *call, uint32_t x, const struct ifd_onnx_window *w)
{
    struct taps taps;
    return find_taps(call, x, w, false, &taps) ? fold(call->b, IFD_OP_ADD, &taps) : IFD_NONE;
}

/* The largest of each window, and which it is. */
static uint32_t max_by_taps(struct ifd_onnx_call *call, uint32_t x, const struct ifd_onnx_window *w)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = shape_of(call, x);
    const struct ifd_shape out = pooled_shape(w, &in);
    struct taps taps;
    if (!find_taps(call, x, w, true, &taps)) {
        return IFD_NONE;
    }
    const uint32_t y = fold(b, IFD_OP_MAXIMUM, &taps);
    if (call->output_count > 1 && b->code == IFD_OK) {
        const struct ifd_axis_attrs pack = {.axis = 0};
        const struct ifd_arg_attrs arg = {.axis = 0};
        const struct ifd_desc index = {.dtype = IFD_S64};
        const uint32_t all = ifd_build_node(b, IFD_OP_PACK, taps.value, taps.count, NULL, &pack);
        const uint32_t place = ifd_build_node(b, IFD_OP_ARG_MAX, &all, 1, &index, &arg);
        call->output[1] = element_numbers(call, place, taps.offset, taps.count, w, &in, &out);
    }
    return y;
}

/* The largest of the largest along each direction: few places, whatever the window's size. */
static uint32_t max_along_each(struct ifd_onnx_call *call, uint32_t x,
                               const struct ifd_onnx_window *w)
{
    for (uint32_t i = 0; call->b->code == IFD_OK && i < w->dims; i++) {
        struct ifd_onnx_window line = *w;
        for (uint32_t k = 0; k < w->dims; k++) {
            if (k != i) {
                line.kernel[k] = line.stride[k] = line.dilation[k] = 1;
                line.before[k] = line.after[k] = 0;
            }
        }
        x = max_by_taps(call, x, &line);
    }
    return x;
}

static uint32_t max_pool(struct ifd_onnx_call *call, uint32_t given)
{
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = *ifd_build_desc(b, given);
    /* whole numbers that are not quantized are few enough for f32 to hold */
    const uint32_t x = desc.quant.count == 1 ? given : ifd_build_cast(b, given, IFD_F32);
    struct ifd_onnx_window w;
    if (!pool_window(call, x, &w)) {
        return IFD_NONE;
    }
    const uint32_t y = call->output_count > 1 ? max_by_taps(call, x, &w)
                       : has_dilation(&w)     ? max_along_each(call, x, &w)
                       : w.dims == 3          ? pooled_3d(call, IFD_OP_MAX_POOL2D, x, &w)
                                              : pooled(call, IFD_OP_MAX_POOL2D, x, &w);
    return desc.quant.count == 1 ? y : ifd_build_cast(b, y, desc.dtype);
}

/* Channels lie last. */
static uint32_t nhwc_max_pool(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_to_nhwc(call->b, max_pool(call, ifd_build_to_nchw(call->b, x)));
}

/* ---- averages ---- */

/* Ones where x has elements, of one sample and one channel. */
static uint32_t ones_like(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_shape in = shape_of(call, x);
    struct ifd_broadcast_to_attrs ones = {.shape = {.count = in.rank, .value = {1, 1}}};
    const uint32_t one = ifd_build_number(call->b, IFD_F32, 1);
    for (uint32_t d = 2; d < in.rank; d++) {
        ones.shape.value[d] = in.dim[d];
    }
    return ifd_build_node(call->b, IFD_OP_BROADCAST_TO, &one, 1, NULL, &ones);
}

/* Over three directions with padding that does not count: the sum of what is there by its number,
 * each of them an average over the padded tensor. */
static uint32_t average_without_padding(struct ifd_onnx_call *call, uint32_t x,
                                        const struct ifd_onnx_window *w)
{
    struct ifd_builder *b = call->b;
    struct ifd_onnx_window inner = *w;
    bool has_padding = false;
    for (uint32_t i = 0; i < w->dims; i++) {
        has_padding = has_padding || w->before[i] + w->after[i] > 0;
        inner.before[i] = inner.after[i] = 0;
    }
    if (!has_padding) {
        return pooled_3d(call, IFD_OP_AVERAGE_POOL2D, x, w);
    }
    const uint32_t there = padded(b, ones_like(call, x), w, false);
    const uint32_t share = pooled_3d(call, IFD_OP_AVERAGE_POOL2D, there, &inner);
    return ifd_build_binary(b, IFD_OP_DIV,
                            pooled_3d(call, IFD_OP_AVERAGE_POOL2D, padded(b, x, w, false), &inner),
                            share);
}

/* The padding becomes part of the tensor; the room for one more window does not. */
static uint32_t count_padding(struct ifd_onnx_call *call, uint32_t x, struct ifd_onnx_window *w)
{
    const struct ifd_shape in = shape_of(call, x);
    const struct ifd_onnx_window exact = ifd_onnx_window(call, w->dims, in.dim + 2, w->kernel);
    const uint32_t y = padded(call->b, x, &exact, false);
    for (uint32_t i = 0; i < w->dims; i++) {
        w->before[i] = 0;
        w->after[i] -= exact.after[i];
    }
    return y;
}

uint32_t ifd_onnx_average(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_onnx_window w;
    if (!pool_window(call, x, &w)) {
        return IFD_NONE;
    }
    x = ifd_onnx_int(call, "count_include_pad", 0) != 0 ? count_padding(call, x, &w) : x;
    if (has_dilation(&w)) {
        const uint32_t sum = sum_by_taps(call, x, &w);
        const uint32_t count = sum_by_taps(call, ones_like(call, x), &w);
        return ifd_build_binary(call->b, IFD_OP_DIV, sum, count);
    }
    return w.dims == 3 ? average_without_padding(call, x, &w)
                       : pooled(call, IFD_OP_AVERAGE_POOL2D, x, &w);
}

/* (sum of |x|^p)^(1/p), the sum being an average by the size of the window. */
static uint32_t powered(struct ifd_builder *b, uint32_t x, int64_t p)
{
    return p == 1   ? ifd_build_unary(b, IFD_OP_ABS, x)
           : p == 2 ? ifd_build_binary(b, IFD_OP_MUL, x, x)
                    : ifd_build_with(b, IFD_OP_POW, ifd_build_unary(b, IFD_OP_ABS, x), (double)p);
}

static uint32_t root(struct ifd_builder *b, uint32_t x, int64_t p)
{
    return p == 1   ? x
           : p == 2 ? ifd_build_unary(b, IFD_OP_SQRT, x)
                    : ifd_build_with(b, IFD_OP_POW, x, 1.0 / (double)p);
}

static uint32_t lp_pool(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const int64_t p = ifd_onnx_int(call, "p", 2);
    struct ifd_onnx_window w;
    if (p < 1) {
        return ifd_build_fail(b, IFD_INVALID, "\"p\" is %lld, wanted 1 or more", (long long)p);
    }
    if (!pool_window(call, x, &w)) {
        return IFD_NONE;
    }
    if (has_dilation(&w) || ifd_onnx_int(call, "ceil_mode", 0) != 0) {
        return root(b, sum_by_taps(call, powered(b, x, p), &w), p);
    }
    double count = 1;
    for (uint32_t i = 0; i < w.dims; i++) {
        count *= (double)w.kernel[i];
    }
    x = count_padding(call, powered(b, x, p), &w);
    x = w.dims == 3 ? average_without_padding(call, x, &w)
                    : pooled(call, IFD_OP_AVERAGE_POOL2D, x, &w);
    return root(b, ifd_build_with(b, IFD_OP_MUL, x, count), p);
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

static uint32_t global_lp_pool(struct ifd_onnx_call *call, uint32_t x)
{
    const int64_t p = ifd_onnx_int(call, "p", 2);
    const uint32_t terms = powered(call->b, x, p);
    return root(call->b, ifd_onnx_global(call, IFD_OP_REDUCE_SUM, terms), p);
}

static uint32_t global_average(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_onnx_global(call, IFD_OP_REDUCE_MEAN, x);
}

static uint32_t global_max(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_onnx_global(call, IFD_OP_REDUCE_MAX, x);
}

void ifd_onnx_pool(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *, uint32_t) = {
        [IFD_ONNX_AVERAGE_POOL] = ifd_onnx_average,
        [IFD_ONNX_GLOBAL_AVERAGE_POOL] = global_average,
        [IFD_ONNX_GLOBAL_LP_POOL] = global_lp_pool,
        [IFD_ONNX_GLOBAL_MAX_POOL] = global_max,
        [IFD_ONNX_LP_POOL] = lp_pool,
        [IFD_ONNX_MAX_POOL] = max_pool,
        [IFD_ONNX_NHWC_MAX_POOL] = nhwc_max_pool,
    };
    call->output[0] = functions[which](call, call->input[0]);
}
