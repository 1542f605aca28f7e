/** Contents whose load ended the process, remembered on disk: a service manager starts the server
 *  again, and a model that crashes it must not do so for ever.
 *
 *  A file named after a content's digest says how many loads of it have begun and not ended; it is
 *  written before each load and removed after it, well or badly ended. So one load at a time, or
 *  there would be doubt who it was. A process that is killed or loses its power in the middle of a
 *  load leaves the same trace as one that crashed: only the third in a row counts against the
 *  content. Thread: any. */
#ifndef INFERD_SERVER_REPO_QUARANTINE_H
#define INFERD_SERVER_REPO_QUARANTINE_H

#include "engine/base/log.h"
#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_quarantine;

/** Loads of a content that may end the process before it is refused. */
#define IFD_QUARANTINE_DEATHS 3

/** dir: made with mode 0700 if its parent is there. Errors: NOT_FOUND, IO, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_quarantine_open(const char *dir, const struct ifd_alloc *alloc,
                                                const struct ifd_log *log,
                                                struct ifd_quarantine **ret, struct ifd_err *err);
/** Nobody is between enter and leave. NULL is fine. */
void ifd_quarantine_close(struct ifd_quarantine *quarantine);

/** Waits until no other content is loaded; after OK, leave follows when the load is over. is_asked:
 *  somebody wants it tried whatever happened. What cannot be written is a warning. NULL: OK.
 *  Errors: CORRUPT (the content is in quarantine; names its file). */
IFD_NODISCARD enum ifd_code ifd_quarantine_enter(struct ifd_quarantine *quarantine, uint64_t digest,
                                                 bool is_asked, struct ifd_err *err);
void ifd_quarantine_leave(struct ifd_quarantine *quarantine); /* NULL is fine */

/** The process is told to end: from here on that is no content's fault. NULL is fine. */
void ifd_quarantine_absolve(struct ifd_quarantine *quarantine);

#endif
