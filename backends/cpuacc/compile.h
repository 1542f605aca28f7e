/** Compiling a partition: nodes become drafts (draft.h), drafts become steps (step.h). */
#ifndef INFERD_BACKENDS_CPUACC_COMPILE_H
#define INFERD_BACKENDS_CPUACC_COMPILE_H

#include "backends/cpuacc/partition.h"

/** compile() and release() of the backend (inferd/backend.h). */
enum ifd_code ifd_acc_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                              struct ifd_partition *share_with,
                              struct ifd_partition **ret_partition,
                              struct ifd_partition_info *ret_info, struct ifd_err *err);
void ifd_acc_release(struct ifd_partition *partition);

#endif
