/* Rows of numbers, by every reader that this machine has, against the C library's own conversions. */
#include "api/number_run.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With all that this machine has: the plain ways alone, and what helps them. */
static void by_each_reader(void (*check)(const struct ifd_number_rows *rows))
{
    check(NULL);
#ifdef __x86_64__
    if (ifd_number_rows_avx512()) {
        check(ifd_number_rows_avx512());
    }
#endif
}

/* The integers at the start of text that the fast reader takes. */
static size_t read_run(const struct ifd_number_rows *rows, const char *text, size_t size,
                       int64_t *to, size_t count, size_t *ret_used)
{
    const char *at = text;
    size_t got = ifd_number_run_integers_by(rows, &at, text + size, INT64_MIN, INT64_MAX,
                                            sizeof(*to), to, count);
    *ret_used = (size_t)(at - text);
    return got;
}

static void check_runs_of_integers(const struct ifd_number_rows *rows)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0,", 0},
                {"7,", 7},
                {"10,", 10},
                {"255,", 255},
                {"1234567,", 1234567},
                {"12345678,", 12345678},
                {"999999999,", 999999999},
                {"-0,", 0},
                {"-128,", -128},
                {"9223372036854775807,", INT64_MAX}};
    static const char *const bad[] = {
        "",    ",",    "00,", "01,", "-01,", "1",   "12]", "1 ,",   "1.0,", "1e1,",
        "1.,", "--1,", "+1,", "a,",  "1a2,", "/1,", ":,",  "\xb1,", "1-,",  "9223372036854775808,"};
    for (int behind = 0; behind <= 1; behind++) { /* the text ends, or goes on */
        char text[64];
        int64_t value = 0;
        size_t used = 0;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
            (void)snprintf(text, sizeof(text), "%s%s", good[i].text, behind ? "1111111111" : "");
            EXPECT_INT(read_run(rows, text, strlen(text), &value, 1, &used), 1);
            EXPECT_INT(value, good[i].value);
            EXPECT_INT(used, strlen(good[i].text));
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            (void)snprintf(text, sizeof(text), "%s%s", bad[i], behind ? ",,,,,,,,,," : "");
            if (!behind || bad[i][0] != '\0') {
                EXPECT_INT(read_run(rows, text, strlen(text), &value, 1, &used), behind && i == 5);
            }
        }
    }
}

static void check_every_short_integer(const struct ifd_number_rows *rows)
{
    char text[32];
    int64_t value = 0;
    size_t used = 0;
    for (int64_t i = 0; i < 10000000; i += i < 20000 ? 1 : 9973) {
        int size = snprintf(text, sizeof(text), "%lld, 11111111", (long long)i);
        EXPECT_INT(read_run(rows, text, (size_t)size, &value, 1, &used), 1);
        EXPECT_INT(value, i);
    }
}

static void check_pairs_of_bytes(const struct ifd_number_rows *rows)
{
    static const char *const bad[] = {"00", "007", "256", "1000", "1.", "-1",
                                      "1 ", "",    "a",   ":",    "1e"};
    char text[64];
    uint8_t to[3] = {0};
    const char *at = NULL;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            int size = snprintf(text, sizeof(text), "%d,%d,%d,0]", a, b, a);
            at = text;
            EXPECT_INT(ifd_number_run_integers_by(rows, &at, text + size, 0, 255, 1, to, 3), 3);
            EXPECT(to[0] == a && to[1] == b && to[2] == a && strcmp(at, "0]") == 0);
        }
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (int place = 0; place < 3; place++) {
            (void)snprintf(text, sizeof(text), "%s,%s,%s,99,99,99", place == 0 ? bad[i] : "12",
                           place == 1 ? bad[i] : "3", place == 2 ? bad[i] : "255");
            at = text;
            EXPECT_INT(ifd_number_run_integers_by(rows, &at, text + strlen(text), 0, 255, 1, to, 3),
                       place);
            EXPECT(at == text + (place == 0 ? 0 : place == 1 ? 3 : 5));
        }
    }
}

/* A wrong number at every place of a long run. */
static void check_rows_of_bytes(const struct ifd_number_rows *rows)
{
    static const char *const bad[] = {"00", "007", "256", "999", "1000", "1.", "-1",
                                      "1 ", "",    "a",   ":",   "/",    "1e", "12a"};
    char text[256];
    uint8_t to[24] = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (int place = 0; place < 20; place++) {
            int at = 0, want_used = 0;
            for (int k = 0; k < 24; k++) {
                want_used = k == place ? at : want_used;
                at += k == place ? snprintf(text + at, sizeof(text) - (size_t)at, "%s,", bad[i])
                                 : snprintf(text + at, sizeof(text) - (size_t)at, "%d,",
                                            (k + place) * 37 % 256);
            }
            const char *end = text + at, *next = text;
            EXPECT_INT(ifd_number_run_integers_by(rows, &next, end, 0, 255, 1, to, 24), place);
            EXPECT_INT(next - text, want_used);
            for (int k = 0; k < place; k++) {
                EXPECT_INT(to[k], (k + place) * 37 % 256);
            }
        }
    }
}

