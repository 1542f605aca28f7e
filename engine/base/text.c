/* Text through a sink. */
#include "engine/base/text.h"

#include <stdarg.h>
#include <stdio.h>

void ifd_write(const struct ifd_writer *writer, const char *format, ...)
{
    char piece[IFD_WRITE_BYTES];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    if (length > 0) {
        const size_t size = (size_t)length < sizeof(piece) ? (size_t)length : sizeof(piece) - 1;
        writer->sink(writer->context, piece, size);
    }
}

void ifd_write_quoted(const struct ifd_writer *writer, const char *text)
{
    ifd_write(writer, "\"");
    const char *plain = text;
    const char *p = text;
    for (; *p != '\0'; p++) {
        if ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7f) {
            continue;
        }
        if (p > plain) {
            writer->sink(writer->context, plain, (size_t)(p - plain));
        }
        ifd_write(writer, "\\u%04x", (unsigned)(unsigned char)*p);
        plain = p + 1;
    }
    if (p > plain) {
        writer->sink(writer->context, plain, (size_t)(p - plain));
    }
    ifd_write(writer, "\"");
}
