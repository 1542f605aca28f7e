/** The rooms behind http.h, for each other:
 *
 *    http.c         life: create, serve, drain, destroy
 *    accept.c       listening sockets: who is let in, what when descriptors run out
 *    connection.c   connections as objects; what is said to them past the library
 *    http_mhd.c     libmicrohttpd: its callbacks, its answers; the only file that knows the library
 *    request.c      what becomes of a request: gate, API, body, answer
 *    transfer.c     requests as objects: memory, how they ended
 *    sweep.c        clients that left, clients that are too slow
 *    linger.c       closing so that the last answer arrives
 *    fault.c        whose request the library refuses by itself, so that our words come before its page
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
/** How often clients are looked at. */
#define IFD_SWEEP_MS UINT64_C(250)
/** Connections beyond the bound that may ask one thing, how the server is, so that probes get through. */
#define IFD_PROBES_MAX 8
/** Request targets up to this length cost no memory beside the transfer's. */
#define IFD_URI_KEPT 256
/** Connections that linger at a time; more are closed the short way. */
#define IFD_LINGER_MAX 64

struct ifd_connection;
struct ifd_listener;

/** RECEIVING (headers, then body) or SWALLOWING (refused already, the small rest of the body is read so that the connection
 *  can stay) → WAITING (the API has it; the connection is suspended unless the answer came at once) → ANSWERED (handed to
 *  the library). GONE: nobody to answer any more. */
enum ifd_transfer_state {
    IFD_TRANSFER_RECEIVING,
    IFD_TRANSFER_SWALLOWING,
    IFD_TRANSFER_WAITING,
    IFD_TRANSFER_ANSWERED,
    IFD_TRANSFER_GONE
};

/** The library's object for an answer, and what it was made of. Making it takes seven allocations as a rule; the next answer
 *  of the same transfer has the same fields and lies at the same place, if it has the same size, and can have it again. */
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
    /* The target. Longer ones are in the arena, which a request that never comes does not get. */
    char uri[IFD_URI_KEPT];

    struct ifd_listener *listener; /* this and all that follows is zero when a request begins */
    struct ifd_connection *connection;
    size_t url_bytes, body_bytes, swallowed_bytes, answer_bytes; /* body_bytes: as announced */
    uint64_t wire_bytes; /* of header and body, as announced */
    uint64_t since_ms;   /* of what it does now: header, body, answer */
    struct ifd_pace receive_pace;
    int said_status; /* told past the library; 0: nothing */
    enum ifd_transfer_state state;
    bool has_headers, is_chunked, is_open, is_told, is_in_handler, is_suspended, is_abandoned,
        is_late;
    struct ifd_transfer *next; /* in http->spare */
};

/** A client's address without its port; of IPv6 the network (/64), because whoever has one address has all of it. */
struct ifd_client {
    bool is_known; /* not a UNIX socket */
    uint8_t bytes[16];
};

struct ifd_connection {
    struct ifd_listener *listener;
    void *library;                 /* the library's */
    struct ifd_transfer *transfer; /* NULL: between requests */
    struct ifd_connection *previous, *next;
    struct ifd_client client;
    int fd;
    struct ifd_pace send_pace;
    uint64_t since_ms;    /* it was accepted, or its last request was over */
    uint64_t looked_ms;   /* between requests: when seen_bytes was true */
    uint64_t seen_bytes;  /* received so far */
    uint64_t taken_bytes; /* of all its requests that are over */
    size_t held_bytes;    /* that the library has for it, counted in the quota */
    /* Since when a request trickles in whose first line is not complete; 0: none. */
    uint64_t dirty_ms;
    bool is_fresh, is_ending; /* no request yet; shut down, the library does not know yet */
    bool was_busy;            /* since clients that left were looked for last */
    bool wants_linger;
    bool is_held;  /* while it is found out which one is malformed; suspended */
    bool is_probe; /* beyond the bound */
};

struct ifd_listener {
    struct ifd_http *http;
    int fd; /* -1: accepts no more */
    struct ifd_watch *accepts;
    struct ifd_timer *retry;          /* while there are no descriptors */
    struct ifd_connection *accepting; /* on its way through the library's callback */
    void *daemon;                     /* the library's */
    struct ifd_watch *watch;
    struct ifd_timer *timer;
    bool needs_run, is_spinning, is_local_admin; /* spinning: the library never has enough */
    bool is_fault_said;    /* of what the library refuses now its client was told already */
    ifd_http_page_fn page; /* answers instead of the API; NULL: the API */
    void *page_arg;
    struct ifd_metric_set *metrics; /* NULL: nothing is counted */
    uint32_t connections, held_count;
    /* Answers that were there at once: of this run of the library, of the last one that had any. */
    uint32_t answers, answers_before;
};

