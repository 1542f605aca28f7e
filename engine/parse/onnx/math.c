/* Functions of elements, reductions, order. */
#include <math.h>

#include "engine/parse/onnx/onnx_impl.h"

void ifd_onnx_unary(struct ifd_onnx_call *call, int op)
{
    call->output[0] = ifd_build_unary(call->b, (enum ifd_op)op, call->input[0]);
}

/* Legacy broadcasting of opset 6 and older is not here: exporters have not written it since 2017.
 */
void ifd_onnx_binary(struct ifd_onnx_call *call, int op)
{
    call->output[0] = ifd_build_binary(call->b, (enum ifd_op)op, call->input[0], call->input[1]);
}

static uint32_t compare(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y)
{
    const struct ifd_desc output = {.dtype = IFD_BOOL};
    return ifd_build_node(b, op, (const uint32_t[]){x, y}, 2, &output, NULL);
}

void ifd_onnx_compare(struct ifd_onnx_call *call, int op)
{
    call->output[0] = compare(call->b, (enum ifd_op)op, call->input[0], call->input[1]);
}

static uint32_t fold_inputs(struct ifd_onnx_call *call, enum ifd_op op)
{
    uint32_t y = call->input[0];
    for (uint32_t i = 1; i < call->input_count; i++) {
        y = ifd_build_binary(call->b, op, y, call->input[i]);
    }
    return y;
}

void ifd_onnx_fold_inputs(struct ifd_onnx_call *call, int op)
{
    call->output[0] = fold_inputs(call, (enum ifd_op)op);
}

/* ---- functions ---- */

static uint32_t clip(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const uint32_t bound[2] = {ifd_onnx_input(call, 1), ifd_onnx_input(call, 2)};
    if (dtype == IFD_F32) {
        double min = ifd_onnx_f32(call, "min", -HUGE_VAL);
        double max = ifd_onnx_f32(call, "max", HUGE_VAL);
        min = bound[0] == IFD_NONE ? min : ifd_build_number_of(b, bound[0], "the lower bound");
        max = bound[1] == IFD_NONE ? max : ifd_build_number_of(b, bound[1], "the upper bound");
        return ifd_build_clamp(b, x, min, max);
    }
    x = bound[0] == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_MAXIMUM, x, bound[0]);
    return bound[1] == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_MINIMUM, x, bound[1]);
}

/* gamma * (max(x, 0) + alpha * (exp(min(x, 0) / divisor) - 1)) */
static uint32_t exponential_below(struct ifd_builder *b, uint32_t x, double alpha, double gamma,
                                  double divisor)
{
    if (alpha == 1 && gamma == 1 && divisor == 1) {
        return ifd_build_unary(b, IFD_OP_ELU, x);
    }
    uint32_t below = ifd_build_with(b, IFD_OP_MINIMUM, x, 0);
    below = divisor == 1 ? below : ifd_build_with(b, IFD_OP_MUL, below, 1 / divisor);
    below = ifd_build_with(b, IFD_OP_SUB, ifd_build_unary(b, IFD_OP_EXP, below), 1);
    below = ifd_build_with(b, IFD_OP_MUL, below, alpha);
    const uint32_t sum = ifd_build_binary(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_RELU, x), below);
    return gamma == 1 ? sum : ifd_build_with(b, IFD_OP_MUL, sum, gamma);
}

static uint32_t gelu(struct ifd_builder *b, uint32_t x, bool approximate)
{
    const struct ifd_gelu_attrs attrs = {.approximate = approximate};
    return ifd_build_node(b, IFD_OP_GELU, &x, 1, NULL, &attrs);
}

static uint32_t select(struct ifd_builder *b, uint32_t condition, uint32_t x, uint32_t y)
{
    const struct ifd_desc output = {.dtype = ifd_build_desc(b, x)->dtype};
    return ifd_build_node(b, IFD_OP_SELECT, (const uint32_t[]){condition, x, y}, 3, &output, NULL);
}

