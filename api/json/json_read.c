/* Pull reader of JSON. */
#include "api/json/json_read.h"

#include "api/json/json_plain.h"
#include "engine/base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ifd_json_in_init(struct ifd_json_in *in, struct ifd_str text, struct ifd_arena *arena,
                      struct ifd_err *err)
{
    const char *begin = text.data ? text.data : ""; /* a request without a body */
    size_t mark_bytes = ifd_str_starts(text, "\xef\xbb\xbf") ? 3 : 0;
    *in = (struct ifd_json_in){.begin = begin,
                               .at = begin + mark_bytes,
                               .end = begin + text.size,
                               .arena = arena,
                               .err = err};
}

bool ifd_json_fail(struct ifd_json_in *in, enum ifd_code code, const char *format, ...)
{
    char text[IFD_ERR_TEXT_BYTES];
    if (in->failed) {
        return false;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    in->failed = true;
    in->code = ifd_fail(in->err, code, "%s, at byte %zu", text, (size_t)(in->at - in->begin));
    return false;
}

static inline void skip_blanks(struct ifd_json_in *in)
{
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r')) {
        in->at++;
    }
}

/* Fails with what was expected and which byte is there. */
static bool unexpected(struct ifd_json_in *in, const char *wanted)
{
    if (in->at >= in->end) {
        return ifd_json_fail(in, IFD_INVALID, "JSON ends where %s should come", wanted);
    }
    unsigned char c = (unsigned char)*in->at;
    if (c > ' ' && c < 0x7f) {
        return ifd_json_fail(in, IFD_INVALID, "JSON has '%c' where %s should come", c, wanted);
    }
    return ifd_json_fail(in, IFD_INVALID, "JSON has byte 0x%02x where %s should come", c, wanted);
}

enum ifd_json_kind ifd_json_peek(struct ifd_json_in *in)
{
    skip_blanks(in);
    if (in->failed || in->at >= in->end) {
        return IFD_JSON_NONE;
    }
    char c = *in->at;
    switch (c) {
    case '{':
        return IFD_JSON_OBJECT;
    case '[':
        return IFD_JSON_ARRAY;
    case '"':
        return IFD_JSON_TEXT;
    case 't':
        return IFD_JSON_TRUE;
    case 'f':
        return IFD_JSON_FALSE;
    case 'n':
        return IFD_JSON_NULL;
    case 'N':
    case 'I':
    case '-':
        return IFD_JSON_NUMBER;
    default:
        return c >= '0' && c <= '9' ? IFD_JSON_NUMBER : IFD_JSON_NONE;
    }
}

bool ifd_json_open(struct ifd_json_in *in, char bracket)
{
    skip_blanks(in);
    if (in->failed) {
        return false;
    }
    if (in->at >= in->end || *in->at != bracket) {
        return unexpected(in, bracket == '{' ? "an object" : "an array");
    }
    if (in->depth == IFD_JSON_DEPTH_MAX) {
        return ifd_json_fail(in, IFD_INVALID, "JSON nests deeper than %d levels",
                             IFD_JSON_DEPTH_MAX);
    }
    in->at++;
    in->depth++;
    in->has_item[in->depth] = false;
    return true;
}

/* Comma or closing bracket; true if an item follows. */
static bool next_item(struct ifd_json_in *in, char closing)
{
    skip_blanks(in);
    if (in->failed) {
        return false;
    }
    if (in->at < in->end && *in->at == closing) {
        in->at++;
        in->depth--;
        return false;
    }
    if (in->has_item[in->depth]) {
        if (in->at >= in->end || *in->at != ',') {
            return unexpected(in, closing == '}' ? "',' or '}'" : "',' or ']'");
        }
        in->at++;
        skip_blanks(in);
    }
    in->has_item[in->depth] = true;
    return true;
}

bool ifd_json_member(struct ifd_json_in *in, struct ifd_str *ret_key)
{
    if (!next_item(in, '}')) {
        return false;
    }
    if (in->at >= in->end || *in->at != '"') {
        return unexpected(in, "a member's name in double quotes");
    }
    if (!ifd_json_text(in, ret_key)) {
        return false;
    }
    skip_blanks(in);
    if (in->at >= in->end || *in->at != ':') {
        return unexpected(in, "':'");
    }
    in->at++;
    return true;
}

bool ifd_json_given(struct ifd_json_in *in, struct ifd_str *ret_key)
{
    while (ifd_json_member(in, ret_key)) {
        if (ifd_json_peek(in) != IFD_JSON_NULL) {
            return true;
        }
        ifd_json_skip(in);
    }
    return false;
}

