/** Internals of the HTTP server:
 *
 *    http.c         life: create, serve, drain, destroy
 *    accept.c       accepting connections, also without descriptors
 *    connection.c   connections as objects; answers that bypass the library
 *    http_mhd.c     libmicrohttpd: callbacks and answers; the only file that knows the library
 *    request.c      the course of a request: gate, API, body, answer
 *    transfer.c     requests as objects: memory, outcomes
 *    sweep.c        clients that left or are too slow
 *    linger.c       closing so that the last answer arrives
 *    fault.c        requests that the library refuses by itself: our answer before its page
 *
 *  Thread: loop only. */
#ifndef INFERD_SERVER_NET_HTTP_IMPL_H
#define INFERD_SERVER_NET_HTTP_IMPL_H

#include <sys/socket.h>

#include "server/net/body.h"
#include "server/net/gate.h"
#include "server/net/http.h"
#include "server/net/pace.h"

#define IFD_LISTENERS_MAX 4
/** Period of the sweep over clients. */
#define IFD_SWEEP_MS UINT64_C(250)
/** Connections beyond the limit that may ask for health, so that probes get through. */
#define IFD_PROBES_MAX 8
/** Request targets up to this length are stored in the transfer. */
#define IFD_URI_KEPT 256
/** Connections that may linger at a time; others are closed at once. */
#define IFD_LINGER_MAX 64

struct ifd_connection;
struct ifd_listener;

/** RECEIVING (header, then body) or SWALLOWING (refused; the small rest of the body is read so that
 *  the connection stays usable) → WAITING (for the API; the connection is suspended unless the
 *  answer comes at once) → ANSWERED (handed to the library). GONE: the client left. */
enum ifd_transfer_state {
    IFD_TRANSFER_RECEIVING,
    IFD_TRANSFER_SWALLOWING,
    IFD_TRANSFER_WAITING,
    IFD_TRANSFER_ANSWERED,
    IFD_TRANSFER_GONE
};

/** The library's object for an answer, and what it was made of. Making one usually takes seven
 *  allocations. The next answer of the same transfer reuses it if fields, address and size are the
 *  same. */
#define IFD_ANSWER_KEPT_PIECES 4
#define IFD_ANSWER_KEPT_FIELDS 256
struct ifd_kept_answer {
    void *library; /* NULL: none */
    struct ifd_http_piece piece[IFD_ANSWER_KEPT_PIECES];
    uint32_t piece_count;
    size_t field_bytes;
    char fields[IFD_ANSWER_KEPT_FIELDS]; /* names and values, each ended by NUL */
};

/** One request, from its request line to the end of its answer. */
struct ifd_transfer {
    struct ifd_arena arena;
    struct ifd_body body;
    struct ifd_kept_answer kept;
    struct ifd_http_exchange exchange;
    /* The target; longer ones are in the arena. */
    char uri[IFD_URI_KEPT];

    struct ifd_listener *listener; /* this and the following members are zeroed for each request */
    struct ifd_connection *connection;
    size_t url_bytes, body_bytes, swallowed_bytes, answer_bytes; /* body_bytes: as announced */
    uint64_t wire_bytes; /* of header and body, as announced */
    uint64_t since_ms;   /* start of the present phase: header, body, answer */
    struct ifd_pace receive_pace;
    int said_status; /* sent past the library; 0: none */
    enum ifd_transfer_state state;
    bool has_headers, is_chunked, is_open, is_told, is_in_handler, is_suspended, is_abandoned,
        is_late;
    struct ifd_transfer *next; /* in http->spare */
};

/** A client's address without port; for IPv6 the network (/64), because a client usually has all of
 *  it. */
struct ifd_client {
    bool is_known; /* not a UNIX socket */
    uint8_t bytes[16];
};

struct ifd_connection {
    struct ifd_listener *listener;
    void *library;                 /* the library's connection */
    struct ifd_transfer *transfer; /* NULL: between requests */
    struct ifd_connection *previous, *next;
    struct ifd_client client;
    int fd;
    struct ifd_pace send_pace;
    uint64_t since_ms;    /* when it was accepted, or its last request ended */
    uint64_t looked_ms;   /* between requests: when seen_bytes was read */
    uint64_t seen_bytes;  /* received so far */
    uint64_t taken_bytes; /* of all its finished requests */
    size_t held_bytes;    /* the library's memory for it, counted in the quota */
    /* When a request with an incomplete first line began to trickle in; 0: none. */
    uint64_t dirty_ms;
    bool is_fresh, is_ending; /* no request yet; shut down, unknown to the library */
    bool was_busy;            /* since the last look for clients that left */
    bool wants_linger;
    bool is_held;  /* suspended while the malformed one is searched */
    bool is_probe; /* beyond the limit */
};

