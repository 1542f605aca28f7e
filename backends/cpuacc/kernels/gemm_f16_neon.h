/* What half-precision products share, however they are summed: 8 columns a register, and the way into 16 bits. The includer
 * defines MAX_NV before, and what gemm_half_neon.h wants after. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_F16_NEON_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_F16_NEON_H

#define VECTOR 8
#define KR     1
#define FORMAT IFD_PACK_F16
#include "backends/cpuacc/kernels/gemm_half_neon.h"

/* Finite numbers stay finite. */
INLINE float16x4_t narrow_4(float32x4_t x)
{
    const float32x4_t bound =
        vminq_f32(vmaxq_f32(x, vdupq_n_f32(-65504.0f)), vdupq_n_f32(65504.0f));
    const uint32x4_t is_infinite = vceqq_f32(vabsq_f32(x), vdupq_n_f32(__builtin_inff()));
    return vcvt_f16_f32(vbslq_f32(is_infinite, x, bound));
}

static void narrow(size_t n, const float *in, uint16_t *out)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        vst1_u16(out + i, vreinterpret_u16_f16(narrow_4(vld1q_f32(in + i))));
    }
    for (; i < n; i++) {
        out[i] = vget_lane_u16(vreinterpret_u16_f16(narrow_4(vdupq_n_f32(in[i]))), 0);
    }
}

#endif
