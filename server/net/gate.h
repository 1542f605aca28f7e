/** Checks of a request's header that the HTTP library leaves out, as a pure function of names and
 *  values.
 *
 *  Request smuggling needs two readings of one request, so everything that allows two readings is
 *  refused: repeated or contradicting lengths, a missing or repeated Host, control characters,
 *  names with blanks, line ends other than CR LF, continued lines (obs-fold).
 *
 *  libmicrohttpd 0.9.75 does not report line ends, reads a field only up to its first NUL, and
 *  takes a line that starts with NUL for the end of the header. But its texts point into the
 *  receive buffer, where it overwrote separators with NUL: if fields are not exactly two bytes
 *  apart, their form was another. Three forms leave the same bytes as CR LF CR LF and are not
 *  noticed: a NUL before a bare LF; a line with only a colon after a bare LF or in place of the
 *  empty line, which ends the header; and a line that begins with NUL before a request, which
 *  counts as empty. Servers and proxies that check what they forward pass none of them. Thread:
 *  any. */
#ifndef INFERD_SERVER_NET_GATE_H
#define INFERD_SERVER_NET_GATE_H

#include "inferd/types.h"

/** Largest number of header fields of a request. */
#define IFD_GATE_FIELDS_MAX 64

struct ifd_gate {
    uint32_t fields, content_length, transfer_encoding, host, content_type, content_encoding,
        header_length, expect, authorization;
    bool is_chunked, is_malformed, is_torn, has_odd_host, expect_is_continue;
    struct ifd_str content_length_value;
    const char *next; /* where the next field must start; NULL: unknown, not checked */
};

/** The target without "http://authority", which RFC 9112 3.2.2 requires to accept. The host selects
 *  nothing, so an authority that differs from Host is harmless. Any other target is returned
 *  unchanged. */
struct ifd_str ifd_gate_origin(struct ifd_str target);

/** Checks the request line, and that its parts and the fields are contiguous. method and version
 *  are in the receive buffer; url is the place of the target, which may be overwritten by now;
 *  origin is the result of ifd_gate_origin. Same result as ifd_gate_check. Call before
 *  ifd_gate_field. */
const char *ifd_gate_request_line(struct ifd_gate *gate, const char *method, struct ifd_str url,
                                  struct ifd_str origin, const char *version, int *ret_status);

/** Adds one field to gate, which starts zeroed. Values must stay until the check. */
void ifd_gate_field(struct ifd_gate *gate, struct ifd_str name, struct ifd_str value);

/** end: behind the header and its empty line. Call after every field. */
void ifd_gate_end(struct ifd_gate *gate, const char *end);

/** NULL if the request may pass; else the reason (static), and *ret_status is 400, 417, 431, 501 or
 *  505. */
const char *ifd_gate_check(const struct ifd_gate *gate, bool is_http_1_1, int *ret_status);

#endif
