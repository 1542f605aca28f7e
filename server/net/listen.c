/* Binds and listens, TCP and UNIX. */
#include "server/net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

static enum ifd_code fail_bind(const char *where, struct ifd_err *err)
{
    if (errno == EADDRINUSE) {
        return ifd_fail(err, IFD_EXISTS,
                        "cannot listen on %s: already in use, perhaps by another server", where);
    }
    return ifd_fail(err, IFD_IO, "cannot listen on %s: %s", where, strerror(errno));
}

/* The bound socket, or -1 with errno. */
static int bind_one(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    info->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    int yes = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof(at);
    if (getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        return 0;
    }
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
                                    : ntohs(((struct sockaddr_in *)&at)->sin_port);
}

bool ifd_listen_is_local(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof(at);
    if (getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        return false;
    }
    if (at.ss_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&at)->sin6_addr);
    }
    return ntohl(((struct sockaddr_in *)&at)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

enum ifd_code ifd_listen_tcp(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port,
                             struct ifd_err *err)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[8];
    (void)snprintf(service, sizeof(service), "%u", port);
    int failed = getaddrinfo(address, service, &hints, &found);
    if (failed) {
        return ifd_fail(
            err, IFD_INVALID,
            "cannot listen on address \"%s\": %s; wanted is one as 127.0.0.1 or ::1, or "
            "a name of this machine",
            address, gai_strerror(failed));
    }
    int fd = bind_one(found);
    int saved = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        char where[300];
        (void)snprintf(where, sizeof(where), "%s port %u", address, port);
        errno = saved;
        return fail_bind(where, err);
    }
    *ret_fd = fd;
    *ret_port = port_of(fd);
    return IFD_OK;
}

/* Removes a socket file without a server. */
static void remove_stale(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0 && errno == ECONNREFUSED) {
        (void)unlink(at->sun_path);
    }
    (void)close(fd);
}

enum ifd_code ifd_listen_unix(const char *path, unsigned mode, int *ret_fd,
                              struct ifd_socket_file *ret_file, struct ifd_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(at.sun_path)) {
        return ifd_fail(err, IFD_INVALID,
                        "socket path \"%s\" has %zu bytes, at most %zu are possible", path,
                        strlen(path), sizeof(at.sun_path) - 1);
    }
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    struct stat info;
    if (lstat(path, &info) == 0) {
        if (!S_ISSOCK(info.st_mode)) {
            return ifd_fail(err, IFD_EXISTS, "cannot listen on %s: it exists and is not a socket",
                            path);
        }
        remove_stale(&at);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return fail_bind(path, err);
    }
    /* The file gets the socket's mode, so nobody can connect before chmod adds what the umask
     * removed. */
    if (fchmod(fd, mode) != 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        chmod(path, mode) != 0 || listen(fd, BACKLOG) != 0) {
        enum ifd_code code = fail_bind(path, err);
        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    if (lstat(path, &info) == 0) {
        *ret_file = (struct ifd_socket_file){.device = info.st_dev, .inode = info.st_ino};
    }
    return IFD_OK;
}

void ifd_listen_remove(const char *path, const struct ifd_socket_file *file)
{
    struct stat info;
    if (file->inode != 0 && lstat(path, &info) == 0 && info.st_dev == file->device &&
        info.st_ino == file->inode) {
        (void)unlink(path);
    }
}
