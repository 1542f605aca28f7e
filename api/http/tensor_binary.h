/** The binary tensor extension: row-major little-endian elements behind the JSON; a BYTES element
 *  is a 32-bit length and its bytes. Thread: any. */
#ifndef INFERD_API_HTTP_TENSOR_BINARY_H
#define INFERD_API_HTTP_TENSOR_BINARY_H

#include "engine/base/arena.h"
#include "inferd/status.h"

/** Makes a tensor of count elements of dtype from raw: in place if raw is aligned to the element,
 *  else a copy in the arena. tail_bytes are readable behind raw. BYTES become views of raw. Errors:
 *  INVALID (size, a BOOL that is neither 0 nor 1, lengths of strings), NOMEM. name and model: for
 *  messages. */
IFD_NODISCARD enum ifd_code ifd_tensor_binary_read(struct ifd_bytes raw, size_t tail_bytes,
                                                   const char *name, const char *model,
                                                   size_t count, struct ifd_arena *arena,
                                                   struct ifd_tensor *tensor, struct ifd_err *err);

/** Joins BYTES elements in wire form. */
IFD_NODISCARD enum ifd_code ifd_tensor_binary_join(const struct ifd_str *text, size_t count,
                                                   struct ifd_arena *arena, struct ifd_bytes *ret,
                                                   struct ifd_err *err);

#endif
