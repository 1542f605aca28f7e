/* libmicrohttpd inside the loop: connections in, exchanges out. The only file that knows the library.
 *
 * Life of a transfer: RECEIVING (headers, then body) or SWALLOWING (refused already, the small rest of the body is read so
 * that the connection can stay) → WAITING (the API has it; the connection is suspended unless the answer came at once)
 * → ANSWERED (handed to the library) → completed(). GONE: nobody to answer any more. */
#include "server/net/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "engine/base/clock.h"
#include "engine/base/str.h"
#include "server/net/body.h"
#include "server/net/gate.h"

/* Per connection, for the request line and headers; the rest buffers body bytes between two reads. The library clears all
 * of it after every request, so more costs time. */
#define CONNECTION_MEMORY_BYTES ((size_t)16384)
/* What a request may hold beside its body: decoded JSON tensors are the largest part. */
#define ARENA_CAP_BYTES ((size_t)1 << 30)
/* A request that held more gives it back; the memory of smaller ones serves the next request. */
#define ARENA_KEEP_BYTES ((size_t)1 << 16)
/* A refused body up to this size is read and forgotten, so that the connection stays usable. */
#define SWALLOW_MAX_BYTES ((size_t)1 << 20)
/* Answers up to this size are copied together, so that head and body leave in one system call. */
#define FLAT_ANSWER_BYTES ((size_t)16384)
#define SWEEP_MS          250
#define SWEEP_FDS         64
#define SPARE_TRANSFERS   128
#define LISTENERS_MAX     4

enum state { RECEIVING, SWALLOWING, WAITING, ANSWERED, GONE };

struct listener;

struct transfer {
    struct ifd_http_exchange exchange;
    struct listener *listener;
    struct MHD_Connection *connection;
    struct ifd_arena arena;
    struct ifd_body body;
    size_t url_bytes, swallowed_bytes, answer_bytes;
    enum state state;
    bool has_headers, is_chunked, is_open, is_in_handler, is_suspended, is_abandoned, is_late;
    struct transfer *previous, *next; /* in http->receiving or http->suspended, oldest first */
    struct list *list;
};

struct list {
    struct transfer *first, *last;
};

struct listener {
    struct ifd_http *http;
    struct MHD_Daemon *daemon;
    struct ifd_watch *watch;
    struct ifd_timer *timer;
    uint64_t due_ms; /* of the timer, while it is active */
    bool needs_run, is_local_admin;
    ifd_http_page_fn page; /* answers instead of the API; NULL: the API */
    void *page_arg;
    struct ifd_metric_set *metrics; /* NULL: nothing is counted */
    uint32_t connections;
};

struct ifd_http {
    struct ifd_http_options options;
    struct listener listener[LISTENERS_MAX];
    uint32_t listener_count;
    struct list receiving, suspended;
    struct transfer *spare;
    uint32_t spare_count, open_count, waiting_count;
    struct ifd_timer *sweep;
    bool is_draining;
    ifd_loop_fn on_idle;
    void *on_idle_arg;
};

/* ---- lists ---- */

static void unlist(struct transfer *t)
{
    if (!t->list) {
        return;
    }
    *(t->previous ? &t->previous->next : &t->list->first) = t->next;
    *(t->next ? &t->next->previous : &t->list->last) = t->previous;
    t->list = NULL;
    t->previous = t->next = NULL;
}

static void enlist(struct list *list, struct transfer *t)
{
    unlist(t);
    t->list = list;
    t->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = t;
    list->last = t;
    struct ifd_http *http = t->listener->http;
    if (!ifd_timer_is_active(http->sweep)) {
        ifd_timer_start(http->sweep, SWEEP_MS, SWEEP_MS);
    }
}

/* ---- running the library ---- */

