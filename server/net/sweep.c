/* Finds clients that left while they waited, and clients that are too slow in sending a header,
 * sending a body, reading an answer or sending the next request. The library has only a timeout of
 * inactivity, which an occasional byte defeats; these are deadlines. */
#include "server/net/http_impl.h"

#include <poll.h>
#include <sys/ioctl.h>

#define SWEEP_FDS 64
/* How often the byte counts of connections between requests are read. */
#define LOOK_MS UINT64_C(2000)

/* ---- the clock ---- */

/* If two looks at clients are farther apart, the server was kept from reading what they sent. */
#define STEP_MS (2 * IFD_SWEEP_MS)

uint64_t ifd_http_now_ms(struct ifd_http *http)
{
    const uint64_t loop_ms = ifd_loop_now_ms(http->options.loop);
    const uint64_t passed_ms = loop_ms - http->looked_ms;
    http->looked_ms = loop_ms;
    http->now_ms += passed_ms < STEP_MS ? passed_ms : STEP_MS;
    return http->now_ms;
}

/* ---- clients that left ---- */

/* The library misses an end that arrives together with data, because its events are
 * edge-triggered. */
static void end_if_cut_off(struct ifd_connection *c)
{
    int unread = 0;
    if (ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0) {
        ifd_connection_shut(c);
    }
}

/* The client is in a request, or before its first one, for longer than most requests take; or its
 * end may have come with its last request. The library reports later ends. */
static bool may_have_left(const struct ifd_connection *c, uint64_t now_ms)
{
    const struct ifd_transfer *t = c->transfer;
    if (!t && !c->is_fresh) {
        return c->was_busy && !c->is_ending;
    }
    if (!t) {
        return !c->is_ending && now_ms - c->since_ms >= IFD_SWEEP_MS;
    }
    return !c->is_ending && !t->is_abandoned && t->state <= IFD_TRANSFER_WAITING &&
           now_ms - t->since_ms >= IFD_SWEEP_MS;
}

static void sweep_closed(struct ifd_http *http, uint64_t now_ms)
{
    struct ifd_connection *c = http->connections;
    while (c) {
        struct pollfd fds[SWEEP_FDS];
        struct ifd_connection *of[SWEEP_FDS];
        nfds_t count = 0;
        for (; c && count < SWEEP_FDS; c = c->next) {
            if (may_have_left(c, now_ms)) {
                fds[count] = (struct pollfd){.fd = c->fd, .events = POLLRDHUP};
                of[count++] = c;
                c->was_busy = false;
            }
        }
        if (count == 0 || poll(fds, count, 0) <= 0) {
            continue;
        }
        for (nfds_t i = 0; i < count; i++) {
            struct ifd_transfer *t = of[i]->transfer;
            if (fds[i].revents && t && t->state == IFD_TRANSFER_WAITING) {
                ifd_request_abandon(t);
            } else if (fds[i].revents) {
                end_if_cut_off(of[i]);
            }
        }
    }
}

/* ---- clients that are slow ---- */

static void look_at_receiving(struct ifd_connection *c, uint64_t now_ms)
{
    const struct ifd_http_options *o = &c->listener->http->options;
    struct ifd_transfer *t = c->transfer;
    uint64_t took_ms = now_ms - t->since_ms;
    if (!t->has_headers) {
        if (took_ms >= (uint64_t)o->header_timeout_secs * 1000) {
            ifd_connection_cut(c, IFD_LIMIT_HEADER_TIME);
        }
    } else if (took_ms >= (uint64_t)o->receive_timeout_secs * 1000) {
        ifd_connection_cut(c, IFD_LIMIT_RECEIVE);
    } else if (ifd_pace_is_slow(&t->receive_pace, now_ms, t->body.size + t->swallowed_bytes,
                                o->min_receive_rate)) {
        ifd_connection_cut(c, IFD_LIMIT_RECEIVE_RATE);
    }
}

