/** Inside api/http: every handler of route_list.inc. A handler answers now or later. Thread: loop only. */
#ifndef INFERD_API_HTTP_HANDLERS_H
#define INFERD_API_HTTP_HANDLERS_H

#include "api/http/call.h"

#define ROUTE(method, path, handler, body, access, kind)                                           \
    void ifd_handle_##handler(struct ifd_http_call *call);
#include "api/http/route_list.inc"
#undef ROUTE

#endif
