/* From a 32-bit sum to 8 bits, one at a time: see pack.h for the arrays of a tail. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_SCALAR_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_SCALAR_H

#include "backends/cpuacc/kernels/pack.h"

/* Nearest integer, halves to even, of |x| < 2^22 (or any x that is an integer already). */
static inline int32_t nearest_even(float x)
{
    float whole = (float)(int32_t)x;
    float rest = x - whole;
    int32_t down = (int32_t)x;
    if (rest > 0.5f || (rest == 0.5f && (down & 1))) {
        return down + 1;
    }
    return rest < -0.5f || (rest == -0.5f && (down & 1)) ? down - 1 : down;
}

/* Column `slot` of a tail of `width` columns. */
static inline ifd_q8 finish_scalar(const struct ifd_packed *header, const int32_t *tail,
                                   size_t width, size_t slot, int32_t sum)
{
    const int32_t *private_ = header->private_;
    const int32_t finish = private_[IFD_PACKED_FINISH];
    const float *scale = (const float *)(const void *)(tail + IFD_TAIL_SCALE * width);
    int32_t x;
    int64_t left = (int64_t)sum * ((int64_t)1 << tail[IFD_TAIL_LEFT * width + slot]);
    int64_t y = (left * tail[IFD_TAIL_MULTIPLIER * width + slot]) >> 32;
    if (finish == (IFD_Q8_EXACT ? IFD_FINISH_EVEN : IFD_FINISH_FAST)) {
        x = nearest_even((float)sum * scale[slot]);
    } else if (finish == IFD_FINISH_FAST) {
        int32_t right = tail[IFD_TAIL_RIGHT * width + slot];
        x = (int32_t)((y + ((int64_t)1 << (right - 1))) >> right);
    } else {
        int negative = finish == IFD_FINISH_EXACT_SIGN && y < 0;
        y += tail[(negative ? IFD_TAIL_PLUS_NEG : IFD_TAIL_PLUS) * width + slot];
        x = (int32_t)(y >> tail[IFD_TAIL_RIGHT * width + slot]);
    }
    int64_t value = (int64_t)x + private_[IFD_PACKED_OUT_ZERO];
    if (value < private_[IFD_PACKED_OUT_MIN]) {
        value = private_[IFD_PACKED_OUT_MIN];
    }
    return (ifd_q8)(value > private_[IFD_PACKED_OUT_MAX] ? private_[IFD_PACKED_OUT_MAX] : value);
}

#endif
