/** Every route and its handler. A handler answers now or later. Thread: loop only. */
#ifndef INFERD_API_HTTP_HANDLERS_H
#define INFERD_API_HTTP_HANDLERS_H

#include "api/http/call.h"

#define ROUTE(method, path, handler, body, access, kind)                                           \
    void ifd_handle_##handler(struct ifd_http_call *call);
#include "api/http/route_list.inc"
#undef ROUTE

/** The rows of route_list.inc. */
extern const struct ifd_route ifd_routes[];
extern const size_t ifd_route_count;

#endif
