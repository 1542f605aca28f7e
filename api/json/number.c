/* Decimal text into binary numbers.
 *
 * Up to 19 digits are gathered in an integer. If it and the power of ten are exact doubles, one
 * multiplication or division rounds correctly (Clinger). A float is read through a double that may
 * be off by two of its last places; that changes the float only if the double lies so close to the
 * middle of two floats. The C library reads all other numbers. */
#include "api/json/number.h"

#include "api/json/number_exact.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float and double must be computed in their own precision");

#define EXACT_POWER_MAX 22

const double ifd_ten_to[EXACT_POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
const double ifd_ten_to_minus[EXACT_POWER_MAX + 1] = {
    1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,  1e-10, 1e-11,
    1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22};

#define EXPONENT_MAX 100000 /* beyond it every number is zero or infinite */

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

/* Adds the digits at at; is_fraction: they follow the point. */
static const char *scan_digits(const char *at, const char *end, bool is_fraction,
                               struct ifd_number *number, int *significant)
{
    int32_t shift = 0;
    for (; at < end && is_digit(*at); at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (*significant < IFD_NUMBER_DIGITS_MAX) {
            number->digits = number->digits * 10 + digit;
            *significant += number->digits != 0;
            shift -= is_fraction;
        } else {
            number->is_cut = true;
            shift += !is_fraction;
        }
        if (shift > EXPONENT_MAX || shift < -EXPONENT_MAX) {
            /* keeps the sum in range; the C library reads these numbers */
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
    value = exponent >= 0 ? value * ifd_ten_to[exponent] : value / ifd_ten_to[-exponent];
    return number->negative ? -value : value;
}

float ifd_number_f32(const struct ifd_number *number)
{
    const int32_t exponent = number->exponent;
    float value = 0;
    if (number->is_cut || exponent > EXACT_POWER_MAX || exponent < -EXACT_POWER_MAX ||
        !ifd_number_nearest_f32(number->digits, exponent, &value)) {
        return strtof(number->text, NULL);
    }
    return number->negative ? -value : value;
}
