/** Waking ahead: while a request is alone, the thread for its next step is awake when that step is
 *  due.
 *
 *  Waking a thread takes 5 µs on a core that is awake and 50 µs on one that a virtual machine has
 *  given back. Twice in a request one thread waits for another: a worker for the end of the body,
 *  the loop for the result. Both moments can be predicted, the second from earlier runs of the
 *  model. So the worker is woken when little of the body is missing, the loop shortly before the
 *  result is due. Each then spins, for at most --spin-us.
 *
 *  It must not cost others: not with a second request in the server, not where the threads of an
 *  instance take all cores, and the loop not on the worker's core.
 *
 *  A third moment can be predicted if a client asks again as soon as it is answered: then the loop
 *  spins for the next request after each answer, also for at most --spin-us, unless others are in
 *  the server and threads worked for them. Other clients that arrive meanwhile are served sooner.
 *
 *  It is best to wait for no thread at all: with one connection in the whole server, the loop does
 *  a run itself that is expected to be short (--inline-run-us). With any number of connections it
 *  does runs that are shorter than handing over, up to a time in each of its turns.
 *
 *  Thread: loop. */
#ifndef INFERD_SERVER_SERVE_AHEAD_H
#define INFERD_SERVER_SERVE_AHEAD_H

#include "server/net/loop.h"
#include "server/sched/lane.h"

/** Expected duration of a run of a version: below that of most runs of one batch size. */
struct ifd_pulse {
    uint64_t run_ns; /* 0: unknown */
    int64_t batch;
};

/** Learns that a run of a batch took took_ns. */
void ifd_pulse_learn(struct ifd_pulse *pulse, int64_t batch, uint64_t took_ns);
/** Returns when to be awake for the result of a run that starts at start_ns; 0: unknown. */
uint64_t ifd_pulse_due(const struct ifd_pulse *pulse, int64_t batch, uint64_t start_ns);
/** True if a run is expected to take less than waking a thread for it. */
bool ifd_pulse_is_short(const struct ifd_pulse *pulse);

struct ifd_ahead {
    struct ifd_loop *loop;
    uint64_t spin_ns;                   /* 0: off */
    uint64_t here_ns;                   /* longest run that the loop does itself; 0: none */
    uint64_t turn_ns;                   /* of such runs in this turn of the loop */
    uint32_t (*connections)(void *arg); /* open connections of clients */
    void *connections_arg;
    uint64_t crowded_until_ns;
    uint32_t cores;
    uint32_t open;               /* open inference requests, from header to end */
    uint32_t away;               /* their work on other threads: runs, pictures, large JSON */
    uint64_t away_ns;            /* when other threads last had work */
    uint64_t ended_ns;           /* end of the last request if none followed at once; else 0 */
    bool is_quick;               /* it came within spin_ns of the one before */
    bool is_looking_out;         /* spins for the next request */
    bool is_waiting;             /* spins for a result */
    const struct ifd_lane *lane; /* then: what runs it */
};

/** An inference request begins, and ends. */
void ifd_ahead_begun(struct ifd_ahead *ahead);
void ifd_ahead_ended(struct ifd_ahead *ahead, uint64_t now_ns);

/** True if the loop may do the next run of this version itself. */
bool ifd_ahead_runs_here(const struct ifd_ahead *ahead, const struct ifd_pulse *pulse);

/** The loop did a run itself; and a turn of the loop ends. */
void ifd_ahead_ran_here(struct ifd_ahead *ahead, uint64_t took_ns);
void ifd_ahead_end_turn(struct ifd_ahead *ahead);

/** Most of the body has arrived. */
void ifd_ahead_body(const struct ifd_ahead *ahead, struct ifd_lane *lane,
                    const struct ifd_pulse *pulse);
/** The request was submitted to workers. */
void ifd_ahead_run(struct ifd_ahead *ahead, const struct ifd_lane *lane,
                   const struct ifd_pulse *pulse, int64_t batch);
/** A part of the request was given to a thread that is no worker. */
void ifd_ahead_task(struct ifd_ahead *ahead);
/** What was submitted or given is back, or no longer wanted. */
void ifd_ahead_done(struct ifd_ahead *ahead);

#endif
