/* Connections as objects, and answers that bypass the library. */
#include "server/net/http_impl.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>

static void drop(const struct ifd_http *http, size_t held_bytes)
{
    if (held_bytes > 0) {
        ifd_quota_drop(http->options.request_quota, held_bytes);
    }
}

struct ifd_connection *ifd_connection_begin(struct ifd_listener *listener, int fd,
                                            const struct ifd_client *client)
{
    struct ifd_http *http = listener->http;
    /* Connections of pages are not counted as memory of requests. */
    struct ifd_quota *quota = listener->page ? NULL : http->options.request_quota;
    size_t held_bytes = quota ? ifd_mhd_connection_bytes(http) : 0;
    if (quota && !ifd_quota_hold(quota, held_bytes)) {
        return NULL;
    }
    struct ifd_connection *c = ifd_acquire_zeroed(http->options.alloc, 1, sizeof(*c));
    if (!c) {
        drop(http, held_bytes);
        return NULL;
    }
    c->held_bytes = held_bytes;
    c->listener = listener;
    c->fd = fd;
    c->client = *client;
    c->is_fresh = true;
    c->since_ms = c->looked_ms = ifd_http_now_ms(http);
    c->next = http->connections;
    if (c->next) {
        c->next->previous = c;
    }
    http->connections = c;
    listener->connections++;
    ifd_metric_add(listener->metrics, IFD_METRIC_CONNECTIONS_ACCEPTED, 0, 1);
    ifd_metric_add(listener->metrics, IFD_METRIC_CONNECTIONS_OPEN, 0, 1);
    if (!ifd_timer_is_active(http->sweep)) {
        ifd_timer_start(http->sweep, IFD_SWEEP_MS, IFD_SWEEP_MS);
    }
    return c;
}

void ifd_connection_end(struct ifd_connection *c)
{
    struct ifd_http *http = c->listener->http;
    int unread = 0;
    if (c->wants_linger || (ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0)) {
        ifd_linger(http, c->fd);
    }
    c->listener->connections--;
    ifd_metric_add(c->listener->metrics, IFD_METRIC_CONNECTIONS_OPEN, 0, (uint64_t)-1);
    *(c->previous ? &c->previous->next : &http->connections) = c->next;
    if (c->next) {
        c->next->previous = c->previous;
    }
    drop(http, c->held_bytes);
    ifd_release(http->options.alloc, c, sizeof(*c));
    ifd_http_check_idle(http);
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } table[] = {{400, "Bad Request"},         {408, "Request Timeout"},
                 {413, "Content Too Large"},   {414, "URI Too Long"},
                 {429, "Too Many Requests"},   {431, "Request Header Fields Too Large"},
                 {503, "Service Unavailable"}, {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status == status) {
            return table[i].reason;
        }
    }
    return "Error";
}

void ifd_connection_say(int fd, int status, const char *text)
{
    char body[200], answer[500];
    int size = snprintf(body, sizeof(body), "{\"error\":\"%s\"}", text);
    bool may_retry = status == 429 || status == 503;
    int total =
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                 "%sConnection: close\r\n\r\n%s",
                 status, reason_of(status), size, may_retry ? "Retry-After: 1\r\n" : "", body);
    /* The answer fits into an empty socket buffer. If the buffer is not empty, the client does not
     * read anyway. */
    ssize_t sent = send(fd, answer, (size_t)total, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
    (void)shutdown(fd, SHUT_WR);
}

void ifd_connection_shut(struct ifd_connection *c)
{
    c->is_ending = true;
    (void)shutdown(c->fd, SHUT_RDWR);
    ifd_mhd_shut(c);
    c->listener->needs_run = true;
}

void ifd_connection_refuse(struct ifd_connection *c, int status, const char *text)
{
    ifd_connection_say(c->fd, status, text);
    c->wants_linger = true;
    if (c->transfer) {
        c->transfer->said_status = status;
    }
    /* After some faults the library neither sends nor reads, so it must see the end. */
    ifd_connection_shut(c);
}

/* The client has begun a request, and no part of an answer was sent. */
static bool may_say(const struct ifd_connection *c)
{
    const struct ifd_transfer *t = c->transfer;
    struct ifd_connection_bytes bytes;
    if (t) {
        return t->state == IFD_TRANSFER_RECEIVING || t->state == IFD_TRANSFER_SWALLOWING;
    }
    return c->dirty_ms > 0 ||
           (c->is_fresh && ifd_connection_bytes(c, &bytes) && bytes.received > 0);
}

void ifd_connection_cut(struct ifd_connection *c, enum ifd_limit limit)
{
    struct ifd_transfer *t = c->transfer;
    ifd_count_limit(c->listener->metrics, limit);
    if (t) {
        t->is_late = true;
    }
    if (may_say(c)) {
        ifd_connection_say(c->fd, 408, "the request did not arrive in time");
        c->wants_linger = true;
        if (t) {
            t->said_status = 408;
        }
    } else if (t || limit == IFD_LIMIT_SEND_RATE) {
        /* The system drops bytes that a slow reader has not read. */
        const struct linger reset = {.l_onoff = 1};
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    ifd_connection_shut(c);
}

bool ifd_connection_bytes(const struct ifd_connection *c, struct ifd_connection_bytes *ret)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (!c->client.is_known || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof(info.tcpi_notsent_bytes)) {
        return false;
    }
    *ret = (struct ifd_connection_bytes){
        .received = info.tcpi_bytes_received,
        .taken = info.tcpi_bytes_acked,
        .has_unsent = info.tcpi_notsent_bytes > 0 || info.tcpi_unacked > 0,
    };
    return true;
}
