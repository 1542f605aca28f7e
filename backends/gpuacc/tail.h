/** Element-wise operators as text that is put into the kernel that makes their input. A chain of
 *  them is one step, alone or behind a convolution.
 *
 *  The text is the macro TAIL(v, e, c, n): v is a float4, elements e … e+n-1 of the tensor, which
 *  are channels c … c+n-1 of their row. TAIL_PARAMS are the kernel's parameters for it. */
#ifndef INFERD_BACKENDS_GPUACC_TAIL_H
#define INFERD_BACKENDS_GPUACC_TAIL_H

#include "backends/gpuacc/lower.h"
#include "backends/lowering/fusion.h"

#define IFD_GPU_TAIL_ARGS 24
#define IFD_GPU_TAIL_TEXT 1536

struct ifd_gpu_tail {
    char params[IFD_GPU_TAIL_TEXT], body[IFD_GPU_TAIL_TEXT];
    char name[96]; /* "+add+relu" */
    struct ifd_gpu_arg arg[IFD_GPU_TAIL_ARGS];
    uint32_t arg_count, count; /* arguments; operators */
    bool has_rows;             /* an operand repeats with each row */
};

/** Is it an element-wise operator of f32 that has text? */
bool ifd_gpu_tail_takes(const struct ifd_node_view *node);

/** For kernels that compute a binary operator without a tail: defines OPERATOR(x, y), and adds the
 *  arguments p, q, lo, hi. */
void ifd_gpu_tail_operator(const struct ifd_node_view *node, struct ifd_gpu_call *call);

/** Appends one operator. False, and nothing is changed, if there is no room or no text. */
bool ifd_gpu_tail_append(struct ifd_gpu_tail *tail, const struct ifd_low_follower *follower);

/** Takes the operators that follow value and can be done with it; returns the value that the last
 *  one makes (value: there are none). */
uint32_t ifd_gpu_take_tail(struct ifd_gpu_lowering *lowering, uint32_t value,
                           struct ifd_gpu_tail *tail);

/** Adds the macros and arguments to a call, behind the kernel's own. */
void ifd_gpu_tail_finish(const struct ifd_gpu_tail *tail, struct ifd_gpu_call *call);

#endif
