/* Decimal text into binary numbers.
 *
 * Up to 19 digits are gathered in an integer; where it and the power of ten are exact doubles, one multiplication or division
 * rounds correctly (Clinger). A float is read through a double that may be off by two of its last places, which changes
 * nothing unless it lies that close to the middle of two floats. What remains goes to the C library. */
#include "api/number_run.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float and double must be computed in their own precision");

#define EXACT_POWER_MAX 22
static const double power_of_ten[EXACT_POWER_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#define SIGNIFICANT_MAX 19
#define EXPONENT_MAX    100000 /* beyond it every number is zero or infinite */

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

/* Adds the digits from at on; is_fraction: they stand behind the point. */
static const char *scan_digits(const char *at, const char *end, bool is_fraction,
                               struct ifd_number *number, int *significant)
{
    int32_t shift = 0;
    for (; at < end && is_digit(*at); at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (*significant < SIGNIFICANT_MAX) {
            number->digits = number->digits * 10 + digit;
            *significant += number->digits != 0;
            shift -= is_fraction;
        } else {
            number->is_cut = true;
            shift += !is_fraction;
        }
        if (shift > EXPONENT_MAX || shift < -EXPONENT_MAX) {
            /* keeps the sum in range; such numbers are left to the C library */
            number->is_cut = true;
            shift = 0;
        }
    }
    number->exponent += shift;
    return at;
}

static const char *scan_exponent(const char *at, const char *end, struct ifd_number *number)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) {
        at++;
    }
    if (at >= end || !is_digit(*at)) {
        return NULL;
    }
    int32_t value = 0;
    for (; at < end && is_digit(*at); at++) {
        value = value < EXPONENT_MAX ? value * 10 + (*at - '0') : value;
    }
    number->exponent += negative ? -value : value;
    return at;
}

size_t ifd_number_scan(const char *text, const char *end, struct ifd_number *ret)
{
    struct ifd_number number = {.text = text, .is_integer = true};
    int significant = 0;
    const char *at = text;
    if (at < end && *at == '-') {
        number.negative = true;
        at++;
    }
    const char *first = at;
    at = scan_digits(at, end, false, &number, &significant);
    if (at == first || (*first == '0' && at > first + 1)) {
        return 0;
    }
    if (at < end && *at == '.') {
        number.is_integer = false;
        first = at + 1;
        at = scan_digits(first, end, true, &number, &significant);
        if (at == first) {
            return 0;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        number.is_integer = false;
        at = scan_exponent(at + 1, end, &number);
        if (!at) {
            return 0;
        }
    }
    number.size = (size_t)(at - text);
    *ret = number;
    return number.size;
}

bool ifd_number_u64(const struct ifd_number *number, uint64_t *ret)
{
    uint64_t value = 0;
    if (!number->is_integer || (number->negative && number->digits != 0)) {
        return false;
    }
    if (!number->is_cut) {
        *ret = number->digits;
        return true;
    }
    for (size_t i = number->negative; i < number->size; i++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(number->text[i] - '0'), &value)) {
            return false;
        }
    }
    *ret = value;
    return true;
}

bool ifd_number_s64(const struct ifd_number *number, int64_t *ret)
{
    /* 19 digits hold every int64: a longer number cannot fit */
    uint64_t limit = (uint64_t)INT64_MAX + number->negative;
    if (!number->is_integer || number->is_cut || number->digits > limit) {
        return false;
    }
    *ret = (int64_t)(number->negative ? 0 - number->digits : number->digits);
    return true;
}

double ifd_number_f64(const struct ifd_number *number)
{
    int32_t exponent = number->exponent;
    if (number->is_cut || number->digits > (UINT64_C(1) << 53) || exponent > EXACT_POWER_MAX ||
        exponent < -EXACT_POWER_MAX) {
        return strtod(number->text, NULL);
    }
    double value = (double)number->digits;
    value = exponent >= 0 ? value * power_of_ten[exponent] : value / power_of_ten[-exponent];
    return number->negative ? -value : value;
}

/* A float from digits × 10^exponent; false where the double in between leaves a doubt. */
static bool nearest_f32(uint64_t digits, int32_t exponent, float *ret)
{
    static const double inverse[EXACT_POWER_MAX + 1] = {
        1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,  1e-10, 1e-11,
        1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22};
    const double value =
        (double)digits * (exponent >= 0 ? power_of_ten[exponent] : inverse[-exponent]);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    const uint64_t distance =
        (bits & IFD_NUMBER_F32_DROPPED) - (IFD_NUMBER_F32_MIDDLE - IFD_NUMBER_F32_DOUBT);
    *ret = (float)value;
    return (distance > 2 * IFD_NUMBER_F32_DOUBT && value >= (double)FLT_MIN) || digits == 0;
}

