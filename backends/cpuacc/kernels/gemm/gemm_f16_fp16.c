/* Half-precision gemm: 8 columns a register, tiles of 6 rows x 24 columns. Sums are half
 * precision for CHUNK inputs, f32 beyond. A chunk adds an error of at most CHUNK * 2^-11 of its
 * absolute products; a sum above 65,504 within a chunk becomes infinite. */
#define VECTOR 8
#define MAX_NV 3
#define KR     1
#define FORMAT IFD_PACK_F16
#include "backends/cpuacc/kernels/gemm/gemm_half_neon_tmpl.h"

enum { CHUNK = 64 };

#define FMA_LANE(lane) __asm__("fmla %0.8h, %1.8h, %2.h[" #lane "]" : "+w"(sum) : "w"(a), "x"(b))

/* sum + a * b[lane]; lane is a constant once unrolled. Assembly, because only half of the
 * registers can give a lane and gcc 12 copies lanes instead of choosing one of these. */
INLINE float16x8_t fma_lane(float16x8_t sum, float16x8_t a, float16x8_t b, const int lane)
{
    switch (lane) {
    case 0:
        FMA_LANE(0);
        return sum;
    case 1:
        FMA_LANE(1);
        return sum;
    case 2:
        FMA_LANE(2);
        return sum;
    case 3:
        FMA_LANE(3);
        return sum;
    case 4:
        FMA_LANE(4);
        return sum;
    case 5:
        FMA_LANE(5);
        return sum;
    case 6:
        FMA_LANE(6);
        return sum;
    default:
        FMA_LANE(7);
        return sum;
    }
}
#undef FMA_LANE

/* Up to CHUNK inputs of every row, in half precision. */
INLINE const uint16_t *add_chunk(const unsigned char *const *row, size_t begin, size_t end,
                                 const uint16_t *w, float16x8_t part[][MAX_NV], const size_t mr,
                                 const size_t nv)
{
    float16x8_t x[TALL];
    size_t at = begin;
    for (; at + 8 <= end; at += 8) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] = vreinterpretq_f16_u16(vld1q_u16((const uint16_t *)(const void *)row[i] + at));
        }
        UNROLL for (int lane = 0; lane < 8; lane++)
        {
            UNROLL for (size_t j = 0; j < nv; j++, w += VECTOR)
            {
                const float16x8_t column = vreinterpretq_f16_u16(vld1q_u16(w));
                UNROLL for (size_t i = 0; i < mr; i++)
                {
                    part[i][j] = fma_lane(part[i][j], column, x[i], lane);
                }
            }
        }
    }
    for (; at < end; at++) {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            x[i] =
                vreinterpretq_f16_u16(vld1q_dup_u16((const uint16_t *)(const void *)row[i] + at));
        }
        UNROLL for (size_t j = 0; j < nv; j++, w += VECTOR)
        {
            const float16x8_t column = vreinterpretq_f16_u16(vld1q_u16(w));
            UNROLL for (size_t i = 0; i < mr; i++)
            {
                part[i][j] = vfmaq_f16(part[i][j], column, x[i]);
            }
        }
    }
    return w;
}

INLINE void add_tap(const unsigned char *const *row, size_t k, const uint16_t *w,
                    float32x4_t sum[][QUADS], const size_t mr, const size_t nv)
{
    for (size_t at = 0, end = 0; at < k; at = end) {
        float16x8_t part[TALL][MAX_NV];
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                part[i][j] = vdupq_n_f16(0);
            }
        }
        end = at + CHUNK < k ? at + CHUNK : k;
        w = add_chunk(row, at, end, w, part, mr, nv);
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                float32x4_t *to = &sum[i][2 * j];
                to[0] = vaddq_f32(to[0], vcvt_f32_f16(vget_low_f16(part[i][j])));
                to[1] = vaddq_f32(to[1], vcvt_high_f32_f16(part[i][j]));
            }
        }
    }
}

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

static float speed(void)
{
    return 2.0f;
}

const struct ifd_kern_gemm_f32 IFD_TABLE = {.packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .run = run,
                                            .lanes = lanes,
                                            .narrow = narrow,
                                            .depth = depth,
                                            .speed = speed};
