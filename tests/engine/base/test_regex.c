#include "engine/base/regex.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <string.h>

static struct ifd_regex regex;

static enum ifd_code compiled(const char *pattern)
{
    return ifd_regex_compile(&regex, ifd_str(pattern), NULL);
}

/* The part of the text that is found first, "-" without one. */
static const char *found(const char *pattern, const char *text)
{
    static char part[64];
    size_t begin = 0, end = 0;
    REQUIRE(compiled(pattern) == IFD_OK);
    if (!ifd_regex_find(&regex, ifd_str(text), 0, &begin, &end)) {
        return "-";
    }
    REQUIRE(end >= begin && end - begin < sizeof(part));
    memcpy(part, text + begin, end - begin);
    part[end - begin] = '\0';
    return part;
}

static void the_longest_of_the_leftmost_is_found(void)
{
    EXPECT_TEXT(found("a|ab|abc", "xxabcd"), "abc");
    EXPECT_TEXT(found("b+|a", "abbb"), "a");
    EXPECT_TEXT(found("(a|b)*c|a", "ababd"), "a");
    EXPECT_TEXT(found("x*", "abc"), "");
    EXPECT_TEXT(found("\\bcat\\b", "concat cat"), "cat");
    EXPECT_TEXT(found("^b", "ab"), "-");
    EXPECT_TEXT(found("(?m)^b", "a\nb"), "b");
    EXPECT_TEXT(found("a{2,3}?", "aaaa"), "aaa");
    EXPECT_TEXT(found("a{", "xa{"), "a{");
    EXPECT_TEXT(found("(?i)\xc3\x89", "\xe9\xc9\xc3\xa9"), "\xc3\xa9"); /* bytes are no letters */
    EXPECT_TEXT(found("(?U:a+)", "aa"), "aa");
}

static void what_is_not_sound_is_refused(void)
{
    static const char *const pattern[] = {"(",      ")",   "a)",      "[",       "[b-a]",   "*",
                                          "a|*",    "\\",  "a{3,2}",  "a{1000}", "(?<n>a)", "(?=a)",
                                          "\\p{L}", "\\1", "[[:x:]]", "(?i:a)b", "(?s:.)."};
    for (size_t i = 0; i < sizeof(pattern) / sizeof(pattern[0]); i++) {
        EXPECT(compiled(pattern[i]) != IFD_OK);
    }
    char deep[128] = "";
    memset(deep, '(', 60);
    EXPECT(compiled(deep) == IFD_TOO_LARGE);
    EXPECT(compiled("((a{200}){200}){200}") == IFD_TOO_LARGE);
}

/* What doubles its ways with each character where ways are tried one after the other. */
static void ways_are_tried_at_once(void)
{
    static char text[20001];
    memset(text, 'a', sizeof(text) - 1);
    REQUIRE(compiled("(a*)*b|(a|a)*c") == IFD_OK);
    EXPECT(!ifd_regex_is_whole(&regex, ifd_str(text)));
    EXPECT(regex.work < 100 * sizeof(text));
}

/* A text for which each place is tried to its end. */
static void a_match_gives_up(void)
{
    static char text[100000];
    size_t begin = 0, end = 0;
    memset(text, 'a', sizeof(text));
    REQUIRE(compiled("(a?){255}b") == IFD_OK);
    regex.work = IFD_REGEX_WORK - 10000000;
    EXPECT(!ifd_regex_find(&regex, (struct ifd_str){text, sizeof(text)}, 0, &begin, &end));
    EXPECT(regex.work > IFD_REGEX_WORK && regex.work < IFD_REGEX_WORK + 1000000);
    EXPECT(!ifd_regex_find(&regex, ifd_str("ab"), 0, &begin, &end)); /* nor later ones */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(the_longest_of_the_leftmost_is_found),
        T(what_is_not_sound_is_refused),
        T(ways_are_tried_at_once),
        T(a_match_gives_up),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
