/** Text views and numbers without locale. Thread: any. */
#ifndef INFERD_ENGINE_BASE_STR_H
#define INFERD_ENGINE_BASE_STR_H

#include <string.h>

#include "inferd/types.h"

/** View of a text that ends with NUL; NULL gives an empty view. */
static inline struct ifd_str ifd_str(const char *text)
{
    return (struct ifd_str){.data = text, .size = text ? strlen(text) : 0};
}

/* Inline because b is mostly a literal: the compiler then knows its length. */

static inline bool ifd_str_equal(struct ifd_str a, const char *b)
{
    size_t size = strlen(b);
    return a.size == size && (size == 0 || memcmp(a.data, b, size) == 0);
}

/** Compares size bytes of a and b; ASCII letters without case. */
bool ifd_str_same_nocase(const char *a, const char *b, size_t size);

/** ASCII letters compare without case (HTTP header names and codings). */
static inline bool ifd_str_equal_nocase(struct ifd_str a, const char *b)
{
    size_t size = strlen(b);
    return a.size == size && ifd_str_same_nocase(a.data, b, size);
}

bool ifd_str_starts(struct ifd_str text, const char *prefix);
/** Without blanks and tabs at both ends. */
struct ifd_str ifd_str_trim(struct ifd_str text);
/** Cuts the text before the first separator off rest and returns it; rest->data becomes NULL
 *  after the last one. */
struct ifd_str ifd_str_part(struct ifd_str *rest, char separator);

/** The whole text as a decimal number: digits only, in s64 with an optional sign. False if it is
 *  anything else or too large. */
bool ifd_str_u64(struct ifd_str text, uint64_t *ret) IFD_NODISCARD;
bool ifd_str_s64(struct ifd_str text, int64_t *ret) IFD_NODISCARD;
/** Whole text as a JSON number, or NaN, Infinity, -Infinity; independent of the locale; nearest
 *  double. */
bool ifd_str_f64(struct ifd_str text, double *ret) IFD_NODISCARD;

/** snprintf; false if the text was cut. */
bool ifd_str_format(char *text, size_t size, const char *format, ...) IFD_PRINTF(3, 4);

/** How much a name differs from a known one: 0 if it is a part of it ("port"), else one more than
 *  the characters to insert, delete or replace. Compares the first 47. */
unsigned ifd_str_distance(struct ifd_str name, const char *known);

/** Well-formed UTF-8 (no surrogates, no overlong forms)? */
bool ifd_str_is_utf8(struct ifd_str text);

#endif