struct ifd_listener {
    struct ifd_http *http;
    int fd; /* -1: closed */
    struct ifd_watch *accepts;
    struct ifd_timer *retry;          /* while there are no descriptors */
    struct ifd_connection *accepting; /* being handed to the library */
    void *daemon;                     /* the library's */
    struct ifd_watch *watch;
    struct ifd_timer *timer;
    bool needs_run, is_spinning,
        is_local_admin;    /* spinning: the library always asks for another run */
    bool is_fault_said;    /* the client was answered before the library refuses it */
    ifd_http_page_fn page; /* answers instead of the API; NULL: the API answers */
    void *page_arg;
    struct ifd_metric_set *metrics; /* NULL: nothing is counted */
    uint32_t connections, held_count;
    /* Immediate answers of this run of the library, and of the last run that had any. */
    uint32_t answers, answers_before;
};

struct ifd_lingerer {
    struct ifd_http *http;
    struct ifd_watch *watch; /* NULL: unused */
    int fd;
    uint64_t until_ms;
    size_t dropped_bytes;
};

struct ifd_http {
    uint64_t calls; /* callbacks of the library: requests and parts of bodies */
    struct ifd_http_options options;
    struct ifd_listener listener[IFD_LISTENERS_MAX];
    uint32_t listener_count;
    struct ifd_connection *connections;
    struct ifd_transfer *spare;
    size_t spare_bytes; /* of bodies of the spare ones */
    uint32_t spare_count, open_count, waiting_count, linger_count;
    struct ifd_lingerer lingerer[IFD_LINGER_MAX];
    /* Closed for a moment to refuse a client when there are no descriptors; -1: none. */
    int reserve_fd;
    struct ifd_timer *sweep;
    uint64_t now_ms, looked_ms; /* of the clock for deadlines; of the loop at its last reading */
    bool is_draining, is_stopping;
    uint64_t drain_ms;   /* when the drain began */
    ifd_loop_fn on_idle; /* NULL: not wanted, or called already */
    void *on_idle_arg;
};

static inline void ifd_count_limit(struct ifd_metric_set *metrics, enum ifd_limit limit)
{
    ifd_metric_add(metrics, IFD_METRIC_LIMIT_HITS, (uint32_t)limit, 1);
}

/* ---- http.c ---- */

/** Calls on_idle if it is due. */
void ifd_http_check_idle(struct ifd_http *http);

/* ---- accept.c ---- */

/** The client of an address. */
struct ifd_client ifd_client_of(const struct sockaddr_storage *at);
/** Number of this client's connections to the listener. */
uint32_t ifd_connections_of(const struct ifd_listener *l, const struct ifd_client *client);

/** Accepts waiting connections; arg is struct ifd_listener. */
void ifd_accept_ready(void *arg);
/** Accepts all waiting connections before the socket is closed. */
void ifd_accept_last(struct ifd_listener *l);
/** Timer of a listener without descriptors; arg is struct ifd_listener. */
void ifd_accept_retry(void *arg);
/** Opens the reserved descriptor. */
void ifd_accept_reserve(struct ifd_http *http);

/* ---- connection.c ---- */

/** NULL: no memory. The caller owns fd until the library has it. */
struct ifd_connection *ifd_connection_begin(struct ifd_listener *listener, int fd,
                                            const struct ifd_client *client);
/** The library has closed the connection, but not its descriptor; or it never took it. */
void ifd_connection_end(struct ifd_connection *c);

/** Shuts the connection down: the library sees the end and completes it. */
void ifd_connection_shut(struct ifd_connection *c);

/** Sends a last answer past the library, which has not begun one; 503 and 429 with Retry-After.
 *  text: static, no quotes. */
void ifd_connection_say(int fd, int status, const char *text);

/** The same for a request that the library refuses: answers before the library, which then cannot
 *  send. */
void ifd_connection_refuse(struct ifd_connection *c, int status, const char *text);

/** Ends the connection because of a limit, which is counted. */
void ifd_connection_cut(struct ifd_connection *c, enum ifd_limit limit);

/** The system's counts: received, acknowledged by the client, sent but not acknowledged
 *  (has_unsent). */
struct ifd_connection_bytes {
    uint64_t received, taken;
    bool has_unsent;
};
/** False: the system does not count (UNIX sockets). */
bool ifd_connection_bytes(const struct ifd_connection *c, struct ifd_connection_bytes *ret);

/* ---- transfer.c ---- */

