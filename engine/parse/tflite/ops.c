/* The operators of the TFLite format, one row each, and the translation of options and constant
 * inputs to our attributes.
 *
 * Ranges are checked where attributes are set (ir/attrs.c), shapes and types by the operator's
 * shape rule. A rule here only translates. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "engine/ir/trace.h"
#include "engine/parse/tflite/flexbuffer.h"
#include "engine/parse/tflite/tflite_impl.h"

#define MAX_INTS ((size_t)2 * IFD_MAX_RANK) /* paddings: two per dimension */

/* ---- helpers ---- */

/* An attribute and its value, for rules that only copy numbers. */
struct setting {
    const char *name;
    int64_t value;
};

static enum ifd_code set_all(const struct ifd_tflite_call *call, const struct setting *setting,
                             size_t count, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (size_t i = 0; code == IFD_OK && i < count; i++) {
        code = ifd_attrs_set_int(call->def, call->attrs, setting[i].name, setting[i].value, err);
    }
    return code;
}

static enum ifd_code set_int(const struct ifd_tflite_call *call, const char *name, int64_t value,
                             struct ifd_err *err)
{
    return ifd_attrs_set_int(call->def, call->attrs, name, value, err);
}

static enum ifd_code set_f32(const struct ifd_tflite_call *call, const char *name, double value,
                             struct ifd_err *err)
{
    return ifd_attrs_set_f32(call->def, call->attrs, name, value, err);
}

static enum ifd_code set_ints(const struct ifd_tflite_call *call, const char *name,
                              const int64_t *value, size_t count, struct ifd_err *err)
{
    return ifd_attrs_set_ints(call->def, call->attrs, name, value, count, err);
}

/* A constant input. What is computed at run time becomes an attribute behind a cut (cut.c). */
static enum ifd_code constant(const struct ifd_tflite_call *call, uint32_t i,
                              const struct ifd_value **ret, struct ifd_err *err)
{
    if (i >= call->input_count || call->input[i] == IFD_NONE) {
        return ifd_fail(err, IFD_CORRUPT, "input %u is missing", i);
    }
    const struct ifd_value *value = &call->graph->value[call->input[i]];
    if (!value->is_constant) {
        *call->wanted = call->input[i];
        return ifd_fail(err, IFD_UNSUPPORTED, "input %u " NAME_FORMAT " is not constant", i,
                        value->name);
    }
    *ret = value;
    return IFD_OK;
}

struct ints {
    size_t count;
    int64_t value[MAX_INTS];
};

static enum ifd_code constant_ints(const struct ifd_tflite_call *call, uint32_t i, struct ints *ret,
                                   struct ifd_err *err)
{
    const struct ifd_value *value = NULL;
    enum ifd_code code = constant(call, i, &value, err);
    if (code != IFD_OK) {
        return code;
    }
    size_t width = ifd_dtype_bytes(value->desc.dtype);
    if (value->desc.dtype != IFD_S32 && value->desc.dtype != IFD_S64) {
        return ifd_fail(err, IFD_CORRUPT,
                        "input %u " NAME_FORMAT " has type %s, expected s32 or s64", i, value->name,
                        ifd_dtype_name(value->desc.dtype));
    }
    size_t count = value->data.size / width;
    if (count > MAX_INTS) {
        return ifd_fail(err, IFD_TOO_LARGE, "input %u " NAME_FORMAT " has %zu numbers, limit %zu",
                        i, value->name, count, MAX_INTS);
    }
    ifd_trace_read_attribute(call->graph, call->input[i], true);
    *ret = (struct ints){.count = count};
    for (size_t k = 0; k < count; k++) {
        if (value->desc.dtype == IFD_S32) {
            int32_t number = 0;
            memcpy(&number, value->data.data + k * width, width);
            ret->value[k] = number;
        } else {
            memcpy(&ret->value[k], value->data.data + k * width, width);
        }
    }
    return IFD_OK;
}

static enum ifd_code constant_int(const struct ifd_tflite_call *call, uint32_t i, int64_t *ret,
                                  struct ifd_err *err)
{
    struct ints ints;
    enum ifd_code code = constant_ints(call, i, &ints, err);
    if (code == IFD_OK && ints.count != 1) {
        code = ifd_fail(err, IFD_CORRUPT, "input %u has %zu numbers, expected 1", i, ints.count);
    }
    if (code == IFD_OK) {
        ifd_trace_read_attribute(call->graph, call->input[i], false);
        *ret = ints.value[0];
    }
    return code;
}

static enum ifd_code constant_attr(const struct ifd_tflite_call *call, uint32_t i, const char *name,
                                   struct ifd_err *err)
{
    struct ints ints;
    enum ifd_code code = constant_ints(call, i, &ints, err);
    return code == IFD_OK ? set_ints(call, name, ints.value, ints.count, err) : code;
}

