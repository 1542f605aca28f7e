#include "server/serve/picture.h"

#include "tests/support/test.h"

static struct ifd_tensor_info tensor_of(enum ifd_dtype dtype, int64_t height, int64_t width,
                                        int64_t channels)
{
    return (struct ifd_tensor_info){
        .name = "x", .dtype = dtype, .shape = {.rank = 4, .dim = {1, height, width, channels}}};
}

static struct ifd_image_rule rule_of(const struct ifd_tensor_info *tensor,
                                     const struct ifd_port *port,
                                     struct ifd_parameter_info *parameter, uint32_t count)
{
    struct ifd_model_desc m;
    struct ifd_image_rule rule = {0};
    struct ifd_err err = {0};
    ifd_manifest_init(&m);
    m.parameter = parameter;
    m.parameter_count = count;
    REQUIRE_OK(ifd_picture_rule(&m, tensor, port, false, &rule, &err), &err);
    return rule;
}

/* One row of pixels as large as the target. */
static void take_frame(const uint8_t *pixel, size_t bytes, enum ifd_frame_format format,
                       const struct ifd_image_target *target, enum ifd_dtype dtype, void *data)
{
    static const struct ifd_image_limits limits = {.max_pixels = 100};
    const struct ifd_picture_source source = {
        .bytes = {pixel, bytes}, .format = format, .width = target->width, .height = 1};
    struct ifd_tensor tensor = {
        .dtype = dtype, .data = data, .bytes = bytes * ifd_dtype_bytes(dtype)};
    struct ifd_picture_view view;
    struct ifd_err err = {0};
    REQUIRE_OK(
        ifd_image_to_tensor(&source, target, &limits, &tensor, ifd_alloc_system(), &view, &err),
        &err);
}

static void unsigned_bytes_take_pixels_as_they_are(void)
{
    static const float scale = 1.0f / 128;
    static const int32_t zero_point = 128;
    const struct ifd_tensor_info tensor = tensor_of(IFD_U8, 224, 224, 3);
    const struct ifd_port port = {
        .desc = {.dtype = IFD_U8,
                 .quant = {.scale = &scale, .zero_point = &zero_point, .count = 1}}};
    struct ifd_image_rule rule = rule_of(&tensor, &port, NULL, 0);
    REQUIRE(rule.has_image);
    EXPECT_INT(rule.height, 224);
    EXPECT_INT(rule.channels, 3);
    struct ifd_image_target target = ifd_picture_target(&rule, scale, zero_point);
    static const uint8_t pixel[] = {0, 17, 255};
    uint8_t stored[3];
    target.height = target.width = 1;
    take_frame(pixel, sizeof(pixel), IFD_FRAME_RGB, &target, IFD_U8, stored);
    EXPECT_BYTES(stored, pixel, 3);
}

static void judge_signed_bytes(float scale)
{
    static const int32_t zero_point = -5;
    const struct ifd_tensor_info tensor = tensor_of(IFD_S8, 96, 96, 1);
    const struct ifd_port port = {
        .desc = {.dtype = IFD_S8,
                 .quant = {.scale = &scale, .zero_point = &zero_point, .count = 1}}};
    struct ifd_image_rule rule = rule_of(&tensor, &port, NULL, 0);
    REQUIRE(rule.has_image);
    struct ifd_image_target target = ifd_picture_target(&rule, scale, zero_point);
    static const uint8_t pixel[] = {0, 200};
    static const int8_t want[] = {-128, 72};
    int8_t stored[2];
    target.height = 1;
    target.width = 2;
    take_frame(pixel, sizeof(pixel), IFD_FRAME_GRAY8, &target, IFD_S8, stored);
    EXPECT_BYTES(stored, want, 2);
}

static void signed_bytes_take_pixels_less_128(void)
{
    static const float scale[] = {0.02f, 0, 1e-40f}; /* also where 1 / scale is no number */
    for (size_t i = 0; i < 3; i++) {
        judge_signed_bytes(scale[i]);
    }
}

