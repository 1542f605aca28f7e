/* Accepts connections. A client beyond the limit is answered 503 with Retry-After at once instead
 * of being left waiting. If there are no descriptors, a reserved one is used to answer. */
#include "server/net/http_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Connections per turn of the loop, so that requests are served in between. */
#define ACCEPTS_MAX 64
/* Turns before the socket is closed: the system's backlog (listen.c asks for 1024) and some more
 * that arrive meanwhile. */
#define LAST_TURNS_MAX 32
/* Time to the next attempt without descriptors and without the reserve. */
#define RETRY_MS 100

struct ifd_client ifd_client_of(const struct sockaddr_storage *at)
{
    struct ifd_client client = {0};
    if (at->ss_family == AF_INET) {
        client.is_known = true;
        memcpy(client.bytes, &((const struct sockaddr_in *)at)->sin_addr, 4);
    } else if (at->ss_family == AF_INET6) {
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)at)->sin6_addr;
        client.is_known = true;
        memcpy(client.bytes, in6, IN6_IS_ADDR_V4MAPPED(in6) ? 16 : 8);
    }
    return client;
}

uint32_t ifd_connections_of(const struct ifd_listener *l, const struct ifd_client *client)
{
    uint32_t count = 0;
    for (const struct ifd_connection *c = l->http->connections; c; c = c->next) {
        count += c->listener == l && memcmp(&c->client, client, sizeof(*client)) == 0;
    }
    return count;
}

static void refuse(struct ifd_listener *l, int fd, int status, const char *text,
                   enum ifd_refusal why)
{
    ifd_metric_add(l->metrics, IFD_METRIC_CONNECTIONS_REFUSED, (uint32_t)why, 1);
    ifd_connection_say(fd, status, text);
    ifd_linger(l->http, fd);
    (void)close(fd);
}

static void admit(struct ifd_listener *l, int fd, const struct sockaddr_storage *at, socklen_t size)
{
    const struct ifd_http_options *o = &l->http->options;
    const struct ifd_client client = ifd_client_of(at);
    bool is_probe = l->connections >= o->max_connections;
    if (l->connections >= o->max_connections + IFD_PROBES_MAX) {
        ifd_count_limit(l->metrics, IFD_LIMIT_CONNECTIONS);
        refuse(l, fd, 503, "too many connections", IFD_REFUSAL_CONNECTIONS);
        return;
    }
    if (o->max_connections_per_address > 0 && client.is_known &&
        ifd_connections_of(l, &client) >= o->max_connections_per_address) {
        ifd_count_limit(l->metrics, IFD_LIMIT_ADDRESS);
        refuse(l, fd, 429, "too many connections from this address", IFD_REFUSAL_ADDRESS);
        return;
    }
    l->accepting = ifd_connection_begin(l, fd, &client);
    if (!l->accepting) {
        refuse(l, fd, 503, "no memory for a connection", IFD_REFUSAL_MEMORY);
        return;
    }
    l->accepting->is_probe = is_probe;
    if (!ifd_mhd_take(l, fd, (const struct sockaddr *)at, size)) {
        ifd_metric_add(l->metrics, IFD_METRIC_CONNECTIONS_REFUSED, IFD_REFUSAL_MEMORY, 1);
    }
}

void ifd_accept_reserve(struct ifd_http *http)
{
    if (http->reserve_fd < 0) {
        http->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

/* Refuses the waiting client with the reserved descriptor; false: there is none. */
static bool refuse_without_descriptor(struct ifd_listener *l)
{
    struct ifd_http *http = l->http;
    ifd_accept_reserve(http);
    if (http->reserve_fd < 0) {
        return false;
    }
    (void)close(http->reserve_fd);
    http->reserve_fd = -1;
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        ifd_metric_add(l->metrics, IFD_METRIC_CONNECTIONS_REFUSED, IFD_REFUSAL_DESCRIPTORS, 1);
        ifd_connection_say(fd, 503, "no file descriptor for the connection");
        (void)close(fd);
    }
    ifd_accept_reserve(http);
    return fd >= 0;
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* False: no client waits, or none can be accepted. */
static bool accept_some(struct ifd_listener *l)
{
    l->needs_run = true;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage at = {0};
        socklen_t size = sizeof(at);
        int fd = accept4(l->fd, (struct sockaddr *)&at, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            admit(l, fd, &at, size);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return false;
        } else if (is_shortage(errno) && !refuse_without_descriptor(l)) {
            /* The socket stays readable, so the loop would spin without a pause. */
            ifd_watch_pause(l->accepts, true);
            ifd_timer_start(l->retry, RETRY_MS, 0);
            return false;
        } /* else that client has left or was refused */
    }
    return true;
}

void ifd_accept_ready(void *arg)
{
    (void)accept_some(arg);
}

void ifd_accept_last(struct ifd_listener *l)
{
    for (int turn = 0; turn < LAST_TURNS_MAX && accept_some(l); turn++) {
    }
}

void ifd_accept_retry(void *arg)
{
    struct ifd_listener *l = arg;
    if (l->accepts) {
        ifd_watch_pause(l->accepts, false);
    }
}
