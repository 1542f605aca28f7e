/* Scales, factors and bounds of quantized layers, and whether their sums fit. */
#include "backends/lowering/requantize.h"

#include "engine/tensor/fixed.h"
#include "engine/tensor/softmax8.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <string.h>

bool ifd_low_clamp_f32(int32_t activation, float *ret_min, float *ret_max)
{
    *ret_min = activation == IFD_ACT_NONE           ? -INFINITY
               : activation == IFD_ACT_RELU_N1_TO_1 ? -1.0f
                                                    : 0.0f;
    *ret_max = activation == IFD_ACT_RELU6          ? 6.0f
               : activation == IFD_ACT_RELU_N1_TO_1 ? 1.0f
                                                    : INFINITY;
    return activation != IFD_ACT_TANH && activation != IFD_ACT_SIGN_BIT;
}

int32_t ifd_low_bound(float real, float scale, int32_t zero, int32_t lowest, int32_t highest)
{
    const float bound = roundf(real / scale) + (float)zero;
    return !(bound > (float)lowest) ? lowest : bound < (float)highest ? (int32_t)bound : highest;
}

#define NORM_SCALE_MAX 0x1p3f /* 10000 of its steps are the least variance */

/* The factor of a sum of 8 bits is 2^-19 of that of its scales, and below 1. */
#define SUM_WRAPS 0x1p11

bool ifd_low_wraps(const struct ifd_node_view *node)
{
    const bool is_sum = node->op == IFD_OP_ADD || node->op == IFD_OP_SUB;
    double factor = 1;
    bool is_stored = node->output_count == 1 && node->output[0].quant.count == 1;
    const uint32_t first = node->op == IFD_OP_TRANSPOSE_CONV2D ? 1 : 0; /* behind the shape */
    for (uint32_t i = first; is_stored && i < node->input_count && i < first + 2; i++) {
        const struct ifd_desc *in = node->input[i].desc;
        double most = in && in->quant.count > 0 ? 0 : 1;
        for (uint32_t c = 0; in && c < in->quant.count; c++) {
            most = fmax(most, (double)in->quant.scale[c]);
        }
        factor = is_sum ? fmax(i == first ? 0 : factor, most) : factor * most;
    }
    factor = is_stored ? factor / (double)node->output[0].quant.scale[0] : 0;
    return ifd_fixed_wraps(is_sum ? factor * SUM_WRAPS : factor);
}

static bool is_odd(const struct ifd_desc *desc)
{
    const uint32_t types = IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16);
    bool is = false;
    for (uint32_t c = 0; desc && (IFD_BIT(desc->dtype) & types) != 0 && c < desc->quant.count;
         c++) {
        is = is || !isnormal(desc->quant.scale[c]);
    }
    return is;
}

/* Scales inside an LSTM layer that the backends compute with. */
static bool is_odd_lstm(const struct ifd_node_view *node)
{
    const struct ifd_lstm_attrs *attrs = node->attrs;
    const float hidden = attrs->hidden_scale;
    bool is = hidden >= 0 && !(isnormal(hidden) && hidden <= 1e30f);
    for (uint32_t g = 0; g < IFD_LSTM_GATES; g++) {
        const uint32_t norm = IFD_LSTM_NORM(g);
        const struct ifd_desc *weights = norm < node->input_count ? node->input[norm].desc : NULL;
        is = is || !(attrs->gate_scale[g] >= 1e-30f && attrs->gate_scale[g] <= 1e30f) ||
             (weights && weights->quant.scale[0] > NORM_SCALE_MAX);
    }
    return is;
}

/* LiteRT's arithmetic of these has no fixed-point factor that fits. */
static bool is_beyond_factors(const struct ifd_node_view *node)
{
    const struct ifd_desc *in = node->input_count > 0 ? node->input[0].desc : NULL;
    const struct ifd_softmax_attrs *softmax = node->attrs;
    if (node->op == IFD_OP_LSTM) {
        return is_odd_lstm(node);
    }
    if (!in || in->quant.count != 1) {
        return false;
    }
    if (node->op == IFD_OP_SOFTMAX && in->dtype != IFD_S16) {
        return (double)softmax->beta * (double)in->quant.scale[0] <= IFD_SOFTMAX8_FACTOR_MIN;
    }
    if (node->op == IFD_OP_BASIC_LSTM) {
        const struct ifd_desc *bias = node->input[3].desc;
        return !(0x1p12f * bias->quant.scale[0] < 0x1p31f);
    }
    return (node->op == IFD_OP_LOGISTIC || node->op == IFD_OP_TANH) && in->dtype == IFD_S16 &&
           in->quant.scale[0] > 1;
}

bool ifd_low_has_odd_scale(const struct ifd_node_view *node)
{
    bool has = is_beyond_factors(node);
    for (uint32_t i = 0; i < node->input_count; i++) {
        has = has || is_odd(node->input[i].desc);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        has = has || is_odd(&node->output[i]);
    }
    return has;
}