/* [n,2] numbers as two lists of n. */
static enum ifd_code constant_pairs(const struct ifd_tflite_call *call, uint32_t i,
                                    const char *first, const char *second, struct ifd_err *err)
{
    struct ints ints;
    enum ifd_code code = constant_ints(call, i, &ints, err);
    if (code != IFD_OK) {
        return code;
    }
    if (ints.count % 2 != 0) {
        return ifd_fail(err, IFD_CORRUPT, "input %u has %zu numbers, expected pairs", i,
                        ints.count);
    }
    struct ints before = {.count = ints.count / 2};
    struct ints after = {.count = ints.count / 2};
    for (size_t k = 0; k < before.count; k++) {
        before.value[k] = ints.value[2 * k];
        after.value[k] = ints.value[2 * k + 1];
    }
    code = set_ints(call, first, before.value, before.count, err);
    return code == IFD_OK ? set_ints(call, second, after.value, after.count, err) : code;
}

static const struct ifd_desc *input_desc(const struct ifd_tflite_call *call, uint32_t i)
{
    return i < call->input_count && call->input[i] != IFD_NONE
               ? &call->graph->value[call->input[i]].desc
               : NULL;
}

/* Checks an option that repeats a number of the node's lists. */
static enum ifd_code check_count(int32_t option, uint32_t count, const char *what,
                                 struct ifd_err *err)
{
    if (option < 0 || (uint32_t)option != count) {
        return ifd_fail(err, IFD_CORRUPT, "%u %s, its options say %d", count, what, option);
    }
    return IFD_OK;
}

/* ---- rules ---- */

static enum ifd_code read_activation(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return set_int(call, "activation", call->op->options->activation, err);
}

static enum ifd_code read_add(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"activation", call->op->options->activation},
        {"pot_scale_int16", call->op->options->pot_scale_int16},
    };
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_window(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_tflite_options *o = call->op->options;
    if (o->padding < IFD_PAD_SAME || o->padding > IFD_PAD_VALID) {
        return ifd_fail(err, IFD_CORRUPT, "padding is %d", o->padding);
    }
    const struct setting settings[] = {
        {"padding", o->padding},       {"stride_h", o->stride_h},     {"stride_w", o->stride_w},
        {"dilation_h", o->dilation_h}, {"dilation_w", o->dilation_w}, {"activation", o->activation},
    };
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_pool(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"filter_h", call->op->options->filter_h},
        {"filter_w", call->op->options->filter_w},
    };
    enum ifd_code code = read_window(call, err);
    return code == IFD_OK ? set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err)
                          : code;
}

static enum ifd_code read_fully_connected(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_tflite_options *o = call->op->options;
    if (o->weights_format != 0) {
        return ifd_fail(err, IFD_UNSUPPORTED, "weights format %d is not supported",
                        o->weights_format);
    }
    const struct setting settings[] = {{"activation", o->activation},
                                       {"keep_dims", o->keep_dims},
                                       {"asymmetric_inputs", o->asymmetric_quantize_inputs}};
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_softmax(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return set_f32(call, "beta", (double)call->op->options->beta, err);
}

static enum ifd_code read_leaky_relu(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return set_f32(call, "alpha", (double)call->op->options->alpha, err);
}

static enum ifd_code read_relu_0_to_1(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = set_f32(call, "min", 0, err);
    return code == IFD_OK ? set_f32(call, "max", 1, err) : code;
}

static enum ifd_code read_concatenation(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"axis", call->op->options->axis},
        {"activation", call->op->options->activation},
    };
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_pack(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = check_count(call->op->options->count, call->input_count, "inputs", err);
    return code == IFD_OK ? set_int(call, "axis", call->op->options->axis, err) : code;
}

static enum ifd_code read_unpack(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = check_count(call->op->options->count, call->output_count, "outputs", err);
    return code == IFD_OK ? set_int(call, "axis", call->op->options->axis, err) : code;
}

static enum ifd_code read_split(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    int64_t axis = 0;
    enum ifd_code code = check_count(call->op->options->count, call->output_count, "outputs", err);
    if (code == IFD_OK) {
        code = constant_int(call, 0, &axis, err);
    }
    return code == IFD_OK ? set_int(call, "axis", axis, err) : code;
}

static enum ifd_code read_split_v(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    int64_t axis = 0;
    enum ifd_code code = check_count(call->op->options->count, call->output_count, "outputs", err);
    if (code == IFD_OK) {
        code = constant_attr(call, 1, "sizes", err);
    }
    if (code == IFD_OK) {
        code = constant_int(call, 2, &axis, err);
    }
    return code == IFD_OK ? set_int(call, "axis", axis, err) : code;
}

