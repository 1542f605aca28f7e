/** Remembers on disk which contents ended the process while they were loaded, so that a model
 *  cannot crash the server at each restart.
 *
 *  A file named after the digest of a content counts loads that began and did not end. It is
 *  written before each load and removed after it, whether the load failed or not. Only one load
 *  runs at a time, so that the cause is known. A process that is killed, or loses power, leaves the
 *  same file as one that crashed; so only the third in a row counts. Thread: any. */
#ifndef INFERD_SERVER_REPO_QUARANTINE_H
#define INFERD_SERVER_REPO_QUARANTINE_H

#include "engine/base/log.h"
#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_quarantine;

/** Loads that may end the process before their content is refused. */
#define IFD_QUARANTINE_DEATHS 3

/** dir: created with mode 0700 if its parent exists. Errors: NOT_FOUND, IO, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_quarantine_open(const char *dir, const struct ifd_alloc *alloc,
                                                const struct ifd_log *log,
                                                struct ifd_quarantine **ret, struct ifd_err *err);
/** No thread is between enter and leave. NULL is fine. */
void ifd_quarantine_close(struct ifd_quarantine *quarantine);

/** Waits until no other content is loaded. After OK, the caller calls leave when the load is over.
 *  is_asked: a client requested the load, try it in any case. A file that cannot be written is a
 *  warning. NULL: OK. Errors: CORRUPT (the content is in quarantine; names its file). */
IFD_NODISCARD enum ifd_code ifd_quarantine_enter(struct ifd_quarantine *quarantine, uint64_t digest,
                                                 bool is_asked, struct ifd_err *err);
void ifd_quarantine_leave(struct ifd_quarantine *quarantine); /* NULL is fine */

/** The process was told to end: from now on its end counts against no content. NULL is fine. */
void ifd_quarantine_absolve(struct ifd_quarantine *quarantine);

#endif
