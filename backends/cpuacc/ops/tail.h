/** Tails: element-wise operators that follow each other run chunk by chunk, while a chunk of the
 *  first value is in the cache. A convolution applies its tail to every tile; a sequence that
 *  begins with an element-wise operator is a step. Each operator calls the same kernel as it would
 *  alone, so results are the same, bit for bit.
 *
 *  Which operators can join: backends/lowering/fusion.h. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_TAIL_H
#define INFERD_BACKENDS_CPUACC_OPS_TAIL_H

#include "backends/cpuacc/ops/tail_op.h"

#define IFD_ACC_TAIL_MAX 6

struct ifd_acc_tail {
    uint32_t count;
    struct ifd_acc_tail_op op[IFD_ACC_TAIL_MAX];
    char name[64]; /* "+add+relu" */
};

/** Fuses the operators that follow a value. operands: of the step that makes the value; those of
 *  the tail take the free places (IFD_NO_VALUE) from index first on. Returns the value that the
 *  step makes with its tail. narrows: the step can write one that is narrow. Before the step is
 *  added. */
uint32_t ifd_acc_take_tail(struct ifd_acc_lowering *lowering, uint32_t value, uint32_t first,
                           uint32_t operands[IFD_ACC_STEP_INPUTS], bool narrows,
                           struct ifd_acc_tail *ret_tail);

/** Rows of n elements, stride apart, of a value whose rows are width elements long. */
struct ifd_acc_chunk {
    const void *in;
    void *out; /* may be in */
    size_t rows, n, stride;
    size_t row, column,
        width; /* of the first element in the whole value: where operands of its shape continue */
};

void ifd_acc_run_tail(const struct ifd_acc_tail *tail, const struct ifd_acc_step *step,
                      const struct ifd_acc_frame *frame, const struct ifd_acc_chunk *chunk);

/** Lowers an element-wise node that could be part of a tail, with its tail, as one step. False, and
 *  nothing is done, for other nodes. */
bool ifd_acc_lower_tail(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                        enum ifd_code *ret_code, struct ifd_err *err);

/** The same for a node of one operand that unary.h takes. */
IFD_NODISCARD enum ifd_code ifd_acc_lower_unary(struct ifd_acc_lowering *lowering,
                                                const struct ifd_partition_node *node,
                                                struct ifd_err *err);

#endif