/* Numbers of any length, sign and gap, in rows that end anywhere: what was printed is read. */
static void check_random_rows_of_integers(const struct ifd_number_rows *rows)
{
    static const struct {
        int64_t low, high;
        size_t bytes;
    } types[] = {{INT8_MIN, INT8_MAX, 1},   {0, UINT8_MAX, 1},         {INT16_MIN, INT16_MAX, 2},
                 {0, UINT16_MAX, 2},        {INT32_MIN, INT32_MAX, 4}, {0, UINT32_MAX, 4},
                 {INT64_MIN, INT64_MAX, 8}, {INT16_MIN, INT16_MAX, 8}};
    struct test_random random = {.state = 1};
    for (int round = 0; round < 4000; round++) {
        const size_t type = (size_t)round % (sizeof(types) / sizeof(types[0]));
        const size_t bytes = types[type].bytes, count = test_random_u64(&random) % 100;
        char text[100 * 24];
        int64_t want[100];
        uint8_t to[100 * 8 + 1];
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = test_random_u64(&random);
            int64_t value = (int64_t)(bits >> (test_random_u64(&random) & 63)); /* of any length */
            value = test_random_u64(&random) & 1 ? -value : value;
            want[i] = value < types[type].low || value > types[type].high ? 7 : value;
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%lld,%s",
                                     (long long)want[i], test_random_u64(&random) % 4 ? "" : " ");
        }
        const char *at = text;
        memset(to, 0xa5, sizeof(to));
        EXPECT_INT(ifd_number_run_integers_by(rows, &at, text + size, types[type].low,
                                              types[type].high, bytes, to, count),
                   count);
        EXPECT(at == text + size && to[count * bytes] == 0xa5);
        for (size_t i = 0; i < count; i++) {
            EXPECT(memcmp(to + i * bytes, &want[i], bytes) == 0);
        }
    }
}

static void check_random_rows_of_floats(const struct ifd_number_rows *rows)
{
    static const char *const formats[] = {"%.0f,",  "%.1f,", "%.4f, ", "%.7f,",
                                          "%.15f,", "%.9g,", "%.17g, "};
    struct test_random random = {.state = 2};
    size_t taken = 0, offered = 0;
    for (int round = 0; round < 20000; round++) {
        const size_t count = test_random_u64(&random) % 40;
        char text[40 * 40];
        float want[40], to[41];
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            const char *format = formats[test_random_u64(&random) % 7];
            double value = (double)(int64_t)test_random_u64(&random) / 9223372036854775808.0;
            value *= test_random_u64(&random) & 1 ? 1 : 1000;
            char *start = text + size;
            size += (size_t)snprintf(start, sizeof(text) - size, format, value);
            want[i] = strtof(start, NULL);
        }
        const char *at = text;
        to[count] = 12345;
        size_t got = ifd_number_run_f32_by(rows, &at, text + size, to, count);
        EXPECT(memcmp(to, want, got * sizeof(*to)) == 0 && to[count] == 12345);
        offered += count;
        taken += got;
    }
    EXPECT(taken > offered / 2); /* exponents and doubts are left to others */
}

/* Characters of numbers in any order: with help as much is read as without, and the same. */
static void rows_are_read_as_without_help(void)
{
#ifdef __x86_64__
    static const char alphabet[] = "0123456789012345678901234567890000,,,,,,,,,,,,..--  e]";
    const struct ifd_number_rows *rows = ifd_number_rows_avx512();
    struct test_random random = {.state = 3};
    for (int round = 0; rows && round < 300000; round++) {
        char text[200];
        const size_t size = 1 + test_random_u64(&random) % sizeof(text);
        for (size_t i = 0; i < size; i++) {
            text[i] = alphabet[test_random_u64(&random) % (sizeof(alphabet) - 1)];
            if (i > 1 && text[i] != ',' && test_random_u64(&random) % 4 == 0) {
                text[i] = ',';
            }
        }
        union {
            float f32[100];
            uint8_t bytes[800];
        } want, got;
        const size_t count = test_random_u64(&random) % 100;
        memset(&want, 0, sizeof(want));
        memset(&got, 0, sizeof(got));
        const char *at = text, *at_plain = text, *end = text + size;
        size_t with = 0, without = 0;
        if (round % 2 == 0) {
            with = ifd_number_run_f32_by(rows, &at, end, got.f32, count);
            without = ifd_number_run_f32_by(NULL, &at_plain, end, want.f32, count);
        } else {
            const size_t bytes = (size_t)1 << (round / 2 & 3);
            const int64_t high = INT64_MAX >> (64 - 8 * bytes), low = round & 8 ? 0 : -high - 1;
            with = ifd_number_run_integers_by(rows, &at, end, low, high, bytes, got.bytes, count);
            without = ifd_number_run_integers_by(NULL, &at_plain, end, low, high, bytes, want.bytes,
                                                 count);
        }
        EXPECT(with == without && at == at_plain);
        EXPECT(memcmp(&got, &want, with * (round % 2 == 0 ? 4 : (size_t)1 << (round / 2 & 3))) ==
               0);
    }
#endif
}

