/** Memory budget of models: what a version needs is reserved before it is allocated, so a model
 *  that does not fit is refused with an error instead of ending the process. Thread: any. */
#ifndef INFERD_SERVER_REPO_BUDGET_H
#define INFERD_SERVER_REPO_BUDGET_H

#include <stdatomic.h>

#include "inferd/status.h"
#include "inferd/types.h"

struct ifd_budget {
    uint64_t limit_bytes;
    _Atomic uint64_t used_bytes;
    atomic_uint refusals;
};

/** Changes the reservation *held to bytes. Less always succeeds. Errors: NOMEM (with the numbers;
 *  nothing changed). A NULL budget has no limit and counts nothing. Thread: one at a time per
 *  *held. */
IFD_NODISCARD enum ifd_code ifd_budget_hold(struct ifd_budget *budget, uint64_t *held,
                                            uint64_t bytes, struct ifd_err *err);
/** Bytes that nobody holds. */
uint64_t ifd_budget_left(struct ifd_budget *budget);
void ifd_budget_give_back(struct ifd_budget *budget, uint64_t *held);

#endif
