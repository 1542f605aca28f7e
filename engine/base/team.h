/** A team of threads for runs (struct ifd_team of machine.h): fork-join. The caller works, too,
 *  and waits only for helpers that entered the run before it was done.
 *
 *  Helpers spin for a short time after a run, since the next step follows within microseconds,
 *  then sleep on a condition variable. A helper that finds itself on the caller's core moves to
 *  another core. Thread: several may run() at a time on the same team: a helper joins whichever run
 *  has room. All instances of an engine share one.
 *
 *  Runs share cores through counters: a run takes the free cores that it wants, at least one, and
 *  gives them back at its end. A single run gets all. Of several each gets its share, also one that
 *  begins in a gap between others: a team in such a gap would share its cores with the run that
 *  comes next, which costs both more than the team gains. */
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
/** No run is in progress. NULL is fine. */
void ifd_team_destroy(struct ifd_team *team);

/** The team for runs with at most count threads; team must outlive it. NULL: the caller alone. */
struct ifd_team ifd_team_part(const struct ifd_team *team, uint32_t count);

/** A run of team->count threads will come soon: as many sleeping helpers wake up and spin for at
 *  least 50 µs. Thread: any, at any time. */
void ifd_team_expect(const struct ifd_team *team);
/** True if all helpers sleep: the next run would have to wake them. Thread: any, at any time. */
bool ifd_team_sleeps(const struct ifd_team *team);
/** No run will come soon: helpers sleep at once and free their cores. Thread: any, at any time. */
void ifd_team_rest(const struct ifd_team *team);

struct ifd_cores {
    atomic_uint busy, runs;
    atomic_uint crowd;         /* most runs at a time, lately */
    _Atomic uint64_t crowd_ns; /* when there were so many */
    uint32_t count;
};

/** So long after several runs at a time, one that is alone takes only its share of the cores. */
#define IFD_CROWD_NS UINT64_C(10000000)

void ifd_cores_init(struct ifd_cores *cores, uint32_t count);
/** Returns 1 … wanted. The caller's thread counts as one, whether a core is free for it or not.
 *  Thread: any. */
uint32_t ifd_cores_take(struct ifd_cores *cores, uint32_t wanted, uint64_t now_ns);
void ifd_cores_give(struct ifd_cores *cores, uint32_t taken, uint64_t now_ns);

#endif