static void run_listener(void *arg)
{
    struct listener *l = arg;
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    bool has_timeout = false;
    /* One run is not enough: what a run makes ready is sent by the next. */
    for (int i = 0; i < 64; i++) {
        (void)MHD_run(l->daemon);
        has_timeout = MHD_get_timeout(l->daemon, &timeout_ms) == MHD_YES;
        if (!has_timeout || timeout_ms > 0) {
            break;
        }
    }
    l->needs_run = false;
    uint64_t due_ms = ifd_loop_now_ms(l->http->options.loop) + timeout_ms;
    bool is_active = ifd_timer_is_active(l->timer);
    if (has_timeout && (!is_active || due_ms < l->due_ms)) {
        l->due_ms = due_ms;
        ifd_timer_start(l->timer, timeout_ms, 0);
    }
}

static void run_needed(void *arg)
{
    struct ifd_http *http = arg;
    for (uint32_t i = 0; i < http->listener_count; i++) {
        if (http->listener[i].needs_run) {
            run_listener(&http->listener[i]);
        }
    }
}

static void resume(struct transfer *t)
{
    unlist(t);
    if (t->is_suspended) {
        t->is_suspended = false;
        t->listener->http->waiting_count--;
        MHD_resume_connection(t->connection);
        t->listener->needs_run = true;
    }
}

/* ---- transfers ---- */

static struct ifd_str header_value(const struct ifd_http_exchange *exchange, const char *name)
{
    const struct transfer *t = exchange->transport;
    const char *value = NULL;
    size_t size = 0;
    if (MHD_lookup_connection_value_n(t->connection, MHD_HEADER_KIND, name, strlen(name), &value,
                                      &size) != MHD_YES) {
        return (struct ifd_str){0};
    }
    return ifd_str_trim((struct ifd_str){.data = value, .size = size});
}

static void respond(struct ifd_http_exchange *exchange)
{
    struct transfer *t = exchange->transport;
    t->state = t->is_abandoned ? GONE : ANSWERED;
    if (!t->is_in_handler) {
        resume(t);
    }
}

static struct transfer *new_transfer(struct listener *l)
{
    struct ifd_http *http = l->http;
    struct transfer *t = http->spare;
    if (t) {
        http->spare = t->next;
        http->spare_count--;
    } else {
        t = ifd_acquire_zeroed(http->options.alloc, 1, sizeof(*t));
        if (!t) {
            return NULL;
        }
        ifd_arena_init(&t->arena, http->options.alloc, ARENA_CAP_BYTES);
        ifd_body_init(&t->body, http->options.alloc);
    }
    t->listener = l;
    t->next = NULL;
    http->open_count++;
    return t;
}

static void free_transfer(struct ifd_http *http, struct transfer *t)
{
    ifd_body_finish(&t->body);
    ifd_arena_finish(&t->arena);
    ifd_release(http->options.alloc, t, sizeof(*t));
}

static void recycle(struct transfer *t)
{
    struct ifd_http *http = t->listener->http;
    ifd_body_release(&t->body);
    if (t->arena.used_bytes > ARENA_KEEP_BYTES) {
        ifd_arena_finish(&t->arena);
        ifd_arena_init(&t->arena, http->options.alloc, ARENA_CAP_BYTES);
    } else {
        ifd_arena_reset(&t->arena);
    }
    *t = (struct transfer){.arena = t->arena, .body = t->body};
    if (http->spare_count < SPARE_TRANSFERS) {
        t->next = http->spare;
        http->spare = t;
        http->spare_count++;
    } else {
        free_transfer(http, t);
    }
    http->open_count--;
    if (http->is_draining && http->open_count == 0 && http->on_idle) {
        http->on_idle(http->on_idle_arg);
    }
}

/* ---- answers ---- */

static size_t total_bytes(const struct ifd_http_response *r)
{
    size_t total = 0;
    for (uint32_t i = 0; i < r->piece_count; i++) {
        total += r->piece[i].size;
    }
    return total;
}