struct ifd_lingerer {
    struct ifd_http *http;
    struct ifd_watch *watch; /* NULL: this place is free */
    int fd;
    uint64_t until_ms;
    size_t dropped_bytes;
};

struct ifd_http {
    uint64_t calls; /* of the library to us: requests and pieces of bodies */
    struct ifd_http_options options;
    struct ifd_listener listener[IFD_LISTENERS_MAX];
    uint32_t listener_count;
    struct ifd_connection *connections;
    struct ifd_transfer *spare;
    size_t spare_bytes; /* of bodies of the spare ones */
    uint32_t spare_count, open_count, waiting_count, linger_count;
    struct ifd_lingerer lingerer[IFD_LINGER_MAX];
    int reserve_fd; /* given up for a moment to refuse a client when there are no descriptors; -1: not there */
    struct ifd_timer *sweep;
    uint64_t now_ms, looked_ms; /* of the clients' clock; the loop's when that was asked last */
    bool is_draining, is_stopping;
    uint64_t drain_ms;   /* when the drain began */
    ifd_loop_fn on_idle; /* NULL: nobody waits for it, or it was called */
    void *on_idle_arg;
};

static inline void ifd_count_limit(struct ifd_metric_set *metrics, enum ifd_limit limit)
{
    ifd_metric_add(metrics, IFD_METRIC_LIMIT_HITS, (uint32_t)limit, 1);
}

/* ---- http.c ---- */

/** Calls on_idle if it is due: after requests and connections ended, and as time goes by. */
void ifd_http_check_idle(struct ifd_http *http);

/* ---- accept.c ---- */

/** Whose connection it is, by its address. */
struct ifd_client ifd_client_of(const struct sockaddr_storage *at);
/** How many connections of this client the listener has. */
uint32_t ifd_connections_of(const struct ifd_listener *l, const struct ifd_client *client);

/** Accepts what waits; arg is struct ifd_listener. */
void ifd_accept_ready(void *arg);
/** Accepts all that wait: the socket is going to be closed. */
void ifd_accept_last(struct ifd_listener *l);
/** Of the timer of a listener that ran out of descriptors. */
void ifd_accept_retry(void *arg);
/** Takes a descriptor in reserve. */
void ifd_accept_reserve(struct ifd_http *http);

/* ---- connection.c ---- */

/** NULL: no memory. fd stays the caller's until the library has it. */
struct ifd_connection *ifd_connection_begin(struct ifd_listener *listener, int fd,
                                            const struct ifd_client *client);
/** The library has closed it, but not its descriptor; or never took it. */
void ifd_connection_end(struct ifd_connection *c);

/** Shuts it down: the library sees the end and completes it. */
void ifd_connection_shut(struct ifd_connection *c);

/** Writes an answer past the library, which has not begun one, and says that it is the last. 503 and 429 invite to try
 *  again. text: static, no quotes. */
void ifd_connection_say(int fd, int status, const char *text);

/** The same for a connection whose request the library refuses: says it before the library can, which then finds that it cannot
 *  send. */
void ifd_connection_refuse(struct ifd_connection *c, int status, const char *text);

/** Ends it, whatever it does, because of a limit, which is counted. */
void ifd_connection_cut(struct ifd_connection *c, enum ifd_limit limit);

/** What the system counts: received, taken by the client, written but not taken yet (has_unsent). */
struct ifd_connection_bytes {
    uint64_t received, taken;
    bool has_unsent;
};
/** false: it does not count (UNIX sockets). */
bool ifd_connection_bytes(const struct ifd_connection *c, struct ifd_connection_bytes *ret);

/* ---- transfer.c ---- */

/** In state RECEIVING, counted. uri: the target as it came. NULL: no memory. */
struct ifd_transfer *ifd_transfer_begin(struct ifd_connection *c, const char *uri);

/** How the library ended it; page_status: of the answer that it gave itself, or 0. Counts, logs, closes and recycles.
 *  client: a socket address, may be NULL. */
