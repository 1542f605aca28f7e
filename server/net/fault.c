/* Requests that the library refuses by itself. It logs a status and answers with an HTML page, but
 * does not name the connection. Our answer must come first, so the connection is found here. Knows
 * the library's log texts, not the library.
 *
 * Candidates are the connections that are reading what can be malformed. A single candidate is
 * answered at once. Several candidates are all held before the library can send: the one for which
 * it made an answer is refused, then the others continue. Those with unread bytes continue one at a
 * time, because they may be malformed as well. */
#include "server/net/http_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "engine/base/str.h"

/* The malformed part. ANY: request line, field or trailer. */
enum fault { FAULT_REQUEST_LINE, FAULT_CHUNK, FAULT_ANY };

static const char *fault_text(const struct ifd_connection *c, int status)
{
    switch (status) {
    case 413:
        return "the size of a chunk is too large";
    case 414:
        return "the request line is larger than the server's buffer";
    case 431:
        return "the header is larger than the server's buffer";
    case 505:
        return "only HTTP/1.1 and HTTP/1.0 are supported";
    default:
        return c->transfer && c->transfer->has_headers ? "a chunk or a trailer is malformed"
                                                       : "the request line or a field is malformed";
    }
}

static enum fault fault_of(int status, const char *text)
{
    if (strstr(text, "chunk")) {
        return FAULT_CHUNK;
    }
    return status == 414 || status == 505 ? FAULT_REQUEST_LINE : FAULT_ANY;
}

static bool has_unread(const struct ifd_connection *c)
{
    int unread = 0;
    return ioctl(c->fd, FIONREAD, &unread) != 0 || unread > 0;
}

/* Between requests: the library has read more bytes than the requests had. True if the system does
 * not count bytes. */
static bool has_begun(const struct ifd_connection *c)
{
    struct ifd_connection_bytes bytes;
    int unread = 0;
    return !ifd_connection_bytes(c, &bytes) || ioctl(c->fd, FIONREAD, &unread) != 0 ||
           bytes.received > c->taken_bytes + (uint64_t)unread;
}

/* The library reports connections that it closed only at the end of a run, and must not be asked
 * about them before. It shuts their sockets down first, which this tests; nothing is sent. */
static bool is_closed(const struct ifd_connection *c)
{
    return send(c->fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0;
}

static bool may_be_at_fault(const struct ifd_connection *c, enum fault fault)
{
    const struct ifd_transfer *t = c->transfer;
    if (c->is_held || c->is_ending || (t && t->state > IFD_TRANSFER_SWALLOWING) || is_closed(c)) {
        return false;
    }
    if (!t) {
        return fault != FAULT_CHUNK && has_begun(c);
    }
    return t->has_headers ? t->is_chunked && fault != FAULT_REQUEST_LINE : fault == FAULT_ANY;
}

static void hold(struct ifd_connection *c)
{
    if (!c->is_held) {
        c->is_held = true;
        c->listener->held_count++;
        ifd_mhd_hold(c);
    }
}

static void let_go(struct ifd_connection *c)
{
    c->is_held = false;
    c->listener->held_count--;
    ifd_mhd_let_go(c);
}

/* The library has logged that it cannot read a request; it sends its own page next. */
static void refuse(struct ifd_listener *l, int status, const char *text)
{
    const enum fault fault = fault_of(status, text);
    struct ifd_connection *first = NULL;
    bool is_said = l->is_fault_said;
    l->is_fault_said = false;
    if (status == 431 || status == 414) {
        ifd_count_limit(l->metrics, IFD_LIMIT_HEADER);
    }
    if (is_said) {
        return;
    }
    for (struct ifd_connection *c = l->http->connections; c; c = c->next) {
        if (c->listener != l || !may_be_at_fault(c, fault)) {
            continue;
        }
        if (first) {
            hold(first);
            hold(c);
        }
        first = first ? first : c;
    }
    if (first && !first->is_held) {
        ifd_connection_refuse(first, status, fault_text(first, status));
    }
}

/* The library reads Content-Length between the header and the first callback. If it cannot, its
 * answer has the head twice; this answers before it. */
static void refuse_lengths(struct ifd_listener *l, int status, const char *text)
{
    for (struct ifd_connection *c = l->http->connections; c; c = c->next) {
        uint64_t length = 0;
        const struct ifd_transfer *t = c->transfer;
        if (c->listener != l || !t || t->has_headers || t->said_status > 0) {
            continue;
        }
        struct ifd_str value = ifd_mhd_raw_header(t, "Content-Length");
        if (value.data && !ifd_str_u64(value, &length)) {
            ifd_connection_refuse(c, status, text);
            l->is_fault_said = true; /* the library's own answer follows */
        }
    }
}

void ifd_fault_heed(struct ifd_listener *l, const char *text)
{
    static const char status_is[] = "HTTP response code is ";
    const char *status = strstr(text, status_is);
    if (strncmp(text, "Failed to parse `Content-Length'", 32) == 0) {
        refuse_lengths(l, 400, "Content-Length is not a number");
    } else if (strncmp(text, "Too large value of 'Content-Length'", 35) == 0) {
        refuse_lengths(l, 413, "Content-Length is too large");
    } else if (status) {
        refuse(l, (int)strtol(status + strlen(status_is), NULL, 10), text);
    }
}

bool ifd_fault_settle(struct ifd_listener *l)
{
    const bool needs_run = l->held_count > 0;
    bool is_one_on_its_way = false;
    for (struct ifd_connection *c = l->http->connections; c && l->held_count > 0; c = c->next) {
        if (c->listener != l || !c->is_held) {
            continue;
        }
        const int status = ifd_mhd_page_status(c);
        const bool may_be_next = status == 0 && has_unread(c);
        if (status > 0) {
            ifd_connection_refuse(c, status, fault_text(c, status));
        }
        if (!may_be_next || !is_one_on_its_way) {
            let_go(c);
        }
        is_one_on_its_way = is_one_on_its_way || may_be_next;
    }
    return needs_run;
}
