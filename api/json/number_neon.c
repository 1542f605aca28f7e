/* Rows of numbers by NEON, which every aarch64 has. */
#include <arm_neon.h>
#include <stdint.h>

#define VEC_BYTES 16
typedef uint8_t vec16 __attribute__((vector_size(16)));
typedef vec16 vec;

/* Adding neighbours three times gathers eight bits in a byte. */
static inline uint64_t bits_of(const vec *part)
{
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t low = vpaddq_u8((uint8x16_t)part[0] & bit, (uint8x16_t)part[1] & bit);
    const uint8x16_t high = vpaddq_u8((uint8x16_t)part[2] & bit, (uint8x16_t)part[3] & bit);
    const uint8x16_t both = vpaddq_u8(low, high);
    return vgetq_lane_u64((uint64x2_t)vpaddq_u8(both, both), 0);
}

static inline vec look_up(vec16 table, vec index)
{
    return (vec)vqtbl1q_u8((uint8x16_t)table, (uint8x16_t)index);
}

static inline vec16 permute(vec16 text, vec16 index)
{
    return look_up(text, index);
}

static inline int64_t value_of_sixteen(vec16 digit)
{
    const uint8x16_t of_ten = {10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1};
    const uint16x8_t of_hundred = {100, 1, 100, 1, 100, 1, 100, 1};
    const uint32x4_t of_ten_thousand = {10000, 1, 10000, 1};
    const uint16x8_t of_2 = vpaddlq_u8(vmulq_u8((uint8x16_t)digit, of_ten));
    const uint32x4_t of_4 = vpaddlq_u16(vmulq_u16(of_2, of_hundred));
    const uint64x2_t of_8 = vpaddlq_u32(vmulq_u32(of_4, of_ten_thousand));
    return (int64_t)(vgetq_lane_u64(of_8, 0) * 100000000 + vgetq_lane_u64(of_8, 1));
}

#include "api/json/number_tmpl.c"

const struct ifd_number_rows *ifd_number_rows_neon(void)
{
    static const struct ifd_number_rows rows = {.f32 = run_f32, .integers = run_integers};
    return &rows;
}
