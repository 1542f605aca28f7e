/** One operator of a tail (tail.h): a kernel and its parameters. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_TAIL_OP_H
#define INFERD_BACKENDS_CPUACC_OPS_TAIL_OP_H

#include "backends/cpuacc/driver.h"
#include "backends/lowering/fusion.h"

/** Exactly one of unary, table, binary and binary_q8 is set. */
struct ifd_acc_tail_op {
    const char *name;
    void (*unary)(size_t n, const float *in, float *out, float p0, float p1);
    float p0, p1;
    const uint8_t *table; /* of 256 bytes */
    void (*binary)(const struct ifd_binary_args *args);
    float min, max;
    void (*binary_q8)(const struct ifd_q8_binary_args *args);
    const struct ifd_q8_binary_args *q8; /* what does not change from call to call */
    enum ifd_low_operand kind;
    uint32_t input;   /* of the step: where the other operand is */
    bool comes_first; /* the other operand does */
    bool is_narrow;   /* the other operand is */
};

#endif