float ifd_number_f32(const struct ifd_number *number)
{
    const int32_t exponent = number->exponent;
    float value = 0;
    if (number->is_cut || exponent > EXACT_POWER_MAX || exponent < -EXACT_POWER_MAX ||
        !nearest_f32(number->digits, exponent, &value)) {
        return strtof(number->text, NULL);
    }
    return number->negative ? -value : value;
}

/* ---- runs ---- */

/* Eight characters at once: all digits? their value (low byte first). */
static bool are_digits(uint64_t text)
{
    return ((text & 0xf0f0f0f0f0f0f0f0) |
            ((text + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) == 0x3333333333333333;
}

static uint32_t value_of_digits(uint64_t text)
{
    const uint64_t low = 0x0f0f0f0f0f0f0f0f;
    text = (text & low) * 2561 >> 8;
    text = (text & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (uint32_t)((text & 0x0000ffff0000ffff) * 42949672960001 >> 32);
}

static inline const char *gather(const char *at, const char *end, uint64_t *digits)
{
    uint64_t value = *digits, text = 0;
    while (end - at >= 8) {
        memcpy(&text, at, sizeof(text));
        if (!are_digits(text)) {
            break;
        }
        value = value * 100000000 + value_of_digits(text);
        at += 8;
    }
    for (; at < end && is_digit(*at); at++) {
        value = value * 10 + (uint64_t)(*at - '0');
    }
    *digits = value;
    return at;
}

/* -?digits[.digits], and the comma; NULL if it is anything else, or longer than 19 digits. */
static inline const char *scan_plain(const char *at, const char *end, uint64_t *ret_digits,
                                     int32_t *ret_exponent, bool *ret_negative)
{
    uint64_t digits = 0;
    *ret_negative = at < end && *at == '-';
    at += *ret_negative;
    const char *first = at;
    at = gather(at, end, &digits);
    ptrdiff_t count = at - first, fraction = 0;
    if (count == 0 || (count > 1 && *first == '0')) {
        return NULL;
    }
    if (at < end && *at == '.') {
        const char *point = at + 1;
        at = gather(point, end, &digits);
        fraction = at - point;
        count += fraction;
        if (fraction == 0) {
            return NULL;
        }
    }
    if (at >= end || *at != ',' || count > SIGNIFICANT_MAX) {
        return NULL;
    }
    *ret_digits = digits;
    *ret_exponent = (int32_t)-fraction;
    return at + 1;
}

static inline const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && *at == ' ') {
        at++;
    }
    return at;
}

static bool take_f32(const char **at, const char *end, float *to)
{
    uint64_t digits = 0;
    int32_t exponent = 0;
    bool negative = false;
    float value = 0;
    const char *next = scan_plain(*at, end, &digits, &exponent, &negative);
    if (!next || !nearest_f32(digits, exponent, &value)) {
        return false;
    }
    *to = negative ? -value : value;
    *at = skip_spaces(next, end);
    return true;
}

/* digits and the comma behind them, both within eight characters: the usual case, told by arithmetic instead of branches
 * since lengths of numbers cannot be foreseen. NULL if it is anything else. */
static inline const char *scan_short(const char *at, const char *end, uint64_t *ret_digits)
{
    const uint64_t ones = 0x0101010101010101, zeros = ones * '0';
    uint64_t text = 0;
    if (end - at < 8) {
        return NULL;
    }
    memcpy(&text, at, sizeof(text));
    const uint64_t other = text ^ ones * ',';
    const uint64_t comma = (other - ones) & ~other & ones << 7;
    if (comma == 0 || (comma & 0x80) != 0) {
        return NULL;
    }
    const unsigned bits = (unsigned)__builtin_ctzll(comma) - 7; /* of the digits */
    if ((text & 0xff) == '0' && bits > 8) {
        return NULL;
    }
    text = text << (64 - bits) | zeros >> bits; /* as eight digits, zeros in front */
    if (!are_digits(text)) {
        return NULL;
    }
    *ret_digits = value_of_digits(text);
    return at + bits / 8 + 1;
}

/* The number in bytes first … comma-1 of text, digits by value: at most three of them. UINT32_MAX if they are not, or begin
 * with a zero that does not stand alone. */
static inline uint32_t value_of_three(uint64_t text, unsigned first, unsigned comma)
{
    const unsigned count = comma - first;
    const uint64_t digits = text >> 8 * first;
    if (count - 1 > 2 || (count > 1 && (digits & 0xff) == 0)) {
        return UINT32_MAX;
    }
    const uint32_t aligned = (uint32_t)(digits << 8 * (3 - count)); /* hundreds, tens, ones */
    return (aligned & 0xff) * 100 + (aligned >> 8 & 0xff) * 10 + (aligned >> 16 & 0xff);
}

/* Two numbers of at most three digits with their commas, as pictures are full of: one load and one step for both. NULL if
 * it is anything else. */
static inline const char *scan_pair(const char *at, const char *end, uint32_t *ret_a,
                                    uint32_t *ret_b)
{
    const uint64_t ones = 0x0101010101010101, high = ones << 7;
    uint64_t text = 0;
    if (end - at < 8) {
        return NULL;
    }
    memcpy(&text, at, sizeof(text));
    const uint64_t other = text ^ ones * ',';
    const uint64_t commas = (other - ones) & ~other & high;
    const uint64_t second = commas & (commas - 1);
    if (second == 0) {
        return NULL;
    }
    const unsigned a = (unsigned)__builtin_ctzll(commas) / 8,
                   b = (unsigned)__builtin_ctzll(second) / 8;
    const uint64_t inside = ((uint64_t)1 << 8 * b) - 1; /* the bytes in front of the second comma */
    const uint64_t digits = (text ^ ones * '0') & inside & ~((uint64_t)0xff << 8 * a);
    if (((digits + ones * 0x76) | digits) & high) {
        return NULL; /* a byte above 9 */
    }
    *ret_a = value_of_three(digits, 0, a);
    *ret_b = value_of_three(digits, a + 1, b);
    return at + b + 1;
}

/* Numbers from 0 to high. */
static size_t run_bytes(const char **at, const char *end, uint32_t high, uint8_t *to, size_t count)
{
    const char *next =
        *at; /* not *at: stores of bytes might change that, as far as a compiler knows */
    size_t i = 0;
    while (count - i >= 2) {
        uint32_t a = 0, b = 0;
        const char *behind = scan_pair(next, end, &a, &b);
        if (!behind || a > high || b > high) {
            break;
        }
        to[i++] = (uint8_t)a;
        to[i++] = (uint8_t)b;
        next = behind;
    }
    *at = next;
    return i;
}

/* One integer, or several small ones. Returns how many. */
static size_t take_integers(const char **at, const char *end, int64_t low, int64_t high,
                            size_t bytes, uint8_t *to, size_t count)
{
    uint64_t digits = 0;
    int32_t exponent = 0;
    bool negative = false;
    const size_t pairs = bytes == 1 ? run_bytes(at, end, (uint32_t)high, to, count) : 0;
    if (pairs > 0) {
        *at = skip_spaces(*at, end);
        return pairs;
    }
    const char *next = scan_short(*at, end, &digits);
    if (!next) {
        next = scan_plain(*at, end, &digits, &exponent, &negative);
    }
    if (!next || exponent != 0 || digits > INT64_MAX) {
        return 0;
    }
    const int64_t value = negative ? -(int64_t)digits : (int64_t)digits;
    if (value < low || value > high) {
        return 0;
    }
    /* the low bytes are the value: machines are little-endian, as tensors on the wire */
    memcpy(to, &value, bytes);
    *at = skip_spaces(next, end);
    return 1;
}

/* The plain way goes first, since arrays inside arrays are often as short as a pixel; and on once rows have taken got numbers
 * and stopped: trying again costs as much as a few numbers, and what stopped them tends to come again. */
#define PLAIN_FIRST 4

static size_t plain_next(size_t got)
{
    return got == 0 ? 64 : got < 4 ? 16 : 1;
}

size_t ifd_number_run_f32_by(const struct ifd_number_rows *rows, const char **at, const char *end,
                             float *to, size_t count)
{
    size_t i = 0, plain = rows ? PLAIN_FIRST : count;
    while (i < count) {
        for (const size_t stop = plain < count - i ? i + plain : count; i < stop; i++) {
            if (!take_f32(at, end, to + i)) {
                return i;
            }
        }
        const size_t got = rows ? rows->f32(at, end, to + i, count - i) : 0;
        i += got;
        plain = plain_next(got);
    }
    return i;
}

size_t ifd_number_run_integers_by(const struct ifd_number_rows *rows, const char **at,
                                  const char *end, int64_t low, int64_t high, size_t bytes,
                                  void *to, size_t count)
{
    uint8_t *next = to;
    size_t i = 0, plain = rows ? PLAIN_FIRST : count;
    while (i < count) {
        for (const size_t stop = plain < count - i ? i + plain : count; i < stop;) {
            const size_t took =
                take_integers(at, end, low, high, bytes, next + i * bytes, stop - i);
            if (took == 0) {
                return i;
            }
            i += took;
        }
        const size_t got =
            rows ? rows->integers(at, end, low, high, bytes, next + i * bytes, count - i) : 0;
        i += got;
        plain = plain_next(got);
    }
    return i;
}

const struct ifd_number_rows *ifd_number_rows(void)
{
#ifdef IFD_HAVE_AVX512
    return ifd_number_rows_avx512();
#else
    return NULL;
#endif
}

size_t ifd_number_run_f32(const char **at, const char *end, float *to, size_t count)
{
    return ifd_number_run_f32_by(ifd_number_rows(), at, end, to, count);
}

size_t ifd_number_run_integers(const char **at, const char *end, int64_t low, int64_t high,
                               size_t bytes, void *to, size_t count)
{
    return ifd_number_run_integers_by(ifd_number_rows(), at, end, low, high, bytes, to, count);
}
