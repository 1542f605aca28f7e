/* Rows of numbers: by the best reader of this CPU, and one at a time where it stops. */
#include "api/json/number_run.h"

#include "api/json/number_exact.h"

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

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

/* A number without an exponent: sign, digits, and how many of the digits follow the point. */
struct plain {
    uint64_t digits;
    int32_t fraction;
    bool negative;
};

/* Reads -?digits[.digits]; NULL if there is anything else or more than 19 digits. */
static inline const char *scan_plain(const char *at, const char *end, struct plain *ret)
{
    struct plain plain = {.negative = at < end && *at == '-'};
    const char *first = at + plain.negative;
    at = gather(first, end, &plain.digits);
    ptrdiff_t count = at - first;
    if (count == 0 || (count > 1 && *first == '0')) {
        return NULL;
    }
    if (at < end && *at == '.') {
        const char *point = at + 1;
        at = gather(point, end, &plain.digits);
        plain.fraction = (int32_t)(at - point);
        count += at - point;
        if (plain.fraction == 0) {
            return NULL;
        }
    }
    if (count > IFD_NUMBER_DIGITS_MAX) {
        return NULL;
    }
    *ret = plain;
    return at;
}

/* Reads digits and a comma within eight characters, the usual case. Arithmetic instead of branches,
 * since the lengths of numbers cannot be predicted. NULL if there is anything else. */
static inline const char *scan_short(const char *at, const char *end, struct plain *ret)
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
    text = text << (64 - bits) | zeros >> bits; /* eight digits with zeros in front */
    if (!are_digits(text)) {
        return NULL;
    }
    *ret = (struct plain){.digits = value_of_digits(text)};
    return at + bits / 8;
}

/* Skips opening brackets, which *depth counts. Returns the place of the next number. */
static inline const char *enter(const struct ifd_number_row *row, uint32_t *depth)
{
    const char *at = row->at;
    for (*depth = row->depth; at < row->end && *at == '[' && *depth < row->depth_max; at++) {
        ++*depth;
    }
    return at;
}

/* Moves row from the end of a number past closing brackets, the comma and blanks. False, and row
 * stays, if something else is there. */
static inline bool leave(struct ifd_number_row *row, const char *at, uint32_t depth)
{
    while (at < row->end && *at == ']' && depth > row->depth_min) {
        at++;
        depth--;
    }
    if (at >= row->end || *at != ',') {
        return false;
    }
    do {
        at++;
    } while (at < row->end && *at == ' ');
    row->at = at;
    row->depth = depth;
    return true;
}

static bool take_f32(struct ifd_number_row *row, float *to)
{
    struct plain plain = {0};
    uint32_t depth = 0;
    float value = 0;
    const char *behind = scan_plain(enter(row, &depth), row->end, &plain);
    if (!behind || !ifd_number_nearest_f32(plain.digits, -plain.fraction, &value) ||
        !leave(row, behind, depth)) {
        return false;
    }
    *to = plain.negative ? -value : value;
    return true;
}

static bool take_integer(struct ifd_number_row *row, bool is_signed, size_t bytes, uint8_t *to)
{
    const uint64_t high = UINT64_MAX >> (64 - 8 * bytes + is_signed);
    struct plain plain = {0};
    uint32_t depth = 0;
    const char *first = enter(row, &depth), *behind = scan_short(first, row->end, &plain);
    if (!behind) {
        behind = scan_plain(first, row->end, &plain);
    }
    const uint64_t limit = !plain.negative ? high : is_signed ? high + 1 : 0;
    if (!behind || plain.fraction > 0 || plain.digits > limit || !leave(row, behind, depth)) {
        return false;
    }
    ifd_number_store(to, bytes, plain.negative ? 0 - plain.digits : plain.digits);
    return true;
}

/* Numbers to read one at a time after rows read got of them and stopped: another try costs as much
 * as a few numbers, and what stopped rows tends to come again. */
static size_t plain_next(size_t got)
{
    return got == 0 ? 64 : got < 4 ? 16 : 1;
}

size_t ifd_number_run_f32_by(const struct ifd_number_rows *rows, struct ifd_number_row *row,
                             float *to, size_t count)
{
    size_t i = 0;
    while (i < count) {
        const size_t got = rows ? rows->f32(row, to + i, count - i) : 0;
        const size_t plain = rows ? plain_next(got) : count;
        i += got;
        for (const size_t stop = plain < count - i ? i + plain : count; i < stop; i++) {
            if (!take_f32(row, to + i)) {
                return i;
            }
        }
    }
    return i;
}

size_t ifd_number_run_integers_by(const struct ifd_number_rows *rows, struct ifd_number_row *row,
                                  bool is_signed, size_t bytes, void *to, size_t count)
{
    uint8_t *next = to;
    size_t i = 0;
    while (i < count) {
        const size_t got =
            rows ? rows->integers(row, is_signed, bytes, next + i * bytes, count - i) : 0;
        const size_t plain = rows ? plain_next(got) : count;
        i += got;
        for (const size_t stop = plain < count - i ? i + plain : count; i < stop; i++) {
            if (!take_integer(row, is_signed, bytes, next + i * bytes)) {
                return i;
            }
        }
    }
    return i;
}

size_t ifd_number_rows_all(const struct ifd_number_rows **ret)
{
    size_t count = 0;
#if defined(__x86_64__)
    const struct ifd_number_rows *each[] = {ifd_number_rows_avx512(), ifd_number_rows_avx2()};
#elif defined(__aarch64__)
    const struct ifd_number_rows *each[] = {ifd_number_rows_neon()};
#else
    const struct ifd_number_rows *each[] = {NULL};
#endif
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        if (each[i]) {
            ret[count++] = each[i];
        }
    }
    return count;
}

/* The best table of this CPU; NULL: it has none. */
static const struct ifd_number_rows *best(void)
{
    const struct ifd_number_rows *all[IFD_NUMBER_ROWS_MAX];
    return ifd_number_rows_all(all) > 0 ? all[0] : NULL;
}

size_t ifd_number_run_f32(struct ifd_number_row *row, float *to, size_t count)
{
    return ifd_number_run_f32_by(best(), row, to, count);
}

size_t ifd_number_run_integers(struct ifd_number_row *row, bool is_signed, size_t bytes, void *to,
                               size_t count)
{
    return ifd_number_run_integers_by(best(), row, is_signed, bytes, to, count);
}

size_t ifd_print_run_8(char *text, const void *value, bool is_signed, size_t count)
{
    return ifd_print_run_8_by(best(), text, value, is_signed, count);
}

size_t ifd_print_run_f32(char *text, const float *value, size_t count)
{
    return ifd_print_run_f32_by(best(), text, value, count);
}
