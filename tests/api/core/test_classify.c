/* The best elements with their labels. */
#include "api/core/classify.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const labels[] = {"zero", "one", "two"};
static const struct ifd_tensor_info info = {.name = "P", .labels = labels, .label_count = 3};
static struct ifd_arena arena;
static struct ifd_err err;

/* The strings, joined by blanks. Static buffer. */
static const char *best(enum ifd_dtype dtype, const void *data, struct ifd_shape shape,
                        uint64_t top, bool is_batched, struct ifd_tensor *ret)
{
    static char text[1024];
    size_t count = 1;
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    for (uint32_t i = 0; i < shape.rank; i++) {
        count *= (size_t)shape.dim[i];
    }
    const struct ifd_tensor tensor = {.dtype = dtype,
                                      .shape = shape,
                                      .data = (void *)(uintptr_t)data,
                                      .bytes = count * ifd_dtype_bytes(dtype)};
    EXPECT_CODE(ifd_classify(&tensor, &info, top, is_batched, &arena, ret, &err), IFD_OK, &err);
    text[0] = '\0';
    for (size_t i = 0; i < ret->bytes / sizeof(struct ifd_str); i++) {
        const struct ifd_str *one = (const struct ifd_str *)ret->data + i;
        size_t at = strlen(text);
        REQUIRE(ifd_str_format(text + at, sizeof(text) - at, "%s%.*s", i > 0 ? " " : "",
                               (int)one->size, one->data));
    }
    return text;
}

#define SHAPE1(a)    ((struct ifd_shape){.rank = 1, .dim = {a}})
#define SHAPE2(a, b) ((struct ifd_shape){.rank = 2, .dim = {a, b}})

static void values_come_in_falling_order_with_labels(void)
{
    struct ifd_tensor ret;
    const float data[] = {0.1f, 0.9f, -1.5f, 0.5f};
    EXPECT_TEXT(best(IFD_F32, data, SHAPE1(4), 3, false, &ret),
                "0.900000:1:one 0.500000:3 0.100000:0:zero");
    EXPECT_INT(ret.dtype, IFD_STR);
    EXPECT_INT(ret.shape.rank, 1);
    EXPECT_INT(ret.shape.dim[0], 3);
    ifd_arena_finish(&arena);
}

static void every_sample_of_a_batch_has_its_own_best(void)
{
    struct ifd_tensor ret;
    const int32_t data[] = {1, 2, 3, 30, 20, 10};
    EXPECT_TEXT(best(IFD_S32, data, SHAPE2(2, 3), 2, true, &ret),
                "3:2:two 2:1:one 30:0:zero 20:1:one");
    EXPECT_INT(ret.shape.rank, 2);
    EXPECT_INT(ret.shape.dim[0], 2);
    EXPECT_INT(ret.shape.dim[1], 2);
    EXPECT_TEXT(best(IFD_S32, data, SHAPE2(2, 3), 1, false, &ret), "30:3");
    ifd_arena_finish(&arena);
}

static void equal_values_come_by_index_and_nan_last(void)
{
    struct ifd_tensor ret;
    const float data[] = {NAN, 1, 1, 1};
    EXPECT_TEXT(best(IFD_F32, data, SHAPE1(4), 9, false, &ret),
                "1.000000:1:one 1.000000:2:two 1.000000:3 nan:0:zero");
    EXPECT_TEXT(best(IFD_F32, data, SHAPE1(4), 2, false, &ret), "1.000000:1:one 1.000000:2:two");
    ifd_arena_finish(&arena);
}

static void all_types_are_printed_as_they_are(void)
{
    struct ifd_tensor ret;
    EXPECT_TEXT(best(IFD_U8, (uint8_t[]){7, 255}, SHAPE1(2), 1, false, &ret), "255:1:one");
    EXPECT_TEXT(best(IFD_S8, (int8_t[]){-7, -128}, SHAPE1(2), 2, false, &ret),
                "-7:0:zero -128:1:one");
    EXPECT_TEXT(best(IFD_U64, (uint64_t[]){UINT64_MAX}, SHAPE1(1), 1, false, &ret),
                "18446744073709551615:0:zero");
    EXPECT_TEXT(best(IFD_S64, (int64_t[]){INT64_MIN}, SHAPE1(1), 1, false, &ret),
                "-9223372036854775808:0:zero");
    EXPECT_TEXT(best(IFD_F64, (double[]){0.25}, SHAPE1(1), 1, false, &ret), "0.250000:0:zero");
    /* 1, -2, 2^-24, infinity */
    EXPECT_TEXT(
        best(IFD_F16, (uint16_t[]){0x3c00, 0xc000, 0x0001, 0x7c00}, SHAPE1(4), 4, false, &ret),
        "inf:3 1.000000:0:zero 0.000000:2:two -2.000000:1:one");
    EXPECT_TEXT(best(IFD_BF16, (uint16_t[]){0x3f80, 0x4000}, SHAPE1(2), 1, false, &ret),
                "2.000000:1:one");
    ifd_arena_finish(&arena);
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void many_candidates_are_sorted(void)
{
    enum { COUNT = 1000, TOP = 300 };
    static float data[COUNT], sorted[COUNT];
    struct test_random random = {.state = 77};
    struct ifd_tensor ret;
    for (int i = 0; i < COUNT; i++) {
        data[i] = sorted[i] = test_random_f32(&random, -100, 100);
    }
    qsort(sorted, COUNT, sizeof(sorted[0]), by_value);
    const struct ifd_tensor tensor = {
        .dtype = IFD_F32, .shape = SHAPE1(COUNT), .data = data, .bytes = sizeof(data)};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    EXPECT_CODE(ifd_classify(&tensor, &info, TOP, false, &arena, &ret, &err), IFD_OK, &err);
    for (int i = 0; i < TOP; i++) {
        const struct ifd_str *text = (const struct ifd_str *)ret.data + i;
        const char *colon = memchr(text->data, ':', text->size);
        REQUIRE(colon != NULL);
        EXPECT(data[strtol(colon + 1, NULL, 10)] == sorted[i]);
    }
    ifd_arena_finish(&arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(values_come_in_falling_order_with_labels),
        T(every_sample_of_a_batch_has_its_own_best),
        T(equal_values_come_by_index_and_nan_last),
        T(all_types_are_printed_as_they_are),
        T(many_candidates_are_sorted),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
