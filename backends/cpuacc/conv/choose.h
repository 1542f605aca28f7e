/** The choice of an algorithm for a layer, and the step that it makes. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_CHOOSE_H
#define INFERD_BACKENDS_CPUACC_CONV_CHOOSE_H

#include "backends/cpuacc/conv/layer.h"

/** Chooses the cheapest algorithm for conv->layer, plans it, and adds its step. operands: values
 *  that the step reads, out: the one that it makes. conv: in the partition's arena. name: what the
 *  step is called, followed by the algorithm, "+act" and so on. */
IFD_NODISCARD enum ifd_code ifd_acc_conv_add(struct ifd_acc_lowering *lowering,
                                             struct ifd_acc_conv *conv,
                                             const uint32_t operands[IFD_ACC_STEP_INPUTS],
                                             uint32_t out, const char *name, bool activates,
                                             struct ifd_err *err);

#endif
