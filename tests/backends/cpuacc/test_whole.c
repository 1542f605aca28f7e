/* Layers of f32 data that are quantized as a whole (rounds_even), of random shapes. */
#include "tests/backends/cpuacc/trial.h"

/* Of one scale: any zero point; of s8 or u8. */
static struct ifd_quant weights_of(struct trial *t, enum ifd_dtype dtype, int64_t channels,
                                   uint32_t axis)
{
    static float one[1], many[400];
    static int32_t zero_one[1], zeros[400];
    const bool is_one = pick(t, 0, 2) != 0;
    one[0] = test_random_f32(&t->random, 1e-4f, 1e-3f);
    zero_one[0] = pick(t, 0, 2) == 0 ? 0
                  : dtype == IFD_U8  ? (int32_t)pick(t, 0, 255)
                                     : (int32_t)pick(t, -128, 127);
    for (int64_t c = 0; c < channels; c++) {
        many[c] = test_random_f32(&t->random, 1e-4f, 1e-3f);
    }
    return is_one ? (struct ifd_quant){one, zero_one, 1, 0}
                  : (struct ifd_quant){many, zeros, (uint32_t)channels, axis};
}

/* What a layer is followed by: a sum with another tensor, a function, none. */
static void follow(struct trial *t, uint32_t x, uint32_t layer, bool same_shape)
{
    const int64_t how = pick(t, 0, 3);
    if (how == 1 && same_shape) {
        const uint32_t input[] = {layer, x},
                       out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
        (void)add_node(t, IFD_OP_ADD, input, 2, out);
    } else if (how == 2) {
        const uint32_t out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
        (void)add_node(t, IFD_OP_TANH, &layer, 1, out);
    }
}

static void window(struct trial *t, bool is_depthwise)
{
    const bool is_small = pick(t, 0, 1) != 0;
    const int64_t kh = pick(t, 1, 4), kw = pick(t, 1, 4), in_c = pick(t, 1, is_small ? 8 : 30);
    const int64_t times = is_depthwise ? pick(t, 1, 5) / 4 + 1 : 1;
    const int64_t out_c = is_depthwise ? in_c * times : pick(t, 1, is_small ? 20 : 60);
    const int64_t h = pick(t, 1, 16), w = pick(t, 1, 16), batch = pick(t, 1, 2);
    const enum ifd_dtype dtype = pick(t, 0, 1) ? IFD_S8 : IFD_U8;
    const int64_t filter = out_c * kh * kw * (is_depthwise ? 1 : in_c);
    const struct ifd_quant how = weights_of(t, dtype, out_c, is_depthwise ? 3 : 0);
    const struct ifd_shape shape =
        is_depthwise ? SHAPE(1, kh, kw, out_c) : SHAPE(out_c, kh, kw, in_c);
    REQUIRE(filter <= ELEMENTS);
    t->input = add_value(t, IFD_F32, SHAPE(batch, h, w, in_c), none);
    const bool has_bias = pick(t, 0, 1) != 0;
    const uint32_t out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    const uint32_t input[] = {
        t->input, constant(t, add_value(t, dtype, shape, how), NULL),
        has_bias ? constant(t, add_value(t, IFD_F32, SHAPE(out_c), none), NULL) : IFD_NO_VALUE};
    struct ifd_conv2d_attrs *attrs = attrs_of(add_node(
        t, is_depthwise ? IFD_OP_DEPTHWISE_CONV2D : IFD_OP_CONV2D, input, has_bias ? 3 : 2, out));
    const int32_t dilation = pick(t, 0, 3) == 0 ? 2 : 1;
    attrs->window = (struct ifd_window){.padding = IFD_PAD_EXPLICIT,
                                        .stride_h = (int32_t)pick(t, 1, 2),
                                        .stride_w = (int32_t)pick(t, 1, 2),
                                        .dilation_h = dilation,
                                        .dilation_w = dilation,
                                        .pad_top = (int32_t)(kh - 1) * dilation,
                                        .pad_bottom = (int32_t)pick(t, 0, 2),
                                        .pad_left = (int32_t)(kw - 1) * dilation,
                                        .pad_right = (int32_t)pick(t, 0, 2)};
    attrs->activation = pick(t, 0, 1) ? IFD_ACT_NONE : IFD_ACT_RELU6;
    attrs->rounds_even = true;
    follow(t, t->input, out,
           out_c == in_c && kh * kw == 1 && attrs->window.stride_h == 1 &&
               attrs->window.stride_w == 1 && attrs->window.pad_bottom == 0 &&
               attrs->window.pad_right == 0);
}

static void conv(struct trial *t)
{
    window(t, false);
}

static void depthwise(struct trial *t)
{
    window(t, true);
}

static void dense(struct trial *t)
{
    const int64_t k = pick(t, 1, 180), n = pick(t, 0, 3) ? pick(t, 1, 180) : k;
    const enum ifd_dtype dtype = pick(t, 0, 1) ? IFD_S8 : IFD_U8;
    const struct ifd_quant how = weights_of(t, dtype, n, 0);
    const bool has_bias = pick(t, 0, 1) != 0;
    const int64_t rows = pick(t, 1, 30);
    t->input =
        add_value(t, IFD_F32, pick(t, 0, 1) ? SHAPE(rows, k) : SHAPE(pick(t, 1, 3), rows, k), none);
    const uint32_t out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    const uint32_t input[] = {t->input, constant(t, add_value(t, dtype, SHAPE(n, k), how), NULL),
                              has_bias ? constant(t, add_value(t, IFD_F32, SHAPE(n), none), NULL)
                                       : IFD_NO_VALUE};
    struct ifd_fully_connected_attrs *attrs =
        attrs_of(add_node(t, IFD_OP_FULLY_CONNECTED, input, has_bias ? 3 : 2, out));
    attrs->keep_dims = true;
    attrs->rounds_even = true;
    attrs->activation = pick(t, 0, 1) ? IFD_ACT_NONE : IFD_ACT_RELU;
    follow(t, t->input, out, n == k);
}

NODE(convolution, conv)
NODE(depthwise_convolution, depthwise)
NODE(fully_connected, dense)

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(convolution_equals_its_reference),
        T(depthwise_convolution_equals_its_reference),
        T(fully_connected_equals_its_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
