/** What a service manager is told: datagrams to the socket in NOTIFY_SOCKET, as sd_notify(3) sends them. The protocol is a
 *  few lines of text; libsystemd would bring four more libraries for it. Thread: one at a time. */
#ifndef INFERD_SERVER_OBS_NOTIFY_H
#define INFERD_SERVER_OBS_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "inferd/types.h"

struct ifd_notify {
    int fd; /* -1: nobody listens */
    struct sockaddr_un address;
    socklen_t size;
};

/** path: of a UNIX socket, or an abstract one as "@name"; NULL or one that cannot be used: everything below does nothing.
 *  False in the latter case. */
bool ifd_notify_open(struct ifd_notify *notify, const char *path);
/** "READY=1\nSTATUS=…": never waits; a message that the socket does not take is lost. */
void ifd_notify_send(const struct ifd_notify *notify, const char *format, ...) IFD_PRINTF(2, 3);
void ifd_notify_close(struct ifd_notify *notify);

#endif
