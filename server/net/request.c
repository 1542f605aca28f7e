/* The course of a request: gate, API, body, answer. Knows no sockets. */
#include "server/net/http_impl.h"

#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/str.h"

/* A refused body up to this size is read and dropped, so that the connection stays usable. */
#define SWALLOW_MAX_BYTES ((size_t)1 << 20)
/* The API is told when this much of a body is missing: 10 µs before its end from the same machine,
 * 260 µs at 1 Gbit/s. Waking a thread takes 5 to 50 µs. */
#define COMING_BYTES ((size_t)32 << 10)

static enum ifd_http_method method_of(const char *method)
{
    static const struct {
        const char *name;
        enum ifd_http_method method;
    } table[] = {{"GET", IFD_HTTP_GET},
                 {"POST", IFD_HTTP_POST},
                 {"HEAD", IFD_HTTP_HEAD},
                 {"OPTIONS", IFD_HTTP_OPTIONS}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(method, table[i].name) == 0) {
            return table[i].method;
        }
    }
    return IFD_HTTP_OTHER;
}

/* The library reads chunks more leniently than others (line ends, trailers), so nothing behind a
 * chunked body is read as a request. */
bool ifd_request_closes(const struct ifd_transfer *t)
{
    return t->exchange.response.close_connection || t->is_chunked || t->connection->is_probe ||
           t->listener->http->is_draining;
}

static enum ifd_next answered(struct ifd_transfer *t)
{
    t->state = IFD_TRANSFER_ANSWERED;
    t->since_ms = ifd_http_now_ms(t->listener->http);
    t->connection->send_pace = (struct ifd_pace){.since_ms = t->since_ms};
    return IFD_NEXT_SEND;
}

/* Answers before the body is read: reads and drops a small body first, otherwise closes the
 * connection. */
static enum ifd_next answer_early(struct ifd_transfer *t, const struct ifd_gate *gate)
{
    uint64_t length = 0;
    bool has_length = gate->content_length > 0 && ifd_str_u64(gate->content_length_value, &length);
    bool has_body = gate->transfer_encoding > 0 || (gate->content_length > 0 && length > 0);
    bool is_small = has_length && length <= SWALLOW_MAX_BYTES && gate->content_length == 1 &&
                    gate->transfer_encoding == 0;
    if (!has_body || (is_small && gate->expect == 0 && !t->exchange.response.close_connection)) {
        t->state = IFD_TRANSFER_SWALLOWING;
        return IFD_NEXT_READ;
    }
    t->exchange.response.close_connection = true;
    t->connection->wants_linger = true;
    return answered(t);
}

static enum ifd_next refuse(struct ifd_transfer *t, const struct ifd_gate *gate, int status,
                            const char *text)
{
    ifd_api_error(&t->exchange, status, text);
    t->exchange.response.close_connection = true;
    return answer_early(t, gate);
}

static void count_body_limit(const struct ifd_transfer *t, enum ifd_code code)
{
    ifd_metric_add(t->listener->metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_BODY,
                   code == IFD_TOO_LARGE);
}

/* Requests that a full server still answers. */
static bool is_probe_path(struct ifd_str path)
{
    return ifd_str_equal(path, "/v2/health/live") || ifd_str_equal(path, "/v2/health/ready");
}

static void tell_coming(struct ifd_transfer *t)
{
    if (!t->is_told && t->body_bytes - t->body.size <= COMING_BYTES) {
        t->is_told = true;
        ifd_api_coming(t->listener->http->options.api, &t->exchange);
    }
}

