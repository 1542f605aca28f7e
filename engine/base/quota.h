/** An allocator with a limit on top of another one; it counts its refusals.
 *
 *  Its users need not know the limit: they see out of memory, which they handle anyway. Thread:
 *  any, as of the allocator behind it. */
#ifndef INFERD_ENGINE_BASE_QUOTA_H
#define INFERD_ENGINE_BASE_QUOTA_H

#include <stdatomic.h>

#include "inferd/alloc.h"

struct ifd_quota {
    /** To be passed to users. Its context is this object, which must not move. */
    struct ifd_alloc alloc;
    const struct ifd_alloc *from;
    size_t limit_bytes, small_bytes;
    atomic_size_t used_bytes;
    atomic_ullong refusals;
};

/** The last eighth is reserved for allocations of up to small_bytes, so that large ones do not
 *  starve small ones. */
void ifd_quota_init(struct ifd_quota *quota, const struct ifd_alloc *from, size_t limit_bytes,
                    size_t small_bytes);

/** Counts bytes that a library takes from its own allocator, as one large allocation; false:
 *  refused. */
bool ifd_quota_hold(struct ifd_quota *quota, size_t bytes) IFD_NODISCARD;
void ifd_quota_drop(struct ifd_quota *quota, size_t bytes);

#endif
