/** The two kinds of runner. */
#ifndef INFERD_SERVER_SCHED_RUNNERS_H
#define INFERD_SERVER_SCHED_RUNNERS_H

#include "inferd/engine.h"
#include "server/sched/runner.h"

/** Outputs are the inputs, in order, without a copy. delay_ms: shortest duration of a run, for
 *  tests of queues and time limits (Triton's identity has the same parameter). */
IFD_NODISCARD enum ifd_code ifd_runner_identity(uint32_t delay_ms, const struct ifd_alloc *alloc,
                                                struct ifd_runner **ret_runner,
                                                struct ifd_err *err);

/** An instance of model with threads and memory for batches up to max_batch. model must outlive the
 *  runner. */
IFD_NODISCARD enum ifd_code ifd_runner_engine(struct ifd_model *model, uint32_t threads,
                                              uint32_t max_batch, const struct ifd_alloc *alloc,
                                              struct ifd_runner **ret_runner, struct ifd_err *err);

#endif