bool ifd_json_once(struct ifd_json_in *in, bool *has, const char *name)
{
    if (*has) {
        return ifd_json_fail(in, IFD_INVALID, "member '%s' comes twice", name);
    }
    *has = true;
    return true;
}

bool ifd_json_item(struct ifd_json_in *in)
{
    return next_item(in, ']');
}

void ifd_json_resume(struct ifd_json_in *in, const char *at, uint32_t depth)
{
    for (uint32_t i = in->depth; i <= depth; i++) {
        in->has_item[i] = true;
    }
    in->at = at;
    in->depth = depth;
}

/* ---- strings ---- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The value of four hexadecimal digits behind \u, -1 if they are none. */
static int32_t hex_unit(const char *text, const char *end)
{
    int32_t value = 0;
    if (end - text < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(text[i]);
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

static size_t put_utf8(char *text, uint32_t rune)
{
    if (rune < 0x80) {
        text[0] = (char)rune;
        return 1;
    }
    if (rune < 0x800) {
        text[0] = (char)(0xc0 | rune >> 6);
        text[1] = (char)(0x80 | (rune & 0x3f));
        return 2;
    }
    if (rune < 0x10000) {
        text[0] = (char)(0xe0 | rune >> 12);
        text[1] = (char)(0x80 | (rune >> 6 & 0x3f));
        text[2] = (char)(0x80 | (rune & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | rune >> 18);
    text[1] = (char)(0x80 | (rune >> 12 & 0x3f));
    text[2] = (char)(0x80 | (rune >> 6 & 0x3f));
    text[3] = (char)(0x80 | (rune & 0x3f));
    return 4;
}

/* Decodes \uXXXX at from, or a pair of surrogates. Returns the bytes read, 0 if it is wrong. */
static size_t read_unicode(const char *from, const char *end, char *to, size_t *ret_written)
{
    int32_t unit = hex_unit(from + 2, end);
    size_t used = 6;
    if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000)) {
        return 0;
    }
    uint32_t rune = (uint32_t)unit;
    if (unit >= 0xd800 && unit < 0xdc00) {
        bool has_second = end - from >= 12 && from[6] == '\\' && from[7] == 'u';
        int32_t second = has_second ? hex_unit(from + 8, end) : -1;
        if (second < 0xdc00 || second >= 0xe000) {
            return 0;
        }
        rune = 0x10000 + ((rune - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
        used = 12;
    }
    *ret_written = put_utf8(to, rune);
    return used;
}

static bool unescape(struct ifd_json_in *in, const char *from, const char *end, struct ifd_str *ret)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char *copy = ifd_arena_take(in->arena, (size_t)(end - from));
    if (!copy) {
        in->failed = true;
        in->code = ifd_arena_fail(in->arena, (size_t)(end - from), in->err);
        return false;
    }
    char *to = copy;
    while (from < end) {
        const char *escape = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((escape ? escape : end) - from);
        memcpy(to, from, plain);
        to += plain;
        from += plain;
        if (!escape) {
            break;
        }
        const char *name = end - from >= 2 && from[1] != '\0' ? strchr(names, from[1]) : NULL;
        size_t written = 1, used = name ? 2 : 0;
        if (name) {
            *to = values[name - names];
        } else if (end - from >= 2 && from[1] == 'u') {
            used = read_unicode(from, end, to, &written);
        }
        if (used == 0) {
            in->at = from;
            return ifd_json_fail(in, IFD_INVALID, "JSON string has a wrong escape");
        }
        from += used;
        to += written;
    }
    *ret = (struct ifd_str){.data = copy, .size = (size_t)(to - copy)};
    return true;
}

bool ifd_json_text(struct ifd_json_in *in, struct ifd_str *ret)
{
    skip_blanks(in);
    if (in->failed) {
        return false;
    }
    if (in->at >= in->end || *in->at != '"') {
        return unexpected(in, "a string");
    }
    const char *first = in->at + 1;
    const char *at = first;
    bool has_escape = false, has_high = false;
    while (at < in->end) {
        at += ifd_json_plain(at, (size_t)(in->end - at));
        if (at == in->end || *at == '"') {
            break;
        }
        unsigned char c = (unsigned char)*at;
        if (c < 0x20) {
            in->at = at;
            return ifd_json_fail(in, IFD_INVALID,
                                 "JSON string has the control character 0x%02x unescaped", c);
        }
        has_high |= c >= 0x80;
        if (c == '\\') {
            has_escape = true;
            at++;
        }
        at++;
    }
    if (at >= in->end) {
        return ifd_json_fail(in, IFD_INVALID, "JSON ends inside a string that starts here");
    }
    struct ifd_str text = {.data = first, .size = (size_t)(at - first)};
    if (has_high && !ifd_str_is_utf8(text)) {
        return ifd_json_fail(in, IFD_INVALID, "JSON string is not UTF-8");
    }
    if (has_escape && !unescape(in, first, at, &text)) {
        return false;
    }
    in->at = at + 1;
    *ret = text;
    return true;
}

/* ---- scalars ---- */

static bool take_word(struct ifd_json_in *in, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0) {
        return false;
    }
    in->at += size;
    return true;
}

bool ifd_json_bool(struct ifd_json_in *in, bool *ret)
{
    skip_blanks(in);
    if (in->failed) {
        return false;
    }
    bool is_true = take_word(in, "true");
    if (!is_true && !take_word(in, "false")) {
        return unexpected(in, "true or false");
    }
    *ret = is_true;
    return true;
}

bool ifd_json_number(struct ifd_json_in *in, struct ifd_number *ret)
{
    skip_blanks(in);
    if (in->failed) {
        return false;
    }
    struct ifd_number number;
    size_t size = ifd_number_scan(in->at, in->end, &number);
    if (size == 0) {
        return unexpected(in, "a number");
    }
    in->at += size;
    if (in->at >= in->end) {
        /* a number alone is no request; the C library may read the byte behind it */
        return unexpected(in, "more");
    }
    *ret = number;
    return true;
}

bool ifd_json_u64(struct ifd_json_in *in, uint64_t *ret)
{
    struct ifd_number number;
    skip_blanks(in);
    const char *start = in->at;
    if (!ifd_json_number(in, &number)) {
        return false;
    }
    if (!ifd_number_u64(&number, ret)) {
        in->at = start;
        return ifd_json_fail(in, IFD_INVALID, "%.*s is not an integer of 0 … 2^64-1",
                             number.size > 40 ? 40 : (int)number.size, number.text);
    }
    return true;
}

bool ifd_json_special(struct ifd_json_in *in, double *ret)
{
    skip_blanks(in);
    const char *start = in->at;
    if (in->failed || in->at >= in->end) {
        return false;
    }
    if (take_word(in, "NaN")) {
        *ret = (double)NAN;
        return true;
    }
    bool negative = take_word(in, "-");
    if (take_word(in, "Infinity") || take_word(in, "Inf")) {
        *ret = negative ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    in->at = start;
    return false;
}

static bool skip_scalar(struct ifd_json_in *in)
{
    struct ifd_str text;
    struct ifd_number number;
    double special = 0;
    bool truth = false;
    switch (ifd_json_peek(in)) {
    case IFD_JSON_TEXT:
        return ifd_json_text(in, &text);
    case IFD_JSON_NUMBER:
        return ifd_json_special(in, &special) || ifd_json_number(in, &number);
    case IFD_JSON_TRUE:
    case IFD_JSON_FALSE:
        return ifd_json_bool(in, &truth);
    case IFD_JSON_NULL:
        return take_word(in, "null") || unexpected(in, "a value");
    case IFD_JSON_OBJECT:
    case IFD_JSON_ARRAY:
    case IFD_JSON_NONE:
        break;
    }
    return unexpected(in, "a value");
}

bool ifd_json_skip(struct ifd_json_in *in)
{
    const uint32_t outside = in->depth;
    bool is_object[IFD_JSON_DEPTH_MAX + 1] = {false};
    struct ifd_str key;
    do {
        enum ifd_json_kind kind = ifd_json_peek(in);
        if (kind == IFD_JSON_OBJECT || kind == IFD_JSON_ARRAY) {
            if (!ifd_json_open(in, kind == IFD_JSON_OBJECT ? '{' : '[')) {
                return false;
            }
            is_object[in->depth] = kind == IFD_JSON_OBJECT;
        } else if (!skip_scalar(in)) {
            return false;
        }
        /* to the next value, out of all containers that end here */
        while (in->depth > outside &&
               !(is_object[in->depth] ? ifd_json_member(in, &key) : ifd_json_item(in))) {
            if (in->failed) {
                return false;
            }
        }
    } while (in->depth > outside);
    return true;
}

bool ifd_json_finish(struct ifd_json_in *in)
{
    skip_blanks(in);
    if (!in->failed && in->at < in->end) {
        return unexpected(in, "the end");
    }
    return !in->failed;
}
