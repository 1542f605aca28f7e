/* From 32-bit sums to stored bytes, NEON. The arrays of a tail are those of pack.h except the
 * shifts, which neon_tail() brings to the form of the instructions. FAST is single rounding
 * here: it costs no more than a float product. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_NEON_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_FINISH_NEON_H

#include <arm_neon.h>
#include "backends/cpuacc/kernels/simd/inline.h"
#include "backends/cpuacc/kernels/pack.h"

/* Factors of one vector of sums. */
struct factors {
    int32x4_t multiplier, left, right;
};

/* More ways to finish: double rounding where no result, before its zero point, takes more than 16
 * bits, and no factor is 1/2 or more.
 *   RELU    the zero point is the smallest number, so that negative results are clamped.
 *   LINEAR  any other. */
enum { NEON_FINISH_RELU = IFD_FINISH_NONE + 1, NEON_FINISH_LINEAR };

/* Whether that holds for channel c, whose weights without their zero point have `magnitude` as
 * the sum of their magnitudes. */
static int is_small(const struct ifd_requant *requant, size_t c, int64_t magnitude)
{
    const int64_t bias = requant->bias ? requant->bias[c] : 0;
    const int64_t sum = 255 * magnitude + (bias < 0 ? -bias : bias);
    return requant->shift[c] < 0 && sum < 1 << 29 &&
           sum * requant->multiplier[c] >> (31 - requant->shift[c]) < INT16_MAX;
}

/* The way to finish. small: is_small() holds for all channels. */
static int32_t neon_finish(const struct ifd_requant *requant, int small)
{
    if (requant->round == IFD_ROUND_NONE) {
        return (int32_t)IFD_FINISH_NONE;
    }
    if (requant->round == IFD_ROUND_EVEN) {
        return (int32_t)IFD_FINISH_EVEN;
    }
    if (requant->round != IFD_ROUND_DOUBLE) {
        return (int32_t)IFD_FINISH_FAST;
    }
    return !small                          ? (int32_t)IFD_FINISH_EXACT_SIGN
           : requant->out_zero == INT8_MIN ? (int32_t)NEON_FINISH_RELU
                                           : (int32_t)NEON_FINISH_LINEAR;
}

/* Brings the shifts of a tail to the form of the instructions. EVEN: the factor, a float, takes the
 * place of the multiplier. */
static void neon_tail(const struct ifd_requant *requant, size_t width, int32_t *tail)
{
    int32_t *left = tail + IFD_TAIL_LEFT * width, *right = tail + IFD_TAIL_RIGHT * width;
    const int single = requant->round != IFD_ROUND_DOUBLE;
    for (size_t i = 0; i < width && requant->round != IFD_ROUND_NONE; i++) {
        /* the doubling multiply supplies one of the left shifts, or two where it rounds */
        left[i] -= single ? 1 : 2;
        right[i] = single ? -right[i] : 1 - right[i];
        if (requant->round == IFD_ROUND_EVEN) {
            tail[IFD_TAIL_MULTIPLIER * width + i] = tail[IFD_TAIL_SCALE * width + i];
        }
    }
}

/* tail points at the vector's columns, width is the block's. */
INLINE struct factors load_factors(const int32_t *tail, size_t width)
{
    return (struct factors){vld1q_s32(tail + IFD_TAIL_MULTIPLIER * width),
                            vld1q_s32(tail + IFD_TAIL_LEFT * width),
                            vld1q_s32(tail + IFD_TAIL_RIGHT * width)};
}

/* The product with a float, rounded half to even, or a number far beyond 16 bits. */
INLINE int32x4_t scale_even(int32x4_t sum, int32x4_t factor)
{
    const float32x4_t x = vmulq_f32(vcvtq_f32_s32(sum), vreinterpretq_f32_s32(factor));
#if defined(__aarch64__)
    return vcvtnq_s32_f32(x);
#else
    /* floats from 2^23 on are whole: adding 1.5 * 2^23 rounds */
    const float32x4_t whole = vdupq_n_f32(12582912.0f), far = vdupq_n_f32(1e6f);
    const float32x4_t near = vminq_f32(vmaxq_f32(x, vnegq_f32(far)), far);
    return vsubq_s32(vreinterpretq_s32_f32(vaddq_f32(near, whole)), vreinterpretq_s32_f32(whole));
#endif
}

