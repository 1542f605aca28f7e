/** How the threads of a run share its steps. Each thread has a part, the same in every run, so that
 *  it finds in its cache what it wrote in the step before. A thread that is done early takes from
 *  parts that others have not begun.
 *
 *  A part is cut into chunks (step->chunks). Its owner takes them from the front: first all but the
 *  few that it keeps back, then half of the rest at a time. Others take from the back, by halves
 *  too. Threads wait for chunks, not for threads: one that comes late, or never, delays only the
 *  chunks that it has begun. The owner pays one atomic on its cache line for each of two or three
 *  calls; others read that line only when they have nothing else to do. */
#ifndef INFERD_BACKENDS_CPUACC_SCHEDULE_TEAM_H
#define INFERD_BACKENDS_CPUACC_SCHEDULE_TEAM_H

#include <stdatomic.h>

#include "backends/cpuacc/step.h"

/** What the threads share: how many chunks of all steps so far are done; for each thread the rest
 *  of its part, and of which step (team.c). */
struct ifd_acc_team {
    _Alignas(64) atomic_ullong done;
    uint8_t apart[64]; /* caches fetch lines in pairs */
    struct {
        _Alignas(64) atomic_ullong left;
        uint8_t apart[64];
    } part[];
};

size_t ifd_acc_team_bytes(uint32_t threads);
/** memory: ifd_acc_team_bytes(threads), aligned to 64. Before any thread uses it. */
struct ifd_acc_team *ifd_acc_team_init(void *memory, uint32_t threads);

/** One thread's state. It must see all steps that run. */
struct ifd_acc_worker {
    struct ifd_acc_team *team;
    uint32_t thread, threads; /* of the run */
    uint32_t turn;            /* shared steps so far */
    uint64_t due;             /* chunks of all steps so far */
    uint32_t keep; /* chunks of its part that it leaves to the last calls; begins with 1 */
};

struct ifd_acc_worker ifd_acc_worker_init(struct ifd_acc_team *team, uint32_t thread,
                                          uint32_t threads);

/** Runs this thread's share of a step, and waits for the others where the step says so. frame: its
 *  binding, scratch and outcome are set. */
void ifd_acc_worker_step(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                         struct ifd_acc_frame *frame);

#endif
