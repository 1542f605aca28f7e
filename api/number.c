/* Decimal text and binary numbers.
 *
 * Reading: up to 19 digits are gathered in an integer; where it and the power of ten are exact doubles, one multiplication or
 * division rounds correctly (Clinger). A float is read through a double that may be off by two of its last places, which
 * changes nothing unless it lies that close to the middle of two floats. What remains goes to the C library.
 *
 * Printing: all decimals between the middles to the neighbour floats read back to the same float; the one with the fewest
 * digits is searched among 9-digit integers. */
#include "api/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
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

/* A float from digits × 10^exponent; false where the double in between leaves a doubt. A float's middle to its neighbour is
 * 0x10000000 in the bits that it drops; the double is within 3 of its last places of the true value. */
static bool nearest_f32(uint64_t digits, int32_t exponent, float *ret)
{
    static const double inverse[EXACT_POWER_MAX + 1] = {
        1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,  1e-10, 1e-11,
        1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22};
    const double value =
        (double)digits * (exponent >= 0 ? power_of_ten[exponent] : inverse[-exponent]);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    const uint64_t doubt = 4, middle = 0x10000000;
    *ret = (float)value;
    return ((bits & 0x1fffffff) - (middle - doubt) > 2 * doubt && value >= (double)FLT_MIN) ||
           digits == 0;
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

size_t ifd_number_run_f32(const char **at, const char *end, float *to, size_t count)
{
    size_t i = 0;
    for (; i < count; i++) {
        uint64_t digits = 0;
        int32_t exponent = 0;
        bool negative = false;
        float value = 0;
        const char *next = scan_plain(*at, end, &digits, &exponent, &negative);
        if (!next || !nearest_f32(digits, exponent, &value)) {
            break;
        }
        to[i] = negative ? -value : value;
        *at = skip_spaces(next, end);
    }
    return i;
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

size_t ifd_number_run_integers(const char **at, const char *end, int64_t low, int64_t high,
                               size_t bytes, void *to, size_t count)
{
    const char *here = *at;
    size_t i = 0;
    while (i < count) {
        uint64_t digits = 0;
        int32_t exponent = 0;
        bool negative = false;
        if (bytes == 1) {
            i += run_bytes(&here, end, (uint32_t)high, (uint8_t *)to + i, count - i);
            if (i == count) {
                break;
            }
        }
        const char *next = scan_short(here, end, &digits);
        if (!next) {
            next = scan_plain(here, end, &digits, &exponent, &negative);
        }
        if (!next || exponent != 0 || digits > INT64_MAX) {
            break;
        }
        const int64_t value = negative ? -(int64_t)digits : (int64_t)digits;
        if (value < low || value > high) {
            break;
        }
        /* the low bytes are the value: machines are little-endian, as tensors on the wire */
        memcpy((uint8_t *)to + i * bytes, &value, bytes);
        i++;
        here = skip_spaces(next, end);
    }
    *at = here;
    return i;
}

/* ---- printing ---- */

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233"
    "34353637383940414243444546474849505152535455565758596061626364656667"
    "68697071727374757677787980818283848586878889909192939495969798"
    "99";

static int count_digits(uint64_t value)
{
    for (int count = 1;; count += 4, value /= 10000) {
        if (value < 10) {
            return count;
        }
        if (value < 100) {
            return count + 1;
        }
        if (value < 1000) {
            return count + 2;
        }
        if (value < 10000) {
            return count + 3;
        }
    }
}

static void put_digits(char *text, uint64_t value, int count)
{
    char *at = text + count;
    while (value >= 100) {
        const size_t pair = (size_t)(value % 100) * 2;
        value /= 100;
        at -= 2;
        memcpy(at, digit_pairs + pair, 2);
    }
    if (value >= 10) {
        memcpy(at - 2, digit_pairs + value * 2, 2);
    } else {
        at[-1] = (char)('0' + value);
    }
}

size_t ifd_print_u64(char *text, uint64_t value)
{
    const int count = count_digits(value);
    put_digits(text, value, count);
    return (size_t)count;
}

size_t ifd_print_s64(char *text, int64_t value)
{
    if (value >= 0) {
        return ifd_print_u64(text, (uint64_t)value);
    }
    *text = '-';
    return 1 + ifd_print_u64(text + 1, 0 - (uint64_t)value);
}

/* Every value of eight bits with a comma behind it, in four characters each. */
#define TEN(tens, rest)                                                                            \
    tens "0," rest tens "1," rest tens "2," rest tens "3," rest tens "4," rest tens "5," rest tens \
         "6," rest tens "7," rest tens "8," rest tens "9," rest
#define HUNDRED(hundreds, rest)                                                                    \
    TEN(hundreds "1", rest)                                                                        \
    TEN(hundreds "2", rest)                                                                        \
    TEN(hundreds "3", rest)                                                                        \
    TEN(hundreds "4", rest)                                                                        \
    TEN(hundreds "5", rest)                                                                        \
    TEN(hundreds "6", rest)                                                                        \
    TEN(hundreds "7", rest)                                                                        \
    TEN(hundreds "8", rest)                                                                        \
    TEN(hundreds "9", rest)
static const char byte_texts[] =
    TEN("", "  ") HUNDRED("", " ") TEN("10", "") HUNDRED("1", "") TEN("20", "") HUNDRED("2", "");
#undef HUNDRED
#undef TEN

size_t ifd_print_run_8(char *text, const void *value, bool is_signed, size_t count)
{
    char *at = text;
    for (size_t i = 0; i < count; i++) {
        const uint8_t byte = ((const uint8_t *)value)[i];
        const bool negative = is_signed && byte > INT8_MAX;
        const size_t size = negative ? 256u - byte : byte;
        *at = '-';
        at += negative;
        memcpy(at, byte_texts + 4 * size, 4); /* all four: lengths cannot be foreseen */
        at += 2 + (size > 9) + (size > 99);
    }
    return (size_t)(at - text) - (count > 0);
}

/* Values from 1e-5 up to 1e16 are written without an exponent. */
#define PLAIN_LOW  -5
#define PLAIN_HIGH 16

/* Writes digits × 10^exponent as a JSON float; digits > 0, without zeros at their end. */
static size_t print_decimal(char *text, uint64_t digits, int exponent)
{
    const int count = count_digits(digits);
    const int point = count + exponent; /* digits in front of the point */
    if (point <= PLAIN_LOW + 1 || point > PLAIN_HIGH) {
        put_digits(text + 1, digits, count);
        text[0] = text[1];
        text[1] = '.';
        char *at = text + (count > 1 ? count + 1 : 1);
        *at++ = 'e';
        at += ifd_print_s64(at, point - 1);
        return (size_t)(at - text);
    }
    if (point <= 0) {
        memcpy(text, "0.000000", 8);
        put_digits(text + 2 - point, digits, count);
        return (size_t)(2 - point + count);
    }
    if (point >= count) {
        put_digits(text, digits, count);
        for (int i = count; i < point; i++) {
            text[i] = '0';
        }
        memcpy(text + point, ".0", 2);
        return (size_t)point + 2;
    }
    put_digits(text + 1, digits, count);
    for (int i = 0; i < point; i++) {
        text[i] = text[i + 1];
    }
    text[point] = '.';
    return (size_t)count + 1;
}

static size_t print_trimmed(char *text, uint64_t digits, int exponent)
{
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    return print_decimal(text, digits, exponent);
}

static size_t print_special(char *text, double value)
{
    const char *name = isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    size_t size = strlen(name);
    memcpy(text, name, size);
    return size;
}

/* The fewest digits that read back, by the C library. Decimals of so few digits that two of them never share a value are
 * tried as one: their zeros fall off. */
static size_t print_by_trial(char *text, double value, bool is_float)
{
    const bool is_normal = value >= (is_float ? (double)FLT_MIN : DBL_MIN);
    const int most = is_float ? 9 : 17;
    const int least = !is_normal ? 1 : is_float ? FLT_DIG : DBL_DIG;
    char trial[40];
    uint64_t digits = 0;
    int exponent = 0;
    for (int count = least; count <= most; count++) {
        (void)snprintf(trial, sizeof(trial), "%.*e", count - 1, value);
        if (count == most ||
            (is_float ? strtof(trial, NULL) == (float)value : strtod(trial, NULL) == value)) {
            break;
        }
    }
    const char *at = trial;
    for (; *at != 'e'; at++) {
        if (is_digit(*at)) {
            digits = digits * 10 + (uint64_t)(*at - '0');
            exponent -= 1;
        }
    }
    exponent += 1 + (int)strtol(at + 1, NULL, 10);
    return print_trimmed(text, digits, exponent);
}

/* floor(log10(value)) of a normal value > 0, or one less or more. */
static int ten_exponent(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    int two_exponent = (int)(bits >> 52) - 1023;
    return (two_exponent * 1233) >> 12; /* log10(2) = 0.30103 */
}

static double scale_by_ten(double value, int exponent)
{
    return exponent >= 0 ? value * power_of_ten[exponent] : value / power_of_ten[-exponent];
}

/* Whether an integer lies so near that rounding may have moved value across it. */
static bool is_doubtful(double value)
{
    const double doubt = 1e-6; /* two roundings of values below 2e9, generously */
    const double rest = value - (double)(int64_t)value;
    return rest < doubt || rest > 1 - doubt;
}

/* The integer with the most zeros at its end between low and high, nearest to middle; 0 if rounding leaves a doubt. The
 * zeros are dropped and counted. Values are below 2e9. */
static uint32_t shortest_between(double middle, double low, double high, bool is_exact,
                                 bool is_closed, int *ret_dropped)
{
    uint32_t from = (uint32_t)low + 1, to = (uint32_t)high, best = (uint32_t)middle;
    if (is_exact) {
        from -= low == (double)(uint32_t)low && is_closed;
        to -= high == (double)to && !is_closed;
    } else if (is_doubtful(low) || is_doubtful(high)) {
        return 0;
    }
    /* what was cut off from best: its last digit, and whether anything is below that */
    double fraction = middle - (double)best;
    uint32_t digit = fraction >= 0.5 ? 5 : 0;
    bool has_rest = fraction > 0 && fraction != 0.5;
    int dropped = 0;
    while (to / 10 > (from - 1) / 10) {
        has_rest |= digit != 0;
        digit = best % 10;
        best /= 10;
        to /= 10;
        from = (from + 9) / 10;
        dropped++;
    }
    bool is_up = digit > 5 || (digit == 5 && (has_rest || (best & 1) != 0));
    best += (is_up && best < to) || best < from;
    *ret_dropped = dropped;
    return best;
}

static size_t print_positive_f32(char *text, float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    if (value < 16777216.0f && value == (float)(uint32_t)value) {
        size_t size = ifd_print_u64(text, (uint32_t)value);
        text[size] = '.';
        text[size + 1] = '0';
        return size + 2;
    }
    double middle = (double)value;
    if (value >= 1e-13f && value < 1e29f) {
        uint32_t below_bits = bits - 1, above_bits = bits + 1;
        float below = 0, above = 0;
        memcpy(&below, &below_bits, sizeof(below));
        memcpy(&above, &above_bits, sizeof(above));
        int exponent = ten_exponent(middle);
        double scaled = scale_by_ten(middle, 8 - exponent);
        if (scaled >= 1e9) {
            exponent++;
        } else if (scaled < 1e8) {
            exponent--;
        }
        int scale = 8 - exponent, dropped = 0;
        scaled = scale_by_ten(middle, scale);
        double low = scale_by_ten((middle + (double)below) / 2, scale);
        double high = scale_by_ten((middle + (double)above) / 2, scale);
        /* integers times a small power of ten are exact, and so are their ties */
        bool is_exact = value >= 16777216.0f && scale >= 0;
        uint32_t digits = shortest_between(scaled, low, high, is_exact, (bits & 1) == 0, &dropped);
        if (digits != 0) {
            return print_decimal(text, digits, dropped - scale);
        }
    }
    return print_by_trial(text, middle, true);
}

size_t ifd_print_f32(char *text, float value)
{
    if (!isfinite(value)) {
        return print_special(text, (double)value);
    }
    size_t size = 0;
    if (signbit(value)) {
        text[size++] = '-';
        value = -value;
    }
    return size + print_positive_f32(text + size, value);
}

static size_t print_positive_f64(char *text, double value)
{
    if (value < 9007199254740992.0 && value == (double)(uint64_t)value) {
        size_t size = ifd_print_u64(text, (uint64_t)value);
        text[size] = '.';
        text[size + 1] = '0';
        return size + 2;
    }
    if (value >= 1e-7 && value < 1e22) {
        /* two decimals of at most 15 digits never share a double: if one reads back it is the shortest */
        int scale = 14 - ten_exponent(value);
        double scaled = scale_by_ten(value, scale);
        if (scaled >= 1e15) {
            scale--;
            scaled = scale_by_ten(value, scale);
        }
        uint64_t digits = (uint64_t)(scaled + 0.5);
        if (scale_by_ten((double)digits, -scale) == value) {
            return print_trimmed(text, digits, -scale);
        }
    }
    return print_by_trial(text, value, false);
}

size_t ifd_print_f64(char *text, double value)
{
    if (!isfinite(value)) {
        return print_special(text, value);
    }
    size_t size = 0;
    if (signbit(value)) {
        text[size++] = '-';
        value = -value;
    }
    return size + print_positive_f64(text + size, value);
}