void ifd_transfer_end(struct ifd_transfer *t, bool is_complete, int page_status,
                      const struct sockaddr *client);

/** Frees those that wait for reuse. */
void ifd_transfer_free_spare(struct ifd_http *http);

/* ---- request.c ---- */

/** What the caller, inside a callback of the library, has to do next. */
enum ifd_next {
    IFD_NEXT_READ,    /* go on reading */
    IFD_NEXT_SEND,    /* send exchange->response */
    IFD_NEXT_SUSPEND, /* until ifd_mhd_resume */
    IFD_NEXT_CLOSE    /* there is nothing to say */
};

/** The header is complete; gate has seen its request line and fields. why: what is wrong with it, or NULL. */
enum ifd_next ifd_request_headers(struct ifd_transfer *t, const struct ifd_gate *gate,
                                  const char *method, const char *why, int status);
enum ifd_next ifd_request_body(struct ifd_transfer *t, const void *data, size_t size);
/** The body is complete, or a suspended request was resumed. */
enum ifd_next ifd_request_ready(struct ifd_transfer *t);

/** exchange->respond of every transfer. */
void ifd_request_respond(struct ifd_http_exchange *exchange);
/** Its client left while it waited. */
void ifd_request_abandon(struct ifd_transfer *t);

/** Nothing behind this request may be read as another. */
bool ifd_request_closes(const struct ifd_transfer *t);

/* ---- sweep.c ---- */

/** The clients' clock, for all that they have deadlines for. It stands while the server does (stopped by a signal, paused with
 *  its machine, without a core): what came meanwhile has not been read yet. */
uint64_t ifd_http_now_ms(struct ifd_http *http);

/** Of the timer; arg is struct ifd_http. */
void ifd_http_sweep(void *arg);

/* ---- linger.c ---- */

/** Keeps the connection of fd, which stays the caller's and will be closed, until the client has taken what was sent:
 *  a socket that is closed with bytes unread is reset, and a reset overtakes the answer. */
void ifd_linger(struct ifd_http *http, int fd);
/** Closes those whose time is over; all of them if is_end. */
void ifd_linger_sweep(struct ifd_http *http, bool is_end);

/* ---- fault.c ---- */

/** A line of the library's log. */
void ifd_fault_heed(struct ifd_listener *l, const char *text);
/** After each run of the library: tells who was found, lets others go on. True: another run is due, for these. */
bool ifd_fault_settle(struct ifd_listener *l);

/* ---- http_mhd.c ---- */

/** Errors: INTERNAL, NOMEM, UNAVAILABLE; ifd_mhd_stop is due in any case. */
IFD_NODISCARD enum ifd_code ifd_mhd_start(struct ifd_listener *listener, struct ifd_err *err);
/** Closes every connection. */
void ifd_mhd_stop(struct ifd_listener *listener);
/** What the library takes for a connection. */
size_t ifd_mhd_connection_bytes(const struct ifd_http *http);
/** Hands a socket over, also on error (false): listener->accepting becomes its connection. */
bool ifd_mhd_take(struct ifd_listener *listener, int fd, const struct sockaddr *address,
                  socklen_t size);
/** Lets the library do everything that it can do now; arg is struct ifd_listener. */
void ifd_mhd_run(void *arg);
/** The listener runs soon. */
void ifd_mhd_resume(struct ifd_transfer *t);
/** Takes a connection that is receiving out of the library's hands, also from within its log, until it is let go. */
void ifd_mhd_hold(struct ifd_connection *c);
void ifd_mhd_let_go(struct ifd_connection *c);
/** Has the library find out that the connection was shut down, also one that it neither reads nor writes. */
void ifd_mhd_shut(struct ifd_connection *c);
/** Of the answer that the library has for it, be it its own; 0: there is none. */
int ifd_mhd_page_status(const struct ifd_connection *c);
/** Gives back the library's object for an answer, if one was kept. */
void ifd_mhd_forget(struct ifd_kept_answer *kept);
/** As it came, blanks behind it included; {NULL, 0}: it did not. */
struct ifd_str ifd_mhd_raw_header(const struct ifd_transfer *t, const char *name);
/** Header of the request; see struct ifd_http_exchange. */
struct ifd_str ifd_mhd_header(const struct ifd_http_exchange *exchange, const char *name);

#endif
