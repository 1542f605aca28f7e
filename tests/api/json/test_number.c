/* Reading and printing numbers, against the C library's own conversions. */
#include "api/json/number.h"
#include "tests/support/test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool scan(const char *text, struct ifd_number *ret)
{
    size_t size = strlen(text);
    return size > 0 && ifd_number_scan(text, text + size, ret) == size;
}

static void scan_follows_the_grammar(void)
{
    static const char *const good[] = {"0",    "-0",   "12",   "1.5",    "1e5", "1E+5",
                                       "2e-3", "0.25", "-1.0", "0.1e10", "-0e0"};
    static const char *const bad[] = {"",   "-",   "+1",  "01",   "-01", ".5",   "1.",
                                      "1e", "1e+", "--1", "1.e5", "e5",  "0x10", "1_0"};
    struct ifd_number number;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        EXPECT(scan(good[i], &number));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT(!scan(bad[i], &number));
    }
}

static void integers_are_exact_to_their_limits(void)
{
    struct ifd_number number;
    int64_t s = 0;
    uint64_t u = 0;
    EXPECT(scan("9223372036854775807", &number) && ifd_number_s64(&number, &s) && s == INT64_MAX);
    EXPECT(scan("-9223372036854775808", &number) && ifd_number_s64(&number, &s) && s == INT64_MIN);
    EXPECT(scan("9223372036854775808", &number) && !ifd_number_s64(&number, &s));
    EXPECT(scan("-9223372036854775809", &number) && !ifd_number_s64(&number, &s));
    EXPECT(scan("18446744073709551615", &number) && ifd_number_u64(&number, &u) && u == UINT64_MAX);
    EXPECT(scan("18446744073709551616", &number) && !ifd_number_u64(&number, &u));
    EXPECT(scan("99999999999999999999999", &number) && !ifd_number_u64(&number, &u) &&
           !ifd_number_s64(&number, &s));
    EXPECT(scan("-1", &number) && !ifd_number_u64(&number, &u));
    EXPECT(scan("1.0", &number) && !ifd_number_s64(&number, &s) && !ifd_number_u64(&number, &u));
    EXPECT(scan("-0", &number) && ifd_number_u64(&number, &u) && u == 0);
}

/* Our value of a text must be the C library's, bit by bit. */
static void expect_same_value(const char *text)
{
    char padded[1200];
    struct ifd_number number;
    (void)snprintf(padded, sizeof(padded), "%s,", text);
    size_t size = ifd_number_scan(padded, padded + strlen(padded), &number);
    REQUIRE(size == strlen(text));
    double want = strtod(text, NULL), got = ifd_number_f64(&number);
    float want_f = strtof(text, NULL), got_f = ifd_number_f32(&number);
    if (memcmp(&want, &got, sizeof(got)) != 0 || memcmp(&want_f, &got_f, sizeof(got_f)) != 0) {
        fprintf(stderr, "    text %s: got %a %a, wanted %a %a\n", text, got, (double)got_f, want,
                (double)want_f);
        EXPECT(false && "same value");
    }
}

static void floats_are_read_to_the_nearest(void)
{
    static const char *const texts[] = {
        "0", "-0", "0.1", "1e22", "1e23", "3e38", "3.4028235e38", "3.4028236e38", "1e39", "1e400",
        "-1e400", "1e-400", "5e-324", "2.4703282292062327e-324", "2.2250738585072011e-308",
        "1.4e-45", "7.0064923216240854e-46", "7.006492321624086e-46", "1.17549435e-38",
        /* middles of two floats, and a hair beside them */
        "16777217", "16777217.0000000001", "16777216.9999999999", "33554433", "33554435",
        "1.00000005960464477539", "1.000000059604644775390625", "1.00000005960464477539062501",
        "0.10000000149011612", "10000000149011612e-17", "123456789012345678901234567890",
        "9007199254740993", "9007199254740992.5", "0.000000000000000000000000000000000001",
        "1000000000000000000000000000000000000000000000000000000000000000000000000000000000e-80",
        "0.00000000000000000000000000000000000000000000000000000000000000000000000001e74"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        expect_same_value(texts[i]);
    }
}

static void random_floats_are_read_to_the_nearest(void)
{
    struct test_random random = {.state = 5};
    char text[64];
    for (int i = 0; i < 50000; i++) {
        unsigned long long digits = test_random_u64(&random) >> test_random_int(&random, 0, 60);
        int exponent = (int)test_random_int(&random, -40, 40);
        (void)snprintf(text, sizeof(text), "%llue%d", digits, exponent);
        expect_same_value(text);
        (void)snprintf(text, sizeof(text), "%.*g", (int)test_random_int(&random, 1, 17),
                       (double)test_random_f32(&random, -1000, 1000));
        expect_same_value(text);
    }
}

static size_t digits_of(const char *text)
{
    size_t count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text >= '1' && *text <= '9') {
            count += zeros + 1;
            zeros = 0;
        } else if (*text == '0' && count > 0) {
            zeros++;
        }
    }
    return count;
}

/* The text reads back, is a float of JSON, and no correctly rounded text of fewer digits reads
 * back. */
