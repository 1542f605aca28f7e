/* libmicrohttpd in the loop: callbacks and answers. The only file that knows the library. */
#include "server/net/http_impl.h"

#include <stdio.h>
#include <limits.h>
#include <string.h>

#include <microhttpd.h>

#include "engine/base/str.h"

/* Per connection, or twice the largest header: the header, the library's records of it, and the
 * head of the answer. The rest buffers body bytes between two reads. The library clears all of it
 * after every request, so more costs time. */
#define CONNECTION_MEMORY_BYTES ((size_t)16384)
/* The library's other objects of a connection and an answer, with the overhead of malloc: about
 * 1,700 bytes. */
#define CONNECTION_OBJECT_BYTES ((size_t)2048)
/* Smaller answers of several pieces are copied together, so that head and body leave in one system
 * call. */
#define FLAT_ANSWER_BYTES ((size_t)16384)
/* If one run of the library made this many answers, those of the next run are sent together. For
 * fewer answers the second run costs as much as it saves. */
#define CROWD 8

/* ---- waiting ---- */

static void suspend(struct ifd_transfer *t)
{
    t->is_suspended = true;
    t->listener->http->waiting_count++;
    MHD_suspend_connection(t->connection->library);
}

void ifd_mhd_resume(struct ifd_transfer *t)
{
    if (t->is_suspended) {
        t->is_suspended = false;
        t->listener->http->waiting_count--;
        MHD_resume_connection(t->connection->library);
        t->listener->needs_run = true;
    }
}

struct ifd_str ifd_mhd_raw_header(const struct ifd_transfer *t, const char *name)
{
    const char *value = NULL;
    size_t size = 0;
    (void)MHD_lookup_connection_value_n(t->connection->library, MHD_HEADER_KIND, name, strlen(name),
                                        &value, &size);
    return (struct ifd_str){.data = value, .size = size};
}

struct ifd_str ifd_mhd_header(const struct ifd_http_exchange *exchange, const char *name)
{
    struct ifd_str value = ifd_mhd_raw_header(exchange->transport, name);
    return value.data ? ifd_str_trim(value) : value;
}

/* ---- faults ---- */

/* A suspended connection is neither read, parsed nor sent from this moment on. */
void ifd_mhd_hold(struct ifd_connection *c)
{
    MHD_suspend_connection(c->library);
}

void ifd_mhd_let_go(struct ifd_connection *c)
{
    MHD_resume_connection(c->library);
    c->listener->needs_run = true;
}

/* The system reports the end at once, except of a connection that was held while its buffer was
 * full: the library looks at that one only after a timeout, in seconds. */
