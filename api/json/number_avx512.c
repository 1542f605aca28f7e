/* Rows of numbers, 64 characters at a time: permutations bring the digits of many numbers side by
 * side. */
#include "api/json/number_block.h"

#include <immintrin.h>

/* The whole numbers of a block. */
struct block {
    struct ifd_number_block found;
    __m512i digit;  /* characters less '0' */
    __m512i start;  /* byte i: where number i begins, without its sign */
    __m512i point;  /* its point; its end if it has none */
    __m512i end;    /* its end, or one behind that if it has no point */
    uint64_t minus; /* bit i: number i has a minus sign */
};

static inline uint64_t low_bits(uint32_t count)
{
    return _bzhi_u64(UINT64_MAX, count);
}

static inline uint32_t first_of(uint64_t bits)
{
    return (uint32_t)_tzcnt_u64(bits);
}

static inline __m512i bytes(int value)
{
    return _mm512_set1_epi8((char)value);
}

static inline uint64_t where(__m512i text, char c)
{
    return _mm512_cmpeq_epi8_mask(text, bytes(c));
}

static inline __m512i positions(void)
{
    const __m512i quarter =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm512_add_epi8(quarter, _mm512_setr_epi64(0, 0, 0x1010101010101010, 0x1010101010101010,
                                                      0x2020202020202020, 0x2020202020202020,
                                                      0x3030303030303030, 0x3030303030303030));
}

/* Finds up to most numbers at the start of row; has_sign, has_point: whether '-' and '.' may come.
 * Inline, so that its vectors stay in registers. */
static IFD_NUMBER_INLINE struct block look(const struct ifd_number_row *row, bool has_sign,
                                           bool has_point, size_t most)
{
    const uint64_t inside =
        row->end - row->at >= 64 ? UINT64_MAX : low_bits((uint32_t)(row->end - row->at));
    const __m512i text = _mm512_maskz_loadu_epi8(inside, row->at);
    struct block block = {.digit = _mm512_sub_epi8(text, bytes('0'))};
    struct ifd_number_chars chars = {.digit = _mm512_cmple_epu8_mask(block.digit, bytes(9)),
                                     .zero = where(text, '0'),
                                     .comma = where(text, ','),
                                     .blank = where(text, ' '),
                                     .minus = has_sign ? where(text, '-') : 0,
                                     .point = has_point ? where(text, '.') : 0};
    if (~(chars.digit | chars.comma | chars.blank | chars.minus | chars.point)) {
        chars.open = where(text, '[');
        chars.close = where(text, ']');
    }
    const struct ifd_number_block found = ifd_number_block(&chars, row, most);
    block.found = found;
    block.start = _mm512_maskz_compress_epi8(found.start, positions());
    block.point = _mm512_maskz_compress_epi8(found.point, positions());
    block.end = _mm512_maskz_compress_epi8(found.end, positions());
    block.end = _mm512_sub_epi8(
        block.end, _mm512_movm_epi8(_pext_u64(found.whole, found.end))); /* true is -1 */
    block.minus = _pext_u64(found.minus << 1, found.start);
    return block;
}

/* Takes the numbers before the first wrong one and returns their count. *ret_goes_on: there were
 * some and none was wrong. */
static inline uint32_t pass(struct block *block, uint64_t wrong, struct ifd_number_row *row,
                            bool *ret_goes_on)
{
    wrong &= low_bits(block->found.count);
    const uint32_t good = wrong ? first_of(wrong) : block->found.count;
    ifd_number_pass(&block->found, good, row);
    *ret_goes_on = good > 0 && !wrong;
    return good;
}

/* Bit i: number i has more than limit digits. */
static inline uint64_t longer_than(const struct block *block, int limit)
{
    /* a point or a comma is between start and end, too */
    const __m512i length = _mm512_sub_epi8(block->end, block->start);
    return _mm512_cmpgt_epu8_mask(length, bytes(limit + 1));
}

/* ---- up to three digits into bytes ---- */

static inline __m512i of_digit(__m512i digit, __m128i table)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), digit);
}

