/** What a compiled partition is made of: steps, run in order by all threads of the team, with a barrier behind each.
 *
 *  A step is a function and its parameters, immutable after compile. Where its tensors lie is said by places, which a
 *  run resolves against its binding, so that one partition serves any number of instances at once. */
#ifndef INFERD_BACKENDS_CPUACC_STEP_H
#define INFERD_BACKENDS_CPUACC_STEP_H

#include "backends/cpuacc/kernels.h"
#include "inferd/backend.h"

#define IFD_ACC_STEP_INPUTS  4
#define IFD_ACC_STEP_OUTPUTS 1

/** Where a tensor lies at run time. */
enum ifd_acc_where {
    IFD_ACC_ABSENT,
    IFD_ACC_CONSTANT, /* data: the model's own memory */
    IFD_ACC_INPUT,    /* binding->input[slot] + offset */
    IFD_ACC_OUTPUT,   /* binding->output[slot] + offset */
    IFD_ACC_SCRATCH   /* scratch + offset */
};

struct ifd_acc_place {
    enum ifd_acc_where where;
    uint32_t slot;
    size_t offset;
    const void *data;
};

/** One thread's view of a run. */
struct ifd_acc_frame {
    const struct ifd_binding *binding;
    const uint8_t *packed; /* the block that holds the step's packed constants */
    uint8_t *scratch;
    uint32_t thread, threads; /* of this step: thread < threads */
};

struct ifd_acc_step;
typedef void (*ifd_acc_step_fn)(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

struct ifd_acc_step {
    ifd_acc_step_fn run;
    const void *params; /* the operator's own, in the partition's arena */
    const struct ifd_kernels *kernels;
    struct ifd_acc_place in[IFD_ACC_STEP_INPUTS];
    struct ifd_acc_place out;
    const uint8_t
        *block; /* that holds this step's packed constants: the partition's own or an older one's */
    size_t packed;            /* their offset in it */
    size_t work, work_stride; /* scratch of the step: offset, bytes per thread */
    uint32_t max_threads;     /* more than this many threads do not pay */
    struct ifd_step_info info;
};

const void *ifd_acc_in(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                       uint32_t index);
void *ifd_acc_out(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
/** This thread's part of the step's work memory. */
void *ifd_acc_work(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

/** This thread's share of count items, in multiples of unit: begin ≤ end, the same for every run (row-affine). */
struct ifd_acc_range {
    size_t begin, end;
};
struct ifd_acc_range ifd_acc_share(const struct ifd_acc_frame *frame, size_t count, size_t unit);

#endif
