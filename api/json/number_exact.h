/** Inside api/json/number*.c: powers of ten, and whether rounding to double first gives the nearest
 *  float. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_EXACT_H
#define INFERD_API_JSON_NUMBER_EXACT_H

#include <float.h>
#include <string.h>

#include "inferd/types.h"

/** Decimal digits that a uint64_t always holds. */
#define IFD_NUMBER_DIGITS_MAX 19

/** 10^i (exact) and 10^-i for i up to 22. */
extern const double ifd_ten_to[23], ifd_ten_to_minus[23];

/** DROPPED: the bits of a double that a float drops. Halfway between two floats they are MIDDLE. A
 *  double within three of its last places of the true value rounds to the same float as the true
 *  value, unless these bits are within DOUBT of MIDDLE. */
#define IFD_NUMBER_F32_DROPPED UINT64_C(0x1fffffff)
#define IFD_NUMBER_F32_MIDDLE  UINT64_C(0x10000000)
#define IFD_NUMBER_F32_DOUBT   UINT64_C(4)

static inline bool ifd_number_is_in_doubt(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    const uint64_t distance =
        (bits & IFD_NUMBER_F32_DROPPED) - (IFD_NUMBER_F32_MIDDLE - IFD_NUMBER_F32_DOUBT);
    return distance <= 2 * IFD_NUMBER_F32_DOUBT;
}

/** The float nearest to digits × 10^exponent, exponent within ±22; false if the double in between
 *  leaves a doubt. */
static inline bool ifd_number_nearest_f32(uint64_t digits, int32_t exponent, float *ret)
{
    const double value =
        (double)digits * (exponent >= 0 ? ifd_ten_to[exponent] : ifd_ten_to_minus[-exponent]);
    *ret = (float)value;
    return (!ifd_number_is_in_doubt(value) && value >= (double)FLT_MIN) || digits == 0;
}

#endif