static enum ifd_code read_tile(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_attr(call, 1, "repeats", err);
}

static enum ifd_code read_gather(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"axis", call->op->options->axis},
        {"batch_dims", call->op->options->batch_dims},
    };
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_reducer(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = set_int(call, "keep_dims", call->op->options->keep_dims, err);
    return code == IFD_OK ? constant_attr(call, 1, "axes", err) : code;
}

static enum ifd_code read_transpose(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_attr(call, 1, "perm", err);
}

static enum ifd_code read_pad(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_pairs(call, 1, "before", "after", err);
}

/* The pad value as a stored number: exact for types of up to 24 bits. The others are composite.c's.
 */
static enum ifd_code read_pad_v2(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_value *value = NULL;
    enum ifd_code code = read_pad(call, err);
    if (code == IFD_OK) {
        code = constant(call, 2, &value, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *data = input_desc(call, 0);
    if (!data || value->desc.dtype != data->dtype ||
        value->data.size != ifd_dtype_bytes(data->dtype)) {
        return ifd_fail(err, IFD_CORRUPT,
                        "input 2 " NAME_FORMAT " is not one number of the type of input 0",
                        value->name);
    }
    ifd_trace_read_attribute(call->graph, call->input[2], false);
    double number = 0;
    float f = 0;
    int16_t s16 = 0;
    switch ((int)value->desc.dtype) {
    case IFD_F32:
        memcpy(&f, value->data.data, sizeof(f));
        number = (double)f;
        break;
    case IFD_U8:
        number = value->data.data[0];
        break;
    case IFD_S8:
        number = (int8_t)value->data.data[0];
        break;
    case IFD_S16:
        memcpy(&s16, value->data.data, sizeof(s16));
        number = s16;
        break;
    default:
        return ifd_fail(err, IFD_UNSUPPORTED, "type %s is not supported",
                        ifd_dtype_name(value->desc.dtype));
    }
    code = set_int(call, "has_value", 1, err);
    return code == IFD_OK ? set_f32(call, "value", number, err) : code;
}

static enum ifd_code read_slice(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = constant_attr(call, 1, "begin", err);
    return code == IFD_OK ? constant_attr(call, 2, "size", err) : code;
}

static enum ifd_code read_strided_slice(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_tflite_options *o = call->op->options;
    const struct setting settings[] = {
        {"begin_mask", o->begin_mask},
        {"end_mask", o->end_mask},
        {"ellipsis_mask", o->ellipsis_mask},
        {"new_axis_mask", o->new_axis_mask},
        {"shrink_axis_mask", o->shrink_axis_mask},
        {"offset", o->offset},
    };
    enum ifd_code code = set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
    if (code == IFD_OK) {
        code = constant_attr(call, 1, "begin", err);
    }
    if (code == IFD_OK) {
        code = constant_attr(call, 2, "end", err);
    }
    return code == IFD_OK ? constant_attr(call, 3, "strides", err) : code;
}

/* Target shape: input 1 if present, else the option; in old files a single 0 there means a
 * scalar. */
static enum ifd_code read_reshape(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    if (call->input_count > 1 && call->input[1] != IFD_NONE) {
        return constant_attr(call, 1, "shape", err);
    }
    const struct ifd_tflite_ints *shape = &call->op->options->ints;
    if (shape->count > IFD_MAX_RANK) {
        return ifd_fail(err, IFD_UNSUPPORTED, "the target has %u dimensions, limit %d",
                        shape->count, IFD_MAX_RANK);
    }
    bool is_scalar = shape->count == 1 && shape->value[0] == 0;
    struct ints target = {.count = is_scalar ? 0 : shape->count};
    for (size_t i = 0; i < target.count; i++) {
        target.value[i] = shape->value[i];
    }
    return set_ints(call, "shape", target.value, target.count, err);
}

/* A reshape that removes dimensions of 1: the listed ones, or all. */
static enum ifd_code read_squeeze(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_desc *input = input_desc(call, 0);
    const struct ifd_tflite_ints *dims = &call->op->options->ints;
    bool drop[IFD_MAX_RANK] = {false};
    if (!input) {
        return ifd_fail(err, IFD_CORRUPT, "input 0 is missing");
    }
    for (uint32_t i = 0; i < dims->count; i++) {
        uint32_t axis = 0;
        if (!ifd_shape_axis(&input->shape, dims->value[i], &axis) || input->shape.dim[axis] != 1) {
            return ifd_fail(err, IFD_CORRUPT, "dimension %d of %s cannot be dropped",
                            dims->value[i], ifd_shape_text(&input->shape).s);
        }
        drop[axis] = true;
    }
    struct ints target = {0};
    for (uint32_t d = 0; d < input->shape.rank; d++) {
        if (!(dims->count == 0 ? input->shape.dim[d] == 1 : drop[d])) {
            target.value[target.count++] = input->shape.dim[d];
        }
    }
    return set_ints(call, "shape", target.value, target.count, err);
}

/* A reshape that inserts a dimension of 1. */
static enum ifd_code read_expand_dims(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_desc *input = input_desc(call, 0);
    int64_t axis = 0;
    enum ifd_code code = constant_int(call, 1, &axis, err);
    if (code != IFD_OK) {
        return code;
    }
    if (!input || input->shape.rank >= IFD_MAX_RANK) {
        return ifd_fail(err, IFD_UNSUPPORTED, "input 0 has no room for another dimension");
    }
    int64_t rank = (int64_t)input->shape.rank + 1;
    if (axis < -rank || axis >= rank) {
        return ifd_fail(err, IFD_CORRUPT, "axis %lld, expected %lld to %lld", (long long)axis,
                        (long long)-rank, (long long)rank - 1);
    }
    axis = axis < 0 ? axis + rank : axis;
    struct ints target = {.count = (size_t)rank};
    for (int64_t d = 0; d < rank; d++) {
        target.value[d] = d == axis ? 1 : input->shape.dim[d < axis ? d : d - 1];
    }
    return set_ints(call, "shape", target.value, target.count, err);
}

static enum ifd_code read_space_to_batch(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = constant_attr(call, 1, "block", err);
    return code == IFD_OK ? constant_pairs(call, 2, "before", "after", err) : code;
}

/* Two numbers in input 1: height, width. */
static enum ifd_code read_size(const struct ifd_tflite_call *call, const char *height,
                               const char *width, struct ifd_err *err)
{
    struct ints size;
    enum ifd_code code = constant_ints(call, 1, &size, err);
    if (code == IFD_OK && size.count != 2) {
        code = ifd_fail(err, IFD_CORRUPT, "input 1 has %zu numbers, expected 2", size.count);
    }
    if (code == IFD_OK) {
        code = set_int(call, height, size.value[0], err);
    }
    return code == IFD_OK ? set_int(call, width, size.value[1], err) : code;
}

static enum ifd_code read_resize(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"align_corners", call->op->options->align_corners},
        {"half_pixel_centers", call->op->options->half_pixel_centers},
    };
    enum ifd_code code = set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
    return code == IFD_OK ? read_size(call, "height", "width", err) : code;
}

