/* Rows of numbers, by every reader that this machine has, against the C library's own
 * conversions. */
#include "api/json/number_run.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A random number from 0 to below - 1. */
static size_t pick(struct test_random *random, size_t below)
{
    return (size_t)(test_random_u64(random) % below);
}

/* The plain reader alone, and each table that this machine has. */
static void by_each_reader(void (*check)(const struct ifd_number_rows *rows))
{
    const struct ifd_number_rows *rows[IFD_NUMBER_ROWS_MAX];
    check(NULL);
    for (size_t i = ifd_number_rows_all(rows); i > 0; i--) {
        check(rows[i - 1]);
    }
}

/* Numbers of one array. */
static size_t read_integers(const struct ifd_number_rows *rows, const char **at, const char *end,
                            bool is_signed, size_t bytes, void *to, size_t count)
{
    struct ifd_number_row row = {.at = *at, .end = end, .depth = 1, .depth_min = 1, .depth_max = 1};
    const size_t got = ifd_number_run_integers_by(rows, &row, is_signed, bytes, to, count);
    *at = row.at;
    EXPECT_INT(row.depth, 1);
    return got;
}

static size_t read_f32(const struct ifd_number_rows *rows, const char **at, const char *end,
                       float *to, size_t count)
{
    struct ifd_number_row row = {.at = *at, .end = end, .depth = 1, .depth_min = 1, .depth_max = 1};
    const size_t got = ifd_number_run_f32_by(rows, &row, to, count);
    *at = row.at;
    EXPECT_INT(row.depth, 1);
    return got;
}

/* Reads integers at the start of text with the fast reader. */
static size_t read_run(const struct ifd_number_rows *rows, const char *text, size_t size,
                       int64_t *to, size_t count, size_t *ret_used)
{
    const char *at = text;
    size_t got = read_integers(rows, &at, text + size, true, sizeof(*to), to, count);
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
            EXPECT_INT(read_integers(rows, &at, text + size, false, 1, to, 3), 3);
            EXPECT(to[0] == a && to[1] == b && to[2] == a && strcmp(at, "0]") == 0);
        }
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (int place = 0; place < 3; place++) {
            (void)snprintf(text, sizeof(text), "%s,%s,%s,99,99,99", place == 0 ? bad[i] : "12",
                           place == 1 ? bad[i] : "3", place == 2 ? bad[i] : "255");
            at = text;
            EXPECT_INT(read_integers(rows, &at, text + strlen(text), false, 1, to, 3), place);
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
            EXPECT_INT(read_integers(rows, &next, end, false, 1, to, 24), place);
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
                 {INT64_MIN, INT64_MAX, 8}, {0, INT64_MAX, 8}};
    struct test_random random = {.state = 1};
    for (int round = 0; round < 4000; round++) {
        const size_t type = (size_t)round % (sizeof(types) / sizeof(types[0]));
        const size_t bytes = types[type].bytes, count = pick(&random, 100);
        char text[100 * 24];
        int64_t want[100];
        uint8_t to[100 * 8 + 1];
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = test_random_u64(&random);
            int64_t value =
                (int64_t)(bits >> (test_random_u64(&random) & 63)); /* of any number of digits */
            value = test_random_u64(&random) & 1 ? -value : value;
            want[i] = value < types[type].low || value > types[type].high ? 7 : value;
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%lld,%s",
                                     (long long)want[i], test_random_u64(&random) % 4 ? "" : " ");
        }
        const char *at = text;
        memset(to, 0xa5, sizeof(to));
        EXPECT_INT(read_integers(rows, &at, text + size, types[type].low < 0, bytes, to, count),
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
    for (int round = 0; round < 5000; round++) {
        const size_t count = pick(&random, 40);
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
        size_t got = read_f32(rows, &at, text + size, to, count);
        EXPECT(memcmp(to, want, got * sizeof(*to)) == 0 && to[count] == 12345);
        offered += count;
        taken += got;
    }
    EXPECT(taken > offered / 2); /* the plain reader takes exponents and doubts */
}

