/** Memory for one model file that nobody can change: a memfd of the process's own.
 *
 *  The file is copied into it once, and hashed, parsed and run there. It can neither shrink nor
 *  grow from the start; when the load is over it is mapped for reading only, sealed against writing
 *  as well, and its descriptor closed. Not before: a kernel takes no pages back from what is sealed
 *  against writing, and weights that were packed give theirs back while a model is loaded. Until
 *  then the only descriptor is ours and closed on exec.
 *
 *  Where the kernel, or a filter of system calls, refuses memfds, this is memory of another
 *  allocator. Thread: one at a time. */
#ifndef INFERD_SERVER_REPO_SEALED_H
#define INFERD_SERVER_REPO_SEALED_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_sealed {
    /* Gives one piece of memory. Its context is this struct, which must not move. */
    struct ifd_alloc alloc;
    const struct ifd_alloc *other;
    const char *name; /* in /proc/PID/maps */
    int (*create)(const char *name, unsigned flags);
    int fd;      /* -1: closed */
    void *map;   /* NULL: not a memfd */
    size_t size; /* of map */
    int refused; /* errno: why there is no memfd; 0: nobody refused */
};

/** create NULL: memfd_create. name is not copied. */
void ifd_sealed_init(struct ifd_sealed *sealed, const char *name, const struct ifd_alloc *other,
                     int (*create)(const char *name, unsigned flags));
/** From here on nobody writes; what ifd_discard_pages gave back reads as zeros. Without a memfd
 *  nothing happens. Errors: IO. */
IFD_NODISCARD enum ifd_code ifd_sealed_finish(struct ifd_sealed *sealed, struct ifd_err *err);

#endif
