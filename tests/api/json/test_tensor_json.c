/* JSON arrays into tensors and tensors into JSON. */
#include "api/json/tensor_json.h"

#include "engine/base/buf.h"
#include "engine/base/str.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX 4096

static struct ifd_err err;
static union {
    int8_t s8[ELEMENTS_MAX];
    uint8_t u8[ELEMENTS_MAX];
    int16_t s16[ELEMENTS_MAX];
    uint16_t u16[ELEMENTS_MAX];
    int32_t s32[ELEMENTS_MAX];
    uint32_t u32[ELEMENTS_MAX];
    int64_t s64[ELEMENTS_MAX];
    uint64_t u64[ELEMENTS_MAX];
    float f32[ELEMENTS_MAX];
    double f64[ELEMENTS_MAX];
    bool truth[ELEMENTS_MAX];
    struct ifd_str text[ELEMENTS_MAX];
} data;

static bool read_as(enum ifd_dtype dtype, const char *text, size_t count)
{
    struct ifd_arena arena;
    struct ifd_json_in in;
    ifd_arena_init(&arena, ifd_alloc_system(), 1 << 20);
    err = (struct ifd_err){0};
    memset(&data, 0x5a, sizeof(data));
    ifd_json_in_init(&in, ifd_str(text), &arena, &err);
    bool ok = ifd_tensor_json_read(&in, "X", dtype, count, &data);
    ok = ok && ifd_json_finish(&in);
    ifd_arena_finish(&arena);
    return ok;
}

static const char *refusal(enum ifd_dtype dtype, const char *text, size_t count)
{
    EXPECT(!read_as(dtype, text, count));
    EXPECT_INT(err.code, IFD_INVALID);
    return err.text;
}

