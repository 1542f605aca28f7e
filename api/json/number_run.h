/** Inside api/number*.c: rows of numbers by readers for CPUs that can do better than one number at a time. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_RUN_H
#define INFERD_API_JSON_NUMBER_RUN_H

#include <string.h>

#include "api/json/number.h"

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
