/** Text views and numbers without locale. Thread: any. */
#ifndef INFERD_ENGINE_BASE_STR_H
#define INFERD_ENGINE_BASE_STR_H

#include "inferd/types.h"

/** View of a text that ends with NUL; NULL gives an empty view. */
struct ifd_str ifd_str(const char *text);

bool ifd_str_equal(struct ifd_str a, const char *b);
/** ASCII letters compare without case (HTTP header names and codings). */
bool ifd_str_equal_nocase(struct ifd_str a, const char *b);
bool ifd_str_starts(struct ifd_str text, const char *prefix);
/** Without blanks and tabs at both ends. */
struct ifd_str ifd_str_trim(struct ifd_str text);
/** Cuts the part before the first separator off rest and returns it; rest->data becomes NULL after the last part. */
struct ifd_str ifd_str_part(struct ifd_str *rest, char separator);

/** Whole text as a decimal number, digits only (a sign for the second); false if empty, anything else, or too large. */
bool ifd_str_u64(struct ifd_str text, uint64_t *ret) IFD_NODISCARD;
bool ifd_str_s64(struct ifd_str text, int64_t *ret) IFD_NODISCARD;
/** Whole text as a JSON number, or NaN, Infinity, -Infinity; independent of the locale; nearest double. */
bool ifd_str_f64(struct ifd_str text, double *ret) IFD_NODISCARD;

/** snprintf that reports whether all of it fitted. */
bool ifd_str_format(char *text, size_t size, const char *format, ...) IFD_PRINTF(3, 4);

/** Well-formed UTF-8 (no surrogates, no overlong forms)? */
bool ifd_str_is_utf8(struct ifd_str text);

#endif
