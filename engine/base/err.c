/* Filling struct ifd_err. Formatting only; no state. */
#include "inferd/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum ifd_code ifd_fail(struct ifd_err *err, enum ifd_code code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        (void)vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return code;
}

void ifd_err_prefix(struct ifd_err *err, const char *format, ...)
{
    if (!err) {
        return;
    }
    char where[IFD_ERR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(where, sizeof(where), format, args);
    va_end(args);

    /* A buffer that holds both texts whole; err->text is cut when it is copied back. */
    char whole[2 * IFD_ERR_TEXT_BYTES + 3];
    (void)snprintf(whole, sizeof(whole), "%s: %s", where, err->text);
    memcpy(err->text, whole, sizeof(err->text) - 1);
    err->text[sizeof(err->text) - 1] = '\0';
}

const char *ifd_code_name(enum ifd_code code)
{
    static const char *const names[] = {
#define IFD_X(id, name, meaning) [IFD_##id] = name,
        IFD_CODES(IFD_X)
#undef IFD_X
    };
    return (unsigned)code < IFD_CODE_COUNT ? names[code] : "?";
}