static uint32_t power(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const uint32_t exponent = ifd_build_cast(b, call->input[1], dtype);
    const struct ifd_bytes content = ifd_build_content(b, exponent);
    if (dtype == IFD_F32 && content.size == sizeof(float)) {
        const double number = ifd_build_number_of(b, exponent, "the exponent");
        if (number == 2) {
            return ifd_build_binary(b, IFD_OP_MUL, x, x);
        }
        if (number == 0.5) {
            return ifd_build_unary(b, IFD_OP_SQRT, x);
        }
    }
    return ifd_build_binary(b, IFD_OP_POW, x, exponent);
}

static uint32_t cast(struct ifd_onnx_call *call, uint32_t x)
{
    enum ifd_dtype dtype = IFD_F32;
    const int64_t to = ifd_onnx_int(call, "to", 0);
    if (!ifd_onnx_dtype(to, &dtype)) {
        return ifd_build_fail(call->b, IFD_UNSUPPORTED, "a cast to element type %lld",
                              (long long)to);
    }
    return ifd_build_cast(call->b, x, dtype);
}

static uint32_t cumsum(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_cumsum_attrs attrs = {
        .axis = ifd_build_int_of(call->b, call->input[1], "the axis"),
        .exclusive = ifd_onnx_int(call, "exclusive", 0) != 0,
        .reverse = ifd_onnx_int(call, "reverse", 0) != 0,
    };
    return ifd_build_node(call->b, IFD_OP_CUMSUM, &x, 1, NULL, &attrs);
}

static uint32_t leaky_relu(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_leaky_relu_attrs attrs = {.alpha = (float)ifd_onnx_f32(call, "alpha", 0.01)};
    return ifd_build_node(call->b, IFD_OP_LEAKY_RELU, &x, 1, NULL, &attrs);
}

static uint32_t hard_sigmoid(struct ifd_onnx_call *call, uint32_t x)
{
    const double alpha = ifd_onnx_f32(call, "alpha", 0.2);
    const double beta = ifd_onnx_f32(call, "beta", 0.5);
    const uint32_t line =
        ifd_build_with(call->b, IFD_OP_ADD, ifd_build_with(call->b, IFD_OP_MUL, x, alpha), beta);
    return ifd_build_clamp(call->b, line, 0, 1);
}

static uint32_t modulo(struct ifd_onnx_call *call, uint32_t x)
{
    if (ifd_onnx_int(call, "fmod", 0) != 0) {
        return ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"fmod\" is 1");
    }
    return ifd_build_binary(call->b, IFD_OP_FLOOR_MOD, x, call->input[1]);
}

static uint32_t softsign(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t magnitude = ifd_build_unary(b, IFD_OP_ABS, x);
    return ifd_build_binary(b, IFD_OP_DIV, x, ifd_build_with(b, IFD_OP_ADD, magnitude, 1));
}

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static uint32_t thresholded(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t alpha = ifd_build_number(b, IFD_F32, ifd_onnx_f32(call, "alpha", 1));
    return select(b, compare(b, IFD_OP_GREATER, x, alpha), x, ifd_build_number(b, IFD_F32, 0));
}

static uint32_t elu(struct ifd_onnx_call *call, uint32_t x)
{
    return exponential_below(call->b, x, ifd_onnx_f32(call, "alpha", 1), 1, 1);
}

static uint32_t selu(struct ifd_onnx_call *call, uint32_t x)
{
    return exponential_below(call->b, x, ifd_onnx_f32(call, "alpha", 1.67326319217681884765625),
                             ifd_onnx_f32(call, "gamma", 1.05070102214813232421875), 1);
}

static uint32_t celu(struct ifd_onnx_call *call, uint32_t x)
{
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    return exponential_below(call->b, x, alpha, 1, alpha);
}

static uint32_t softplus(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_softplus(call->b, x);
}

static uint32_t mish(struct ifd_onnx_call *call, uint32_t x)
{
    return times(call->b, x, ifd_build_unary(call->b, IFD_OP_TANH, ifd_build_softplus(call->b, x)));
}

static uint32_t exact_or_tanh_gelu(struct ifd_onnx_call *call, uint32_t x)
{
    return gelu(call->b, x, ifd_onnx_text_is(call, "approximate", "tanh", false));
}