static void integers_fit_their_type_exactly(void)
{
    static const struct {
        enum ifd_dtype dtype;
        const char *good, *low, *high;
    } types[] = {
        {IFD_S8, "[-128,127]", "[-129]", "[128]"},
        {IFD_U8, "[0,255]", "[-1]", "[256]"},
        {IFD_S16, "[-32768,32767]", "[-32769]", "[32768]"},
        {IFD_U16, "[0,65535]", "[-1]", "[65536]"},
        {IFD_S32, "[-2147483648,2147483647]", "[-2147483649]", "[2147483648]"},
        {IFD_U32, "[0,4294967295]", "[-1]", "[4294967296]"},
        {IFD_S64, "[-9223372036854775808,9223372036854775807]", "[-9223372036854775809]",
         "[9223372036854775808]"},
        {IFD_U64, "[0,18446744073709551615]", "[-1]", "[18446744073709551616]"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        EXPECT(read_as(types[i].dtype, types[i].good, 2));
        EXPECT_HAS(refusal(types[i].dtype, types[i].low, 1), "range");
        EXPECT_HAS(err.text, ifd_dtype_wire_name(types[i].dtype));
        EXPECT_HAS(refusal(types[i].dtype, types[i].high, 1), "range");
    }
    EXPECT(read_as(IFD_S8, "[-128,127]", 2) && data.s8[0] == -128 && data.s8[1] == 127);
    EXPECT(read_as(IFD_S64, "[-9223372036854775808]", 1) && data.s64[0] == INT64_MIN);
    EXPECT(read_as(IFD_U64, "[18446744073709551615]", 1) && data.u64[0] == UINT64_MAX);
    EXPECT_HAS(refusal(IFD_S32, "[1, 2147483648]", 2),
               "element 1 is 2147483648, outside INT32's range -2147483648 … 2147483647");
}

static void other_values_than_integers_are_refused(void)
{
    EXPECT_HAS(refusal(IFD_S32, "[1.5]", 1), "element 0 is 1.5, expected INT32");
    EXPECT_HAS(refusal(IFD_S32, "[1,1.0]", 2), "element 1 is 1.0");
    EXPECT_HAS(refusal(IFD_S32, "[1e2]", 1), "expected INT32");
    EXPECT_HAS(refusal(IFD_S32, "[\"1\"]", 1), "element 0 is not a number");
    EXPECT_HAS(refusal(IFD_S32, "[true]", 1), "not a number");
    EXPECT_HAS(refusal(IFD_S32, "[null]", 1), "not a number");
    EXPECT_HAS(refusal(IFD_U8, "[NaN]", 1), "number");
    EXPECT_HAS(refusal(IFD_U8, "[{}]", 1), "not a number");
}

static void floats_take_integers_and_specials(void)
{
    EXPECT(read_as(IFD_F32, "[1, 2.5,-0.0,NaN,Infinity,-Infinity,\"NaN\",\"-Infinity\",3e38]", 9));
    EXPECT(data.f32[0] == 1.0f && data.f32[1] == 2.5f && signbit(data.f32[2]) != 0);
    EXPECT(isnan(data.f32[3]) && isinf(data.f32[4]) && data.f32[5] < 0 && isinf(data.f32[5]));
    EXPECT(isnan(data.f32[6]) && isinf(data.f32[7]) && data.f32[8] == 3e38f);
    EXPECT(read_as(IFD_F64, "[0.1,1e308,Inf]", 3));
    EXPECT(data.f64[0] == 0.1 && data.f64[1] == 1e308 && isinf(data.f64[2]));
}

static void floats_beyond_their_type_are_refused(void)
{
    EXPECT_HAS(refusal(IFD_F32, "[0,1e39,0]", 3), "element 1 is 1e39, outside FP32's range");
    EXPECT_HAS(refusal(IFD_F32, "[1e400]", 1), "outside FP32's range");
    EXPECT_HAS(refusal(IFD_F64, "[-1e400]", 1), "outside FP64's range");
    EXPECT(read_as(IFD_F32, "[1e-400]", 1) && data.f32[0] == 0);
    EXPECT_HAS(refusal(IFD_F32, "[\"1.0\"]", 1), "not a number");
    EXPECT_HAS(refusal(IFD_F32, "[false]", 1), "not a number");
}

static void nesting_is_flattened(void)
{
    EXPECT(read_as(IFD_S32, "[[1,2],[3,[4]]]", 4));
    EXPECT(data.s32[0] == 1 && data.s32[1] == 2 && data.s32[2] == 3 && data.s32[3] == 4);
    EXPECT(read_as(IFD_S32, " [ [ 1 , 2 ] , [\n3\t, 4 ] ] ", 4) && data.s32[3] == 4);
    EXPECT(read_as(IFD_S32, "[1,2,[3],4,5]", 5) && data.s32[2] == 3 && data.s32[4] == 5);
    EXPECT(read_as(IFD_S32, "[[],[[]],[]]", 0));
    EXPECT(read_as(IFD_S32, "[]", 0));
    EXPECT_HAS(refusal(IFD_S32, "5", 1), "an array");
    EXPECT_HAS(refusal(IFD_S32, "[[1,2],[3,4]", 4), "JSON ends");
}

static void the_number_of_elements_must_be_that_of_the_shape(void)
{
    EXPECT_HAS(refusal(IFD_S32, "[1,2]", 3), "'data' has 2 elements, its shape has 3");
    EXPECT_HAS(refusal(IFD_S32, "[1,2,3,4]", 3), "more than the 3 elements");
    EXPECT_HAS(refusal(IFD_S32, "[1]", 0), "more than the 0 elements");
    EXPECT_HAS(refusal(IFD_STR, "[\"a\"]", 2), "has 1 elements");
}

/* A random number from 0 to below - 1. */
static size_t pick(struct test_random *random, size_t below)
{
    return (size_t)(test_random_u64(random) % below);
}

/* Writes an image as Python does, with blanks behind the commas; or in front of them, where the
 * reader of rows stops and each element is read alone. Returns the number of elements. */
static size_t draw(char *text, size_t size, bool is_blank_behind, struct test_random *random)
{
    const size_t width = 1 + pick(random, 9), height = 1 + pick(random, 5);
    const char *comma = is_blank_behind ? ", " : " ,";
    size_t at = (size_t)snprintf(text, size, "[[");
    for (size_t i = 0; i < width * height; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%s[%u%s%u%s%u]%s", i > 0 ? comma : "",
                               i % width == 0 ? "[" : "", (unsigned)test_random_u64(random) % 256,
                               comma, (unsigned)test_random_u64(random) % 256, comma,
                               (unsigned)test_random_u64(random) % 256,
                               i % width == width - 1 ? "]" : "");
    }
    (void)snprintf(text + at, size - at, "]]");
    return 3 * width * height;
}

