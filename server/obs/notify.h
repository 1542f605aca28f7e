/** Notifies the service manager by datagrams to the socket in NOTIFY_SOCKET, as sd_notify(3) does.
 *  The protocol is a few lines of text; libsystemd would add four libraries. Thread: one at a
 *  time. */
#ifndef INFERD_SERVER_OBS_NOTIFY_H
#define INFERD_SERVER_OBS_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "inferd/types.h"

struct ifd_notify {
    int fd; /* -1: no service manager */
    struct sockaddr_un address;
    socklen_t size;
};

/** path: a UNIX socket, abstract as "@name". With NULL, or if the socket cannot be used, the
 *  functions below do nothing. False: the socket cannot be used. */
bool ifd_notify_open(struct ifd_notify *notify, const char *path);
/** "READY=1\nSTATUS=…". Never waits; a message that the socket does not accept is lost. */
void ifd_notify_send(const struct ifd_notify *notify, const char *format, ...) IFD_PRINTF(2, 3);
void ifd_notify_close(struct ifd_notify *notify);

#endif