/* With an optional bias. */
static uint32_t fast_gelu(struct ifd_onnx_call *call, uint32_t x)
{
    const uint32_t bias = ifd_onnx_input(call, 1);
    return gelu(call->b, bias == IFD_NONE ? x : ifd_build_binary(call->b, IFD_OP_ADD, x, bias),
                true);
}

static uint32_t quick_gelu(struct ifd_onnx_call *call, uint32_t x)
{
    const double alpha = ifd_onnx_f32(call, "alpha", 1.702);
    const uint32_t scaled = ifd_build_with(call->b, IFD_OP_MUL, x, alpha);
    return times(call->b, x, ifd_build_unary(call->b, IFD_OP_LOGISTIC, scaled));
}

static uint32_t reciprocal(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_binary(call->b, IFD_OP_DIV, ifd_build_number(call->b, IFD_F32, 1), x);
}

static uint32_t is_nan(struct ifd_onnx_call *call, uint32_t x)
{
    return compare(call->b, IFD_OP_NOT_EQUAL, x, x);
}

static uint32_t tangent(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_binary(call->b, IFD_OP_DIV, ifd_build_unary(call->b, IFD_OP_SIN, x),
                            ifd_build_unary(call->b, IFD_OP_COS, x));
}

static uint32_t exclusive_or(struct ifd_onnx_call *call, uint32_t x)
{
    return compare(call->b, IFD_OP_NOT_EQUAL, x, call->input[1]);
}

static uint32_t mean(struct ifd_onnx_call *call, uint32_t x)
{
    (void)x;
    return ifd_build_with(call->b, IFD_OP_MUL, fold_inputs(call, IFD_OP_ADD),
                          1.0 / call->input_count);
}

static uint32_t where(struct ifd_onnx_call *call, uint32_t x)
{
    return select(call->b, x, call->input[1], call->input[2]);
}

static uint32_t identity(struct ifd_onnx_call *call, uint32_t x)
{
    (void)call;
    return x;
}

void ifd_onnx_function(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *, uint32_t) = {
        [IFD_ONNX_CLIP] = clip,
        [IFD_ONNX_ELU] = elu,
        [IFD_ONNX_SELU] = selu,
        [IFD_ONNX_CELU] = celu,
        [IFD_ONNX_LEAKY_RELU] = leaky_relu,
        [IFD_ONNX_THRESHOLDED_RELU] = thresholded,
        [IFD_ONNX_HARD_SIGMOID] = hard_sigmoid,
        [IFD_ONNX_SOFTPLUS] = softplus,
        [IFD_ONNX_SOFTSIGN] = softsign,
        [IFD_ONNX_MISH] = mish,
        [IFD_ONNX_GELU] = exact_or_tanh_gelu,
        [IFD_ONNX_FAST_GELU] = fast_gelu,
        [IFD_ONNX_QUICK_GELU] = quick_gelu,
        [IFD_ONNX_RECIPROCAL] = reciprocal,
        [IFD_ONNX_IS_NAN] = is_nan,
        [IFD_ONNX_TAN] = tangent,
        [IFD_ONNX_POW] = power,
        [IFD_ONNX_MOD] = modulo,
        [IFD_ONNX_XOR] = exclusive_or,
        [IFD_ONNX_MEAN] = mean,
        [IFD_ONNX_WHERE] = where,
        [IFD_ONNX_CAST] = cast,
        [IFD_ONNX_IDENTITY] = identity,
        [IFD_ONNX_CUMSUM] = cumsum,
    };
    call->output[0] = functions[which](call, call->input[0]);
}

/* ---- reductions ---- */

