/* Normalizations: values less their mean, by their deviation. */
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t value)
{
    return ifd_build_desc(call->b, value)->shape;
}

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

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

/* Mean and variance of each channel of x, in place of those given; outputs 1 and 2 are what the
 * given ones become by them. */
static void take_moments(struct ifd_onnx_call *call, uint32_t x, uint32_t *mean, uint32_t *variance)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    const double momentum = ifd_onnx_f32(call, "momentum", 0.9);
    const uint32_t given[2] = {*mean, *variance};
    struct ifd_ints axes = {.count = rank > 0 ? rank - 1 : 0};
    for (uint32_t i = 1; i < axes.count; i++) {
        axes.value[i] = 1 + i;
    }
    *mean = ifd_build_reduce(b, IFD_OP_REDUCE_MEAN, x, &axes, false);
    const uint32_t centred = ifd_build_binary(b, IFD_OP_SUB, x, per_channel(b, *mean, rank));
    *variance = ifd_build_reduce(b, IFD_OP_REDUCE_MEAN, times(b, centred, centred), &axes, false);
    const uint32_t found[2] = {*mean, *variance};
    for (uint32_t i = 1; i < call->output_count && i < 3; i++) {
        call->output[i] =
            ifd_build_binary(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, given[i - 1], momentum),
                             ifd_build_with(b, IFD_OP_MUL, found[i - 1], 1 - momentum));
    }
}

/* x * factor + (bias - mean * factor), where the factor is scale / sqrt(variance + epsilon). */
static uint32_t batch_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    uint32_t mean = call->input[3], variance = call->input[4];
    if (rank < 2) {
        return ifd_build_fail(b, IFD_INVALID, "a batch of %u dimensions", rank);
    }
    if (ifd_onnx_int(call, "training_mode", 0) != 0) {
        take_moments(call, x, &mean, &variance);
    }
    variance = ifd_build_with(b, IFD_OP_ADD, variance, ifd_onnx_f32(call, "epsilon", 1e-5));
    const uint32_t factor =
        ifd_build_binary(b, IFD_OP_DIV, call->input[1], ifd_build_unary(b, IFD_OP_SQRT, variance));
    const uint32_t shift = ifd_build_binary(b, IFD_OP_SUB, call->input[2],
                                            ifd_build_binary(b, IFD_OP_MUL, mean, factor));
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
    const uint32_t y =
        ifd_build_standardize(b, x, &axes, ifd_onnx_f32(call, "epsilon", 1e-5), NULL);
    return scaled(b, y, per_channel(b, call->input[1], rank), per_channel(b, call->input[2], rank));
}

/* The axes from one on. */
static struct ifd_ints axes_from(uint32_t axis, uint32_t rank)
{
    struct ifd_ints axes = {.count = rank - axis};
    for (uint32_t i = 0; i < axes.count; i++) {
        axes.value[i] = axis + i;
    }
    return axes;
}

static uint32_t layer_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    const struct ifd_ints axes =
        axes_from(ifd_build_axis(b, ifd_onnx_int(call, "axis", -1), rank), rank);
    uint32_t moments[2];
    const uint32_t y =
        ifd_build_standardize(b, x, &axes, ifd_onnx_f32(call, "epsilon", 1e-5), moments);
    for (uint32_t i = 1; i < call->output_count; i++) {
        call->output[i] = moments[i - 1];
    }
    return scaled(b, y, ifd_onnx_input(call, 1), ifd_onnx_input(call, 2));
}

/* x / sqrt(mean of squares) */
static uint32_t rms_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(call, x).rank;
    const struct ifd_ints axes =
        axes_from(ifd_build_axis(b, ifd_onnx_int(call, "axis", -1), rank), rank);
    const uint32_t y = ifd_build_rms(b, x, &axes, ifd_onnx_f32(call, "epsilon", 1e-5));
    return scaled(b, y, ifd_onnx_input(call, 1), IFD_NONE);
}

/* Groups of channels, each standardized over all its elements. Before opset 21 scale and bias are
 * one number a group. */
