/* Operators on texts: StringNormalizer, StringConcat, StringSplit, RegexFullMatch, Tokenizer, and
 * texts as numbers. */
#include "engine/base/regex.h"
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static const struct ifd_desc text = {.dtype = IFD_STR};

static uint32_t one_text(struct ifd_builder *b, struct ifd_str s)
{
    const struct ifd_shape one = {.rank = 1, .dim = {1}};
    return ifd_onnx_texts(b, &s, &one);
}

static uint32_t in_case(struct ifd_builder *b, uint32_t x, bool is_upper)
{
    const struct ifd_text_case_attrs attrs = {.is_upper = is_upper};
    return ifd_build_node(b, IFD_OP_TEXT_CASE, &x, 1, NULL, &attrs);
}

/* Patterns as a constant; fails for one that is no regular expression. */
static uint32_t patterns(struct ifd_builder *b, const struct ifd_str *pattern, uint32_t count)
{
    const struct ifd_shape shape = {.rank = 1, .dim = {count}};
    struct ifd_regex *regex = ifd_arena_take(b->graph->arena, sizeof(*regex));
    if (!regex && b->code == IFD_OK) {
        b->code = ifd_arena_fail(b->graph->arena, sizeof(*regex), b->err);
    }
    for (uint32_t i = 0; i < count && b->code == IFD_OK; i++) {
        b->code = ifd_regex_compile(regex, pattern[i], b->err);
    }
    return b->code == IFD_OK ? ifd_onnx_texts(b, pattern, &shape) : IFD_NONE;
}

/* ---- texts and numbers ---- */

uint32_t ifd_onnx_text_cast(struct ifd_builder *b, uint32_t x, enum ifd_dtype to)
{
    const enum ifd_dtype from = ifd_build_desc(b, x)->dtype;
    if (from == to) {
        return x;
    }
    const bool is_real = from == IFD_STR ? ifd_onnx_is_real(to) : ifd_onnx_is_real(from);
    const enum ifd_dtype number = is_real ? IFD_F32 : IFD_S64;
    const struct ifd_desc output = {.dtype = from == IFD_STR ? number : IFD_STR};
    x = from == IFD_STR ? x : ifd_build_cast(b, x, number);
    const uint32_t y = ifd_build_node(b, IFD_OP_TEXT_CAST, &x, 1, &output, NULL);
    return from == IFD_STR ? ifd_build_cast(b, y, to) : y;
}

/* ---- whole texts ---- */

void ifd_onnx_string_concat(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = ifd_build_node(call->b, IFD_OP_TEXT_JOIN, call->input, 2, &text, NULL);
}

void ifd_onnx_regex_full_match(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const struct ifd_onnx_attr *pattern = ifd_onnx_attr(call, "pattern");
    const uint32_t input[2] = {
        call->input[0],
        patterns(call->b, pattern ? &pattern->s : &(const struct ifd_str){"", 0}, 1)};
    call->output[0] = ifd_build_node(call->b, IFD_OP_TEXT_MATCH, input, 2, &flag, NULL);
}

/* Those of x, a list, that are no stop words. */
static uint32_t without(struct ifd_onnx_call *call, uint32_t x, const struct ifd_onnx_attr *words)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = {.rank = 1, .dim = {words->string_count}};
    const struct ifd_ints last = {.count = 1, .value = {1}};
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const bool has_case = ifd_onnx_int(call, "is_case_sensitive", 0) != 0;
    const uint32_t keys = ifd_onnx_texts(b, words->strings, &shape);
    const int64_t column[2] = {-1, 1};
    const uint32_t each = ifd_build_reshape(b, has_case ? x : in_case(b, x, false), column, 2);
    const uint32_t is_word = ifd_build_reduce(
        b, IFD_OP_REDUCE_ANY,
        ifd_onnx_compared(b, IFD_OP_EQUAL, each, has_case ? keys : in_case(b, keys, false)), &last,
        false);
    const uint32_t stays = ifd_build_node(b, IFD_OP_LOGICAL_NOT, &is_word, 1, &flag, NULL);
    const uint32_t found = ifd_onnx_found_elements(call, stays);
    const int64_t count = ifd_build_desc(b, found)->shape.dim[1];
    if (b->code == IFD_OK && count == 0) {
        return one_text(b, (struct ifd_str){"", 0});
    }
    const uint32_t input[2] = {x, ifd_build_reshape(b, found, &count, 1)};
    return ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, NULL);
}

