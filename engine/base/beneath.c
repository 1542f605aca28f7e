/* Opening beneath a folder, with openat2 or part by part. */
#include "engine/base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/str.h"

bool ifd_path_is_inside(struct ifd_str path)
{
    if (path.size == 0 || memchr(path.data, '\0', path.size)) {
        return false;
    }
    while (path.data) {
        struct ifd_str part = ifd_str_part(&path, '/');
        if (part.size == 0 || ifd_str_equal(part, "..") || ifd_str_equal(part, ".")) {
            return false;
        }
    }
    return true;
}

/* Opens part by part and follows no link: for kernels without openat2. */
static int open_by_parts(int root, const char *path, int flags)
{
    char part[NAME_MAX + 1];
    int at = root;
    for (const char *rest = path;;) {
        size_t size = strcspn(rest, "/");
        if (size > NAME_MAX) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(part, rest, size);
            part[size] = '\0';
        }
        bool is_last = rest[size] == '\0';
        int next = size > NAME_MAX
                       ? -1
                       : openat(at, part,
                                O_NOFOLLOW | O_CLOEXEC | (is_last ? flags : O_PATH | O_DIRECTORY));
        int saved = errno == ELOOP ? EXDEV : errno; /* a link, which may lead anywhere */
        if (at != root) {
            (void)close(at);
        }
        errno = saved;
        if (next < 0 || is_last) {
            return next;
        }
        at = next;
        rest += size + 1;
    }
}

int ifd_open_beneath(int folder, const char *path, int flags)
{
    if (!ifd_path_is_inside(ifd_str(path)) && strcmp(path, ".") != 0) {
        errno = EXDEV;
        return -1;
    }
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
    for (int tries = 0; fd < 0 && errno == EAGAIN && tries < 100; tries++) {
        fd = syscall(SYS_openat2, folder, path, &how, sizeof(how)); /* a rename raced with it */
    }
    if (fd < 0 &&
        (errno == ENOSYS || errno == EPERM)) { /* EPERM: a seccomp filter's way to say so */
        return open_by_parts(folder, path, flags);
    }
    return (int)fd;
}

bool ifd_is_bad_link(int error)
{
    return error == EXDEV || error == ELOOP;
}
