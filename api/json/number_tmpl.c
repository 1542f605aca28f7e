/* The reader of rows of numbers, 64 characters at a time, for all CPUs whose vectors can look up
 * and compare but not compress. The including file (number_avx2.c, number_neon.c) defines:
 *
 *     VEC_BYTES               16 or 32
 *     vec16, vec              16 and VEC_BYTES unsigned bytes, with the compiler's + - & | ==
 *     bits_of(part)           a bit for each byte of 64 / VEC_BYTES vectors of bytes 0 and 255
 *     look_up(table, index)   table[index] for index below 16, 0 from 128 on; else either
 *     permute(text, index)    the same with 16 indexes
 *     value_of_sixteen(digit) value of 16 digits, the first one in the first byte
 *
 * A long number is read alone once its place is known. Numbers of one byte are read all at once, at
 * every place where one might end. */
#include "api/json/number_block.h"

#define PARTS (IFD_NUMBER_BLOCK_BYTES / VEC_BYTES)
#define FRONT 16 /* readable bytes in front of a block */

typedef int8_t vec_signed __attribute__((vector_size(VEC_BYTES)));

static inline vec all(uint8_t value)
{
    return (vec){0} + value;
}

static inline vec load(const uint8_t *from)
{
    vec ret;
    memcpy(&ret, from, sizeof(ret));
    return ret;
}

static inline uint64_t where(const vec *text, char c)
{
    vec is[PARTS];
    for (int i = 0; i < PARTS; i++) {
        is[i] = (vec)(text[i] == all((uint8_t)c));
    }
    return bits_of(is);
}

/* The block at row->at with FRONT readable bytes before it: in place, or in copy with zeros around
 * it. readable: start of the readable text. */
static inline const uint8_t *block_text(const struct ifd_number_row *row, const char *readable,
                                        uint8_t *copy)
{
    const size_t left = (size_t)(row->end - row->at);
    if (left >= IFD_NUMBER_BLOCK_BYTES && row->at - readable >= FRONT) {
        return (const uint8_t *)row->at;
    }
    memset(copy, 0, FRONT + IFD_NUMBER_BLOCK_BYTES);
    memcpy(copy + FRONT, row->at, left < IFD_NUMBER_BLOCK_BYTES ? left : IFD_NUMBER_BLOCK_BYTES);
    return copy + FRONT;
}

/* has_sign, has_point: whether '-' and '.' may come. */
static IFD_NUMBER_INLINE struct ifd_number_block look(const uint8_t *from,
                                                      const struct ifd_number_row *row,
                                                      bool has_sign, bool has_point, size_t most)
{
    vec text[PARTS], is_digit[PARTS];
    for (int i = 0; i < PARTS; i++) {
        text[i] = load(from + i * VEC_BYTES);
        is_digit[i] = (vec)(text[i] - '0' <= 9);
    }
    struct ifd_number_chars chars = {.digit = bits_of(is_digit),
                                     .zero = where(text, '0'),
                                     .comma = where(text, ','),
                                     .blank = where(text, ' '),
                                     .minus = has_sign ? where(text, '-') : 0,
                                     .point = has_point ? where(text, '.') : 0};
    if (~(chars.digit | chars.comma | chars.blank | chars.minus | chars.point)) {
        chars.open = where(text, '[');
        chars.close = where(text, ']');
    }
    return ifd_number_block(&chars, row, most);
}

/* ---- up to three digits into bytes ---- */

/* value[i]: the number that ends at character i, if one does. Returns a bit at the end of each
 * number that is too large. */
static IFD_NUMBER_INLINE uint64_t small_values(const uint8_t *text, bool is_signed, uint8_t *value)
{
    const vec16 of_tens = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90};
    const vec16 of_hundreds = {0, 100, 200};
    /* largest tens and ones behind these hundreds */
    const vec16 room = {99, 99, 55, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t minus = (uint8_t)('-' - '0');
    vec wrong[PARTS];
    for (int i = 0; i < PARTS; i++) {
        const uint8_t *end = text + i * VEC_BYTES;
        const vec ones = load(end - 1) - '0', tens = load(end - 2) - '0';
        const vec hundreds = load(end - 3) - '0', more = load(end - 4) - '0';
        const vec has_tens = (vec)(tens <= 9), has_hundreds = has_tens & (vec)(hundreds <= 9);
        const vec below = ones + (look_up(of_tens, tens) & has_tens);
        vec sum = below + (look_up(of_hundreds, hundreds) & has_hundreds);
        wrong[i] = has_hundreds & ((vec)((vec_signed)below > (vec_signed)look_up(room, hundreds)) |
                                   (vec)(more <= 9));
        if (is_signed) {
            const vec negative = (vec)(tens == minus) | (has_tens & (vec)(hundreds == minus)) |
                                 (has_hundreds & (vec)(more == minus));
            wrong[i] |= (vec)(sum > 127 - negative); /* true is -1 */
            sum = (sum ^ negative) - negative;
        }
        memcpy(value + i * VEC_BYTES, &sum, sizeof(sum));
    }
    return bits_of(wrong);
}

