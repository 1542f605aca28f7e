/* Growing byte buffer. */
#include "engine/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ifd_buf_init(struct ifd_buf *buf, const struct ifd_alloc *alloc, size_t cap_bytes)
{
    *buf = (struct ifd_buf){.alloc = alloc, .cap_bytes = cap_bytes};
}

void ifd_buf_finish(struct ifd_buf *buf)
{
    ifd_release(buf->alloc, buf->data, buf->capacity);
    buf->data = NULL;
    buf->size = buf->capacity = 0;
}

static bool reserve(struct ifd_buf *buf, size_t size)
{
    if (buf->failed != IFD_OK) {
        return false;
    }
    if (size > buf->cap_bytes - buf->size) {
        buf->failed = IFD_TOO_LARGE;
        return false;
    }
    size_t need = buf->size + size;
    if (need <= buf->capacity) {
        return true;
    }
    size_t capacity = buf->capacity < 256 ? 256 : buf->capacity;
    while (capacity < need) {
        capacity = capacity > buf->cap_bytes / 2 ? buf->cap_bytes : 2 * capacity;
    }
    uint8_t *data = ifd_acquire(buf->alloc, capacity);
    if (!data) {
        buf->failed = IFD_NOMEM;
        return false;
    }
    if (buf->size) {
        memcpy(data, buf->data, buf->size);
    }
    ifd_release(buf->alloc, buf->data, buf->capacity);
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

uint8_t *ifd_buf_grow(struct ifd_buf *buf, size_t size)
{
    if (!reserve(buf, size)) {
        return NULL;
    }
    uint8_t *place = buf->data + buf->size;
    buf->size += size;
    return place;
}

void ifd_buf_add(struct ifd_buf *buf, const void *data, size_t size)
{
    uint8_t *place = size ? ifd_buf_grow(buf, size) : NULL;
    if (place) {
        memcpy(place, data, size);
    }
}

void ifd_buf_add_text(struct ifd_buf *buf, const char *text)
{
    ifd_buf_add(buf, text, strlen(text));
}

void ifd_buf_addf(struct ifd_buf *buf, const char *format, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof(small)) {
        ifd_buf_add(buf, small, (size_t)length);
    } else if (length >= 0 && reserve(buf, (size_t)length + 1)) {
        (void)vsnprintf((char *)buf->data + buf->size, (size_t)length + 1, format, again);
        buf->size += (size_t)length;
    }
    va_end(again);
}

enum ifd_code ifd_buf_check(const struct ifd_buf *buf, struct ifd_err *err)
{
    if (buf->failed == IFD_TOO_LARGE) {
        return ifd_fail(err, IFD_TOO_LARGE, "text exceeds the limit of %zu bytes", buf->cap_bytes);
    }
    if (buf->failed == IFD_NOMEM) {
        return ifd_fail(err, IFD_NOMEM, "no memory for more than %zu bytes of text", buf->size);
    }
    return IFD_OK;
}