static size_t fault_place(const char *message)
{
    const char *place = strstr(message, "at byte ");
    REQUIRE(place != NULL);
    return (size_t)strtoul(place + 8, NULL, 10);
}

static void wrong_arrays_in_arrays_are_refused_as_read_by_elements(void)
{
    static const char wrong[] = "[]]][[0123.-xe\"{";
    size_t refused = 0;
    for (uint64_t round = 1; round <= 20000; round++) {
        struct test_random random = {.state = round}, again = random;
        char text[1000], slow[1000];
        size_t count = draw(text, sizeof(text), true, &random);
        EXPECT_INT(draw(slow, sizeof(slow), false, &again), count);
        const size_t place = pick(&random, strlen(text));
        const char mark = wrong[test_random_u64(&random) % (sizeof(wrong) - 1)];
        count += round % 3 == 0 ? pick(&random, 3) - 1 : 0;
        if (text[place] != ' ' && text[place] != ',') {
            text[place] = slow[place] = mark;
        }
        const enum ifd_dtype dtype = round % 2 ? IFD_U8 : IFD_F32;
        const bool ok = read_as(dtype, slow, count);
        const struct ifd_err want = err;
        static uint8_t values[sizeof(data)];
        memcpy(values, &data, sizeof(data));
        EXPECT(read_as(dtype, text, count) == ok);
        if (!ok) {
            const size_t at = fault_place(err.text), want_at = fault_place(want.text);
            EXPECT(at == want_at || (at + 1 == want_at && text[at] == ',')); /* blanks differ */
        }
        EXPECT(ok || strncmp(err.text, want.text,
                             (size_t)(strstr(want.text, "at byte") - want.text)) == 0);
        EXPECT(!ok || memcmp(values, &data, count * ifd_dtype_bytes(dtype)) == 0);
        refused += !ok;
    }
    EXPECT(refused > 5000 && refused < 19000);
}

static void truth_values_are_true_and_false(void)
{
    EXPECT(read_as(IFD_BOOL, "[true,false]", 2) && data.truth[0] && !data.truth[1]);
    EXPECT_HAS(refusal(IFD_BOOL, "[1]", 1), "neither true nor false");
}

static void strings_are_views_or_copies(void)
{
    EXPECT(read_as(IFD_STR, "[\"ab\",\"\",\"gr\xc3\xbc\xc3\x9f\"]", 3));
    EXPECT(ifd_str_equal(data.text[0], "ab") && data.text[1].size == 0);
    EXPECT(ifd_str_equal(data.text[2], "gr\xc3\xbc\xc3\x9f"));
    EXPECT_HAS(refusal(IFD_STR, "[5]", 1), "not a string");
}

static void depth_is_bounded(void)
{
    char text[1000];
    memset(text, '[', 500);
    memset(text + 500, ']', 499);
    text[999] = '\0';
    EXPECT_HAS(refusal(IFD_F32, text, 0), "deeper than 100");
    for (size_t depth = 98; depth <= 102; depth++) { /* with numbers, which are read in rows */
        memset(text, '[', depth);
        (void)snprintf(text + depth, sizeof(text) - depth, "1,2,3");
        memset(text + depth + 5, ']', depth);
        text[2 * depth + 5] = '\0';
        if (depth <= 100) {
            EXPECT(read_as(IFD_F32, text, 3) && data.f32[2] == 3);
        } else {
            EXPECT_HAS(refusal(IFD_F32, text, 3), "deeper than 100 levels, at byte 100");
        }
    }
}

static void long_runs_are_the_same_as_single_elements(void)
{
    struct ifd_buf text;
    struct test_random random = {.state = 3};
    static float want[ELEMENTS_MAX];
    ifd_buf_init(&text, ifd_alloc_system(), 1 << 20);
    for (int i = 0; i < ELEMENTS_MAX; i++) {
        want[i] = test_random_f32(&random, -10, 10);
        ifd_buf_addf(&text, "%c%.9g%s", i == 0 ? '[' : ',', (double)want[i], i % 7 ? "" : " ");
    }
    ifd_buf_add(&text, "]", 2);
    EXPECT(read_as(IFD_F32, (const char *)text.data, ELEMENTS_MAX));
    EXPECT_BYTES(data.f32, want, sizeof(want));
    ifd_buf_finish(&text);
}