void ifd_mhd_shut(struct ifd_connection *c)
{
    (void)MHD_set_connection_option(c->library, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
}

int ifd_mhd_page_status(const struct ifd_connection *c)
{
    const union MHD_ConnectionInfo *page =
        MHD_get_connection_info(c->library, MHD_CONNECTION_INFO_HTTP_STATUS);
    return page ? (int)page->http_status : 0;
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

/* Copies the pieces of a small answer into one; false: no memory. */
static bool flatten(struct ifd_transfer *t, size_t total, struct ifd_http_piece *ret_piece)
{
    const struct ifd_http_response *r = &t->exchange.response;
    if (r->piece_count == 1) {
        *ret_piece = r->piece[0];
        return true;
    }
    char *flat = ifd_arena_take(&t->arena, total);
    if (!flat) {
        return false;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < r->piece_count; i++) {
        if (r->piece[i].size > 0) {
            memcpy(flat + at, r->piece[i].data, r->piece[i].size);
        }
        at += r->piece[i].size;
    }
    *ret_piece = (struct ifd_http_piece){.data = flat, .size = total};
    return true;
}

static struct MHD_Response *pieces_response(const struct ifd_http_piece *piece,
                                            uint32_t piece_count)
{
    struct MHD_IoVec vec[IFD_HTTP_PIECES_MAX];
    unsigned int count = 0;
    for (uint32_t i = 0; i < piece_count; i++) {
        if (piece[i].size > 0) {
            vec[count].iov_base = piece[i].data;
            vec[count].iov_len = piece[i].size;
            count++;
        }
    }
    return MHD_create_response_from_iovec(vec, count, NULL, NULL);
}

/* fields: pairs of texts, each ended by NUL. */
static struct MHD_Response *make_response(const struct ifd_http_piece *piece, uint32_t piece_count,
                                          const struct ifd_http_header *field, uint32_t field_count)
{
    struct MHD_Response *response =
        piece_count == 1
            /* The library does not write to it; its parameter is not const for historic reasons. */
            ? MHD_create_response_from_buffer(piece->size, (void *)(uintptr_t)piece->data,
                                              MHD_RESPMEM_PERSISTENT)
            : pieces_response(piece, piece_count);
    bool ok = response;
    for (uint32_t i = 0; i < field_count && ok; i++) {
        ok = MHD_add_response_header(response, field[i].name, field[i].value);
    }
    if (response && !ok) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

static bool note_text(struct ifd_kept_answer *note, const char *text)
{
    const size_t size = strlen(text) + 1;
    if (size > sizeof(note->fields) - note->field_bytes) {
        return false;
    }
    memcpy(note->fields + note->field_bytes, text, size);
    note->field_bytes += size;
    return true;
}

/* Notes the parts of an answer; no pieces: it is too large to be kept. */
static void note_answer(struct ifd_kept_answer *note, const struct ifd_http_piece *piece,
                        uint32_t piece_count, const struct ifd_http_header *field,
                        uint32_t field_count)
{
    bool fits = piece_count <= IFD_ANSWER_KEPT_PIECES;
    for (uint32_t i = 0; i < piece_count && fits; i++) {
        note->piece[i] = piece[i];
    }
    for (uint32_t i = 0; i < field_count && fits; i++) {
        fits = note_text(note, field[i].name) && note_text(note, field[i].value);
    }
    note->piece_count = fits ? piece_count : 0;
}

static bool is_same(const struct ifd_kept_answer *a, const struct ifd_kept_answer *b)
{
    bool is_same = a->piece_count > 0 && a->piece_count == b->piece_count &&
                   a->field_bytes == b->field_bytes &&
                   memcmp(a->fields, b->fields, a->field_bytes) == 0;
    for (uint32_t i = 0; i < a->piece_count && is_same; i++) {
        is_same = a->piece[i].data == b->piece[i].data && a->piece[i].size == b->piece[i].size;
    }
    return is_same;
}

void ifd_mhd_release(struct ifd_kept_answer *kept)
{
    if (kept->library) {
        MHD_destroy_response(kept->library);
        kept->library = NULL;
    }
}

/* The library's object for these pieces and fields, kept with the transfer that owns their
 * memory. */
static struct MHD_Response *response_of(struct ifd_transfer *t, const struct ifd_http_piece *piece,
                                        uint32_t piece_count, const struct ifd_http_header *field,
                                        uint32_t field_count)
{
    struct ifd_kept_answer note;
    note.library = NULL;
    note.field_bytes = 0;
    note_answer(&note, piece, piece_count, field, field_count);
    if (t->kept.library && is_same(&t->kept, &note)) {
        return t->kept.library;
    }
    ifd_mhd_release(&t->kept);
    t->kept = note;
    t->kept.library = make_response(piece, piece_count, field, field_count);
    return t->kept.library;
}

static enum MHD_Result send_answer(struct ifd_transfer *t)
{
    const struct ifd_http_response *r = &t->exchange.response;
    struct ifd_http_header field[IFD_HTTP_HEADERS_MAX + IFD_CORS_HEADERS_MAX + 1];
    struct ifd_http_piece flat;
    struct MHD_Response *response = NULL;
    uint32_t field_count = r->header_count;
    memcpy(field, r->header, field_count * sizeof(field[0]));
    if (!t->listener->page) {
        field_count +=
            ifd_api_cors_headers(t->listener->http->options.api, &t->exchange, field + field_count);
    }
    if (ifd_request_closes(t)) {
        field[field_count++] = (struct ifd_http_header){.name = "Connection", .value = "close"};
    }
    t->answer_bytes = total_bytes(r);
    if (t->answer_bytes > FLAT_ANSWER_BYTES) {
        response = response_of(t, r->piece, r->piece_count, field, field_count);
    } else if (flatten(t, t->answer_bytes, &flat)) {
        response = response_of(t, &flat, 1, field, field_count);
    }
    return response ? MHD_queue_response(t->connection->library, (unsigned int)r->status, response)
                    : MHD_NO;
}

/* ---- callbacks: a request ---- */

/* Empties the query in the library's receive buffer. The library would parse the query into unused
 * records; without room for a record it makes an answer and then continues as if it had not, until
 * the client times out. */
static void hide_query(const char *uri)
{
    const char *query = strchr(uri, '?');
    if (query && query[1] != '\0') {
        ((char *)(uintptr_t)query)[1] = '\0';
    }
}

static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *connection)
{
    (void)cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct ifd_transfer *t = ifd_transfer_begin(info->socket_context, uri);
    hide_query(uri); /* t has its own copy */
    return t;
}

/* The API gets the path as received and decodes "%2F" itself. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

static enum MHD_Result gate_field(void *cls, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    (void)kind;
    ifd_gate_field(cls, (struct ifd_str){.data = key, .size = key_size},
                   (struct ifd_str){.data = value, .size = value_size});
    return MHD_YES;
}

static const char *check_header(struct ifd_transfer *t, struct ifd_gate *gate, const char *url,
                                const char *method, const char *version, int *ret_status)
{
    if (!t->exchange.path.data) {
        *ret_status = 503;
        return "no memory for the request";
    }
    /* The method is at the first byte of the header in the library's buffer. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(t->connection->library, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    /* The path's text goes on with the query. */
    const char *why =
        ifd_gate_request_line(gate, method, (struct ifd_str){.data = url, .size = t->url_bytes},
                              ifd_str(t->exchange.path.data), version, ret_status);
    (void)MHD_get_connection_values_n(t->connection->library, MHD_HEADER_KIND, gate_field, gate);
    if (info) {
        ifd_gate_end(gate, method + info->header_size);
        t->wire_bytes = info->header_size;
    }
    if (info && info->header_size > t->listener->http->options.max_header_bytes) {
        *ret_status = 431;
        return "the header is larger than --http-max-header-size";
    }
    return why ? why : ifd_gate_check(gate, strcmp(version, "HTTP/1.1") == 0, ret_status);
}

static enum ifd_next on_headers(struct ifd_transfer *t, const char *url, const char *method,
                                const char *version)
{
    struct ifd_gate gate = {0};
    int status = 0;
    const char *why = check_header(t, &gate, url, method, version, &status);
    return ifd_request_headers(t, &gate, method, why, status);
}

static enum MHD_Result go_on(struct ifd_transfer *t, enum ifd_next next)
{
    switch (next) {
    case IFD_NEXT_READ:
        return MHD_YES;
    case IFD_NEXT_SEND:
        return send_answer(t);
    case IFD_NEXT_SUSPEND:
        suspend(t);
        return MHD_YES;
    case IFD_NEXT_CLOSE:
        break;
    }
    return MHD_NO;
}

/* Immediate answers to many requests are not sent between reading one request and the next, but
 * together: a library that gets no answer asks for it in its next run. Waking a local client's
 * thread for each answer costs a tenth of a small request; this way the thread finds several
 * answers. */
static bool waits_for_others(struct ifd_listener *l)
{
    l->answers++;
    return l->answers_before >= CROWD;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **context)
{
    (void)cls;
    (void)connection;
    struct ifd_transfer *t = *context;
    if (!t) {
        return MHD_NO; /* no memory for the transfer */
    }
    t->connection->listener->http->calls++;
    if (!t->has_headers) {
        return go_on(t, on_headers(t, url, method, version));
    }
    if (*size > 0) {
        size_t taken = *size;
        *size = 0;
        return go_on(t, ifd_request_body(t, data, taken));
    }
    const bool is_new = t->state != IFD_TRANSFER_ANSWERED; /* neither resumed nor delayed */
    const enum ifd_next next = ifd_request_ready(t);
    return next == IFD_NEXT_SEND && is_new && waits_for_others(t->listener) ? MHD_YES
                                                                            : go_on(t, next);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
    (void)cls;
    struct ifd_transfer *t = *context;
    if (!t) {
        return;
    }
    *context = NULL;
    const union MHD_ConnectionInfo *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    ifd_transfer_end(t, why == MHD_REQUEST_TERMINATED_COMPLETED_OK,
                     ifd_mhd_page_status(t->connection), client ? client->client_addr : NULL);
}

/* ---- callbacks: a connection ---- */

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct ifd_listener *l = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = l->accepting;
        l->accepting->library = connection;
        l->accepting = NULL;
    } else {
        ifd_connection_end(*context);
    }
}

