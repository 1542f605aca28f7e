/* JSON into chunks of an arena. */
#include "api/json/json_write.h"

#include "api/json/json_plain.h"
#include "api/json/number.h"
#include "engine/base/str.h"

#include <math.h>
#include <string.h>

#define FIRST_CHUNK_BYTES ((size_t)2048)

void ifd_json_out_init(struct ifd_json_out *out, struct ifd_arena *arena)
{
    out->arena = arena;
    out->chunk_count = 0; /* chunk[] is most of the struct: not cleared */
    out->first = out->at = out->end = NULL;
    out->before_bytes = out->expected_bytes = 0;
    out->depth = 0;
    out->has_item = 0;
    out->failed = false;
}

void ifd_json_out_expect(struct ifd_json_out *out, size_t bytes)
{
    out->expected_bytes = bytes;
}

static void close_chunk(struct ifd_json_out *out)
{
    if (out->chunk_count > 0) {
        size_t size = (size_t)(out->at - out->first);
        out->chunk[out->chunk_count - 1] =
            (struct ifd_bytes){.data = (const uint8_t *)out->first, .size = size};
        out->before_bytes += size;
        out->first = out->at; /* what follows in this chunk starts a new count */
    }
}

char *ifd_json_room(struct ifd_json_out *out, size_t size)
{
    if (out->failed) {
        return NULL;
    }
    if (out->chunk_count > 0 && (size_t)(out->end - out->at) >= size) {
        return out->at;
    }
    close_chunk(out);
    size_t want = FIRST_CHUNK_BYTES + out->before_bytes;
    if (out->chunk_count == 0 && want < out->expected_bytes) {
        want = out->expected_bytes;
    }
    want = want < size ? size : want;
    char *chunk =
        out->chunk_count < IFD_JSON_CHUNKS_MAX ? ifd_arena_take_room(out->arena, want) : NULL;
    if (!chunk) {
        out->failed = true;
        return NULL;
    }
    out->chunk_count++;
    out->first = out->at = chunk;
    out->end = chunk + want;
    return out->at;
}

void ifd_json_wrote(struct ifd_json_out *out, size_t size)
{
    out->at += size;
}

size_t ifd_json_out_size(const struct ifd_json_out *out)
{
    return out->before_bytes + (out->chunk_count > 0 ? (size_t)(out->at - out->first) : 0);
}

void ifd_json_raw(struct ifd_json_out *out, const char *text, size_t size)
{
    /* a long text is split: fill the rest of this chunk first */
    size_t left = out->chunk_count > 0 && !out->failed ? (size_t)(out->end - out->at) : 0;
    size_t head = size < left ? size : left;
    if (head > 0) {
        memcpy(out->at, text, head);
        out->at += head;
    }
    if (size > head) {
        char *at = ifd_json_room(out, size - head);
        if (at) {
            memcpy(at, text + head, size - head);
            out->at += size - head;
        }
    }
}

static void put_byte(struct ifd_json_out *out, char c)
{
    if (out->at < out->end) {
        *out->at++ = c;
    } else {
        ifd_json_raw(out, &c, 1);
    }
}

static void put_comma(struct ifd_json_out *out)
{
    const uint64_t bit = (uint64_t)1 << out->depth;
    if (out->has_item & bit) {
        put_byte(out, ',');
    }
    out->has_item |= bit;
}

void ifd_json_begin(struct ifd_json_out *out, char bracket)
{
    put_comma(out);
    put_byte(out, bracket);
    out->depth++;
    out->has_item &= ~((uint64_t)1 << out->depth);
}

void ifd_json_end(struct ifd_json_out *out, char bracket)
{
    out->depth--;
    put_byte(out, bracket);
}

static void put_value(struct ifd_json_out *out, const char *text, size_t size)
{
    put_comma(out);
    ifd_json_raw(out, text, size);
}

