/** f32 layers whose operands become 16 bits, if the model's owner allows it. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_NARROW_H
#define INFERD_BACKENDS_CPUACC_CONV_NARROW_H

#include "backends/cpuacc/conv/layer.h"

/** The kernels of the precision that the model's owner allows. Their run() is NULL where the CPU
 *  has none. */
const struct ifd_kern_gemm_f32 *ifd_acc_narrow_gemm(const struct ifd_acc_lowering *lowering);
/** Is the layer one of f32 for kernels that read inputs of 16 bits? */
bool ifd_acc_narrow_suits(const struct ifd_acc_lowering *lowering,
                          const struct ifd_acc_layer *layer);

#endif
