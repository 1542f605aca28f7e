/* Sub-tensors: slice (begin and size) and strided_slice (NumPy's begin:end:stride with
 * TensorFlow's masks). */
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_slice, ifd_op_strided_slice;

/** The range of every input dimension, and the output's shape. */
struct window {
    int64_t start[IFD_MAX_RANK], step[IFD_MAX_RANK], count[IFD_MAX_RANK];
    struct ifd_shape shape;
};

static void copy_window(const struct ifd_ref_call *call, const struct window *window)
{
    const struct ifd_shape *from = &call->in[0]->shape;
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(from, stride);
    struct ifd_shape taken = {.rank = from->rank};
    int64_t start = 0;
    for (uint32_t d = 0; d < from->rank; d++) {
        start += window->count[d] > 0 ? window->start[d] * stride[d] : 0;
        stride[d] = window->count[d] > 1 ? window->step[d] * stride[d]
                                         : 0; /* the step of a single element does not matter */
        taken.dim[d] = window->count[d];
    }
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    struct ifd_walk walk;
    ifd_walk_init(&walk, &taken);
    for (ifd_walk_strided(&walk, 0, start, stride); walk.left > 0; ifd_walk_next(&walk)) {
        ifd_ref_copy(bytes, call->output[0], walk.done, call->input[0], (size_t)walk.offset[0]);
    }
}

/** Replaces a list of the attributes by input i, if present. */
static enum ifd_code override(const struct ifd_op_def *def, const char *what,
                              const struct ifd_desc *desc, const void *data, struct ifd_ints *ints,
                              struct ifd_err *err)
{
    return desc ? ifd_infer_ints(def, what, desc, data, ints, err) : IFD_OK;
}

static const void *infer_data(const struct ifd_infer *in, uint32_t i)
{
    return i < in->input_count ? in->input[i].data.data : NULL;
}

static const struct ifd_desc *call_desc(const struct ifd_ref_call *call, uint32_t i)
{
    return i < call->input_count ? call->in[i] : NULL;
}

static const void *call_data(const struct ifd_ref_call *call, uint32_t i)
{
    return i < call->input_count ? call->input[i] : NULL;
}

/* ---- slice ---- */

/** The optional inputs 1 … 3, for shape rule and reference kernel. */
struct params {
    const struct ifd_desc *desc[4];
    const void *data[4];
};

static struct params infer_params(const struct ifd_infer *in)
{
    struct params params = {{NULL}, {NULL}};
    for (uint32_t i = 1; i < 4; i++) {
        params.desc[i] = ifd_infer_input(in, i);
        params.data[i] = infer_data(in, i);
    }
    return params;
}

static struct params call_params(const struct ifd_ref_call *call)
{
    struct params params = {{NULL}, {NULL}};
    for (uint32_t i = 1; i < 4; i++) {
        params.desc[i] = call_desc(call, i);
        params.data[i] = call_data(call, i);
    }
    return params;
}

static enum ifd_code slice_window(const struct ifd_slice_attrs *attrs, const struct params *params,
                                  const struct ifd_shape *shape, struct window *ret,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_slice;
    struct ifd_ints begin = attrs->begin;
    struct ifd_ints size = attrs->size;
    enum ifd_code code = override(def, "input 1", params->desc[1], params->data[1], &begin, err);
    if (code == IFD_OK) {
        code = override(def, "input 2", params->desc[2], params->data[2], &size, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    if (begin.count != shape->rank || size.count != shape->rank) {
        return ifd_fail(err, IFD_INVALID, "slice: %u begins and %u sizes for shape %s", begin.count,
                        size.count, ifd_shape_text(shape).s);
    }
    struct window window = {.shape = {.rank = shape->rank}};
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t dim = shape->dim[d];
        const int64_t first = begin.value[d];
        if (first < 0 || first > dim || size.value[d] < -1 || size.value[d] > dim - first) {
            return ifd_fail(err, IFD_INVALID,
                            "slice: begin %lld, size %lld of dimension %u of shape %s",
                            (long long)first, (long long)size.value[d], d, ifd_shape_text(shape).s);
        }
        window.start[d] = first;
        window.step[d] = 1;
        window.count[d] = size.value[d] == -1 ? dim - first : size.value[d];
        window.shape.dim[d] = window.count[d];
    }
    *ret = window;
    return IFD_OK;
}

static enum ifd_code slice_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_slice;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    struct window window;
    if (code == IFD_OK) {
        const struct params params = infer_params(in);
        code = slice_window(in->attrs, &params, &in->input[0].desc->shape, &window, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &window.shape, err) : code;
}

static enum ifd_code slice_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    struct window window;
    const struct params params = call_params(call);
    const enum ifd_code code =
        slice_window(call->attrs, &params, &call->in[0]->shape, &window, err);
    if (code == IFD_OK) {
        copy_window(call, &window);
    }
    return code;
}

