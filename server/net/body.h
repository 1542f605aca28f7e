/** The body of one request while it arrives: contiguous, capped, and placed so that one chosen
 *  offset (where the first binary tensor begins) is aligned to IFD_TENSOR_ALIGN, with
 *  IFD_TENSOR_PAD readable bytes behind the end.
 *
 *  A body of known length gets its memory at once. Untouched memory costs nothing, so a client that
 *  announces much and sends little holds little. Thread: one at a time per object. */
#ifndef INFERD_SERVER_NET_BODY_H
#define INFERD_SERVER_NET_BODY_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_body {
    const struct ifd_alloc *alloc;
    uint8_t *memory; /* kept for the next request */
    size_t memory_bytes;
    size_t lead; /* data begins at memory + lead */
    size_t size, cap_bytes;
};

void ifd_body_init(struct ifd_body *body, const struct ifd_alloc *alloc);
void ifd_body_finish(struct ifd_body *body);

/** expected: Content-Length, or 0 if unknown. Errors: NOMEM; TOO_LARGE if expected exceeds the
 *  cap. */
IFD_NODISCARD enum ifd_code ifd_body_start(struct ifd_body *body, size_t expected, size_t cap_bytes,
                                           size_t align_at, struct ifd_err *err);
/** Errors: NOMEM, TOO_LARGE; the body is unusable then. */
IFD_NODISCARD enum ifd_code ifd_body_add(struct ifd_body *body, const void *data, size_t size,
                                         struct ifd_err *err);
/** First byte; valid until the next add, start or release. */
const uint8_t *ifd_body_data(const struct ifd_body *body);
/** Ends the request: keeps the memory if it is at most keep_bytes, else gives it back. */
void ifd_body_release(struct ifd_body *body, size_t keep_bytes);

#endif
