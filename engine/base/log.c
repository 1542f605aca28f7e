/* Formatting of log lines; where they go is the sink's business. */
#include "engine/base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/base/escape.h"
#include "engine/base/str.h"

/* "key=value key=value". */
struct fields {
    char text[IFD_LOG_FIELDS_BYTES];
    size_t used;
    bool is_full; /* something did not fit; nothing follows */
};

/* The last two bytes are for the quote that ends a value and for the NUL. */
static bool fits(const struct fields *fields, size_t size)
{
    return !fields->is_full && fields->used + size <= sizeof(fields->text) - 2;
}

static bool put(struct fields *fields, const char *text, size_t size)
{
    fields->is_full = !fits(fields, size);
    if (!fields->is_full) {
        memcpy(fields->text + fields->used, text, size);
        fields->used += size;
    }
    return !fields->is_full;
}

/* Can be told from what surrounds it without quotes. */
static bool is_plain(struct ifd_str value)
{
    for (size_t i = 0; i < value.size; i++) {
        const unsigned char c = (unsigned char)value.data[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=') {
            return false;
        }
    }
    return value.size > 0;
}

/* What does not fit is cut, in quotes. */
static void put_value(struct fields *fields, struct ifd_str value)
{
    char escaped[IFD_ESCAPE_BYTES];
    if (is_plain(value) && fits(fields, value.size)) {
        (void)put(fields, value.data, value.size);
        return;
    }
    if (put(fields, "\"", 1)) {
        while (value.size > 0 && put(fields, escaped, ifd_escape_next(&value, escaped))) {
        }
        fields->text[fields->used++] = '"';
    }
}

static void put_s64(struct fields *fields, long long value)
{
    char text[24];
    const int size = snprintf(text, sizeof(text), "%lld", value);
    (void)put(fields, text, (size_t)size);
}

static void put_u64(struct fields *fields, unsigned long long value)
{
    char text[24];
    const int size = snprintf(text, sizeof(text), "%llu", value);
    (void)put(fields, text, (size_t)size);
}

/* printf's would write what a value holds as it is, so that a value could forge fields and
 * lines. */
static void IFD_PRINTF(4, 0) emit(const struct ifd_log *log, enum ifd_log_level level,
                                  const char *sentence, const char *format, va_list args)
{
    if (!ifd_log_takes(log, level)) {
        return;
    }
    struct fields fields = {.used = 0};
    for (const char *at = format ? format : ""; *at != '\0'; at++) {
        if (*at != '%') {
            (void)put(&fields, at, 1);
        } else if (at[1] == 's') {
            put_value(&fields, ifd_str(va_arg(args, const char *)));
            at += 1;
        } else if (at[1] == 'd') {
            put_s64(&fields, va_arg(args, int));
            at += 1;
        } else if (at[1] == 'u') {
            put_u64(&fields, va_arg(args, unsigned));
            at += 1;
        } else if (strncmp(at, "%zu", 3) == 0) {
            put_u64(&fields, va_arg(args, size_t));
            at += 2;
        } else if (strncmp(at, "%lld", 4) == 0) {
            put_s64(&fields, va_arg(args, long long));
            at += 3;
        } else if (strncmp(at, "%llu", 4) == 0) {
            put_u64(&fields, va_arg(args, unsigned long long));
            at += 3;
        } else {
            assert(false && "a conversion that log.h does not list");
            break;
        }
    }
    fields.text[fields.used] = '\0';
    log->write(log->context, level, sentence, fields.text);
}

#define LEVEL_FUNCTION(name, level)                                                                \
    void name(const struct ifd_log *log, const char *sentence, const char *fields_format, ...)     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, fields_format);                                                             \
        emit(log, level, sentence, fields_format, args);                                           \
        va_end(args);                                                                              \
    }

LEVEL_FUNCTION(ifd_log_error, IFD_LOG_ERROR)
LEVEL_FUNCTION(ifd_log_warn, IFD_LOG_WARN)
LEVEL_FUNCTION(ifd_log_info, IFD_LOG_INFO)
LEVEL_FUNCTION(ifd_log_debug, IFD_LOG_DEBUG)
#undef LEVEL_FUNCTION

const char *ifd_log_level_name(enum ifd_log_level level)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    return (unsigned)level < 4 ? names[level] : "?";
}
