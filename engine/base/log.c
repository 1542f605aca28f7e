/* Formatting of log lines; where they go is the sink's business. */
#include "engine/base/log.h"

#include <stdarg.h>
#include <stdio.h>

static void IFD_PRINTF(4, 0) emit(const struct ifd_log *log, enum ifd_log_level level,
                                  const char *sentence, const char *format, va_list args)
{
    if (!ifd_log_takes(log, level)) {
        return;
    }
    char fields[1024] = "";
    if (format) {
        (void)vsnprintf(fields, sizeof(fields), format, args);
    }
    log->write(log->context, level, sentence, fields);
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

const char *ifd_log_quote(const char *text, char *ret, size_t size)
{
    size_t used = 0;
    if (size < 8) {
        return "\"\"";
    }
    ret[used++] = '"';
    for (const char *at = text; *at != '\0' && used + 6 < size; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\') {
            ret[used++] = '\\';
            ret[used++] = (char)c;
        } else if (c < 0x20 || c == 0x7f) {
            used += (size_t)snprintf(ret + used, 5, "\\x%02x", c);
        } else {
            ret[used++] = (char)c;
        }
    }
    ret[used++] = '"';
    ret[used] = '\0';
    return ret;
}
