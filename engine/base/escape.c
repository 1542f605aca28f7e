/* Escapes of text between double quotes. */
#include "engine/base/escape.h"

#include "engine/base/str.h"

/* Bytes of the character that text begins with; 0: it is not UTF-8. */
static size_t character_bytes(struct ifd_str text)
{
    const unsigned char c = (unsigned char)text.data[0];
    const size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    const bool is_whole = size <= text.size;
    return is_whole && ifd_str_is_utf8((struct ifd_str){.data = text.data, .size = size}) ? size
                                                                                          : 0;
}

static size_t put_code(unsigned code, char ret[IFD_ESCAPE_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(ret, "\\u00", 4);
    ret[4] = digits[code >> 4];
    ret[5] = digits[code & 15];
    return 6;
}

size_t ifd_escape_next(struct ifd_str *text, char ret[IFD_ESCAPE_BYTES])
{
    const size_t size = character_bytes(*text);
    const char *at = text->data;
    const unsigned char first = (unsigned char)at[0], second = size > 1 ? (unsigned char)at[1] : 0;
    text->data += size > 0 ? size : 1;
    text->size -= size > 0 ? size : 1;
    if (first == '"' || first == '\\') {
        ret[0] = '\\';
        ret[1] = (char)first;
        return 2;
    }
    if (size == 0 || first < 0x20 || first == 0x7f) {
        return put_code(first, ret);
    }
    if (first == 0xc2 && second < 0xa0) {
        return put_code(second, ret);
    }
    memcpy(ret, at, size);
    return size;
}

const char *ifd_escape_line(const char *text, char *ret, size_t size)
{
    size_t used = 0;
    char escaped[IFD_ESCAPE_BYTES];
    for (struct ifd_str rest = ifd_str(text); rest.size > 0;) {
        const bool is_kept = rest.data[0] == '"' || rest.data[0] == '\\';
        const size_t count = ifd_escape_next(&rest, escaped);
        if (used + count >= size) {
            break;
        }
        memcpy(ret + used, is_kept ? escaped + 1 : escaped, count - is_kept);
        used += count - is_kept;
    }
    ret[used] = '\0';
    return ret;
}
