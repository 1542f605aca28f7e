/* Weights, bias, scales and activation of a layer, for the kernels. */
#include "backends/cpuacc/ops/product.h"

#include "engine/tensor/fixed.h"

#include <math.h>
#include <string.h>

/* The kernels' requantization holds factors below this (kernels.h): shift at most 7. */
#define FACTOR_MAX 64.0

/* Limit of a sum, bias included (kernels.h); shifts to the left lower it. */
#define SUM_MAX ((int64_t)1 << 29)

static bool is_dynamic(const struct ifd_node_view *node)
{
    return node->input[0].desc->dtype == IFD_F32 && ifd_acc_is_q8(node->input[1].desc->dtype) &&
           (node->op == IFD_OP_CONV2D || node->op == IFD_OP_DEPTHWISE_CONV2D ||
            node->op == IFD_OP_FULLY_CONNECTED);
}

bool ifd_acc_product_takes(const struct ifd_node_view *node, int32_t activation,
                           struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    const enum ifd_dtype weights = node->input[1].desc->dtype;
    const bool has_bias = node->input_count > 2 && node->input[2].desc;
    float min = 0, max = 0;
    const bool fits = dtype == weights || is_dynamic(node) ||
                      (ifd_low_rounds_even(node) && ifd_acc_is_q8(weights));
    if (!fits || (dtype != IFD_F32 && !ifd_acc_is_q8(dtype)) || node->output[0].dtype != dtype) {
        ifd_fail(reason, IFD_UNSUPPORTED, "data of type %s with weights of type %s",
                 ifd_dtype_name(dtype), ifd_dtype_name(weights));
        return false;
    }
    if (!node->input[1].data.data || (has_bias && !node->input[2].data.data) ||
        !ifd_low_clamp_f32(activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "weights or bias are not constant, or the activation is not a clamp");
        return false;
    }
    const struct ifd_low_scales scales = ifd_low_read_scales(node);
    for (uint32_t i = 0; ifd_acc_is_q8(dtype) && i < scales.weights->count; i++) {
        if (!(ifd_low_factor(&scales, i) < FACTOR_MAX)) {
            ifd_fail(reason, IFD_UNSUPPORTED, "factor %g of channel %u, expected below %g",
                     ifd_low_factor(&scales, i), i, FACTOR_MAX);
            return false;
        }
    }
    if (weights != IFD_F32 && !ifd_low_sums_fit(node, &scales, SUM_MAX)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "sums of products may exceed 29 bits");
        return false;
    }
    return true;
}

/* Of weights as s8. */
static int32_t native_zero(const struct ifd_desc *weights)
{
    return weights->quant.zero_point[0] - (weights->dtype == IFD_U8 ? 128 : 0);
}

static enum ifd_code init_requant(struct ifd_acc_lowering *lowering,
                                  const struct ifd_node_view *node, int32_t activation,
                                  enum ifd_round round, struct ifd_acc_product *product,
                                  struct ifd_err *err)
{
    const struct ifd_desc *input = node->input[0].desc;
    const struct ifd_desc *weights = node->input[1].desc;
    const bool is_even = ifd_low_rounds_even(node);
    const bool is_real = lowering->exact && node->op == IFD_OP_FULLY_CONNECTED && !is_even;
    double *real =
        is_real ? ifd_low_params(&lowering->base, product->channels, sizeof(*real)) : NULL;
    if (is_real && !real) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu scales", product->channels);
    }
    product->scales = ifd_low_read_scales(node);
    for (size_t i = 0; is_real && i < product->channels; i++) {
        real[i] = ifd_low_factor(&product->scales, i);
    }
    struct ifd_requant *requant = &product->requant;
    *requant = (struct ifd_requant){
        .bias =
            node->input_count > 2 ? (const int32_t *)(const void *)node->input[2].data.data : NULL,
        .in_zero = ifd_acc_zero(input),
        .out_zero = ifd_acc_zero(&node->output[0]),
        .weight_zero = native_zero(weights),
        .round = is_even                           ? IFD_ROUND_EVEN
                 : lowering->exact || IFD_Q8_EXACT ? round
                                                   : IFD_ROUND_FAST,
    };
    (void)ifd_acc_clamp_q8(activation, &node->output[0], &requant->out_min, &requant->out_max);
    if (is_real) {
        requant->round = IFD_ROUND_NONE;
        product->real = real;
    }
    return IFD_OK;
}

