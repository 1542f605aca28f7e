/** Strided copies (backends/lowering/moves.h) as steps. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_COPY_H
#define INFERD_BACKENDS_CPUACC_OPS_COPY_H

#include "backends/cpuacc/driver.h"
#include "backends/lowering/moves.h"

/** Adds the copy as a step, its dimensions merged. in_stride is that of rows without gaps, wherever
 *  the value's rows lie. The thread that owns rows fills them. */
IFD_NODISCARD enum ifd_code ifd_acc_add_copy(struct ifd_acc_lowering *lowering,
                                             const struct ifd_low_copy *copy, uint32_t in,
                                             uint32_t out, const char *name, struct ifd_err *err);

#endif