/* MoveNet takes INT32. */
static void whole_numbers_take_pixels_as_they_are(void)
{
    const struct ifd_tensor_info tensor = tensor_of(IFD_S32, 192, 192, 3);
    const struct ifd_port port = {.desc = {.dtype = IFD_S32}};
    struct ifd_image_rule rule = rule_of(&tensor, &port, NULL, 0);
    REQUIRE(rule.has_image);
    struct ifd_image_target target = ifd_picture_target(&rule, 0, 0);
    static const uint8_t pixel[] = {0, 17, 255, 1, 2, 3};
    static const int32_t want[] = {0, 17, 255, 1, 2, 3};
    int32_t stored[6];
    target.height = 1;
    target.width = 2;
    take_frame(pixel, sizeof(pixel), IFD_FRAME_RGB, &target, IFD_S32, stored);
    EXPECT_BYTES(stored, want, sizeof(want));
    target.channels_first = true;
    static const int32_t apart[] = {0, 1, 17, 2, 255, 3};
    take_frame(pixel, sizeof(pixel), IFD_FRAME_RGB, &target, IFD_S32, stored);
    EXPECT_BYTES(stored, apart, sizeof(apart));
}

static void whole_numbers_are_rounded_and_cut(void)
{
    struct ifd_image_target target = {
        .height = 1, .width = 3, .channels = 1, .mean = {100}, .std = {4}};
    static const uint8_t pixel[] = {0, 93, 103};
    static const int32_t want[] = {-25, -2, 1}; /* -25, -1.75, 0.75 */
    int32_t stored[3];
    take_frame(pixel, sizeof(pixel), IFD_FRAME_GRAY8, &target, IFD_S32, stored);
    EXPECT_BYTES(stored, want, sizeof(want));
    target.std[0] = 1e-9f;
    static const int32_t most[] = {INT32_MIN, INT32_MIN, INT32_MAX};
    take_frame(pixel, sizeof(pixel), IFD_FRAME_GRAY8, &target, IFD_S32, stored);
    EXPECT_BYTES(stored, most, sizeof(most));
}

static void floats_need_to_be_told(void)
{
    const struct ifd_tensor_info tensor = tensor_of(IFD_F32, 224, 224, 3);
    struct ifd_port port = {.desc = {.dtype = IFD_F32}};
    EXPECT(!rule_of(&tensor, &port, NULL, 0).has_image);
    port.has_normalization = true;
    port.normalization_count = 1;
    port.mean[0] = 127.5f;
    port.std[0] = 127.5f;
    struct ifd_image_rule rule = rule_of(&tensor, &port, NULL, 0);
    EXPECT(rule.has_image);
    EXPECT_CLOSE(rule.mean[2], 127.5, 0);
}

static void config_wins_over_the_file(void)
{
    struct ifd_parameter_info parameter[] = {{"image_mean", "1, 2,3"}, {"image_std", "58"}};
    const struct ifd_tensor_info tensor = tensor_of(IFD_F32, 224, 224, 3);
    const struct ifd_port port = {
        .has_normalization = true, .normalization_count = 1, .mean = {9}, .std = {9}};
    struct ifd_image_rule rule = rule_of(&tensor, &port, parameter, 2);
    EXPECT(rule.has_image);
    EXPECT_CLOSE(rule.mean[1], 2, 0);
    EXPECT_CLOSE(rule.std[2], 58, 0);
}

static void color_resize_and_fill_come_from_the_config_or_its_preset(void)
{
    struct ifd_parameter_info own[] = {
        {"image_color", "BGR"}, {"image_resize", "crop"}, {"image_fill", "1,2,3"}};
    struct ifd_parameter_info preset[] = {{"preset", "yolox"}, {"image_fill", "9"}};
    const struct ifd_tensor_info tensor = tensor_of(IFD_U8, 224, 224, 3);
    struct ifd_image_rule rule = rule_of(&tensor, NULL, own, 3);
    EXPECT_INT(rule.color, IFD_COLOR_BGR);
    EXPECT_INT(rule.resize, IFD_RESIZE_CROP);
    EXPECT_CLOSE(rule.fill[2], 3, 0);
    rule = rule_of(&tensor, NULL, preset, 2);
    EXPECT_INT(rule.color, IFD_COLOR_BGR);
    EXPECT_INT(rule.resize, IFD_RESIZE_LETTERBOX);
    EXPECT_CLOSE(rule.fill[2], 9, 0);
    struct ifd_parameter_info like_requests[] = {
        {"preset", "yolox"}, {"resize", "crop"}, {"region", "1, 2,30,40"}};
    rule = rule_of(&tensor, NULL, like_requests, 3);
    EXPECT_INT(rule.resize, IFD_RESIZE_CROP);
    EXPECT(rule.has_region);
    EXPECT_INT(rule.region.y, 2);
    EXPECT_INT(rule.region.height, 40);
    rule = rule_of(&tensor, NULL, NULL, 0);
    EXPECT(!rule.has_region);
    EXPECT_INT(rule.color, IFD_COLOR_RGB);
    EXPECT_INT(rule.resize, IFD_RESIZE_STRETCH);
}

