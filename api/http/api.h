/** The wire API over HTTP: turns requests into calls of a service and answers them. See
 *  api/http/http.h for the life of an exchange. Thread: loop only. */
#ifndef INFERD_API_HTTP_API_H
#define INFERD_API_HTTP_API_H

#include "api/core/guard.h"
#include "api/core/service.h"
#include "api/http/cors.h"
#include "api/http/http.h"

struct ifd_api;

struct ifd_api_options {
    const struct ifd_alloc *alloc;
    const struct ifd_service_ops *ops;
    struct ifd_service *service;
    size_t max_input_bytes; /* --http-max-input-size: body and decompressed body; default 64 MiB */
    bool admin_on_http;     /* repository control and settings without the admin socket */
    const struct ifd_guard *guard; /* NULL: no tokens, every client may ask */
    /* Models of /v1/vision/detection and face; NULL or "": by what the models mean. */
    const char *vision_detection, *vision_face;
    bool has_vision_key; /* a form's api_key is a token, too */
    bool has_console;    /* serves the page /console */
    struct ifd_cors cors;
};

IFD_NODISCARD enum ifd_code ifd_api_create(const struct ifd_api_options *options,
                                           struct ifd_api **ret_api, struct ifd_err *err);
void ifd_api_destroy(struct ifd_api *api); /* no exchange is open; takes NULL */

/** Changes max_input_bytes for exchanges that open later. bytes > 0. */
void ifd_api_change_max_input(struct ifd_api *api, size_t bytes);

/** The headers are complete: finds the route, checks method and headers. */
void ifd_api_open(struct ifd_api *api, struct ifd_http_exchange *exchange,
                  struct ifd_http_body_plan *ret_plan);
/** The body is nearly complete: the service may get ready. Once at most. */
void ifd_api_coming(struct ifd_api *api, struct ifd_http_exchange *exchange);
/** The body is complete: handles the request; exchange->respond is called now or later. */
void ifd_api_handle(struct ifd_api *api, struct ifd_http_exchange *exchange);
/** The client left before the answer. True: the exchange is over, call ifd_api_close. False: its
 *  memory is still in use; the API will call exchange->respond when it is free, and nobody gets
 *  that answer. */
bool ifd_api_abandon(struct ifd_api *api, struct ifd_http_exchange *exchange);
/** The answer was sent or abandoned: releases what the exchange holds. Exactly once after
 *  ifd_api_open. */
void ifd_api_close(struct ifd_api *api, struct ifd_http_exchange *exchange);

/** Headers that the answer has besides those of its response, for web pages of other origins;
 *  returns how many. ret_header has room for IFD_CORS_HEADERS_MAX. */
uint32_t ifd_api_cors_headers(const struct ifd_api *api, const struct ifd_http_exchange *exchange,
                              struct ifd_http_header *ret_header);

/** Fills the answer with the API's JSON error for a refusal by the transport (400, 408, 413, 431,
 *  503 …). Copies text to the arena. */
void ifd_api_error(struct ifd_http_exchange *exchange, int status, const char *text);

#endif
