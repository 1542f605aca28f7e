/** A compiled partition: immutable, shared by any number of runs. */
#ifndef INFERD_BACKENDS_CPUACC_PARTITION_H
#define INFERD_BACKENDS_CPUACC_PARTITION_H

#include "backends/cpuacc/step.h"
#include "backends/lowering/packing.h"

struct ifd_device {
    const struct ifd_host *host;
    struct ifd_kernels kernels;
};

struct ifd_partition {
    const struct ifd_alloc *alloc;
    struct ifd_arena arena;                     /* steps and their parameters */
    const struct ifd_acc_driver *const *driver; /* as lowered */
    const struct ifd_acc_step *step;
    uint32_t step_count;
    bool is_parallel;  /* some step is worth more than one thread */
    size_t team_bytes; /* of scratch: what the threads of a run share */
    struct ifd_low_packed packed;
    bool exact; /* as lowered */
};

/** compile(), release() and run() of the backend (inferd/backend.h). */
enum ifd_code ifd_acc_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                              struct ifd_partition *share_with,
                              struct ifd_partition **ret_partition,
                              struct ifd_partition_info *ret_info, struct ifd_err *err);
void ifd_acc_release(struct ifd_partition *partition);
enum ifd_code ifd_acc_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                          struct ifd_err *err);

#endif
