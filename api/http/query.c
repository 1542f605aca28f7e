/* Splits queries, decodes percent-encoding. */
#include "api/http/query.h"

#include "engine/base/str.h"

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

enum ifd_code ifd_percent_decode(struct ifd_str *text, const char *where, struct ifd_arena *arena,
                                 struct ifd_err *err)
{
    if (text->size == 0 || !memchr(text->data, '%', text->size)) {
        return IFD_OK;
    }
    char *decoded = ifd_arena_take(arena, text->size);
    if (!decoded) {
        return ifd_arena_fail(arena, text->size, err);
    }
    size_t size = 0;
    for (size_t i = 0; i < text->size; i++) {
        char c = text->data[i];
        if (c == '%') {
            int high = i + 2 < text->size ? hex_value(text->data[i + 1]) : -1;
            int low = high >= 0 ? hex_value(text->data[i + 2]) : -1;
            if (low < 0) {
                return ifd_fail(err, IFD_INVALID, "%s: '%%' without two hexadecimal digits", where);
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        decoded[size++] = c;
    }
    *text = (struct ifd_str){.data = decoded, .size = size};
    return IFD_OK;
}

/* As forms send it: a plus is a blank. */
static enum ifd_code decode_part(struct ifd_str *part, struct ifd_arena *arena, struct ifd_err *err)
{
    if (part->size > 0 && memchr(part->data, '+', part->size)) {
        char *copy = ifd_arena_text(arena, part->data, part->size);
        if (!copy) {
            return ifd_arena_fail(arena, part->size, err);
        }
        for (size_t i = 0; i < part->size; i++) {
            copy[i] = copy[i] == '+' ? ' ' : copy[i];
        }
        part->data = copy;
    }
    return ifd_percent_decode(part, "query", arena, err);
}

enum ifd_code ifd_query_next(struct ifd_str *rest, struct ifd_arena *arena,
                             struct ifd_query_parameter *ret, bool *ret_is_there,
                             struct ifd_err *err)
{
    struct ifd_str pair = {0};
    *ret_is_there = false;
    while (rest->data && pair.size == 0) {
        pair = ifd_str_part(rest, '&');
    }
    if (pair.size == 0) {
        return IFD_OK;
    }
    ret->name = ifd_str_part(&pair, '=');
    ret->value = pair.data ? pair : ifd_str("");
    *ret_is_there = true;
    enum ifd_code code = decode_part(&ret->name, arena, err);
    return code ? code : decode_part(&ret->value, arena, err);
}
