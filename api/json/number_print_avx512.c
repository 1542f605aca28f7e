/* Rows of numbers as text: every number is spelled with all its places, then compression removes
 * those that are not shown. */
#include "api/json/number_exact.h"
#include "api/json/number_run.h"

#include <immintrin.h>

static inline uint64_t low_bits(uint32_t count)
{
    return _bzhi_u64(UINT64_MAX, count);
}

/* ---- values of eight bits ---- */

/* The digits of values below 256 in lanes of 32 bits: hundreds, tens and ones in the first three
 * bytes, then a comma. */
static inline __m512i spell(__m512i value)
{
    const __m512i hundreds =
        _mm512_srli_epi32(_mm512_mullo_epi16(value, _mm512_set1_epi32(41)), 12);
    const __m512i rest =
        _mm512_sub_epi32(value, _mm512_mullo_epi16(hundreds, _mm512_set1_epi32(100)));
    const __m512i tens = _mm512_srli_epi32(_mm512_mullo_epi16(rest, _mm512_set1_epi32(103)), 10);
    const __m512i ones = _mm512_sub_epi32(rest, _mm512_mullo_epi16(tens, _mm512_set1_epi32(10)));
    const __m512i digits = _mm512_or_si512(_mm512_or_si512(hundreds, _mm512_slli_epi32(tens, 8)),
                                           _mm512_slli_epi32(ones, 16));
    return _mm512_add_epi8(digits, _mm512_set1_epi32(0x2c303030));
}

/* Writes the bytes of text whose bits are set in which, side by side. Returns their count. */
static inline size_t put(char *to, uint64_t which, __m512i text)
{
    const uint32_t size = (uint32_t)_mm_popcnt_u64(which);
    _mm512_mask_storeu_epi8(to, low_bits(size), _mm512_maskz_compress_epi8(which, text));
    return size;
}

static inline size_t print_sixteen(char *to, __m128i value, uint32_t count)
{
    const __m512i wide = _mm512_cvtepu8_epi32(value);
    const __m512i in_each_byte = _mm512_mullo_epi32(wide, _mm512_set1_epi32(0x01010101));
    const uint64_t shown =
        _mm512_cmpge_epu8_mask(in_each_byte, _mm512_set1_epi32(0x00000a64)); /* from 100, from 10 */
    return put(to, shown & low_bits(4 * count), spell(wide));
}

/* The same for eight signed values: a minus sign in front, and three bytes behind that are never
 * shown. */
static inline size_t print_eight(char *to, __m128i value, uint32_t count)
{
    const __m512i wide = _mm512_cvtepu8_epi64(_mm_abs_epi8(value));
    const __m512i in_each_byte = _mm512_shuffle_epi8(
        wide,
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8)));
    const uint64_t digits =
        _mm512_cmpge_epu8_mask(in_each_byte, _mm512_set1_epi64((int64_t)0xffffff00000a64ff));
    const uint64_t minus =
        _pdep_u64((uint64_t)_mm_movepi8_mask(value), UINT64_C(0x0101010101010101));
    const __m512i text = _mm512_or_si512(_mm512_slli_epi64(spell(wide), 8), _mm512_set1_epi64('-'));
    return put(to, (digits | minus) & low_bits(8 * count), text);
}

size_t ifd_print_8_avx512(char *text, const void *value, bool is_signed, size_t count)
{
    const uint8_t *from = value;
    const size_t step = is_signed ? 8 : 16;
    char *at = text;
    for (size_t i = 0; i < count; i += step) {
        const uint32_t now = (uint32_t)(count - i < step ? count - i : step);
        const __m128i some = _mm_maskz_loadu_epi8((__mmask16)low_bits(now), from + i);
        at += is_signed ? print_eight(at, some, now) : print_sixteen(at, some, now);
    }
    return (size_t)(at - text) - (count > 0);
}

/* ---- floats ---- */

/* The algorithm of number_print.c, eight values at a time. The text of a number has 16 places:
 * sign, at most 13 digits, point, comma. */
#define F32_LEAST 1e-4f
#define F32_ABOVE 16777216.0f

struct decimals {
    __m512d digits;   /* integers */
    __m512i fraction; /* digits behind the point, at least one */
    __m512i shown;    /* digits in all, zeros in front included */
    __mmask8 doubtful;
};

static inline __m512d ten_to(__m512i exponent)
{
    return _mm512_permutex2var_pd(_mm512_setr_pd(1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7), exponent,
                                  _mm512_setr_pd(1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15));
}

/* exponent: up to 9 */
static inline __m512d ten_to_minus(__m512i exponent)
{
    return _mm512_permutex2var_pd(_mm512_setr_pd(1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7),
                                  exponent, _mm512_setr_pd(1e-8, 1e-9, 0, 0, 0, 0, 0, 0));
}