bool ifd_mhd_take(struct ifd_listener *l, int fd, const struct sockaddr *address, socklen_t size)
{
    if (MHD_add_connection(l->daemon, fd, address, size) == MHD_YES) {
        return true;
    }
    if (l->accepting) {
        l->accepting->fd = -1; /* closed already */
        ifd_connection_end(l->accepting);
        l->accepting = NULL;
    }
    return false;
}

/* The library reports faults only in its log. */
static void library_log(void *cls, const char *format, va_list args)
{
    struct ifd_listener *l = cls;
    char text[256];
    (void)vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    ifd_fault_heed(l, text);
    ifd_log_debug(l->http->options.log, "HTTP library logged", "text=%s", text);
}

/* ---- running ---- */

/* Runs of the library in one turn of the loop. While a client's chunk extension or trailer fills
 * the buffer, the library asks for another run for ever, until our rate or deadline ends that
 * client. Everything else needs few runs. */
#define RUNS_MAX      64
#define SPINNING_RUNS 4

void ifd_mhd_run(void *arg)
{
    struct ifd_listener *l = arg;
    const struct ifd_http_options *options = &l->http->options;
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    bool has_timeout = false;
    const uint64_t calls = l->http->calls;
    /* A run sends what the run before made ready. */
    const int most = l->is_spinning ? SPINNING_RUNS : RUNS_MAX;
    bool is_settled = true; /* no connection is held by a fault of another */
    for (int i = 0; i < most || !is_settled; i++) {
        l->needs_run = false;
        (void)MHD_run(l->daemon);
        is_settled = !ifd_fault_settle(l);
        if (l->answers > 0) {
            l->answers_before = l->answers;
            l->answers = 0;
        }
        if (options->after_turn) {
            options->after_turn(options->after_turn_arg);
        }
        has_timeout = MHD_get_timeout(l->daemon, &timeout_ms) == MHD_YES;
        /* A frame that was replaced is answered while the library reads the newer one. */
        if (is_settled && !l->needs_run && (!has_timeout || timeout_ms > 0)) {
            break;
        }
    }
    l->is_spinning = has_timeout && timeout_ms == 0 && l->http->calls == calls;
    if (has_timeout) { /* a timer that is always due would block the loop while spinning */
        ifd_timer_start(l->timer, l->is_spinning ? 1 : timeout_ms, 0);
    }
}

