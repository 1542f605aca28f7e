/* An allocator on memfd_create and F_ADD_SEALS. */
#include "server/repo/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 8u
#endif

static void close_fd(struct ifd_sealed *sealed)
{
    if (sealed->fd >= 0) {
        (void)close(sealed->fd);
        sealed->fd = -1;
    }
}

/* Allocates all pages at once: when memory is short, a store to a missing page ends the process
 * (SIGBUS). */
static bool grow(int fd, size_t size)
{
    int failed = 0;
    do {
        failed = fallocate(fd, 0, 0, (off_t)size);
    } while (failed && errno == EINTR);
    return !failed;
}

/* False with errno. */
static bool map_memfd(struct ifd_sealed *sealed, size_t size)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    sealed->fd = sealed->create(sealed->name, flags | MFD_NOEXEC_SEAL);
    if (sealed->fd < 0 && errno == EINVAL) {
        sealed->fd = sealed->create(sealed->name, flags);
    }
    if (sealed->fd < 0) {
        return false;
    }
    void *map = MAP_FAILED;
    if (grow(sealed->fd, size) &&
        fcntl(sealed->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, sealed->fd, 0);
    }
    if (map == MAP_FAILED) {
        const int saved = errno;
        close_fd(sealed);
        errno = saved;
        return false;
    }
    sealed->map = map;
    sealed->size = size;
    return true;
}

static void *acquire(void *context, size_t size, size_t align)
{
    struct ifd_sealed *sealed = context;
    if (!sealed->map && align <= (size_t)sysconf(_SC_PAGESIZE)) {
        if (map_memfd(sealed, size)) {
            return sealed->map;
        }
        sealed->refused = errno;
    }
    return sealed->other->acquire(sealed->other->context, size, align);
}

static void release(void *context, void *ptr, size_t size)
{
    struct ifd_sealed *sealed = context;
    if (ptr != sealed->map) {
        sealed->other->release(sealed->other->context, ptr, size);
        return;
    }
    (void)munmap(sealed->map, sealed->size);
    close_fd(sealed);
    sealed->map = NULL;
}

void ifd_sealed_init(struct ifd_sealed *sealed, const char *name, const struct ifd_alloc *other,
                     int (*create)(const char *name, unsigned flags))
{
    *sealed =
        (struct ifd_sealed){.alloc = {.context = sealed, .acquire = acquire, .release = release},
                            .other = other,
                            .name = name,
                            .create = create ? create : memfd_create,
                            .fd = -1};
}

/* Maps the pages before the first request. Only existing ones: touching a hole would fill it. */
static void populate(const struct ifd_sealed *sealed)
{
#ifdef MADV_POPULATE_READ
    off_t end = 0;
    for (off_t at = lseek(sealed->fd, 0, SEEK_DATA); at >= 0;
         at = lseek(sealed->fd, end, SEEK_DATA)) {
        end = lseek(sealed->fd, at, SEEK_HOLE);
        if (end <= at) {
            break;
        }
        (void)madvise((uint8_t *)sealed->map + at, (size_t)(end - at), MADV_POPULATE_READ);
    }
#else
    (void)sealed;
#endif
}

enum ifd_code ifd_sealed_finish(struct ifd_sealed *sealed, struct ifd_err *err)
{
    if (sealed->fd < 0) {
        return IFD_OK;
    }
    /* Unmaps first: a file with a writable mapping cannot be sealed. */
    if (mmap(sealed->map, sealed->size, PROT_READ, MAP_PRIVATE | MAP_FIXED, sealed->fd, 0) ==
            MAP_FAILED ||
        fcntl(sealed->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        return ifd_fail(err, IFD_IO, "cannot seal the memory of the model's file: %s",
                        strerror(errno));
    }
    populate(sealed);
    close_fd(sealed);
    return IFD_OK;
}