static inline __m512d whole(__m512d value)
{
    return _mm512_roundscale_pd(value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

/* Whether value is so near an integer that rounding may have moved it across. */
static inline __mmask8 near_integer(__m512d value)
{
    const __m512d nearest =
        _mm512_roundscale_pd(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_cmp_pd_mask(_mm512_abs_pd(_mm512_sub_pd(value, nearest)), _mm512_set1_pd(1e-6),
                              _CMP_LT_OQ);
}

/* The power of ten that makes value an integer of nine digits. */
static inline __m512i scale_of(__m256i bits, __m512d value)
{
    const __m256i two = _mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127));
    const __m256i ten = _mm256_srai_epi32(_mm256_mullo_epi32(two, _mm256_set1_epi32(1233)), 12);
    const __m512i one = _mm512_set1_epi64(1);
    __m512i scale = _mm512_sub_epi64(_mm512_set1_epi64(8), _mm512_cvtepi32_epi64(ten));
    const __m512d scaled = _mm512_mul_pd(value, ten_to(scale));
    scale = _mm512_mask_sub_epi64(
        scale, _mm512_cmp_pd_mask(scaled, _mm512_set1_pd(1e9), _CMP_GE_OQ), scale, one);
    return _mm512_mask_add_epi64(scale, _mm512_cmp_pd_mask(scaled, _mm512_set1_pd(1e8), _CMP_LT_OQ),
                                 scale, one);
}

/* The shortest decimals that read back as the floats of these bits. */
static inline struct decimals shortest(__m256i bits)
{
    const __m256i one_bit = _mm256_set1_epi32(1);
    const __m512d half = _mm512_set1_pd(0.5), middle = _mm512_cvtps_pd(_mm256_castsi256_ps(bits));
    const __m512d below = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_sub_epi32(bits, one_bit)));
    const __m512d above = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_add_epi32(bits, one_bit)));
    const __m512i scale = scale_of(bits, middle);
    const __m512d power = ten_to(scale);
    const __m512d low = _mm512_mul_pd(_mm512_mul_pd(_mm512_add_pd(middle, below), half), power);
    const __m512d high = _mm512_mul_pd(_mm512_mul_pd(_mm512_add_pd(middle, above), half), power);
    /* halves lie between integers, so that products with inverse powers of ten cannot miss one */
    const __m512d from = _mm512_add_pd(whole(low), half), to = _mm512_add_pd(whole(high), half);

    /* the most zeros at the end that a decimal in between can have */
    __m512i zeros = _mm512_setzero_si512();
    __mmask8 more = 0xff;
    for (int i = 1; i <= 9 && more; i++) {
        const __m512i next = _mm512_set1_epi64(i);
        const __m512d last =
            _mm512_mul_pd(whole(_mm512_mul_pd(to, ten_to_minus(next))), ten_to(next));
        more = _mm512_mask_cmp_pd_mask(more, last, from, _CMP_GT_OQ);
        zeros = _mm512_mask_mov_epi64(zeros, more, next);
    }
    const __m512d unit = ten_to(zeros), inverse = ten_to_minus(zeros);
    const __m512d wanted = _mm512_mul_pd(_mm512_mul_pd(middle, power), inverse);
    const __m512d least = _mm512_add_pd(whole(_mm512_mul_pd(from, inverse)), _mm512_set1_pd(1));
    const __m512d most = whole(_mm512_mul_pd(to, inverse));
    const __m512d nearest = whole(_mm512_add_pd(wanted, half));
    const __m512d best = _mm512_min_pd(_mm512_max_pd(nearest, least), most);

    /* one digit behind the point stays, even a zero */
    const __m512i one = _mm512_set1_epi64(1);
    const __m512i dropped = _mm512_min_epi64(zeros, _mm512_sub_epi64(scale, one));
    const __m512i fraction = _mm512_sub_epi64(scale, dropped);
    const __mmask8 is_longer =
        _mm512_cmp_pd_mask(_mm512_mul_pd(best, unit), _mm512_set1_pd(1e9), _CMP_GE_OQ);
    __m512i in_front = _mm512_sub_epi64(_mm512_set1_epi64(9), scale);
    in_front = _mm512_mask_add_epi64(in_front, is_longer, in_front, one);
    return (struct decimals){
        .digits = _mm512_mul_pd(best, ten_to(_mm512_sub_epi64(zeros, dropped))),
        .fraction = fraction,
        .shown = _mm512_add_epi64(_mm512_max_epi64(in_front, one), fraction),
        .doubtful =
            near_integer(low) | near_integer(high) | near_integer(_mm512_add_pd(wanted, half)),
    };
}

/* Integers below 10^8 in lanes of 64 bits as eight digits each, the first digit in the first
 * byte. */
