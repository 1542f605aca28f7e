/** Scripts of web pages that come from other origins: which may ask, and what browsers are told
 *  (the Fetch standard, CORS protocol). Thread: loop. */
#ifndef INFERD_API_HTTP_CORS_H
#define INFERD_API_HTTP_CORS_H

#include "api/http/http.h"

/** Origins whose pages may use the server: "https://host:port", or "*" for all. */
struct ifd_cors {
    const char *const *origin; /* stay */
    uint32_t count;            /* 0: none */
};

/** Most headers of ifd_cors_headers. */
#define IFD_CORS_HEADERS_MAX 3

/** True for "*" and for a scheme, a host and maybe a port, as browsers write an origin. Thread:
 *  any. */
bool ifd_cors_is_origin(const char *text);

/** Headers that an answer to this request has besides its own; returns how many. */
uint32_t ifd_cors_headers(const struct ifd_cors *cors, const struct ifd_http_exchange *exchange,
                          struct ifd_http_header *ret_header);

/** Answers a browser that asks what an allowed page may send, which it does without token. False:
 *  it is another request. */
bool ifd_cors_answer(const struct ifd_cors *cors, struct ifd_http_exchange *exchange);

#endif
