/* ngrams: how often each gram of a list occurs in a row of texts or numbers. The grams of a length
 * are in order, so each place of a row is one search. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/text.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_ngrams;

enum { X, GRAMS, STARTS, COLUMNS, WEIGHTS };

#define LENGTHS_MAX 64

static enum ifd_code refuse_lists(const struct ifd_infer *in, struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID,
                    "ngrams: shapes %s, %s, %s, %s: elements [rows, size], or lists that do not "
                    "fit each other",
                    ifd_shape_text(&in->input[X].desc->shape).s,
                    ifd_shape_text(&in->input[GRAMS].desc->shape).s,
                    ifd_shape_text(&in->input[STARTS].desc->shape).s,
                    ifd_shape_text(&in->input[COLUMNS].desc->shape).s);
}

/* Begin and end of the elements of grams of a length. */
static void elements_of(const int64_t *starts, int64_t lengths, int64_t total, int64_t length,
                        int64_t *ret_begin, int64_t *ret_end)
{
    *ret_begin = starts[length - 1];
    *ret_end = length < lengths ? starts[length] : total;
}

static bool are_lists_sound(const struct ifd_infer *in, int32_t width)
{
    const int64_t lengths = in->input[STARTS].desc->shape.dim[0];
    const int64_t total = in->input[GRAMS].desc->shape.dim[0];
    const int64_t *starts = (const void *)in->input[STARTS].data.data;
    const int64_t *columns = (const void *)in->input[COLUMNS].data.data;
    int64_t grams = 0, before = 0;
    for (int64_t n = 1; n <= lengths; n++) {
        int64_t begin = 0, end = 0;
        elements_of(starts, lengths, total, n, &begin, &end);
        if (begin < before || end < begin || end > total || (end - begin) % n != 0) {
            return false;
        }
        grams += (end - begin) / n;
        before = begin;
    }
    bool fits = grams == in->input[COLUMNS].desc->shape.dim[0] && (lengths == 0 || starts[0] == 0);
    for (int64_t g = 0; fits && g < grams; g++) {
        fits = columns[g] >= 0 && columns[g] < width;
    }
    return fits;
}

/* Searches in all rows, at most: some dozens of seconds. */
#define SEARCHES_MAX 1e9

static bool are_too_many(const struct ifd_infer *in, const struct ifd_ngrams_attrs *attrs)
{
    const struct ifd_shape *x = &in->input[X].desc->shape;
    const double size = (double)x->dim[1], distances = (double)attrs->skips + 1;
    return (double)x->dim[0] * size * (distances < size ? distances : size) *
               (double)in->input[STARTS].desc->shape.dim[0] >
           SEARCHES_MAX;
}

