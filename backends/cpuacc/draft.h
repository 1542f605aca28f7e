/** Compile time: each operator's driver turns nodes into drafts of steps. The schedule decides
 *  which drafts run strip by strip, and on how many threads. Binding a draft to memory makes it a
 *  step.
 *
 *  A driver asks for what it needs (where a value lies, packed memory, work memory, a step) and
 *  reports errors. Thread: one at a time. */
#ifndef INFERD_BACKENDS_CPUACC_DRAFT_H
#define INFERD_BACKENDS_CPUACC_DRAFT_H

#include "backends/cpuacc/step.h"
#include "backends/lowering/packing.h"

/** A step before it is bound: what it computes, from which values, and what it needs. */
struct ifd_acc_draft {
    ifd_acc_step_fn run;
    const void *params;                    /* the operator's, in the partition's arena */
    uint32_t in[IFD_ACC_STEP_INPUTS], out; /* values; IFD_NO_VALUE where there is none */
    uint32_t more[IFD_ACC_STEP_MORE];      /* further ones that it writes */
    struct ifd_low_place
        outside;         /* where it reads in[0] instead of where the value lives; or ABSENT */
    uint32_t work;       /* storage; IFD_NO_VALUE: none */
    size_t work_stride;  /* bytes per thread */
    size_t packed_bytes; /* of its weights */
    bool is_gemm_f32;    /* these begin with the weights of a gemm of f32, which is what it runs */
    const struct ifd_acc_lines *lines; /* NULL: it cannot be run strip by strip */
    uint32_t max_threads; /* from its driver: that can share it; then: that pay (threads.c) */
    float rate;           /* multiply-accumulates per ns on a fast core; 0: bytes take the time */
    uint32_t chunks;      /* of a thread's part: from its driver: at most; then: that pay */
    bool joins;           /* threads wait behind it until all of it is done */
    const struct ifd_acc_chain *chain; /* of the first step of one (strips.c) */
    bool is_chained;                   /* it runs within the chain before it */
    struct ifd_step_info info;
};

struct ifd_acc_driver;

struct ifd_acc_lowering {
    struct ifd_lowering base;
    const struct ifd_kernels *kernels;
    const struct ifd_host *host;
    bool exact; /* 8-bit results are those of the reference kernels (rounding.h) */
    /* Per node: its driver. Chosen once for all batch sizes: it depends on weights, which may be
     * released before the second one. */
    const struct ifd_acc_driver *const *driver;
    struct ifd_acc_draft *draft;
    uint32_t draft_count, draft_capacity;
    struct ifd_low_packed *packed; /* the partition's */
    size_t spare_bytes; /* that packed weights may take more where it is hardly worth it */
    enum ifd_precision precision; /* the lowest of any gemm of f32, and why it is not the view's */
    const char *precision_why_not;
};

/** Adds a step that reads in[0 … count-1] and writes out (values). params from ifd_low_params. The
 *  pointer is valid until the next step is added. */
IFD_NODISCARD enum ifd_code ifd_acc_add_step(struct ifd_acc_lowering *lowering, ifd_acc_step_fn run,
                                             const void *params, const uint32_t *in, uint32_t count,
                                             uint32_t out, struct ifd_acc_draft **ret_step,
                                             struct ifd_err *err);

/** The newest step writes one more value, which becomes output number index + 1. */
void ifd_acc_add_output(struct ifd_acc_lowering *lowering, uint32_t index, uint32_t value);

/** Gives the newest step bytes of work memory per thread. */
IFD_NODISCARD enum ifd_code ifd_acc_add_work(struct ifd_acc_lowering *lowering,
                                             size_t bytes_per_thread, struct ifd_err *err);

/** The same for a step that one thread runs, whatever comes of it: bytes in all. */
IFD_NODISCARD enum ifd_code ifd_acc_add_work_of_one(struct ifd_acc_lowering *lowering, size_t bytes,
                                                    struct ifd_err *err);

/** Reserves bytes of packed memory for the newest step (packing.h). pack gets the kernels as its
 *  context. */
IFD_NODISCARD enum ifd_code ifd_acc_add_pack(struct ifd_acc_lowering *lowering, const void *source,
                                             size_t bytes, size_t workspace_bytes,
                                             ifd_low_pack_fn pack, const void *params,
                                             struct ifd_err *err);

/** Its content may be that of an earlier step, where same says so. */
void ifd_acc_compare_pack(struct ifd_acc_lowering *lowering, ifd_low_same_fn same);

/** Names the newest step; format as printf's. */
void ifd_acc_name_step(struct ifd_acc_lowering *lowering, const char *kernel, uint64_t macs,
                       const char *format, ...) IFD_PRINTF(4, 5);

/** Bytes of a core's second-level cache; a small one is assumed where that is not known. */
static inline size_t ifd_acc_cache_bytes(const struct ifd_host *host)
{
    return host->cpu.l2_bytes ? host->cpu.l2_bytes : 256 * 1024;
}

#endif
