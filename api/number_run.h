/** Inside api/number*.c: rows of numbers by readers for CPUs that can do better than one number at a time. Thread: any. */
#ifndef INFERD_API_NUMBER_RUN_H
#define INFERD_API_NUMBER_RUN_H

#include "api/number.h"

/** The bits of a double that a float drops. Halfway between two floats they are MIDDLE. A double that is within three of its
 *  last places of the true value rounds to the float that is nearest to that, unless it is no more than DOUBT from MIDDLE. */
#define IFD_NUMBER_F32_DROPPED UINT64_C(0x1fffffff)
#define IFD_NUMBER_F32_MIDDLE  UINT64_C(0x10000000)
#define IFD_NUMBER_F32_DOUBT   UINT64_C(4)

/** As ifd_number_run_f32, ifd_number_run_integers and ifd_print_run_8, but the readers may stop earlier: in front of any
 *  number that they leave to the plain one. high is 2^n - 1; low is 0 or -high - 1. */
struct ifd_number_rows {
    size_t (*f32)(const char **at, const char *end, float *to, size_t count);
    size_t (*integers)(const char **at, const char *end, int64_t low, int64_t high, size_t bytes,
                       void *to, size_t count);
    size_t (*print_8)(char *text, const void *value, bool is_signed, size_t count);
    /** count is at most 8; each with a comma behind it. 0: one of them is left to the plain printer. */
    size_t (*print_f32)(char *text, const float *value, size_t count);
};

/** NULL: this CPU lacks AVX-512, VBMI2 or BMI2. On x86-64 only. */
const struct ifd_number_rows *ifd_number_rows_avx512(void);
/** The best that this CPU has; NULL: nothing out of the ordinary. */
const struct ifd_number_rows *ifd_number_rows(void);

/** Rows by these, and numbers that they leave; NULL: all numbers the plain way. */
size_t ifd_number_run_f32_by(const struct ifd_number_rows *rows, const char **at, const char *end,
                             float *to, size_t count);
size_t ifd_number_run_integers_by(const struct ifd_number_rows *rows, const char **at,
                                  const char *end, int64_t low, int64_t high, size_t bytes,
                                  void *to, size_t count);
size_t ifd_print_run_f32_by(const struct ifd_number_rows *rows, char *text, const float *value,
                            size_t count);
size_t ifd_print_run_8_by(const struct ifd_number_rows *rows, char *text, const void *value,
                          bool is_signed, size_t count);

/* ---- number_print_avx512.c, for number_avx512.c ---- */

size_t ifd_print_8_avx512(char *text, const void *value, bool is_signed, size_t count);
size_t ifd_print_f32_avx512(char *text, const float *value, size_t count);

#endif
