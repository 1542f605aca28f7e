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

#endif
