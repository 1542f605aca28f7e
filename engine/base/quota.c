/* A bounded allocator. */
#include "engine/base/quota.h"

static void *acquire(void *context, size_t size, size_t align)
{
    struct ifd_quota *quota = context;
    size_t limit = quota->limit_bytes;
    if (size > quota->small_bytes) {
        limit -= limit / 8;
    }
    size_t used = atomic_fetch_add_explicit(&quota->used_bytes, size, memory_order_relaxed);
    /* Two that add at the same time may both be refused where one would have fitted; never both served. */
    void *ptr = NULL;
    if (size <= limit && used <= limit - size) {
        ptr = quota->from->acquire(quota->from->context, size, align);
    } else {
        atomic_fetch_add_explicit(&quota->refusals, 1, memory_order_relaxed);
    }
    if (!ptr) {
        atomic_fetch_sub_explicit(&quota->used_bytes, size, memory_order_relaxed);
    }
    return ptr;
}

static void release(void *context, void *ptr, size_t size)
{
    struct ifd_quota *quota = context;
    quota->from->release(quota->from->context, ptr, size);
    atomic_fetch_sub_explicit(&quota->used_bytes, size, memory_order_relaxed);
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
