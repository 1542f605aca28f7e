/* inotify. Writing alone is no event: a file counts when it is closed, or found by a scan. */
#include "server/repo/notice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS                                                                                     \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB | IN_ONLYDIR)

enum ifd_code ifd_notice_open(int *ret_fd, struct ifd_err *err)
{
    const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) {
        return ifd_fail(err, IFD_IO, "no notices of changed folders: %s", strerror(errno));
    }
    *ret_fd = fd;
    return IFD_OK;
}

bool ifd_notice_add(int fd, int root, const char *path)
{
    char name[4096]; /* PATH_MAX: the kernel takes no longer path */
    const int size = snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", root, path);
    return size > 0 && (size_t)size < sizeof(name) &&
           (inotify_add_watch(fd, name, EVENTS) >= 0 || errno != ENOSPC);
}

bool ifd_notice_take(int fd)
{
    char events[4096];
    bool is_any = false;
    while (read(fd, events, sizeof(events)) > 0) {
        is_any = true;
    }
    return is_any;
}
