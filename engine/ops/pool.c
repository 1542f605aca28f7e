/* average_pool2d, max_pool2d: a window over height and width, one channel at a time. */
#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/window_attrs.h"

#include <math.h>

/* Dimensions of input and output. */
enum { N, H, W, C };

/** Stored numbers are taken as they are: the scale of the input does not count, as in LiteRT. */
static enum ifd_code check_types(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 const struct ifd_desc *output, struct ifd_err *err)
{
    const struct ifd_pool2d_attrs *attrs = in->attrs;
    const struct ifd_desc *input = in->input[0].desc;
    enum ifd_code code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    if (code == IFD_OK && attrs->activation > IFD_ACT_RELU6) {
        code = ifd_fail(err, IFD_UNSUPPORTED, "%s: fused activation %d is not supported", def->name,
                        attrs->activation);
    }
    if (code != IFD_OK || !ifd_dtype_is_quantized(input->dtype)) {
        return code;
    }
    code = ifd_infer_any_scale(def, "the input", input, err);
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "the output", &output[0], err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_act_bounds(def, attrs->activation, &output[0], err);
    }
    return code;
}

static enum ifd_code pool_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_pool2d_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 0, 4, err);
    }
    if (code == IFD_OK) {
        code = check_types(def, in, output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    struct ifd_window_size size;
    /* padding as large as the filter would make empty windows */
    if (!ifd_window_resolve(&attrs->window, attrs->filter_h, attrs->filter_w, input->dim[H],
                            input->dim[W], &size) ||
        size.pad_top >= attrs->filter_h || size.pad_bottom >= attrs->filter_h ||
        size.pad_left >= attrs->filter_w || size.pad_right >= attrs->filter_w) {
        return ifd_fail(err, IFD_INVALID, "%s: a %dx%d filter does not fit input %s", def->name,
                        attrs->filter_h, attrs->filter_w, ifd_shape_text(input).s);
    }
    const struct ifd_shape shape = {.rank = 4,
                                    .dim = {input->dim[N], size.out_h, size.out_w, input->dim[C]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* One result per channel: a row of sums or maxima. */
union row {
    void *any;
    float *f32;
    int64_t *s64;
};

static enum ifd_code pool_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                  size_t *ret_bytes, struct ifd_err *err)
{
    (void)in;
    const size_t channels = (size_t)output[0].shape.dim[C];
    if (!ifd_size_mul(channels, sizeof(int64_t), ret_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "pool: %zu channels need too much memory", channels);
    }
    return IFD_OK;
}

/* The input under one window: rows y … y_end - 1, columns x … x_end - 1 of sample n. */
struct view {
    const struct ifd_desc *desc;
    const void *data;
    int64_t n, y, y_end, x, x_end;
};

static int64_t view_element(const struct view *view, int64_t y, int64_t x)
{
    const int64_t *dim = view->desc->shape.dim;
    return ((view->n * dim[H] + y) * dim[W] + x) * dim[C];
}

static int64_t view_pixels(const struct view *view)
{
    return (view->y_end - view->y) * (view->x_end - view->x);
}

static void view_sum(const struct view *view, union row row)
{
    const int64_t channels = view->desc->shape.dim[C];
    const bool is_float = view->desc->dtype == IFD_F32;
    for (int64_t c = 0; c < channels; c++) {
        if (is_float) {
            row.f32[c] = 0;
        } else {
            row.s64[c] = 0;
        }
    }
    for (int64_t y = view->y; y < view->y_end; y++) {
        for (int64_t x = view->x; x < view->x_end; x++) {
            const int64_t first = view_element(view, y, x);
            for (int64_t c = 0; c < channels; c++) {
                if (is_float) {
                    row.f32[c] += ((const float *)view->data)[first + c];
                } else {
                    row.s64[c] += ifd_ref_load(view->desc->dtype, view->data, (size_t)(first + c));
                }
            }
        }
    }
}

static void view_max(const struct view *view, union row row)
{
    const int64_t channels = view->desc->shape.dim[C];
    const bool is_float = view->desc->dtype == IFD_F32;
    for (int64_t c = 0; c < channels; c++) {
        if (is_float) {
            row.f32[c] = -INFINITY;
        } else {
            row.s64[c] = INT32_MIN;
        }
    }
    for (int64_t y = view->y; y < view->y_end; y++) {
        for (int64_t x = view->x; x < view->x_end; x++) {
            const int64_t first = view_element(view, y, x);
            for (int64_t c = 0; c < channels; c++) {
                if (is_float) {
                    const float value = ((const float *)view->data)[first + c];
                    row.f32[c] = row.f32[c] < value ? value : row.f32[c];
                } else {
                    const int64_t value =
                        ifd_ref_load(view->desc->dtype, view->data, (size_t)(first + c));
                    row.s64[c] = row.s64[c] < value ? value : row.s64[c];
                }
            }
        }
    }
}

/* Divides sums by count; integers are rounded to nearest, halves away from zero. */
static void divide(enum ifd_dtype dtype, union row row, int64_t channels, int64_t count)
{
    for (int64_t c = 0; c < channels; c++) {
        if (dtype == IFD_F32) {
            row.f32[c] /= (float)count;
        } else {
            const int64_t half = row.s64[c] > 0 ? count / 2 : -(count / 2);
            row.s64[c] = (row.s64[c] + half) / count;
        }
    }
}

/* Clamps a row and writes it to output elements first … first + channels - 1. */
static void store(const struct ifd_pool2d_attrs *attrs, const struct ifd_desc *desc, union row row,
                  void *output, int64_t first)
{
    const int64_t channels = desc->shape.dim[C];
    if (desc->dtype == IFD_F32) {
        float min = 0;
        float max = 0;
        ifd_ref_act_range_f32(attrs->activation, &min, &max);
        for (int64_t c = 0; c < channels; c++) {
            ((float *)output)[first + c] = ifd_ref_clamp_f32(row.f32[c], min, max);
        }
        return;
    }
    int32_t min = 0;
    int32_t max = 0;
    ifd_ref_act_range_quant(attrs->activation, desc, &min, &max);
    for (int64_t c = 0; c < channels; c++) {
        ifd_ref_store(desc->dtype, output, (size_t)(first + c),
                      ifd_ref_clamp((int32_t)row.s64[c], min, max));
    }
}

static int64_t at_least_0(int64_t x)
{
    return x < 0 ? 0 : x;
}

static int64_t at_most(int64_t x, int64_t limit)
{
    return x > limit ? limit : x;
}

static enum ifd_code pool_ref(const struct ifd_ref_call *call, bool is_average, struct ifd_err *err)
{
    const struct ifd_pool2d_attrs *attrs = call->attrs;
    const int64_t *in = call->in[0]->shape.dim;
    const union row row = {.any = call->scratch};
    struct ifd_window_size size;
    if (!ifd_window_resolve(&attrs->window, attrs->filter_h, attrs->filter_w, in[H], in[W],
                            &size)) {
        return ifd_fail(err, IFD_INTERNAL, "pool: unchecked shapes");
    }
    if (ifd_ref_elements(call->out[0]) == 0) {
        return IFD_OK; /* no channels: height and width may be anything */
    }
    int64_t first = 0;
    for (int64_t n = 0; n < in[N]; n++) {
        for (int64_t y = 0; y < size.out_h; y++) {
            const int64_t top = y * attrs->window.stride_h - size.pad_top;
            for (int64_t x = 0; x < size.out_w; x++, first += in[C]) {
                const int64_t left = x * attrs->window.stride_w - size.pad_left;
                const struct view view = {.desc = call->in[0],
                                          .data = call->input[0],
                                          .n = n,
                                          .y = at_least_0(top),
                                          .y_end = at_most(top + attrs->filter_h, in[H]),
                                          .x = at_least_0(left),
                                          .x_end = at_most(left + attrs->filter_w, in[W])};
                if (is_average) {
                    view_sum(&view, row);
                    divide(call->in[0]->dtype, row, in[C], view_pixels(&view));
                } else {
                    view_max(&view, row);
                }
                store(attrs, call->out[0], row, call->output[0], first);
            }
        }
    }
    return IFD_OK;
}

static enum ifd_code average_pool2d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return pool_ref(call, true, err);
}

static enum ifd_code max_pool2d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return pool_ref(call, false, err);
}

static double pool_terms(const void *attrs, const struct ifd_shape *input)
{
    const struct ifd_pool2d_attrs *a = attrs;
    (void)input;
    return (double)a->filter_h * (double)a->filter_w;
}

static const struct ifd_attr_def pool2d_attrs[] = {
    IFD_WINDOW_ATTRS(struct ifd_pool2d_attrs, 1),
    {"filter_h", IFD_ATTR_INT, offsetof(struct ifd_pool2d_attrs, filter_h), 1, 1, INT32_MAX},
    {"filter_w", IFD_ATTR_INT, offsetof(struct ifd_pool2d_attrs, filter_w), 1, 1, INT32_MAX},
    IFD_ACTIVATION_ATTR(struct ifd_pool2d_attrs),
};

#define DEFINE(op, chooses)                                                                        \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        .name = #op,                                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .outputs = 1,                                                                              \
        .attrs = pool2d_attrs,                                                                     \
        .attr_count = sizeof(pool2d_attrs) / sizeof(pool2d_attrs[0]),                              \
        .attrs_bytes = sizeof(struct ifd_pool2d_attrs),                                            \
        .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT,                                             \
        .batch = IFD_BATCH_SAMPLE,                                                                 \
        .infer = pool_infer,                                                                       \
        .scratch = pool_scratch,                                                                   \
        .ref = op##_ref,                                                                           \
        .multiplies = true,                                                                        \
        .terms = pool_terms,                                                                       \
        .applies_activation = true,                                                                \
        .moves = (chooses),                                                                        \
    }

DEFINE(average_pool2d, false);
DEFINE(max_pool2d, true);