enum ifd_code ifd_acc_product_init(struct ifd_acc_lowering *lowering,
                                   const struct ifd_node_view *node, int32_t activation,
                                   size_t channels, enum ifd_round round,
                                   struct ifd_acc_product *ret, struct ifd_err *err)
{
    const struct ifd_operand *weights = &node->input[1];
    *ret = (struct ifd_acc_product){
        .is_q8 = ifd_acc_is_q8(node->input[0].desc->dtype),
        .is_dynamic = is_dynamic(node),
        .is_whole = is_dynamic(node) && ifd_low_rounds_even(node),
        .scales = {.weights = &weights->desc->quant},
        .weights = weights->data.data,
        .weight_bytes = weights->data.size,
        .flip_weights = weights->desc->dtype == IFD_U8,
        .channels = channels,
        .channel_is_last = node->op == IFD_OP_DEPTHWISE_CONV2D,
    };
    (void)ifd_low_clamp_f32(activation, &ret->min, &ret->max);
    if (ret->is_dynamic) {
        ret->is_q8 = node->op != IFD_OP_DEPTHWISE_CONV2D;
        ret->requant = (struct ifd_requant){.weight_zero = native_zero(weights->desc),
                                            .round = IFD_ROUND_NONE};
    } else if (ret->is_q8) {
        return init_requant(lowering, node, activation, round, ret, err);
    }
    ret->bias_f32 =
        node->input_count > 2 ? (const float *)(const void *)node->input[2].data.data : NULL;
    return IFD_OK;
}

/* Of 8-bit weights that become floats. */
static bool widens(const struct ifd_acc_product *product)
{
    return product->is_dynamic && !product->is_q8;
}

int32_t ifd_acc_product_weight(const struct ifd_acc_product *product, size_t i)
{
    const uint8_t byte =
        ((const uint8_t *)product->weights)[i] ^ (product->flip_weights ? 0x80 : 0);
    return (int8_t)byte - product->requant.weight_zero;
}

float ifd_acc_product_scale(const struct ifd_acc_product *product, size_t channel)
{
    return product->scales.weights->scale[product->scales.weights->count > 1 ? channel : 0];
}

/* Bytes of the copy of the weights, aligned for the numbers that follow. */
static size_t copy_bytes(const struct ifd_acc_product *product)
{
    const size_t bytes = widens(product)         ? product->weight_bytes * sizeof(float)
                         : product->flip_weights ? product->weight_bytes
                                                 : 0;
    return (bytes + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
}

size_t ifd_acc_product_workspace(const struct ifd_acc_product *product)
{
    const bool rounds = product->is_q8 && !product->is_dynamic;
    return copy_bytes(product) + (rounds ? 3 * product->channels * sizeof(int32_t) : 0);
}

/* A constant result takes the place of the bias that makes it; its factor becomes 1. */
static void settle(const struct ifd_requant *requant, float factor, size_t c, int32_t *bias,
                   int32_t *multiplier, int32_t *shift)
{
    const int32_t far = 1 << 20; /* beyond any clamp */
    const float even = fminf(fmaxf(rintf((float)bias[c] * factor), (float)-far), (float)far);
    const int32_t result = requant->round == IFD_ROUND_EVEN ? (int32_t)even
                           : requant->round == IFD_ROUND_SINGLE
                               ? ifd_fixed_scale_single(bias[c], multiplier[c], shift[c])
                               : ifd_fixed_scale_double(bias[c], multiplier[c], shift[c]);
    bias[c] = result < -far ? -far : result > far ? far : result;
    multiplier[c] = 1 << 30;
    shift[c] = 1;
}

struct ifd_requant ifd_acc_product_requant(const struct ifd_acc_product *product,
                                           uint8_t *workspace)
{
    struct ifd_requant requant = product->requant;
    if (product->is_dynamic) {
        return requant;
    }
    int32_t *multiplier = (int32_t *)(void *)(workspace + copy_bytes(product));
    int32_t *shift = multiplier + product->channels, *bias = shift + product->channels;
    const struct ifd_bytes weights = {product->weights, product->weight_bytes};
    const uint8_t zero = (uint8_t)product->scales.weights->zero_point[0];
    for (size_t i = 0; i < product->channels; i++) {
        int exponent = 0;
        ifd_fixed_from_real(ifd_low_factor(&product->scales, i), &multiplier[i], &exponent);
        shift[i] = exponent;
    }
    if (requant.bias && requant.round != IFD_ROUND_NONE) {
        memcpy(bias, requant.bias, product->channels * sizeof(*bias));
        requant.bias = bias;
        for (size_t i = 0; i < product->channels; i++) {
            if (ifd_low_is_nothing(&weights, product->channels, product->channel_is_last, zero,
                                   i)) {
                settle(&requant, (float)ifd_low_factor(&product->scales, i), i, bias, multiplier,
                       shift);
            }
        }
    }
    requant.multiplier = multiplier;
    requant.shift = shift;
    return requant;
}

const void *ifd_acc_product_weights(const struct ifd_acc_product *product, uint8_t *workspace)
{
    if (widens(product)) { /* channels lie innermost */
        float *to = (float *)(void *)workspace;
        for (size_t i = 0; i < product->weight_bytes; i++) {
            to[i] = (float)ifd_acc_product_weight(product, i) *
                    ifd_acc_product_scale(product, i % product->channels);
        }
        return to;
    }
    if (!product->flip_weights) {
        return product->weights;
    }
    const uint8_t *from = product->weights;
    size_t i = 0;
    for (; i + 8 <= product->weight_bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, from + i, 8);
        word ^= 0x8080808080808080u;
        memcpy(workspace + i, &word, 8);
    }
    for (; i < product->weight_bytes; i++) {
        workspace[i] = from[i] ^ 0x80;
    }
    return workspace;
}
