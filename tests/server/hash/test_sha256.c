/* Sums of the examples of FIPS 180-4, their digits, and invalid digits. */
#include "server/hash/sha256.h"

#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

static void sums_are_those_of_the_standard(void)
{
    static const struct {
        const char *text, *digits;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1 and more"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t want[IFD_SHA256_BYTES], got[IFD_SHA256_BYTES];
        const size_t half = strlen(rows[i].text) / 2;
        struct ifd_sha256 sum;
        REQUIRE(ifd_sha256_read(ifd_str(rows[i].digits), want));
        ifd_sha256_begin(&sum);
        ifd_sha256_add(&sum, rows[i].text, half);
        ifd_sha256_add(&sum, rows[i].text + half, strlen(rows[i].text) - half);
        ifd_sha256_end(&sum, got);
        EXPECT_BYTES(got, want, sizeof(want));
        EXPECT(ifd_sha256_is_same(got, want));
    }
}

static void digits_must_be_64(void)
{
    char digits[IFD_SHA256_DIGITS + 1] = "";
    uint8_t sum[IFD_SHA256_BYTES];
    memset(digits, '7', IFD_SHA256_DIGITS);
    EXPECT(ifd_sha256_read(ifd_str(digits), sum));
    EXPECT(!ifd_sha256_read((struct ifd_str){.data = digits, .size = IFD_SHA256_DIGITS - 1}, sum));
    EXPECT(!ifd_sha256_read((struct ifd_str){0}, sum));
    for (size_t i = 0; i < IFD_SHA256_DIGITS; i++) {
        digits[i] = 'g';
        EXPECT(!ifd_sha256_read(ifd_str(digits), sum));
        digits[i] = '7';
    }
}

static void every_bit_counts(void)
{
    uint8_t a[IFD_SHA256_BYTES] = {0}, b[IFD_SHA256_BYTES] = {0};
    for (size_t bit = 0; bit < 8 * sizeof(b); bit++) {
        b[bit / 8] = (uint8_t)(1u << bit % 8);
        EXPECT(!ifd_sha256_is_same(a, b));
        b[bit / 8] = 0;
        EXPECT(ifd_sha256_is_same(a, b));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(sums_are_those_of_the_standard),
        T(digits_must_be_64),
        T(every_bit_counts),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
