/* Operators of ai.onnx.ml on numbers: scalers, labels, linear models. Text is refused. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

/* A constant tensor of floats. */
static uint32_t floats(struct ifd_builder *b, const float *data, const int64_t *dim, uint32_t rank)
{
    struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = rank}};
    size_t bytes = sizeof(*data);
    for (uint32_t d = 0; d < rank; d++) {
        desc.shape.dim[d] = dim[d];
        bytes *= (size_t)dim[d];
    }
    return ifd_build_constant(b, &desc,
                              (struct ifd_bytes){.data = (const uint8_t *)data, .size = bytes}, 0);
}

/* Attribute name as a list beside the last dimension; IFD_NONE if it is absent. Fails if it has
 * another number of elements than 1 or count. */
static uint32_t list_of(struct ifd_onnx_call *call, const char *name, int64_t count)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    if (!attr || attr->float_count == 0) {
        return IFD_NONE;
    }
    if (attr->float_count != 1 && attr->float_count != (uint64_t)count) {
        return ifd_build_fail(call->b, IFD_INVALID,
                              "attribute \"%s\" has %u numbers, expected %lld", name,
                              attr->float_count, (long long)count);
    }
    return floats(call->b, attr->floats, (const int64_t[]){attr->float_count}, 1);
}

/* Input 0 as a matrix of floats, one row a sample. */
static uint32_t rows_of(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[0], IFD_F32);
    const struct ifd_shape shape = shape_of(b, x);
    return shape.rank == 1   ? ifd_build_reshape(b, x, (const int64_t[]){1, shape.dim[0]}, 2)
           : shape.rank == 2 ? x
                             : ifd_build_fail(b, IFD_UNSUPPORTED, "samples of shape %s",
                                              ifd_shape_text(&shape).s);
}

uint32_t ifd_onnx_transformed(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "post_transform");
    if (!attr || ifd_str_is(attr->s, "NONE")) {
        return x;
    }
    if (ifd_str_is(attr->s, "LOGISTIC")) {
        return ifd_build_unary(b, IFD_OP_LOGISTIC, x);
    }
    if (ifd_str_is(attr->s, "SOFTMAX")) {
        return ifd_build_softmax(b, IFD_OP_SOFTMAX, x, shape_of(b, x).rank - 1);
    }
    return ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"post_transform\" is \"%s\"",
                          ifd_onnx_text(attr->s).s);
}

/* ---- one number at a time ---- */

static void scaler(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[0], IFD_F32);
    const struct ifd_shape shape = shape_of(b, x);
    const int64_t count = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
    const uint32_t offset = list_of(call, "offset", count), scale = list_of(call, "scale", count);
    const uint32_t y = offset == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_SUB, x, offset);
    call->output[0] = scale == IFD_NONE ? y : ifd_build_binary(b, IFD_OP_MUL, y, scale);
}

/* Each row by its largest magnitude, the sum of them, or its length; rows of zeros stay. */
static void normalizer(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = rows_of(call);
    const struct ifd_ints axis = {.count = 1, .value = {1}};
    const bool is_max = ifd_onnx_text_is(call, "norm", "MAX", true);
    const bool is_sum = ifd_onnx_text_is(call, "norm", "L1", false);
    const uint32_t magnitude = ifd_build_unary(b, IFD_OP_ABS, x);
    uint32_t norm = is_max   ? ifd_build_reduce(b, IFD_OP_REDUCE_MAX, x, &axis, true)
                    : is_sum ? ifd_build_reduce(b, IFD_OP_REDUCE_SUM, magnitude, &axis, true)
                             : ifd_build_reduce(b, IFD_OP_REDUCE_SUM,
                                                ifd_build_binary(b, IFD_OP_MUL, x, x), &axis, true);
    norm = is_max || is_sum ? norm : ifd_build_unary(b, IFD_OP_SQRT, norm);
    const uint32_t is_zero =
        ifd_onnx_compared(b, IFD_OP_EQUAL, norm, ifd_build_number(b, IFD_F32, 0));
    norm = ifd_onnx_selected(b, is_zero, ifd_build_number(b, IFD_F32, 1), norm);
    call->output[0] = ifd_build_binary(b, IFD_OP_DIV, x, norm);
}

static void binarizer(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[0], IFD_F32);
    const uint32_t limit = ifd_build_number(b, IFD_F32, ifd_onnx_f32(call, "threshold", 0));
    call->output[0] = ifd_build_cast(b, ifd_onnx_compared(b, IFD_OP_GREATER, x, limit), IFD_F32);
}

/* What equals replaced_value_float becomes the value of its column. */
static void imputer(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = rows_of(call);
    const double replaced = ifd_onnx_f32(call, "replaced_value_float", 0);
    const uint32_t values = list_of(call, "imputed_value_floats", shape_of(b, x).dim[1]);
    const uint32_t number = ifd_build_number(b, IFD_F32, replaced);
    if (values == IFD_NONE) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "no attribute \"imputed_value_floats\"");
        return;
    }
    const uint32_t is_missing = isnan(replaced) ? ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, x, x)
                                                : ifd_onnx_compared(b, IFD_OP_EQUAL, x, number);
    call->output[0] = ifd_onnx_selected(b, is_missing, values, x);
}

/* Columns of the last dimension. */
static void array_feature_extractor(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, call->input[0]);
    const struct ifd_gather_attrs attrs = {.axis = shape.rank > 0 ? (int32_t)shape.rank - 1 : 0};
    const uint32_t input[2] = {call->input[0],
                               ifd_build_reshape(b, call->input[1], (const int64_t[]){-1}, 1)};
    const uint32_t y = ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, &attrs);
    call->output[0] = shape.rank == 1 ? ifd_build_reshape(b, y, (const int64_t[]){1, -1}, 2) : y;
}

