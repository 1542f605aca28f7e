/** What a transport must provide to the API, and what it gets: HTTP without sockets.
 *
 *  The transport (server/net/http_mhd.c, or a loopback in tests) owns connections, limits on bytes
 *  and time, and framing. The API owns meaning: routes, status codes, bodies. Everything here
 *  happens on the loop thread.
 *
 *      headers complete   → ifd_api_open()   → limit and alignment of the body, or an answer
 *      body nearly so     → ifd_api_coming() (optional)
 *      body complete      → ifd_api_handle() → answers now, or later through exchange->respond
 *      client gone        → ifd_api_abandon() → true: nothing follows; false: respond is called
 *      answer sent        → ifd_api_close()
 *
 *  (ifd_api_* are declared in api/http/api.h.) */
#ifndef INFERD_API_HTTP_HTTP_H
#define INFERD_API_HTTP_HTTP_H

#include "api/core/outcome.h"
#include "engine/base/arena.h"
#include "inferd/status.h"
#include "inferd/types.h"

enum ifd_http_method {
    IFD_HTTP_GET,
    IFD_HTTP_HEAD,
    IFD_HTTP_POST,
    IFD_HTTP_OPTIONS,
    IFD_HTTP_OTHER
};

/** Maximum headers of an answer (a fixed array, no allocation). */
#define IFD_HTTP_HEADERS_MAX 12

struct ifd_http_header {
    const char *name, *value; /* static or in the request's arena */
};

/** A piece of an answer's body. The body is all pieces in order. Memory lives until
 *  ifd_api_close. */
struct ifd_http_piece {
    const void *data;
    size_t size;
};

#define IFD_HTTP_PIECES_MAX 64

/** An answer. pieces may point into tensors: nothing is copied on the way to the socket. */
struct ifd_http_response {
    int status;
    enum ifd_code code; /* of the error that the answer reports, or OK */
    struct ifd_http_header header[IFD_HTTP_HEADERS_MAX];
    uint32_t header_count;
    struct ifd_http_piece piece[IFD_HTTP_PIECES_MAX];
    uint32_t piece_count;
    bool close_connection; /* do not reuse the connection (body not read, server going down) */
};

/** Empties an answer. The arrays, most of the struct, are not cleared. */
static inline void ifd_http_response_begin(struct ifd_http_response *response, int status)
{
    response->status = status;
    response->code = IFD_OK;
    response->header_count = response->piece_count = 0;
    response->close_connection = false;
}

/** One request and its answer. The transport embeds or allocates it per request and fills the upper
 *  part before ifd_api_open; it must stay at its address until ifd_api_close. */
struct ifd_http_exchange {
    /* filled by the transport */
    enum ifd_http_method method;
    struct ifd_str path;     /* still percent-encoded, without the query */
    struct ifd_str query;    /* behind '?', may be empty; never used for routing */
    struct ifd_arena *arena; /* of this request; the transport resets it after ifd_api_close */
    /** Value of a request header (name in any case), {NULL,0} if absent. The transport refuses
     *  headers that come twice but may not. */
    struct ifd_str (*header)(const struct ifd_http_exchange *exchange, const char *name);
    /** Sends exchange->response; from ifd_api_handle or any time later, on the loop thread, exactly
     *  once. A HEAD is answered as a GET: the transport sends the length, but not the body. */
    void (*respond)(struct ifd_http_exchange *exchange);
    bool is_local_admin;  /* came in through the admin socket */
    uint64_t received_ns; /* when the headers were complete */

    /* filled by the transport before ifd_api_handle: the whole body, at the alignment that
     * ifd_api_open asked for, followed by at least IFD_TENSOR_PAD readable bytes */
    const uint8_t *body;
    size_t body_size;

    /* filled by the API, as is response */
    const char *caller; /* name of the request's token, in the arena; NULL: none */
    const char *source; /* the camera whose frame this is, in the arena; NULL: none */
    void *api;          /* the API's own */

    /* filled by the transport before ifd_api_close, for statistics */
    enum ifd_outcome outcome;
    uint64_t ended_ns; /* monotonic */

    void *transport; /* the transport's own */

    struct ifd_http_response response; /* last, because it need not be zeroed */
};

/** How the API wants the body. */
struct ifd_http_body_plan {
    size_t cap_bytes; /* a longer body is refused with 413 before it is read */
    /** Offset inside the body that should be aligned to IFD_TENSOR_ALIGN in memory (the end of the
     *  JSON part of a binary request, so that the first tensor can be used where it was received).
     *  0: the body's start. */
    size_t align_at;
    bool answered; /* exchange->response is filled already: send it, read no body */
};

#endif
