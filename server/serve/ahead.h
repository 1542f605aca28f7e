/** Waking ahead: while a request is alone, the thread that its next step needs is awake when that step is due.
 *
 *  Waking a thread takes 5 µs on a core that is awake and 50 µs on one that a virtual machine has given back. Twice in a
 *  request one thread waits for another: a worker for the end of the body, the loop for the result. Both moments can be told
 *  beforehand, the second by how long the model's runs took. So the worker is woken when little of the body is missing, the
 *  loop shortly before the result is due, and each then waits awake, for --spin-us at most.
 *
 *  Never where it could cost others: not with a second request in the server, not where the threads of an instance take all
 *  cores, and the loop not on the core on which the worker runs.
 *
 *  A third moment can be told if a client asks again as soon as it is answered: when the last request came so soon, the loop looks
 *  out for the next one after each answer, again for --spin-us at most, unless others are in the server and threads were at
 *  work for them. Whoever else comes meanwhile, or is on the way with a body, is served the sooner.
 *
 *  Best is not to wait for another thread at all: with one connection in the whole server, a run that is expected to be short
 *  is done by the loop (--inline-run-us). Thread: loop. */
#ifndef INFERD_SERVER_SERVE_AHEAD_H
#define INFERD_SERVER_SERVE_AHEAD_H

#include "server/net/loop.h"
#include "server/sched/worker.h"

/** How long the runs of a version take: less than most of them did, as far as runs of one batch size were seen. */
struct ifd_pulse {
    uint64_t run_ns; /* 0: not known yet */
    int64_t batch;
};

/** A run of a batch took took_ns. */
void ifd_pulse_learn(struct ifd_pulse *pulse, int64_t batch, uint64_t took_ns);
/** When to be awake for the result of a run that starts at start_ns; 0: not known. */
uint64_t ifd_pulse_due(const struct ifd_pulse *pulse, int64_t batch, uint64_t start_ns);

struct ifd_ahead {
    struct ifd_loop *loop;
    uint64_t spin_ns;                   /* 0: off */
    uint64_t here_ns;                   /* longest run that the loop does itself; 0: none */
    uint32_t (*connections)(void *arg); /* how many clients may want something */
    void *connections_arg;
    uint64_t crowded_until_ns;
    uint32_t cores;
    uint32_t open;       /* inference requests from their header to their end */
    uint32_t away;       /* what other threads do for them: runs, pictures, large JSON */
    uint64_t away_ns;    /* when they last had something to do */
    uint64_t ended_ns;   /* when the last one was over, if it was calm then; else 0 */
    bool is_quick;       /* it had come within spin_ns of the one before */
    bool is_looking_out; /* for the next one */
    bool is_waiting;     /* for the result of one */
    const struct ifd_workers *workers; /* then: that run it */
};

/** An inference request begins, and ends. */
void ifd_ahead_begun(struct ifd_ahead *ahead);
void ifd_ahead_ended(struct ifd_ahead *ahead, uint64_t now_ns);

/** The loop may do the next run of this version itself. */
bool ifd_ahead_runs_here(const struct ifd_ahead *ahead, const struct ifd_pulse *pulse);

/** Most of its body is there. */
void ifd_ahead_body(const struct ifd_ahead *ahead, struct ifd_workers *workers,
                    const struct ifd_pulse *pulse);
/** It was submitted to workers. */
void ifd_ahead_run(struct ifd_ahead *ahead, const struct ifd_workers *workers,
                   const struct ifd_pulse *pulse, int64_t batch);
/** Something of it was given to another thread that is not a worker. */
void ifd_ahead_task(struct ifd_ahead *ahead);
/** What was submitted or given is back, or not wanted any more. */
void ifd_ahead_done(struct ifd_ahead *ahead);

#endif
