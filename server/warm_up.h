/** Runs of every instance before a version serves. Thread: loader. */
#ifndef INFERD_SERVER_WARM_UP_H
#define INFERD_SERVER_WARM_UP_H

#include "api/service.h"
#include "server/repo/model.h"
#include "server/sched/worker.h"

/** Runs runner once on one sample of zeros: what fails at the first run fails before a version replaces another, and the
 *  first request finds memory and caches warm. A model with a dimension that only a request can decide is not run,
 *  and one that finds fault with zeros (INVALID) is fine. Errors: what else the run says; NOMEM. */
IFD_NODISCARD enum ifd_code ifd_warm_up(struct ifd_runner *runner,
                                        const struct ifd_version *version,
                                        const struct ifd_alloc *alloc, struct ifd_err *err);

/** Runs the samples of the config's model_warmup, each as often as it says; files are read from version->source. Errors:
 *  INVALID (a sample that is no request of this model), NOT_FOUND and IO (its file), and what the run says; all with the
 *  sample's name. */
IFD_NODISCARD enum ifd_code ifd_warm_up_samples(struct ifd_runner *runner,
                                                const struct ifd_version *version,
                                                const struct ifd_model_desc *desc,
                                                const struct ifd_alloc *alloc, struct ifd_err *err);

#endif
