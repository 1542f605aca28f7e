/* Base64 of JSON strings. */
#include "api/json/base64.h"

static int base64_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool ifd_base64_decode(struct ifd_str text, uint8_t *to, size_t *ret_size)
{
    size_t size = 0, padding = 0;
    if (text.size % 4 != 0) {
        return false;
    }
    while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=') {
        padding++;
    }
    for (size_t i = 0; i < text.size; i += 4) {
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = i + k >= text.size - padding ? 0 : base64_value(text.data[i + k]);
            if (value < 0) {
                return false;
            }
            group = group << 6 | (uint32_t)value;
        }
        to[size++] = (uint8_t)(group >> 16);
        to[size++] = (uint8_t)(group >> 8);
        to[size++] = (uint8_t)group;
    }
    *ret_size = size - padding;
    return true;
}

void ifd_base64_encode(struct ifd_bytes bytes, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.size; i += 3) {
        const size_t left = bytes.size - i;
        const uint32_t group = (uint32_t)bytes.data[i] << 16 |
                               (left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0) |
                               (left > 2 ? bytes.data[i + 2] : 0);
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[group & 63] : '=';
    }
}