static enum ifd_code read_l2_normalization(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const int32_t activation = call->op->options->activation;
    return activation == IFD_ACT_NONE
               ? IFD_OK
               : ifd_fail(err, IFD_UNSUPPORTED, "activation %d is not supported", activation);
}

static enum ifd_code read_local_response(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct ifd_tflite_options *o = call->op->options;
    enum ifd_code code = set_int(call, "radius", o->radius, err);
    if (code == IFD_OK) {
        code = set_f32(call, "bias", (double)o->bias, err);
    }
    if (code == IFD_OK) {
        code = set_f32(call, "alpha", (double)o->alpha, err);
    }
    return code == IFD_OK ? set_f32(call, "beta", (double)o->beta, err) : code;
}

static enum ifd_code read_block(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return set_int(call, "block", call->op->options->block, err);
}

static enum ifd_code read_mirror_pad(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    enum ifd_code code = set_int(call, "symmetric", call->op->options->mode, err);
    return code == IFD_OK ? read_pad(call, err) : code;
}

static enum ifd_code read_constant_axis(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    int64_t axis = 0;
    const enum ifd_code code = constant_int(call, 1, &axis, err);
    return code == IFD_OK ? set_int(call, "axis", axis, err) : code;
}

static enum ifd_code read_cumsum(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"exclusive", call->op->options->exclusive},
        {"reverse", call->op->options->reverse},
    };
    enum ifd_code code = set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
    return code == IFD_OK ? read_constant_axis(call, err) : code;
}

static enum ifd_code read_top_k(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    int64_t k = 0;
    const enum ifd_code code = constant_int(call, 1, &k, err);
    return code == IFD_OK ? set_int(call, "k", k, err) : code;
}

static enum ifd_code read_one_hot(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    int64_t depth = 0;
    enum ifd_code code = constant_int(call, 1, &depth, err);
    if (code == IFD_OK) {
        code = set_int(call, "depth", depth, err);
    }
    return code == IFD_OK ? set_int(call, "axis", call->op->options->axis, err) : code;
}

static enum ifd_code read_fill(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_attr(call, 0, "shape", err);
}

static enum ifd_code read_broadcast_to(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_attr(call, 1, "shape", err);
}

