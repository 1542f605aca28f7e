/* Operators on whole texts: text_case, text_join, text_cast, text_match. */
#include "engine/base/letters.h"
#include "engine/base/regex.h"
#include "engine/base/str.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_text_case, ifd_op_text_join, ifd_op_text_cast,
    ifd_op_text_match;

#define TYPES_NUMBER (IFD_BIT(IFD_F32) | IFD_BIT(IFD_S64))

static enum ifd_code take(const struct ifd_ref_call *call, size_t bytes, char **ret_text,
                          struct ifd_err *err)
{
    return call->texts ? call->texts->take(call->texts, bytes, ret_text, err)
                       : ifd_fail(err, IFD_INTERNAL, "a text of %zu bytes outside a run", bytes);
}

int ifd_text_order(struct ifd_str a, struct ifd_str b)
{
    const size_t size = a.size < b.size ? a.size : b.size;
    const int first = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return first != 0 ? first : a.size < b.size ? -1 : a.size > b.size;
}

/* ---- text_case ---- */

static enum ifd_code same_infer(const struct ifd_op_def *def, const struct ifd_infer *in,
                                struct ifd_desc *output, enum ifd_dtype dtype, struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static enum ifd_code text_case_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    return same_infer(&ifd_op_text_case, in, output, IFD_STR, err);
}

/* to: NULL: only counts. Returns the bytes. */
static size_t turn(struct ifd_str text, bool is_upper, char *to)
{
    size_t size = 0;
    while (text.size > 0) {
        size_t bytes = 0;
        char turned[IFD_UTF8_MAX];
        const uint32_t letter = ifd_utf8_next(text, &bytes);
        const uint32_t other = is_upper ? ifd_letter_upper(letter) : ifd_letter_lower(letter);
        const bool is_same = other == letter; /* also a byte that is no character */
        const size_t count = is_same ? bytes : ifd_utf8_write(other, turned);
        if (to) {
            memcpy(to + size, is_same ? text.data : turned, count);
        }
        size += count;
        text.data += bytes;
        text.size -= bytes;
    }
    return size;
}

static enum ifd_code text_case_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_text_case_attrs *attrs = call->attrs;
    const struct ifd_str *x = call->input[0];
    struct ifd_str *y = call->output[0];
    const size_t count = ifd_ref_elements(call->in[0]);
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = turn(x[i], attrs->is_upper, NULL);
        char *text = NULL;
        const enum ifd_code code = take(call, bytes, &text, err);
        if (code != IFD_OK) {
            return code;
        }
        turn(x[i], attrs->is_upper, text);
        y[i] = (struct ifd_str){.data = text, .size = bytes};
    }
    return IFD_OK;
}

static const struct ifd_attr_def text_case_attrs[] = {
    {"is_upper", IFD_ATTR_BOOL, offsetof(struct ifd_text_case_attrs, is_upper), 0, 0, 1},
};

const struct ifd_op_def ifd_op_text_case = {
    .name = "text_case",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = text_case_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_text_case_attrs),
    .dtypes = IFD_BIT(IFD_STR),
    .makes_texts = true,
    .infer = text_case_infer,
    .ref = text_case_ref,
};

/* ---- text_join ---- */

static enum ifd_code text_join_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_text_join;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(IFD_STR), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_STR, err);
    }
    return code == IFD_OK ? ifd_infer_broadcast(def, in, output, err) : code;
}

static enum ifd_code text_join_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_str *a = call->input[0], *b = call->input[1];
    struct ifd_str *y = call->output[0];
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const struct ifd_str left = a[walk.offset[0]], right = b[walk.offset[1]];
        size_t bytes = 0;
        char *text = NULL;
        const enum ifd_code code =
            ifd_size_add(left.size, right.size, &bytes)
                ? take(call, bytes, &text, err)
                : ifd_fail(err, IFD_TOO_LARGE, "texts of %zu and %zu bytes", left.size, right.size);
        if (code != IFD_OK) {
            return code;
        }
        if (left.size > 0) {
            memcpy(text, left.data, left.size);
        }
        if (right.size > 0) {
            memcpy(text + left.size, right.data, right.size);
        }
        y[walk.done] = (struct ifd_str){.data = text, .size = bytes};
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_text_join = {
    .name = "text_join",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_STR),
    .makes_texts = true,
    .infer = text_join_infer,
    .ref = text_join_ref,
};

/* ---- text_cast ---- */

static enum ifd_code text_cast_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_text_cast;
    const enum ifd_dtype to = output[0].dtype;
    const enum ifd_code code = same_infer(def, in, output, to, err);
    if (code != IFD_OK) {
        return code;
    }
    const bool is_text = in->input[0].desc->dtype == IFD_STR;
    if (is_text ? (TYPES_NUMBER & IFD_BIT(to)) == 0 : to != IFD_STR) {
        return ifd_fail(err, IFD_INVALID, "text_cast: %s to %s, expected one text and one number",
                        ifd_dtype_name(in->input[0].desc->dtype), ifd_dtype_name(to));
    }
    return code;
}

#define NUMBER_BYTES 32