/* A doubling multiply that rounds is LiteRT's first rounding. Its second one, halves away from
 * zero, is a rounding shift, of negative numbers less one unless the shift is 0. finish: the
 * header's, a constant where that pays. */
INLINE int32x4_t scale_sums(const int finish, const struct factors *f, int32x4_t sum)
{
    if (finish == NEON_FINISH_RELU) {
        return vrshlq_s32(vqrdmulhq_s32(sum, f->multiplier), f->right);
    }
    if (finish == NEON_FINISH_LINEAR) {
        const int32x4_t y = vqrdmulhq_s32(sum, f->multiplier);
        return vrshlq_s32(vsraq_n_s32(y, y, 31), f->right);
    }
    if (finish == IFD_FINISH_EVEN) {
        return scale_even(sum, f->multiplier);
    }
    sum = vshlq_s32(sum, f->left);
    if (finish == IFD_FINISH_FAST) {
        return vrshlq_s32(vqdmulhq_s32(sum, f->multiplier), f->right);
    }
    const int32x4_t y = vqrdmulhq_s32(sum, f->multiplier);
    return vrshlq_s32(vsraq_n_s32(y, vandq_s32(y, f->right), 31), f->right);
}

/* Zero point and bounds, in every lane. */
struct bounds {
    int16x8_t zero;
    int8x8_t min, max;
};

INLINE struct bounds load_bounds(const struct ifd_packed *header)
{
    return (struct bounds){vdupq_n_s16((int16_t)header->private_[IFD_PACKED_OUT_ZERO]),
                           vdup_n_s8((int8_t)header->private_[IFD_PACKED_OUT_MIN]),
                           vdup_n_s8((int8_t)header->private_[IFD_PACKED_OUT_MAX])};
}

/* Two vectors of scaled sums in one of 16 bits. */
INLINE int16x8_t narrow_32(const int finish, int32x4_t lo, int32x4_t hi)
{
    const int small = finish == NEON_FINISH_RELU || finish == NEON_FINISH_LINEAR;
#if defined(__aarch64__)
    return small ? vuzp1q_s16(vreinterpretq_s16_s32(lo), vreinterpretq_s16_s32(hi))
                 : vqmovn_high_s32(vqmovn_s32(lo), hi);
#else
    return small ? vcombine_s16(vmovn_s32(lo), vmovn_s32(hi))
                 : vcombine_s16(vqmovn_s32(lo), vqmovn_s32(hi));
#endif
}

/* Eight or sixteen of those in 8 bits, with the zero point (the same in all lanes) added. */
INLINE int8x8_t narrow_8(const int finish, int16x8_t x, int16x8_t zero)
{
    if (finish == NEON_FINISH_RELU) { /* unsigned numbers less 128 */
        return vreinterpret_s8_u8(veor_u8(vqmovun_s16(x), vdup_n_u8(0x80)));
    }
    return vqmovn_s16(vqaddq_s16(x, zero));
}

INLINE int8x16_t narrow_16(const int finish, int16x8_t lo, int16x8_t hi, int16x8_t zero)
{
#if defined(__aarch64__)
    if (finish == NEON_FINISH_RELU) {
        const uint8x16_t bytes = vqmovun_high_s16(vqmovun_s16(lo), hi);
        return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(0x80)));
    }
    return vqmovn_high_s16(vqmovn_s16(vqaddq_s16(lo, zero)), vqaddq_s16(hi, zero));
#else
    return vcombine_s8(narrow_8(finish, lo, zero), narrow_8(finish, hi, zero));
#endif
}

INLINE void store_8(int8x8_t bytes, size_t columns, int8_t *out)
{
    if (columns >= 8) {
        vst1_s8(out, bytes);
        return;
    }
    uint64_t rest = vget_lane_u64(vreinterpret_u64_s8(bytes), 0);
    for (size_t i = 0; i < columns; i++, rest >>= 8) {
        out[i] = (int8_t)rest;
    }
}

#endif
