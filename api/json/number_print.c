/* Numbers as the shortest decimal text.
 *
 * All decimals between the midpoints to the neighbour floats read back to the same float. The one
 * with the fewest digits is searched among 9-digit integers; the C library prints the floats where
 * rounding leaves a doubt. */
#include "api/json/number_exact.h"
#include "api/json/number_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

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

/* Every value of eight bits with a comma behind it, four characters each. */
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

size_t ifd_print_run_8_by(const struct ifd_number_rows *rows, char *text, const void *value,
                          bool is_signed, size_t count)
{
    char *at = text;
    if (rows && rows->print_8) {
        return rows->print_8(text, value, is_signed, count);
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t byte = ((const uint8_t *)value)[i];
        const bool negative = is_signed && byte > INT8_MAX;
        const size_t size = negative ? 256u - byte : byte;
        *at = '-';
        at += negative;
        /* all four: a branch on the length would be mispredicted */
        memcpy(at, byte_texts + 4 * size, 4);
        at += 2 + (size > 9) + (size > 99);
    }
    return (size_t)(at - text) - (count > 0);
}

/* Values from 1e-5 up to 1e16 are written without an exponent. */
#define PLAIN_LOW  -5
#define PLAIN_HIGH 16

/* Writes digits × 10^exponent as a JSON float; digits > 0 and does not end with a zero. */
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

/* Finds the fewest digits that read back with the C library. Lengths at which no two decimals share
 * a value are tried as one length: zeros at the end are dropped. */
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

/* floor(log10(value)) of a normal value > 0, off by one at most. */
static int ten_exponent(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    int two_exponent = (int)(bits >> 52) - 1023;
    return (two_exponent * 1233) >> 12; /* log10(2) = 0.30103 */
}

static double scale_by_ten(double value, int exponent)
{
    return exponent >= 0 ? value * ifd_ten_to[exponent] : value / ifd_ten_to[-exponent];
}

/* Whether value is so near an integer that rounding may have moved it across. */
static bool is_doubtful(double value)
{
    const double doubt = 1e-6; /* more than two roundings of values below 2e9 */
    const double rest = value - (double)(int64_t)value;
    return rest < doubt || rest > 1 - doubt;
}

/* The integer between low and high with the most zeros at its end; of several the nearest to
 * middle; 0 if rounding leaves a doubt. Drops and counts the zeros. Values are below 2e9. */
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
    /* the last digit cut off from best, and whether anything is below it */
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

size_t ifd_print_run_f32_by(const struct ifd_number_rows *rows, char *text, const float *value,
                            size_t count)
{
    char *at = text;
    for (size_t i = 0; i < count;) {
        const size_t some = count - i < 8 ? count - i : 8, stop = i + some;
        const size_t size = rows && rows->print_f32 ? rows->print_f32(at, value + i, some) : 0;
        at += size;
        for (i = size > 0 ? stop : i; i < stop; i++) {
            at += ifd_print_f32(at, value[i]);
            *at++ = ',';
        }
    }
    return (size_t)(at - text) - (count > 0);
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
        /* two decimals of at most 15 digits never share a double: if one reads back it is the
         * shortest */
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