static void channels_first_is_seen_in_the_shape(void)
{
    struct ifd_parameter_info preset = {"preset", "imagenet_torch"};
    struct ifd_tensor_info tensor = tensor_of(IFD_F32, 3, 224, 200);
    struct ifd_image_rule rule = rule_of(&tensor, NULL, &preset, 1);
    EXPECT(rule.has_image && rule.channels_first);
    EXPECT_INT(rule.height, 224);
    EXPECT_CLOSE(rule.mean[2], 103.53, 1e-4);
    tensor = tensor_of(IFD_U8, 3, 224, 3); /* either: the usual order */
    EXPECT(!rule_of(&tensor, NULL, NULL, 0).channels_first);
}

static void wrong_words_are_refused(void)
{
    static const struct ifd_parameter_info wrong[] = {
        {"image_color", "GBR"}, {"image_color", "GRAY"}, {"image_resize", "letter"},
        {"resize", "cut"},      {"region", "1,2,3"},     {"image_fill", "256"},
        {"image_std", "0"},     {"preset", "yolo"}};
    const struct ifd_tensor_info tensor = tensor_of(IFD_U8, 224, 224, 3);
    struct ifd_image_rule rule;
    struct ifd_err err = {0};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ifd_model_desc m;
        ifd_manifest_init(&m);
        m.parameter = &wrong[i];
        m.parameter_count = 1;
        EXPECT_INT(ifd_picture_rule(&m, &tensor, NULL, false, &rule, &err), IFD_INVALID);
        EXPECT_HAS(err.text, wrong[i].key);
    }
}

static void wrong_parameters_are_refused(void)
{
    static const char *const wrong[] = {"", "a", "1,2", "1,2,3,4", "NaN", "1e39"};
    const struct ifd_tensor_info tensor = tensor_of(IFD_F32, 224, 224, 3);
    struct ifd_image_rule rule;
    struct ifd_err err = {0};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ifd_parameter_info parameter = {"image_mean", wrong[i]};
        struct ifd_model_desc m;
        ifd_manifest_init(&m);
        m.parameter = &parameter;
        m.parameter_count = 1;
        EXPECT_INT(ifd_picture_rule(&m, &tensor, NULL, false, &rule, &err), IFD_INVALID);
        EXPECT_HAS(err.text, "image_mean");
    }
}

static void other_forms_are_no_pictures(void)
{
    struct ifd_tensor_info tensor = tensor_of(IFD_U8, 224, 224, 4);
    EXPECT(!rule_of(&tensor, NULL, NULL, 0).has_image);
    tensor = tensor_of(IFD_U8, IFD_DIM_ANY, 224, 3);
    EXPECT(!rule_of(&tensor, NULL, NULL, 0).has_image);
    tensor = tensor_of(IFD_S64, 224, 224, 3);
    EXPECT(!rule_of(&tensor, NULL, NULL, 0).has_image);
    tensor = tensor_of(IFD_U8, 224, 224, 3);
    tensor.shape.rank = 2;
    EXPECT(!rule_of(&tensor, NULL, NULL, 0).has_image);
    tensor = tensor_of(IFD_U8, 3, 224, 200);
    tensor.format = IFD_FORMAT_NCHW;
    struct ifd_image_rule rule = rule_of(&tensor, NULL, NULL, 0);
    EXPECT(rule.has_image && rule.channels_first);
    EXPECT_INT(rule.width, 200);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(unsigned_bytes_take_pixels_as_they_are),
        T(signed_bytes_take_pixels_less_128),
        T(whole_numbers_take_pixels_as_they_are),
        T(whole_numbers_are_rounded_and_cut),
        T(floats_need_to_be_told),
        T(config_wins_over_the_file),
        T(color_resize_and_fill_come_from_the_config_or_its_preset),
        T(channels_first_is_seen_in_the_shape),
        T(wrong_words_are_refused),
        T(wrong_parameters_are_refused),
        T(other_forms_are_no_pictures),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