static enum ifd_code read_scatter_nd(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_attr(call, 2, "shape", err);
}

static enum ifd_code read_reverse(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return constant_attr(call, 1, "axes", err);
}

static enum ifd_code read_reverse_sequence(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"seq_dim", call->op->options->seq_dim},
        {"batch_dim", call->op->options->batch_dim},
    };
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_select(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return set_int(call, "leading", 1, err);
}

static enum ifd_code read_gelu(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return set_int(call, "approximate", call->op->options->approximate, err);
}

static enum ifd_code read_batch_matmul(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"adj_x", call->op->options->adj_x},
        {"adj_y", call->op->options->adj_y},
    };
    return set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err);
}

static enum ifd_code read_conv3d(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    const struct setting settings[] = {
        {"stride_d", call->op->options->stride_d},
        {"dilation_d", call->op->options->dilation_d},
    };
    enum ifd_code code = read_window(call, err);
    return code == IFD_OK ? set_all(call, settings, sizeof(settings) / sizeof(settings[0]), err)
                          : code;
}

static enum ifd_code read_rfft2d(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    return read_size(call, "fft_h", "fft_w", err);
}

/* Options of TFLite_Detection_PostProcess: its name, our name, the default (NAN: the file must
 * have it). */
struct flex_setting {
    const char *key, *name;
    double missing;
    bool is_float;
};

static enum ifd_code read_flex(const struct ifd_tflite_call *call, const struct ifd_flex_map *map,
                               const struct flex_setting *setting, struct ifd_err *err)
{
    double value = setting->missing;
    if (!ifd_flex_number(map, setting->key, &value) && isnan(setting->missing)) {
        return ifd_fail(err, IFD_CORRUPT, "option \"%s\" is missing", setting->key);
    }
    if (setting->is_float) {
        return set_f32(call, setting->name, value, err);
    }
    if (!(value >= INT_MIN && value <= INT_MAX) || value != floor(value)) {
        return ifd_fail(err, IFD_CORRUPT, "option \"%s\" is %g", setting->key, value);
    }
    return set_int(call, setting->name, (int64_t)value, err);
}

static enum ifd_code read_detection(const struct ifd_tflite_call *call, struct ifd_err *err)
{
    static const struct flex_setting settings[] = {
        {"max_detections", "max_detections", NAN, false},
        {"max_classes_per_detection", "max_classes_per_detection", NAN, false},
        {"detections_per_class", "detections_per_class", 100, false},
        {"num_classes", "num_classes", NAN, false},
        {"use_regular_nms", "use_regular_nms", 0, false},
        {"nms_score_threshold", "nms_score_threshold", NAN, true},
        {"nms_iou_threshold", "nms_iou_threshold", NAN, true},
        {"y_scale", "y_scale", NAN, true},
        {"x_scale", "x_scale", NAN, true},
        {"h_scale", "h_scale", NAN, true},
        {"w_scale", "w_scale", NAN, true},
    };
    struct ifd_flex_map map;
    if (!ifd_flex_open(call->op->custom_options, &map)) {
        return ifd_fail(err, IFD_CORRUPT, "its %zu bytes of options are no FlexBuffer map",
                        call->op->custom_options.size);
    }
    enum ifd_code code = IFD_OK;
    for (size_t i = 0; code == IFD_OK && i < sizeof(settings) / sizeof(settings[0]); i++) {
        code = read_flex(call, &map, &settings[i], err);
    }
    return code;
}

/* ---- table ---- */

#define CUSTOM 32
#define ANY    UINT32_MAX

/* Types of options: numbers of the union in schema.fbs. */
enum {
    NO_OPTIONS = 0,
    CONV2D = 1,
    DEPTHWISE_CONV2D = 2,
    POOL2D = 5,
    FULLY_CONNECTED = 8,
    SOFTMAX = 9,
    CONCATENATION = 10,
    ADD = 11,
    L2_NORM = 12,
    LOCAL_RESPONSE_NORMALIZATION = 13,
    RESIZE_BILINEAR = 15,
    RESHAPE = 17,
    SPACE_TO_DEPTH = 19,
    MUL = 21,
    GATHER = 23,
    REDUCER = 27,
    SUB = 28,
    DIV = 29,
    SQUEEZE = 30,
    STRIDED_SLICE = 32,
    SPLIT = 35,
    TRANSPOSE_CONV = 49,
    PACK = 59,
    ONE_HOT = 61,
    UNPACK = 64,
    RESIZE_NEAREST = 74,
    LEAKY_RELU = 75,
    MIRROR_PAD = 77,
    SPLIT_V = 79,
    REVERSE_SEQUENCE = 87,
    DEPTH_TO_SPACE = 94,
    BATCH_MATMUL = 101,
    CUMSUM = 102,
    CONV3D = 106,
    GELU = 116
};