static uint32_t reduced(struct ifd_builder *b, enum ifd_onnx_reduction which, uint32_t x,
                        const struct ifd_ints *axes, bool keep)
{
    static const enum ifd_op ops[] = {
        [IFD_ONNX_REDUCE_MEAN] = IFD_OP_REDUCE_MEAN, [IFD_ONNX_REDUCE_SUM] = IFD_OP_REDUCE_SUM,
        [IFD_ONNX_REDUCE_MAX] = IFD_OP_REDUCE_MAX,   [IFD_ONNX_REDUCE_MIN] = IFD_OP_REDUCE_MIN,
        [IFD_ONNX_REDUCE_PROD] = IFD_OP_REDUCE_PROD,
    };
    switch (which) {
    case IFD_ONNX_REDUCE_L1:
        return ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_build_unary(b, IFD_OP_ABS, x), axes,
                                keep);
    case IFD_ONNX_REDUCE_SUM_SQUARE:
        return ifd_build_reduce(b, IFD_OP_REDUCE_SUM, times(b, x, x), axes, keep);
    case IFD_ONNX_REDUCE_L2:
        return ifd_build_unary(b, IFD_OP_SQRT,
                               ifd_build_reduce(b, IFD_OP_REDUCE_SUM, times(b, x, x), axes, keep));
    case IFD_ONNX_REDUCE_LOG_SUM:
        return ifd_build_unary(b, IFD_OP_LOG,
                               ifd_build_reduce(b, IFD_OP_REDUCE_SUM, x, axes, keep));
    case IFD_ONNX_REDUCE_LOG_SUM_EXP: {
        const uint32_t max = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, x, axes, true);
        const uint32_t powers =
            ifd_build_unary(b, IFD_OP_EXP, ifd_build_binary(b, IFD_OP_SUB, x, max));
        const uint32_t sum = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, powers, axes, keep);
        const struct ifd_shape shape = ifd_build_desc(b, sum)->shape;
        return ifd_build_binary(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_LOG, sum),
                                ifd_build_reshape(b, max, shape.dim, shape.rank));
    }
    default:
        return ifd_build_reduce(b, ops[which], x, axes, keep);
    }
}

void ifd_onnx_reduce(struct ifd_onnx_call *call, int which)
{
    const uint32_t x = call->input[0];
    const uint32_t rank = ifd_build_desc(call->b, x)->shape.rank;
    struct ifd_ints axes;
    if (!ifd_onnx_axes(call, 1, rank, &axes)) {
        if (ifd_onnx_int(call, "noop_with_empty_axes", 0) != 0) {
            call->output[0] = x;
            return;
        }
        axes.count = rank;
        for (uint32_t d = 0; d < rank; d++) {
            axes.value[d] = d;
        }
    }
    call->output[0] = reduced(call->b, (enum ifd_onnx_reduction)which, x, &axes,
                              ifd_onnx_int(call, "keepdims", 1) != 0);
}

void ifd_onnx_arg(struct ifd_onnx_call *call, int op)
{
    const struct ifd_arg_attrs attrs = {.axis = ifd_onnx_int32(call, "axis", 0),
                                        .keep_dims = ifd_onnx_int(call, "keepdims", 1) != 0};
    const struct ifd_desc output = {.dtype = IFD_S64};
    if (ifd_onnx_int(call, "select_last_index", 0) != 0) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"select_last_index\" is 1");
    }
    call->output[0] = ifd_build_node(call->b, (enum ifd_op)op, call->input, 1, &output, &attrs);
}

/* From opset 13 on along one axis; before, along all dimensions from the axis on. */
void ifd_onnx_soft(struct ifd_onnx_call *call, int op)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = call->input[0];
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const bool is_new = call->opset >= 13;
    const uint32_t axis =
        ifd_build_axis(b, ifd_onnx_int(call, "axis", is_new ? -1 : 1), shape.rank);
    if (is_new || axis + 1 == shape.rank) {
        call->output[0] = ifd_build_softmax(b, (enum ifd_op)op, x, axis);
        return;
    }
    int64_t dim[2] = {1, 1};
    for (uint32_t d = 0; d < shape.rank; d++) {
        dim[d < axis ? 0 : 1] *= shape.dim[d];
    }
    const uint32_t rows = ifd_build_reshape(b, x, dim, 2);
    const uint32_t y = ifd_build_softmax(b, (enum ifd_op)op, rows, 1);
    call->output[0] = ifd_build_reshape(b, y, shape.dim, shape.rank);
}
