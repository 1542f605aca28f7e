/* Slice and Range. Where a run computes the bounds, it is asked how many elements there are, not
 * which: so the turns of a loop that each write one row share a plan. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"

/* ---- bounds that a run computes ---- */

static bool is_constant(const struct ifd_onnx_call *call, uint32_t i)
{
    const uint32_t value = ifd_onnx_input(call, i);
    return value == IFD_NONE || call->b->graph->value[value].is_constant;
}

/* Both bounds are inputs, and one of them is not known. */
static bool is_computed(const struct ifd_onnx_call *call)
{
    return ifd_onnx_can_ask(call->build) && ifd_onnx_input(call, 1) != IFD_NONE &&
           ifd_onnx_input(call, 2) != IFD_NONE && is_constant(call, 3) && is_constant(call, 4) &&
           !(is_constant(call, 1) && is_constant(call, 2));
}

/* ceil(distance / step), at least 0, of s64; step > 0. */
static uint32_t count_of(struct ifd_builder *b, uint32_t distance, uint32_t step)
{
    const uint32_t last = ifd_build_with(b, IFD_OP_SUB, step, 1);
    const uint32_t whole = ifd_build_binary(b, IFD_OP_ADD, distance, last);
    const uint32_t count =
        ifd_build_binary(b, IFD_OP_DIV, ifd_build_with(b, IFD_OP_MAXIMUM, whole, 0), step);
    return count;
}

/* Numbers from the end made those from the front, and clamped; size: of each dimension. */
static uint32_t bounds(struct ifd_onnx_call *call, uint32_t i, uint32_t size)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[i], IFD_S64);
    const uint32_t is_behind =
        ifd_onnx_compared(b, IFD_OP_LESS, x, ifd_build_number(b, IFD_S64, 0));
    const uint32_t from_front =
        ifd_onnx_selected(b, is_behind, ifd_build_binary(b, IFD_OP_ADD, x, size), x);
    return ifd_build_binary(b, IFD_OP_MINIMUM, ifd_build_with(b, IFD_OP_MAXIMUM, from_front, 0),
                            size);
}

/* Elements first, first + step … of x along an axis. */
static uint32_t picked(struct ifd_builder *b, uint32_t x, uint32_t axis, uint32_t first,
                       int64_t count, int64_t step)
{
    const struct ifd_gather_attrs attrs = {.axis = (int32_t)axis};
    const uint32_t range[3] = {ifd_build_number(b, IFD_S64, 0),
                               ifd_build_number(b, IFD_S64, (double)(count * step)),
                               ifd_build_number(b, IFD_S64, (double)step)};
    const uint32_t steps = ifd_build_node(b, IFD_OP_RANGE, range, 3, NULL, NULL);
    const uint32_t input[2] = {x, ifd_build_binary(b, IFD_OP_ADD, steps, first)};
    return ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, &attrs);
}

/* Dimensions, and sizes and steps along them. */
struct cuts {
    struct ifd_ints axes, steps, sizes;
};

static bool take_cuts(struct ifd_onnx_call *call, const struct ifd_shape *shape, struct cuts *ret)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape count = ifd_build_desc(b, call->input[1])->shape;
    *ret = (struct cuts){.sizes = {.count = count.rank == 1 ? (uint32_t)count.dim[0] : 0}};
    const uint32_t n = ret->sizes.count;
    if (ifd_onnx_input(call, 3) != IFD_NONE) {
        ret->axes = ifd_build_ints_of(b, call->input[3], "axes");
    }
    if (ifd_onnx_input(call, 4) != IFD_NONE) {
        ret->steps = ifd_build_ints_of(b, call->input[4], "steps");
    }
    if (b->code != IFD_OK || count.rank != 1 || count.dim[0] > shape->rank ||
        !ifd_shape_equal(&count, &ifd_build_desc(b, call->input[2])->shape) ||
        (ret->axes.count > 0 && ret->axes.count != n) ||
        (ret->steps.count > 0 && ret->steps.count != n)) {
        ifd_build_fail(b, IFD_INVALID, "a slice of %s by starts of shape %s",
                       ifd_shape_text(shape).s, ifd_shape_text(&count).s);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const int64_t axis = ret->axes.count > 0 ? ret->axes.value[i] : i;
        ret->axes.value[i] = ifd_build_axis(b, axis, shape->rank);
        ret->steps.value[i] = ret->steps.count > 0 ? ret->steps.value[i] : 1;
        ret->sizes.value[i] = b->code == IFD_OK ? shape->dim[ret->axes.value[i]] : 0;
    }
    return b->code == IFD_OK;
}

static bool are_positive(const struct ifd_ints *steps, uint32_t count)
{
    bool are = true;
    for (uint32_t i = 0; i < count; i++) {
        are = are && steps->value[i] > 0 && steps->value[i] <= INT32_MAX;
    }
    return are;
}

static uint32_t computed_slice(struct ifd_onnx_call *call, uint32_t x, const struct cuts *cuts)
{
    struct ifd_builder *b = call->b;
    const uint32_t n = cuts->sizes.count;
    const uint32_t sizes = ifd_build_list(b, cuts->sizes.value, n);
    const uint32_t first = bounds(call, 1, sizes), last = bounds(call, 2, sizes);
    const uint32_t counts = count_of(b, ifd_build_binary(b, IFD_OP_SUB, last, first),
                                     ifd_build_list(b, cuts->steps.value, n));
    const struct ifd_ints count = ifd_build_ints_of(b, counts, "the size of a slice");
    for (uint32_t i = 0; i < n && b->code == IFD_OK; i++) {
        x = picked(b, x, (uint32_t)cuts->axes.value[i], ifd_build_cut(b, first, 0, i, 1),
                   count.value[i], cuts->steps.value[i]);
    }
    return x;
}

