/* The table of routes. */
#include "api/http/handlers.h"

const struct ifd_route ifd_routes[] = {
#define ROUTE(method_, path_, handler_, body_, access_, kind_)                                     \
    {.method = IFD_HTTP_##method_,                                                                 \
     .path = (path_),                                                                              \
     .handler = ifd_handle_##handler_,                                                             \
     .body = IFD_BODY_##body_,                                                                     \
     .access = IFD_ACCESS_##access_,                                                               \
     .kind = IFD_ROUTE_##kind_},
#include "api/http/route_list.inc"
#undef ROUTE
};

const size_t ifd_route_count = sizeof(ifd_routes) / sizeof(ifd_routes[0]);
