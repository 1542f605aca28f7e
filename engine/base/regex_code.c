/* From the text of a regular expression to its code. Jumps are relative, so code moves and is
 * copied as it is. */
#include <string.h>

#include "engine/base/letters.h"
#include "engine/base/regex_impl.h"

#define GROUPS_MAX  32
#define REPEATS_MAX 256
#define NO_LIMIT    (-1)

struct group {
    uint32_t begin;  /* of its code */
    uint32_t branch; /* of its present branch */
    int32_t jumps;   /* a chain of the jumps to its end; -1 ends it */
};

struct compiler {
    struct ifd_regex *r;
    struct ifd_str rest;
    struct group group[GROUPS_MAX];
    uint32_t depth;
    int32_t atom; /* begin of the last one; -1: nothing that can be repeated */
    enum ifd_code code;
    struct ifd_err *err;
};

static void fail(struct compiler *c, enum ifd_code code, const char *what)
{
    if (c->code == IFD_OK) {
        c->code = ifd_fail(c->err, code, "regular expression: %s", what);
    }
}

static void insert(struct compiler *c, uint32_t at, struct ifd_regex_step step)
{
    struct ifd_regex *r = c->r;
    if (r->count >= IFD_REGEX_CODE - 1) { /* the last step is FOUND */
        fail(c, IFD_TOO_LARGE, "too long");
        return;
    }
    memmove(r->code + at + 1, r->code + at, (r->count - at) * sizeof(step));
    r->code[at] = step;
    r->count++;
}

static void append(struct compiler *c, struct ifd_regex_step step)
{
    insert(c, c->r->count, step);
}

static uint32_t next(struct compiler *c)
{
    size_t bytes = 0;
    const uint32_t character = ifd_utf8_next(c->rest, &bytes);
    c->rest.data += bytes;
    c->rest.size -= bytes;
    return character;
}

static bool accept(struct compiler *c, char character)
{
    if (c->rest.size == 0 || c->rest.data[0] != character) {
        return false;
    }
    (void)next(c);
    return true;
}

static void add_range(struct compiler *c, uint32_t first, uint32_t last)
{
    struct ifd_regex *r = c->r;
    if (r->range_count == IFD_REGEX_RANGES) {
        fail(c, IFD_TOO_LARGE, "too many classes");
        return;
    }
    r->range[r->range_count].first = first;
    r->range[r->range_count++].last = last;
}

#define LAST_CHARACTER 0x10ffff

/* The complement of sorted ranges. */
static void add_without(struct compiler *c, const char *pairs)
{
    uint32_t next_one = 0;
    for (; pairs[0] != '\0'; pairs += 2) {
        add_range(c, next_one, (uint32_t)pairs[0] - 1);
        next_one = (uint32_t)pairs[1] + 1;
    }
    add_range(c, next_one, LAST_CHARACTER);
}

static void add_pairs(struct compiler *c, const char *pairs)
{
    for (; pairs[0] != '\0'; pairs += 2) {
        add_range(c, (uint32_t)pairs[0], (uint32_t)pairs[1]);
    }
}

static const char *class_of(uint32_t letter)
{
    switch (letter | 0x20) {
    case 'd':
        return "09";
    case 'w':
        return "09AZ__az";
    case 's':
        return "\t\n\f\r  ";
    default:
        return NULL;
    }
}

static uint32_t hex(struct compiler *c)
{
    const bool is_braced = accept(c, '{');
    uint32_t number = 0, digits = 0;
    while (c->rest.size > 0 && digits < (is_braced ? 6 : 2)) {
        const char x = c->rest.data[0];
        const int digit = x >= '0' && x <= '9'                     ? x - '0'
                          : (x | 0x20) >= 'a' && (x | 0x20) <= 'f' ? (x | 0x20) - 'a' + 10
                                                                   : -1;
        if (digit < 0) {
            break;
        }
        number = number << 4 | (uint32_t)digit;
        (void)next(c);
        digits++;
    }
    if (digits == 0 || (is_braced && !accept(c, '}')) || number > LAST_CHARACTER) {
        fail(c, IFD_INVALID, "\\x without a number");
    }
    return number;
}

