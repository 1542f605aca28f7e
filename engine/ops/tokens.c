/* Parts of texts: text_count, text_split. A part is a piece of the text itself. */
#include "engine/base/letters.h"
#include "engine/base/regex.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/text.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_text_count, ifd_op_text_split;

#define SEPARATORS_MAX 8

enum ifd_code ifd_text_infer_list(const struct ifd_op_def *def, const struct ifd_infer *in,
                                  uint32_t i, int64_t min, struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_dtype(def, in, i, IFD_BIT(IFD_STR), err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, i, 1, err);
    }
    if (code == IFD_OK && in->input[i].desc->shape.dim[0] < min) {
        return ifd_fail(err, IFD_INVALID, "%s: input %u has shape %s, expected %lld or more",
                        def->name, i, ifd_shape_text(&in->input[i].desc->shape).s, (long long)min);
    }
    return code;
}

enum ifd_code ifd_text_check_work(const struct ifd_regex *regex, struct ifd_err *err)
{
    return regex->work > IFD_REGEX_WORK
               ? ifd_fail(err, IFD_TOO_LARGE, "texts too long for their regular expression")
               : IFD_OK;
}

/* ---- the parts of one text, one after the other ---- */

struct reader {
    const struct ifd_text_split_attrs *attrs;
    struct ifd_regex *regex; /* one for each pattern */
    const struct ifd_str *pattern;
    uint32_t patterns;
    struct ifd_str text;
    size_t at;
    int64_t splits; /* so far */
    bool is_done;
    /* SEPARATORS: pieces of the pieces of the separator before */
    struct level {
        size_t at, end;
        bool is_done;
    } level[SEPARATORS_MAX];
    uint32_t depth;
};

static struct ifd_str piece(const struct reader *r, size_t begin, size_t end)
{
    return (struct ifd_str){.data = r->text.data + begin, .size = end - begin};
}

static size_t step_over(const struct reader *r, size_t at)
{
    size_t bytes = 1;
    if (at < r->text.size) {
        (void)ifd_utf8_next(piece(r, at, r->text.size), &bytes);
    }
    return at + bytes;
}

static bool next_token(struct reader *r, struct ifd_str *ret)
{
    size_t begin = 0, end = 0;
    while (r->at <= r->text.size && ifd_regex_find(r->regex, r->text, r->at, &begin, &end)) {
        r->at = end > begin ? end : step_over(r, end);
        if (end > begin) {
            *ret = piece(r, begin, end);
            return true;
        }
    }
    return false;
}

/* The next piece of a level: up to the next match of its separator. */
static bool next_piece(struct reader *r, struct level *level, struct ifd_regex *regex,
                       size_t *ret_begin, size_t *ret_end)
{
    if (level->is_done) {
        return false;
    }
    size_t begin = 0, end = 0;
    const struct ifd_str within = piece(r, 0, level->end);
    *ret_begin = level->at;
    if (ifd_regex_find(regex, within, level->at, &begin, &end)) {
        *ret_end = begin;
        level->at = end > begin ? end : step_over(r, end);
        level->is_done = level->at > level->end;
    } else {
        *ret_end = level->end;
        level->is_done = true;
    }
    return true;
}

static bool next_separated(struct reader *r, struct ifd_str *ret)
{
    for (;;) {
        size_t begin = 0, end = 0;
        if (!next_piece(r, &r->level[r->depth], &r->regex[r->depth], &begin, &end)) {
            if (r->depth == 0) {
                return false;
            }
            r->depth--;
        } else if (r->depth + 1 < r->patterns) {
            r->level[++r->depth] = (struct level){.at = begin, .end = end};
        } else {
            *ret = piece(r, begin, end);
            return true;
        }
    }
}

