/** Inside api/number*.c: rows of numbers by readers for CPUs that can do better than one number at a time. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_RUN_H
#define INFERD_API_JSON_NUMBER_RUN_H

#include <float.h>
#include <string.h>

#include "api/json/number.h"

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

/** Stores the low bytes of value: 1, 2, 4 or 8. Machines are little-endian, as tensors on the wire. */
static inline void ifd_number_store(uint8_t *to, size_t bytes, uint64_t value)
{
    switch (bytes) { /* with constant sizes, which are no calls */
    case 1:
        *to = (uint8_t)value;
        break;
    case 2:
        memcpy(to, &value, 2);
        break;
    case 4:
        memcpy(to, &value, 4);
        break;
    default:
        memcpy(to, &value, 8);
        break;
    }
}

/** As ifd_number_run_f32, ifd_number_run_integers and ifd_print_run_8, but the readers may stop earlier: in front of any
 *  number that they leave to the plain one. */
struct ifd_number_rows {
    size_t (*f32)(struct ifd_number_row *row, float *to, size_t count);
    size_t (*integers)(struct ifd_number_row *row, bool is_signed, size_t bytes, void *to,
                       size_t count);
    /** NULL: the plain way. */
    size_t (*print_8)(char *text, const void *value, bool is_signed, size_t count);
    /** count is at most 8; each with a comma behind it. 0: one of them is left to the plain printer. NULL: all are. */
    size_t (*print_f32)(char *text, const float *value, size_t count);
};

/** Every table that this CPU can use, the best first. ret: room for IFD_NUMBER_ROWS_MAX. Returns how many, maybe none. */
size_t ifd_number_rows_all(const struct ifd_number_rows **ret);
#define IFD_NUMBER_ROWS_MAX 2

/** NULL: this CPU lacks what they take. Each on its architecture only. */
const struct ifd_number_rows *ifd_number_rows_avx512(void); /* with VBMI2, BMI2 */
const struct ifd_number_rows *ifd_number_rows_avx2(void);   /* with BMI1 */
const struct ifd_number_rows *ifd_number_rows_neon(void);   /* every aarch64 */

/** Rows by these, and numbers that they leave; NULL: all numbers the plain way. */
size_t ifd_number_run_f32_by(const struct ifd_number_rows *rows, struct ifd_number_row *row,
                             float *to, size_t count);
size_t ifd_number_run_integers_by(const struct ifd_number_rows *rows, struct ifd_number_row *row,
                                  bool is_signed, size_t bytes, void *to, size_t count);
size_t ifd_print_run_f32_by(const struct ifd_number_rows *rows, char *text, const float *value,
                            size_t count);
size_t ifd_print_run_8_by(const struct ifd_number_rows *rows, char *text, const void *value,
                          bool is_signed, size_t count);

/* ---- number_print_avx512.c, for number_avx512.c ---- */

size_t ifd_print_8_avx512(char *text, const void *value, bool is_signed, size_t count);
size_t ifd_print_f32_avx512(char *text, const float *value, size_t count);

#endif