/* ---- strided_slice ---- */

/** begin:end:stride of one entry of the specification. */
struct range {
    int64_t begin, end, stride;
    bool opens, closes; /* begin or end is masked: as far as possible */
    bool shrinks;       /* one element; its dimension is removed */
};

static int64_t clamp_s64(int64_t x, int64_t min, int64_t max)
{
    return x < min ? min : x > max ? max : x;
}

/** An index into a dimension; a negative one counts from the end. Clamped to min … max. */
static int64_t position(int64_t index, int64_t dim, int64_t min, int64_t max)
{
    return clamp_s64(index < 0 ? clamp_s64(index, -dim - 1, 0) + dim : index, min, max);
}

/** Applies a range to dimension d of the input and appends the result to the output's shape. */
static enum ifd_code take_range(struct window *window, const struct ifd_shape *shape, uint32_t d,
                                const struct range *range, struct ifd_err *err)
{
    const int64_t dim = shape->dim[d];
    if (range->stride == 0 || (range->shrinks && range->stride < 0)) {
        return ifd_fail(err, IFD_INVALID, "strided_slice: stride %lld of dimension %u",
                        (long long)range->stride, d);
    }
    const bool forward = range->stride > 0;
    const int64_t min = forward ? 0 : -1;
    const int64_t max = forward ? dim : dim - 1;
    const int64_t start =
        range->opens ? (forward ? 0 : dim - 1) : position(range->begin, dim, min, max);
    const int64_t stop = range->closes ? (forward ? dim : -1) : position(range->end, dim, min, max);
    window->start[d] = start;
    window->step[d] = range->stride;
    if (range->shrinks) {
        if (start >= dim || (!range->opens && range->begin < -dim)) {
            return ifd_fail(err, IFD_INVALID,
                            "strided_slice: index %lld of dimension %u of shape %s",
                            (long long)range->begin, d, ifd_shape_text(shape).s);
        }
        window->count[d] = 1;
        return IFD_OK;
    }
    const int64_t span = forward ? stop - start : start - stop;
    const int64_t stride = forward                      ? range->stride
                           : range->stride == INT64_MIN ? INT64_MAX
                                                        : -range->stride;
    window->count[d] = span > 0 ? (span - 1) / stride + 1 : 0;
    if (window->shape.rank == IFD_MAX_RANK) {
        return ifd_fail(err, IFD_TOO_LARGE, "strided_slice: more than %d dimensions", IFD_MAX_RANK);
    }
    window->shape.dim[window->shape.rank++] = window->count[d];
    return IFD_OK;
}

