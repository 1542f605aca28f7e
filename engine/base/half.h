/** 16-bit floats as bit patterns: IEEE binary16 and bfloat16, to and from float. Rounds to nearest, ties to even; keeps
 *  infinities, NaNs and subnormals. Only stdint and string: usable from kernels. Thread: any. */
#ifndef INFERD_ENGINE_BASE_HALF_H
#define INFERD_ENGINE_BASE_HALF_H

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

static inline float ifd_f32_from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    const uint32_t fraction = half & 0x3FFu;
    if (exponent == 0) { /* zero and subnormals: fraction * 2^-24, exact */
        const float magnitude = (float)fraction * 0x1p-24f;
        return ifd_f32_from_bits(sign | ifd_f32_bits(magnitude));
    }
    const uint32_t wide_exponent = exponent == 0x1F ? 0xFFu : exponent + 112;
    return ifd_f32_from_bits(sign | wide_exponent << 23 | fraction << 13);
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
    if (magnitude <
        0x38800000u) { /* below 2^-14: let the addition of 1/2 round to multiples of 2^-24 */
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
