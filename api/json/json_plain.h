/** What needs no escape inside a JSON string. Thread: any. */
#ifndef INFERD_API_JSON_JSON_PLAIN_H
#define INFERD_API_JSON_JSON_PLAIN_H

#include <string.h>

#include "inferd/types.h"

/** Marks in eight bytes: the high bit of each byte that is a control character, a quote, a
 *  backslash or not ASCII. Bytes above the first marked one may be marked wrongly. */
static inline uint64_t ifd_json_marks(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    /* x - ones has a byte's high bit set where x's byte is 0 (and maybe in bytes above it) */
    const uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & high;
}

/** Length of the run of ASCII at the start of text that has no control character, quote or
 *  backslash. */
static inline size_t ifd_json_plain(const char *text, size_t size)
{
    size_t at = 0;
    while (size - at >= sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text + at, sizeof(word));
        const uint64_t hit = ifd_json_marks(word);
        if (hit) {
            bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
            at += is_little ? (size_t)__builtin_ctzll(hit) / 8 : 0;
            break;
        }
        at += sizeof(word);
    }
    if (at == 0 && size >= 4 &&
        size < sizeof(uint64_t)) { /* names and types: two halves that overlap */
        uint32_t first = 0, last = 0;
        memcpy(&first, text, sizeof(first));
        memcpy(&last, text + size - sizeof(last), sizeof(last));
        at = ifd_json_marks((uint64_t)last << 32 | first) ? 0 : size;
    }
    while (at < size && (unsigned char)text[at] >= 0x20 && (unsigned char)text[at] < 0x80 &&
           text[at] != '"' && text[at] != '\\') {
        at++;
    }
    return at;
}

#endif
