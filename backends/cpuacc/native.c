/* The native form of 8-bit values. */
#include "backends/cpuacc/native.h"

#include "backends/lowering/requantize.h"

#include <math.h>

int32_t ifd_acc_zero(const struct ifd_desc *desc)
{
    const int32_t zero = desc->quant.count ? desc->quant.zero_point[0] : 0;
    return zero + (desc->dtype == IFD_S8 ? IFD_Q8_SHIFT_S8 : IFD_Q8_SHIFT_U8);
}

/* Below 2^31 the largest float is 2^31 - 128: with a zero point of 128 and more the sum wraps. */
struct ifd_q8_beyond ifd_acc_beyond(const struct ifd_desc *quantized)
{
    const int32_t zero = quantized->quant.zero_point[0];
    return (struct ifd_q8_beyond){zero < 128 ? 0x1p31f : 0x1p31f - 128, zero < 0 ? 1e6f : -1e6f};
}

uint8_t ifd_acc_flip(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 ? IFD_Q8_FLIP_S8 : dtype == IFD_U8 ? IFD_Q8_FLIP_U8 : 0;
}

bool ifd_acc_is_q8(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 || dtype == IFD_U8;
}

static int32_t native_bound(float real, const struct ifd_desc *output)
{
    return ifd_low_bound(real, output->quant.scale[0], ifd_acc_zero(output), IFD_Q8_MIN,
                         IFD_Q8_MAX);
}

bool ifd_acc_clamp_q8(int32_t activation, const struct ifd_desc *output, int32_t *ret_min,
                      int32_t *ret_max)
{
    float min = 0, max = 0;
    const bool is_clamp = ifd_low_clamp_f32(activation, &min, &max);
    *ret_min = native_bound(is_clamp ? min : -INFINITY, output);
    *ret_max = native_bound(is_clamp ? max : INFINITY, output);
    *ret_max = *ret_max > *ret_min ? *ret_max : *ret_min;
    return is_clamp;
}
