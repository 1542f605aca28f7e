/* Runs the code of regular expressions, as a machine that is at several places at a time: each
 * character of the text is looked at once. */
#include <string.h>

#include "engine/base/letters.h"
#include "engine/base/regex_impl.h"

static bool is_word(struct ifd_str text, size_t at)
{
    const char c = at < text.size ? text.data[at] : ' ';
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

static bool is_at(const struct ifd_regex_step *step, struct ifd_str text, size_t at)
{
    const bool turns = (at > 0 && is_word(text, at - 1)) != is_word(text, at);
    switch (step->op) {
    case AT_BEGIN:
        return at == 0 || (step->a && text.data[at - 1] == '\n');
    case AT_END:
        return at == text.size || (step->a && text.data[at] == '\n');
    case AT_WORD:
        return turns;
    default:
        return !turns;
    }
}

static void open_place(struct ifd_regex *r, uint16_t *open, uint32_t *count, uint32_t place)
{
    if (r->mark[place] != r->round) {
        r->mark[place] = r->round;
        r->work++;
        open[(*count)++] = (uint16_t)place;
    }
}

/* Adds a place and all that are reached from it without a character, each once in a round. */
static void reach(struct ifd_regex *r, struct ifd_regex_set *set, uint32_t place, size_t begin,
                  struct ifd_str text, size_t at)
{
    uint16_t open[IFD_REGEX_CODE];
    uint32_t count = 0;
    open_place(r, open, &count, place);
    while (count > 0) {
        const uint32_t here = open[--count];
        const struct ifd_regex_step *step = &r->code[here];
        if (step->op == RANGES || step->op == FOUND) {
            set->place[set->count] = (uint16_t)here;
            set->begin[set->count++] = begin;
            continue;
        }
        if (step->op == EITHER || step->op == JUMP) {
            open_place(r, open, &count, (uint32_t)((int32_t)here + step->to));
        }
        if (step->op == EITHER || (step->op != JUMP && is_at(step, text, at))) {
            open_place(r, open, &count, here + 1);
        }
    }
}

static bool has(const struct ifd_regex *r, const struct ifd_regex_step *step, uint32_t character)
{
    for (int32_t i = 0; i < step->b; i++) {
        if (character >= r->range[step->a + i].first && character <= r->range[step->a + i].last) {
            return true;
        }
    }
    return false;
}

/* The letter of the same pair. */
static uint32_t other_case(uint32_t c)
{
    const uint32_t upper = ifd_letter_upper(c), lower = ifd_letter_lower(c);
    return upper != c && ifd_letter_lower(upper) == c   ? upper
           : lower != c && ifd_letter_upper(lower) == c ? lower
                                                        : c;
}

static bool takes(struct ifd_regex *r, const struct ifd_regex_step *step, uint32_t character)
{
    r->work += (uint64_t)step->b;
    const bool is_in =
        has(r, step, character) || (r->no_case && has(r, step, other_case(character)));
    return is_in != (step->to != 0);
}

bool ifd_regex_find(struct ifd_regex *r, struct ifd_str text, size_t from, size_t *ret_begin,
                    size_t *ret_end)
{
    struct ifd_regex_set *now = &r->set[0], *then = &r->set[1];
    bool is_found = false;
    now->count = 0;
    r->round++;
    for (size_t at = from; r->work <= IFD_REGEX_WORK;) {
        if (!is_found) { /* behind those that began before */
            reach(r, now, 0, at, text, at);
        }
        size_t bytes = 1;
        const struct ifd_str rest = {.data = text.data + at, .size = text.size - at};
        const uint32_t character = at < text.size ? ifd_utf8_next(rest, &bytes) : 0;
        then->count = 0;
        r->round++;
        for (uint32_t i = 0; i < now->count; i++) {
            const struct ifd_regex_step *step = &r->code[now->place[i]];
            const size_t begin = now->begin[i];
            if (is_found && begin > *ret_begin) {
                continue;
            }
            if (step->op == FOUND) {
                is_found = true;
                *ret_begin = begin;
                *ret_end = at;
            } else if (at < text.size && takes(r, step, character)) {
                reach(r, then, (uint32_t)now->place[i] + 1, begin, text, at + bytes);
            }
        }
        if (at >= text.size || (is_found && then->count == 0)) {
            return is_found;
        }
        at += bytes;
        struct ifd_regex_set *swap = now;
        now = then;
        then = swap;
    }
    return false;
}

bool ifd_regex_is_whole(struct ifd_regex *regex, struct ifd_str text)
{
    size_t begin = 0, end = 0;
    return ifd_regex_find(regex, text, 0, &begin, &end) && begin == 0 && end == text.size;
}
