/** Runs every instance before a version serves. Thread: load. */
#ifndef INFERD_SERVER_SERVE_WARM_UP_H
#define INFERD_SERVER_SERVE_WARM_UP_H

#include <stdatomic.h>

#include "api/core/service.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "server/repo/model.h"
#include "server/sched/runner.h"

/** State of the warm-up of one version, over all its instances. */
struct ifd_warm_up {
    /* set before */
    const struct ifd_version *version;
    const struct ifd_alloc *alloc;
    const struct ifd_log *log;
    const struct ifd_clock *clock;
    uint64_t most_ns;               /* limit of all runs together; 0: none */
    const atomic_bool *is_stopping; /* no run begins any more */
    bool runs_zeros;                /* used if the config has no model_warmup */

    uint64_t spent_ns;
    uint32_t runs, made_up_runs, odd_runs; /* odd: made-up runs with infinite or NaN outputs */
};

/** Runs the samples of the config's model_warmup, each count times; without any, one sample of
 *  zeros. A model that cannot run thus fails before it replaces another, and the first request
 *  finds warm memory and caches. A model with a dimension that only a request can decide is not run
 *  on zeros. A model may refuse zeros (INVALID).
 *
 *  Outputs must be finite after a sample whose inputs are all files. After made-up inputs (zeros,
 *  random numbers), which a sound model may answer with NaN, they must be finite only if
 *  version->has_to_be_finite; else the log warns. The time is checked after each run, is_stopping
 *  before; no run is interrupted.
 *
 *  Errors, with the sample's name: INVALID (a sample does not fit the model), NOT_FOUND and IO (its
 *  file), CORRUPT (an output is not finite), DEADLINE (most_ns), UNAVAILABLE (is_stopping), NOMEM,
 *  and those of the run. */
IFD_NODISCARD enum ifd_code ifd_warm_up(struct ifd_warm_up *self, struct ifd_runner *runner,
                                        struct ifd_err *err);

/** One sample of an input, all zeros, in arena. Errors: UNSUPPORTED (a request has to decide the
 *  shape, or the input takes strings), NOMEM. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_zero_input(const struct ifd_port *port, struct ifd_arena *arena,
                                           struct ifd_tensor *ret, struct ifd_err *err);

/** True if made-up inputs were run and all outputs were finite. */
bool ifd_warm_up_is_finite(const struct ifd_warm_up *self);

#endif
