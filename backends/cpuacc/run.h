/** Running a partition. */
#ifndef INFERD_BACKENDS_CPUACC_RUN_H
#define INFERD_BACKENDS_CPUACC_RUN_H

#include "backends/cpuacc/partition.h"

/** run() of the backend (inferd/backend.h). */
enum ifd_code ifd_acc_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                          struct ifd_err *err);

#endif