/* Returns a bit for each number that is too large. */
static inline uint64_t small_values(const struct block *block, uint8_t high, __m512i *ret)
{
    const __m512i last = _mm512_sub_epi8(block->end, bytes(2));
    const __m512i length = _mm512_sub_epi8(last, block->start); /* less 1 */
    const uint64_t has_tens = _mm512_cmpge_epu8_mask(length, bytes(1));
    const uint64_t has_hundreds = _mm512_cmpge_epu8_mask(length, bytes(2));
    const __m512i ones = _mm512_permutexvar_epi8(last, block->digit);
    const __m512i tens =
        _mm512_maskz_permutexvar_epi8(has_tens, _mm512_sub_epi8(last, bytes(1)), block->digit);
    const __m512i hundreds =
        _mm512_maskz_permutexvar_epi8(has_hundreds, _mm512_sub_epi8(last, bytes(2)), block->digit);
    const __m512i below = _mm512_add_epi8(
        ones,
        of_digit(tens, _mm_setr_epi8(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 0, 0, 0, 0, 0, 0)));
    const __m512i above =
        of_digit(hundreds, _mm_setr_epi8(0, 100, (char)200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m512i value = _mm512_add_epi8(below, above);
    const __m512i limit = _mm512_sub_epi8(bytes(high), _mm512_movm_epi8(block->minus));
    *ret = _mm512_mask_sub_epi8(value, block->minus, _mm512_setzero_si512(), value);
    return _mm512_cmpgt_epu8_mask(hundreds, bytes(2)) | _mm512_cmplt_epu8_mask(value, above) |
           _mm512_cmpgt_epu8_mask(value, limit) | longer_than(block, 3);
}

static IFD_NUMBER_INLINE size_t run_bytes(struct ifd_number_row *ret_row, bool is_signed,
                                          uint8_t high, uint8_t *to, size_t count)
{
    struct ifd_number_row row = *ret_row; /* a copy, so that it can stay in registers */
    size_t i = 0;
    bool goes_on = true;
    while (goes_on && i < count) {
        __m512i value;
        struct block block = look(&row, is_signed, false, count - i);
        const uint64_t wrong = small_values(&block, high, &value);
        const uint32_t good = pass(&block, wrong, &row, &goes_on);
        _mm512_mask_storeu_epi8(to + i, low_bits(good), value);
        i += good;
    }
    *ret_row = row;
    return i;
}

/* ---- up to 16 digits, eight numbers at a time ---- */

#define DIGITS_MAX 16

/* The digits of numbers first, first + 2, + 4, + 6, each as a 64-bit integer, twice. */
static inline __m512i gather_four(const struct block *block, uint32_t first)
{
    const __m512i own = _mm512_add_epi8(
        bytes((int)first),
        _mm512_setr_epi64(0, 0, 0x0202020202020202, 0x0202020202020202, 0x0404040404040404,
                          0x0404040404040404, 0x0606060606060606, 0x0606060606060606));
    const __m512i start = _mm512_permutexvar_epi8(own, block->start);
    const __m512i point = _mm512_permutexvar_epi8(own, block->point);
    const __m512i end = _mm512_permutexvar_epi8(own, block->end);
    const __m512i back = _mm512_broadcast_i32x4(
        _mm_setr_epi8(-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1));
    /* source of each digit: those in front of the point move up to it */
    __m512i from = _mm512_add_epi8(end, back);
    from = _mm512_mask_sub_epi8(from, _mm512_cmple_epi8_mask(from, point), from, bytes(1));
    const uint64_t inside = _mm512_cmpge_epi8_mask(from, start);
    const __m512i digit = _mm512_maskz_permutexvar_epi8(inside, from, block->digit);

    const __m512i of_2 = _mm512_maddubs_epi16(digit, _mm512_set1_epi16(0x010a));
    const __m512i of_4 = _mm512_madd_epi16(of_2, _mm512_set1_epi32(0x00010064));
    const __m512i of_8 =
        _mm512_madd_epi16(_mm512_packus_epi32(of_4, of_4), _mm512_set1_epi32(0x00012710));
    return _mm512_add_epi64(_mm512_mul_epu32(of_8, _mm512_set1_epi64(100000000)),
                            _mm512_srli_epi64(of_8, 32));
}

static inline __m512i gather_eight(const struct block *block, uint32_t first)
{
    return _mm512_mask_blend_epi64(0xaa, gather_four(block, first), gather_four(block, first + 1));
}

/* Eight bytes from first as 64-bit integers. */
static inline __m512i widen_eight(__m512i from, uint32_t first)
{
    const __m512i place = _mm512_add_epi64(_mm512_set1_epi64((int64_t)first),
                                           _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm512_maskz_permutexvar_epi8(UINT64_C(0x0101010101010101), place, from);
}

static void store_integers(uint8_t *to, size_t size, __mmask8 which, __m512i value)
{
    switch (size) {
    case 2:
        _mm512_mask_cvtepi64_storeu_epi16(to, which, value);
        break;
    case 4:
        _mm512_mask_cvtepi64_storeu_epi32(to, which, value);
        break;
    default:
        _mm512_mask_storeu_epi64(to, which, value);
        break;
    }
}

static inline size_t run_wide(struct ifd_number_row *ret_row, bool is_signed, uint64_t high,
                              size_t size, uint8_t *to, size_t count)
{
    struct ifd_number_row row = *ret_row; /* a copy, so that it can stay in registers */
    size_t i = 0;
    bool goes_on = true;
    while (goes_on && i < count) {
        struct block block = look(&row, is_signed, false, count - i);
        uint64_t wrong = longer_than(&block, DIGITS_MAX);
        for (uint32_t k = 0; k < block.found.count; k += 8) {
            const __mmask8 minus = (__mmask8)(block.minus >> k);
            const __m512i value = gather_eight(&block, k);
            const __m512i limit = _mm512_sub_epi64(_mm512_set1_epi64((int64_t)high),
                                                   _mm512_movm_epi64(minus)); /* true is -1 */
            wrong |= (uint64_t)_mm512_cmpgt_epu64_mask(value, limit) << k;
            store_integers(to + (i + k) * size, size, (__mmask8)low_bits(block.found.count - k),
                           _mm512_mask_sub_epi64(value, minus, _mm512_setzero_si512(), value));
        }
        i += pass(&block, wrong, &row, &goes_on);
    }
    *ret_row = row;
    return i;
}

static size_t run_integers(struct ifd_number_row *row, bool is_signed, size_t size, void *to,
                           size_t count)
{
    const uint64_t high = UINT64_MAX >> (64 - 8 * size + is_signed);
    if (size == 1) {
        return is_signed ? run_bytes(row, true, (uint8_t)high, to, count)
                         : run_bytes(row, false, (uint8_t)high, to, count);
    }
    return run_wide(row, is_signed, high, size, to, count);
}

/* ---- floats ---- */

/* digits × 10^-fraction as floats; bits of *ret_wrong: the double in between leaves a doubt
 * (number_exact.h). */
static inline __m256 scale(__m512i digits, __m512i fraction, uint64_t *ret_wrong)
{
    const __m512d few = _mm512_setr_pd(1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7);
    const __m512d many = _mm512_setr_pd(1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15);
    const __m512d value =
        _mm512_mul_pd(_mm512_cvtepu64_pd(digits), _mm512_permutex2var_pd(few, fraction, many));
    const __m512i dropped =
        _mm512_and_si512(_mm512_castpd_si512(value), _mm512_set1_epi64(IFD_NUMBER_F32_DROPPED));
    const __m512i distance =
        _mm512_sub_epi64(dropped, _mm512_set1_epi64(IFD_NUMBER_F32_MIDDLE - IFD_NUMBER_F32_DOUBT));
    *ret_wrong = _mm512_cmple_epu64_mask(distance, _mm512_set1_epi64(2 * IFD_NUMBER_F32_DOUBT));
    return _mm512_cvtpd_ps(value);
}

static size_t run_f32(struct ifd_number_row *ret_row, float *to, size_t count)
{
    struct ifd_number_row row = *ret_row; /* a copy, so that it can stay in registers */
    size_t i = 0;
    bool goes_on = true;
    while (goes_on && i < count) {
        struct block block = look(&row, true, true, count - i);
        const __m512i fraction = _mm512_sub_epi8(block.end, _mm512_add_epi8(block.point, bytes(1)));
        uint64_t wrong = longer_than(&block, DIGITS_MAX);
        for (uint32_t k = 0; k < block.found.count; k += 8) {
            uint64_t doubtful = 0;
            const __m256 value =
                scale(gather_eight(&block, k), widen_eight(fraction, k), &doubtful);
            const __m256 sign =
                _mm256_and_ps(_mm256_castsi256_ps(_mm256_movm_epi32((__mmask8)(block.minus >> k))),
                              _mm256_set1_ps(-0.0f));
            wrong |= doubtful << k;
            _mm256_mask_storeu_ps(to + i + k, (__mmask8)low_bits(block.found.count - k),
                                  _mm256_xor_ps(value, sign));
        }
        i += pass(&block, wrong, &row, &goes_on);
    }
    /* numbers of more digits, such as doubles, are read one by one */
    i += ifd_number_rows_avx2()->f32(&row, to + i, count - i);
    *ret_row = row;
    return i;
}

/* ---- what this CPU can do ---- */

const struct ifd_number_rows *ifd_number_rows_avx512(void)
{
    static const struct ifd_number_rows rows = {.f32 = run_f32,
                                                .integers = run_integers,
                                                .print_8 = ifd_print_8_avx512,
                                                .print_f32 = ifd_print_f32_avx512};
    const bool is_here = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512vbmi") &&
                         __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2") &&
                         ifd_number_rows_avx2();
    return is_here ? &rows : NULL;
}
