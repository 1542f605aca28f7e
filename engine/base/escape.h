/** The one way in which text that may be hostile gets into lines of logs, dumps and JSON:
 *  between double quotes, with escapes that JSON knows. Thread: any. */
#ifndef INFERD_ENGINE_BASE_ESCAPE_H
#define INFERD_ENGINE_BASE_ESCAPE_H

#include "inferd/types.h"

/** Bytes that one character takes at most. */
#define IFD_ESCAPE_BYTES 6

/** Cuts the first character off text, which is not empty, and writes it: as it is, or escaped if
 *  it is a quote, a backslash, a control character (also U+0080 … U+009F, which terminals obey)
 *  or a byte that is not UTF-8, which counts as Latin-1. Returns the bytes written. */
size_t ifd_escape_next(struct ifd_str *text, char ret[IFD_ESCAPE_BYTES]);

/** Copies text for one line on a terminal: the same, but quotes and backslashes stay. What does not
 *  fit into size bytes is cut. Returns ret. */
const char *ifd_escape_line(const char *text, char *ret, size_t size);

#endif