static void runs_of_integers_are_read(void)
{
    by_each_reader(check_runs_of_integers);
}

static void every_short_integer_is_read(void)
{
    by_each_reader(check_every_short_integer);
}

static void pairs_of_bytes_are_read(void)
{
    by_each_reader(check_pairs_of_bytes);
}

static void rows_of_bytes_are_read_up_to_what_is_wrong(void)
{
    by_each_reader(check_rows_of_bytes);
}

static void random_rows_of_integers_are_read(void)
{
    by_each_reader(check_random_rows_of_integers);
}

static void random_rows_of_floats_are_read(void)
{
    by_each_reader(check_random_rows_of_floats);
}

static void check_all_values_of_eight_bits(const struct ifd_number_rows *rows)
{
    uint8_t values[256];
    char text[257 * IFD_NUMBER_TEXT_BYTES], want[2048];
    for (int is_signed = 0; is_signed <= 1; is_signed++) {
        size_t size = 0;
        EXPECT_INT(ifd_print_run_8_by(rows, text, values, is_signed, 0), 0);
        for (size_t i = 0; i < 256; i++) {
            values[i] = (uint8_t)(i * 167); /* every value, in no order */
            int value = is_signed ? (int8_t)values[i] : values[i];
            size += (size_t)snprintf(want + size, sizeof(want) - size, i > 0 ? ",%d" : "%d", value);
            memset(text, '#', sizeof(text));
            EXPECT_INT(ifd_print_run_8_by(rows, text, values, is_signed, i + 1), size);
            EXPECT(memcmp(text, want, size) == 0);
            EXPECT(text[(i + 1) * IFD_NUMBER_TEXT_BYTES] == '#');
        }
    }
}

static void all_values_of_eight_bits_are_printed_in_a_row(void)
{
    by_each_reader(check_all_values_of_eight_bits);
}

/* All lengths, signs and sizes: as one number alone, which test_number.c compares with the C library. */
static void check_random_rows_of_printed_floats(const struct ifd_number_rows *rows)
{
    struct test_random random = {.state = 4};
    for (int round = 0; round < 100000; round++) {
        static const float specials[] = {0.0f,        -0.0f,       0.01f,     0.001f, 1e-4f,
                                         9.99e-5f,    0.1f,        1.0f,      10.0f,  9.999999f,
                                         16777215.0f, 16777216.0f, 123456.5f, 1e-30f, 3e38f,
                                         -8388607.5f, 0.3f};
        const size_t count = test_random_u64(&random) % 20;
        float value[20];
        char text[21 * (IFD_NUMBER_TEXT_BYTES + 1)], want[21 * (IFD_NUMBER_TEXT_BYTES + 1)];
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t choice = test_random_u64(&random) % 64;
            const uint32_t bits = (uint32_t)test_random_u64(&random);
            const uint32_t near_one =
                (bits & 0x81ffffff) + 0x3e000000 - (bits >> 25 & 0x0f) * 0x400000;
            memcpy(&value[i], round % 5 == 0 ? &bits : &near_one, sizeof(bits));
            if (round % 5 == 1) {
                value[i] =
                    (float)((int64_t)(bits & 0xffff) - 0x8000) / (choice % 2 ? 16.0f : 10000.0f);
            } else if (choice < sizeof(specials) / sizeof(specials[0])) {
                value[i] = specials[choice];
            }
            size += ifd_print_f32(want + size, value[i]);
            want[size++] = ',';
        }
        size -= count > 0;
        memset(text, '#', sizeof(text));
        EXPECT_INT(ifd_print_run_f32_by(rows, text, value, count), size);
        EXPECT(memcmp(text, want, size) == 0);
        EXPECT(text[count * (IFD_NUMBER_TEXT_BYTES + 1)] == '#');
    }
}

static void floats_are_printed_in_a_row_as_alone(void)
{
    by_each_reader(check_random_rows_of_printed_floats);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(runs_of_integers_are_read),
        T(every_short_integer_is_read),
        T(pairs_of_bytes_are_read),
        T(rows_of_bytes_are_read_up_to_what_is_wrong),
        T(random_rows_of_integers_are_read),
        T(random_rows_of_floats_are_read),
        T(rows_are_read_as_without_help),
        T(all_values_of_eight_bits_are_printed_in_a_row),
        T(floats_are_printed_in_a_row_as_alone),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
