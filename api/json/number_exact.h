/** Inside api/json/number*.c: powers of ten, and when a double in between gives the nearest float. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_EXACT_H
#define INFERD_API_JSON_NUMBER_EXACT_H

#include <float.h>
#include <string.h>

#include "inferd/types.h"

/** Digits that an uint64_t always holds. */
#define IFD_NUMBER_DIGITS_MAX 19

/** 10^i and 10^-i for i up to 22; the former are exact. */
extern const double ifd_ten_to[23], ifd_ten_to_minus[23];

/** The bits of a double that a float drops. Halfway between two floats they are MIDDLE. A double that is within three of its
 *  last places of the true value rounds to the float that is nearest to that, unless it is no more than DOUBT from MIDDLE. */
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

/** A float from digits × 10^exponent, which is within ±22; false where the double in between leaves a doubt. */
static inline bool ifd_number_nearest_f32(uint64_t digits, int32_t exponent, float *ret)
{
    const double value =
        (double)digits * (exponent >= 0 ? ifd_ten_to[exponent] : ifd_ten_to_minus[-exponent]);
    *ret = (float)value;
    return (!ifd_number_is_in_doubt(value) && value >= (double)FLT_MIN) || digits == 0;
}

#endif