/* Writes value[i] for each bit i of which, side by side; no two bits are neighbours. to: room for
 * 32. */
static inline void put_bytes(uint8_t *to, const uint8_t *value, uint64_t which)
{
    /* row m: positions of the bits of m; at most four are set, since a number with its comma has
     * two characters */
    static const uint8_t places[256][4] = {
#define FIRST(m)                                                                                   \
    ((m)&1     ? 0                                                                                 \
     : (m)&2   ? 1                                                                                 \
     : (m)&4   ? 2                                                                                 \
     : (m)&8   ? 3                                                                                 \
     : (m)&16  ? 4                                                                                 \
     : (m)&32  ? 5                                                                                 \
     : (m)&64  ? 6                                                                                 \
     : (m)&128 ? 7                                                                                 \
               : 128)
#define REST(m)  ((m) & ((m)-1))
#define ROW(m)   {FIRST(m), FIRST(REST(m)), FIRST(REST(REST(m))), FIRST(REST(REST(REST(m))))}
#define ROWS4(m) ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS(m)  ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
        ROWS(0),   ROWS(16),  ROWS(32),  ROWS(48),  ROWS(64),  ROWS(80),  ROWS(96),  ROWS(112),
        ROWS(128), ROWS(144), ROWS(160), ROWS(176), ROWS(192), ROWS(208), ROWS(224), ROWS(240)};
#undef ROWS
#undef ROWS4
#undef ROW
#undef REST
#undef FIRST
    /* byte i: number of bits in bytes 0 … i of which */
    uint64_t before = which - (which >> 1 & 0x5555555555555555);
    before = (before & 0x3333333333333333) + (before >> 2 & 0x3333333333333333);
    before = ((before + (before >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 << 8;
    for (int i = 0; i < 64; i += 8) {
        vec16 some = {0}, place = {0};
        memcpy(&some, value + i, 8);
        memcpy(&place, places[which >> i & 255], 4);
        some = permute(some, place);
        memcpy(to + (before >> i & 255), &some, 4);
    }
}

static IFD_NUMBER_INLINE size_t run_bytes(struct ifd_number_row *ret_row, bool is_signed,
                                          uint8_t *to, size_t count)
{
    struct ifd_number_row row = *ret_row; /* a copy, so that it can stay in registers */
    const char *readable = row.at;
    uint8_t copy[FRONT + IFD_NUMBER_BLOCK_BYTES], value[IFD_NUMBER_BLOCK_BYTES], last[32];
    size_t i = 0;
    uint32_t good = 1;
    uint64_t wrong = 0;
    while (i < count && good > 0 && !wrong) {
        const uint8_t *text = block_text(&row, readable, copy);
        struct ifd_number_block block = look(text, &row, is_signed, false, count - i);
        wrong = small_values(text, is_signed, value) & block.end;
        good = block.count;
        if (wrong) {
            good = (uint32_t)__builtin_popcountll(block.end & ifd_number_below(wrong));
        }
        if (count - i >= sizeof(last)) {
            put_bytes(to + i, value, block.end);
        } else {
            put_bytes(last, value, block.end);
            memcpy(to + i, last, good);
        }
        ifd_number_pass(&block, good, &row);
        i += good;
    }
    *ret_row = row;
    return i;
}

/* ---- up to 18 digits, one number at a time ---- */

#define DIGITS_MAX 18 /* an int64_t holds them */

struct digits {
    int64_t value;  /* without its sign; -1: too many digits */
    uint32_t point; /* its distance from the end; 0: there is none */
    bool negative;
};

/* Takes the next number from the block. */
static IFD_NUMBER_INLINE struct digits take_digits(const uint8_t *text,
                                                   struct ifd_number_block *block, bool has_point)
{
    /* row i: the last 16 characters without the point, which is i from their end */
    static const uint8_t without_point[17][16] = {
#define FROM(i, at) ((at) >= 16 - (i) + 1 || (i) == 0 ? (at) : (uint8_t)((at)-1))
#define ROW(i)                                                                                     \
    {FROM(i, 0),  FROM(i, 1),  FROM(i, 2),  FROM(i, 3), FROM(i, 4),  FROM(i, 5),                   \
     FROM(i, 6),  FROM(i, 7),  FROM(i, 8),  FROM(i, 9), FROM(i, 10), FROM(i, 11),                  \
     FROM(i, 12), FROM(i, 13), FROM(i, 14), FROM(i, 15)}
        ROW(0), ROW(1),  ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7), ROW(8),
        ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14), ROW(15), ROW(16)};
#undef ROW
#undef FROM
    /* from n on: 0 except in the last n */
    static const uint8_t nowhere[32] = {128, 128, 128, 128, 128, 128, 128, 128,
                                        128, 128, 128, 128, 128, 128, 128, 128};
    const uint32_t start = (uint32_t)__builtin_ctzll(block->start);
    const uint32_t end = (uint32_t)__builtin_ctzll(block->end);
    struct digits ret = {.point = has_point ? end - (uint32_t)__builtin_ctzll(block->point) : 0,
                         .negative = (block->minus << 1 >> start & 1) != 0};
    block->start &= block->start - 1;
    block->end &= block->end - 1;
    block->point &= block->point - 1;
    const uint32_t length = end - start - (ret.point > 0);
    const bool is_long = end - start > 16;
    vec16 last, from, none;
    memcpy(&last, text + end - 16, sizeof(last));
    memcpy(&from, without_point[ret.point <= 16 ? ret.point : 0], sizeof(from));
    memcpy(&none, nowhere + (length < 16 ? length : 16), sizeof(none));
    ret.value = value_of_sixteen(permute(last - '0', from | none));
    if (is_long && length <= DIGITS_MAX) {
        int64_t first = 0; /* digits in front of the last 16 characters */
        for (uint32_t i = start; i < end - 16; i++) {
            first = i == end - ret.point ? first : first * 10 + (text[i] - '0');
        }
        const bool has_sixteen = ret.point == 0 || ret.point > 16;
        ret.value += first * (has_sixteen ? INT64_C(10000000000000000) : INT64_C(1000000000000000));
    }
    ret.value = length <= DIGITS_MAX ? ret.value : -1;
    return ret;
}

/* The array that gets the numbers. */
struct target {
    void *to;
    size_t size;   /* bytes of an integer */
    uint64_t high; /* the largest positive one */
};

/* Stores number i. False: the plain reader must take it. */
typedef bool (*store_fn)(const struct target *target, size_t i, struct digits digits);

static IFD_NUMBER_INLINE size_t run_digits(struct ifd_number_row *ret_row, bool has_sign,
                                           bool has_point, store_fn store,
                                           const struct target *target, size_t count)
{
    const char *readable = ret_row->at;
    uint8_t copy[FRONT + IFD_NUMBER_BLOCK_BYTES];
    struct ifd_number_row row = *ret_row; /* a copy, so that it can stay in registers */
    size_t i = 0;
    uint32_t good = 0, found = 1;
    do {
        const uint8_t *text = block_text(&row, readable, copy);
        struct ifd_number_block block = look(text, &row, has_sign, has_point, count - i);
        struct ifd_number_block left = block;
        found = block.count;
        for (good = 0; good < found; good++) {
            if (!store(target, i + good, take_digits(text, &left, has_point))) {
                break;
            }
        }
        ifd_number_pass(&block, good, &row);
        i += good;
    } while (good > 0 && good == found && i < count);
    *ret_row = row;
    return i;
}

static inline bool store_integer(const struct target *target, size_t i, struct digits digits)
{
    const uint64_t value = (uint64_t)digits.value;
    if (digits.value < 0 || value > target->high + digits.negative) {
        return false;
    }
    ifd_number_store((uint8_t *)target->to + i * target->size, target->size,
                     digits.negative ? 0 - value : value);
    return true;
}

static size_t run_integers(struct ifd_number_row *row, bool is_signed, size_t size, void *to,
                           size_t count)
{
    if (size == 1) {
        return is_signed ? run_bytes(row, true, to, count) : run_bytes(row, false, to, count);
    }
    const struct target target = {
        .to = to, .size = size, .high = UINT64_MAX >> (64 - 8 * size + is_signed)};
    return run_digits(row, is_signed, false, store_integer, &target, count);
}

/* by the distance of the point from the end */
static const double of_point[DIGITS_MAX + 2] = {1e0,   1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,
                                                1e-6,  1e-7,  1e-8,  1e-9,  1e-10, 1e-11, 1e-12,
                                                1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18};

/* Applies the sign without a branch, which would be mispredicted. */
static IFD_NUMBER_INLINE bool store_float(const struct target *target, size_t i,
                                          struct digits digits)
{
    if (digits.value < 0) { /* and the point may be anywhere */
        return false;
    }
    const double value = (double)digits.value * of_point[digits.point];
    const float single = (float)value;
    uint32_t bits = 0;
    if (ifd_number_is_in_doubt(value)) {
        return false;
    }
    memcpy(&bits, &single, sizeof(bits));
    bits |= (uint32_t)digits.negative << 31;
    memcpy((float *)target->to + i, &bits, sizeof(bits));
    return true;
}

static size_t run_f32(struct ifd_number_row *row, float *to, size_t count)
{
    const struct target target = {.to = to};
    return run_digits(row, true, true, store_float, &target, count);
}
