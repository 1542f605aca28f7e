/* Reader of text protobuf and JSON. */
#include "server/repo/text.h"

#include <string.h>

#include "engine/base/str.h"

struct reader {
    const char *at, *end;
    const char *name;
    uint32_t line, fields, depth;
    struct ifd_arena *arena;
    struct ifd_err *err;
};

static enum ifd_code parse_fields(struct reader *r, char closer,
                                  const struct ifd_text_field **ret_first);

static enum ifd_code fail(struct reader *r, const char *wanted)
{
    if (r->at >= r->end) {
        return ifd_fail(r->err, IFD_CORRUPT, "%s:%u: text ends, expected %s", r->name, r->line,
                        wanted);
    }
    int shown = 0;
    while (shown < 16 && r->at + shown < r->end && (unsigned char)r->at[shown] > ' ') {
        shown++;
    }
    return ifd_fail(r->err, IFD_CORRUPT, "%s:%u: found \"%.*s\", expected %s", r->name, r->line,
                    shown, r->at, wanted);
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end) {
        if (*r->at == '#') {
            while (r->at < r->end && *r->at != '\n') {
                r->at++;
            }
        } else if (*r->at == '\n') {
            r->line++;
            r->at++;
        } else if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
            r->at++;
        } else {
            return;
        }
    }
}

/* Next character behind blanks and comments, 0 at the end. */
static char peek(struct reader *r)
{
    skip_blanks(r);
    return r->at < r->end ? *r->at : '\0';
}

static bool accept(struct reader *r, char c)
{
    if (peek(r) != c) {
        return false;
    }
    r->at++;
    return true;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.';
}

static enum ifd_code parse_word(struct reader *r, const char *wanted, const char **ret)
{
    const char *begin = r->at;
    while (r->at < r->end && is_word(*r->at)) {
        r->at++;
    }
    if (r->at == begin) {
        return fail(r, wanted);
    }
    size_t size = (size_t)(r->at - begin);
    *ret = ifd_arena_text(r->arena, begin, size);
    return *ret ? IFD_OK : ifd_arena_fail(r->arena, size, r->err);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads up to max digits of base 8 or 16; -1 if there is none. */
static int64_t parse_digits(struct reader *r, int base, int max)
{
    int64_t value = -1;
    for (int i = 0; i < max && r->at < r->end; i++) {
        int digit = hex_digit(*r->at);
        if (digit < 0 || digit >= base) {
            break;
        }
        value = (value < 0 ? 0 : value) * base + digit;
        r->at++;
    }
    return value;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(lead[more] | (code >> (6 * more)));
    while (more-- > 0) {
        *to++ = (char)(0x80 | ((code >> (6 * more)) & 0x3f));
    }
    return to;
}

/* Reads a code point: \u with four digits, twice for one above U+FFFF as in JSON, or \U with
 * eight. */
static enum ifd_code parse_code_point(struct reader *r, char **to)
{
    int64_t value = parse_digits(r, 16, *r->at++ == 'u' ? 4 : 8);
    if (value >= 0xd800 && value < 0xdc00 && r->end - r->at > 2 && r->at[0] == '\\' &&
        r->at[1] == 'u') {
        r->at += 2;
        int64_t low = parse_digits(r, 16, 4);
        value =
            low >= 0xdc00 && low < 0xe000 ? 0x10000 + (value - 0xd800) * 0x400 + low - 0xdc00 : -1;
    }
    if (value <= 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        return fail(r, "an escape for a character other than NUL");
    }
    *to = put_utf8(*to, (unsigned)value);
    return IFD_OK;
}

/* Writes the character behind a backslash to *to (never more bytes than are read). */
static enum ifd_code parse_escape(struct reader *r, char **to)
{
    static const char from[] = "nrtbfav\"'\\/?", into[] = "\n\r\t\b\f\a\v\"'\\/?";
    if (r->at >= r->end) {
        return fail(r, "an escape");
    }
    const char *known = *r->at != '\0' ? strchr(from, *r->at) : NULL;
    if (known) {
        r->at++;
        *(*to)++ = into[known - from];
        return IFD_OK;
    }
    if (*r->at == 'u' || *r->at == 'U') {
        return parse_code_point(r, to);
    }
    int64_t value = -1;
    if (*r->at == 'x') {
        r->at++;
        value = parse_digits(r, 16, 2);
    } else {
        value = parse_digits(r, 8, 3);
    }
    if (value <= 0 || value > 255) {
        return fail(r, "an escape");
    }
    *(*to)++ = (char)value;
    return IFD_OK;
}

static enum ifd_code parse_string(struct reader *r, const char **ret)
{
    char quote = *r->at++;
    const char *scan = r->at;
    while (scan < r->end && *scan != quote && *scan != '\n') {
        scan += *scan == '\\' && scan + 1 < r->end ? 2 : 1;
    }
    /* no escape is shorter than its character */
    size_t bound = (size_t)(scan - r->at) + 4;
    char *text = ifd_arena_take(r->arena, bound);
    if (!text) {
        return ifd_arena_fail(r->arena, bound, r->err);
    }
    char *to = text;
    while (r->at < r->end && *r->at != quote) {
        if (*r->at == '\n' || *r->at == '\0') {
            return fail(r, "the closing quote");
        }
        if (*r->at == '\\') {
            r->at++;
            enum ifd_code code = parse_escape(r, &to);
            if (code) {
                return code;
            }
        } else {
            *to++ = *r->at++;
        }
    }
    if (r->at >= r->end) {
        return fail(r, "the closing quote");
    }
    r->at++;
    *to = '\0';
    if (!ifd_str_is_utf8((struct ifd_str){.data = text, .size = (size_t)(to - text)})) {
        return ifd_fail(r->err, IFD_CORRUPT, "%s:%u: a string is not UTF-8", r->name, r->line);
    }
    *ret = text;
    return IFD_OK;
}

/* Reads one or more strings as one. */
static enum ifd_code parse_strings(struct reader *r, const char **ret)
{
    enum ifd_code code = parse_string(r, ret);
    for (char c = peek(r); !code && (c == '"' || c == '\''); c = peek(r)) {
        const char *more = NULL;
        code = parse_string(r, &more);
        size_t size = strlen(*ret), more_size = code ? 0 : strlen(more);
        char *text = code ? NULL : ifd_arena_take(r->arena, size + more_size + 1);
        if (text) {
            memcpy(text, *ret, size);
            memcpy(text + size, more, more_size + 1);
            *ret = text;
        } else if (!code) {
            code = ifd_arena_fail(r->arena, size + more_size + 1, r->err);
        }
    }
    return code;
}

static enum ifd_code new_field(struct reader *r, const char *name, struct ifd_text_field ***end,
                               struct ifd_text_field **ret)
{
    if (++r->fields > IFD_TEXT_FIELDS_MAX) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "%s:%u: more than %d fields", r->name, r->line,
                        IFD_TEXT_FIELDS_MAX);
    }
    struct ifd_text_field *field = ifd_arena_take(r->arena, sizeof(*field));
    if (!field) {
        return ifd_arena_fail(r->arena, sizeof(*field), r->err);
    }
    *field = (struct ifd_text_field){.name = name, .line = r->line, .text = ""};
    **end = field;
    *end = &field->next;
    *ret = field;
    return IFD_OK;
}

