/* Cells of LSTM layers of 8 bits, as LiteRT's integer kernel computes them: numbers of 16 bits
 * without integer digits in the gates, with exponent + 15 of them in the cells. Shared by the
 * reference kernel and CpuAcc. Thread: any. */
#ifndef INFERD_ENGINE_TENSOR_LSTM8_H
#define INFERD_ENGINE_TENSOR_LSTM8_H

#include "engine/tensor/fixed.h"

static inline int16_t ifd_lstm8_saturate(int64_t x)
{
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

/* Factor of sums of products of weights and numbers with these scales, in a gate. */
static inline double ifd_lstm8_factor(float weights, float x, float gate)
{
    const float scale = weights * x;
    return (double)(scale / gate);
}

/* Factor of a product of a gate and of tanh of a cell, in a result of this scale. */
static inline double ifd_lstm8_hidden_factor(float scale)
{
    return 0x1p-15 / (double)scale * 0x1p-15;
}

/* A gate and one more sum of products. */
static inline int16_t ifd_lstm8_add(int16_t gate, int32_t sum, int32_t multiplier, int shift)
{
    return ifd_lstm8_saturate((int64_t)gate + ifd_fixed_scale_double(sum, multiplier, shift));
}

/* Bound of cells, INT16_MAX for none; clip is in real units. */
static inline int16_t ifd_lstm8_clip(float clip, int exponent)
{
    const double steps = ldexp((double)clip, -exponent);
    return clip > 0 && steps < INT16_MAX ? (int16_t)steps : INT16_MAX;
}

/* forget, in, update: gates. is_clipped: to -clip … clip. */
static inline int16_t ifd_lstm8_cell(int16_t cell, int16_t forget, int16_t in, int16_t update,
                                     int exponent, bool is_clipped, int16_t clip)
{
    const int16_t kept = (int16_t)ifd_fixed_shift_right((int32_t)forget * cell, 15);
    const int16_t added = (int16_t)ifd_fixed_shift_right((int32_t)in * update, 30 + exponent);
    const int16_t sum = ifd_lstm8_saturate((int64_t)kept + added);
    return is_clipped && sum > clip ? clip : is_clipped && sum < -clip ? (int16_t)-clip : sum;
}

/* The result of a cell whose tanh is given, as a stored number of s8. */
static inline int8_t ifd_lstm8_hidden(int16_t open, int16_t tanh_of_cell, int32_t multiplier,
                                      int shift, int32_t zero)
{
    const int32_t product = (int32_t)open * tanh_of_cell;
    const int64_t y = (int64_t)ifd_fixed_scale_double(product, multiplier, shift) + zero;
    return (int8_t)(y < INT8_MIN ? INT8_MIN : y > INT8_MAX ? INT8_MAX : y);
}

#endif