/* Bytes of text that need no escape: printable ASCII and well-formed UTF-8. */
static size_t plain_run(const char *text, size_t size)
{
    size_t at = ifd_json_plain(text, size);
    while (at < size && (unsigned char)text[at] >= 0x80) {
        unsigned char c = (unsigned char)text[at];
        size_t count = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        if (count > size - at ||
            !ifd_str_is_utf8((struct ifd_str){.data = text + at, .size = count})) {
            break;
        }
        at += count;
        at += ifd_json_plain(text + at, size - at);
    }
    return at;
}

static void put_escaped(struct ifd_json_out *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char names[] = "\"\\\b\f\n\r\t", values[] = "\"\\bfnrt";
    const char *name = c != '\0' && c < 0x80 ? strchr(names, c) : NULL;
    if (name) {
        char text[2] = {'\\', values[name - names]};
        ifd_json_raw(out, text, sizeof(text));
    } else if (c < 0x20) {
        char text[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
        ifd_json_raw(out, text, sizeof(text));
    } else {
        ifd_json_raw(out, "\xef\xbf\xbd", 3); /* U+FFFD */
    }
}

static void put_quoted(struct ifd_json_out *out, struct ifd_str text)
{
    if (text.size + 2 <= (size_t)(out->end - out->at) && text.size > 0 &&
        ifd_json_plain(text.data, text.size) == text.size) { /* nearly always */
        char *at = out->at;
        at[0] = '"';
        memcpy(at + 1, text.data, text.size);
        at[text.size + 1] = '"';
        out->at += text.size + 2;
        return;
    }
    put_byte(out, '"');
    while (text.size > 0) {
        size_t run = plain_run(text.data, text.size);
        ifd_json_raw(out, text.data, run);
        text.data += run;
        text.size -= run;
        if (text.size > 0) {
            put_escaped(out, (unsigned char)*text.data);
            text.data++;
            text.size--;
        }
    }
    put_byte(out, '"');
}

void ifd_json_put_str(struct ifd_json_out *out, struct ifd_str text)
{
    put_comma(out);
    put_quoted(out, text);
}

void ifd_json_key(struct ifd_json_out *out, const char *key)
{
    ifd_json_put_str(out, ifd_str(key));
    put_byte(out, ':');
    out->has_item &= ~((uint64_t)1 << out->depth); /* no comma before the value */
}

void ifd_json_put_text(struct ifd_json_out *out, const char *text)
{
    ifd_json_put_str(out, ifd_str(text));
}

void ifd_json_put_s64(struct ifd_json_out *out, int64_t value)
{
    char text[IFD_NUMBER_TEXT_BYTES];
    put_value(out, text, ifd_print_s64(text, value));
}

void ifd_json_put_u64(struct ifd_json_out *out, uint64_t value)
{
    char text[IFD_NUMBER_TEXT_BYTES];
    put_value(out, text, ifd_print_u64(text, value));
}

void ifd_json_put_rounded(struct ifd_json_out *out, double value, int digits)
{
    char text[IFD_NUMBER_TEXT_BYTES];
    double unit = 1;
    for (int i = 0; i < digits; i++) {
        unit *= 10;
    }
    const double rounded = round(value * unit) / unit;
    put_value(out, text, ifd_print_f64(text, rounded == 0 ? 0 : rounded)); /* never -0.0 */
}

void ifd_json_put_bool(struct ifd_json_out *out, bool value)
{
    put_value(out, value ? "true" : "false", value ? 4 : 5);
}

void ifd_json_member_text(struct ifd_json_out *out, const char *key, const char *text)
{
    ifd_json_key(out, key);
    ifd_json_put_text(out, text);
}

void ifd_json_member_s64(struct ifd_json_out *out, const char *key, int64_t value)
{
    ifd_json_key(out, key);
    ifd_json_put_s64(out, value);
}

void ifd_json_member_u64(struct ifd_json_out *out, const char *key, uint64_t value)
{
    ifd_json_key(out, key);
    ifd_json_put_u64(out, value);
}

void ifd_json_member_bool(struct ifd_json_out *out, const char *key, bool value)
{
    ifd_json_key(out, key);
    ifd_json_put_bool(out, value);
}

bool ifd_json_out_finish(struct ifd_json_out *out)
{
    close_chunk(out);
    return !out->failed;
}
