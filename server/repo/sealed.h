/** Memory of one model file that cannot be changed: a memfd.
 *
 *  The file is copied into it once, and hashed, parsed and run there. Its size is sealed from the
 *  start. When the load is over it is mapped read-only, sealed against writing, and its descriptor
 *  closed. Not earlier: the kernel takes no pages back from memory sealed against writing, and
 *  packed weights release theirs during the load. Until then only this process has the descriptor
 *  (closed on exec).
 *
 *  Where the kernel, or a system call filter, refuses memfds, the memory comes from another
 *  allocator. Thread: one at a time. */
#ifndef INFERD_SERVER_REPO_SEALED_H
#define INFERD_SERVER_REPO_SEALED_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_sealed {
    /* Allocates once. Its context is this struct, which must not move. */
    struct ifd_alloc alloc;
    const struct ifd_alloc *other;
    const char *name; /* in /proc/PID/maps */
    int (*create)(const char *name, unsigned flags);
    int fd;      /* -1: closed */
    void *map;   /* NULL: not a memfd */
    size_t size; /* of map */
    int refused; /* errno of a refused memfd; 0: not refused */
};

/** create NULL: memfd_create. name is not copied. */
void ifd_sealed_init(struct ifd_sealed *sealed, const char *name, const struct ifd_alloc *other,
                     int (*create)(const char *name, unsigned flags));
/** Seals the memory; pages released by ifd_discard_pages read as zeros. Without a memfd nothing
 *  happens. Errors: IO. */
IFD_NODISCARD enum ifd_code ifd_sealed_finish(struct ifd_sealed *sealed, struct ifd_err *err);

#endif
