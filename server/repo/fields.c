/* Reads the fields of a config. */
#include "server/repo/fields.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"

/* ---- plain values ---- */

enum ifd_code ifd_field_fail(struct ifd_fields *c, const struct ifd_text_field *f,
                             const char *wanted)
{
    return ifd_fail(c->err, IFD_INVALID, "%s:%u: %s: \"%s\" is not %s", c->file, f->line, f->name,
                    f->kind == IFD_TEXT_MESSAGE ? "{…}" : f->text, wanted);
}

enum ifd_code ifd_field_text(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    if (f->kind == IFD_TEXT_MESSAGE) {
        return ifd_field_fail(c, f, "a string");
    }
    *(const char **)at = f->text;
    return IFD_OK;
}

enum ifd_code ifd_field_bool(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    /* as text protobuf spells them */
    static const char *const words[] = {"false", "False", "f", "0", "true", "True", "t", "1"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(f->text, words[i]) == 0) {
            *(bool *)at = i >= 4;
            return IFD_OK;
        }
    }
    return ifd_field_fail(c, f, "true or false");
}

/* Text protobuf would read it as octal, JSON not at all. */
static bool has_leading_zero(const char *text)
{
    text += text[0] == '-';
    return text[0] == '0' && text[1] != '\0';
}

enum ifd_code ifd_field_s64(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    if (has_leading_zero(f->text) || !ifd_str_s64(ifd_str(f->text), at)) {
        return ifd_field_fail(c, f, "a whole number");
    }
    return IFD_OK;
}

enum ifd_code ifd_field_u64(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    if (has_leading_zero(f->text) || !ifd_str_u64(ifd_str(f->text), at)) {
        return ifd_field_fail(c, f, "a whole number of at least 0");
    }
    return IFD_OK;
}

enum ifd_code ifd_field_u32(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    uint64_t value = 0;
    if (has_leading_zero(f->text) || !ifd_str_u64(ifd_str(f->text), &value) || value > INT32_MAX) {
        return ifd_field_fail(c, f, "a whole number between 0 and 2147483647");
    }
    *(uint32_t *)at = (uint32_t)value;
    return IFD_OK;
}

enum ifd_code ifd_field_s32(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    uint32_t value = 0;
    enum ifd_code code = ifd_field_u32(c, f, &value);
    if (!code) {
        *(int32_t *)at = (int32_t)value;
    }
    return code;
}

enum ifd_code ifd_field_refuse(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    (void)at;
    return ifd_fail(c->err, IFD_UNSUPPORTED, "%s:%u: %s is not supported", c->file, f->line,
                    f->name);
}

enum ifd_code ifd_field_refuse_true(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    bool is_so = false;
    const enum ifd_code code = ifd_field_bool(c, f, &is_so);
    return !code && is_so ? ifd_field_refuse(c, f, at) : code;
}

/* ---- messages, arrays, maps ---- */

void ifd_field_warn(struct ifd_fields *c, const struct ifd_text_field *f, const char *what)
{
    char text[IFD_ERR_TEXT_BYTES];
    (void)snprintf(text, sizeof(text), "%s:%u: field \"%.100s\" %s", c->file, f->line, f->name,
                   what);
    if (c->warnings) {
        c->warnings->warn(c->warnings->context, text);
    }
}

static bool is_null(const struct ifd_text_field *f)
{
    return f->kind == IFD_TEXT_WORD && strcmp(f->text, "null") == 0;
}

/* A value that equals an absent field: GET …/config prints these, and a load may send them back. */
static bool is_default(const struct ifd_text_field *f)
{
    static const char *const words[] = {"", "false", "0", "PRIORITY_DEFAULT"};
    if (f->kind == IFD_TEXT_MESSAGE) {
        const struct ifd_text_field *k = f->child;
        while (k && is_default(k)) { /* the parser bounds the depth */
            k = k->next;
        }
        return !k;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(f->text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* max_batch_size or maxBatchSize: protocol buffers write the latter in JSON by default, and read
 * both. */
static bool is_name(const char *text, const char *name)
{
    for (; *name != '\0'; text++, name++) {
        if (*name == '_' && *text != '_') {
            name++;
            if (*text != *name - 'a' + 'A') {
                return false;
            }
        } else if (*text != *name) {
            return false;
        }
    }
    return *text == '\0';
}

enum ifd_code ifd_field_rows(struct ifd_fields *c, const struct ifd_text_field *f,
                             const struct ifd_field_row *row, size_t rows, void *base)
{
    uint64_t seen = 0;
    enum ifd_code code = IFD_OK;
    assert(rows <= 64);
    for (; f && !code; f = f->next) {
        size_t i = 0;
        while (i < rows && !is_name(f->name, row[i].name)) {
            i++;
        }
        if (is_null(f)) {
            continue;
        }
        if (i == rows) {
            ifd_field_warn(c, f, "is unknown");
        } else if (!row[i].read) {
            if (!is_default(f)) {
                ifd_field_warn(c, f, "has no effect here");
            }
        } else if (row[i].offset != IFD_FIELD_EACH && (seen >> i & 1)) {
            code =
                ifd_fail(c->err, IFD_INVALID, "%s:%u: %s comes twice", c->file, f->line, f->name);
        } else {
            seen |= (uint64_t)1 << i;
            size_t offset = row[i].offset == IFD_FIELD_EACH ? 0 : row[i].offset;
            code = row[i].read(c, f, (char *)base + offset);
        }
    }
    return code;
}

enum ifd_code ifd_field_message(struct ifd_fields *c, const struct ifd_text_field *f,
                                const struct ifd_field_row *row, size_t rows, void *base)
{
    return f->kind == IFD_TEXT_MESSAGE ? ifd_field_rows(c, f->child, row, rows, base)
                                       : ifd_field_fail(c, f, "a message");
}

/* Makes room for one more element; count grows by one. The array doubles at powers of two. */
void *ifd_field_append(struct ifd_fields *c, const void *array, uint32_t *count, size_t size)
{
    if ((*count & (*count - 1)) == 0) {
        void *grown = ifd_arena_take_array(c->arena, *count > 0 ? (size_t)*count * 2 : 1, size);
        if (!grown) {
            return NULL;
        }
        if (*count > 0) {
            memcpy(grown, array, *count * size);
        }
        array = grown;
    }
    (*count)++;
    return (void *)(uintptr_t)array; /* in the arena, only the reader has it */
}

/* A map: entries { key: "k" value: … } of protocol buffers, or JSON's { "k": … }. */
enum ifd_code ifd_field_entries(struct ifd_fields *c, const struct ifd_text_field *f, void *at,
                                enum ifd_code (*add)(struct ifd_fields *c, void *at,
                                                     const char *key,
                                                     const struct ifd_text_field *value))
{
    const struct ifd_text_field *key = NULL, *value = NULL;
    if (f->kind != IFD_TEXT_MESSAGE) {
        return ifd_field_fail(c, f, "a message");
    }
    for (const struct ifd_text_field *k = f->child; k; k = k->next) {
        key = strcmp(k->name, "key") == 0 && k->kind != IFD_TEXT_MESSAGE ? k : key;
        value = strcmp(k->name, "value") == 0 ? k : value;
    }
    if (key && value) {
        return add(c, at, key->text, value);
    }
    enum ifd_code code = IFD_OK;
    for (const struct ifd_text_field *k = f->child; k && !code; k = k->next) {
        code = add(c, at, k->name, k);
    }
    return code;
}
