/** Errors: a code to act on, a sentence to read.
 *
 *  Every function that can fail returns enum ifd_code; its last parameter is a struct ifd_err in
 *  the caller's frame. The function that finds the error fills it with ifd_fail(); callers may
 *  prefix the place with ifd_err_prefix(), and never overwrite the text. No heap, no
 *  thread-local, nothing to free; err may be NULL.
 *
 *      if (got != want) {
 *          return ifd_fail(err, IFD_INVALID, "input \"%s\": %zu bytes, expected %zu", name, got,
 *                          want);
 *      }
 *
 *  Messages name the object, the value got and the value expected; lower case, no full stop.
 *  Thread: any. */
#ifndef INFERD_STATUS_H
#define INFERD_STATUS_H

#include "inferd/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** X(id, name, meaning). api/core/errors.c maps each to an HTTP status. Append only. */
#define IFD_CODES(X)                                                                               \
    X(OK, "ok", "success")                                                                         \
    X(INVALID, "invalid", "the caller's request or argument is wrong")                             \
    X(CORRUPT, "corrupt", "a file or message breaks its own format")                               \
    X(UNSUPPORTED, "unsupported", "well formed, but not something inferd can do")                  \
    X(NOT_FOUND, "not found", "no such model, version, tensor, file")                              \
    X(EXISTS, "exists", "the name is taken")                                                       \
    X(TOO_LARGE, "too large", "a stated limit is exceeded")                                        \
    X(BUSY, "busy", "a queue is full; try again later")                                            \
    X(UNAVAILABLE, "unavailable", "not ready, shutting down, device lost")                         \
    X(DEADLINE, "deadline", "the request's time ran out")                                          \
    X(CANCELLED, "cancelled", "the client went away or asked to stop")                             \
    X(NOMEM, "out of memory", "an allocation failed or a memory budget is spent")                  \
    X(IO, "i/o", "the operating system refused a file or socket operation")                        \
    X(INTERNAL, "internal", "a bug in inferd; please report it")

enum ifd_code {
#define IFD_X(id, name, meaning) IFD_##id,
    IFD_CODES(IFD_X)
#undef IFD_X
        IFD_CODE_COUNT
};

#define IFD_ERR_TEXT_BYTES 240

/** An error; zeroed: none. text always ends with NUL; a longer text is cut. */
struct ifd_err {
    enum ifd_code code;
    char text[IFD_ERR_TEXT_BYTES];
};

/** Fills err (if not NULL) and returns code. All errors are reported through it. */
enum ifd_code ifd_fail(struct ifd_err *err, enum ifd_code code, const char *format, ...)
    IFD_PRINTF(3, 4);

/** Puts "format: " in front of the text; cuts the end of the text if it no longer fits. */
void ifd_err_prefix(struct ifd_err *err, const char *format, ...) IFD_PRINTF(2, 3);

/** "invalid", "out of memory" …; "?" for a value outside the enum. Static. */
const char *ifd_code_name(enum ifd_code code);

#ifdef __cplusplus
}
#endif
#endif