enum ifd_next ifd_request_headers(struct ifd_transfer *t, const struct ifd_gate *gate,
                                  const char *method, const char *why, int status)
{
    struct ifd_err err = {0};
    uint64_t length = 0;
    t->has_headers = true;
    t->is_chunked = gate->transfer_encoding > 0;
    if (gate->content_length > 0 && ifd_str_u64(gate->content_length_value, &length)) {
        t->wire_bytes += length;
    }
    t->exchange.method = method_of(method);
    t->exchange.received_ns = ifd_monotonic_ns();
    t->since_ms = t->receive_pace.since_ms = ifd_http_now_ms(t->listener->http);
    if (why) {
        if (status == 431) {
            ifd_count_limit(t->listener->metrics, IFD_LIMIT_HEADER);
        }
        return refuse(t, gate, status, why);
    }
    if (t->connection->is_probe && !is_probe_path(t->exchange.path)) {
        ifd_count_limit(t->listener->metrics, IFD_LIMIT_CONNECTIONS);
        ifd_metric_add(t->listener->metrics, IFD_METRIC_CONNECTIONS_REFUSED,
                       IFD_REFUSAL_CONNECTIONS, 1);
        return refuse(t, gate, 503, "too many connections");
    }
    if (t->listener->page) {
        t->listener->page(t->listener->page_arg, &t->exchange);
        return answer_early(t, gate);
    }
    struct ifd_http_body_plan plan = {0};
    ifd_api_open(t->listener->http->options.api, &t->exchange, &plan);
    t->is_open = true;
    if (plan.answered) {
        return answer_early(t, gate);
    }
    enum ifd_code code =
        ifd_body_start(&t->body, (size_t)length, plan.cap_bytes, plan.align_at, &err);
    if (code) {
        count_body_limit(t, code);
        return refuse(t, gate, code == IFD_TOO_LARGE ? 413 : 503, err.text);
    }
    t->body_bytes = (size_t)length;
    tell_coming(t);
    return IFD_NEXT_READ;
}

/* If a body without a length grows too large, the answer must wait for its end; the rest is read up
 * to a limit. */
enum ifd_next ifd_request_body(struct ifd_transfer *t, const void *data, size_t size)
{
    struct ifd_err err = {0};
    if (t->state == IFD_TRANSFER_SWALLOWING) {
        t->swallowed_bytes += size;
        return t->swallowed_bytes <= SWALLOW_MAX_BYTES ? IFD_NEXT_READ : IFD_NEXT_CLOSE;
    }
    enum ifd_code code = ifd_body_add(&t->body, data, size, &err);
    if (code) {
        count_body_limit(t, code);
        ifd_api_error(&t->exchange, code == IFD_TOO_LARGE ? 413 : 503, err.text);
        t->exchange.response.close_connection = true;
        t->state = IFD_TRANSFER_SWALLOWING;
        return IFD_NEXT_READ;
    }
    tell_coming(t);
    return IFD_NEXT_READ;
}

static enum ifd_next handle(struct ifd_transfer *t)
{
    if (t->state == IFD_TRANSFER_SWALLOWING) {
        return answered(t);
    }
    t->state = IFD_TRANSFER_WAITING;
    t->exchange.body = ifd_body_data(&t->body);
    t->exchange.body_size = t->body.size;
    t->is_in_handler = true;
    ifd_api_handle(t->listener->http->options.api, &t->exchange);
    t->is_in_handler = false;
    return t->state == IFD_TRANSFER_ANSWERED ? answered(t) : IFD_NEXT_SUSPEND;
}

enum ifd_next ifd_request_ready(struct ifd_transfer *t)
{
    switch (t->state) {
    case IFD_TRANSFER_RECEIVING:
    case IFD_TRANSFER_SWALLOWING:
        return handle(t);
    case IFD_TRANSFER_ANSWERED: /* resumed */
        return answered(t);
    case IFD_TRANSFER_WAITING:
    case IFD_TRANSFER_GONE:
        break;
    }
    return IFD_NEXT_CLOSE;
}

void ifd_request_respond(struct ifd_http_exchange *exchange)
{
    struct ifd_transfer *t = exchange->transport;
    t->state = t->is_abandoned ? IFD_TRANSFER_GONE : IFD_TRANSFER_ANSWERED;
    if (!t->is_in_handler) {
        ifd_mhd_resume(t);
    }
}

void ifd_request_abandon(struct ifd_transfer *t)
{
    t->is_abandoned = true;
    if (ifd_api_abandon(t->listener->http->options.api, &t->exchange)) {
        t->state = IFD_TRANSFER_GONE;
        ifd_mhd_resume(t);
    } /* else respond() will come and resume it */
}
