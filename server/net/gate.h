/** What a request's headers must not be: checks that the HTTP library leaves out, as a pure function of names and values.
 *
 *  Two readings of one request are how requests are smuggled, so whatever allows two readings is refused: repeated or
 *  contradicting lengths, a missing or repeated Host, control characters, names with blanks, lines that end in anything but
 *  CR LF, lines that continue the one before (obs-fold).
 *
 *  libmicrohttpd 0.9.75 does not tell how a line ended, reads a field only up to its first NUL, and takes a line that starts
 *  with NUL for the end of the header. But its texts lie in the buffer that was received, where it overwrote separators with
 *  NUL: fields that do not lie one behind the other, two bytes apart, came in another form. What is left, because it
 *  leaves the same bytes as CR LF CR LF: a NUL in front of a bare LF, and, behind a bare LF or in place of the empty line, a
 *  line of nothing but a colon, which the library takes for the end of the header; also, in front of a request, a line that
 *  begins with NUL for an empty one. Servers and proxies that check what they forward let none of them through. Thread: any. */
#ifndef INFERD_SERVER_NET_GATE_H
#define INFERD_SERVER_NET_GATE_H

#include "inferd/types.h"

/** Header fields of a request at most. */
#define IFD_GATE_FIELDS_MAX 64

struct ifd_gate {
    uint32_t fields, content_length, transfer_encoding, host, content_type, content_encoding,
        header_length, expect, authorization;
    bool is_chunked, is_malformed, is_torn, has_odd_host, expect_is_continue;
    struct ifd_str content_length_value;
    const char *next; /* where the next field must start; NULL: not known, not checked */
};

/** The target without "http://authority" (RFC 9112 3.2.2: accepted from everyone). Models are not told apart by host, so
 *  nothing can be won by an authority that is not Host. Any other target as it is. */
struct ifd_str ifd_gate_origin(struct ifd_str target);

/** Checks the request line, and that its parts and then the fields lie one behind the other. method and version are in the
 *  receiving buffer; url is where the target was, which may be overwritten by now, origin is what
 *  ifd_gate_origin made of it. Same result as ifd_gate_check. Before any field. */
const char *ifd_gate_request_line(struct ifd_gate *gate, const char *method, struct ifd_str url,
                                  struct ifd_str origin, const char *version, int *ret_status);

/** Counts one field into gate, which starts zeroed. Values stay the caller's until the check. */
void ifd_gate_field(struct ifd_gate *gate, struct ifd_str name, struct ifd_str value);

/** The header, its empty line included, ends before end. After every field. */
void ifd_gate_end(struct ifd_gate *gate, const char *end);

/** NULL if the request may pass; else why not (static text), and *ret_status is 400, 417, 431, 501 or 505. */
const char *ifd_gate_check(const struct ifd_gate *gate, bool is_http_1_1, int *ret_status);

#endif
