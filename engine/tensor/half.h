/** 16-bit floats as bit patterns: IEEE binary16 and bfloat16, to and from float. Rounds to
 *  nearest, ties to even; keeps infinities, NaNs and subnormals. Only stdint and string: usable
 *  from kernels. Thread: any. */
#ifndef INFERD_ENGINE_TENSOR_HALF_H
#define INFERD_ENGINE_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

static inline float ifd_f32_from_bits(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t ifd_f32_bits(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Without branches, so that compilers vectorize it. */
static inline float ifd_f32_from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = (uint32_t)(half & 0x7FFFu) << 13, bias = 112u << 23;
    /* zero and subnormals: (1 + fraction * 2^-10 - 1) * 2^-14, exact */
    const float small = ifd_f32_from_bits(magnitude + bias + (1u << 23)) - 0x1p-14f;
    const uint32_t is_small = 0u - (magnitude < 1u << 23);
    const uint32_t more_bias = magnitude < 31u << 23 ? 0 : bias; /* infinity, NaN */
    return ifd_f32_from_bits(sign | (ifd_f32_bits(small) & is_small) |
                             ((magnitude + bias + more_bias) & ~is_small));
}

static inline uint16_t ifd_f16_from_f32(float value)
{
    const uint32_t bits = ifd_f32_bits(value);
    const uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {
        return (uint16_t)(sign | 0x7E00u);
    }
    if (magnitude >= 0x477FF000u) { /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7C00u);
    }
    if (magnitude < 0x38800000u) {
        /* below 2^-14: the addition of 1/2 rounds to multiples of 2^-24 */
        const float shifted = ifd_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (ifd_f32_bits(shifted) - 0x3F000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

static inline float ifd_f32_from_bf16(uint16_t brain)
{
    return ifd_f32_from_bits((uint32_t)brain << 16);
}

static inline uint16_t ifd_bf16_from_f32(float value)
{
    const uint32_t bits = ifd_f32_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

#endif
