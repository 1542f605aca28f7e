/** Access: the question that a protocol asks the server before it does anything for a request. The
 *  server knows the tokens; the protocol words the refusal. Thread: loop only. */
#ifndef INFERD_API_CORE_GUARD_H
#define INFERD_API_CORE_GUARD_H

#include "api/core/outcome.h"
#include "inferd/types.h"

/** What a route needs. A class does not include another one. */
enum ifd_access_class {
    IFD_ACCESS_OPEN,    /* nothing: says only that the server is well */
    IFD_ACCESS_KNOWN,   /* any token: the answer only says that nothing is here */
    IFD_ACCESS_DATA,    /* runs models, and tells what a client of them needs */
    IFD_ACCESS_OBSERVE, /* tells how the server is doing */
    IFD_ACCESS_ADMIN    /* changes the server */
};

struct ifd_guard {
    /** authorization: "Bearer TOKEN" as the request has it, {NULL,0} if it has none. model:
     *  {NULL,0} where the request names none. *ret_caller is the token's name if the token is
     *  known, else unchanged; valid until the loop's next turn. */
    enum ifd_verdict (*judge)(void *context, struct ifd_str authorization,
                              enum ifd_access_class access, struct ifd_str model,
                              struct ifd_str *ret_caller);
    void *context;
};

#endif
