/* The receiving buffer, with one aligned offset. */
#include "server/net/body.h"

#include <string.h>

void ifd_body_init(struct ifd_body *body, const struct ifd_alloc *alloc)
{
    *body = (struct ifd_body){.alloc = alloc};
}

void ifd_body_finish(struct ifd_body *body)
{
    ifd_release_tensor(body->alloc, body->memory, body->memory_bytes);
    *body = (struct ifd_body){.alloc = body->alloc};
}

void ifd_body_release(struct ifd_body *body, size_t keep_bytes)
{
    if (body->memory_bytes > keep_bytes) {
        ifd_body_finish(body);
    }
    body->size = 0;
}

/* Reserves memory for at least size bytes of body and keeps the content. */
static enum ifd_code reserve(struct ifd_body *body, size_t size, struct ifd_err *err)
{
    size_t want = 0;
    if (!ifd_size_add(size, body->lead, &want)) {
        return ifd_fail(err, IFD_TOO_LARGE, "body of %zu bytes is too large", size);
    }
    if (want <= body->memory_bytes) {
        return IFD_OK;
    }
    uint8_t *memory = ifd_acquire_tensor(body->alloc, want);
    if (!memory) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a body of %zu bytes", size);
    }
    if (body->size > 0) {
        memcpy(memory, body->memory, body->lead + body->size);
    }
    ifd_release_tensor(body->alloc, body->memory, body->memory_bytes);
    body->memory = memory;
    body->memory_bytes = want;
    return IFD_OK;
}

static enum ifd_code fail_cap(size_t cap_bytes, struct ifd_err *err)
{
    return ifd_fail(err, IFD_TOO_LARGE, "request body exceeds the maximum of %zu bytes", cap_bytes);
}

enum ifd_code ifd_body_start(struct ifd_body *body, size_t expected, size_t cap_bytes,
                             size_t align_at, struct ifd_err *err)
{
    body->size = 0;
    body->cap_bytes = cap_bytes;
    body->lead = (IFD_TENSOR_ALIGN - align_at % IFD_TENSOR_ALIGN) % IFD_TENSOR_ALIGN;
    if (expected > cap_bytes) {
        return fail_cap(cap_bytes, err);
    }
    return reserve(body, expected, err);
}

enum ifd_code ifd_body_add(struct ifd_body *body, const void *data, size_t size,
                           struct ifd_err *err)
{
    if (size > body->cap_bytes - body->size) {
        return fail_cap(body->cap_bytes, err);
    }
    size_t need = body->size + size;
    if (body->lead + need > body->memory_bytes) {
        size_t twice = body->size < body->cap_bytes / 2 ? body->size * 2 : body->cap_bytes;
        enum ifd_code code = reserve(body, twice > need ? twice : need, err);
        if (code) {
            return code;
        }
    }
    memcpy(body->memory + body->lead + body->size, data, size);
    body->size = need;
    return IFD_OK;
}

const uint8_t *ifd_body_data(const struct ifd_body *body)
{
    return body->memory ? body->memory + body->lead : NULL;
}
