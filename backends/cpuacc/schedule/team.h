/** How the threads of one run share its steps: each has a part of its own, the same in every run, so that it finds there
 *  what it has written in the step before; who is done early takes from what others have not begun.
 *
 *  A part is cut into chunks (step->chunks). Its owner takes them from the front, at first all but the few that it keeps
 *  back, then half of those that are left at a time; others take theirs from the back, by halves, too. Nobody waits for
 *  a thread, only for chunks: one that comes late, or never, holds up nothing but what it has begun. That costs the owner
 *  one atomic on a cache line of its own for each of two or three calls; others look at that line only when they have
 *  nothing else to do. */
#ifndef INFERD_BACKENDS_CPUACC_SCHEDULE_TEAM_H
#define INFERD_BACKENDS_CPUACC_SCHEDULE_TEAM_H

#include <stdatomic.h>

#include "backends/cpuacc/step.h"

/** What the threads share. Chunks that are done, of all steps so far; for each thread what is left of its part, and of
 *  which step (team.c). */
struct ifd_acc_team {
    _Alignas(64) atomic_ullong done;
    uint8_t apart[64]; /* caches fetch lines in pairs */
    struct {
        _Alignas(64) atomic_ullong left;
        uint8_t apart[64];
    } part[];
};

size_t ifd_acc_team_bytes(uint32_t threads);
/** memory: of as many bytes, aligned to 64. Before any thread uses it. */
struct ifd_acc_team *ifd_acc_team_init(void *memory, uint32_t threads);

/** One thread on its way through the steps, of which it must see all that run. */
struct ifd_acc_worker {
    struct ifd_acc_team *team;
    uint32_t thread, threads; /* of the run */
    uint32_t turn;            /* shared steps so far */
    uint64_t due;             /* chunks of all steps so far */
    uint32_t keep; /* chunks of its part that it leaves to the last calls; begins with 1 */
};

struct ifd_acc_worker ifd_acc_worker_init(struct ifd_acc_team *team, uint32_t thread,
                                          uint32_t threads);

/** Does what there is to do for this thread in a step, and waits for the others where the step says so. frame: its
 *  binding, scratch and outcome are set. */
void ifd_acc_worker_step(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                         struct ifd_acc_frame *frame);

#endif
