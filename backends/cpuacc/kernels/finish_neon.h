/* From 32-bit sums to stored bytes, NEON: see pack.h for the arrays of a tail. FAST is single
 * rounding here: it costs no more than a float product. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_FINISH_NEON_H
#define INFERD_BACKENDS_CPUACC_KERNELS_FINISH_NEON_H

#include <arm_neon.h>
#include "backends/cpuacc/kernels/inline.h"
#include "backends/cpuacc/kernels/pack.h"

/* What scales one vector of sums; plus and minus are not set for FAST. */
struct factors {
    int32x4_t multiplier, left, right, plus, minus;
};

/* tail points at the vector's columns, width is the block's. */
INLINE struct factors load_factors(int finish, const int32_t *tail, size_t width)
{
    struct factors f;
    f.multiplier = vld1q_s32(tail + IFD_TAIL_MULTIPLIER * width);
    /* the doubling multiply supplies one of the left shifts */
    f.left = vsubq_s32(vld1q_s32(tail + IFD_TAIL_LEFT * width), vdupq_n_s32(1));
    f.right = vnegq_s32(vld1q_s32(tail + IFD_TAIL_RIGHT * width));
    if (finish != IFD_FINISH_FAST) {
        f.plus = vld1q_s32(tail + IFD_TAIL_PLUS * width);
        f.minus = finish == IFD_FINISH_EXACT ? f.plus : vld1q_s32(tail + IFD_TAIL_PLUS_NEG * width);
    } else {
        f.plus = f.minus = vdupq_n_s32(0);
    }
    return f;
}

INLINE int32x4_t scale_sums(int finish, const struct factors *f, int32x4_t sum)
{
    int32x4_t y = vqdmulhq_s32(vshlq_s32(sum, f->left), f->multiplier);
    if (finish == IFD_FINISH_FAST) {
        return vrshlq_s32(y, f->right);
    }
    int32x4_t round = vbslq_s32(vcltq_s32(y, vdupq_n_s32(0)), f->minus, f->plus);
    return vshlq_s32(vaddq_s32(y, round), f->right);
}

/* Scales rows vectors of sums of one column vector in place, step apart. */
INLINE void scale_column(int finish, const int32_t *tail, size_t width, int32x4_t *sum,
                         const size_t rows, const size_t step)
{
    const struct factors f = load_factors(finish, tail, width);
    UNROLL for (size_t i = 0; i < rows; i++)
    {
        sum[i * step] = scale_sums(finish, &f, sum[i * step]);
    }
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

INLINE int8x8_t pack_8(int32x4_t lo, int32x4_t hi, const struct bounds *bounds)
{
    int16x8_t words = vcombine_s16(vqmovn_s32(lo), vqmovn_s32(hi));
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