bool ifd_low_rounds_even(const struct ifd_node_view *node)
{
    const struct ifd_conv2d_attrs *conv = node->attrs;
    const struct ifd_fully_connected_attrs *dense = node->attrs;
    const struct ifd_binary_attrs *binary = node->attrs;
    switch (node->op) {
    case IFD_OP_CONV2D:
    case IFD_OP_DEPTHWISE_CONV2D:
        return conv->rounds_even;
    case IFD_OP_FULLY_CONNECTED:
        return dense->rounds_even;
    case IFD_OP_ADD:
    case IFD_OP_MUL:
        return binary->rounds_even;
    default:
        return false;
    }
}

/* As in the reference kernels: u8 layers except fully connected ones multiply scales in single
 * precision. */
struct ifd_low_scales ifd_low_read_scales(const struct ifd_node_view *node)
{
    if (node->input[0].desc->dtype == IFD_F32) {
        return (struct ifd_low_scales){.weights = &node->input[1].desc->quant};
    }
    return (struct ifd_low_scales){
        .in = node->input[0].desc->quant.scale[0],
        .out = (double)node->output[0].quant.scale[0],
        .weights = &node->input[1].desc->quant,
        .in_single = node->input[0].desc->dtype == IFD_U8 && node->op != IFD_OP_FULLY_CONNECTED,
        .all_single = ifd_low_rounds_even(node),
    };
}

/* The factor of one channel's sums. */
double ifd_low_factor(const struct ifd_low_scales *scales, size_t channel)
{
    const float weight = scales->weights->scale[scales->weights->count > 1 ? channel : 0];
    if (scales->all_single) {
        return (double)(scales->in * weight / (float)scales->out);
    }
    if (scales->in_single) {
        return (double)(scales->in * weight) / scales->out;
    }
    return (double)scales->in * (double)weight / scales->out;
}

/* Are all weights of channel c zero? Then its result is constant, whatever its bias: converters
 * make channels like that, with a bias of up to 2^30. */
bool ifd_low_is_nothing(const struct ifd_bytes *weights, size_t channels, bool channel_is_last,
                        uint8_t zero, size_t c)
{
    const size_t length = weights->size / channels;
    const uint8_t *w = weights->data + (channel_is_last ? c : c * length);
    for (size_t i = 0; i < length; i++) {
        if (w[channel_is_last ? i * channels : i] != zero) {
            return false;
        }
    }
    return true;
}

/* Sum of |weight - zero|. 64 weights at a time, so that compilers vectorize. */
#define SPREAD_COUNT ((size_t)64)

static int64_t spread(const uint8_t *w, size_t count, uint8_t flip, int32_t zero)
{
    int64_t sum = 0;
    for (; count >= SPREAD_COUNT; count -= SPREAD_COUNT, w += SPREAD_COUNT) {
        int32_t part = 0;
        for (size_t i = 0; i < SPREAD_COUNT; i++) {
            const int32_t distance = (int8_t)(w[i] ^ flip) - zero;
            part += distance < 0 ? -distance : distance;
        }
        sum += part;
    }
    for (size_t i = 0; i < count; i++) {
        const int32_t distance = (int8_t)(w[i] ^ flip) - zero;
        sum += distance < 0 ? -distance : distance;
    }
    return sum;
}

/* What the bias of channel c leaves of sum_max for its products; less where factors shift to the
 * left. Sums that become floats are not shifted, and their bias is separate. */
static int64_t room(const struct ifd_node_view *node, const struct ifd_low_scales *scales, size_t c,
                    int64_t limit)
{
    const bool has_bias = node->input_count > 2 && node->input[2].data.data;
    const double real = node->output[0].dtype == IFD_F32 ? 0 : ifd_low_factor(scales, c);
    int32_t bias = 0;
    for (double least = 1; limit > 0 && !(real < least); least *= 2) {
        limit /= 2;
    }
    if (has_bias && node->input[2].desc->dtype == IFD_S32) {
        memcpy(&bias, node->input[2].data.data + c * sizeof(bias), sizeof(bias));
    }
    return limit - (bias < 0 ? -(int64_t)bias : bias);
}

/* Weights are summed only where the bound by their number does not decide. */
bool ifd_low_sums_fit(const struct ifd_node_view *node, const struct ifd_low_scales *scales,
                      int64_t sum_max)
{
    const struct ifd_desc *weights = node->input[1].desc;
    const struct ifd_bytes *data = &node->input[1].data;
    const bool is_depthwise = node->op == IFD_OP_DEPTHWISE_CONV2D;
    const size_t channels = (size_t)weights->shape.dim[is_depthwise ? 3 : 0],
                 length = data->size / (channels ? channels : 1);
    const uint8_t flip = weights->dtype == IFD_U8 ? 0x80 : 0;
    const int32_t zero = weights->quant.zero_point[0];
    const int32_t native = zero - flip;
    const int64_t most = (int64_t)length * (native < 0 ? 127 - native : native + 128);
    for (size_t c = 0; c < channels; c++) {
        const int64_t limit = room(node, scales, c, sum_max);
        if (most * 255 < limit ||
            (!ifd_fixed_wraps(ifd_low_factor(scales, c)) &&
             ifd_low_is_nothing(data, channels, is_depthwise, (uint8_t)zero, c))) {
            continue;
        }
        if (is_depthwise || spread(data->data + c * length, length, flip, native) * 255 >= limit) {
            return false;
        }
    }
    return true;
}