static void expect_shortest_f32(float value)
{
    char text[IFD_NUMBER_TEXT_BYTES + 1], fewer[64];
    struct ifd_number number;
    size_t size = ifd_print_f32(text, value);
    REQUIRE(size <= IFD_NUMBER_TEXT_BYTES);
    text[size] = '\0';
    float back = strtof(text, NULL);
    bool ok = scan(text, &number) && !number.is_integer && memcmp(&back, &value, 4) == 0;
    size_t digits = digits_of(text);
    if (digits > 1 && !(fabsf(value) < 16777216.0f && value == truncf(value))) {
        (void)snprintf(fewer, sizeof(fewer), "%.*e", (int)digits - 2, (double)value);
        ok = ok && strtof(fewer, NULL) != value;
    }
    if (!ok) {
        fprintf(stderr, "    %a printed as %s\n", (double)value, text);
        EXPECT(ok);
    }
}

static void floats_are_printed_short(void)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = {{0.1f, "0.1"},
                 {1.0f, "1.0"},
                 {-2.25f, "-2.25"},
                 {3e38f, "3e38"},
                 {0.0f, "0.0"},
                 {-0.0f, "-0.0"},
                 {1e-7f, "1e-7"},
                 {255.0f, "255.0"},
                 {0.00001f, "1e-5"},
                 {0.0001f, "0.0001"},
                 {1e16f, "1e16"},
                 {1.5e15f, "1500000000000000.0"},
                 {16777216.0f, "16777216.0"},
                 {FLT_MAX, "3.4028235e38"},
                 {FLT_MIN, "1.1754944e-38"},
                 {1.4e-45f, "1e-45"},
                 {123456.789f, "123456.79"},
                 {1.0f / 3, "0.33333334"}};
    char text[IFD_NUMBER_TEXT_BYTES + 1];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        text[ifd_print_f32(text, cases[i].value)] = '\0';
        EXPECT_TEXT(text, cases[i].text);
    }
    text[ifd_print_f32(text, NAN)] = '\0';
    EXPECT_TEXT(text, "\"NaN\"");
    text[ifd_print_f32(text, -INFINITY)] = '\0';
    EXPECT_TEXT(text, "\"-Infinity\"");
}

static void random_bits_are_printed_shortest_as_float(void)
{
    struct test_random random = {.state = 9};
    for (int i = 0; i < 50000; i++) {
        uint32_t bits = (uint32_t)test_random_u64(&random);
        float value = 0;
        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value)) {
            expect_shortest_f32(value);
        }
        expect_shortest_f32(test_random_f32(&random, -1, 1));
        expect_shortest_f32((float)test_random_int(&random, -1000000, 1000000) / 1000.0f);
        expect_shortest_f32((float)test_random_int(&random, 0, 4000000000));
    }
    for (int exponent = -149; exponent < 128; exponent++) {
        float power = ldexpf(1, exponent);
        expect_shortest_f32(power);
        expect_shortest_f32(nextafterf(power, 0));
        expect_shortest_f32(nextafterf(power, INFINITY));
    }
}

static void doubles_read_back(void)
{
    struct test_random random = {.state = 11};
    char text[IFD_NUMBER_TEXT_BYTES + 1], fewer[64];
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = test_random_u64(&random);
        double value = 0;
        memcpy(&value, &bits, sizeof(value));
        if (i % 2) {
            value = (double)test_random_int(&random, -1000000000, 1000000000) / 1e4;
        }
        if (!isfinite(value)) {
            continue;
        }
        size_t size = ifd_print_f64(text, value);
        REQUIRE(size <= IFD_NUMBER_TEXT_BYTES);
        text[size] = '\0';
        EXPECT(strtod(text, NULL) == value);
        size_t digits = digits_of(text);
        if (digits > 1 && value != trunc(value)) {
            (void)snprintf(fewer, sizeof(fewer), "%.*e", (int)digits - 2, value);
            EXPECT(strtod(fewer, NULL) != value);
        }
    }
    text[ifd_print_f64(text, 0.1)] = '\0';
    EXPECT_TEXT(text, "0.1");
    text[ifd_print_f64(text, 5e-324)] = '\0';
    EXPECT_TEXT(text, "5e-324");
    text[ifd_print_f64(text, -DBL_MAX)] = '\0';
    EXPECT_TEXT(text, "-1.7976931348623157e308");
}

static void integers_are_printed(void)
{
    static const int64_t values[] = {0, 9, 10, 99, 100, -1, -128, 12345, INT64_MAX, INT64_MIN};
    char text[IFD_NUMBER_TEXT_BYTES + 1], want[32];
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        text[ifd_print_s64(text, values[i])] = '\0';
        (void)snprintf(want, sizeof(want), "%lld", (long long)values[i]);
        EXPECT_TEXT(text, want);
    }
    text[ifd_print_u64(text, UINT64_MAX)] = '\0';
    EXPECT_TEXT(text, "18446744073709551615");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(scan_follows_the_grammar),
        T(integers_are_exact_to_their_limits),
        T(floats_are_read_to_the_nearest),
        T(random_floats_are_read_to_the_nearest),
        T(floats_are_printed_short),
        T(random_bits_are_printed_shortest_as_float),
        T(doubles_read_back),
        T(integers_are_printed),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
