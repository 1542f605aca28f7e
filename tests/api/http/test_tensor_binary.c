/* Raw tensors. */
#include "api/http/tensor_binary.h"

#include "api/core/shape.h"
#include "tests/support/test.h"

#include <string.h>

static struct ifd_arena arena;
static struct ifd_err err;
static struct ifd_tensor tensor;

static enum ifd_code read_as(enum ifd_dtype dtype, const void *raw, size_t size, size_t count)
{
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), 1 << 20);
    err = (struct ifd_err){0};
    tensor = (struct ifd_tensor){.dtype = dtype};
    return ifd_tensor_binary_read((struct ifd_bytes){.data = raw, .size = size}, 0, "X", "m", count,
                                  &arena, &tensor, &err);
}

static void aligned_bytes_are_used_where_they_lie(void)
{
    _Alignas(64) static const uint8_t raw[32 + IFD_TENSOR_PAD];
    EXPECT_CODE(read_as(IFD_F32, raw, 32, 8), IFD_OK, &err);
    EXPECT(tensor.data == raw);
    EXPECT_CODE(read_as(IFD_S8, raw + 1, 31, 31), IFD_OK, &err);
    EXPECT(tensor.data == raw + 1);
    ifd_arena_finish(&arena);
}

static void unaligned_bytes_are_copied(void)
{
    _Alignas(64) static const uint8_t raw[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_CODE(read_as(IFD_S32, raw + 1, 8, 2), IFD_OK, &err);
    EXPECT((uintptr_t)tensor.data % IFD_TENSOR_ALIGN == 0);
    EXPECT_BYTES(tensor.data, raw + 1, 8);
    EXPECT_INT(tensor.capacity, 8 + IFD_TENSOR_PAD);
    ifd_arena_finish(&arena);
}

static void a_wrong_size_is_refused_with_both_numbers(void)
{
    static const uint8_t raw[64];
    EXPECT_CODE(read_as(IFD_S32, raw, 60, 16), IFD_INVALID, &err);
    EXPECT_TEXT(err.text,
                "input byte size mismatch for input 'X' for model 'm'. Expected 64, got 60");
    EXPECT_CODE(read_as(IFD_S32, raw, 4, SIZE_MAX / 2), IFD_INVALID, &err);
    ifd_arena_finish(&arena);
}

static void truth_values_are_zero_or_one(void)
{
    EXPECT_CODE(read_as(IFD_BOOL, "\0\1", 2, 2), IFD_OK, &err);
    EXPECT_CODE(read_as(IFD_BOOL, "\1\2", 2, 2), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "element 1 is 2");
    ifd_arena_finish(&arena);
}

static void strings_are_views(void)
{
    static const char raw[] = "\2\0\0\0ab\0\0\0\0\1\0\0\0c";
    EXPECT_CODE(read_as(IFD_STR, raw, sizeof(raw) - 1, 3), IFD_OK, &err);
    const struct ifd_str *text = tensor.data;
    EXPECT(text[0].data == raw + 4 && text[0].size == 2);
    EXPECT_INT(text[1].size, 0);
    EXPECT(text[2].size == 1 && text[2].data[0] == 'c');
    EXPECT_INT(tensor.bytes, 3 * sizeof(*text));
    ifd_arena_finish(&arena);
}

static void broken_strings_are_refused(void)
{
    EXPECT_CODE(read_as(IFD_STR, "\x63\0\0\0abcd", 8, 1), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "expecting string of length 99 but only 4 bytes available");
    EXPECT_CODE(read_as(IFD_STR, "\xff\xff\xff\xff", 4, 1), IFD_INVALID, &err);
    EXPECT_CODE(read_as(IFD_STR, "\1\0\0\0a\0\0", 7, 2), IFD_INVALID, &err);
    EXPECT_CODE(read_as(IFD_STR, "\5\0\0\0abcde\0\0\0", 12, 2), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "incomplete string length");
    EXPECT_CODE(read_as(IFD_STR, "\1\0\0\0ab", 6, 1), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "1 bytes follow");
    EXPECT_CODE(read_as(IFD_STR, "", 0, 1000000000), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "cannot hold the 1000000000 strings");
    ifd_arena_finish(&arena);
}

static void join_is_the_reverse_of_split(void)
{
    const struct ifd_str text[] = {{"ab", 2}, {"", 0}, {"c", 1}};
    struct ifd_bytes joined;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    EXPECT_CODE(ifd_tensor_binary_join(text, 3, &arena, &joined, &err), IFD_OK, &err);
    EXPECT_INT(joined.size, 15);
    EXPECT_BYTES(joined.data, "\2\0\0\0ab\0\0\0\0\1\0\0\0c", 15);
    ifd_arena_finish(&arena);
}

static void shapes_are_counted_without_overflow(void)
{
    size_t count = 0;
    EXPECT(ifd_shape_count(&(struct ifd_shape){.rank = 0}, &count) && count == 1);
    EXPECT(ifd_shape_count(&(struct ifd_shape){.rank = 3, .dim = {2, 0, 5}}, &count) && count == 0);
    EXPECT(!ifd_shape_count(&(struct ifd_shape){.rank = 2, .dim = {INT64_MAX, 4}}, &count));
    EXPECT(!ifd_shape_count(&(struct ifd_shape){.rank = 1, .dim = {IFD_DIM_ANY}}, &count));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(aligned_bytes_are_used_where_they_lie),
        T(unaligned_bytes_are_copied),
        T(a_wrong_size_is_refused_with_both_numbers),
        T(truth_values_are_zero_or_one),
        T(strings_are_views),
        T(broken_strings_are_refused),
        T(join_is_the_reverse_of_split),
        T(shapes_are_counted_without_overflow),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
