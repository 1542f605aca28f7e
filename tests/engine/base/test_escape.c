#include "engine/base/escape.h"

#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

static const char *escaped(const char *text)
{
    static char all[512];
    size_t used = 0;
    for (struct ifd_str rest = ifd_str(text); rest.size > 0;) {
        const size_t before = rest.size, size = ifd_escape_next(&rest, all + used);
        EXPECT(size > 0 && size <= IFD_ESCAPE_BYTES && rest.size < before);
        used += size;
        REQUIRE(used < sizeof(all) - IFD_ESCAPE_BYTES);
    }
    all[used] = '\0';
    return all;
}

static void printable_text_stays(void)
{
    EXPECT_TEXT(escaped("a b=c{}',:~ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
                "a b=c{}',:~ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void quotes_and_controls_are_escaped(void)
{
    EXPECT_TEXT(escaped("\"\\"), "\\\"\\\\");
    EXPECT_TEXT(escaped("\n\r\t\x01\x1b[31m\x1f\x7f"),
                "\\u000a\\u000d\\u0009\\u0001\\u001b[31m\\u001f\\u007f");
}

/* U+009B begins a command of a terminal as ESC [ does. */
static void controls_of_two_bytes_are_escaped(void)
{
    EXPECT_TEXT(escaped("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\\u0080\\u009b\\u009f\xc2\xa0");
}

static void bytes_that_are_no_utf8_are_escaped(void)
{
    EXPECT_TEXT(escaped("\xff\x80"), "\\u00ff\\u0080");
    EXPECT_TEXT(escaped("\xc3"), "\\u00c3");                       /* cut */
    EXPECT_TEXT(escaped("\xe2\x82"), "\\u00e2\\u0082");            /* cut */
    EXPECT_TEXT(escaped("\xc3\"x"), "\\u00c3\\\"x");               /* swallows nothing */
    EXPECT_TEXT(escaped("\xed\xa0\x80"), "\\u00ed\\u00a0\\u0080"); /* a surrogate */
}

static void lines_keep_quotes_but_no_controls(void)
{
    char line[40];
    EXPECT_TEXT(ifd_escape_line("say \"a\\b\"\nforged\x1b[2J", line, sizeof(line)),
                "say \"a\\b\"\\u000aforged\\u001b[2J");
    EXPECT_TEXT(ifd_escape_line("", line, sizeof(line)), "");
    EXPECT_TEXT(ifd_escape_line("abc\ndef", line, 9), "abc"); /* no part of an escape */
    EXPECT_TEXT(ifd_escape_line("abc\ndef", line, 10), "abc\\u000a");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(printable_text_stays),
        T(quotes_and_controls_are_escaped),
        T(controls_of_two_bytes_are_escaped),
        T(bytes_that_are_no_utf8_are_escaped),
        T(lines_keep_quotes_but_no_controls),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
