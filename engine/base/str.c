/* Text views and numbers without locale. */
#include "engine/base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Eight characters at text, letters in lower case. */
static uint64_t lower_word(const char *text)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    uint64_t word = 0;
    memcpy(&word, text, sizeof(word));
    /* The sums reach a byte's high bit for characters from 'A' on, and beyond 'Z'. */
    const uint64_t low = word & ~high, from_a = low + ones * (0x80 - 'A');
    const uint64_t beyond_z = low + ones * (0x7f - 'Z');
    return word | (from_a & ~beyond_z & ~word & high) >> 2; /* 0x20: the bit of lower case */
}

bool ifd_str_same_nocase(const char *a, const char *b, size_t size)
{
    size_t i = 0;
    for (; size - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
        if (lower_word(a + i) != lower_word(b + i)) {
            return false;
        }
    }
    for (; i < size; i++) {
        if (lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

bool ifd_str_starts(struct ifd_str text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && (size == 0 || memcmp(text.data, prefix, size) == 0);
}

struct ifd_str ifd_str_trim(struct ifd_str text)
{
    while (text.size && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t')) {
        text.size--;
    }
    return text;
}

struct ifd_str ifd_str_part(struct ifd_str *rest, char separator)
{
    struct ifd_str part = *rest;
    const char *at = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
    if (!at) {
        *rest = (struct ifd_str){0};
        return part;
    }
    part.size = (size_t)(at - part.data);
    rest->data = at + 1;
    rest->size -= part.size + 1;
    return part;
}

bool ifd_str_u64(struct ifd_str text, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' ||
            __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value)) {
            return false;
        }
    }
    if (text.size == 0) {
        return false;
    }
    *ret = value;
    return true;
}

bool ifd_str_s64(struct ifd_str text, int64_t *ret)
{
    bool negative = text.size && text.data[0] == '-';
    uint64_t value = 0;
    if (negative) {
        text.data++;
        text.size--;
    }
    if (!ifd_str_u64(text, &value) || value > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static size_t skip_digits(const char *text, size_t size, size_t at)
{
    while (at < size && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return at;
}

/* JSON's grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static bool is_json_number(const char *text, size_t size)
{
    size_t at = size && text[0] == '-' ? 1 : 0;
    size_t next = skip_digits(text, size, at);
    if (next == at || (text[at] == '0' && next > at + 1)) {
        return false;
    }
    at = next;
    if (at < size && text[at] == '.') {
        next = skip_digits(text, size, at + 1);
        if (next == at + 1) {
            return false;
        }
        at = next;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < size && (text[at] == '+' || text[at] == '-')) {
            at++;
        }
        next = skip_digits(text, size, at);
        if (next == at) {
            return false;
        }
        at = next;
    }
    return at == size;
}

bool ifd_str_f64(struct ifd_str text, double *ret)
{
    char copy[512];
    if (ifd_str_equal(text, "NaN")) {
        *ret = (double)NAN;
        return true;
    }
    if (ifd_str_equal(text, "Infinity") || ifd_str_equal(text, "-Infinity")) {
        *ret = text.data[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    if (text.size >= sizeof(copy) || !is_json_number(text.data, text.size)) {
        return false;
    }
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    /* The program never calls setlocale(), so strtod reads a point. */
    *ret = strtod(copy, NULL);
    return true;
}

bool ifd_str_format(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, size, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < size;
}

/* Bytes of the UTF-8 sequence at text, 0 if it is malformed or cut. */
static size_t utf8_sequence(const unsigned char *text, size_t size)
{
    unsigned char first = text[0];
    size_t count = first < 0x80   ? 1
                   : first < 0xc2 ? 0
                   : first < 0xe0 ? 2
                   : first < 0xf0 ? 3
                   : first < 0xf5 ? 4
                                  : 0;
    if (count == 0 || count > size) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
               (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f);
    return bad ? 0 : count;
}

#define DISTANCE_MAX 47

static bool is_part(struct ifd_str name, const char *known)
{
    for (; name.size > 0 && strlen(known) >= name.size; known++) {
        if (memcmp(known, name.data, name.size) == 0) {
            return true;
        }
    }
    return false;
}

unsigned ifd_str_distance(struct ifd_str name, const char *known)
{
    unsigned row[DISTANCE_MAX + 1];
    const size_t columns = strlen(known) < DISTANCE_MAX ? strlen(known) : DISTANCE_MAX;
    if (is_part(name, known)) {
        return 0;
    }
    for (size_t k = 0; k <= columns; k++) {
        row[k] = (unsigned)k;
    }
    for (size_t i = 0; i < name.size && i < DISTANCE_MAX; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t k = 1; k <= columns; k++) {
            const unsigned above = row[k];
            unsigned best = diagonal + (name.data[i] == known[k - 1] ? 0 : 1);
            best = above + 1 < best ? above + 1 : best;
            best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
            diagonal = above;
            row[k] = best;
        }
    }
    return 1 + row[columns];
}

bool ifd_str_is_utf8(struct ifd_str text)
{
    for (size_t at = 0; at < text.size;) {
        size_t count = utf8_sequence((const unsigned char *)text.data + at, text.size - at);
        if (count == 0) {
            return false;
        }
        at += count;
    }
    return true;
}