/* A character behind a backslash. */
static uint32_t escaped(struct compiler *c, uint32_t letter)
{
    static const char from[] = "nrtfva", to[] = "\n\r\t\f\v\a";
    if (letter == 'x') {
        return hex(c);
    }
    const char *at = letter < 0x80 ? strchr(from, (int)letter) : NULL;
    if (letter != 0 && at) {
        return (uint32_t)to[at - from];
    }
    const bool is_letter = (letter | 0x20) >= 'a' && (letter | 0x20) <= 'z';
    if (is_letter || (letter >= '0' && letter <= '9')) {
        fail(c, IFD_UNSUPPORTED, "an escape that is not known");
    }
    return letter;
}

/* "[:alpha:]" and the like, without the first bracket. */
static bool add_named(struct compiler *c)
{
    static const struct {
        const char *name, *pairs;
    } named[] = {{":alpha:]", "AZaz"},     {":digit:]", "09"},      {":alnum:]", "09AZaz"},
                 {":space:]", "\t\r  "},   {":upper:]", "AZ"},      {":lower:]", "az"},
                 {":punct:]", "!/:@[`{~"}, {":word:]", "09AZ__az"}, {":xdigit:]", "09AFaf"}};
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        const size_t size = strlen(named[i].name);
        if (c->rest.size >= size && memcmp(c->rest.data, named[i].name, size) == 0) {
            c->rest.data += size;
            c->rest.size -= size;
            add_pairs(c, named[i].pairs);
            return true;
        }
    }
    return false;
}

/* One member of a class that may begin a range; false: it was a class of its own. */
static bool read_member(struct compiler *c, uint32_t *ret)
{
    *ret = next(c);
    if (*ret == '[' && c->rest.size > 0 && c->rest.data[0] == ':') {
        if (!add_named(c)) {
            fail(c, IFD_UNSUPPORTED, "a class of a name that is not known");
        }
        return false;
    }
    if (*ret != '\\' || c->rest.size == 0) {
        return true;
    }
    const uint32_t letter = next(c);
    const char *pairs = class_of(letter);
    if (!pairs) {
        *ret = escaped(c, letter);
        return true;
    }
    (letter & 0x20 ? add_pairs : add_without)(c, pairs);
    return false;
}

static void read_class(struct compiler *c)
{
    const uint32_t first = c->r->range_count;
    const bool is_negative = accept(c, '^');
    for (bool is_first = true; c->code == IFD_OK && (is_first || !accept(c, ']'));
         is_first = false) {
        uint32_t begin = 0, end = 0;
        if (c->rest.size == 0) {
            fail(c, IFD_INVALID, "[ without ]");
        } else if (read_member(c, &begin)) {
            end = begin;
            if (c->rest.size > 1 && c->rest.data[0] == '-' && c->rest.data[1] != ']') {
                (void)next(c);
                if (!read_member(c, &end) || end < begin) {
                    fail(c, IFD_INVALID, "a range that ends before it begins");
                }
            }
            add_range(c, begin, end);
        }
    }
    append(c, (struct ifd_regex_step){.op = RANGES,
                                      .to = is_negative,
                                      .a = (int32_t)first,
                                      .b = (int32_t)(c->r->range_count - first)});
}

static void open_group(struct compiler *c)
{
    if (accept(c, '?')) {
        bool is_on = true, has_flags = false;
        while (c->code == IFD_OK && c->rest.size > 0 && c->rest.data[0] != ':' &&
               c->rest.data[0] != ')') {
            const uint32_t flag = next(c);
            bool *const which = flag == 'i'   ? &c->r->no_case
                                : flag == 's' ? &c->r->dot_is_all
                                : flag == 'm' ? &c->r->by_line
                                              : NULL;
            if (which && c->depth == 1 && c->r->count == 0) {
                *which = is_on;
                has_flags = true;
            } else if (flag == '-') {
                is_on = false;
            } else if (flag != 'u' && flag != 'U') { /* the longest match is neither */
                fail(c, IFD_UNSUPPORTED, "flags behind the beginning, names, or looks around");
            }
        }
        if (accept(c, ')')) {
            return;
        }
        if (!accept(c, ':')) {
            fail(c, IFD_INVALID, "( without )");
        } else if (has_flags) {
            fail(c, IFD_UNSUPPORTED, "flags of a group");
        }
    }
    if (c->depth == GROUPS_MAX) {
        fail(c, IFD_TOO_LARGE, "groups nest too deep");
        return;
    }
    c->group[c->depth++] = (struct group){.begin = c->r->count, .branch = c->r->count, .jumps = -1};
    c->atom = -1;
}

