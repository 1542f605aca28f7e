/** HTTP/1.1 over sockets: bytes on one side, struct ifd_http_exchange on the other. http_mhd.c does
 *  it with libmicrohttpd, whose own event set is polled inside our loop; nothing else knows that
 *  library.
 *
 *  A connection that waits for its answer is suspended and costs nothing; a sweep notices clients
 *  that leave meanwhile. Thread: loop only. */
#ifndef INFERD_SERVER_NET_HTTP_H
#define INFERD_SERVER_NET_HTTP_H

#include "api/http/api.h"
#include "engine/base/log.h"
#include "engine/base/quota.h"
#include "server/net/loop.h"
#include "server/obs/access_log.h"
#include "server/obs/metrics.h"

struct ifd_http;

struct ifd_http_options {
    const struct ifd_alloc *alloc;
    const struct ifd_alloc *request_alloc; /* for memory of API requests */
    /** Counts the library's memory of connections; may be NULL. */
    struct ifd_quota *request_quota;
    struct ifd_loop *loop;
    struct ifd_api *api;
    const struct ifd_log *log;
    struct ifd_metric_set *metrics;    /* the server's; may be NULL */
    struct ifd_access_log *access_log; /* may be NULL */
    ifd_loop_fn after_turn;            /* after requests were handed to the API; may be NULL */
    void *after_turn_arg;
    uint32_t max_connections;             /* per listener */
    uint32_t max_connections_per_address; /* 0: no bound */
    uint32_t max_header_bytes;            /* request line included */
    /** From the connection, or the first byte, to the end of the header. */
    uint32_t header_timeout_secs;
    uint32_t receive_timeout_secs;            /* for the body */
    uint32_t send_timeout_secs;               /* until the client has read the answer */
    uint32_t min_receive_rate, min_send_rate; /* bytes a second, over some seconds; 0: no bound */
    uint32_t idle_timeout_secs;               /* between requests */
};

IFD_NODISCARD enum ifd_code ifd_http_create(const struct ifd_http_options *options,
                                            struct ifd_http **ret_http, struct ifd_err *err);
/** Applies the options that may change while connections are open: timeouts, rates, and connections
 *  per address. */
void ifd_http_change_limits(struct ifd_http *http, const struct ifd_http_options *options);
/** No exchange may wait for its answer. Closes connections. NULL is fine. */
void ifd_http_destroy(struct ifd_http *http);

/** Serves connections of a listening socket, which it owns from here on, also on error.
 *  is_local_admin: see struct ifd_http_exchange. */
IFD_NODISCARD enum ifd_code ifd_http_serve(struct ifd_http *http, int fd, bool is_local_admin,
                                           struct ifd_err *err);

/** Answers a request at once, from its header alone: fills exchange->response. */
typedef void (*ifd_http_page_fn)(void *arg, struct ifd_http_exchange *exchange);

/** The same for a socket on which fn answers every request instead of the API. Not counted in
 *  metrics and not closed by a drain, so that metrics can be read until the end. */
IFD_NODISCARD enum ifd_code ifd_http_serve_page(struct ifd_http *http, int fd, ifd_http_page_fn fn,
                                                void *arg, struct ifd_err *err);

/** Accepts no more connections; every answer closes its connection. Calls on_idle once, when every
 *  exchange is answered and clients between requests had a moment to begin another (at once if
 *  there is no connection). */
void ifd_http_drain(struct ifd_http *http, ifd_loop_fn on_idle, void *arg);

/** Connections of all listeners except those of pages. */
uint32_t ifd_http_connection_count(const struct ifd_http *http);
/** Requests whose answer is not fully sent. */
uint32_t ifd_http_open_count(const struct ifd_http *http);
/** Those of them that wait for the API, with suspended connections. */
uint32_t ifd_http_waiting_count(const struct ifd_http *http);

#endif