static struct MHD_Response *flat_response(struct transfer *t, size_t total)
{
    const struct ifd_http_response *r = &t->exchange.response;
    char *flat = NULL;
    if (r->piece_count == 1) {
        /* The library does not write to it; its parameter is not const for historic reasons. */
        flat = (char *)(uintptr_t)r->piece[0].data;
    } else {
        flat = ifd_arena_take(&t->arena, total);
        if (!flat) {
            return NULL;
        }
        size_t at = 0;
        for (uint32_t i = 0; i < r->piece_count; i++) {
            if (r->piece[i].size > 0) {
                memcpy(flat + at, r->piece[i].data, r->piece[i].size);
            }
            at += r->piece[i].size;
        }
    }
    return MHD_create_response_from_buffer(total, flat, MHD_RESPMEM_PERSISTENT);
}

static struct MHD_Response *pieces_response(const struct ifd_http_response *r)
{
    struct MHD_IoVec vec[IFD_HTTP_PIECES_MAX];
    unsigned int count = 0;
    for (uint32_t i = 0; i < r->piece_count; i++) {
        if (r->piece[i].size > 0) {
            vec[count].iov_base = r->piece[i].data;
            vec[count].iov_len = r->piece[i].size;
            count++;
        }
    }
    return MHD_create_response_from_iovec(vec, count, NULL, NULL);
}

static enum MHD_Result send_answer(struct transfer *t)
{
    const struct ifd_http_response *r = &t->exchange.response;
    size_t total = total_bytes(r);
    struct MHD_Response *response =
        total <= FLAT_ANSWER_BYTES ? flat_response(t, total) : pieces_response(r);
    if (!response) {
        return MHD_NO;
    }
    t->answer_bytes = total;
    bool ok = true;
    for (uint32_t i = 0; i < r->header_count; i++) {
        ok = ok && MHD_add_response_header(response, r->header[i].name, r->header[i].value);
    }
    /* The library reads chunks more freely than others do (line ends, trailers): whatever it took for the end of the body,
     * nothing behind it is read as a request. */
    if (r->close_connection || t->is_chunked || t->listener->http->is_draining) {
        ok = ok && MHD_add_response_header(response, "Connection", "close");
    }
    enum MHD_Result result =
        ok ? MHD_queue_response(t->connection, (unsigned int)r->status, response) : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

/* Answers before the body was read: swallows a small body first, otherwise ends the connection. */
static enum MHD_Result answer_early(struct transfer *t, const struct ifd_gate *gate)
{
    uint64_t length = 0;
    bool has_length = gate->content_length > 0 && ifd_str_u64(gate->content_length_value, &length);
    bool has_body = gate->transfer_encoding > 0 || (gate->content_length > 0 && length > 0);
    bool is_small = has_length && length <= SWALLOW_MAX_BYTES && gate->content_length == 1 &&
                    gate->transfer_encoding == 0;
    if (!has_body || (is_small && gate->expect == 0 && !t->exchange.response.close_connection)) {
        t->state = SWALLOWING;
        return MHD_YES;
    }
    t->exchange.response.close_connection = true;
    t->state = ANSWERED;
    return send_answer(t);
}

static enum MHD_Result refuse(struct transfer *t, const struct ifd_gate *gate, int status,
                              const char *text)
{
    ifd_api_error(&t->exchange, status, text);
    t->exchange.response.close_connection = true;
    return answer_early(t, gate);
}

/* ---- callbacks of the library ---- */

static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct transfer *t = new_transfer(cls);
    if (!t) {
        return NULL;
    }
    t->connection = connection;
    t->state = RECEIVING;
    ifd_metric_add(t->listener->metrics, IFD_METRIC_HTTP_ACCEPTED, 0, 1);
    ifd_metric_add(t->listener->metrics, IFD_METRIC_HTTP_INFLIGHT, 0, 1);
    t->exchange = (struct ifd_http_exchange){
        .arena = &t->arena,
        .header = header_value,
        .respond = respond,
        .is_local_admin = t->listener->is_local_admin,
        .received_ns = ifd_monotonic_ns(),
        .transport = t,
    };
    enlist(&t->listener->http->receiving, t);
    t->url_bytes = strlen(uri);
    const char *copy = ifd_arena_text(&t->arena, uri, strlen(uri));
    if (copy) {
        struct ifd_str rest = ifd_gate_origin(ifd_str(copy));
        t->exchange.path = ifd_str_part(&rest, '?');
        t->exchange.query = rest.data ? rest : ifd_str("");
    }
    return t;
}

