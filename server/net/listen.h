/** Listening sockets. Thread: any. */
#ifndef INFERD_SERVER_NET_LISTEN_H
#define INFERD_SERVER_NET_LISTEN_H

#include <sys/types.h>

#include "inferd/status.h"

/** A non-blocking TCP socket that listens on address ("127.0.0.1", "::", a host name) and port;
 *  port 0 lets the system choose; ret_port is the port. Errors: INVALID (no such address), EXISTS
 *  (port in use), IO. */
IFD_NODISCARD enum ifd_code ifd_listen_tcp(const char *address, uint16_t port, int *ret_fd,
                                           uint16_t *ret_port, struct ifd_err *err);

/** True if only programs of this machine can connect to this TCP socket. */
bool ifd_listen_is_local(int fd);

/** The file of a UNIX socket; zeroed: none. */
struct ifd_socket_file {
    dev_t device;
    ino_t inode;
};

/** A non-blocking UNIX socket at path, from its first moment with these permissions (0660, 0600).
 *  Replaces a socket file without a server; leaves anything else at that path alone. Errors:
 *  INVALID (path too long), EXISTS, IO. */
IFD_NODISCARD enum ifd_code ifd_listen_unix(const char *path, unsigned mode, int *ret_fd,
                                            struct ifd_socket_file *ret_file, struct ifd_err *err);
/** Removes path if it is still this file. */
void ifd_listen_remove(const char *path, const struct ifd_socket_file *file);

#endif
