/* A bounded allocator. */
#include "engine/base/quota.h"

/* Adds size to the bytes in use; false if they would exceed limit. */
static bool take(struct ifd_quota *quota, size_t size, size_t limit)
{
    size_t used = atomic_fetch_add_explicit(&quota->used_bytes, size, memory_order_relaxed);
    /* Two at the same time may both be refused although one would fit; both are never served. */
    if (size <= limit && used <= limit - size) {
        return true;
    }
    atomic_fetch_sub_explicit(&quota->used_bytes, size, memory_order_relaxed);
    atomic_fetch_add_explicit(&quota->refusals, 1, memory_order_relaxed);
    return false;
}

static size_t limit_of_large(const struct ifd_quota *quota)
{
    return quota->limit_bytes - quota->limit_bytes / 8;
}

static void *acquire(void *context, size_t size, size_t align)
{
    struct ifd_quota *quota = context;
    if (!take(quota, size,
              size > quota->small_bytes ? limit_of_large(quota) : quota->limit_bytes)) {
        return NULL;
    }
    void *ptr = quota->from->acquire(quota->from->context, size, align);
    if (!ptr) {
        ifd_quota_drop(quota, size);
    }
    return ptr;
}

static void release(void *context, void *ptr, size_t size)
{
    struct ifd_quota *quota = context;
    quota->from->release(quota->from->context, ptr, size);
    ifd_quota_drop(quota, size);
}

void ifd_quota_init(struct ifd_quota *quota, const struct ifd_alloc *from, size_t limit_bytes,
                    size_t small_bytes)
{
    quota->alloc = (struct ifd_alloc){.context = quota, .acquire = acquire, .release = release};
    quota->from = from;
    quota->limit_bytes = limit_bytes;
    quota->small_bytes = small_bytes;
    atomic_init(&quota->used_bytes, 0);
    atomic_init(&quota->refusals, 0);
}

bool ifd_quota_hold(struct ifd_quota *quota, size_t bytes)
{
    return take(quota, bytes, limit_of_large(quota));
}

void ifd_quota_drop(struct ifd_quota *quota, size_t bytes)
{
    atomic_fetch_sub_explicit(&quota->used_bytes, bytes, memory_order_relaxed);
}