/* Jumps to the end of the group lead here. */
static void close_group(struct compiler *c)
{
    const struct group group = c->group[--c->depth];
    for (int32_t at = group.jumps; at >= 0;) {
        const int32_t before = c->r->code[at].a;
        c->r->code[at].to = (int16_t)((int32_t)c->r->count - at);
        at = before;
    }
    c->atom = (int32_t)group.begin;
}

static void add_branch(struct compiler *c)
{
    struct group *group = &c->group[c->depth - 1];
    const int32_t size = (int32_t)(c->r->count - group->branch);
    insert(c, group->branch, (struct ifd_regex_step){.op = EITHER, .to = (int16_t)(size + 2)});
    append(c, (struct ifd_regex_step){.op = JUMP, .a = group->jumps});
    group->jumps = (int32_t)c->r->count - 1;
    group->branch = c->r->count;
    c->atom = -1;
}

/* The code from begin on, size steps, once more at the end. */
static void copy_code(struct compiler *c, const struct ifd_regex_step *from, uint32_t size)
{
    for (uint32_t i = 0; i < size && c->code == IFD_OK; i++) {
        append(c, from[i]);
    }
}

/* The last atom least … most times. */
static void repeat(struct compiler *c, int32_t least, int32_t most)
{
    const uint32_t begin = (uint32_t)c->atom;
    const uint32_t size = c->r->count - begin;
    const int32_t copies = most == NO_LIMIT ? (least > 0 ? least : 1) : most;
    struct ifd_regex_step atom[IFD_REGEX_CODE];
    memcpy(atom, c->r->code + begin, size * sizeof(*atom));
    c->r->count = begin;
    uint32_t last = begin;
    for (int32_t i = 0; i < copies && c->code == IFD_OK; i++) {
        const bool may_end = i >= least;
        last = c->r->count;
        if (may_end) { /* past this one; what follows it leads on to its own way out */
            append(c, (struct ifd_regex_step){
                          .op = EITHER, .to = (int16_t)(size + 1 + (most == NO_LIMIT ? 1 : 0))});
        }
        copy_code(c, atom, size);
    }
    if (most == NO_LIMIT) {
        const int32_t back = (int32_t)last - (int32_t)c->r->count;
        append(c, least > 0 ? (struct ifd_regex_step){.op = EITHER, .to = (int16_t)back}
                            : (struct ifd_regex_step){.op = JUMP, .to = (int16_t)back});
    }
}

static bool read_number(struct compiler *c, int32_t *ret)
{
    int32_t number = 0, digits = 0;
    for (; c->rest.size > 0 && c->rest.data[0] >= '0' && c->rest.data[0] <= '9'; digits++) {
        number = number > REPEATS_MAX ? number : number * 10 + (c->rest.data[0] - '0');
        (void)next(c);
    }
    *ret = number;
    return digits > 0;
}

/* "{2}", "{2,}", "{2,5}" behind the brace; false: the brace is a character. */
static bool read_counts(struct compiler *c, int32_t *ret_least, int32_t *ret_most)
{
    const struct ifd_str before = c->rest;
    bool is_sound = read_number(c, ret_least);
    *ret_most = *ret_least;
    if (is_sound && accept(c, ',') && !read_number(c, ret_most)) {
        *ret_most = NO_LIMIT;
    }
    is_sound = is_sound && accept(c, '}');
    if (!is_sound) {
        c->rest = before;
    } else if (*ret_least > REPEATS_MAX || *ret_most > REPEATS_MAX ||
               (*ret_most != NO_LIMIT && *ret_most < *ret_least)) {
        fail(c, IFD_INVALID, "a number of repetitions");
    }
    return is_sound;
}

