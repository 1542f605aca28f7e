#include "engine/base/letters.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

static void characters_are_read_and_written(void)
{
    static const uint32_t character[] = {0,     'a',    0x7f,    0x80,    0x7ff,
                                         0x800, 0xffff, 0x10000, 0x10ffff};
    for (size_t i = 0; i < sizeof(character) / sizeof(character[0]); i++) {
        char text[IFD_UTF8_MAX];
        size_t bytes = 0;
        const size_t written = ifd_utf8_write(character[i], text);
        EXPECT_INT(ifd_utf8_next((struct ifd_str){text, written}, &bytes), character[i]);
        EXPECT_INT(bytes, written);
    }
}

static void bytes_that_begin_no_character_are_one(void)
{
    static const char *const text[] = {"\x80",     "\xc3",         "\xc3(", "\xff",
                                       "\xe2\x82", "\xed\xa0\x80", "\xe9(", "\xc0"};
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        size_t bytes = 0;
        const uint32_t character = ifd_utf8_next(ifd_str(text[i]), &bytes);
        EXPECT_INT(character, 0xdc00 | (unsigned char)text[i][0]);
        EXPECT_INT(bytes, 1);
        EXPECT_INT(ifd_letter_upper(character), character);
        EXPECT_INT(ifd_letter_lower(character), character);
    }
    EXPECT_INT(ifd_utf8_count(ifd_str("a\xc3\xa9\xff\xe6\x97\xa5")), 4);
}

static void cases_go_there_and_back(void)
{
    uint32_t pairs = 0;
    for (uint32_t c = 0; c < 0x11000; c++) {
        const uint32_t lower = ifd_letter_lower(c);
        if (lower != c && c != 0x130) { /* the dotted I is i's capital in no other language */
            pairs++;
            EXPECT_INT(ifd_letter_upper(lower), c);
            EXPECT_INT(ifd_letter_lower(lower), lower);
        }
    }
    EXPECT(pairs > 400);
    EXPECT_INT(ifd_letter_upper(0xdf), 0xdf); /* sharp s has no letter of its own */
    EXPECT_INT(ifd_letter_upper(0xff), 0x178);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(characters_are_read_and_written),
        T(bytes_that_begin_no_character_are_one),
        T(cases_go_there_and_back),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
