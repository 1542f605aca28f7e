/** Characters of UTF-8 and their cases. Thread: any. */
#ifndef INFERD_ENGINE_BASE_LETTERS_H
#define INFERD_ENGINE_BASE_LETTERS_H

#include "inferd/types.h"

#define IFD_UTF8_MAX 4

/** The character at the front of a text that is not empty, and its bytes. A byte that begins no
 *  character is one of its own, U+DC00 + byte: no text has that. */
uint32_t ifd_utf8_next(struct ifd_str text, size_t *ret_bytes);
/** Writes a character; returns its bytes. */
size_t ifd_utf8_write(uint32_t character, char to[IFD_UTF8_MAX]);
size_t ifd_utf8_count(struct ifd_str text);

/** The letter in its other case, of the Latin, Greek, Cyrillic and Armenian alphabets and those of
 *  full width; any other character is itself. */
uint32_t ifd_letter_lower(uint32_t character);
uint32_t ifd_letter_upper(uint32_t character);

#endif
