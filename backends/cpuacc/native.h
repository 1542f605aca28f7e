/** The native form of quantized 8-bit values inside of a partition (kernels.h, Q8): u8 on x86, s8
 *  on Arm. Steps at the border flip s8 tensors that come in or go out on x86. */
#ifndef INFERD_BACKENDS_CPUACC_NATIVE_H
#define INFERD_BACKENDS_CPUACC_NATIVE_H

#include "backends/cpuacc/kernels/kernels.h"
#include "inferd/backend.h"

bool ifd_acc_is_q8(enum ifd_dtype dtype);
/** Native zero point of a quantized 8-bit tensor. */
int32_t ifd_acc_zero(const struct ifd_desc *desc);
/** What a quantization makes of quotients that 32 bits do not hold, or not with the zero point: the
 *  lowest number, which wraps with a zero point below 0. */
struct ifd_q8_beyond ifd_acc_beyond(const struct ifd_desc *quantized);
/** The byte that flips between a type and its native form; 0 where they are the same. */
uint8_t ifd_acc_flip(enum ifd_dtype dtype);
/** Native bounds of an output under an activation. False, and the bounds of the type, if the
 *  activation is not a clamp. */
bool ifd_acc_clamp_q8(int32_t activation, const struct ifd_desc *output, int32_t *ret_min,
                      int32_t *ret_max);

#endif
