#include "engine/ir/shape.h"
#include "tests/support/test.h"

static struct ifd_shape shape(uint32_t rank, const int64_t *dim)
{
    struct ifd_shape ret = {.rank = rank};
    for (uint32_t d = 0; d < rank && d < IFD_MAX_RANK; d++) {
        ret.dim[d] = dim[d];
    }
    return ret;
}

#define SHAPE(rank, ...) shape(rank, (const int64_t[]){__VA_ARGS__})

static bool counts(struct ifd_shape s, size_t want)
{
    size_t count = 12345;
    return ifd_shape_elements(&s, &count) && count == want;
}

static bool is_refused(struct ifd_shape s)
{
    size_t count = 12345;
    return !ifd_shape_elements(&s, &count) && count == 12345;
}

static void elements_are_the_product_of_dims(void)
{
    EXPECT(counts(SHAPE(0, 0), 1));
    EXPECT(counts(SHAPE(1, 7), 7));
    EXPECT(counts(SHAPE(3, 2, 3, 4), 24));
    EXPECT(counts(SHAPE(3, 2, 0, 4), 0));
}

static void elements_refuse_unknown_dims(void)
{
    EXPECT(is_refused(SHAPE(2, 3, IFD_DIM_ANY)));
    EXPECT(is_refused(SHAPE(2, 0, IFD_DIM_ANY)));
    EXPECT(is_refused(SHAPE(1, INT64_MIN)));
}

static void elements_refuse_overflow_even_beside_a_zero(void)
{
    EXPECT(is_refused(SHAPE(2, INT64_MAX, 3)));
    EXPECT(is_refused(SHAPE(3, 0, INT64_MAX, 3)));
    EXPECT(is_refused(SHAPE(8, 256, 256, 256, 256, 256, 256, 256, 256)));
    struct ifd_shape deep = SHAPE(1, 1);
    deep.rank = IFD_MAX_RANK + 1;
    EXPECT(is_refused(deep));
}

static void bytes_are_elements_times_size(void)
{
    const struct ifd_desc desc = {.dtype = IFD_S16, .shape = SHAPE(2, 3, 5)};
    size_t bytes = 0;
    EXPECT(ifd_desc_bytes(&desc, &bytes));
    EXPECT_INT(bytes, 30);
}

static void an_empty_tensor_fits_where_its_other_dimensions_do(void)
{
    const struct ifd_desc desc = {.dtype = IFD_S16, .shape = SHAPE(3, 2, 0, 5)};
    EXPECT(ifd_desc_fits(&desc, 20));
    EXPECT(!ifd_desc_fits(&desc, 19));
    EXPECT(!ifd_desc_fits(&(struct ifd_desc){.dtype = IFD_S16, .shape = SHAPE(1, -1)}, SIZE_MAX));
}

static void bytes_refuse_overflow_and_unknown_types(void)
{
    struct ifd_desc desc = {.dtype = IFD_F64, .shape = SHAPE(1, INT64_MAX / 4)};
    size_t bytes = 77;
    EXPECT(!ifd_desc_bytes(&desc, &bytes));
    desc = (struct ifd_desc){.dtype = IFD_DTYPE_COUNT, .shape = SHAPE(1, 1)};
    EXPECT(!ifd_desc_bytes(&desc, &bytes));
    EXPECT_INT(bytes, 77);
}

static void equal_compares_rank_and_dims(void)
{
    const struct ifd_shape a = SHAPE(2, 3, 5);
    EXPECT(ifd_shape_equal(&a, &a));
    const struct ifd_shape longer = SHAPE(3, 3, 5, 1);
    EXPECT(!ifd_shape_equal(&a, &longer));
    const struct ifd_shape other = SHAPE(2, 3, 6);
    EXPECT(!ifd_shape_equal(&a, &other));
    EXPECT(ifd_shape_equal_except(&a, &other, 1));
    EXPECT(!ifd_shape_equal_except(&a, &other, 0));
}