static bool next_character(struct reader *r, struct ifd_str *ret)
{
    if (r->at >= r->text.size) {
        return false;
    }
    const size_t begin = r->at;
    r->at = step_over(r, begin);
    *ret = piece(r, begin, r->at);
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_last_split(const struct reader *r)
{
    return r->attrs->splits >= 0 && r->splits == r->attrs->splits;
}

static bool next_word(struct reader *r, struct ifd_str *ret)
{
    const size_t end = r->text.size;
    while (r->at < end && is_blank(r->text.data[r->at])) {
        r->at++;
    }
    if (r->at == end) {
        return false;
    }
    const size_t begin = r->at;
    while (r->at < end && (is_last_split(r) || !is_blank(r->text.data[r->at]))) {
        r->at++;
    }
    r->splits++;
    *ret = piece(r, begin, r->at);
    return true;
}

static bool next_delimited(struct reader *r, struct ifd_str *ret)
{
    const struct ifd_str by = r->pattern[0];
    if (r->is_done || r->text.size == 0) { /* ONNX Runtime has no part in an empty text */
        return false;
    }
    const size_t begin = r->at;
    const struct ifd_str rest = piece(r, begin, r->text.size);
    const char *found =
        by.size > 0 && !is_last_split(r) ? memmem(rest.data, rest.size, by.data, by.size) : NULL;
    if (found) {
        *ret = (struct ifd_str){.data = rest.data, .size = (size_t)(found - rest.data)};
        r->at = begin + ret->size + by.size;
        r->splits++;
        return true;
    }
    r->is_done = true;
    *ret = piece(r, begin, r->text.size);
    return true;
}

static bool next_part(struct reader *r, struct ifd_str *ret)
{
    static bool (*const next[])(struct reader *, struct ifd_str *) = {
        [IFD_TEXT_TOKENS] = next_token,         [IFD_TEXT_SEPARATORS] = next_separated,
        [IFD_TEXT_CHARACTERS] = next_character, [IFD_TEXT_WORDS] = next_word,
        [IFD_TEXT_DELIMITER] = next_delimited,
    };
    while (next[r->attrs->parts](r, ret)) {
        if (r->attrs->least == 0 || (ret->size >= (size_t)r->attrs->least &&
                                     ifd_utf8_count(*ret) >= (size_t)r->attrs->least)) {
            return true;
        }
    }
    return false;
}

static enum ifd_code begin_reader(const struct ifd_ref_call *call, struct reader *r,
                                  struct ifd_err *err)
{
    *r = (struct reader){.attrs = call->attrs, .regex = call->scratch, .pattern = call->input[1]};
    const bool has_regex =
        r->attrs->parts == IFD_TEXT_TOKENS || r->attrs->parts == IFD_TEXT_SEPARATORS;
    enum ifd_code code = IFD_OK;
    r->patterns = has_regex ? (uint32_t)ifd_ref_elements(call->in[1]) : 0;
    for (uint32_t i = 0; code == IFD_OK && i < r->patterns; i++) {
        code = ifd_regex_compile(&r->regex[i], r->pattern[i], err);
    }
    return code;
}

static void begin_text(struct reader *r, struct ifd_str text)
{
    while (r->attrs->parts == IFD_TEXT_WORDS && text.size > 0 &&
           is_blank(text.data[text.size - 1])) {
        text.size--; /* as ONNX Runtime has it */
    }
    r->text = text;
    r->at = r->depth = 0;
    r->splits = 0;
    r->is_done = false;
    r->level[0] = (struct level){.end = text.size};
}

static enum ifd_code end_text(const struct reader *r, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < r->patterns; i++) {
        code = ifd_text_check_work(&r->regex[i], err);
    }
    return code;
}

/* ---- shape rules ---- */

static enum ifd_code parts_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 struct ifd_err *err)
{
    const struct ifd_text_split_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    const bool has_patterns = attrs->parts != IFD_TEXT_CHARACTERS && attrs->parts != IFD_TEXT_WORDS;
    if (code == IFD_OK && has_patterns && ifd_infer_input(in, 1)) {
        code = ifd_text_infer_list(def, in, 1, 1, err);
    }
    if (code == IFD_OK && has_patterns &&
        (!ifd_infer_input(in, 1) || in->input[1].desc->shape.dim[0] > SEPARATORS_MAX ||
         (attrs->parts != IFD_TEXT_SEPARATORS && in->input[1].desc->shape.dim[0] != 1))) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: no pattern, or more than %d", def->name,
                        attrs->parts == IFD_TEXT_SEPARATORS ? SEPARATORS_MAX : 1);
    }
    return code;
}

