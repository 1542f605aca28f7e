/** Floats that are stored with 16 bits between steps, where the owner of a model allows its layers
 *  to round their operands to bf16 and the kernels write it (ifd_kern_gemm_f32.widen): half the
 *  memory to write and to read, and nothing to narrow before products. */
#ifndef INFERD_BACKENDS_CPUACC_NARROW_H
#define INFERD_BACKENDS_CPUACC_NARROW_H

#include "backends/cpuacc/draft.h"

/** Chooses the values and makes them values of bf16: the lowering gets a view of its own. Drivers
 *  are chosen, values not made. */
IFD_NODISCARD enum ifd_code ifd_acc_choose_narrow(struct ifd_acc_lowering *lowering,
                                                  struct ifd_err *err);

bool ifd_acc_is_narrow(const struct ifd_acc_lowering *lowering, uint32_t value);
/** Has the node an input or a result that is narrow? */
bool ifd_acc_has_narrow(const struct ifd_acc_lowering *lowering,
                        const struct ifd_partition_node *node);

#endif