/** One entry of the lists, masks applied. offset: end counts from begin. */
static struct range range_of(const struct ifd_strided_slice_attrs *attrs,
                             const struct ifd_strided_slice_attrs *lists, uint32_t i)
{
    const int32_t bit = 1 << i;
    struct range range = {
        .begin = lists->begin.value[i],
        .end = lists->end.value[i],
        .stride = lists->strides.value[i],
        .opens = (attrs->begin_mask & bit) != 0,
        .closes = (attrs->end_mask & bit) != 0,
        .shrinks = (attrs->shrink_axis_mask & bit) != 0,
    };
    if (attrs->offset && __builtin_add_overflow(range.end, range.begin, &range.end)) {
        range.end = range.begin < 0 ? INT64_MIN : INT64_MAX;
    }
    return range;
}

/** Number of entries from i on that name a dimension of the input. */
static uint32_t named_after(const struct ifd_strided_slice_attrs *attrs, uint32_t i, uint32_t count)
{
    uint32_t named = 0;
    for (; i < count; i++) {
        named += ((attrs->new_axis_mask | attrs->ellipsis_mask) & 1 << i) == 0;
    }
    return named;
}

/** Walks over the specification; entries are new axes, one ellipsis at most, and ranges. */
static enum ifd_code build_window(const struct ifd_strided_slice_attrs *attrs,
                                  const struct ifd_strided_slice_attrs *lists,
                                  const struct ifd_shape *shape, struct window *window,
                                  struct ifd_err *err)
{
    static const struct range whole = {.stride = 1, .opens = true, .closes = true};
    const uint32_t count = lists->begin.count;
    uint32_t d = 0;
    enum ifd_code code = IFD_OK;
    bool had_ellipsis = false;
    for (uint32_t i = 0; code == IFD_OK && i <= count; i++) {
        const bool is_end = i == count;
        const bool is_ellipsis = !is_end && (attrs->ellipsis_mask & 1 << i) != 0;
        if (is_end || is_ellipsis) { /* dimensions without an entry are taken whole */
            const uint32_t named = is_end ? 0 : named_after(attrs, i + 1, count);
            if (is_ellipsis && had_ellipsis) {
                return ifd_fail(err, IFD_INVALID, "strided_slice: two ellipses");
            }
            for (; code == IFD_OK && d + named < shape->rank; d++) {
                code = take_range(window, shape, d, &whole, err);
            }
            had_ellipsis = true;
        } else if ((attrs->new_axis_mask & 1 << i) != 0) {
            if (window->shape.rank == IFD_MAX_RANK) {
                return ifd_fail(err, IFD_TOO_LARGE, "strided_slice: more than %d dimensions",
                                IFD_MAX_RANK);
            }
            window->shape.dim[window->shape.rank++] = 1;
        } else if (d == shape->rank) {
            return ifd_fail(err, IFD_INVALID,
                            "strided_slice: more entries than shape %s has dimensions",
                            ifd_shape_text(shape).s);
        } else {
            const struct range range = range_of(attrs, lists, i);
            code = take_range(window, shape, d, &range, err);
            d++;
        }
    }
    return code;
}

static enum ifd_code strided_window(const struct ifd_strided_slice_attrs *attrs,
                                    const struct params *params, const struct ifd_shape *shape,
                                    struct window *ret, struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_strided_slice;
    struct ifd_strided_slice_attrs lists = {
        .begin = attrs->begin, .end = attrs->end, .strides = attrs->strides};
    enum ifd_code code =
        override(def, "input 1", params->desc[1], params->data[1], &lists.begin, err);
    if (code == IFD_OK) {
        code = override(def, "input 2", params->desc[2], params->data[2], &lists.end, err);
    }
    if (code == IFD_OK) {
        code = override(def, "input 3", params->desc[3], params->data[3], &lists.strides, err);
    }
    if (code == IFD_OK && lists.strides.count == 0) { /* all ones */
        lists.strides.count = lists.begin.count;
        for (uint32_t i = 0; i < lists.strides.count; i++) {
            lists.strides.value[i] = 1;
        }
    }
    if (code == IFD_OK &&
        (lists.begin.count != lists.end.count || lists.begin.count != lists.strides.count)) {
        code = ifd_fail(err, IFD_INVALID, "strided_slice: %u begins, %u ends, %u strides",
                        lists.begin.count, lists.end.count, lists.strides.count);
    }
    struct window window = {.shape = {.rank = 0}};
    if (code == IFD_OK) {
        code = build_window(attrs, &lists, shape, &window, err);
    }
    if (code == IFD_OK) {
        *ret = window;
    }
    return code;
}

