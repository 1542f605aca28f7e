/** Pings a service manager while the server works: the loop turns, every worker looks for work, and
 *  completions reach the loop.
 *
 *  A ping follows only after a probe is back that every worker passes. A worker that hangs, or one
 *  inference that takes longer than the manager waits, ends the pings. Thread: loop. */
#ifndef INFERD_SERVER_OPS_WATCHDOG_H
#define INFERD_SERVER_OPS_WATCHDOG_H

#include "engine/base/log.h"
#include "server/net/loop.h"
#include "server/obs/notify.h"
#include "server/sched/pool.h"

struct ifd_watchdog;

struct ifd_watchdog_options {
    const struct ifd_alloc *alloc;
    struct ifd_loop *loop;
    struct ifd_pool *pool;
    const struct ifd_log *log;
    const struct ifd_notify *notify;
    uint64_t period_us; /* the manager's timeout; probes go four times as often */
};

/** Sends the first probe at once. */
IFD_NODISCARD enum ifd_code ifd_watchdog_create(const struct ifd_watchdog_options *options,
                                                struct ifd_watchdog **ret_dog, struct ifd_err *err);
/** No worker runs, completions are drained. NULL is fine. */
void ifd_watchdog_destroy(struct ifd_watchdog *dog);

#endif