/* The path goes to the API as it came: what "%2F" means is decided there, once. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

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

static enum MHD_Result gate_field(void *cls, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    (void)kind;
    ifd_gate_field(cls, (struct ifd_str){.data = key, .size = key_size},
                   (struct ifd_str){.data = value, .size = value_size});
    return MHD_YES;
}

static void count_body_limit(const struct transfer *t, enum ifd_code code)
{
    ifd_metric_add(t->listener->metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_BODY,
                   code == IFD_TOO_LARGE);
}

static const char *check_header(const struct transfer *t, struct ifd_gate *gate, const char *url,
                                const char *method, const char *version, int *ret_status)
{
    /* The method is the first byte of the header as it lies in the library's buffer. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(t->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    /* The path's text goes on with the query. */
    const char *why =
        ifd_gate_request_line(gate, method, (struct ifd_str){.data = url, .size = t->url_bytes},
                              ifd_str(t->exchange.path.data), version, ret_status);
    (void)MHD_get_connection_values_n(t->connection, MHD_HEADER_KIND, gate_field, gate);
    if (info) {
        ifd_gate_end(gate, method + info->header_size);
    }
    return why ? why : ifd_gate_check(gate, strcmp(version, "HTTP/1.1") == 0, ret_status);
}

static enum MHD_Result on_headers(struct transfer *t, const char *url, const char *method,
                                  const char *version)
{
    struct ifd_gate gate = {0};
    struct ifd_err err = {0};
    uint64_t length = 0;
    int status = 0;
    t->has_headers = true;
    t->exchange.method = method_of(method);
    t->exchange.received_ns = ifd_monotonic_ns();
    const char *why = NULL;
    if (!t->exchange.path.data) {
        why = "no memory for the request";
        status = 503;
    } else {
        why = check_header(t, &gate, url, method, version, &status);
    }
    t->is_chunked = gate.transfer_encoding > 0;
    if (why) {
        return refuse(t, &gate, status, why);
    }
    if (t->listener->page) {
        t->listener->page(t->listener->page_arg, &t->exchange);
        return answer_early(t, &gate);
    }
    struct ifd_http_body_plan plan = {0};
    ifd_api_open(t->listener->http->options.api, &t->exchange, &plan);
    t->is_open = true;
    if (plan.answered) {
        return answer_early(t, &gate);
    }
    if (gate.content_length > 0 && !ifd_str_u64(gate.content_length_value, &length)) {
        return refuse(t, &gate, 400, "Content-Length is not a number");
    }
    enum ifd_code code =
        ifd_body_start(&t->body, (size_t)length, plan.cap_bytes, plan.align_at, &err);
    if (code) {
        count_body_limit(t, code);
        return refuse(t, &gate, code == IFD_TOO_LARGE ? 413 : 503, err.text);
    }
    return MHD_YES;
}

/* A body without a length that grew too large: the answer must wait until its end, so the rest is read, within reason. */
static enum MHD_Result on_body(struct transfer *t, const char *data, size_t size)
{
    struct ifd_err err = {0};
    if (t->state == SWALLOWING) {
        t->swallowed_bytes += size;
        return t->swallowed_bytes <= SWALLOW_MAX_BYTES ? MHD_YES : MHD_NO;
    }
    enum ifd_code code = ifd_body_add(&t->body, data, size, &err);
    if (code) {
        count_body_limit(t, code);
        ifd_api_error(&t->exchange, code == IFD_TOO_LARGE ? 413 : 503, err.text);
        t->exchange.response.close_connection = true;
        t->state = SWALLOWING;
    }
    return MHD_YES;
}