/* As ONNX Runtime writes them. */
static size_t write_number(const struct ifd_ref_call *call, size_t i, char to[NUMBER_BYTES])
{
    int size = 0;
    if (call->in[0]->dtype == IFD_S64) {
        size = snprintf(to, NUMBER_BYTES, "%lld", (long long)((const int64_t *)call->input[0])[i]);
    } else {
        const float x = ((const float *)call->input[0])[i];
        size = isnan(x)   ? snprintf(to, NUMBER_BYTES, "NaN")
               : isinf(x) ? snprintf(to, NUMBER_BYTES, x < 0 ? "-INF" : "INF")
                          : snprintf(to, NUMBER_BYTES, "%.8g", (double)x);
    }
    return size > 0 ? (size_t)size : 0;
}

/* Without case: NaN, INF, infinity. */
static bool read_special(struct ifd_str text, double *ret)
{
    const bool is_negative = text.size > 0 && text.data[0] == '-';
    if (text.size > 0 && (is_negative || text.data[0] == '+')) {
        text.data++;
        text.size--;
    }
    const bool is_nan = ifd_str_equal_nocase(text, "nan");
    *ret = is_nan ? (double)NAN : is_negative ? -HUGE_VAL : HUGE_VAL;
    return is_nan || ifd_str_equal_nocase(text, "inf") || ifd_str_equal_nocase(text, "infinity");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "+1", ".5", "1." are numbers here, too, though not in JSON. */
static bool read_real(struct ifd_str text, double *ret)
{
    char whole[NUMBER_BYTES * 4];
    size_t size = 0, from = text.size > 0 && text.data[0] == '+';
    if (text.size > sizeof(whole) / 2) { /* a character becomes two at most */
        return ifd_str_f64(text, ret);
    }
    for (size_t i = from; i < text.size; i++) {
        const bool is_behind_digit = i > from && is_digit(text.data[i - 1]);
        const bool is_before_digit = i + 1 < text.size && is_digit(text.data[i + 1]);
        const bool is_point = text.data[i] == '.';
        if (is_point && !is_behind_digit && !is_before_digit) {
            return false;
        }
        if (is_point && !is_behind_digit) {
            whole[size++] = '0';
        }
        if (!is_point || is_before_digit) {
            whole[size++] = text.data[i];
        }
    }
    return ifd_str_f64((struct ifd_str){.data = whole, .size = size}, ret);
}

static enum ifd_code parse(const struct ifd_ref_call *call, size_t i, struct ifd_err *err)
{
    const struct ifd_str text = ifd_str_trim(((const struct ifd_str *)call->input[0])[i]);
    double real = 0;
    bool is_sound = false;
    if (call->out[0]->dtype == IFD_S64) {
        const bool has_plus = text.size > 0 && text.data[0] == '+';
        is_sound = ifd_str_s64(
            (struct ifd_str){.data = text.data + has_plus, .size = text.size - has_plus},
            &((int64_t *)call->output[0])[i]);
    } else {
        is_sound = read_special(text, &real) || read_real(text, &real);
        ((float *)call->output[0])[i] = (float)real;
    }
    return is_sound
               ? IFD_OK
               : ifd_fail(err, IFD_INVALID, "element %zu: \"%.*s\" is no number", i,
                          (int)(text.size < NUMBER_BYTES ? text.size : NUMBER_BYTES), text.data);
}

static enum ifd_code text_cast_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const size_t count = ifd_ref_elements(call->in[0]);
    for (size_t i = 0; i < count; i++) {
        if (call->in[0]->dtype == IFD_STR) {
            const enum ifd_code code = parse(call, i, err);
            if (code != IFD_OK) {
                return code;
            }
            continue;
        }
        char number[NUMBER_BYTES];
        const size_t bytes = write_number(call, i, number);
        char *text = NULL;
        const enum ifd_code code = take(call, bytes, &text, err);
        if (code != IFD_OK) {
            return code;
        }
        memcpy(text, number, bytes);
        ((struct ifd_str *)call->output[0])[i] = (struct ifd_str){.data = text, .size = bytes};
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_text_cast = {
    .name = "text_cast",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_STR) | TYPES_NUMBER,
    .makes_texts = true,
    .infer = text_cast_infer,
    .ref = text_cast_ref,
};

/* ---- text_match ---- */

static enum ifd_code text_match_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_text_match;
    enum ifd_code code = same_infer(def, in, output, IFD_BOOL, err);
    if (code == IFD_OK) {
        code = ifd_text_infer_list(def, in, 1, 1, err);
    }
    return code;
}

static enum ifd_code regex_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                   size_t *ret_bytes, struct ifd_err *err)
{
    (void)in;
    (void)output;
    (void)err;
    *ret_bytes = sizeof(struct ifd_regex);
    return IFD_OK;
}

static enum ifd_code text_match_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    struct ifd_regex *regex = call->scratch;
    const struct ifd_str *x = call->input[0], *pattern = call->input[1];
    const size_t count = ifd_ref_elements(call->in[0]);
    enum ifd_code code = ifd_regex_compile(regex, *pattern, err);
    for (size_t i = 0; code == IFD_OK && i < count; i++) {
        ((uint8_t *)call->output[0])[i] = ifd_regex_is_whole(regex, x[i]);
        code = ifd_text_check_work(regex, err);
    }
    return code;
}

const struct ifd_op_def ifd_op_text_match = {
    .name = "text_match",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_STR),
    .infer = text_match_infer,
    .scratch = regex_scratch,
    .ref = text_match_ref,
};
