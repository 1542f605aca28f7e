/* Characters of UTF-8 and their cases. */
#include "engine/base/letters.h"

#include "engine/base/str.h"

/* Half of a pair of UTF-16, which UTF-8 does not have. */
#define NO_CHARACTER 0xdc00U

uint32_t ifd_utf8_next(struct ifd_str text, size_t *ret_bytes)
{
    static const uint8_t lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07}; /* bits of the first byte */
    const unsigned char first = (unsigned char)text.data[0];
    const size_t bytes = first < 0x80   ? 1
                         : first < 0xc0 ? 0
                         : first < 0xe0 ? 2
                         : first < 0xf0 ? 3
                         : first < 0xf8 ? 4
                                        : 0;
    *ret_bytes = 1;
    if (bytes == 1) {
        return first;
    }
    if (bytes == 0 || bytes > text.size ||
        !ifd_str_is_utf8((struct ifd_str){.data = text.data, .size = bytes})) {
        return NO_CHARACTER | first;
    }
    uint32_t character = first & lead[bytes];
    for (size_t i = 1; i < bytes; i++) {
        character = character << 6 | ((unsigned char)text.data[i] & 0x3f);
    }
    *ret_bytes = bytes;
    return character;
}

size_t ifd_utf8_write(uint32_t character, char to[IFD_UTF8_MAX])
{
    static const uint8_t mark[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (character & 0x3f));
        character >>= 6;
    }
    to[0] = (char)(mark[bytes] | character);
    return bytes;
}

size_t ifd_utf8_count(struct ifd_str text)
{
    size_t count = 0;
    while (text.size > 0) {
        size_t bytes = 0;
        (void)ifd_utf8_next(text, &bytes);
        text.data += bytes;
        text.size -= bytes;
        count++;
    }
    return count;
}

/* Capital letters first … last, whose small ones are distance further; ALTERNATE: each is in front
 * of its small one. */
#define ALTERNATE 0
static const struct {
    uint16_t first, last;
    int32_t distance;
} cases[] = {
    {'A', 'Z', 32},
    {0xc0, 0xd6, 32},
    {0xd8, 0xde, 32},
    {0x100, 0x12e, ALTERNATE},
    {0x132, 0x136, ALTERNATE},
    {0x139, 0x147, ALTERNATE},
    {0x14a, 0x176, ALTERNATE},
    {0x178, 0x178, -121},
    {0x179, 0x17d, ALTERNATE},
    {0x1cd, 0x1db, ALTERNATE},
    {0x1de, 0x1ee, ALTERNATE},
    {0x1f8, 0x21e, ALTERNATE},
    {0x222, 0x232, ALTERNATE},
    {0x386, 0x386, 38},
    {0x388, 0x38a, 37},
    {0x38c, 0x38c, 64},
    {0x38e, 0x38f, 63},
    {0x391, 0x3a1, 32},
    {0x3a3, 0x3ab, 32},
    {0x400, 0x40f, 80},
    {0x410, 0x42f, 32},
    {0x460, 0x480, ALTERNATE},
    {0x48a, 0x4be, ALTERNATE},
    {0x4c1, 0x4cd, ALTERNATE},
    {0x4d0, 0x52e, ALTERNATE},
    {0x531, 0x556, 48},
    {0x1e00, 0x1e94, ALTERNATE},
    {0x1ea0, 0x1efe, ALTERNATE},
    {0xff21, 0xff3a, 32},
};

/* Small letters that are no capital's. */
#define MICRO       0xb5
#define CAPITAL_MU  0x39c
#define FINAL_SIGMA 0x3c2
#define SIGMA       0x3a3
#define DOTLESS_I   0x131
#define LONG_S      0x17f

#define COUNT (sizeof(cases) / sizeof(cases[0]))

uint32_t ifd_letter_lower(uint32_t c)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (c >= cases[i].first && c <= cases[i].last) {
            return cases[i].distance != ALTERNATE ? (uint32_t)((int32_t)c + cases[i].distance)
                                                  : c + (((c ^ cases[i].first) & 1) == 0 ? 1 : 0);
        }
    }
    return c == 0x130 ? 'i' : c;
}

uint32_t ifd_letter_upper(uint32_t c)
{
    for (size_t i = 0; i < COUNT; i++) {
        const bool alternates = cases[i].distance == ALTERNATE;
        const int32_t distance = alternates ? 1 : cases[i].distance;
        const int64_t capital = (int64_t)c - distance;
        if (capital >= cases[i].first && capital <= cases[i].last &&
            (!alternates || ((capital ^ cases[i].first) & 1) == 0)) {
            return (uint32_t)capital;
        }
    }
    return c == MICRO         ? CAPITAL_MU
           : c == FINAL_SIGMA ? SIGMA
           : c == DOTLESS_I   ? 'I'
           : c == LONG_S      ? 'S'
                              : c;
}
