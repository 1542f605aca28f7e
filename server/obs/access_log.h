/** The access log: one structured line for each finished request, written by its own thread.
 *
 *      time=2026-01-31T12:00:00.123Z client=127.0.0.1 method=POST path="/v2/models/m/infer"
 *      status=200 outcome=ok bytes_in=64 bytes_out=120 took_us=310      (one line; or as JSON)
 *
 *  If the request had a token, " token=NAME" follows the client; if it was a frame of a source,
 *  " source="NAME"" follows the path.
 *
 *  The loop only copies a record into a ring; it never formats, writes or waits. If the ring is
 *  full because the file is too slow, lines are lost and counted. */
#ifndef INFERD_SERVER_OBS_ACCESS_LOG_H
#define INFERD_SERVER_OBS_ACCESS_LOG_H

#include <sys/socket.h>

#include "engine/base/log.h"
#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/obs/metrics.h"

struct ifd_access_log;

struct ifd_access {
    const char *method, *outcome;  /* static; method "-": the header was never complete */
    struct ifd_str path;           /* the first 127 bytes are kept */
    const struct sockaddr *client; /* NULL: unknown */
    /** Name of the token: letters, digits or ._-+, of which 32 are kept; NULL: no token. */
    const char *caller;
    const char *source; /* of a frame, of which 63 bytes are kept; NULL: none */
    int status;         /* 0: no answer was sent */
    size_t body_bytes, answer_bytes;
    uint64_t took_ns;
};

/** Opens path for appending, or "-": standard output. Errors: IO. */
IFD_NODISCARD enum ifd_code ifd_access_log_open(const char *path, int *ret_fd, struct ifd_err *err);

/** Owns fd from here on, also on error. metrics counts lost lines; errors logs when writing fails
 *  and when it recovers; both may be NULL. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_access_log_create(
    int fd, bool is_json, struct ifd_metric_set *metrics, const struct ifd_log *errors,
    const struct ifd_alloc *alloc, struct ifd_access_log **ret_log, struct ifd_err *err);
/** Writes further lines to fd, which it owns from here on; closes the old one. Thread: loop. */
void ifd_access_log_reopen(struct ifd_access_log *log, int fd);
/** Writes the remaining lines, for at most a second. NULL is fine. */
void ifd_access_log_destroy(struct ifd_access_log *log);

/** NULL is fine. Thread: loop. */
void ifd_access_log_add(struct ifd_access_log *log, const struct ifd_access *access);

/** Writes the same line to the program's log at debug level (--log-verbose). */
void ifd_access_debug(const struct ifd_log *log, const struct ifd_access *access);

#endif