/* Characters of numbers and arrays in any order: rows read as much as the plain reader, and the
 * same values. */
static void check_as_without_help(const struct ifd_number_rows *rows)
{
    static const char flat[] = "0123456789012345678901234567890000,,,,,,,,,,,,..--  e]";
    static const char nested[] = "012345678901234567890,,,,,,,,,,,.- [[[[]]]]";
    struct test_random random = {.state = 3};
    for (int round = 0; rows && round < 60000; round++) {
        const char *alphabet = round % 4 < 2 ? flat : nested;
        char text[200];
        const size_t size = 1 + pick(&random, sizeof(text));
        for (size_t i = 0; i < size; i++) {
            text[i] = alphabet[test_random_u64(&random) % strlen(alphabet)];
            if (i > 1 && text[i] != ',' && test_random_u64(&random) % 4 == 0) {
                text[i] = text[i] == ']' ? ']' : ',';
            }
        }
        union {
            float f32[100];
            uint8_t bytes[800];
        } want, got;
        const size_t count = pick(&random, 100);
        memset(&want, 0, sizeof(want));
        memset(&got, 0, sizeof(got));
        struct ifd_number_row row = {.at = text, .end = text + size, .depth_min = 1};
        row.depth = 1 + (uint32_t)test_random_u64(&random) % 4;
        row.depth_max = row.depth + (uint32_t)test_random_u64(&random) % 4;
        struct ifd_number_row plain = row;
        size_t with = 0, without = 0, bytes = sizeof(float);
        if (round % 2 == 0) {
            with = ifd_number_run_f32_by(rows, &row, got.f32, count);
            without = ifd_number_run_f32_by(NULL, &plain, want.f32, count);
        } else {
            const bool is_signed = (round & 16) == 0;
            bytes = (size_t)1 << (round / 4 & 3);
            with = ifd_number_run_integers_by(rows, &row, is_signed, bytes, got.bytes, count);
            without = ifd_number_run_integers_by(NULL, &plain, is_signed, bytes, want.bytes, count);
        }
        EXPECT(with == without && row.at == plain.at && row.depth == plain.depth);
        EXPECT(memcmp(&got, &want, with * bytes) == 0);
    }
}

/* Writes a tree of arrays, some of them longer than others: "[[1, 2], [3]], " as json.dumps
 * does. */
struct tree {
    char text[4000];
    size_t size, count;
    uint32_t depth;     /* at the end */
    size_t behind[400]; /* number i, its comma and its blank */
    uint32_t depth_behind[400];
};

static void grow(struct tree *tree, struct test_random *random, uint32_t depth_max)
{
    *tree = (struct tree){.depth = 1};
    while (tree->count < 400 && tree->size < sizeof(tree->text) - 100) {
        while (tree->depth < depth_max && test_random_u64(random) % 3 == 0) {
            tree->text[tree->size++] = '[';
            tree->depth++;
        }
        tree->size += (size_t)snprintf(tree->text + tree->size, 8, "%u",
                                       (unsigned)(test_random_u64(random) % 256));
        while (tree->depth > 1 && test_random_u64(random) % 3 == 0) {
            tree->text[tree->size++] = ']';
            tree->depth--;
        }
        tree->size += (size_t)snprintf(tree->text + tree->size, 8, "%s",
                                       test_random_u64(random) % 2 ? ", " : ",");
        tree->depth_behind[tree->count] = tree->depth;
        tree->behind[tree->count++] = tree->size;
    }
}

