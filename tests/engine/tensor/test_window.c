#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <string.h>

/* Values: TensorFlow's documentation of SAME and VALID padding, worked out by hand. */
static void same_and_valid_follow_the_definition(void)
{
    struct ifd_window window = {
        .padding = IFD_PAD_SAME, .stride_h = 2, .stride_w = 1, .dilation_h = 1, .dilation_w = 2};
    struct ifd_window_size size;
    REQUIRE(ifd_window_resolve(&window, 3, 3, 224, 5, &size));
    EXPECT_INT(size.out_h, 112);
    EXPECT_INT(size.pad_top, 0);
    EXPECT_INT(size.pad_bottom, 1);
    EXPECT_INT(size.out_w, 5);
    EXPECT_INT(size.pad_left, 2);
    EXPECT_INT(size.pad_right, 2);
    window.padding = IFD_PAD_VALID;
    REQUIRE(ifd_window_resolve(&window, 3, 3, 224, 5, &size));
    EXPECT_INT(size.out_h, 111);
    EXPECT_INT(size.out_w, 1);
    EXPECT_INT(size.pad_top + size.pad_left + size.pad_bottom + size.pad_right, 0);
}

static void explicit_padding_counts(void)
{
    struct ifd_window window = {.padding = IFD_PAD_EXPLICIT,
                                .stride_h = 1,
                                .stride_w = 1,
                                .dilation_h = 1,
                                .dilation_w = 1,
                                .pad_top = 1,
                                .pad_left = 2,
                                .pad_right = 3};
    struct ifd_window_size size;
    REQUIRE(ifd_window_resolve(&window, 3, 3, 4, 4, &size));
    EXPECT_INT(size.out_h, 3);
    EXPECT_INT(size.out_w, 7);
    EXPECT_INT(size.pad_left, 2);
    EXPECT_INT(size.pad_right, 3);
}

static void impossible_windows_are_refused(void)
{
    struct ifd_window window = {
        .padding = IFD_PAD_VALID, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1};
    struct ifd_window_size size;
    EXPECT(!ifd_window_resolve(&window, 5, 1, 4, 4, &size));
    EXPECT(!ifd_window_resolve(&window, 0, 1, 4, 4, &size));
    EXPECT(!ifd_window_resolve(&window, 1, 1, 0, 4, &size));
    window.stride_w = 0;
    EXPECT(!ifd_window_resolve(&window, 1, 1, 4, 4, &size));
    window.stride_w = 1;
    window.dilation_h = INT32_MAX;
    EXPECT(!ifd_window_resolve(&window, 1ll << 40, 1, 4, 4, &size));
    EXPECT(!ifd_window_resolve(&window, INT32_MAX, 1, 4, 4, &size));
    window.padding = IFD_PAD_EXPLICIT;
    window.pad_top = -1;
    EXPECT(!ifd_window_resolve(&window, 1, 1, 4, 4, &size));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(same_and_valid_follow_the_definition),
        T(explicit_padding_counts),
        T(impossible_windows_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
