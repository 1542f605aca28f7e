/* Requests as objects: reused memory, lists, outcomes. */
#include "server/net/http_impl.h"

#include <stddef.h>
#include <string.h>

#include "api/http/status.h"
#include "engine/base/clock.h"
#include "engine/base/str.h"

/* Largest arena of a request: decoded JSON tensors take most of it. */
#define ARENA_CAP_BYTES ((size_t)1 << 30)
/* A larger arena is given back after its request; a smaller one serves the next request. */
#define ARENA_KEEP_BYTES ((size_t)1 << 16)
#define SPARE_TRANSFERS  128
/* Limit for the bodies of spare transfers together; small bodies are always kept. */
#define SPARE_BODY_BYTES   ((size_t)1 << 16)
#define SPARE_BODIES_BYTES ((size_t)4 << 20)

/* ---- memory ---- */

/* Pages do not use the memory of requests: metrics matter most when that is spent. */
static struct ifd_transfer *take(struct ifd_listener *l)
{
    struct ifd_http *http = l->http;
    const struct ifd_alloc *alloc = l->page ? http->options.alloc : http->options.request_alloc;
    struct ifd_transfer *t = l->page ? NULL : http->spare;
    if (t) {
        http->spare = t->next;
        http->spare_count--;
        http->spare_bytes -= t->body.memory_bytes;
    } else {
        t = ifd_acquire_zeroed(http->options.alloc, 1, sizeof(*t));
        if (!t) {
            return NULL;
        }
        ifd_arena_init(&t->arena, alloc, ARENA_CAP_BYTES);
        ifd_body_init(&t->body, alloc);
    }
    memset(&t->listener, 0, sizeof(*t) - offsetof(struct ifd_transfer, listener));
    t->listener = l;
    http->open_count++;
    return t;
}

static void release(struct ifd_http *http, struct ifd_transfer *t)
{
    ifd_mhd_release(&t->kept);
    ifd_body_finish(&t->body);
    ifd_arena_finish(&t->arena);
    ifd_release(http->options.alloc, t, sizeof(*t));
}

static void recycle(struct ifd_transfer *t)
{
    struct ifd_http *http = t->listener->http;
    bool is_page = t->listener->page;
    size_t room =
        http->spare_bytes < SPARE_BODIES_BYTES ? SPARE_BODIES_BYTES - http->spare_bytes : 0;
    ifd_body_release(&t->body, room > SPARE_BODY_BYTES ? room : SPARE_BODY_BYTES);
    if (t->arena.used_bytes > ARENA_KEEP_BYTES) {
        ifd_arena_finish(&t->arena);
        ifd_arena_init(&t->arena, http->options.request_alloc, ARENA_CAP_BYTES);
    } else {
        ifd_arena_reset(&t->arena);
    }
    if (!is_page && http->spare_count < SPARE_TRANSFERS) {
        t->next = http->spare;
        http->spare = t;
        http->spare_count++;
        http->spare_bytes += t->body.memory_bytes;
    } else {
        release(http, t);
    }
    http->open_count--;
    ifd_http_check_idle(http);
}

void ifd_transfer_free_spare(struct ifd_http *http)
{
    while (http->spare) {
        struct ifd_transfer *t = http->spare;
        http->spare = t->next;
        release(http, t);
    }
}

/* ---- begin ---- */

struct ifd_transfer *ifd_transfer_begin(struct ifd_connection *c, const char *uri)
{
    struct ifd_listener *listener = c->listener;
    struct ifd_transfer *t = take(listener);
    if (!t) {
        return NULL;
    }
    t->connection = c;
    /* The time of the first request runs from the start of the connection. */
    t->since_ms = c->is_fresh ? c->since_ms : ifd_http_now_ms(listener->http);
    c->is_fresh = false;
    c->transfer = t;
    t->state = IFD_TRANSFER_RECEIVING;
    ifd_metric_add(listener->metrics, IFD_METRIC_HTTP_ACCEPTED, 0, 1);
    ifd_metric_add(listener->metrics, IFD_METRIC_HTTP_INFLIGHT, 0, 1);
    memset(&t->exchange, 0, offsetof(struct ifd_http_exchange, response));
    ifd_http_response_begin(&t->exchange.response, 0);
    t->exchange.arena = &t->arena;
    t->exchange.header = ifd_mhd_header;
    t->exchange.respond = ifd_request_respond;
    t->exchange.is_local_admin = listener->is_local_admin;
    t->exchange.received_ns = ifd_monotonic_ns();
    t->exchange.transport = t;
    t->url_bytes = strlen(uri);
    const char *copy = t->uri;
    if (t->url_bytes < sizeof(t->uri)) {
        memcpy(t->uri, uri, t->url_bytes + 1);
    } else {
        copy = ifd_arena_text(&t->arena, uri, t->url_bytes);
    }
    if (copy) {
        struct ifd_str rest = ifd_gate_origin(ifd_str(copy));
        t->exchange.path = ifd_str_part(&rest, '?');
        t->exchange.query = rest.data ? rest : ifd_str("");
    }
    return t;
}