/* ---- life ---- */

static size_t pool_bytes(const struct ifd_http_options *options)
{
    const size_t wanted = (size_t)options->max_header_bytes * 2;
    return wanted > CONNECTION_MEMORY_BYTES ? wanted : CONNECTION_MEMORY_BYTES;
}

size_t ifd_mhd_connection_bytes(const struct ifd_http *http)
{
    return pool_bytes(&http->options) + CONNECTION_OBJECT_BYTES;
}

static struct MHD_Daemon *start_daemon(struct ifd_listener *l)
{
    const struct ifd_http_options *o = &l->http->options;
    /* Limits of connections and times are enforced outside the library. */
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_access, l, MHD_OPTION_EXTERNAL_LOGGER, library_log, l,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        l, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, l, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool_bytes(o),
        MHD_OPTION_CONNECTION_LIMIT, UINT_MAX, MHD_OPTION_END);
}

enum ifd_code ifd_mhd_start(struct ifd_listener *l, struct ifd_err *err)
{
    l->daemon = start_daemon(l);
    if (!l->daemon) {
        return ifd_fail(err, IFD_INTERNAL, "the HTTP library did not start");
    }
    struct ifd_loop *loop = l->http->options.loop;
    int epoll_fd = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    enum ifd_code code = ifd_watch_create(loop, epoll_fd, ifd_mhd_run, l, &l->watch, err);
    return code ? code : ifd_timer_create(loop, ifd_mhd_run, l, &l->timer, err);
}

void ifd_mhd_stop(struct ifd_listener *l)
{
    ifd_watch_destroy(l->watch);
    ifd_timer_destroy(l->timer);
    if (l->daemon) {
        MHD_stop_daemon(l->daemon);
    }
}