static enum ifd_code ngrams_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_ngrams;
    const struct ifd_ngrams_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, GRAMS, IFD_BIT(in->input[X].desc->dtype), err);
    }
    for (uint32_t i = STARTS; code == IFD_OK && i <= COLUMNS; i++) {
        code = ifd_infer_dtype(def, in, i, IFD_BIT(IFD_S64), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, WEIGHTS, IFD_BIT(IFD_F32), err);
    }
    for (uint32_t i = GRAMS; code == IFD_OK && i <= WEIGHTS; i++) {
        code = ifd_infer_rank(def, in, i, 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, X, 2, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    if (code == IFD_OK &&
        (in->input[STARTS].desc->shape.dim[0] > LENGTHS_MAX || !are_lists_sound(in, attrs->width) ||
         in->input[WEIGHTS].desc->shape.dim[0] != in->input[COLUMNS].desc->shape.dim[0])) {
        return refuse_lists(in, err);
    }
    if (code == IFD_OK && are_too_many(in, attrs)) {
        return ifd_fail(err, IFD_TOO_LARGE, "ngrams: elements %s, %lld lengths, up to %lld apart",
                        ifd_shape_text(&in->input[X].desc->shape).s,
                        (long long)in->input[STARTS].desc->shape.dim[0],
                        (long long)attrs->skips + 1);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape shape = {.rank = 2,
                                    .dim = {in->input[X].desc->shape.dim[0], attrs->width}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

struct search {
    const struct ifd_ngrams_attrs *attrs;
    bool is_text;
    const void *row, *grams;
    int64_t size, length;
};

/* A gram and the elements of the row at a place, so far apart. */
static int order(const struct search *s, int64_t gram, int64_t place, int64_t distance)
{
    for (int64_t j = 0; j < s->length; j++) {
        const int64_t g = gram + j, x = place + j * distance;
        int found = 0;
        if (s->is_text) {
            found = ifd_text_order(((const struct ifd_str *)s->grams)[g],
                                   ((const struct ifd_str *)s->row)[x]);
        } else {
            const int64_t a = ((const int64_t *)s->grams)[g], b = ((const int64_t *)s->row)[x];
            found = a < b ? -1 : a > b;
        }
        if (found != 0) {
            return found;
        }
    }
    return 0;
}

/* The number of the gram among count ones from begin on; -1: none. */
static int64_t find(const struct search *s, int64_t begin, int64_t count, int64_t place,
                    int64_t distance)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int found = order(s, begin + middle * s->length, place, distance);
        if (found == 0) {
            return middle;
        }
        low = found < 0 ? middle + 1 : low;
        high = found < 0 ? high : middle;
    }
    return -1;
}

/* Adds up the grams of one length, of which there are count. */
static void count_length(const struct search *s, int64_t begin, int64_t count,
                         const int64_t *column, const float *weight, float *y)
{
    const int64_t distances = s->length > 1 ? (int64_t)s->attrs->skips + 1 : 1;
    for (int64_t d = 1; d <= distances && (s->length - 1) * d < s->size; d++) {
        for (int64_t place = 0; place + (s->length - 1) * d < s->size; place++) {
            const int64_t g = find(s, begin, count, place, d);
            if (g >= 0) {
                float *to = &y[column[g]];
                *to = s->attrs->is_flag ? weight[g] : *to + weight[g];
            }
        }
    }
}

static enum ifd_code ngrams_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_ngrams_attrs *attrs = call->attrs;
    const int64_t rows = call->in[X]->shape.dim[0], size = call->in[X]->shape.dim[1];
    const int64_t lengths = call->in[STARTS]->shape.dim[0];
    const int64_t total = call->in[GRAMS]->shape.dim[0];
    const size_t bytes = ifd_dtype_bytes(call->in[X]->dtype);
    struct search s = {.attrs = attrs,
                       .is_text = call->in[X]->dtype == IFD_STR,
                       .grams = call->input[GRAMS],
                       .size = size};
    float *y = call->output[0];
    if (rows > 0 && attrs->width > 0) {
        memset(y, 0, (size_t)rows * (size_t)attrs->width * sizeof(*y));
    }
    for (int64_t r = 0; r < rows; r++, y += attrs->width) {
        int64_t first = 0;
        s.row = size > 0 ? (const uint8_t *)call->input[X] + (size_t)(r * size) * bytes : NULL;
        for (s.length = 1; s.length <= lengths; s.length++) {
            int64_t begin = 0, end = 0;
            elements_of(call->input[STARTS], lengths, total, s.length, &begin, &end);
            const int64_t count = (end - begin) / s.length;
            if (s.length >= attrs->min_length && s.length <= attrs->max_length) {
                count_length(&s, begin, count, (const int64_t *)call->input[COLUMNS] + first,
                             (const float *)call->input[WEIGHTS] + first, y);
            }
            first += count;
        }
    }
    return IFD_OK;
}

#define FIELD(name) offsetof(struct ifd_ngrams_attrs, name)
static const struct ifd_attr_def ngrams_attrs[] = {
    {"width", IFD_ATTR_INT, FIELD(width), 0, 0, INT32_MAX},
    {"min_length", IFD_ATTR_INT, FIELD(min_length), 1, 1, INT32_MAX},
    {"max_length", IFD_ATTR_INT, FIELD(max_length), 1, 1, INT32_MAX},
    {"skips", IFD_ATTR_INT, FIELD(skips), 0, 0, INT32_MAX},
    {"is_flag", IFD_ATTR_BOOL, FIELD(is_flag), 0, 0, 1},
};

const struct ifd_op_def ifd_op_ngrams = {
    .name = "ngrams",
    .min_inputs = 5,
    .max_inputs = 5,
    .outputs = 1,
    .attrs = ngrams_attrs,
    .attr_count = sizeof(ngrams_attrs) / sizeof(ngrams_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_ngrams_attrs),
    .dtypes = IFD_BIT(IFD_STR) | IFD_BIT(IFD_S64),
    .batch = IFD_BATCH_SAMPLE,
    .shape_inputs = 1u << STARTS | 1u << COLUMNS,
    .infer = ngrams_infer,
    .ref = ngrams_ref,
};