/* Whole numbers or floats for whole numbers or floats: a chain of comparisons. */
#define LABELS_MAX 256

static void label_encoder(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *ints = ifd_onnx_attr(call, "keys_int64s"),
                               *reals = ifd_onnx_attr(call, "keys_floats"),
                               *to_ints = ifd_onnx_attr(call, "values_int64s"),
                               *to_reals = ifd_onnx_attr(call, "values_floats");
    const uint32_t keys = ints ? ints->int_count : reals ? reals->float_count : 0;
    const uint32_t values = to_ints ? to_ints->int_count : to_reals ? to_reals->float_count : 0;
    const enum ifd_dtype from = ints ? IFD_S64 : IFD_F32, to = to_ints ? IFD_S64 : IFD_F32;
    if (keys == 0 || keys != values || keys > LABELS_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%u keys and %u values that are numbers, limit %d", keys,
                       values, LABELS_MAX);
        return;
    }
    const uint32_t x = ifd_build_cast(b, call->input[0], from);
    const double otherwise = to_ints ? (double)ifd_onnx_int(call, "default_int64", -1)
                                     : ifd_onnx_f32(call, "default_float", 0);
    uint32_t y = ifd_build_number(b, to, otherwise);
    for (uint32_t i = keys; b->code == IFD_OK && i-- > 0;) {
        const double key = ints ? (double)ints->ints[i] : (double)reals->floats[i];
        const double value = to_ints ? (double)to_ints->ints[i] : (double)to_reals->floats[i];
        const uint32_t is_it =
            isnan(key) ? ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, x, x)
                       : ifd_onnx_compared(b, IFD_OP_EQUAL, x, ifd_build_number(b, from, key));
        y = ifd_onnx_selected(b, is_it, ifd_build_number(b, to, value), y);
    }
    call->output[0] = y;
}

/* Maps of labels to numbers stay the numbers. */
static void zip_map(struct ifd_onnx_call *call)
{
    call->output[0] = call->input[0];
}

/* ---- linear models ---- */

/* x times coefficients [rows, columns of x], plus the intercepts. */
static uint32_t linear(struct ifd_onnx_call *call, uint32_t x, int64_t rows)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *weights = ifd_onnx_attr(call, "coefficients");
    const int64_t dim[2] = {rows, shape_of(b, x).dim[1]};
    if (b->code != IFD_OK || !weights || rows < 1 || dim[1] < 1 ||
        weights->float_count / (uint64_t)rows != (uint64_t)dim[1] ||
        weights->float_count % (uint64_t)rows != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%u coefficients for %lld columns and %lld results",
                              weights ? weights->float_count : 0, (long long)dim[1],
                              (long long)rows);
    }
    uint32_t bias = list_of(call, "intercepts", rows);
    const struct ifd_broadcast_to_attrs all = {.shape = {.count = 1, .value = {rows}}};
    bias =
        bias == IFD_NONE ? IFD_NONE : ifd_build_node(b, IFD_OP_BROADCAST_TO, &bias, 1, NULL, &all);
    return ifd_build_layer(b, x, floats(b, weights->floats, dim, 2), bias);
}

static void linear_regressor(struct ifd_onnx_call *call)
{
    const uint32_t y = linear(call, rows_of(call), ifd_onnx_int(call, "targets", 1));
    call->output[0] = ifd_onnx_transformed(call, y);
}

uint32_t ifd_onnx_label_of(struct ifd_onnx_call *call, const char *name, uint32_t scores)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *labels = ifd_onnx_attr(call, name);
    const struct ifd_arg_attrs attrs = {.axis = 1};
    const struct ifd_desc index = {.dtype = IFD_S64};
    const uint32_t best = ifd_build_node(b, IFD_OP_ARG_MAX, &scores, 1, &index, &attrs);
    const uint32_t input[2] = {ifd_build_list(b, labels->ints, labels->int_count), best};
    return ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, NULL);
}

static void linear_classifier(struct ifd_onnx_call *call)
{
    const struct ifd_onnx_attr *labels = ifd_onnx_attr(call, "classlabels_ints");
    const int64_t count = labels ? labels->int_count : 0;
    if (count < 2) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "%lld labels of whole numbers", (long long)count);
        return;
    }
    const uint32_t scores = linear(call, rows_of(call), count);
    call->output[0] = ifd_onnx_label_of(call, "classlabels_ints", scores);
    if (call->output_count > 1) {
        call->output[1] = ifd_onnx_transformed(call, scores);
    }
}

void ifd_onnx_ml(struct ifd_onnx_call *call, int which)
{
    static void (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_ARRAY_FEATURE_EXTRACTOR] = array_feature_extractor,
        [IFD_ONNX_BINARIZER] = binarizer,
        [IFD_ONNX_IMPUTER] = imputer,
        [IFD_ONNX_LABEL_ENCODER] = label_encoder,
        [IFD_ONNX_LINEAR_CLASSIFIER] = linear_classifier,
        [IFD_ONNX_LINEAR_REGRESSOR] = linear_regressor,
        [IFD_ONNX_NORMALIZER] = normalizer,
        [IFD_ONNX_SCALER] = scaler,
        [IFD_ONNX_ZIP_MAP] = zip_map,
    };
    functions[which](call);
}
