/** A team of threads for runs (struct ifd_team of machine.h): fork-join, the caller works along and waits only for
 *  helpers that have come before it was done.
 *
 *  Helpers spin for a short while after a run, since the next step comes within microseconds, and sleep on a futex-backed
 *  condition after that. One that comes to a run on the caller's core goes to another core. One team serves one instance: no
 *  scheduler is shared. A copy of the struct with a smaller count runs with so many. Thread: run() one at a time per team.
 *
 *  Teams share cores by a counter: a run takes as many as are free, one at least, and gives them back at its end. Alone it
 *  has all that it wants and is done soonest; among many each has one, and all together are done soonest. */
#ifndef INFERD_ENGINE_BASE_TEAM_H
#define INFERD_ENGINE_BASE_TEAM_H

#include <stdatomic.h>

#include "inferd/alloc.h"
#include "inferd/machine.h"
#include "inferd/status.h"

#define IFD_TEAM_MAX 32767u

/** count ≥ 1; count 1 starts no thread. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_team_create(uint32_t count, const struct ifd_alloc *alloc,
                                            struct ifd_team **ret_team, struct ifd_err *err);
void ifd_team_destroy(struct ifd_team *team); /* NULL is fine */

/** A run will come soon: sleeping helpers wake up and spin for a while (50 µs and more). Thread: any, at any time. */
void ifd_team_expect(const struct ifd_team *team);
/** No run will come soon: helpers sleep at once, so that others have their cores. Thread: any, at any time. */
void ifd_team_rest(const struct ifd_team *team);

struct ifd_cores {
    atomic_uint busy;
    uint32_t count;
};

void ifd_cores_init(struct ifd_cores *cores, uint32_t count);
/** 1 … wanted. The caller's own thread is one of them, whether a core is free for it or not. Thread: any. */
uint32_t ifd_cores_take(struct ifd_cores *cores, uint32_t wanted);
void ifd_cores_give(struct ifd_cores *cores, uint32_t taken);

#endif
