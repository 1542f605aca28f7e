/* Operators of ai.onnx.ml on numbers: scalers, linear models. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

uint32_t ifd_onnx_floats(struct ifd_builder *b, const float *data, const int64_t *dim,
                         uint32_t rank)
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
    return ifd_onnx_floats(call->b, attr->floats, (const int64_t[]){attr->float_count}, 1);
}

uint32_t ifd_onnx_rows(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[0], IFD_F32);
    const struct ifd_shape shape = shape_of(b, x);
    return shape.rank == 1   ? ifd_build_reshape(b, x, (const int64_t[]){1, shape.dim[0]}, 2)
           : shape.rank == 2 ? x
                             : ifd_build_fail(b, IFD_UNSUPPORTED, "samples of shape %s",
                                              ifd_shape_text(&shape).s);
}

/* What became of the rows of input 0, in its shape. */
static uint32_t as_given(struct ifd_onnx_call *call, uint32_t y)
{
    const struct ifd_shape shape = shape_of(call->b, call->input[0]);
    return shape.rank == 1 ? ifd_build_reshape(call->b, y, shape.dim, 1) : y;
}

/* The place of a share x in the normal distribution, by the approximation that ONNX Runtime has. */
static uint32_t probit(struct ifd_builder *b, uint32_t x)
{
    const uint32_t at = ifd_build_with(b, IFD_OP_SUB, ifd_build_with(b, IFD_OP_MUL, x, 2), 1);
    const uint32_t one = ifd_build_number(b, IFD_F32, 1);
    const uint32_t log = ifd_build_unary(
        b, IFD_OP_LOG,
        ifd_build_binary(b, IFD_OP_SUB, one, ifd_build_binary(b, IFD_OP_MUL, at, at)));
    const uint32_t v = ifd_build_with(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, log, 0.5),
                                      2 / (3.14159 * 0.147));
    const uint32_t root =
        ifd_build_unary(b, IFD_OP_SQRT,
                        ifd_build_binary(b, IFD_OP_SUB, ifd_build_binary(b, IFD_OP_MUL, v, v),
                                         ifd_build_with(b, IFD_OP_MUL, log, 1 / 0.147)));
    const uint32_t size = ifd_build_unary(b, IFD_OP_SQRT, ifd_build_binary(b, IFD_OP_SUB, root, v));
    const uint32_t y = ifd_build_binary(b, IFD_OP_MUL, size, ifd_build_unary(b, IFD_OP_SIGN, at));
    return ifd_build_with(b, IFD_OP_MUL, y, 1.41421356);
}

/* Softmax of all but zeros, which stay. */
static uint32_t softmax_zero(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_ints last = {.count = 1, .value = {(int64_t)shape_of(b, x).rank - 1}};
    const uint32_t most = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, x, &last, true);
    const uint32_t is_some = ifd_onnx_compared(b, IFD_OP_GREATER, ifd_build_unary(b, IFD_OP_ABS, x),
                                               ifd_build_number(b, IFD_F32, 1e-7));
    const uint32_t power = ifd_onnx_selected(
        b, is_some, ifd_build_unary(b, IFD_OP_EXP, ifd_build_binary(b, IFD_OP_SUB, x, most)),
        ifd_build_number(b, IFD_F32, 0));
    return ifd_build_binary(b, IFD_OP_DIV, power,
                            ifd_build_reduce(b, IFD_OP_REDUCE_SUM, power, &last, true));
}

uint32_t ifd_onnx_transformed_as(struct ifd_builder *b, uint32_t x, struct ifd_str name)
{
    return ifd_str_is(name, "NONE")       ? x
           : ifd_str_is(name, "LOGISTIC") ? ifd_build_unary(b, IFD_OP_LOGISTIC, x)
           : ifd_str_is(name, "SOFTMAX")
               ? ifd_build_softmax(b, IFD_OP_SOFTMAX, x, shape_of(b, x).rank - 1)
           : ifd_str_is(name, "SOFTMAX_ZERO") ? softmax_zero(b, x)
           : ifd_str_is(name, "PROBIT")
               ? probit(b, x)
               : ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"post_transform\" is \"%s\"",
                                ifd_onnx_text(name).s);
}

uint32_t ifd_onnx_transformed(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "post_transform");
    return attr ? ifd_onnx_transformed_as(call->b, x, attr->s) : x;
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
    const uint32_t x = ifd_onnx_rows(call);
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
    call->output[0] = as_given(call, ifd_build_binary(b, IFD_OP_DIV, x, norm));
}