static void write_as(enum ifd_dtype dtype, const void *values, size_t count, const char *want)
{
    struct ifd_arena arena;
    struct ifd_json_out out;
    char text[512] = "";
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_json_out_init(&out, &arena);
    ifd_tensor_json_write(&out, dtype, values, count);
    REQUIRE(ifd_json_out_finish(&out));
    for (uint32_t i = 0, at = 0; i < out.chunk_count; i++) {
        memcpy(text + at, out.chunk[i].data, out.chunk[i].size);
        at += (uint32_t)out.chunk[i].size;
    }
    EXPECT_TEXT(text, want);
    ifd_arena_finish(&arena);
}

static void every_type_is_written(void)
{
    write_as(IFD_F32, (float[]){0.1f, -1, 3e38f, NAN, INFINITY}, 5,
             "[0.1,-1.0,3e38,\"NaN\",\"Infinity\"]");
    write_as(IFD_F64, (double[]){0.1, 1e300}, 2, "[0.1,1e300]");
    write_as(IFD_S8, (int8_t[]){-128, 0, 127}, 3, "[-128,0,127]");
    write_as(IFD_U8, (uint8_t[]){0, 255}, 2, "[0,255]");
    write_as(IFD_S16, (int16_t[]){-32768}, 1, "[-32768]");
    write_as(IFD_U16, (uint16_t[]){65535}, 1, "[65535]");
    write_as(IFD_S32, (int32_t[]){INT32_MIN}, 1, "[-2147483648]");
    write_as(IFD_U32, (uint32_t[]){UINT32_MAX}, 1, "[4294967295]");
    write_as(IFD_S64, (int64_t[]){INT64_MIN}, 1, "[-9223372036854775808]");
    write_as(IFD_U64, (uint64_t[]){UINT64_MAX}, 1, "[18446744073709551615]");
    write_as(IFD_BOOL, (bool[]){true, false}, 2, "[true,false]");
    write_as(IFD_STR, (struct ifd_str[]){{"a\"", 2}, {NULL, 0}}, 2, "[\"a\\\"\",\"\"]");
    write_as(IFD_F32, (float[]){0}, 0, "[]");
}

/* The expected size of a tensor is enough for its widest values. */
static void an_expected_answer_is_one_piece(void)
{
    static const enum ifd_dtype types[] = {IFD_BOOL, IFD_U8,  IFD_S8,  IFD_U16, IFD_S16,
                                           IFD_U32,  IFD_S32, IFD_U64, IFD_S64, IFD_F32};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct ifd_arena arena;
        struct ifd_json_out out;
        const size_t bytes = ifd_dtype_bytes(types[i]), count = sizeof(data.u8) / 8;
        const bool is_signed =
            types[i] == IFD_S8 || types[i] == IFD_S16 || types[i] == IFD_S32 || types[i] == IFD_S64;
        memset(&data, types[i] == IFD_BOOL || is_signed ? 0 : 0xff, sizeof(data));
        for (size_t k = 0; k < count; k++) {
            if (types[i] == IFD_F32) {
                data.f32[k] = -0.012345678f;
            } else if (is_signed) {
                ((uint8_t *)&data)[k * bytes + bytes - 1] = 0x80; /* the least value */
            }
        }
        ifd_arena_init(&arena, ifd_alloc_system(), 0);
        ifd_json_out_init(&out, &arena);
        ifd_json_out_expect(&out, 2 + ifd_tensor_json_usual(types[i], count));
        ifd_tensor_json_write(&out, types[i], &data, count);
        EXPECT(ifd_json_out_finish(&out));
        EXPECT_INT(out.chunk_count, 1);
        ifd_arena_finish(&arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(integers_fit_their_type_exactly),
        T(other_values_than_integers_are_refused),
        T(floats_take_integers_and_specials),
        T(floats_beyond_their_type_are_refused),
        T(nesting_is_flattened),
        T(the_number_of_elements_must_be_that_of_the_shape),
        T(wrong_arrays_in_arrays_are_refused_as_read_by_elements),
        T(truth_values_are_true_and_false),
        T(strings_are_views_or_copies),
        T(depth_is_bounded),
        T(long_runs_are_the_same_as_single_elements),
        T(every_type_is_written),
        T(an_expected_answer_is_one_piece),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
