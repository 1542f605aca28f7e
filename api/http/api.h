/** The wire API: bytes of HTTP in, bytes of HTTP out, by way of a service. See api/http/http.h for the life of an exchange.
 *  Thread: loop only. */
#ifndef INFERD_API_HTTP_API_H
#define INFERD_API_HTTP_API_H

#include "api/core/guard.h"
#include "api/core/service.h"
#include "api/http/http.h"

struct ifd_api;

struct ifd_api_options {
    const struct ifd_alloc *alloc;
    const struct ifd_service_ops *ops;
    struct ifd_service *service;
    size_t max_input_bytes; /* --http-max-input-size: body and decompressed body; default 64 MiB */
    bool admin_on_http;     /* repository control and settings without the admin socket */
    const struct ifd_guard *guard; /* NULL: there are no tokens, everybody may ask */
};

IFD_NODISCARD enum ifd_code ifd_api_create(const struct ifd_api_options *options,
                                           struct ifd_api **ret_api, struct ifd_err *err);
void ifd_api_destroy(struct ifd_api *api); /* no exchange is open; NULL is fine */

/** From now on, for exchanges that are not open yet. bytes > 0. */
void ifd_api_change_max_input(struct ifd_api *api, size_t bytes);

/** Headers are complete: routes, checks method and headers. */
void ifd_api_open(struct ifd_api *api, struct ifd_http_exchange *exchange,
                  struct ifd_http_body_plan *ret_plan);
/** Little of the body is missing: what runs the request may get ready. Once at most. */
void ifd_api_coming(struct ifd_api *api, struct ifd_http_exchange *exchange);
/** Body is complete: handles the request; exchange->respond is called now or later. */
void ifd_api_handle(struct ifd_api *api, struct ifd_http_exchange *exchange);
/** The client is gone before the answer. True: the exchange is over, call ifd_api_close. False: its memory is still in use;
 *  the API will call exchange->respond (whose answer goes nowhere) when it is not any more. */
bool ifd_api_abandon(struct ifd_api *api, struct ifd_http_exchange *exchange);
/** The answer was sent (or abandoned): gives back what the exchange holds. Exactly once after ifd_api_open. */
void ifd_api_close(struct ifd_api *api, struct ifd_http_exchange *exchange);

/** The same JSON error body for what the transport itself refuses (400, 408, 413, 431, 503 …). text is copied to the arena. */
void ifd_api_error(struct ifd_http_exchange *exchange, int status, const char *text);

#endif
