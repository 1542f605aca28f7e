/** The access log: one structured line for each request that is over, written by a thread of its own.
 *
 *      time=2026-01-31T12:00:00.123Z client=127.0.0.1 method=POST path="/v2/models/m/infer" status=200 outcome=ok
 *      bytes_in=64 bytes_out=120 took_us=310                                        (one line; or the same as JSON)
 *
 *  With tokens, " token=NAME" follows the client.
 *
 *  The loop copies a record into a ring and goes on: it neither formats nor writes, and never waits. If the ring is full
 *  because the file cannot be written fast enough, lines are lost and counted. */
#ifndef INFERD_SERVER_OBS_ACCESS_LOG_H
#define INFERD_SERVER_OBS_ACCESS_LOG_H

#include <sys/socket.h>

#include "engine/base/log.h"
#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/obs/metrics.h"

struct ifd_access_log;

struct ifd_access {
    const char *method,
        *outcome;        /* static; "-" for the method of a header that was never complete */
    struct ifd_str path; /* its first 127 bytes are kept */
    const struct sockaddr *client; /* NULL: not known */
    const char *
        caller; /* whose token came with it: letters, digits or ._-+, of which 32 are kept; NULL: none did */
    int status; /* 0: no answer was sent */
    size_t body_bytes, answer_bytes;
    uint64_t took_ns;
};

/** Opens path for appending, or "-": standard output. Errors: IO. */
IFD_NODISCARD enum ifd_code ifd_access_log_open(const char *path, int *ret_fd, struct ifd_err *err);

/** fd is owned from here on, also on error. metrics counts lost lines; errors is told when fd takes no more, and when it does
 *  again; both may be NULL. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_access_log_create(
    int fd, bool is_json, struct ifd_metric_set *metrics, const struct ifd_log *errors,
    const struct ifd_alloc *alloc, struct ifd_access_log **ret_log, struct ifd_err *err);
/** Lines from now on go to fd, which is owned from here on; the old one is closed. Thread: the loop. */
void ifd_access_log_reopen(struct ifd_access_log *log, int fd);
/** Writes what is left, as far as the file takes it within a second. NULL is fine. */
void ifd_access_log_destroy(struct ifd_access_log *log);

/** NULL is fine. Thread: one, the loop. */
void ifd_access_log_add(struct ifd_access_log *log, const struct ifd_access *access);

/** The same line in the program's own log at debug level: --log-verbose turns it on. */
void ifd_access_debug(const struct ifd_log *log, const struct ifd_access *access);

#endif
