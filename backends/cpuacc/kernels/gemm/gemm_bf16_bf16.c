/* bf16 products with bfmmla: 2 rows x 2 columns of 4 inputs an instruction, tiles of 6 rows x 16
 * columns, whose sums are 2x2 squares until the end of a tap. */
#define VECTOR 4
#define MAX_NV 4
#define KR     4
#define FORMAT IFD_PACK_BF16
#include "backends/cpuacc/kernels/gemm/gemm_half_neon_tmpl.h"

#define PAIRS(mr) (((mr) + 1) / 2)

/* Four inputs of every row. */
INLINE void add_step(const bfloat16x8_t *a, const uint16_t *w, float32x4_t square[][2 * MAX_NV],
                     const size_t mr, const size_t nv)
{
    UNROLL for (size_t j = 0; j < 2 * nv; j++)
    {
        const bfloat16x8_t columns = vreinterpretq_bf16_u16(vld1q_u16(w + 8 * j));
        UNROLL for (size_t i = 0; i < PAIRS(mr); i++)
        {
            square[i][j] = vbfmmlaq_f32(square[i][j], a[i], columns);
        }
    }
}

INLINE const uint16_t *input(const unsigned char *row, size_t k)
{
    return (const uint16_t *)(const void *)row + k;
}

INLINE void add_tap(const unsigned char *const *row, size_t k, const uint16_t *w,
                    float32x4_t sum[][QUADS], const size_t mr, const size_t nv)
{
    float32x4_t square[TALL / 2][2 * MAX_NV];
    bfloat16x8_t a[TALL / 2], b[TALL / 2];
    size_t at = 0;
    UNROLL for (size_t i = 0; i < PAIRS(mr); i++)
    {
        const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
        UNROLL for (size_t q = 0; q < nv; q++)
        {
            const float64x2_t x = vreinterpretq_f64_f32(sum[2 * i][q]);
            const float64x2_t y = vreinterpretq_f64_f32(sum[second][q]);
            square[i][2 * q] = vreinterpretq_f32_f64(vzip1q_f64(x, y));
            square[i][2 * q + 1] = vreinterpretq_f32_f64(vzip2q_f64(x, y));
        }
    }
    for (; at + 8 <= k; at += 8, w += 2 * 4 * VECTOR * nv) {
        UNROLL for (size_t i = 0; i < PAIRS(mr); i++)
        {
            const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
            const uint64x2_t x = vreinterpretq_u64_u16(vld1q_u16(input(row[2 * i], at)));
            const uint64x2_t y = vreinterpretq_u64_u16(vld1q_u16(input(row[second], at)));
            a[i] = vreinterpretq_bf16_u64(vzip1q_u64(x, y));
            b[i] = vreinterpretq_bf16_u64(vzip2q_u64(x, y));
        }
        add_step(a, w, square, mr, nv);
        add_step(b, w + 4 * VECTOR * nv, square, mr, nv);
    }
    for (; at < k; at += 4, w += 4 * VECTOR * nv) {
        UNROLL for (size_t i = 0; i < PAIRS(mr); i++)
        {
            const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
            a[i] = vreinterpretq_bf16_u16(
                vcombine_u16(vld1_u16(input(row[2 * i], at)), vld1_u16(input(row[second], at))));
        }
        add_step(a, w, square, mr, nv);
    }
    UNROLL for (size_t i = 0; i < PAIRS(mr); i++)
    {
        const size_t second = 2 * i + 1 < mr ? 2 * i + 1 : 2 * i;
        UNROLL for (size_t q = 0; q < nv; q++)
        {
            const float64x2_t x = vreinterpretq_f64_f32(square[i][2 * q]);
            const float64x2_t y = vreinterpretq_f64_f32(square[i][2 * q + 1]);
            sum[second][q] = vreinterpretq_f32_f64(vzip2q_f64(x, y));
            sum[2 * i][q] = vreinterpretq_f32_f64(vzip1q_f64(x, y));
        }
    }
}

static void narrow(size_t n, const float *in, uint16_t *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(in + i));
        vst1q_u16(out + i, vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(in + i + 4))));
    }
    for (; i < n; i++) {
        out[i] = vget_lane_u16(vreinterpret_u16_bf16(vcvt_bf16_f32(vdupq_n_f32(in[i]))), 0);
    }
}

static float speed(void)
{
    return 4.0f;
}

const struct ifd_kern_gemm_f32 IFD_TABLE = {.packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .run = run,
                                            .lanes = lanes,
                                            .narrow = narrow,
                                            .depth = depth,
                                            .speed = speed};
