/** Inside api/json/number_avx512.c and number_tmpl.c: the grammar of rows of numbers as arithmetic
 *  on bitmaps of 64 characters, which vector comparisons make. Bit i is character i of a block. A
 *  block begins at a number or at the brackets in front of it; a number that is incomplete at its
 *  end is read again in the next block. Thread: any. */
#ifndef INFERD_API_JSON_NUMBER_BLOCK_H
#define INFERD_API_JSON_NUMBER_BLOCK_H

#include "api/json/number_exact.h"
#include "api/json/number_run.h"

#define IFD_NUMBER_BLOCK_BYTES 64

/* Always inline: the caller knows which members are constant or unused. */
#define IFD_NUMBER_INLINE inline __attribute__((always_inline))

/** Bits of the characters of each kind. A kind that may not come stays 0: its characters end the
 *  row. */
struct ifd_number_chars {
    uint64_t digit, zero, comma, blank, minus, point, open, close;
};

/** The whole numbers at the start of a block, each with its comma. start, point and end have one
 *  bit for each number, in the numbers' order. */
struct ifd_number_block {
    uint64_t start; /* the first digit */
    uint64_t point; /* the point; the end if it has none */
    uint64_t whole; /* ends of the numbers without a point */
    uint64_t end;   /* behind the last digit: a comma, or a bracket in front of it */
    uint64_t minus; /* minus signs in front of the numbers */
    uint64_t comma;
    uint64_t open, close; /* all brackets that belong to the numbers */
    uint32_t count;
};

static IFD_NUMBER_INLINE uint64_t ifd_number_below(uint64_t bits)
{
    return (bits & (0 - bits)) - 1; /* all bits below the lowest; all if there is none */
}

/** Bits where an array closes that must stay open; and all opening brackets if they might exceed
 *  depth_max: then the plain reader counts. */
static IFD_NUMBER_INLINE uint64_t ifd_number_bad_nesting(const struct ifd_number_chars *chars,
                                                         const struct ifd_number_row *row)
{
    const uint32_t opened = (uint32_t)__builtin_popcountll(chars->open);
    const uint64_t bad = row->depth + opened > row->depth_max ? chars->open : 0;
    for (uint64_t turn = chars->comma & chars->close << 1; turn; turn &= turn - 1) {
        const uint64_t before = ifd_number_below(turn);
        const int opens = __builtin_popcountll(chars->open & before);
        const int closes = __builtin_popcountll(chars->close & before);
        if ((int)row->depth + opens - closes < (int)row->depth_min) {
            return bad | turn;
        }
    }
    return bad;
}

/** Drops everything behind the last comma. */
static IFD_NUMBER_INLINE void ifd_number_trim(struct ifd_number_block *block)
{
    const uint64_t kept = block->comma ? UINT64_MAX >> __builtin_clzll(block->comma) : 0;
    block->start &= kept;
    block->point &= kept;
    block->whole &= kept;
    block->end &= kept;
    block->minus &= kept;
    block->open &= kept;
    block->close &= kept;
}

/** Keeps the first count numbers. */
static inline void ifd_number_keep(struct ifd_number_block *block, uint32_t count)
{
    for (; block->count > count; block->count--) {
        block->comma ^= UINT64_C(1) << (63 - __builtin_clzll(block->comma));
    }
}

/** Finds up to most numbers at the start of a block. */
static IFD_NUMBER_INLINE struct ifd_number_block ifd_number_block(
    const struct ifd_number_chars *chars, const struct ifd_number_row *row, size_t most)
{
    const uint64_t digit = chars->digit, comma = chars->comma, point = chars->point;
    const uint64_t open = chars->open, close = chars->close, gap = comma | chars->blank;
    const uint64_t start = digit & ~((digit | point) << 1);
    const uint64_t may_begin = (gap | open) << 1 | 1;
    /* adding 1 at a fraction's first digit carries to the character behind its last digit */
    const uint64_t behind_fraction = digit + (point << 1);

    uint64_t wrong = ~(digit | gap | chars->minus | point | open | close) /* anything else */
                     | (point & ~(digit << 1))                            /* behind no digit */
                     | ((comma | close) & ~((digit | close) << 1))        /* nor behind an array */
                     | ((chars->minus | point) << 1 & ~digit)             /* in front of no digit */
                     | ((chars->minus | open) & ~may_begin)               /* inside a number */
                     | (start & close << 1)                               /* behind an array */
                     | (chars->blank & ~(gap << 1))                       /* in front of a comma */
                     | (point & behind_fraction)                          /* a second point */
                     | ((chars->zero & start) << 1 & digit);              /* a zero in front */
    if (open | close) {
        wrong |= ifd_number_bad_nesting(chars, row);
    }
    const uint64_t end = (comma | close) & digit << 1, whole = end & ~behind_fraction;
    struct ifd_number_block block = {.start = start,
                                     .point = point | whole,
                                     .whole = whole,
                                     .end = end,
                                     .minus = chars->minus,
                                     .comma = comma,
                                     .open = open,
                                     .close = close};
    if (__builtin_expect(wrong != 0,
                         0)) { /* a branch, so that the next block does not wait for this */
        block.comma &= ifd_number_below(wrong);
    }
    block.count = (uint32_t)__builtin_popcountll(block.comma);
    if (__builtin_expect(block.count > most, 0)) {
        ifd_number_keep(&block, (uint32_t)most);
    }
    ifd_number_trim(&block);
    return block;
}

/** Takes the first good numbers of the block: moves row behind their commas and blanks. */
static IFD_NUMBER_INLINE void ifd_number_pass(struct ifd_number_block *block, uint32_t good,
                                              struct ifd_number_row *row)
{
    if (good < block->count) {
        ifd_number_keep(block, good);
        ifd_number_trim(block);
    }
    if (good == 0) {
        return;
    }
    row->depth += (uint32_t)__builtin_popcountll(block->open);
    row->depth -= (uint32_t)__builtin_popcountll(block->close);
    row->at += 64 - __builtin_clzll(block->comma);
    while (row->at < row->end && *row->at == ' ') {
        row->at++;
    }
}

#endif
