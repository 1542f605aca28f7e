/** Regular expressions: the syntax of RE2 without names and classes of Unicode, the longest match
 *  at the leftmost place. A match takes time in proportion to text × expression. Thread: any, one
 *  at a time for each struct. */
#ifndef INFERD_ENGINE_BASE_REGEX_H
#define INFERD_ENGINE_BASE_REGEX_H

#include "inferd/status.h"
#include "inferd/types.h"

#define IFD_REGEX_CODE   768 /* instructions of an expression */
#define IFD_REGEX_RANGES 256 /* ranges of all its classes */
/** Steps of all matches of an expression: some seconds. */
#define IFD_REGEX_WORK UINT64_C(1000000000)

struct ifd_regex_step {
    uint16_t op;
    int16_t to;   /* a jump, from here */
    int32_t a, b; /* what op takes */
};

struct ifd_regex {
    struct ifd_regex_step code[IFD_REGEX_CODE];
    uint32_t count;
    struct {
        uint32_t first, last;
    } range[IFD_REGEX_RANGES];
    uint32_t range_count;
    bool no_case, dot_is_all, by_line; /* flags i, s, m */
    /* Of a match: the places in the code that are reached, with the begin of each match. */
    struct ifd_regex_set {
        uint16_t place[IFD_REGEX_CODE];
        size_t begin[IFD_REGEX_CODE];
        uint32_t count;
    } set[2];
    uint32_t mark[IFD_REGEX_CODE], round;
    uint64_t work; /* steps of all matches so far */
};

/** Errors: INVALID: not sound; UNSUPPORTED: syntax that there is not; TOO_LARGE. */
IFD_NODISCARD enum ifd_code ifd_regex_compile(struct ifd_regex *regex, struct ifd_str pattern,
                                              struct ifd_err *err);

/** The first match from a place of the text on; false if there is none, or regex->work is past
 *  IFD_REGEX_WORK: then nobody knows. */
bool ifd_regex_find(struct ifd_regex *regex, struct ifd_str text, size_t from, size_t *ret_begin,
                    size_t *ret_end);
/** Does the expression match the text as a whole? */
bool ifd_regex_is_whole(struct ifd_regex *regex, struct ifd_str text);

#endif
