/** Chains of steps that run strip by strip. */
#ifndef INFERD_BACKENDS_CPUACC_SCHEDULE_STRIPS_H
#define INFERD_BACKENDS_CPUACC_SCHEDULE_STRIPS_H

#include "backends/cpuacc/draft.h"

/** Joins neighbouring drafts to chains that run strip by strip, where the tensor between them is
 *  too large for the second-level cache. Before the layout. */
IFD_NODISCARD enum ifd_code ifd_acc_join_strips(struct ifd_acc_lowering *lowering,
                                                struct ifd_err *err);

/** run() of the first step of a chain. */
void ifd_acc_run_chain(const struct ifd_acc_step *head, const struct ifd_acc_frame *frame);

#endif
