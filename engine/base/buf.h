/** A byte buffer that grows up to a mandatory cap. For text and messages, not for bulk data.
 *
 *  An append past the cap or without memory marks the buffer as failed, and later appends do
 *  nothing: a writer checks once, at the end. Thread: one at a time per object. */
#ifndef INFERD_ENGINE_BASE_BUF_H
#define INFERD_ENGINE_BASE_BUF_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_buf {
    const struct ifd_alloc *alloc;
    uint8_t *data;
    size_t size, capacity, cap_bytes;
    enum ifd_code failed; /* IFD_OK, IFD_NOMEM or IFD_TOO_LARGE */
};

void ifd_buf_init(struct ifd_buf *buf, const struct ifd_alloc *alloc, size_t cap_bytes);
void ifd_buf_finish(struct ifd_buf *buf);

void ifd_buf_add(struct ifd_buf *buf, const void *data, size_t size);
void ifd_buf_add_text(struct ifd_buf *buf, const char *text);
void ifd_buf_addf(struct ifd_buf *buf, const char *format, ...) IFD_PRINTF(2, 3);

/** Room for size bytes, which the caller writes; NULL if failed. The pointer is valid until the
 *  next call. */
uint8_t *ifd_buf_grow(struct ifd_buf *buf, size_t size) IFD_NODISCARD;

/** OK, NOMEM or TOO_LARGE with the numbers. */
IFD_NODISCARD enum ifd_code ifd_buf_check(const struct ifd_buf *buf, struct ifd_err *err);

#endif
