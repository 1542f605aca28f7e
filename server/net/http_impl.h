/** The rooms behind http.h, for each other:
 *
 *    http.c       life: create, serve, drain, destroy
 *    http_mhd.c   libmicrohttpd: its callbacks, its answers; the only file that knows the library
 *    request.c    what becomes of a request: gate, API, body, answer
 *    transfer.c   requests as objects: memory, lists, how they ended
 *    sweep.c      clients that left, clients that never finish
 *
 *  Thread: loop only. */
#ifndef INFERD_SERVER_NET_HTTP_IMPL_H
#define INFERD_SERVER_NET_HTTP_IMPL_H

#include "server/net/body.h"
#include "server/net/gate.h"
#include "server/net/http.h"

#define IFD_LISTENERS_MAX 4
/** How often clients are looked at. */
#define IFD_SWEEP_MS 250

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

struct ifd_listener;
struct ifd_transfer_list;

/** One request, from its request line to the end of its answer. */
struct ifd_transfer {
    struct ifd_http_exchange exchange;
    struct ifd_listener *listener;
    void *connection; /* the library's */
    int fd;
    struct ifd_arena arena;
    struct ifd_body body;
    size_t url_bytes, swallowed_bytes, answer_bytes;
    enum ifd_transfer_state state;
    bool has_headers, is_chunked, is_open, is_in_handler, is_suspended, is_abandoned, is_late;
    struct ifd_transfer *previous, *next;
    struct ifd_transfer_list *list;
};

/** Oldest first. */
struct ifd_transfer_list {
    struct ifd_transfer *first, *last;
};

struct ifd_listener {
    struct ifd_http *http;
    void *daemon; /* the library's */
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
    struct ifd_listener listener[IFD_LISTENERS_MAX];
    uint32_t listener_count;
    struct ifd_transfer_list receiving, suspended;
    struct ifd_transfer *spare;
    uint32_t spare_count, open_count, waiting_count;
    struct ifd_timer *sweep;
    bool is_draining;
    ifd_loop_fn on_idle;
    void *on_idle_arg;
};

/* ---- transfer.c ---- */

/** In state RECEIVING, counted and listed. uri: the target as it came. NULL: no memory. */
struct ifd_transfer *ifd_transfer_begin(struct ifd_listener *listener, void *connection, int fd,
                                        const char *uri);

/** How the library ended it. */
enum ifd_transfer_end { IFD_TRANSFER_SENT, IFD_TRANSFER_TIMED_OUT, IFD_TRANSFER_CUT };

/** Counts, logs, closes and recycles. client: a socket address, may be NULL. */
void ifd_transfer_end(struct ifd_transfer *t, enum ifd_transfer_end how,
                      const struct sockaddr *client);

void ifd_transfer_enlist(struct ifd_transfer_list *list, struct ifd_transfer *t);
void ifd_transfer_unlist(struct ifd_transfer *t);

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

/** Of the timer; arg is struct ifd_http. */
void ifd_http_sweep(void *arg);

/* ---- http_mhd.c ---- */

/** Owns fd, also on error. */
IFD_NODISCARD enum ifd_code ifd_mhd_start(struct ifd_listener *listener, int fd,
                                          struct ifd_err *err);
void ifd_mhd_stop(struct ifd_listener *listener);
/** Accepts no further connection. */
void ifd_mhd_quiesce(struct ifd_listener *listener);
/** Lets the library do everything that it can do now; arg is struct ifd_listener. */
void ifd_mhd_run(void *arg);
/** The listener runs soon. */
void ifd_mhd_resume(struct ifd_transfer *t);
/** Header of the request; see struct ifd_http_exchange. */
struct ifd_str ifd_mhd_header(const struct ifd_http_exchange *exchange, const char *name);

#endif
