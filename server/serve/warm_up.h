/** Runs of every instance before a version serves. Thread: loader. */
#ifndef INFERD_SERVER_SERVE_WARM_UP_H
#define INFERD_SERVER_SERVE_WARM_UP_H

#include <stdatomic.h>

#include "api/core/service.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "server/repo/model.h"
#include "server/sched/worker.h"

/** The runs of one version, over all its instances. */
struct ifd_warm_up {
    /* set before */
    const struct ifd_version *version;
    const struct ifd_alloc *alloc;
    const struct ifd_log *log;
    const struct ifd_clock *clock;
    uint64_t most_ns;               /* that all runs may take together; 0: no bound */
    const atomic_bool *is_stopping; /* no run begins any more */
    bool runs_zeros;                /* if the config has no model_warmup */

    uint64_t spent_ns;
    uint32_t runs, made_up_runs, odd_runs; /* odd: of the made-up ones, without finite outputs */
};

/** Runs the samples of the config's model_warmup, each as often as it says; without any, one sample of zeros. What fails at the
 *  first run so fails before a version replaces another, and the first request finds memory and caches warm. A model with a
 *  dimension that only a request can decide is not run on zeros, and one that finds fault with them (INVALID) is fine.
 *
 *  Outputs have to be finite where the inputs are somebody's: a sample of files only. Of made-up inputs (zeros, random numbers),
 *  which a sound model may answer with NaN, only if version->has_to_be_finite; else the log warns. Time is looked at after
 *  each run, is_stopping before; none is interrupted.
 *
 *  Errors: INVALID (a sample that is no request of this model), NOT_FOUND and IO (its file), CORRUPT (an output is not finite),
 *  DEADLINE (most_ns), UNAVAILABLE (is_stopping), NOMEM, and what the run says; with the sample's name. */
IFD_NODISCARD enum ifd_code ifd_warm_up(struct ifd_warm_up *self, struct ifd_runner *runner,
                                        struct ifd_err *err);

/** Made-up inputs were run, and all outputs were finite. */
bool ifd_warm_up_is_finite(const struct ifd_warm_up *self);

#endif
