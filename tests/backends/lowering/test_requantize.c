/* Factors, bounds and sums of quantized layers. */
#include "backends/lowering/requantize.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

static void bounds_are_cut_off_at_the_type(void)
{
    EXPECT_INT(ifd_low_bound(6.0f, 0.1f, 5, 0, 255), 65);
    EXPECT_INT(ifd_low_bound(60.0f, 0.1f, 5, 0, 255), 255);
    EXPECT_INT(ifd_low_bound(-60.0f, 0.1f, 5, 0, 255), 0);
    EXPECT_INT(ifd_low_bound(-INFINITY, 0.1f, 5, -128, 127), -128);
    EXPECT_INT(ifd_low_bound(INFINITY, 0.1f, 5, -128, 127), 127);
}

static void clamps_have_bounds_and_others_none(void)
{
    float min = 1, max = 1;
    EXPECT(ifd_low_clamp_f32(IFD_ACT_RELU6, &min, &max) && min == 0 && max == 6);
    EXPECT(ifd_low_clamp_f32(IFD_ACT_RELU_N1_TO_1, &min, &max) && min == -1 && max == 1);
    EXPECT(ifd_low_clamp_f32(IFD_ACT_NONE, &min, &max) && isinf(min) && isinf(max));
    EXPECT(!ifd_low_clamp_f32(IFD_ACT_TANH, &min, &max));
}

enum { CHANNELS = 3, LENGTH = 64 };

/* A fully connected layer of u8. */
struct layer {
    uint8_t weights[CHANNELS][LENGTH];
    int32_t bias[CHANNELS];
    float scale[3];
    int32_t zero[3];
    struct ifd_desc desc[3], out;
    struct ifd_operand operand[3];
    struct ifd_node_view node;
    union {
        struct ifd_conv2d_attrs conv;
        struct ifd_fully_connected_attrs dense;
    } attrs;
};

static const struct ifd_node_view *make_layer(struct layer *layer, float in, float weight,
                                              float out)
{
    *layer = (struct layer){.scale = {in, weight, out}, .zero = {7, 100, 9}};
    memset(layer->weights, 100, sizeof(layer->weights));
    for (uint32_t i = 0; i < 3; i++) {
        layer->desc[i].dtype = i == 2 ? IFD_S32 : IFD_U8;
        layer->desc[i].quant = (struct ifd_quant){
            .count = 1, .scale = &layer->scale[i], .zero_point = &layer->zero[i]};
        layer->operand[i].desc = &layer->desc[i];
    }
    layer->desc[1].shape = (struct ifd_shape){2, {CHANNELS, LENGTH}};
    layer->operand[1].data =
        (struct ifd_bytes){.data = layer->weights[0], .size = sizeof(layer->weights)};
    layer->operand[2].data =
        (struct ifd_bytes){.data = (const uint8_t *)layer->bias, .size = sizeof(layer->bias)};
    layer->out = (struct ifd_desc){
        .dtype = IFD_U8,
        .quant = {.count = 1, .scale = &layer->scale[2], .zero_point = &layer->zero[2]}};
    layer->node = (struct ifd_node_view){.op = IFD_OP_FULLY_CONNECTED,
                                         .attrs = &layer->attrs,
                                         .input = layer->operand,
                                         .input_count = 3,
                                         .output = &layer->out,
                                         .output_count = 1};
    return &layer->node;
}

static void factors_are_those_of_the_reference(void)
{
    struct layer layer;
    const struct ifd_node_view *node = make_layer(&layer, 0.1f, 0.3f, 0.7f);
    struct ifd_low_scales scales = ifd_low_read_scales(node);
    EXPECT(ifd_low_factor(&scales, 0) == (double)0.1f * (double)0.3f / (double)0.7f);
    layer.node.op = IFD_OP_CONV2D; /* u8 convolutions multiply in single precision */
    scales = ifd_low_read_scales(node);
    EXPECT(ifd_low_factor(&scales, 0) == (double)(0.1f * 0.3f) / (double)0.7f);
    layer.attrs.conv.rounds_even = true;
    scales = ifd_low_read_scales(node);
    EXPECT(ifd_low_factor(&scales, 0) == (double)(0.1f * 0.3f / 0.7f));
}

static void channels_of_zeros_are_found(void)
{
    struct layer layer;
    make_layer(&layer, 1, 1, 1);
    layer.weights[1][LENGTH - 1] = 101;
    const struct ifd_bytes *data = &layer.operand[1].data;
    EXPECT(ifd_low_is_nothing(data, CHANNELS, false, 100, 0));
    EXPECT(!ifd_low_is_nothing(data, CHANNELS, false, 100, 1));
    EXPECT(!ifd_low_is_nothing(data, CHANNELS, false, 101, 0));
    /* channels last: that weight is the last of channel 127 % 3 */
    EXPECT(!ifd_low_is_nothing(data, CHANNELS, true, 100, 127 % CHANNELS));
    EXPECT(ifd_low_is_nothing(data, CHANNELS, true, 100, 128 % CHANNELS));
}

/* 64 weights one step from zero: sums of up to 64 * 255. */
static void sums_fit_by_their_weights_and_bias(void)
{
    struct layer layer;
    const struct ifd_node_view *node = make_layer(&layer, 1, 1, 2);
    const struct ifd_low_scales scales = ifd_low_read_scales(node);
    const int64_t sum = (int64_t)LENGTH * 255;
    memset(layer.weights[1], 99, LENGTH);
    EXPECT(ifd_low_sums_fit(node, &scales, sum + 1));
    EXPECT(!ifd_low_sums_fit(node, &scales, sum));
    layer.bias[1] = -5;
    EXPECT(!ifd_low_sums_fit(node, &scales, sum + 5));
    EXPECT(ifd_low_sums_fit(node, &scales, sum + 6));
    layer.bias[0] = INT32_MAX; /* of a channel that is constant anyway */
    EXPECT(ifd_low_sums_fit(node, &scales, sum + 6));
}

static void shifts_to_the_left_leave_less_for_sums(void)
{
    struct layer layer;
    const struct ifd_node_view *node = make_layer(&layer, 1, 1, 0.25f); /* a factor of 4: 3 bits */
    const struct ifd_low_scales scales = ifd_low_read_scales(node);
    const int64_t sum = (int64_t)LENGTH * 255;
    memset(layer.weights[1], 99, LENGTH);
    EXPECT(!ifd_low_sums_fit(node, &scales, 8 * sum));
    EXPECT(ifd_low_sums_fit(node, &scales, 8 * (sum + 1)));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(bounds_are_cut_off_at_the_type),     T(clamps_have_bounds_and_others_none),
        T(factors_are_those_of_the_reference), T(channels_of_zeros_are_found),
        T(sums_fit_by_their_weights_and_bias), T(shifts_to_the_left_leave_less_for_sums),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
