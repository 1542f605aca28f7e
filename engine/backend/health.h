/** Is a device lost, and when is it tried again? Between two trials the pause doubles, from 1 s to
 *  64 s. Times are those of ifd_monotonic_ns. Thread: any. */
#ifndef INFERD_ENGINE_BACKEND_HEALTH_H
#define INFERD_ENGINE_BACKEND_HEALTH_H

#include <stdatomic.h>

#include "engine/base/thread.h"
#include "inferd/status.h"

struct ifd_health {
    atomic_bool is_degraded;
    struct ifd_mutex lock;       /* for the fields below */
    uint64_t retry_ns, pause_ns; /* while it is degraded: of the next trial */
    uint64_t failures;           /* that were told, in all */
    struct ifd_err reason;       /* of the latest one */
};

void ifd_health_init(struct ifd_health *health);
void ifd_health_finish(struct ifd_health *health);

/** May the caller use the device? A degraded one: only the first who asks after the pause; the next
 *  pause begins. If not, err says why, with the reason: UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_health_admit(struct ifd_health *health, uint64_t now_ns,
                                             struct ifd_err *err);
/** The device is lost. True if it was not degraded before. */
bool ifd_health_fail(struct ifd_health *health, uint64_t now_ns, const struct ifd_err *reason);
/** The device has done its work. True if it was degraded before. */
bool ifd_health_pass(struct ifd_health *health);

/** Copies failures and reason. */
void ifd_health_read(struct ifd_health *health, uint64_t *ret_failures, struct ifd_err *ret_reason);

#endif