/* Later versions of an operator add types and options and keep the meaning of old ones.
 * max_version: the newest version whose options are read here; shape rules check types. */
static const struct ifd_tflite_rule rules[] = {
    /* builtin, custom, op, version, options, inputs min max, operands, reader */
    {0, NULL, IFD_OP_ADD, 6, ADD, 2, 2, 3, read_add},
    {1, NULL, IFD_OP_AVERAGE_POOL2D, 3, POOL2D, 1, 1, 1, read_pool},
    {2, NULL, IFD_OP_CONCAT, 7, CONCATENATION, 1, ANY, ANY, read_concatenation},
    {3, NULL, IFD_OP_CONV2D, 8, CONV2D, 2, 3, 7, read_window},
    {4, NULL, IFD_OP_DEPTHWISE_CONV2D, 7, DEPTHWISE_CONV2D, 2, 3, 7, read_window},
    {5, NULL, IFD_OP_DEPTH_TO_SPACE, 2, DEPTH_TO_SPACE, 1, 1, 1, read_block},
    {6, NULL, IFD_OP_DEQUANTIZE, 9, NO_OPTIONS, 1, 1, 1, NULL},
    {7, NULL, IFD_OP_EMBEDDING_LOOKUP, 5, NO_OPTIONS, 2, 2, 3, NULL},
    {8, NULL, IFD_OP_FLOOR, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {9, NULL, IFD_OP_FULLY_CONNECTED, 14, FULLY_CONNECTED, 2, 3, 7, read_fully_connected},
    {11, NULL, IFD_OP_L2_NORMALIZATION, 2, L2_NORM, 1, 1, 1, read_l2_normalization},
    {13, NULL, IFD_OP_LOCAL_RESPONSE_NORMALIZATION, 1, LOCAL_RESPONSE_NORMALIZATION, 1, 1, 1,
     read_local_response},
    {14, NULL, IFD_OP_LOGISTIC, 3, NO_OPTIONS, 1, 1, 1, NULL},
    {17, NULL, IFD_OP_MAX_POOL2D, 3, POOL2D, 1, 1, 1, read_pool},
    {18, NULL, IFD_OP_MUL, 8, MUL, 2, 2, 3, read_activation},
    {19, NULL, IFD_OP_RELU, 3, NO_OPTIONS, 1, 1, 1, NULL},
    {20, NULL, IFD_OP_RELU_N1_TO_1, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {21, NULL, IFD_OP_RELU6, 3, NO_OPTIONS, 1, 1, 1, NULL},
    {22, NULL, IFD_OP_RESHAPE, 1, RESHAPE, 1, 2, 1, read_reshape},
    {23, NULL, IFD_OP_RESIZE_BILINEAR, 4, RESIZE_BILINEAR, 2, 2, 1, read_resize},
    {25, NULL, IFD_OP_SOFTMAX, 4, SOFTMAX, 1, 1, 1, read_softmax},
    {26, NULL, IFD_OP_SPACE_TO_DEPTH, 2, SPACE_TO_DEPTH, 1, 1, 1, read_block},
    {28, NULL, IFD_OP_TANH, 3, NO_OPTIONS, 1, 1, 1, NULL},
    {34, NULL, IFD_OP_PAD, 6, NO_OPTIONS, 2, 2, 1, read_pad},
    {36, NULL, IFD_OP_GATHER, 8, GATHER, 2, 2, 3, read_gather},
    {37, NULL, IFD_OP_BATCH_TO_SPACE, 4, NO_OPTIONS, 3, 3, 1, read_space_to_batch},
    {38, NULL, IFD_OP_SPACE_TO_BATCH, 4, NO_OPTIONS, 3, 3, 1, read_space_to_batch},
    {39, NULL, IFD_OP_TRANSPOSE, 9, NO_OPTIONS, 2, 2, 1, read_transpose},
    {40, NULL, IFD_OP_REDUCE_MEAN, 3, REDUCER, 2, 2, 1, read_reducer},
    {41, NULL, IFD_OP_SUB, 5, SUB, 2, 2, 3, read_add},
    {42, NULL, IFD_OP_DIV, 2, DIV, 2, 2, 3, read_activation},
    {43, NULL, IFD_OP_RESHAPE, 3, SQUEEZE, 1, 1, 1, read_squeeze},
    {45, NULL, IFD_OP_STRIDED_SLICE, 8, STRIDED_SLICE, 4, 4, 1, read_strided_slice},
    {47, NULL, IFD_OP_EXP, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {48, NULL, IFD_OP_TOP_K, 3, NO_OPTIONS, 2, 2, 1, read_top_k},
    {49, NULL, IFD_OP_SPLIT, 5, SPLIT, 2, 2, 2, read_split},
    {50, NULL, IFD_OP_LOG_SOFTMAX, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {53, NULL, IFD_OP_CAST, 9, NO_OPTIONS, 1, 1, 1, NULL},
    {54, NULL, IFD_OP_PRELU, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {55, NULL, IFD_OP_MAXIMUM, 5, NO_OPTIONS, 2, 2, 3, NULL},
    {56, NULL, IFD_OP_ARG_MAX, 3, NO_OPTIONS, 2, 2, 1, read_constant_axis},
    {57, NULL, IFD_OP_MINIMUM, 5, NO_OPTIONS, 2, 2, 3, NULL},
    {58, NULL, IFD_OP_LESS, 4, NO_OPTIONS, 2, 2, 3, NULL},
    {59, NULL, IFD_OP_NEG, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {60, NULL, IFD_OP_PAD, 6, NO_OPTIONS, 3, 3, 1, read_pad_v2},
    {61, NULL, IFD_OP_GREATER, 3, NO_OPTIONS, 2, 2, 3, NULL},
    {62, NULL, IFD_OP_GREATER_EQUAL, 3, NO_OPTIONS, 2, 2, 3, NULL},
    {63, NULL, IFD_OP_LESS_EQUAL, 3, NO_OPTIONS, 2, 2, 3, NULL},
    {64, NULL, IFD_OP_SELECT, 4, NO_OPTIONS, 3, 3, 7, read_select},
    {65, NULL, IFD_OP_SLICE, 8, NO_OPTIONS, 3, 3, 1, read_slice},
    {66, NULL, IFD_OP_SIN, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {67, NULL, IFD_OP_TRANSPOSE_CONV2D, 5, TRANSPOSE_CONV, 3, 4, 15, read_window},
    {69, NULL, IFD_OP_TILE, 3, NO_OPTIONS, 2, 2, 1, read_tile},
    {70, NULL, IFD_OP_RESHAPE, 1, NO_OPTIONS, 2, 2, 1, read_expand_dims},
    {71, NULL, IFD_OP_EQUAL, 5, NO_OPTIONS, 2, 2, 3, NULL},
    {72, NULL, IFD_OP_NOT_EQUAL, 4, NO_OPTIONS, 2, 2, 3, NULL},
    {73, NULL, IFD_OP_LOG, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {74, NULL, IFD_OP_REDUCE_SUM, 2, REDUCER, 2, 2, 1, read_reducer},
    {75, NULL, IFD_OP_SQRT, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {76, NULL, IFD_OP_RSQRT, 3, NO_OPTIONS, 1, 1, 1, NULL},
    {77, NULL, IFD_OP_SHAPE, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {78, NULL, IFD_OP_POW, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {79, NULL, IFD_OP_ARG_MIN, 3, NO_OPTIONS, 2, 2, 1, read_constant_axis},
    {81, NULL, IFD_OP_REDUCE_PROD, 2, REDUCER, 2, 2, 1, read_reducer},
    {82, NULL, IFD_OP_REDUCE_MAX, 3, REDUCER, 2, 2, 1, read_reducer},
    {83, NULL, IFD_OP_PACK, 5, PACK, 1, ANY, ANY, read_pack},
    {84, NULL, IFD_OP_LOGICAL_OR, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {85, NULL, IFD_OP_ONE_HOT, 1, ONE_HOT, 4, 4, 13, read_one_hot},
    {86, NULL, IFD_OP_LOGICAL_AND, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {87, NULL, IFD_OP_LOGICAL_NOT, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {88, NULL, IFD_OP_UNPACK, 6, UNPACK, 1, 1, 1, read_unpack},
    {89, NULL, IFD_OP_REDUCE_MIN, 3, REDUCER, 2, 2, 1, read_reducer},
    {90, NULL, IFD_OP_FLOOR_DIV, 3, NO_OPTIONS, 2, 2, 3, NULL},
    {91, NULL, IFD_OP_REDUCE_ANY, 2, REDUCER, 2, 2, 1, read_reducer},
    {92, NULL, IFD_OP_SQUARE, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {93, NULL, IFD_OP_ZEROS_LIKE, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {94, NULL, IFD_OP_BROADCAST_TO, 5, NO_OPTIONS, 2, 2, 2, read_fill},
    {95, NULL, IFD_OP_FLOOR_MOD, 2, NO_OPTIONS, 2, 2, 3, NULL},
    {96, NULL, IFD_OP_RANGE, 2, NO_OPTIONS, 3, 3, 7, NULL},
    {97, NULL, IFD_OP_RESIZE_NEAREST, 4, RESIZE_NEAREST, 2, 2, 1, read_resize},
    {98, NULL, IFD_OP_LEAKY_RELU, 2, LEAKY_RELU, 1, 1, 1, read_leaky_relu},
    {99, NULL, IFD_OP_SQUARED_DIFFERENCE, 3, NO_OPTIONS, 2, 2, 3, NULL},
    {100, NULL, IFD_OP_MIRROR_PAD, 3, MIRROR_PAD, 2, 2, 1, read_mirror_pad},
    {101, NULL, IFD_OP_ABS, 5, NO_OPTIONS, 1, 1, 1, NULL},
    {102, NULL, IFD_OP_SPLIT, 3, SPLIT_V, 3, 3, 1, read_split_v},
    {104, NULL, IFD_OP_CEIL, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {105, NULL, IFD_OP_REVERSE, 4, NO_OPTIONS, 2, 2, 1, read_reverse},
    {107, NULL, IFD_OP_GATHER_ND, 6, NO_OPTIONS, 2, 2, 3, NULL},
    {108, NULL, IFD_OP_COS, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {110, NULL, IFD_OP_RANK, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {111, NULL, IFD_OP_ELU, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {112, NULL, IFD_OP_REVERSE_SEQUENCE, 1, REVERSE_SEQUENCE, 2, 2, 3, read_reverse_sequence},
    {113, NULL, IFD_OP_MATRIX_DIAG, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {114, NULL, IFD_OP_QUANTIZE, 6, NO_OPTIONS, 1, 1, 1, NULL},
    {115, NULL, IFD_OP_MATRIX_SET_DIAG, 2, NO_OPTIONS, 2, 2, 3, NULL},
    {116, NULL, IFD_OP_ROUND, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {117, NULL, IFD_OP_HARD_SWISH, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {120, NULL, IFD_OP_SOFT_SUPPRESS, 1, NO_OPTIONS, 5, 5, 31, NULL},
    {121, NULL, IFD_OP_SOFT_SUPPRESS, 1, NO_OPTIONS, 6, 6, 63, NULL},
    {122, NULL, IFD_OP_SCATTER_ND, 1, NO_OPTIONS, 3, 3, 3, read_scatter_nd},
    {123, NULL, IFD_OP_SELECT, 3, NO_OPTIONS, 3, 3, 7, NULL},
    {125, NULL, IFD_OP_SEGMENT_SUM, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {126, NULL, IFD_OP_BATCH_MATMUL, 5, BATCH_MATMUL, 2, 2, 3, read_batch_matmul},
    {128, NULL, IFD_OP_CUMSUM, 1, CUMSUM, 2, 2, 1, read_cumsum},
    {130, NULL, IFD_OP_BROADCAST_TO, 4, NO_OPTIONS, 2, 2, 1, read_broadcast_to},
    {131, NULL, IFD_OP_RFFT2D, 1, NO_OPTIONS, 2, 2, 1, read_rfft2d},
    {132, NULL, IFD_OP_CONV3D, 1, CONV3D, 2, 3, 7, read_conv3d},
    {135, NULL, IFD_OP_COMPLEX_ABS, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {140, NULL, IFD_OP_REDUCE_ALL, 1, REDUCER, 2, 2, 1, read_reducer},
    {150, NULL, IFD_OP_GELU, 3, GELU, 1, 1, 1, read_gelu},
    {151, NULL, IFD_OP_DYNAMIC_UPDATE_SLICE, 6, NO_OPTIONS, 3, 3, 7, NULL},
    {152, NULL, IFD_OP_CLAMP, 1, NO_OPTIONS, 1, 1, 1, read_relu_0_to_1},
    {156, NULL, IFD_OP_ATAN2, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {158, NULL, IFD_OP_SIGN, 2, NO_OPTIONS, 1, 1, 1, NULL},
    {159, NULL, IFD_OP_BITCAST, 1, NO_OPTIONS, 1, 1, 1, NULL},
    {160, NULL, IFD_OP_BITWISE_XOR, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {161, NULL, IFD_OP_RIGHT_SHIFT, 1, NO_OPTIONS, 2, 2, 3, NULL},
    {CUSTOM, "TFLite_Detection_PostProcess", IFD_OP_DETECTION_POSTPROCESS, 1, NO_OPTIONS, 3, 3, 7,
     read_detection},
};

const struct ifd_tflite_rule *ifd_tflite_rule(const struct ifd_tflite_opcode *opcode)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct ifd_tflite_rule *rule = &rules[i];
        if (rule->builtin == opcode->builtin &&
            (!rule->custom || strcmp(rule->custom, opcode->custom) == 0)) {
            return rule;
        }
    }
    return NULL;
}
