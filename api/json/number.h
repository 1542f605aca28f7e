/** Numbers as JSON writes them: read exactly, printed as short as possible. No locale, no
 *  allocation. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_H
#define INFERD_API_JSON_NUMBER_H

#include "inferd/types.h"

/** A number's text and value: ± digits × 10^exponent, unless is_cut. */
struct ifd_number {
    const char *text;
    size_t size;
    uint64_t digits;
    int32_t exponent;
    bool negative;
    bool is_integer; /* written without point and exponent */
    bool is_cut;     /* more than 19 significant digits: digits holds the first ones */
};

/** Reads the longest JSON number (strict grammar: no leading zeros, no plus sign) between text and
 *  end. Returns its length, 0 if there is none. */
size_t ifd_number_scan(const char *text, const char *end, struct ifd_number *ret);

/** Exact values; false if the number is no integer or does not fit. */
bool ifd_number_s64(const struct ifd_number *number, int64_t *ret) IFD_NODISCARD;
bool ifd_number_u64(const struct ifd_number *number, uint64_t *ret) IFD_NODISCARD;

/** Nearest value, ties to even; infinite if it is beyond the largest finite one. The byte behind
 *  the number's text must be readable and must not continue the number (in JSON it is a comma, a
 *  bracket or a blank). */
double ifd_number_f64(const struct ifd_number *number);
float ifd_number_f32(const struct ifd_number *number);

/** Place in a row of numbers, and the number of open arrays there. */
struct ifd_number_row {
    const char *at, *end;
    uint32_t depth;
    uint32_t depth_min, depth_max; /* reading stops where depth would leave these bounds */
};

/** Fast path for arrays. Reads up to count items "number,": with opening brackets in front of the
 *  number, closing brackets in front of the comma and blanks behind it. The numbers have no
 *  exponent and fit. Stops in front of anything else and returns the count; *row is behind the last
 *  item. An integer takes bytes (1, 2, 4 or 8). */
size_t ifd_number_run_f32(struct ifd_number_row *row, float *to, size_t count);
size_t ifd_number_run_integers(struct ifd_number_row *row, bool is_signed, size_t bytes, void *to,
                               size_t count);

/** Maximum bytes that a printer below writes, with scratch behind the text. None writes a NUL. */
#define IFD_NUMBER_TEXT_BYTES 28

/** Prints count values of 8 bits with commas between them; text has IFD_NUMBER_TEXT_BYTES for
 *  each. */
size_t ifd_print_run_8(char *text, const void *value, bool is_signed, size_t count);
/** The same for floats, each as ifd_print_f32 prints it. */
size_t ifd_print_run_f32(char *text, const float *value, size_t count);

size_t ifd_print_u64(char *text, uint64_t value);
size_t ifd_print_s64(char *text, int64_t value);
/** Prints the shortest digits that read back to the same value, with a point or an exponent so that
 *  the text stays a float ("1.0", "0.1", "3e38"). JSON lacks NaN and infinities: they become "NaN",
 *  "Infinity" and "-Infinity" *with* quotes, as in the JSON mapping of protocol buffers. */
size_t ifd_print_f32(char *text, float value);
size_t ifd_print_f64(char *text, double value);

#endif