/* The numbers of trees, in order: the text without its brackets, read by the C library. */
static void check_trees(const struct ifd_number_rows *rows)
{
    struct test_random random = {.state = 5};
    static struct tree tree;
    for (int round = 0; round < 300; round++) {
        grow(&tree, &random, 2 + (uint32_t)round % 6);
        uint8_t bytes[401];
        float floats[400];
        struct ifd_number_row row = {tree.text, tree.text + tree.size, 1, 1, 7}, again = row;
        bytes[tree.count] = 0xa5;
        EXPECT_INT(ifd_number_run_integers_by(rows, &row, false, 1, bytes, tree.count), tree.count);
        EXPECT(row.at == row.end && row.depth == tree.depth && bytes[tree.count] == 0xa5);
        EXPECT_INT(ifd_number_run_f32_by(rows, &again, floats, tree.count), tree.count);
        EXPECT(again.at == again.end && again.depth == tree.depth);
        const char *at = tree.text;
        for (size_t i = 0; i < tree.count; i++) {
            at += strcspn(at, "0123456789");
            const long want = strtol(at, (char **)&at, 10);
            EXPECT(bytes[i] == want && floats[i] == (float)want);
        }
        /* as many as wanted, and no bracket behind them */
        for (size_t count = 1; count < tree.count; count += 1 + count / 4) {
            struct ifd_number_row part = {tree.text, tree.text + tree.size, 1, 1, 7};
            EXPECT_INT(ifd_number_run_integers_by(rows, &part, false, 1, bytes, count), count);
            EXPECT_INT(part.at - tree.text, tree.behind[count - 1]);
            EXPECT_INT(part.depth, tree.depth_behind[count - 1]);
        }
    }
}

/* An array that must stay open is closed, or one too many opened, at every place. */
static void check_bounds_of_depth(const struct ifd_number_rows *rows)
{
    uint8_t bytes[60];
    for (size_t place = 1; place < 50; place++) {
        char text[512];
        size_t size = 0, want = 0;
        for (size_t i = 0; i < 50; i++) {
            want = i == place ? size : want;
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%zu%s,",
                                     i % 3 == 1 ? "[" : "", i + 50,
                                     i == place && i % 3 != 0 ? "]]"
                                     : i % 3 == 2             ? "]"
                                                              : "");
        }
        struct ifd_number_row row = {text, text + size, 1, 1, 9};
        if (place % 3 != 0) {
            EXPECT_INT(ifd_number_run_integers_by(rows, &row, false, 1, bytes, 50), place);
            EXPECT_INT(row.at - text, want);
            EXPECT_INT(row.depth, place % 3 == 1 ? 1 : 2);
        }
        row = (struct ifd_number_row){text, text + size, 1, 1, 1};
        EXPECT_INT(ifd_number_run_integers_by(rows, &row, false, 1, bytes, 50), 1);
        EXPECT(strncmp(row.at, "[51", 3) == 0 && row.depth == 1);
    }
}

static void rows_are_read_as_without_help(void)
{
    by_each_reader(check_as_without_help);
}

static void numbers_of_arrays_in_arrays_are_read(void)
{
    by_each_reader(check_trees);
}

static void depth_stays_within_its_bounds(void)
{
    by_each_reader(check_bounds_of_depth);
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

/* All lengths, signs and sizes: as one number alone, which test_number.c compares with the C
 * library. */
static void check_random_rows_of_printed_floats(const struct ifd_number_rows *rows)
{
    struct test_random random = {.state = 4};
    for (int round = 0; round < 25000; round++) {
        static const float specials[] = {0.0f,        -0.0f,       0.01f,     0.001f, 1e-4f,
                                         9.99e-5f,    0.1f,        1.0f,      10.0f,  9.999999f,
                                         16777215.0f, 16777216.0f, 123456.5f, 1e-30f, 3e38f,
                                         -8388607.5f, 0.3f};
        const size_t count = pick(&random, 20);
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
        T(numbers_of_arrays_in_arrays_are_read),
        T(depth_stays_within_its_bounds),
        T(all_values_of_eight_bits_are_printed_in_a_row),
        T(floats_are_printed_in_a_row_as_alone),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
