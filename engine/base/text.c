/* Text through a sink. */
#include "engine/base/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/escape.h"
#include "engine/base/str.h"

void ifd_write(const struct ifd_writer *writer, const char *format, ...)
{
    char chunk[IFD_WRITE_BYTES];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(chunk, sizeof(chunk), format, args);
    va_end(args);
    if (length > 0) {
        const size_t size = (size_t)length < sizeof(chunk) ? (size_t)length : sizeof(chunk) - 1;
        writer->sink(writer->context, chunk, size);
    }
}

void ifd_write_quoted(const struct ifd_writer *writer, const char *text)
{
    char escaped[IFD_ESCAPE_BYTES];
    writer->sink(writer->context, "\"", 1);
    for (struct ifd_str rest = ifd_str(text); rest.size > 0;) {
        const size_t size = ifd_escape_next(&rest, escaped);
        writer->sink(writer->context, escaped, size);
    }
    writer->sink(writer->context, "\"", 1);
}
