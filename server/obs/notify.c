/* Sends datagrams to the service manager. */
#include "server/obs/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ifd_notify_open(struct ifd_notify *notify, const char *path)
{
    *notify = (struct ifd_notify){.fd = -1, .address = {.sun_family = AF_UNIX}};
    size_t size = path ? strlen(path) : 0;
    if (!path) {
        return true;
    }
    if (size < 2 || (path[0] != '/' && path[0] != '@') ||
        size >= sizeof(notify->address.sun_path)) {
        return false;
    }
    memcpy(notify->address.sun_path, path, size);
    if (path[0] == '@') {
        notify->address.sun_path[0] = '\0';
    }
    notify->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return notify->fd >= 0;
}

void ifd_notify_send(const struct ifd_notify *notify, const char *format, ...)
{
    char text[512];
    va_list args;
    if (notify->fd < 0) {
        return;
    }
    va_start(args, format);
    int size = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (size > 0 && (size_t)size < sizeof(text)) {
        (void)sendto(notify->fd, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL,
                     (const struct sockaddr *)&notify->address, notify->size);
    }
}

void ifd_notify_close(struct ifd_notify *notify)
{
    if (notify->fd >= 0) {
        (void)close(notify->fd);
    }
    notify->fd = -1;
}
