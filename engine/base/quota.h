/** An allocator that lends at most so many bytes of another, and counts how often it had to refuse.
 *
 *  Whoever takes memory from it needs to know nothing of the bound: there is no memory, as there might not be anyway.
 *  Thread: any, as of the allocator behind it. */
#ifndef INFERD_ENGINE_BASE_QUOTA_H
#define INFERD_ENGINE_BASE_QUOTA_H

#include <stdatomic.h>

#include "inferd/alloc.h"

struct ifd_quota {
    struct ifd_alloc
        alloc; /* what to pass on; its context is this object, which stays where it is */
    const struct ifd_alloc *from;
    size_t limit_bytes, small_bytes;
    atomic_size_t used_bytes;
    atomic_ullong refusals;
};

/** The last eighth is lent only in pieces of up to small_bytes, so that what is large does not keep out what is small. */
void ifd_quota_init(struct ifd_quota *quota, const struct ifd_alloc *from, size_t limit_bytes,
                    size_t small_bytes);

/** Counts bytes that are taken elsewhere, by a library with an allocator of its own, as if they were one large piece; false:
 *  refused, as the allocator would. */
bool ifd_quota_hold(struct ifd_quota *quota, size_t bytes) IFD_NODISCARD;
void ifd_quota_drop(struct ifd_quota *quota, size_t bytes);

#endif