static enum MHD_Result on_complete(struct transfer *t)
{
    unlist(t);
    if (t->state == SWALLOWING) {
        t->state = ANSWERED;
        return send_answer(t);
    }
    t->state = WAITING;
    t->exchange.body = ifd_body_data(&t->body);
    t->exchange.body_size = t->body.size;
    t->is_in_handler = true;
    ifd_api_handle(t->listener->http->options.api, &t->exchange);
    t->is_in_handler = false;
    if (t->state == ANSWERED) {
        return send_answer(t);
    }
    t->is_suspended = true;
    t->listener->http->waiting_count++;
    MHD_suspend_connection(t->connection);
    enlist(&t->listener->http->suspended, t);
    return MHD_YES;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **context)
{
    (void)cls;
    (void)connection;
    struct transfer *t = *context;
    if (!t) {
        return MHD_NO; /* no memory for the transfer */
    }
    if (!t->has_headers) {
        return on_headers(t, url, method, version);
    }
    if (*size > 0) {
        size_t taken = *size;
        *size = 0;
        return on_body(t, data, taken);
    }
    switch (t->state) {
    case RECEIVING:
    case SWALLOWING:
        return on_complete(t);
    case ANSWERED: /* resumed */
        return send_answer(t);
    case WAITING:
    case GONE:
        break;
    }
    return MHD_NO;
}

static const char *method_name(enum ifd_http_method method)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "OPTIONS", "OTHER"};
    return names[method];
}

/* How it ended, for statistics. A request that the library itself refuses never gets to ANSWERED. */
static enum ifd_outcome outcome_of(const struct transfer *t, enum MHD_RequestTerminationCode why)
{
    if (t->is_late || why == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED) {
        return IFD_OUTCOME_TIMEOUT;
    }
    if (why != MHD_REQUEST_TERMINATED_COMPLETED_OK || t->state == GONE) {
        return IFD_OUTCOME_ABORTED;
    }
    return t->state == ANSWERED ? ifd_api_outcome(&t->exchange.response) : IFD_OUTCOME_CLIENT_ERROR;
}

static void count_end(const struct transfer *t, bool was_sent)
{
    struct ifd_metric_set *metrics = t->listener->metrics;
    ifd_metric_add(metrics, IFD_METRIC_HTTP_INFLIGHT, 0, (uint64_t)-1);
    ifd_metric_add(metrics, IFD_METRIC_HTTP_REQUESTS, (uint32_t)t->exchange.outcome, 1);
    ifd_metric_add(metrics, IFD_METRIC_HTTP_BODY_IN, 0, t->body.size);
    if (was_sent) {
        ifd_metric_add(metrics, IFD_METRIC_HTTP_BODY_OUT, 0, t->answer_bytes);
        ifd_metric_add(metrics, IFD_METRIC_HTTP_RESPONSES,
                       ifd_metric_status(t->exchange.response.status), 1);
    }
}