/* Stop words of an input that has no elements are none. */
void ifd_onnx_string_normalizer(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *words = ifd_onnx_attr(call, "stopwords");
    const struct ifd_desc desc = *ifd_build_desc(b, call->input[0]);
    const bool to_upper = ifd_onnx_text_is(call, "case_change_action", "UPPER", false);
    const bool to_lower = ifd_onnx_text_is(call, "case_change_action", "LOWER", false);
    const int64_t list[1] = {-1};
    if (desc.dtype != IFD_STR || desc.shape.rank < 1 || desc.shape.rank > 2 ||
        (desc.shape.rank == 2 && desc.shape.dim[0] != 1)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s of shape %s, expected texts [n] or [1,n]",
                       ifd_dtype_name(desc.dtype), ifd_shape_text(&desc.shape).s);
        return;
    }
    uint32_t x = ifd_build_reshape(b, call->input[0], list, 1);
    if (words && words->string_count > 0) {
        x = without(call, x, words);
    }
    x = to_upper || to_lower ? in_case(b, x, to_upper) : x;
    const int64_t dim[2] = {1, ifd_build_desc(b, x)->shape.dim[0]};
    call->output[0] = desc.shape.rank == 2 ? ifd_build_reshape(b, x, dim, 2) : x;
}

/* ---- parts of texts ---- */

/* The parts of texts, as many as the longest has: a run counts them. pad is a constant [1].
 * ret_count: how many each has. */
static uint32_t parts_of(struct ifd_onnx_call *call, struct ifd_text_split_attrs attrs,
                         uint32_t pattern, uint32_t pad, uint32_t *ret_count)
{
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = *ifd_build_desc(b, call->input[0]);
    const struct ifd_desc number = {.dtype = IFD_S64};
    const uint32_t input[3] = {call->input[0], pattern, pad};
    const struct ifd_ints first = {.count = 1};
    const int64_t list[1] = {-1};
    size_t elements = 0;
    if (desc.dtype != IFD_STR) {
        return ifd_build_fail(b, IFD_INVALID, "%s, expected texts", ifd_dtype_name(desc.dtype));
    }
    *ret_count =
        ifd_build_node(b, IFD_OP_TEXT_COUNT, input, pattern == IFD_NONE ? 1 : 2, &number, &attrs);
    if (ifd_shape_elements(&desc.shape, &elements) && elements > 0) {
        const uint32_t all = ifd_build_reshape(b, *ret_count, list, 1);
        attrs.room = ifd_build_int_of(b, ifd_build_reduce(b, IFD_OP_REDUCE_MAX, all, &first, false),
                                      "the number of parts");
    }
    attrs.room += attrs.marks && attrs.room > 0 ? 2 : 0;
    return ifd_build_node(b, IFD_OP_TEXT_SPLIT, input, 3, &text, &attrs);
}

void ifd_onnx_string_split(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct ifd_onnx_attr *by = ifd_onnx_attr(call, "delimiter");
    const bool is_words = !by || by->s.size == 0;
    const struct ifd_text_split_attrs attrs = {.parts =
                                                   is_words ? IFD_TEXT_WORDS : IFD_TEXT_DELIMITER,
                                               .splits = ifd_onnx_int32(call, "maxsplit", -1)};
    uint32_t count = IFD_NONE;
    call->output[0] = parts_of(call, attrs, is_words ? IFD_NONE : one_text(call->b, by->s),
                               one_text(call->b, (struct ifd_str){"", 0}), &count);
    if (call->output_count > 1) {
        call->output[1] = count;
    }
}

void ifd_onnx_tokenizer(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *token = ifd_onnx_attr(call, "tokenexp");
    const struct ifd_onnx_attr *by = ifd_onnx_attr(call, "separators");
    const struct ifd_onnx_attr *pad = ifd_onnx_attr(call, "pad_value");
    const uint32_t separators = by ? by->string_count : 0;
    const bool is_by_character = separators == 1 && by->strings[0].size == 0;
    uint32_t count = IFD_NONE, pattern = IFD_NONE;
    struct ifd_text_split_attrs attrs = {.parts = IFD_TEXT_CHARACTERS,
                                         .least = ifd_onnx_int32(call, "mincharnum", 1),
                                         .splits = -1,
                                         .marks = ifd_onnx_int(call, "mark", 0) != 0};
    if (attrs.least < 1 || (separators == 0 && !token) || (separators > 0 && token)) {
        ifd_build_fail(b, IFD_INVALID,
                       "mincharnum is %d, expected 1 or more; %u separators, %s tokenexp",
                       (int)attrs.least, separators, token ? "a" : "no");
        return;
    }
    if (token) {
        attrs.parts = IFD_TEXT_TOKENS;
        pattern = patterns(b, &token->s, 1);
    } else if (!is_by_character) {
        attrs.parts = IFD_TEXT_SEPARATORS;
        pattern = patterns(b, by->strings, separators);
    }
    call->output[0] =
        parts_of(call, attrs, pattern, one_text(b, pad ? pad->s : (struct ifd_str){"", 0}), &count);
}
