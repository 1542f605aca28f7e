/* Rows of numbers by AVX2. */
#include <immintrin.h>
#include <stdint.h>

#define VEC_BYTES 32
typedef uint8_t vec16 __attribute__((vector_size(16)));
typedef uint8_t vec __attribute__((vector_size(VEC_BYTES)));

static inline uint64_t bits_of(const vec *part)
{
    const uint32_t low = (uint32_t)_mm256_movemask_epi8((__m256i)part[0]);
    const uint32_t high = (uint32_t)_mm256_movemask_epi8((__m256i)part[1]);
    return low | (uint64_t)high << 32;
}

static inline vec look_up(vec16 table, vec index)
{
    return (vec)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256((__m128i)table), (__m256i)index);
}

static inline vec16 permute(vec16 text, vec16 index)
{
    return (vec16)_mm_shuffle_epi8((__m128i)text, (__m128i)index);
}

static inline int64_t value_of_sixteen(vec16 digit)
{
    const __m128i of_2 = _mm_maddubs_epi16((__m128i)digit, _mm_set1_epi16(0x010a));
    const __m128i of_4 = _mm_madd_epi16(of_2, _mm_set1_epi32(0x00010064));
    const __m128i of_8 = _mm_madd_epi16(_mm_packus_epi32(of_4, of_4), _mm_set1_epi32(0x00012710));
    const uint64_t halves = (uint64_t)_mm_cvtsi128_si64(of_8);
    return (int64_t)((halves & UINT32_MAX) * 100000000 + (halves >> 32));
}

#include "api/json/number_tmpl.c"

const struct ifd_number_rows *ifd_number_rows_avx2(void)
{
    static const struct ifd_number_rows rows = {.f32 = run_f32, .integers = run_integers};
    const bool is_here = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                         __builtin_cpu_supports("popcnt");
    return is_here ? &rows : NULL;
}