static void log_end(const struct transfer *t, bool was_sent)
{
    const struct ifd_http_options *options = &t->listener->http->options;
    const union MHD_ConnectionInfo *client =
        MHD_get_connection_info(t->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct ifd_access access = {
        .method = method_name(t->exchange.method),
        .outcome = ifd_metric_outcome((uint32_t)t->exchange.outcome),
        .path = t->exchange.path,
        .client = client ? client->client_addr : NULL,
        .status = was_sent ? t->exchange.response.status : 0,
        .body_bytes = t->body.size,
        .answer_bytes = t->answer_bytes,
        .took_ns = t->exchange.ended_ns - t->exchange.received_ns,
    };
    ifd_access_debug(options->log, &access);
    if (!t->listener->page) {
        ifd_access_log_add(options->access_log, &access);
    }
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
    (void)connection;
    struct listener *l = cls;
    struct transfer *t = *context;
    if (!t) {
        return;
    }
    *context = NULL;
    unlist(t);
    bool was_sent = t->state == ANSWERED && why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    t->exchange.outcome = outcome_of(t, why);
    t->exchange.ended_ns = ifd_monotonic_ns();
    count_end(t, was_sent);
    ifd_metric_add(l->metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_IDLE,
                   why == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED);
    log_end(t, was_sent);
    if (t->is_open) {
        ifd_api_close(l->http->options.api, &t->exchange);
    }
    recycle(t);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct listener *l = cls;
    struct ifd_metric_set *metrics = l->metrics;
    bool is_new = what == MHD_CONNECTION_NOTIFY_STARTED;
    l->connections += is_new ? 1 : (uint32_t)-1;
    ifd_metric_add(metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_CONNECTIONS,
                   is_new && l->connections == l->http->options.max_connections);
    (void)connection;
    (void)context;
    ifd_metric_add(metrics, IFD_METRIC_CONNECTIONS_ACCEPTED, 0, is_new);
    ifd_metric_add(metrics, IFD_METRIC_CONNECTIONS_OPEN, 0, is_new ? 1 : (uint64_t)-1);
}

/* ---- sweep: clients that left while they waited, clients that never finish their request ---- */

static int socket_of(const struct transfer *t)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(t->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void abandon(struct transfer *t)
{
    t->is_abandoned = true;
    if (ifd_api_abandon(t->listener->http->options.api, &t->exchange)) {
        t->state = GONE;
        resume(t);
    } else {
        unlist(t); /* respond() will come and resume it */
    }
}

static void end_receiving(struct transfer *t)
{
    unlist(t);
    (void)shutdown(socket_of(t), SHUT_RDWR); /* the library sees the end and completes it */
    t->listener->needs_run = true;
}

/* The client has closed in the middle of a request. The library misses that when data and end arrive together, because it
 * waits for another edge. */
static void end_if_cut_off(struct transfer *t)
{
    int unread = 0;
    if (ioctl(socket_of(t), FIONREAD, &unread) == 0 && unread == 0) {
        end_receiving(t);
    }
}

/* Calls fn for those whose client has closed. */
static void sweep_closed(struct list *list, uint64_t now_ns, void (*fn)(struct transfer *t))
{
    struct transfer *t = list->first;
    while (t) {
        struct pollfd fds[SWEEP_FDS];
        struct transfer *of[SWEEP_FDS];
        nfds_t count = 0;
        for (; t && count < SWEEP_FDS; t = t->next) {
            if (now_ns - t->exchange.received_ns < (uint64_t)SWEEP_MS * 1000000) {
                continue;
            }
            fds[count] = (struct pollfd){.fd = socket_of(t), .events = POLLRDHUP};
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
    struct transfer *next = NULL;
    for (struct transfer *t = http->receiving.first; t; t = next) {
        next = t->next;
        if (now_ns - t->exchange.received_ns >= limit_ns) {
            t->is_late = true;
            ifd_metric_add(t->listener->metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_RECEIVE, 1);
            end_receiving(t);
        }
    }
}

static void sweep(void *arg)
{
    struct ifd_http *http = arg;
    uint64_t now_ns = ifd_monotonic_ns();
    sweep_closed(&http->suspended, now_ns, abandon);
    sweep_closed(&http->receiving, now_ns, end_if_cut_off);
    sweep_late(http, now_ns);
    if (!http->suspended.first && !http->receiving.first) {
        ifd_timer_stop(http->sweep);
    }
}

/* ---- life ---- */

enum ifd_code ifd_http_create(const struct ifd_http_options *options, struct ifd_http **ret_http,
                              struct ifd_err *err)
{
    struct ifd_http *http = ifd_acquire_zeroed(options->alloc, 1, sizeof(*http));
    if (!http) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the HTTP server");
    }
    http->options = *options;
    enum ifd_code code = ifd_timer_create(options->loop, sweep, http, &http->sweep, err);
    if (code) {
        ifd_release(options->alloc, http, sizeof(*http));
        return code;
    }
    ifd_loop_before_wait(options->loop, run_needed, http);
    *ret_http = http;
    return IFD_OK;
}

/* The library closes a connection above the bound of its address without a callback: this is how it tells. (At the bound of
 * all connections it does not accept at all.) */
static void count_refusal(const struct listener *l, const char *text)
{
    if (strncmp(text, "Server reached connection limit", 31) == 0) {
        ifd_metric_add(l->metrics, IFD_METRIC_CONNECTIONS_REFUSED, IFD_REFUSAL_ADDRESS, 1);
        ifd_metric_add(l->metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_ADDRESS, 1);
    }
}

static void library_log(void *cls, const char *format, va_list args)
{
    const struct listener *l = cls;
    char text[256], quoted[300];
    (void)vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    count_refusal(l, text);
    ifd_log_debug(l->http->options.log, "http library", "text=%s",
                  ifd_log_quote(text, quoted, sizeof(quoted)));
}

static struct MHD_Daemon *start_daemon(struct listener *l, int fd)
{
    const struct ifd_http_options *o = &l->http->options;
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_access, l,
        MHD_OPTION_EXTERNAL_LOGGER, library_log, l, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        l, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, l, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)o->max_connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int)o->max_connections_per_address,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)o->idle_timeout_secs, MHD_OPTION_END);
}

