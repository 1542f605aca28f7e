/** Operators of 8-bit numbers as tables of all their results, which the reference kernel makes:
 *  exact by definition, and one kernel for all of them. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_TABLE_H
#define INFERD_BACKENDS_GPUACC_OPS_TABLE_H

#include "backends/gpuacc/lower.h"

/** Element-wise, one or two 8-bit operands, a result of 8 bits or (one operand) f32? */
bool ifd_gpu_table_takes(const struct ifd_node_view *node);

IFD_NODISCARD enum ifd_code ifd_gpu_table_lower(struct ifd_gpu_lowering *lowering,
                                                const struct ifd_partition_node *node,
                                                struct ifd_err *err);

#endif