static inline __m512i spell_eight(__m512i value)
{
    const __m512i four = _mm512_srli_epi64(_mm512_mul_epu32(value, _mm512_set1_epi64(109951163)),
                                           40); /* value / 10^4 */
    const __m512i fours = _mm512_or_si512(
        four, _mm512_slli_epi64(
                  _mm512_sub_epi64(value, _mm512_mul_epu32(four, _mm512_set1_epi64(10000))), 32));
    const __m512i two =
        _mm512_srli_epi32(_mm512_mullo_epi32(fours, _mm512_set1_epi32(5243)), 19); /* / 100 */
    const __m512i twos = _mm512_or_si512(
        two, _mm512_slli_epi32(
                 _mm512_sub_epi32(fours, _mm512_mullo_epi16(two, _mm512_set1_epi32(100))), 16));
    const __m512i ten =
        _mm512_srli_epi16(_mm512_mullo_epi16(twos, _mm512_set1_epi16(103)), 10); /* / 10 */
    return _mm512_or_si512(
        ten, _mm512_slli_epi16(
                 _mm512_sub_epi16(twos, _mm512_mullo_epi16(ten, _mm512_set1_epi16(10))), 8));
}

/* The low bytes of four lanes of 64 bits from lane first, each in 16 bytes. */
static inline __m512i in_sixteen(__m512i from, __m512i lanes)
{
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi64(lanes, from), _mm512_setzero_si512());
}

/* Prints four of eight numbers from first; shows count of them. */
static inline size_t print_four(char *to, const struct decimals *decimals, __mmask8 minus,
                                uint32_t first, uint32_t count)
{
    const __m512i lanes = _mm512_add_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3),
                                           _mm512_set1_epi64((int64_t)first));
    const __m512d upper = whole(
        _mm512_mul_pd(_mm512_add_pd(decimals->digits, _mm512_set1_pd(0.5)), _mm512_set1_pd(1e-8)));
    const __m512d lower =
        _mm512_sub_pd(decimals->digits, _mm512_mul_pd(upper, _mm512_set1_pd(1e8)));
    const __m512i halves =
        _mm512_mask_permutexvar_epi64(_mm512_permutexvar_epi64(lanes, _mm512_cvtpd_epi64(upper)),
                                      0xaa, lanes, _mm512_cvtpd_epi64(lower));
    const __m512i place =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m512i comma = _mm512_set1_epi8(15), one = _mm512_set1_epi8(1);
    const __m512i point =
        _mm512_sub_epi8(_mm512_set1_epi8(14), in_sixteen(decimals->fraction, lanes));
    const __m512i start = _mm512_sub_epi8(_mm512_set1_epi8(14), in_sixteen(decimals->shown, lanes));
    /* digits move forward one place for the comma, those in front of the point another one */
    __m512i from = _mm512_add_epi8(place, one);
    from = _mm512_mask_add_epi8(from, _mm512_cmplt_epi8_mask(place, point), from, one);
    __m512i text =
        _mm512_add_epi8(_mm512_shuffle_epi8(spell_eight(halves), from), _mm512_set1_epi8('0'));
    text = _mm512_mask_mov_epi8(text, _mm512_cmpeq_epi8_mask(place, point), _mm512_set1_epi8('.'));
    text = _mm512_mask_mov_epi8(text, _mm512_cmpeq_epi8_mask(place, comma), _mm512_set1_epi8(','));
    const uint64_t is_minus = _mm512_movepi8_mask(in_sixteen(_mm512_movm_epi64(minus), lanes));
    const uint64_t sign = _mm512_mask_cmpeq_epi8_mask(is_minus, place, _mm512_sub_epi8(start, one));
    text = _mm512_mask_mov_epi8(text, sign, _mm512_set1_epi8('-'));
    return put(to, (_mm512_cmpge_epi8_mask(place, start) | sign) & low_bits(16 * count), text);
}

size_t ifd_print_f32_avx512(char *text, const float *value, size_t count)
{
    const __m256i all = _mm256_maskz_loadu_epi32((__mmask8)low_bits((uint32_t)count), value);
    const __m256i bits = _mm256_and_si256(all, _mm256_set1_epi32(INT32_MAX));
    const __m256 magnitude = _mm256_castsi256_ps(bits);
    const __mmask8 zero = _mm256_testn_epi32_mask(bits, bits);
    const __mmask8 usual = _mm256_cmp_ps_mask(magnitude, _mm256_set1_ps(F32_LEAST), _CMP_GE_OQ) &
                           _mm256_cmp_ps_mask(magnitude, _mm256_set1_ps(F32_ABOVE), _CMP_LT_OQ);
    if ((zero | usual) != 0xff) {
        return 0;
    }
    /* a zero is printed as 1.0 without the 1 */
    struct decimals decimals =
        shortest(_mm256_mask_mov_epi32(bits, zero, _mm256_castps_si256(_mm256_set1_ps(1))));
    if (decimals.doubtful) {
        return 0;
    }
    decimals.digits = _mm512_maskz_mov_pd((__mmask8)~zero, decimals.digits);
    const __mmask8 minus = _mm256_movepi32_mask(all);
    const uint32_t some = count < 4 ? (uint32_t)count : 4;
    char *at = text + print_four(text, &decimals, minus, 0, some);
    if (count > 4) {
        at += print_four(at, &decimals, minus, 4, (uint32_t)count - 4);
    }
    return (size_t)(at - text);
}
