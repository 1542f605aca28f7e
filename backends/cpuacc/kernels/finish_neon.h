/* From 32-bit sums to stored bytes, NEON. The arrays of a tail are those of pack.h, but for the
 * shifts, which are as the instructions want them: see neon_tail(). FAST is single rounding here: it
 * costs no more than a float product. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_FINISH_NEON_H
#define INFERD_BACKENDS_CPUACC_KERNELS_FINISH_NEON_H

#include <arm_neon.h>
#include "backends/cpuacc/kernels/inline.h"
#include "backends/cpuacc/kernels/pack.h"

/* What scales one vector of sums. */
struct factors {
    int32x4_t multiplier, left, right;
};

/* One more way to finish: double rounding of factors of 1 and more. */
enum { NEON_FINISH_LEFT = IFD_FINISH_NONE + 1 };

/* Sets the shifts of a tail as the instructions want them, and the way to finish in the header. */
static void neon_tail(const struct ifd_requant *requant, size_t width, struct ifd_packed *header,
                      int32_t *tail)
{
    int32_t *left = tail + IFD_TAIL_LEFT * width, *right = tail + IFD_TAIL_RIGHT * width;
    int32_t *finish = &header->private_[IFD_PACKED_FINISH];
    if (requant->round == IFD_ROUND_NONE) {
        return;
    }
    const int single = requant->round != IFD_ROUND_DOUBLE;
    *finish = single ? (int32_t)IFD_FINISH_FAST : *finish;
    for (size_t i = 0; i < width; i++) {
        /* the doubling multiply supplies one of the left shifts, or two where it rounds */
        left[i] -= single ? 1 : 2;
        right[i] = single ? -right[i] : 1 - right[i];
        *finish = !single && left[i] > 0 ? (int32_t)NEON_FINISH_LEFT : *finish;
    }
}

/* tail points at the vector's columns, width is the block's. */
INLINE struct factors load_factors(const int32_t *tail, size_t width)
{
    return (struct factors){vld1q_s32(tail + IFD_TAIL_MULTIPLIER * width),
                            vld1q_s32(tail + IFD_TAIL_LEFT * width),
                            vld1q_s32(tail + IFD_TAIL_RIGHT * width)};
}

/* A doubling multiply that rounds is LiteRT's first rounding. Its second one, halves away from zero,
 * is a rounding shift; of negative numbers less one, unless they are not shifted at all, and unless
 * the clamp takes negative numbers anyway. finish: header's, a constant where it pays. */
INLINE int32x4_t scale_sums(const int finish, const struct factors *f, int32x4_t sum)
{
    if (finish == IFD_FINISH_EXACT) {
        return vrshlq_s32(vqrdmulhq_s32(sum, f->multiplier), f->right);
    }
    if (finish == IFD_FINISH_EXACT_SIGN) {
        const int32x4_t y = vqrdmulhq_s32(sum, f->multiplier);
        return vrshlq_s32(vsraq_n_s32(y, vandq_s32(y, f->right), 31), f->right);
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

/* Two vectors of 32 bits in one of 16, two of 16 in one of 8. */
INLINE int16x8_t narrow_32(int32x4_t lo, int32x4_t hi)
{
#if defined(__aarch64__)
    return vqmovn_high_s32(vqmovn_s32(lo), hi);
#else
    return vcombine_s16(vqmovn_s32(lo), vqmovn_s32(hi));
#endif
}

INLINE int8x16_t narrow_16(int16x8_t lo, int16x8_t hi)
{
#if defined(__aarch64__)
    return vqmovn_high_s16(vqmovn_s16(lo), hi);
#else
    return vcombine_s8(vqmovn_s16(lo), vqmovn_s16(hi));
#endif
}

INLINE int8x8_t pack_8(int32x4_t lo, int32x4_t hi, const struct bounds *bounds)
{
    const int16x8_t words = narrow_32(lo, hi);
    int8x8_t bytes = vqmovn_s16(vqaddq_s16(words, bounds->zero));
    return vmin_s8(vmax_s8(bytes, bounds->min), bounds->max);
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
