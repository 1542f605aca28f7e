#include "engine/base/name.h"

#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

static void names_of_models_are_plain(void)
{
    static const char *const good[] = {"a", "MobileNet_v2-1.0+uint8", "7", "-"};
    static const char *const bad[] = {"",  ".",   "..",  ".git", "a/b",
                                      "ä", "a b", "a\n", "a%2e", "a\\b"};
    char longest[130];
    memset(longest, 'x', sizeof(longest));
    longest[129] = '\0';
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        EXPECT(ifd_name_is_valid(ifd_str(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT(!ifd_name_is_valid(ifd_str(bad[i])));
    }
    EXPECT(!ifd_name_is_valid(ifd_str(longest)));
    EXPECT(ifd_name_is_valid(ifd_str(longest + 1)));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(names_of_models_are_plain),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
