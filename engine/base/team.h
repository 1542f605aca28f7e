/** A team of threads for runs (struct ifd_team of backend.h): fork-join, the caller works along.
 *
 *  Helpers spin for a short while after a run, since the next step comes within microseconds, and sleep on a futex-backed
 *  condition after that. One team serves one instance: no scheduler is shared. Thread: run() one at a time per team. */
#ifndef INFERD_ENGINE_BASE_TEAM_H
#define INFERD_ENGINE_BASE_TEAM_H

#include "inferd/alloc.h"
#include "inferd/backend.h"
#include "inferd/status.h"

/** count ≥ 1; count 1 starts no thread. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_team_create(uint32_t count, const struct ifd_alloc *alloc,
                                            struct ifd_team **ret_team, struct ifd_err *err);
void ifd_team_destroy(struct ifd_team *team); /* NULL is fine */

#endif
