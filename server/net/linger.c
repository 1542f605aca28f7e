/* Closes so that the last answer arrives: reads and drops the client's further bytes until it
 * closes, too. */
#include "server/net/http_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A client needs a round trip to notice its answer; one that continues to send is cut off. */
#define LINGER_MS    UINT64_C(2000)
#define LINGER_BYTES ((size_t)64 << 20)

static void finish(struct ifd_lingerer *l)
{
    ifd_watch_destroy(l->watch);
    (void)close(l->fd);
    l->watch = NULL;
    l->http->linger_count--;
}

static void on_readable(void *arg)
{
    struct ifd_lingerer *l = arg;
    char sink[16384];
    for (int i = 0; i < 16; i++) {
        ssize_t got = recv(l->fd, sink, sizeof(sink), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        l->dropped_bytes += got > 0 ? (size_t)got : 0;
        if (got <= 0 || l->dropped_bytes > LINGER_BYTES) {
            finish(l);
            return;
        }
    }
}

void ifd_linger(struct ifd_http *http, int fd)
{
    struct ifd_err err = {0};
    if (http->is_stopping || http->linger_count == IFD_LINGER_MAX) {
        return;
    }
    struct ifd_lingerer *l = http->lingerer;
    while (l->watch) {
        l++;
    }
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        return;
    }
    (void)shutdown(own, SHUT_WR);
    *l = (struct ifd_lingerer){
        .http = http, .fd = own, .until_ms = ifd_http_now_ms(http) + LINGER_MS};
    if (ifd_watch_create(http->options.loop, own, on_readable, l, &l->watch, &err)) {
        (void)close(own);
        l->watch = NULL;
        return;
    }
    http->linger_count++;
    if (!ifd_timer_is_active(http->sweep)) {
        ifd_timer_start(http->sweep, IFD_SWEEP_MS, IFD_SWEEP_MS);
    }
}

void ifd_linger_sweep(struct ifd_http *http, bool is_end)
{
    uint64_t now_ms = ifd_http_now_ms(http);
    for (uint32_t i = 0; i < IFD_LINGER_MAX && http->linger_count > 0; i++) {
        struct ifd_lingerer *l = &http->lingerer[i];
        if (l->watch && (is_end || now_ms >= l->until_ms)) {
            finish(l);
        }
    }
}