static enum ifd_code parse_message(struct reader *r, struct ifd_text_field *field)
{
    char closer = *r->at++ == '{' ? '}' : '>';
    field->kind = IFD_TEXT_MESSAGE;
    if (++r->depth > IFD_TEXT_DEPTH_MAX) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "%s:%u: nested deeper than %d", r->name, r->line,
                        IFD_TEXT_DEPTH_MAX);
    }
    enum ifd_code code = parse_fields(r, closer, &field->child);
    r->depth--;
    return code;
}

static enum ifd_code parse_value(struct reader *r, const char *name, struct ifd_text_field ***end)
{
    char c = peek(r);
    struct ifd_text_field *field = NULL;
    enum ifd_code code = new_field(r, name, end, &field);
    if (code) {
        return code;
    }
    if (c == '{' || c == '<') {
        return parse_message(r, field);
    }
    if (c == '"' || c == '\'') {
        field->kind = IFD_TEXT_STRING;
        return parse_strings(r, &field->text);
    }
    field->kind = IFD_TEXT_WORD;
    return parse_word(r, "a value", &field->text);
}

static enum ifd_code parse_list(struct reader *r, const char *name, struct ifd_text_field ***end)
{
    if (accept(r, ']')) {
        return IFD_OK;
    }
    do {
        enum ifd_code code = parse_value(r, name, end);
        if (code) {
            return code;
        }
    } while (accept(r, ',') && peek(r) != ']');
    return accept(r, ']') ? IFD_OK : fail(r, "\",\" or \"]\"");
}

static enum ifd_code parse_field(struct reader *r, struct ifd_text_field ***end)
{
    const char *name = NULL;
    char c = peek(r);
    enum ifd_code code =
        c == '"' || c == '\'' ? parse_string(r, &name) : parse_word(r, "a field name", &name);
    if (code) {
        return code;
    }
    bool has_colon = accept(r, ':');
    c = peek(r);
    if (c == '[') {
        r->at++;
        return parse_list(r, name, end);
    }
    if (!has_colon && c != '{' && c != '<') {
        return fail(r, "\":\"");
    }
    return parse_value(r, name, end);
}

static enum ifd_code parse_fields(struct reader *r, char closer,
                                  const struct ifd_text_field **ret_first)
{
    struct ifd_text_field *first = NULL, **end = &first;
    while (peek(r) != closer) {
        enum ifd_code code = parse_field(r, &end);
        if (code) {
            return code;
        }
        if (!accept(r, ',')) {
            (void)accept(r, ';');
        }
    }
    r->at += closer != '\0';
    *ret_first = first;
    return IFD_OK;
}

enum ifd_code ifd_text_parse(struct ifd_str text, const char *name, struct ifd_arena *arena,
                             const struct ifd_text_field **ret_first, struct ifd_err *err)
{
    if (text.size > IFD_TEXT_BYTES_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "%s: %zu bytes, at most %zu are read", name, text.size,
                        IFD_TEXT_BYTES_MAX);
    }
    struct reader r = {.at = text.data,
                       .end = text.data + text.size,
                       .name = name,
                       .line = 1,
                       .arena = arena,
                       .err = err};
    const struct ifd_text_field *first = NULL;
    bool has_braces = accept(&r, '{');
    enum ifd_code code = parse_fields(&r, has_braces ? '}' : '\0', &first);
    if (!code && (peek(&r) != '\0' || r.at < r.end)) {
        code = fail(&r, "the end");
    }
    if (!code) {
        *ret_first = first;
    }
    return code;
}