/** A transfer in state RECEIVING, counted. uri: the target as received. NULL: no memory. */
struct ifd_transfer *ifd_transfer_begin(struct ifd_connection *c, const char *uri);

/** Ends a transfer: counts, logs, closes and recycles. is_complete: the library sent the answer;
 *  page_status: of the library's own answer, or 0. client: may be NULL. */
void ifd_transfer_end(struct ifd_transfer *t, bool is_complete, int page_status,
                      const struct sockaddr *client);

/** Frees the transfers kept for reuse. */
void ifd_transfer_free_spare(struct ifd_http *http);

/* ---- request.c ---- */

/** The next action of the caller, which is in a callback of the library. */
enum ifd_next {
    IFD_NEXT_READ,    /* go on reading */
    IFD_NEXT_SEND,    /* send exchange->response */
    IFD_NEXT_SUSPEND, /* until ifd_mhd_resume */
    IFD_NEXT_CLOSE    /* there is nothing to say */
};

/** The header is complete, gate has seen it. why: the fault, or NULL. */
enum ifd_next ifd_request_headers(struct ifd_transfer *t, const struct ifd_gate *gate,
                                  const char *method, const char *why, int status);
enum ifd_next ifd_request_body(struct ifd_transfer *t, const void *data, size_t size);
/** The body is complete or a suspended request was resumed. */
enum ifd_next ifd_request_ready(struct ifd_transfer *t);

/** exchange->respond of every transfer. */
void ifd_request_respond(struct ifd_http_exchange *exchange);
/** The client left while the request waited. */
void ifd_request_abandon(struct ifd_transfer *t);

/** True: nothing behind this request may be read as another. */
bool ifd_request_closes(const struct ifd_transfer *t);

/* ---- sweep.c ---- */

/** Clock for connection deadlines. It stops while the server is stopped (by a signal, with its
 *  virtual machine, without a core), because bytes that arrived meanwhile are not read yet. */
uint64_t ifd_http_now_ms(struct ifd_http *http);

/** Timer; arg is struct ifd_http. */
void ifd_http_sweep(void *arg);

/* ---- linger.c ---- */

/** Keeps the connection open until the client has read the answer, while the caller closes fd. A
 *  socket that is closed with unread bytes is reset, and a reset overtakes the answer. */
void ifd_linger(struct ifd_http *http, int fd);
/** Closes lingering connections whose time is over; all of them if is_end. */
void ifd_linger_sweep(struct ifd_http *http, bool is_end);

/* ---- fault.c ---- */

/** Handles a line of the library's log. */
void ifd_fault_heed(struct ifd_listener *l, const char *text);
/** After each run of the library: refuses those that were found, resumes others. True: another run
 *  is due. */
bool ifd_fault_settle(struct ifd_listener *l);

/* ---- http_mhd.c ---- */

/** Errors: INTERNAL, NOMEM, UNAVAILABLE; call ifd_mhd_stop also on error. */
IFD_NODISCARD enum ifd_code ifd_mhd_start(struct ifd_listener *listener, struct ifd_err *err);
/** Closes every connection. */
void ifd_mhd_stop(struct ifd_listener *listener);
/** The library's memory for a connection. */
size_t ifd_mhd_connection_bytes(const struct ifd_http *http);
/** Hands a socket over, also on error (false). listener->accepting becomes its connection. */
bool ifd_mhd_take(struct ifd_listener *listener, int fd, const struct sockaddr *address,
                  socklen_t size);
/** Runs the library until it has nothing to do now; arg is struct ifd_listener. */
void ifd_mhd_run(void *arg);
/** Resumes a suspended transfer; the listener runs soon. */
void ifd_mhd_resume(struct ifd_transfer *t);
/** Suspends a receiving connection until it is let go; allowed in the library's log callback. */
void ifd_mhd_hold(struct ifd_connection *c);
void ifd_mhd_let_go(struct ifd_connection *c);
/** Makes the library notice that the connection was shut down, even if it neither reads nor
 *  writes. */
void ifd_mhd_shut(struct ifd_connection *c);
/** Status of the library's present answer, also its own; 0: none. */
int ifd_mhd_page_status(const struct ifd_connection *c);
/** Releases a kept answer, if there is one. */
void ifd_mhd_release(struct ifd_kept_answer *kept);
/** The field's value as received, with trailing blanks; {NULL, 0}: no field. */
struct ifd_str ifd_mhd_raw_header(const struct ifd_transfer *t, const char *name);
/** Field of the header; see struct ifd_http_exchange. */
struct ifd_str ifd_mhd_header(const struct ifd_http_exchange *exchange, const char *name);

#endif
