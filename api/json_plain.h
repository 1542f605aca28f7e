/** What needs no escape inside a JSON string. Thread: any. */
#ifndef INFERD_API_JSON_PLAIN_H
#define INFERD_API_JSON_PLAIN_H

#include <string.h>

#include "inferd/types.h"

/** Length of the run of ASCII at the start of text that has no control character, quote or backslash. */
static inline size_t ifd_json_plain(const char *text, size_t size)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    size_t at = 0;
    while (size - at >= sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text + at, sizeof(word));
        /* x - ones has a byte's high bit set where x's byte is 0 (and maybe in bytes above such a one) */
        const uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
        const uint64_t hit =
            ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & high;
        if (hit) {
            bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
            at += is_little ? (size_t)__builtin_ctzll(hit) / 8 : 0;
            break;
        }
        at += sizeof(word);
    }
    while (at < size && (unsigned char)text[at] >= 0x20 && (unsigned char)text[at] < 0x80 &&
           text[at] != '"' && text[at] != '\\') {
        at++;
    }
    return at;
}

#endif
