/** What a request's headers must not be: checks that the HTTP library leaves out, as a pure function of names and values.
 *
 *  Two readings of one request are how requests are smuggled, so whatever allows two readings is refused: repeated or
 *  contradicting lengths, a missing or repeated Host, control characters, names with blanks. Thread: any. */
#ifndef INFERD_SERVER_NET_GATE_H
#define INFERD_SERVER_NET_GATE_H

#include "inferd/types.h"

/** Header fields of a request at most. */
#define IFD_GATE_FIELDS_MAX 64

struct ifd_gate {
    uint32_t fields, content_length, transfer_encoding, host, content_type, header_length, expect;
    bool is_chunked, is_malformed, expect_is_continue;
    struct ifd_str content_length_value;
};

/** Counts one field into gate, which starts zeroed. Values stay the caller's until the check. */
void ifd_gate_field(struct ifd_gate *gate, struct ifd_str name, struct ifd_str value);

/** NULL if the request may pass; else why not (static text), and *ret_status is 400, 417, 431 or 501. */
const char *ifd_gate_check(const struct ifd_gate *gate, bool is_http_1_1, int *ret_status);

#endif
