/** Access over HTTP: asks the guard, answers refusals as RFC 6750 says. Thread: loop only. */
#ifndef INFERD_API_HTTP_GUARD_H
#define INFERD_API_HTTP_GUARD_H

#include "api/core/guard.h"
#include "api/http/http.h"

/** Whether the exchange, whose headers are complete, may have this; notes the caller's name in it.
 *  authorization: usually the header of this name. False: the response says why not. guard NULL, or
 *  the admin socket: true. */
IFD_NODISCARD bool ifd_guard_admits(const struct ifd_guard *guard,
                                    struct ifd_http_exchange *exchange,
                                    struct ifd_str authorization, enum ifd_access_class access,
                                    struct ifd_str model);

/** Whether the exchange may know what is for this class only; never answers. */
IFD_NODISCARD bool ifd_guard_trusts(const struct ifd_guard *guard,
                                    const struct ifd_http_exchange *exchange,
                                    enum ifd_access_class access);

#endif