/* ---- end ---- */

static const char *method_name(enum ifd_http_method method)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "OPTIONS", "OTHER"};
    return names[method];
}

/* For statistics. A request that the library refuses never reaches ANSWERED. */
static enum ifd_outcome outcome_of(const struct ifd_transfer *t, bool is_complete)
{
    if (t->is_late) {
        return IFD_OUTCOME_TIMEOUT;
    }
    if (t->said_status > 0) {
        return IFD_OUTCOME_CLIENT_ERROR;
    }
    if (!is_complete || t->state == IFD_TRANSFER_GONE) {
        return IFD_OUTCOME_ABORTED;
    }
    return t->state == IFD_TRANSFER_ANSWERED ? ifd_http_outcome(&t->exchange.response)
                                             : IFD_OUTCOME_CLIENT_ERROR;
}

/* Status of the answer, whoever sent it; 0: no answer was sent. */
static int status_of(const struct ifd_transfer *t, bool is_complete, int page_status)
{
    if (t->said_status > 0) {
        return t->said_status;
    }
    if (!is_complete) {
        return 0;
    }
    return t->state == IFD_TRANSFER_ANSWERED ? t->exchange.response.status : page_status;
}

static void count_end(const struct ifd_transfer *t, int status)
{
    struct ifd_metric_set *metrics = t->listener->metrics;
    ifd_metric_add(metrics, IFD_METRIC_HTTP_INFLIGHT, 0, (uint64_t)-1);
    ifd_metric_add(metrics, IFD_METRIC_HTTP_REQUESTS, (uint32_t)t->exchange.outcome, 1);
    ifd_metric_add(metrics, IFD_METRIC_HTTP_BODY_IN, 0, t->body.size);
    if (status > 0) {
        ifd_metric_add(metrics, IFD_METRIC_HTTP_RESPONSES, ifd_metric_status(status), 1);
        ifd_metric_add(metrics, IFD_METRIC_HTTP_BODY_OUT, 0, t->answer_bytes);
    }
}

static void log_end(const struct ifd_transfer *t, int status, const struct sockaddr *client)
{
    const struct ifd_http_options *options = &t->listener->http->options;
    const struct ifd_access access = {
        .method = t->has_headers ? method_name(t->exchange.method) : "-",
        .outcome = ifd_metric_outcome(t->exchange.outcome),
        .path = t->exchange.path,
        .client = client,
        .caller = t->exchange.caller,
        .source = t->exchange.source,
        .status = status,
        .body_bytes = t->body.size,
        .answer_bytes = t->answer_bytes,
        .took_ns = t->exchange.ended_ns - t->exchange.received_ns,
    };
    ifd_access_debug(options->log, &access);
    if (!t->listener->page) {
        ifd_access_log_add(options->access_log, &access);
    }
}

static void free_connection(struct ifd_connection *c)
{
    c->taken_bytes += c->transfer->wire_bytes;
    c->transfer = NULL;
    c->since_ms = c->looked_ms = ifd_http_now_ms(c->listener->http);
    c->seen_bytes = c->dirty_ms = 0;
    c->was_busy = true;
}

void ifd_transfer_end(struct ifd_transfer *t, bool is_complete, int page_status,
                      const struct sockaddr *client)
{
    int status = status_of(t, is_complete, page_status);
    t->exchange.outcome = outcome_of(t, is_complete);
    t->exchange.ended_ns = ifd_monotonic_ns();
    count_end(t, status);
    log_end(t, status, client);
    if (t->is_open) {
        ifd_api_close(t->listener->http->options.api, &t->exchange);
    }
    free_connection(t->connection);
    recycle(t);
}
