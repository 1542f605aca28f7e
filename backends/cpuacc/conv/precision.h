/** Which kernels compute a layer of f32, under the precision that the model's owner allows. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_PRECISION_H
#define INFERD_BACKENDS_CPUACC_CONV_PRECISION_H

#include "backends/cpuacc/conv/layer.h"

/** The kernels of the precision that the owner allows. Their run() is NULL where the CPU has
 *  none. */
const struct ifd_kern_gemm_f32 *ifd_acc_narrow_gemm(const struct ifd_acc_lowering *lowering);
/** Does the layer run with kernels that read inputs of 16 bits? */
bool ifd_acc_narrow_suits(const struct ifd_acc_lowering *lowering,
                          const struct ifd_acc_layer *layer);
/** And can it read, add and write floats of 16 bits? */
bool ifd_acc_narrow_stores(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer);
/** The kernels of all other layers: of that precision if they read inputs of f32, else of f32. */
const struct ifd_kern_gemm_f32 *ifd_acc_direct_gemm(const struct ifd_acc_lowering *lowering);
/** Is it a layer of f32 that the direct way computes in f32? */
bool ifd_acc_direct_is_f32(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer);

#endif
