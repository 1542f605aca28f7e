/** Inside api/json/number*.c: readers and printers of rows of numbers for CPUs that have more than
 *  one number at a time. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_RUN_H
#define INFERD_API_JSON_NUMBER_RUN_H

#include <string.h>

#include "api/json/number.h"

/** Stores the low 1, 2, 4 or 8 bytes of value. Little-endian, as the machine and the wire are. */
static inline void ifd_number_store(uint8_t *to, size_t bytes, uint64_t value)
{
    switch (bytes) { /* a constant size compiles to a store, not to a call */
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

/** As ifd_number_run_f32, ifd_number_run_integers and ifd_print_run_8, but a reader may stop in
 *  front of any number; the plain reader takes it. */
struct ifd_number_rows {
    size_t (*f32)(struct ifd_number_row *row, float *to, size_t count);
    size_t (*integers)(struct ifd_number_row *row, bool is_signed, size_t bytes, void *to,
                       size_t count);
    /** NULL: the plain printer. */
    size_t (*print_8)(char *text, const void *value, bool is_signed, size_t count);
    /** Prints up to 8 values, each with a comma behind it. Returns 0 if the plain printer must take
     *  them. NULL: it takes all. */
    size_t (*print_f32)(char *text, const float *value, size_t count);
};

/** The tables that this CPU can use, the best first. ret has room for IFD_NUMBER_ROWS_MAX. Returns
 *  their number, maybe 0. */
size_t ifd_number_rows_all(const struct ifd_number_rows **ret);
#define IFD_NUMBER_ROWS_MAX 2

/** NULL: this CPU lacks the instructions. Each exists on its architecture only. */
const struct ifd_number_rows *ifd_number_rows_avx512(void); /* with VBMI2, BMI2 */
const struct ifd_number_rows *ifd_number_rows_avx2(void);   /* with BMI1 */
const struct ifd_number_rows *ifd_number_rows_neon(void);   /* every aarch64 */

/** Reads or prints with rows, and the numbers that rows leaves one at a time; NULL: all one at a
 *  time. */
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