static bool read_repetition(struct compiler *c)
{
    int32_t least = 0, most = NO_LIMIT;
    if (c->rest.size == 0) {
        return false;
    }
    const char sign = c->rest.data[0];
    if (sign == '*' || sign == '+' || sign == '?') {
        (void)next(c);
        least = sign == '+';
        most = sign == '?' ? 1 : NO_LIMIT;
    } else if (sign != '{' || c->atom < 0) {
        return false;
    } else {
        (void)next(c);
        if (!read_counts(c, &least, &most)) {
            c->rest.data--;
            c->rest.size++;
            return false;
        }
    }
    if (c->atom < 0) {
        fail(c, IFD_INVALID, "nothing to repeat");
        return true;
    }
    repeat(c, least, most);
    (void)accept(c, '?'); /* as short as possible: the longest match is asked for */
    return true;
}

static void append_ranges(struct compiler *c, void (*add)(struct compiler *, const char *),
                          const char *pairs)
{
    const uint32_t first = c->r->range_count;
    add(c, pairs);
    append(c, (struct ifd_regex_step){
                  .op = RANGES, .a = (int32_t)first, .b = (int32_t)(c->r->range_count - first)});
}

/* A place in the text: it cannot be repeated. */
static void append_place(struct compiler *c, uint16_t op, bool by_line)
{
    append(c, (struct ifd_regex_step){.op = op, .a = by_line});
    c->atom = -1;
}

static void read_escape(struct compiler *c)
{
    if (c->rest.size == 0) {
        fail(c, IFD_INVALID, "a backslash at the end");
        return;
    }
    const uint32_t letter = next(c);
    const char *pairs = class_of(letter);
    if (pairs) {
        append_ranges(c, letter & 0x20 ? add_pairs : add_without, pairs);
    } else if (letter == 'b' || letter == 'B') {
        append_place(c, letter == 'b' ? AT_WORD : NOT_AT_WORD, false);
    } else if (letter == 'A' || letter == 'z') {
        append_place(c, letter == 'A' ? AT_BEGIN : AT_END, false);
    } else {
        const uint32_t character = escaped(c, letter);
        const uint32_t first = c->r->range_count;
        add_range(c, character, character);
        append(c, (struct ifd_regex_step){.op = RANGES, .a = (int32_t)first, .b = 1});
    }
}

static void read_atom(struct compiler *c)
{
    const uint32_t begin = c->r->count, first = c->r->range_count;
    const uint32_t character = next(c);
    c->atom = (int32_t)begin;
    switch (character) {
    case '(':
        open_group(c);
        break;
    case ')':
        if (c->depth < 2) {
            fail(c, IFD_INVALID, ") without (");
        } else {
            close_group(c);
        }
        break;
    case '|':
        add_branch(c);
        break;
    case '[':
        read_class(c);
        break;
    case '.':
        append_ranges(c, add_without, c->r->dot_is_all ? "" : "\n\n");
        break;
    case '^':
        append_place(c, AT_BEGIN, c->r->by_line);
        break;
    case '$':
        append_place(c, AT_END, c->r->by_line);
        break;
    case '\\':
        read_escape(c);
        break;
    default:
        add_range(c, character, character);
        append(c, (struct ifd_regex_step){.op = RANGES, .a = (int32_t)first, .b = 1});
    }
}

enum ifd_code ifd_regex_compile(struct ifd_regex *regex, struct ifd_str pattern,
                                struct ifd_err *err)
{
    struct compiler c = {.r = regex, .rest = pattern, .depth = 1, .atom = -1, .err = err};
    c.group[0] = (struct group){.jumps = -1};
    *regex = (struct ifd_regex){0};
    while (c.code == IFD_OK && c.rest.size > 0) {
        if (!read_repetition(&c)) {
            read_atom(&c);
        }
    }
    if (c.code == IFD_OK && c.depth != 1) {
        fail(&c, IFD_INVALID, "( without )");
    }
    if (c.code == IFD_OK) {
        close_group(&c);
        regex->code[regex->count++].op = FOUND;
    }
    return c.code;
}
