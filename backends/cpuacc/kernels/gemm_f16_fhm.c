/* Half-precision products that are summed in f32: tiles of 6 rows x 16 columns. Twice the instructions of sums in half
 * precision, without their error and their bound. */
#define MAX_NV 2
#include "backends/cpuacc/kernels/gemm_f16_neon.h"

/* Columns 0-3 of a to one vector of sums, 4-7 to the next. */
#define ADD_LANE(lane)                                                                             \
    __asm__("fmlal %0.4s, %2.4h, %3.h[" #lane "]\n\tfmlal2 %1.4s, %2.4h, %3.h[" #lane "]"          \
            : "+w"(sum[0]), "+w"(sum[1])                                                           \
            : "w"(a), "x"(b))

/* Adds a * b[lane]; lane is a constant once unrolled. By hand, as in gemm_f16_fp16.c. */
INLINE void add_lane(float32x4_t sum[2], float16x8_t a, float16x8_t b, const int lane)
{
    switch (lane) {
    case 0:
        ADD_LANE(0);
        return;
    case 1:
        ADD_LANE(1);
        return;
    case 2:
        ADD_LANE(2);
        return;
    case 3:
        ADD_LANE(3);
        return;
    case 4:
        ADD_LANE(4);
        return;
    case 5:
        ADD_LANE(5);
        return;
    case 6:
        ADD_LANE(6);
        return;
    default:
        ADD_LANE(7);
    }
}
#undef ADD_LANE

INLINE void add_tap(const unsigned char *const *row, size_t k, const uint16_t *w,
                    float32x4_t sum[][QUADS], const size_t mr, const size_t nv)
{
    float16x8_t x[TALL];
    size_t at = 0;
    for (; at + 8 <= k; at += 8) {
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
                    add_lane(&sum[i][2 * j], column, x[i], lane);
                }
            }
        }
    }
    for (; at < k; at++) {
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
                add_lane(&sum[i][2 * j], column, x[i], 0);
            }
        }
    }
}

/* As many products an instruction as f32 has: weights take half of the memory. */
static float speed(void)
{
    return 1.0f;
}

const struct ifd_kern_gemm_f32 IFD_TABLE = {.packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .run = run,
                                            .lanes = lanes,
                                            .narrow = narrow,
                                            .depth = depth,
                                            .speed = speed};
