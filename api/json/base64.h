/** Base64, the standard alphabet with padding (RFC 4648, section 4). Thread: any. */
#ifndef INFERD_API_JSON_BASE64_H
#define INFERD_API_JSON_BASE64_H

#include "inferd/types.h"

/** Maximum bytes that text of this size decodes to. */
#define IFD_BASE64_BYTES(text_size) ((text_size) / 4 * 3)

/** Decodes the whole text into to, which has room for IFD_BASE64_BYTES. False if it is not
 *  base64. */
bool ifd_base64_decode(struct ifd_str text, uint8_t *to, size_t *ret_size) IFD_NODISCARD;

/** Bytes of the text of size bytes; it has no NUL. */
#define IFD_BASE64_TEXT_BYTES(size) (((size) + 2) / 3 * 4)

/** Writes IFD_BASE64_TEXT_BYTES. */
void ifd_base64_encode(struct ifd_bytes bytes, char *to);

#endif
