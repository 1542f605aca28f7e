/** From method and path to a row of a table of routes. Thread: any. */
#ifndef INFERD_API_HTTP_ROUTE_H
#define INFERD_API_HTTP_ROUTE_H

#include "api/core/guard.h"
#include "api/http/http.h"
#include "inferd/status.h"

struct ifd_http_call;
typedef void (*ifd_handler_fn)(struct ifd_http_call *call);

enum ifd_route_body { IFD_BODY_NONE, IFD_BODY_SMALL, IFD_BODY_INPUT };

/** INFERENCE: the model is pinned when the headers are complete, and the handler reads the body
 *  itself. Behind VISION: the dialect of recorders (api/http/vision.h); DETECTION, FACE and CUSTOM
 *  are inferences. */
enum ifd_route_kind {
    IFD_ROUTE_PLAIN,
    IFD_ROUTE_INFERENCE,
    IFD_ROUTE_VISION,
    IFD_ROUTE_DETECTION,
    IFD_ROUTE_FACE,
    IFD_ROUTE_CUSTOM
};

/** Maximum bytes of a SMALL body. */
#define IFD_BODY_SMALL_BYTES ((size_t)64 * 1024)

struct ifd_route {
    enum ifd_http_method method;
    const char *path;
    ifd_handler_fn handler;
    enum ifd_route_body body;
    enum ifd_access_class access;
    enum ifd_route_kind kind;
};

static inline bool ifd_route_is_vision(const struct ifd_route *route)
{
    return route->kind >= IFD_ROUTE_VISION;
}
static inline bool ifd_route_infers(const struct ifd_route *route)
{
    return route->kind != IFD_ROUTE_PLAIN && route->kind != IFD_ROUTE_VISION;
}

struct ifd_route_match {
    const struct ifd_route *route;
    struct ifd_str model; /* {NULL,0} where the path has none; ended by NUL */
    int64_t version;      /* 0 where the path has none */
    uint32_t allowed;     /* methods that have a row for the path: IFD_BIT(IFD_HTTP_GET) … */
};

/** Finds the first of count rows that fits. path has no query; segments are percent-decoded, into
 *  arena where needed. Errors: NOT_FOUND (no row has this path, or none this method: then
 *  ret->allowed is not 0); INVALID (wrong percent-encoding, invalid model name); NOMEM. Writes
 *  ret->allowed on error, too. */
IFD_NODISCARD enum ifd_code ifd_route_find(const struct ifd_route *route, size_t count,
                                           enum ifd_http_method method, struct ifd_str path,
                                           struct ifd_arena *arena, struct ifd_route_match *ret,
                                           struct ifd_err *err);

#endif