static uint32_t group_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, x);
    const int64_t groups = ifd_onnx_int(call, "num_groups", 1);
    if (shape.rank < 2 || groups < 1 || shape.dim[1] % groups != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%lld groups of channels", (long long)groups);
    }
    const struct ifd_ints axes = axes_from(2, 3);
    const uint32_t rows = ifd_build_reshape(b, x, (const int64_t[]){shape.dim[0], groups, -1}, 3);
    uint32_t y = ifd_build_standardize(b, rows, &axes, ifd_onnx_f32(call, "epsilon", 1e-5), NULL);
    if (shape_of(call, call->input[1]).dim[0] == groups) {
        y = scaled(b, y, per_channel(b, call->input[1], 3), per_channel(b, call->input[2], 3));
        return ifd_build_reshape(b, y, shape.dim, shape.rank);
    }
    return scaled(b, ifd_build_reshape(b, y, shape.dim, shape.rank),
                  per_channel(b, call->input[1], shape.rank),
                  per_channel(b, call->input[2], shape.rank));
}

/* The format's epsilon: none; a constant tensor is 0. */
static uint32_t mean_variance_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_ints axes;
    if (!ifd_onnx_ints(call, "axes", &axes)) {
        axes = (struct ifd_ints){.count = 3, .value = {0, 2, 3}};
    }
    return ifd_build_standardize(call->b, x, &axes, 1e-18, NULL);
}

/* x / (bias + alpha / size * sum of squares of the channels around)^beta */
static uint32_t local_response(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, x);
    const int64_t size = ifd_onnx_int(call, "size", 1);
    const int64_t channels = shape.rank > 1 ? shape.dim[1] : 0;
    if (shape.rank < 2 || size < 1) {
        return ifd_build_fail(b, IFD_INVALID, "%lld neighbours of %lld channels", (long long)size,
                              (long long)channels);
    }
    const int64_t before = (size - 1) / 2 < channels ? (size - 1) / 2 : channels;
    const int64_t after = size / 2 < channels ? size / 2 : channels; /* behind them is nothing */
    struct ifd_pad_attrs pad = {.before = {.count = shape.rank}, .after = {.count = shape.rank}};
    pad.before.value[1] = before;
    pad.after.value[1] = after;
    const uint32_t square = times(b, x, x);
    const uint32_t padded = ifd_build_node(b, IFD_OP_PAD, &square, 1, NULL, &pad);
    uint32_t sum = ifd_build_cut(b, padded, 1, 0, channels);
    for (int64_t i = 1; b->code == IFD_OK && i <= before + after; i++) {
        sum = ifd_build_binary(b, IFD_OP_ADD, sum, ifd_build_cut(b, padded, 1, i, channels));
    }
    sum = ifd_build_with(b, IFD_OP_MUL, sum, ifd_onnx_f32(call, "alpha", 1e-4) / (double)size);
    sum = ifd_build_with(b, IFD_OP_ADD, sum, ifd_onnx_f32(call, "bias", 1));
    const double beta = ifd_onnx_f32(call, "beta", 0.75);
    return ifd_build_binary(b, IFD_OP_DIV, x, ifd_build_with(b, IFD_OP_POW, sum, beta));
}

/* x by the norm of each line along an axis; a line of zeros stays. */
static uint32_t lp_normalization(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_ints axis = {.count = 1, .value = {ifd_onnx_int(call, "axis", -1)}};
    const bool is_plain = ifd_onnx_int(call, "p", 2) == 1;
    const uint32_t terms = is_plain ? ifd_build_unary(b, IFD_OP_ABS, x) : times(b, x, x);
    const uint32_t sum = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, terms, &axis, true);
    const uint32_t norm = is_plain ? sum : ifd_build_unary(b, IFD_OP_SQRT, sum);
    const uint32_t is_zero =
        ifd_onnx_compared(b, IFD_OP_EQUAL, norm, ifd_build_number(b, IFD_F32, 0));
    const uint32_t divisor = ifd_onnx_selected(b, is_zero, ifd_build_number(b, IFD_F32, 1), norm);
    return ifd_build_binary(b, IFD_OP_DIV, x, divisor);
}

void ifd_onnx_normalize(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *, uint32_t) = {
        [IFD_ONNX_BATCH_NORMALIZATION] = batch_normalization,
        [IFD_ONNX_GROUP_NORMALIZATION] = group_normalization,
        [IFD_ONNX_INSTANCE_NORMALIZATION] = instance_normalization,
        [IFD_ONNX_LAYER_NORMALIZATION] = layer_normalization,
        [IFD_ONNX_LOCAL_RESPONSE] = local_response,
        [IFD_ONNX_LP_NORMALIZATION] = lp_normalization,
        [IFD_ONNX_MEAN_VARIANCE] = mean_variance_normalization,
        [IFD_ONNX_RMS_NORMALIZATION] = rms_normalization,
    };
    call->output[0] = functions[which](call, call->input[0]);
}
