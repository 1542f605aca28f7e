/** Pings a service manager as long as the server does its work: the loop turns, every worker of
 *  every model that serves takes from its queue, and what workers give back reaches the loop.
 *
 *  A ping is sent only after a probe that was put into all queues came back. A worker that hangs,
 *  or that runs one inference for longer than the manager waits, ends the pings. Thread: loop. */
#ifndef INFERD_SERVER_OPS_WATCHDOG_H
#define INFERD_SERVER_OPS_WATCHDOG_H

#include "server/net/loop.h"
#include "server/obs/notify.h"
#include "server/repo/repo.h"
#include "server/sched/completion.h"

struct ifd_watchdog;

struct ifd_watchdog_options {
    const struct ifd_alloc *alloc;
    struct ifd_loop *loop;
    struct ifd_completions *completions;
    const struct ifd_repo *repo;
    const struct ifd_log *log;
    const struct ifd_notify *notify;
    uint64_t period_us; /* the manager's patience; probes go four times as often */
};

/** The first probe goes at once. */
IFD_NODISCARD enum ifd_code ifd_watchdog_create(const struct ifd_watchdog_options *options,
                                                struct ifd_watchdog **ret_dog, struct ifd_err *err);
/** No worker runs any more and the completions were drained. NULL is fine. */
void ifd_watchdog_destroy(struct ifd_watchdog *dog);

#endif
