/** One run of every instance before a version serves. Thread: loader. */
#ifndef INFERD_SERVER_WARM_UP_H
#define INFERD_SERVER_WARM_UP_H

#include "server/repo/model.h"
#include "server/sched/worker.h"

/** Runs runner once on one sample of zeros: what fails at the first run fails before a version replaces another, and the
 *  first request finds memory and caches warm. A model with a dimension that only a request can decide is not run,
 *  and one that finds fault with zeros (INVALID) is fine. Errors: what else the run says; NOMEM. */
IFD_NODISCARD enum ifd_code ifd_warm_up(struct ifd_runner *runner,
                                        const struct ifd_version *version,
                                        const struct ifd_alloc *alloc, struct ifd_err *err);

#endif
