/* Clients that left while they waited, clients that never finish their request. */
#include "server/net/http_impl.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "engine/base/clock.h"

#define SWEEP_FDS 64

static void end_receiving(struct ifd_transfer *t)
{
    ifd_transfer_unlist(t);
    (void)shutdown(t->fd, SHUT_RDWR); /* the library sees the end and completes it */
    t->listener->needs_run = true;
}

/* The client has closed in the middle of a request. The library misses that when data and end arrive together, because it
 * waits for another edge. */
static void end_if_cut_off(struct ifd_transfer *t)
{
    int unread = 0;
    if (ioctl(t->fd, FIONREAD, &unread) == 0 && unread == 0) {
        end_receiving(t);
    }
}

/* Calls fn for those whose client has closed. */
static void sweep_closed(struct ifd_transfer_list *list, uint64_t now_ns,
                         void (*fn)(struct ifd_transfer *t))
{
    struct ifd_transfer *t = list->first;
    while (t) {
        struct pollfd fds[SWEEP_FDS];
        struct ifd_transfer *of[SWEEP_FDS];
        nfds_t count = 0;
        for (; t && count < SWEEP_FDS; t = t->next) {
            if (now_ns - t->exchange.received_ns < (uint64_t)IFD_SWEEP_MS * 1000000) {
                continue;
            }
            fds[count] = (struct pollfd){.fd = t->fd, .events = POLLRDHUP};
            of[count++] = t;
        }
        if (count == 0 || poll(fds, count, 0) <= 0) {
            continue;
        }
        for (nfds_t i = 0; i < count; i++) {
            if (fds[i].revents) {
                fn(of[i]);
            }
        }
    }
}

static void sweep_late(struct ifd_http *http, uint64_t now_ns)
{
    uint64_t limit_ns = (uint64_t)http->options.receive_timeout_secs * 1000000000u;
    struct ifd_transfer *next = NULL;
    for (struct ifd_transfer *t = http->receiving.first; t; t = next) {
        next = t->next;
        if (now_ns - t->exchange.received_ns >= limit_ns) {
            t->is_late = true;
            ifd_metric_add(t->listener->metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_RECEIVE, 1);
            end_receiving(t);
        }
    }
}

void ifd_http_sweep(void *arg)
{
    struct ifd_http *http = arg;
    uint64_t now_ns = ifd_monotonic_ns();
    sweep_closed(&http->suspended, now_ns, ifd_request_abandon);
    sweep_closed(&http->receiving, now_ns, end_if_cut_off);
    sweep_late(http, now_ns);
    if (!http->suspended.first && !http->receiving.first) {
        ifd_timer_stop(http->sweep);
    }
}