/* ---- bounds that are known ---- */

/* One dimension of a slice in the terms of strided_slice. */
static void slice_dimension(struct ifd_strided_slice_attrs *attrs, uint32_t d, int64_t count,
                            int64_t start, int64_t end, int64_t step)
{
    const int64_t lowest = step < 0 ? -1 : 0;
    const int64_t highest = step < 0 ? count - 1 : count;
    start = start < 0 ? start + count : start;
    end = end < -count ? -1 - count : end; /* what is far below keeps clear of overflow */
    end = end < 0 ? end + count : end;
    start = start < (step < 0 ? lowest : 0) ? lowest : start > highest ? highest : start;
    /* An end beyond the last element stays: it may cut where there are more samples. */
    const int64_t last = step < 0 ? highest : highest > INT32_MAX ? highest : INT32_MAX;
    end = end < lowest ? lowest : end > last ? last : end;
    attrs->begin.value[d] = start < 0 ? 0 : start;
    attrs->end.value[d] = end;
    attrs->strides.value[d] = step;
    if (step < 0 && start < 0) { /* nothing lies in front of the first element */
        attrs->end.value[d] = 0;
    } else if (step < 0 && end < 0) {
        attrs->end.value[d] = 0;
        attrs->end_mask |= 1 << d;
    }
}

/* Numbers of attribute name, or of input i. */
static bool slice_numbers(struct ifd_onnx_call *call, const char *name, uint32_t i,
                          struct ifd_ints *ret)
{
    const uint32_t input = ifd_onnx_input(call, i);
    if (input != IFD_NONE) {
        *ret = ifd_build_ints_of(call->b, input, name);
        return true;
    }
    return ifd_onnx_ints(call, name, ret);
}

uint32_t ifd_onnx_slice(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    struct cuts cuts;
    if (is_computed(call)) {
        if (!take_cuts(call, &shape, &cuts)) {
            return IFD_NONE;
        }
        if (are_positive(&cuts.steps, cuts.sizes.count)) {
            return computed_slice(call, x, &cuts);
        }
    }
    struct ifd_ints starts, ends, axes, steps;
    const bool has_bounds =
        slice_numbers(call, "starts", 1, &starts) && slice_numbers(call, "ends", 2, &ends);
    const bool has_axes = slice_numbers(call, "axes", 3, &axes);
    const bool has_steps = slice_numbers(call, "steps", 4, &steps);
    if (!has_bounds || starts.count != ends.count || (has_axes && axes.count != starts.count) ||
        (has_steps && steps.count != starts.count) || starts.count > shape.rank) {
        return ifd_build_fail(b, IFD_INVALID, "a slice of %s by %u starts",
                              ifd_shape_text(&shape).s, has_bounds ? starts.count : 0);
    }
    struct ifd_strided_slice_attrs attrs = {.begin = {.count = shape.rank},
                                            .end = {.count = shape.rank},
                                            .strides = {.count = shape.rank}};
    for (uint32_t d = 0; d < shape.rank; d++) {
        slice_dimension(&attrs, d, shape.dim[d], 0, shape.dim[d], 1);
    }
    for (uint32_t i = 0; i < starts.count; i++) {
        const uint32_t d = has_axes ? ifd_build_axis(b, axes.value[i], shape.rank) : i;
        const int64_t step = has_steps ? steps.value[i] : 1;
        if (step == 0 || step == INT64_MIN) {
            return ifd_build_fail(b, IFD_INVALID, "a slice in steps of %lld", (long long)step);
        }
        const int64_t start = starts.value[i] < -shape.dim[d] ? -1 - shape.dim[d] : starts.value[i];
        slice_dimension(&attrs, d, shape.dim[d], start, ends.value[i], step);
    }
    return ifd_build_node(b, IFD_OP_STRIDED_SLICE, &x, 1, NULL, &attrs);
}

/* ---- range ---- */

static uint32_t range(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    uint32_t scalar[3];
    int64_t step = 0;
    for (uint32_t i = 0; i < 3; i++) {
        scalar[i] = ifd_onnx_widened(b, ifd_build_reshape(b, call->input[i], NULL, 0));
    }
    const struct ifd_bytes content = ifd_build_content(b, scalar[2]);
    if (content.size == sizeof(step)) {
        memcpy(&step, content.data, sizeof(step));
    }
    const bool is_known = is_constant(call, 0) && is_constant(call, 1);
    if (is_known || !ifd_onnx_can_ask(call->build) || step <= 0 || step > INT32_MAX ||
        ifd_build_desc(b, scalar[0])->dtype != IFD_S64) {
        return ifd_build_node(b, IFD_OP_RANGE, scalar, 3, NULL, NULL);
    }
    const uint32_t distance = ifd_build_binary(b, IFD_OP_SUB, scalar[1], scalar[0]);
    const uint32_t counted = count_of(b, distance, scalar[2]);
    const struct ifd_ints count = ifd_build_ints_of(b, counted, "the length of a range");
    const uint32_t from_0[3] = {
        ifd_build_number(b, IFD_S64, 0),
        ifd_build_number(b, IFD_S64, (double)(count.count > 0 ? count.value[0] * step : 0)),
        scalar[2]};
    return ifd_build_binary(b, IFD_OP_ADD, ifd_build_node(b, IFD_OP_RANGE, from_0, 3, NULL, NULL),
                            scalar[0]);
}

uint32_t ifd_onnx_range(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_cast(call->b, range(call), ifd_build_desc(call->b, x)->dtype);
}