static enum ifd_code parts_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                   size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    (void)err;
    const struct ifd_desc *patterns = ifd_infer_input(in, 1);
    *ret_bytes = patterns ? ifd_ref_elements(patterns) * sizeof(struct ifd_regex) : 0;
    return IFD_OK;
}

/* ---- text_count ---- */

static enum ifd_code text_count_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_text_count;
    enum ifd_code code = parts_infer(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_S64, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static enum ifd_code text_count_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    struct reader r;
    struct ifd_str part;
    const struct ifd_str *x = call->input[0];
    const size_t count = ifd_ref_elements(call->in[0]);
    enum ifd_code code = begin_reader(call, &r, err);
    for (size_t i = 0; code == IFD_OK && i < count; i++) {
        int64_t parts = 0;
        for (begin_text(&r, x[i]); next_part(&r, &part);) {
            parts++;
        }
        ((int64_t *)call->output[0])[i] = parts;
        code = end_text(&r, err);
    }
    return code;
}

#define FIELD(name) offsetof(struct ifd_text_split_attrs, name)
static const struct ifd_attr_def split_attrs[] = {
    {"parts", IFD_ATTR_INT, FIELD(parts), 0, IFD_TEXT_TOKENS, IFD_TEXT_DELIMITER},
    {"least", IFD_ATTR_INT, FIELD(least), 0, 0, INT32_MAX},
    {"splits", IFD_ATTR_INT, FIELD(splits), -1, -1, INT32_MAX},
    {"room", IFD_ATTR_INT, FIELD(room), 0, 0, INT32_MAX},
    {"marks", IFD_ATTR_BOOL, FIELD(marks), 0, 0, 1},
};

const struct ifd_op_def ifd_op_text_count = {
    .name = "text_count",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = split_attrs,
    .attr_count = sizeof(split_attrs) / sizeof(split_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_text_split_attrs),
    .dtypes = IFD_BIT(IFD_STR),
    .infer = text_count_infer,
    .scratch = parts_scratch,
    .ref = text_count_ref,
};

/* ---- text_split ---- */

static enum ifd_code text_split_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_text_split;
    const struct ifd_text_split_attrs *attrs = in->attrs;
    enum ifd_code code = parts_infer(def, in, err);
    if (code == IFD_OK) {
        code = ifd_text_infer_list(def, in, 2, 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_STR, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    if (shape.rank == IFD_MAX_RANK) {
        return ifd_fail(err, IFD_UNSUPPORTED, "text_split: texts of shape %s",
                        ifd_shape_text(&shape).s);
    }
    shape.dim[shape.rank++] = attrs->room;
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code text_split_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    static const struct ifd_str begin_mark = {"\x02", 1}, end_mark = {"\x03", 1};
    struct reader r;
    struct ifd_str part;
    const struct ifd_str *x = call->input[0], *rest = call->input[2];
    struct ifd_str *y = call->output[0];
    const size_t count = ifd_ref_elements(call->in[0]);
    enum ifd_code code = begin_reader(call, &r, err);
    for (size_t i = 0; code == IFD_OK && i < count; i++) {
        const int64_t room = r.attrs->room, marks = r.attrs->marks ? 1 : 0;
        int64_t parts = marks;
        begin_text(&r, x[i]);
        while (parts + marks < room && next_part(&r, &part)) {
            y[parts++] = part;
        }
        if (marks == 1 && room > 1) {
            y[0] = begin_mark;
            y[parts++] = end_mark;
        }
        for (; parts < room; parts++) {
            y[parts] = rest[0];
        }
        y += room;
        code = end_text(&r, err);
    }
    return code;
}

const struct ifd_op_def ifd_op_text_split = {
    .name = "text_split",
    .min_inputs = 1,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = split_attrs,
    .attr_count = sizeof(split_attrs) / sizeof(split_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_text_split_attrs),
    .dtypes = IFD_BIT(IFD_STR),
    .infer = text_split_infer,
    .scratch = parts_scratch,
    .ref = text_split_ref,
};