static void binarizer(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, call->input[0], IFD_F32);
    const uint32_t limit = ifd_build_number(b, IFD_F32, ifd_onnx_f32(call, "threshold", 0));
    call->output[0] = ifd_build_cast(b, ifd_onnx_compared(b, IFD_OP_GREATER, x, limit), IFD_F32);
}

/* What equals replaced_value_… becomes the value of its column. */
static void imputer(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *ints = ifd_onnx_attr(call, "imputed_value_int64s");
    const bool is_whole = ints && ints->int_count > 0;
    const uint32_t x = is_whole ? call->input[0] : ifd_onnx_rows(call);
    const struct ifd_shape shape = shape_of(b, x);
    const int64_t whole = ifd_onnx_int(call, "replaced_value_int64", 0);
    const double real = ifd_onnx_f32(call, "replaced_value_float", 0);
    const int64_t columns = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
    if (is_whole && ints->int_count != 1 && ints->int_count != (uint64_t)columns) {
        ifd_build_fail(b, IFD_INVALID, "%u values for %lld columns", ints->int_count,
                       (long long)columns);
        return;
    }
    const uint32_t values = is_whole ? ifd_build_list(b, ints->ints, ints->int_count)
                                     : list_of(call, "imputed_value_floats", columns);
    if (values == IFD_NONE) {
        ifd_build_fail(b, IFD_INVALID, "no attribute \"imputed_value_floats\" or …\"_int64s\"");
        return;
    }
    const uint32_t number = is_whole ? ifd_build_list(b, &whole, 1) /* all of its 64 bits */
                                     : ifd_build_number(b, IFD_F32, real);
    const uint32_t is_missing = !is_whole && isnan(real)
                                    ? ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, x, x)
                                    : ifd_onnx_compared(b, IFD_OP_EQUAL, x, number);
    call->output[0] = as_given(call, ifd_onnx_selected(b, is_missing, values, x));
}

/* All inputs side by side, as floats. */
static void feature_vectorizer(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_axis_attrs attrs = {.axis = 1};
    uint32_t all = IFD_NONE;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const uint32_t x = ifd_build_cast(b, call->input[i], IFD_F32);
        const struct ifd_shape shape = shape_of(b, x);
        const int64_t dim[2] = {shape.rank > 0 ? shape.dim[0] : 1, -1};
        const uint32_t rows = ifd_build_reshape(b, x, dim, 2);
        all = all == IFD_NONE ? rows
                              : ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){all, rows}, 2,
                                               NULL, &attrs);
    }
    call->output[0] = all;
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
    return ifd_build_layer(b, x, ifd_onnx_floats(b, weights->floats, dim, 2), bias);
}

static void linear_regressor(struct ifd_onnx_call *call)
{
    const uint32_t y = linear(call, ifd_onnx_rows(call), ifd_onnx_int(call, "targets", 1));
    call->output[0] = ifd_onnx_transformed(call, y);
}

static void linear_classifier(struct ifd_onnx_call *call)
{
    const uint32_t labels = ifd_onnx_class_labels(call, "classlabels_ints");
    const int64_t count = labels == IFD_NONE ? 0 : shape_of(call->b, labels).dim[0];
    if (count < 2) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "%lld labels", (long long)count);
        return;
    }
    const uint32_t scores = linear(call, ifd_onnx_rows(call), count);
    call->output[0] = ifd_onnx_label_of(call->b, labels, scores);
    if (call->output_count > 1) {
        call->output[1] = ifd_onnx_transformed(call, scores);
    }
}

void ifd_onnx_ml(struct ifd_onnx_call *call, int which)
{
    static void (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_ARRAY_FEATURE_EXTRACTOR] = array_feature_extractor,
        [IFD_ONNX_BINARIZER] = binarizer,
        [IFD_ONNX_FEATURE_VECTORIZER] = feature_vectorizer,
        [IFD_ONNX_IMPUTER] = imputer,
        [IFD_ONNX_LINEAR_CLASSIFIER] = linear_classifier,
        [IFD_ONNX_LINEAR_REGRESSOR] = linear_regressor,
        [IFD_ONNX_NORMALIZER] = normalizer,
        [IFD_ONNX_SCALER] = scaler,
        [IFD_ONNX_ZIP_MAP] = zip_map,
    };
    functions[which](call);
}
