#include "engine/ir/attrs.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

struct toy_attrs {
    int32_t size;
    int32_t mode;
    float beta;
    bool keep;
    struct ifd_ints axes;
};

static const struct ifd_attr_def toy_defs[] = {
    {"size", IFD_ATTR_INT, offsetof(struct toy_attrs, size), 3, 1, 100},
    {"mode", IFD_ATTR_ENUM, offsetof(struct toy_attrs, mode), 1, 0, 2},
    {"beta", IFD_ATTR_F32, offsetof(struct toy_attrs, beta), 0.5, 0, 10},
    {"keep", IFD_ATTR_BOOL, offsetof(struct toy_attrs, keep), 1, 0, 1},
    {"axes", IFD_ATTR_INTS, offsetof(struct toy_attrs, axes), 0, -8, 7},
};

static const struct ifd_op_def toy = {
    .name = "toy", .attrs = toy_defs, .attr_count = 5, .attrs_bytes = sizeof(struct toy_attrs)};

static void defaults_come_from_the_table(void)
{
    struct toy_attrs attrs;
    memset(&attrs, 0xAA, sizeof(attrs));
    ifd_attrs_defaults(&toy, &attrs);
    EXPECT_INT(attrs.size, 3);
    EXPECT_INT(attrs.mode, 1);
    EXPECT(attrs.beta == 0.5f);
    EXPECT(attrs.keep);
    EXPECT_INT(attrs.axes.count, 0);
    const struct ifd_op_def bare = {.name = "bare"};
    ifd_attrs_defaults(&bare, NULL);
}

static void set_writes_the_named_field(void)
{
    struct toy_attrs attrs;
    struct ifd_err err = {0};
    ifd_attrs_defaults(&toy, &attrs);
    REQUIRE_OK(ifd_attrs_set_int(&toy, &attrs, "size", 100, &err), &err);
    REQUIRE_OK(ifd_attrs_set_int(&toy, &attrs, "mode", 0, &err), &err);
    REQUIRE_OK(ifd_attrs_set_int(&toy, &attrs, "keep", 0, &err), &err);
    REQUIRE_OK(ifd_attrs_set_f32(&toy, &attrs, "beta", 10, &err), &err);
    REQUIRE_OK(ifd_attrs_set_ints(&toy, &attrs, "axes", (const int64_t[]){-1, 7}, 2, &err), &err);
    char text[200];
    ifd_attrs_text(&toy, &attrs, text, sizeof(text));
    EXPECT_TEXT(text, "size=100 mode=0 beta=10 keep=false axes=[-1,7]");
}

static void set_refuses_values_out_of_range(void)
{
    struct toy_attrs attrs;
    struct ifd_err err = {0};
    ifd_attrs_defaults(&toy, &attrs);
    EXPECT_CODE(ifd_attrs_set_int(&toy, &attrs, "size", 101, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "toy: attribute \"size\" is 101, expected 1 to 100");
    EXPECT_CODE(ifd_attrs_set_int(&toy, &attrs, "size", INT64_MIN, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_set_int(&toy, &attrs, "mode", 3, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_set_f32(&toy, &attrs, "beta", (double)NAN, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_set_f32(&toy, &attrs, "beta", -0.1, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_set_ints(&toy, &attrs, "axes", (const int64_t[]){0, 8}, 2, &err),
                IFD_INVALID, &err);
    const int64_t nine[9] = {0};
    EXPECT_CODE(ifd_attrs_set_ints(&toy, &attrs, "axes", nine, 9, &err), IFD_INVALID, &err);
    EXPECT_INT(attrs.size, 3);
    EXPECT_INT(attrs.axes.count, 0);
}

static void set_refuses_unknown_names_and_wrong_kinds(void)
{
    struct toy_attrs attrs;
    struct ifd_err err = {0};
    ifd_attrs_defaults(&toy, &attrs);
    EXPECT_CODE(ifd_attrs_set_int(&toy, &attrs, "colour", 1, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "toy has no attribute \"colour\"");
    EXPECT_CODE(ifd_attrs_set_int(&toy, &attrs, "beta", 1, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_set_f32(&toy, &attrs, "size", 1, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_set_ints(&toy, &attrs, "keep", NULL, 0, &err), IFD_INVALID, &err);
}

static void check_finds_what_was_written_past_set(void)
{
    struct toy_attrs attrs;
    struct ifd_err err = {0};
    ifd_attrs_defaults(&toy, &attrs);
    REQUIRE_OK(ifd_attrs_check(&toy, &attrs, &err), &err);
    attrs.mode = -1;
    EXPECT_CODE(ifd_attrs_check(&toy, &attrs, &err), IFD_INVALID, &err);
    attrs.mode = 0;
    attrs.axes.count = 4000000000u;
    EXPECT_CODE(ifd_attrs_check(&toy, &attrs, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_attrs_check(&toy, NULL, &err), IFD_INVALID, &err);
}

static void text_is_cut_to_the_buffer(void)
{
    struct toy_attrs attrs;
    ifd_attrs_defaults(&toy, &attrs);
    char text[8];
    ifd_attrs_text(&toy, &attrs, text, sizeof(text));
    EXPECT_TEXT(text, "size=3 ");
    ifd_attrs_text(&toy, &attrs, text, 1);
    EXPECT_TEXT(text, "");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(defaults_come_from_the_table),          T(set_writes_the_named_field),
        T(set_refuses_values_out_of_range),       T(set_refuses_unknown_names_and_wrong_kinds),
        T(check_finds_what_was_written_past_set), T(text_is_cut_to_the_buffer),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