static enum ifd_code strided_slice_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                         struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_strided_slice;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    struct window window;
    if (code == IFD_OK) {
        const struct params params = infer_params(in);
        code = strided_window(in->attrs, &params, &in->input[0].desc->shape, &window, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &window.shape, err) : code;
}

static enum ifd_code strided_slice_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    struct window window;
    const struct params params = call_params(call);
    const enum ifd_code code =
        strided_window(call->attrs, &params, &call->in[0]->shape, &window, err);
    if (code == IFD_OK) {
        copy_window(call, &window);
    }
    return code;
}

/* ---- definitions ---- */

#define INDEX_MAX 9007199254740991.0 /* 2^53 - 1: beyond every dimension, exact as a double */
#define LIST(type, name, least)                                                                    \
    {                                                                                              \
#name, IFD_ATTR_INTS, offsetof(struct type, name), 0, least, INDEX_MAX                     \
    }
#define MASK(name)                                                                                 \
    {                                                                                              \
#name, IFD_ATTR_INT, offsetof(struct ifd_strided_slice_attrs, name), 0, 0, 255             \
    }

static const struct ifd_attr_def slice_attrs[] = {
    LIST(ifd_slice_attrs, begin, 0),
    LIST(ifd_slice_attrs, size, -1),
};

static const struct ifd_attr_def strided_slice_attrs[] = {
    LIST(ifd_strided_slice_attrs, begin, -INDEX_MAX),
    LIST(ifd_strided_slice_attrs, end, -INDEX_MAX),
    LIST(ifd_strided_slice_attrs, strides, -INDEX_MAX),
    MASK(begin_mask),
    MASK(end_mask),
    MASK(ellipsis_mask),
    MASK(new_axis_mask),
    MASK(shrink_axis_mask),
    {"offset", IFD_ATTR_BOOL, offsetof(struct ifd_strided_slice_attrs, offset), 0, 0, 1},
};

static bool slice_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_slice_attrs *slice = attrs;
    return ifd_permute_ints(&slice->begin, perm) && ifd_permute_ints(&slice->size, perm);
}

static bool strided_slice_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_strided_slice_attrs *slice = attrs;
    slice->begin_mask = ifd_permute_mask(slice->begin_mask, perm);
    slice->end_mask = ifd_permute_mask(slice->end_mask, perm);
    return ifd_permute_ints(&slice->begin, perm) && ifd_permute_ints(&slice->end, perm) &&
           ifd_permute_ints(&slice->strides, perm) &&
           (slice->ellipsis_mask | slice->new_axis_mask | slice->shrink_axis_mask) == 0;
}

const struct ifd_op_def ifd_op_slice = {
    .name = "slice",
    .min_inputs = 1,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = slice_attrs,
    .attr_count = sizeof(slice_attrs) / sizeof(slice_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_slice_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_SLICE,
    .shape_inputs = 1u << 1 | 1u << 2,
    .infer = slice_infer,
    .ref = slice_ref,
    .moves = true,
    .is_identity = true,
    .permute = slice_permute,
};

const struct ifd_op_def ifd_op_strided_slice = {
    .name = "strided_slice",
    .min_inputs = 1,
    .max_inputs = 4,
    .outputs = 1,
    .attrs = strided_slice_attrs,
    .attr_count = sizeof(strided_slice_attrs) / sizeof(strided_slice_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_strided_slice_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_SLICE,
    .shape_inputs = 1u << 1 | 1u << 2 | 1u << 3,
    .infer = strided_slice_infer,
    .ref = strided_slice_ref,
    .moves = true,
    .permute = strided_slice_permute,
};