/* The client does not read what we or the system have sent. */
static bool is_slow_reader(struct ifd_connection *c, uint64_t now_ms,
                           const struct ifd_connection_bytes *bytes)
{
    uint32_t min_rate = c->listener->http->options.min_send_rate;
    return ifd_pace_is_slow(&c->send_pace, now_ms, bytes->taken, min_rate) && bytes->has_unsent;
}

static void look_at_sending(struct ifd_connection *c, uint64_t now_ms)
{
    uint64_t limit_ms = (uint64_t)c->listener->http->options.send_timeout_secs * 1000;
    struct ifd_connection_bytes bytes;
    if (now_ms - c->transfer->since_ms >= limit_ms) {
        ifd_connection_cut(c, IFD_LIMIT_SEND);
    } else if (now_ms - c->send_pace.since_ms >= IFD_PACE_WINDOW_MS &&
               ifd_connection_bytes(c, &bytes) && is_slow_reader(c, now_ms, &bytes)) {
        ifd_connection_cut(c, IFD_LIMIT_SEND_RATE);
    }
}

/* Does a request trickle in? The library does not report it before the first line is complete. Was
 * the last answer read? The library drops an answer once the system has it. */
static void look_for_bytes(struct ifd_connection *c, uint64_t now_ms)
{
    struct ifd_connection_bytes bytes;
    if (now_ms - c->looked_ms < LOOK_MS || !ifd_connection_bytes(c, &bytes)) {
        return;
    }
    if (c->seen_bytes > 0 && bytes.received > c->seen_bytes && c->dirty_ms == 0) {
        c->dirty_ms = c->looked_ms;
    }
    c->seen_bytes = bytes.received;
    c->looked_ms = now_ms;
    if (is_slow_reader(c, now_ms, &bytes)) {
        ifd_connection_cut(c, IFD_LIMIT_SEND_RATE);
    }
}

static void look_at_idle(struct ifd_connection *c, uint64_t now_ms)
{
    const struct ifd_http_options *o = &c->listener->http->options;
    uint64_t header_ms = (uint64_t)o->header_timeout_secs * 1000;
    if (!c->is_fresh) {
        look_for_bytes(c, now_ms);
    }
    if (c->is_ending) {
        return;
    }
    if ((c->is_fresh && now_ms - c->since_ms >= header_ms) ||
        (c->dirty_ms > 0 && now_ms - c->dirty_ms >= header_ms)) {
        ifd_connection_cut(c, IFD_LIMIT_HEADER_TIME);
    } else if (now_ms - c->since_ms >= (uint64_t)o->idle_timeout_secs * 1000) {
        ifd_connection_cut(c, IFD_LIMIT_IDLE);
    }
}

static void look_at(struct ifd_connection *c, uint64_t now_ms)
{
    if (c->is_ending) {
        return;
    }
    if (!c->transfer) {
        look_at_idle(c, now_ms);
        return;
    }
    switch (c->transfer->state) {
    case IFD_TRANSFER_RECEIVING:
    case IFD_TRANSFER_SWALLOWING:
        look_at_receiving(c, now_ms);
        break;
    case IFD_TRANSFER_ANSWERED:
        look_at_sending(c, now_ms);
        break;
    case IFD_TRANSFER_WAITING: /* the service watches its deadline */
    case IFD_TRANSFER_GONE:
        break;
    }
}

void ifd_http_sweep(void *arg)
{
    struct ifd_http *http = arg;
    uint64_t now_ms = ifd_http_now_ms(http);
    sweep_closed(http, now_ms);
    for (struct ifd_connection *c = http->connections; c; c = c->next) {
        look_at(c, now_ms);
    }
    ifd_linger_sweep(http, false);
    ifd_accept_reserve(http);
    ifd_http_check_idle(http);
    if (!http->connections && http->linger_count == 0) {
        ifd_timer_stop(http->sweep);
    }
}
