/** Who may ask for what: the question that the API, and the page of metrics, put to the server before they do anything for
 *  a request, and what is answered if it says no. Tokens and where they come from are the server's. Thread: loop only. */
#ifndef INFERD_API_CORE_GUARD_H
#define INFERD_API_CORE_GUARD_H

#include "api/http/http.h"

/** What a route needs. A class does not include another one. */
enum ifd_access_class {
    IFD_ACCESS_OPEN, /* nothing: says only that the server is well */
    IFD_ACCESS_KNOWN, /* any token at all: there is nothing to be had, but that is for those who may know */
    IFD_ACCESS_DATA,    /* runs models, and tells what a client of them needs */
    IFD_ACCESS_OBSERVE, /* tells how the server is doing */
    IFD_ACCESS_ADMIN    /* changes the server */
};

struct ifd_guard {
    /** authorization: the header's value, {NULL,0}: none came. model: {NULL,0} where the request names none.
     *  *ret_caller, {NULL,0} at first: whose token it is, if it is known; valid until the loop's next turn. */
    enum ifd_verdict (*judge)(void *context, struct ifd_str authorization,
                              enum ifd_access_class access, struct ifd_str model,
                              struct ifd_str *ret_caller);
    void *context;
};

/** May the exchange, whose header is complete, have this? Notes its caller. false: the response says why not.
 *  guard NULL, or the admin socket: yes. */
IFD_NODISCARD bool ifd_guard_admits(const struct ifd_guard *guard,
                                    struct ifd_http_exchange *exchange,
                                    enum ifd_access_class access, struct ifd_str model);

/** Is what only this class may know for the exchange, too? Says nothing itself. */
IFD_NODISCARD bool ifd_guard_trusts(const struct ifd_guard *guard,
                                    const struct ifd_http_exchange *exchange,
                                    enum ifd_access_class access);

#endif
