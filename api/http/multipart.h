/** Bodies of the type multipart/form-data (RFC 7578), as browsers and `curl -F` send them. Nothing
 *  is copied. Thread: any. */
#ifndef INFERD_API_HTTP_MULTIPART_H
#define INFERD_API_HTTP_MULTIPART_H

#include "inferd/status.h"

struct ifd_part {
    struct ifd_str name; /* as the form calls it */
    bool is_file;        /* it has a file name */
    struct ifd_str type; /* header Content-Type; {NULL,0} if absent */
    struct ifd_bytes content;
};

struct ifd_multipart {
    struct ifd_str boundary;
    struct ifd_bytes rest; /* from behind a boundary */
};

/** type: header Content-Type. Errors: INVALID (no boundary, or body does not begin with it). */
IFD_NODISCARD enum ifd_code ifd_multipart_begin(struct ifd_str type, struct ifd_bytes body,
                                                struct ifd_multipart *ret, struct ifd_err *err);
/** The next part; *ret_is_there is false at the end. Errors: INVALID (a part that does not end, or
 *  has no name). */
IFD_NODISCARD enum ifd_code ifd_multipart_next(struct ifd_multipart *multipart,
                                               struct ifd_part *ret, bool *ret_is_there,
                                               struct ifd_err *err);

#endif