/* as: what the listener is. */
static enum ifd_code serve(struct ifd_http *http, int fd, const struct listener *as,
                           struct ifd_err *err)
{
    if (http->listener_count == LISTENERS_MAX) {
        (void)close(fd);
        return ifd_fail(err, IFD_TOO_LARGE, "more than %d listening sockets", LISTENERS_MAX);
    }
    struct listener *l = &http->listener[http->listener_count];
    *l = *as;
    l->daemon = start_daemon(l, fd);
    if (!l->daemon) {
        (void)close(fd);
        return ifd_fail(err, IFD_INTERNAL, "the HTTP library did not start");
    }
    http->listener_count++;
    int epoll_fd = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    enum ifd_code code =
        ifd_watch_create(http->options.loop, epoll_fd, run_listener, l, &l->watch, err);
    if (!code) {
        code = ifd_timer_create(http->options.loop, run_listener, l, &l->timer, err);
    }
    return code;
}

enum ifd_code ifd_http_serve(struct ifd_http *http, int fd, bool is_local_admin,
                             struct ifd_err *err)
{
    const struct listener as = {
        .http = http, .is_local_admin = is_local_admin, .metrics = http->options.metrics};
    return serve(http, fd, &as, err);
}

enum ifd_code ifd_http_serve_page(struct ifd_http *http, int fd, ifd_http_page_fn fn, void *arg,
                                  struct ifd_err *err)
{
    const struct listener as = {.http = http, .page = fn, .page_arg = arg};
    return serve(http, fd, &as, err);
}

void ifd_http_drain(struct ifd_http *http, ifd_loop_fn on_idle, void *arg)
{
    http->is_draining = true;
    for (uint32_t i = 0; i < http->listener_count; i++) {
        if (http->listener[i].page) {
            continue;
        }
        MHD_socket fd = MHD_quiesce_daemon(http->listener[i].daemon);
        if (fd != MHD_INVALID_SOCKET) {
            (void)close(fd);
        }
    }
    if (http->open_count == 0) {
        on_idle(arg);
        return;
    }
    http->on_idle = on_idle;
    http->on_idle_arg = arg;
}

uint32_t ifd_http_open_count(const struct ifd_http *http)
{
    return http->open_count;
}

uint32_t ifd_http_waiting_count(const struct ifd_http *http)
{
    return http->waiting_count;
}

void ifd_http_destroy(struct ifd_http *http)
{
    if (!http) {
        return;
    }
    http->on_idle = NULL;
    ifd_loop_before_wait(http->options.loop, NULL, NULL);
    run_needed(http);
    for (uint32_t i = 0; i < http->listener_count; i++) {
        struct listener *l = &http->listener[i];
        ifd_watch_destroy(l->watch);
        ifd_timer_destroy(l->timer);
        MHD_stop_daemon(l->daemon);
    }
    ifd_timer_destroy(http->sweep);
    while (http->spare) {
        struct transfer *t = http->spare;
        http->spare = t->next;
        free_transfer(http, t);
    }
    ifd_release(http->options.alloc, http, sizeof(*http));
}
