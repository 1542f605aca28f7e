/** Content codings: gzip and deflate, both ways, through zlib. Thread: any. */
#ifndef INFERD_API_HTTP_ENCODING_H
#define INFERD_API_HTTP_ENCODING_H

#include "api/http/http.h"
#include "inferd/status.h"

/** Of a Content-Encoding header, which may be absent. */
bool ifd_coding_is_known(struct ifd_str coding);
bool ifd_coding_is_compressed(struct ifd_str coding);

/** Decompresses the body; returns the body itself if it is not compressed. A gzip body may have
 *  several members. The result is padded, and its byte at json_length (a header's value, may be
 *  absent) is aligned to IFD_TENSOR_ALIGN. Errors: INVALID (damaged, cut, trailing bytes);
 *  TOO_LARGE (more than cap_bytes, which are never allocated); NOMEM. */
IFD_NODISCARD enum ifd_code ifd_decompress(struct ifd_str coding, struct ifd_bytes body,
                                           size_t cap_bytes, struct ifd_str json_length,
                                           struct ifd_arena *arena, struct ifd_bytes *ret,
                                           struct ifd_err *err);

/** Compresses the answer's body as Accept-Encoding prefers (with weights) and sets
 *  Content-Encoding. Leaves the answer unchanged if identity is preferred or memory is short. */
void ifd_compress(struct ifd_str accept, struct ifd_arena *arena,
                  struct ifd_http_response *response);

#endif
