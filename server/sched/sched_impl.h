/** Between pool.c and lane.c: everything here is guarded by the pool's mutex, unless stated
 *  otherwise. */
#ifndef INFERD_SERVER_SCHED_SCHED_IMPL_H
#define INFERD_SERVER_SCHED_SCHED_IMPL_H

#include <stdatomic.h>

#include "engine/base/thread.h"
#include "server/sched/lane.h"

/** Most threads of a pool beside those for cores: for runs that only wait. */
#define IFD_POOL_WAITERS 64

struct ifd_pool_worker {
    struct ifd_pool *pool;
    struct ifd_thread thread;
    struct ifd_cond wake;
    bool is_woken;
    struct ifd_pool_worker *next; /* sleepers */
    uint64_t seen;                /* probes */
};

struct ifd_pool {
    struct ifd_pool_options options;
    struct ifd_mutex mutex;
    struct ifd_cond drained;         /* a closed lane has no job any more */
    struct ifd_lane *first, *last;   /* lanes with waiting jobs, in the order of arrival */
    struct ifd_pool_worker *sleeper; /* the one that slept last is woken first: its core is warm */
    uint32_t computing;              /* runs that need a core */
    uint32_t running;                /* all runs, the callers' of ifd_lane_run_here included */
    double share_ns;                 /* share of the lane that was chosen last */
    uint64_t timed_until_ns;         /* a sleeper wakes up by itself then; UINT64_MAX: none */
    uint64_t awake_until_ns;         /* the next sleeper spins for a job until then */
    bool is_watched;                 /* a thread spins */
    atomic_uint news;                /* events that it has to see; read without the mutex */
    uint64_t probes;                 /* calls of ifd_pool_probe */
    struct ifd_completion *probe;
    uint32_t probe_away; /* threads that have not passed it yet */
    bool is_stopping;
    uint32_t count, started; /* most threads, and how many there are */
    struct ifd_pool_worker worker[];
};

struct ifd_lane {
    struct ifd_pool *pool;
    struct ifd_lane_options options;
    struct ifd_queue queue;
    struct ifd_lane *next, *previous; /* lanes with waiting jobs */
    bool is_listed;
    /* Time of its runs times priority; at least the pool's when it becomes listed. A double, so
     * that no server runs long enough for it to overflow. */
    double share_ns;
    uint64_t run_ns;        /* of the last run: what the next one is charged in advance */
    struct ifd_mutex order; /* guards done and next_ticket; taken without the pool's */
    struct ifd_job *done;   /* in_order: wait for an earlier job, ascending by ticket */
    uint64_t next_ticket;
    atomic_int core; /* see ifd_lane_core; without the mutex */
    uint32_t count, idle_count;
    struct ifd_runner **idle;    /* free runners; the last one is taken first: its memory is warm */
    struct ifd_runner *runner[]; /* all; behind them idle */
};

/** A run from begin to end. */
struct ifd_lane_turn {
    struct ifd_lane *lane;
    struct ifd_runner *runner;
    uint64_t charged_ns;
};

struct ifd_lane_run {
    struct ifd_lane_turn turn;
    uint32_t count;
    struct ifd_job *job[IFD_BATCH_ITEMS_MAX];
};

/* ---- lane.c ---- */

/** Takes a free runner and charges the lane in advance; and the reverse, when the run took took_ns.
 *  The mutex is held. */
struct ifd_lane_turn ifd_lane_begin(struct ifd_lane *lane);
void ifd_lane_end(const struct ifd_lane_turn *turn, uint64_t took_ns);
/** Runs jobs and completes them. Returns how long that took. The mutex is not held. */
uint64_t ifd_lane_run(const struct ifd_lane_run *run);
/** Lists the lane if jobs wait, or takes it off. The mutex is held. */
void ifd_lane_relist(struct ifd_lane *lane);

/* ---- pool.c ---- */

/** True if a thread could run a job of the lane now. The mutex is held. */
bool ifd_pool_can_run(const struct ifd_pool *pool, const struct ifd_lane *lane);
/** Wakes a sleeping thread, or all. The mutex is held. */
void ifd_pool_wake_one(struct ifd_pool *pool);
void ifd_pool_wake_all(struct ifd_pool *pool);
/** Tells a spinning thread that something changed. The mutex is held. */
void ifd_pool_tell(struct ifd_pool *pool);

#endif
