#include "server/model/parameters.h"

#include "tests/support/test.h"

static struct ifd_model_desc with(const struct ifd_parameter_info *parameter, uint32_t count)
{
    return (struct ifd_model_desc){.parameter = parameter, .parameter_count = count};
}

static void a_preset_stands_for_parameters_and_the_config_wins(void)
{
    static const struct ifd_parameter_info parameter[] = {{"preset", "yolox"}, {"image_fill", "0"}};
    const struct ifd_model_desc desc = with(parameter, 2), empty = with(NULL, 0);
    EXPECT_TEXT(ifd_meaning_parameter(&desc, "image_color"), "BGR");
    EXPECT_TEXT(ifd_meaning_parameter(&desc, "image_fill"), "0");
    EXPECT(ifd_desc_parameter(&desc, "image_color") == NULL);
    EXPECT(ifd_meaning_parameter(&desc, "threads") == NULL);
    EXPECT(ifd_meaning_parameter(&empty, "image_color") == NULL);
}

static void a_preset_may_say_nothing(void)
{
    static const struct ifd_parameter_info parameter[] = {{"preset", "yamnet"}};
    const struct ifd_model_desc desc = with(parameter, 1);
    EXPECT(ifd_meaning_parameter(&desc, "image_mean") == NULL);
    EXPECT_CODE(ifd_preset_check(&desc, NULL), IFD_OK, NULL);
}

static void an_unknown_preset_is_named_with_the_nearest(void)
{
    static const struct ifd_parameter_info parameter[] = {{"preset", "mediapipe_hands"}};
    const struct ifd_model_desc desc = with(parameter, 1), empty = with(NULL, 0);
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_preset_check(&desc, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "no \"mediapipe_hands\"; the nearest name is \"mediapipe_hand\"");
    EXPECT(ifd_meaning_parameter(&desc, "image_mean") == NULL);
    EXPECT_CODE(ifd_preset_check(&empty, NULL), IFD_OK, NULL);
}

static void unknown_parameters_have_a_nearest_one(void)
{
    EXPECT(ifd_parameter_nearest("image_mean") == NULL);
    EXPECT_TEXT(ifd_parameter_nearest("image_maen"), "image_mean");
    EXPECT_TEXT(ifd_parameter_nearest("hint"), "performance_hint");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_preset_stands_for_parameters_and_the_config_wins),
        T(a_preset_may_say_nothing),
        T(an_unknown_preset_is_named_with_the_nearest),
        T(unknown_parameters_have_a_nearest_one),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
