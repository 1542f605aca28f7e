/* Base64. */
#include "api/json/base64.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <string.h>

static void texts_of_the_standard_are_decoded_and_encoded(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {{"", ""},
                 {"Zg==", "f"},
                 {"Zm8=", "fo"},
                 {"Zm9v", "foo"},
                 {"Zm9vYg==", "foob"},
                 {"Zm9vYmE=", "fooba"},
                 {"Zm9vYmFy", "foobar"},
                 {"+/+/", "\xfb\xff\xbf"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t data[16] = {0};
        size_t size = 99;
        EXPECT(ifd_base64_decode(ifd_str(cases[i].text), data, &size));
        EXPECT_INT(size, strlen(cases[i].want));
        EXPECT_BYTES(data, cases[i].want, strlen(cases[i].want));
        char text[16];
        ifd_base64_encode((struct ifd_bytes){.data = data, .size = size}, text);
        EXPECT_INT(IFD_BASE64_TEXT_BYTES(size), strlen(cases[i].text));
        EXPECT_BYTES(text, cases[i].text, strlen(cases[i].text));
    }
}

static void other_texts_are_refused(void)
{
    static const char *const bad[] = {"Z",     "Zg",    "Zg=",  "Zg=a", "Z===", "====",
                                      "Zm9v ", "Zm9\n", "Zm9*", "Zm-_", "=Zm9", "Zg==Zg=="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t data[16] = {0};
        size_t size = 0;
        EXPECT(!ifd_base64_decode(ifd_str(bad[i]), data, &size));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(texts_of_the_standard_are_decoded_and_encoded),
        T(other_texts_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