static void strides_are_row_major(void)
{
    const struct ifd_shape s = SHAPE(4, 2, 3, 1, 4);
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(&s, stride);
    EXPECT_INT(stride[0], 12);
    EXPECT_INT(stride[1], 4);
    EXPECT_INT(stride[2], 4);
    EXPECT_INT(stride[3], 1);
    EXPECT_INT(stride[4], 0);
}

static void broadcast_stretches_ones_from_the_right(void)
{
    const struct ifd_shape a = SHAPE(3, 4, 1, 5);
    const struct ifd_shape b = SHAPE(2, 3, 1);
    struct ifd_shape got;
    REQUIRE(ifd_shape_broadcast(&a, &b, &got));
    EXPECT_TEXT(ifd_shape_text(&got).s, "[4,3,5]");
    const struct ifd_shape scalar = SHAPE(0, 0);
    REQUIRE(ifd_shape_broadcast(&scalar, &a, &got));
    EXPECT_TEXT(ifd_shape_text(&got).s, "[4,1,5]");
    const struct ifd_shape empty = SHAPE(3, 4, 0, 5);
    REQUIRE(ifd_shape_broadcast(&a, &empty, &got));
    EXPECT_TEXT(ifd_shape_text(&got).s, "[4,0,5]");
}

static void broadcast_rejects_mismatched_dims(void)
{
    const struct ifd_shape a = SHAPE(2, 4, 5);
    const struct ifd_shape b = SHAPE(2, 4, 2);
    struct ifd_shape got = {.rank = 7};
    EXPECT(!ifd_shape_broadcast(&a, &b, &got));
    EXPECT_INT(got.rank, 7);
}

static void axis_counts_from_either_end(void)
{
    const struct ifd_shape s = SHAPE(3, 1, 2, 3);
    uint32_t axis = 9;
    EXPECT(ifd_shape_axis(&s, 2, &axis));
    EXPECT_INT(axis, 2);
    EXPECT(ifd_shape_axis(&s, -3, &axis));
    EXPECT_INT(axis, 0);
    EXPECT(!ifd_shape_axis(&s, 3, &axis));
    EXPECT(!ifd_shape_axis(&s, -4, &axis));
    EXPECT(!ifd_shape_axis(&s, INT64_MIN, &axis));
    EXPECT_INT(axis, 0);
}

static void text_holds_the_longest_shape(void)
{
    struct ifd_shape s = {.rank = IFD_MAX_RANK};
    for (int d = 0; d < IFD_MAX_RANK; d++) {
        s.dim[d] = INT64_MIN;
    }
    const char *one = "-9223372036854775808";
    const struct ifd_shape_text text = ifd_shape_text(&s);
    EXPECT_HAS(text.s, one);
    EXPECT_INT(text.s[8 * 21], ']');
    const struct ifd_shape scalar = {0};
    EXPECT_TEXT(ifd_shape_text(&scalar).s, "[]");
}

static void counts_are_said_shortly(void)
{
    EXPECT_TEXT(ifd_count_text(2, 2).s, "2");
    EXPECT_TEXT(ifd_count_text(2, 3).s, "2 or 3");
    EXPECT_TEXT(ifd_count_text(1, 3).s, "1 to 3");
    EXPECT_TEXT(ifd_count_text(1, UINT32_MAX).s, "1 or more");
    EXPECT_TEXT(ifd_count_text(UINT32_MAX - 2, UINT32_MAX - 1).s, "4294967293 or 4294967294");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(elements_are_the_product_of_dims),
        T(elements_refuse_unknown_dims),
        T(elements_refuse_overflow_even_beside_a_zero),
        T(bytes_are_elements_times_size),
        T(an_empty_tensor_fits_where_its_other_dimensions_do),
        T(bytes_refuse_overflow_and_unknown_types),
        T(equal_compares_rank_and_dims),
        T(strides_are_row_major),
        T(broadcast_stretches_ones_from_the_right),
        T(broadcast_rejects_mismatched_dims),
        T(axis_counts_from_either_end),
        T(text_holds_the_longest_shape),
        T(counts_are_said_shortly),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
