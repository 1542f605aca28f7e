/** The query of a request: parameters "name=value" with & between them. Thread: any. */
#ifndef INFERD_API_HTTP_QUERY_H
#define INFERD_API_HTTP_QUERY_H

#include "engine/base/arena.h"
#include "inferd/status.h"

struct ifd_query_parameter {
    struct ifd_str name, value; /* decoded; value is empty without "=" */
};

/** Takes the next parameter off rest, which begins as the whole query; *ret_is_there is false at
 *  its end. Empty parameters are skipped. What is decoded lies in arena. Errors: INVALID (wrong
 *  percent-encoding), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_query_next(struct ifd_str *rest, struct ifd_arena *arena,
                                           struct ifd_query_parameter *ret, bool *ret_is_there,
                                           struct ifd_err *err);

/** Replaces percent-encoded bytes of text, in a copy if there are any; where says for messages what
 *  the text is. Errors: as above. */
IFD_NODISCARD enum ifd_code ifd_percent_decode(struct ifd_str *text, const char *where,
                                               struct ifd_arena *arena, struct ifd_err *err);

#endif
