#include "engine/base/str.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static void comparisons_respect_length_and_case(void)
{
    EXPECT(ifd_str_equal(ifd_str("abc"), "abc"));
    EXPECT(!ifd_str_equal(ifd_str("abc"), "abcd"));
    EXPECT(!ifd_str_equal(ifd_str("abcd"), "abc"));
    EXPECT(ifd_str_equal(ifd_str(NULL), ""));
    EXPECT(ifd_str_equal_nocase(ifd_str("Content-TYPE"), "content-type"));
    EXPECT(!ifd_str_equal_nocase(ifd_str("Content"), "content-type"));
    EXPECT(!ifd_str_equal_nocase(ifd_str("content-type"), "content"));
    EXPECT(ifd_str_starts(ifd_str("/v2/models"), "/v2/"));
    EXPECT(!ifd_str_starts(ifd_str("/v"), "/v2/"));
}

/* Every pair of characters, inside the words of eight and behind them. */
static void case_is_ignored_in_ascii_letters_only(void)
{
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            bool are_letters = (a | 0x20) >= 'a' && (a | 0x20) <= 'z' && a < 0x80 && b < 0x80;
            bool is_same = a == b || (are_letters && (a ^ b) == 0x20);
            for (size_t at = 0; at < 11; at += 5) {
                char one[11], other[11];
                memset(one, at % 2 ? 'x' : 'X', sizeof(one));
                memset(other, 'x', sizeof(other));
                one[at] = (char)a;
                other[at] = (char)b;
                EXPECT(ifd_str_same_nocase(one, other, sizeof(one)) == is_same);
            }
        }
    }
}

static void parts_and_trims(void)
{
    struct ifd_str rest = ifd_str("a, b ,,c");
    EXPECT(ifd_str_equal(ifd_str_part(&rest, ','), "a"));
    EXPECT(ifd_str_equal(ifd_str_trim(ifd_str_part(&rest, ',')), "b"));
    EXPECT(ifd_str_equal(ifd_str_part(&rest, ','), ""));
    EXPECT(ifd_str_equal(ifd_str_part(&rest, ','), "c"));
    EXPECT(rest.data == NULL);
}

static void whole_numbers_are_strict(void)
{
    uint64_t u = 5;
    int64_t s = 5;
    EXPECT(ifd_str_u64(ifd_str("18446744073709551615"), &u) && u == UINT64_MAX);
    EXPECT(!ifd_str_u64(ifd_str("18446744073709551616"), &u));
    EXPECT(!ifd_str_u64(ifd_str(""), &u));
    EXPECT(!ifd_str_u64(ifd_str("+1"), &u));
    EXPECT(!ifd_str_u64(ifd_str("1 "), &u));
    EXPECT(ifd_str_s64(ifd_str("-9223372036854775808"), &s) && s == INT64_MIN);
    EXPECT(!ifd_str_s64(ifd_str("-9223372036854775809"), &s));
    EXPECT(!ifd_str_s64(ifd_str("9223372036854775808"), &s));
    EXPECT(!ifd_str_s64(ifd_str("-"), &s));
}

static void real_numbers_follow_json(void)
{
    double d = 0;
    static const char *const bad[] = {"",     "-",   "01",  "1.", ".5",  "1e", "1e+",
                                      "0x10", "inf", "nan", "1 ", "--1", "+1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT(!ifd_str_f64(ifd_str(bad[i]), &d));
    }
    EXPECT(ifd_str_f64(ifd_str("-0.5e-3"), &d) && d == -0.0005);
    EXPECT(ifd_str_f64(ifd_str("0"), &d) && d == 0);
    EXPECT(ifd_str_f64(ifd_str("NaN"), &d) && isnan(d));
    EXPECT(ifd_str_f64(ifd_str("-Infinity"), &d) && isinf(d) && d < 0);
}

static void utf8_is_told_from_other_bytes(void)
{
    static const char *const good[] = {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\x88"};
    static const char *const bad[] = {"\x80",     "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                      "\xe2\x82", "\xff"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        EXPECT(ifd_str_is_utf8(ifd_str(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT(!ifd_str_is_utf8(ifd_str(bad[i])));
    }
}

static void format_says_when_it_cuts(void)
{
    char text[4];
    EXPECT(ifd_str_format(text, sizeof(text), "%d", 123));
    EXPECT(!ifd_str_format(text, sizeof(text), "%d", 1234));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(comparisons_respect_length_and_case),
        T(case_is_ignored_in_ascii_letters_only),
        T(parts_and_trims),
        T(whole_numbers_are_strict),
        T(real_numbers_follow_json),
        T(utf8_is_told_from_other_bytes),
        T(format_says_when_it_cuts),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
