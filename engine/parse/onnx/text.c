/* TfIdfVectorizer: how often each n-gram of a list occurs in a row of numbers or texts. */
#include "engine/ir/shape.h"
#include "engine/ops/text.h"
#include "engine/parse/onnx/onnx_impl.h"

#include <stdlib.h>

struct vectors {
    struct ifd_builder *b;
    const struct ifd_onnx_attr *pool, *starts, *columns, *weights;
    bool is_text;
    uint32_t elements; /* of the pool */
};

/* One gram of the pool. */
struct gram {
    const struct vectors *v;
    uint32_t first, length; /* among the elements of the pool */
    uint32_t number;
};

static int compare_elements(const struct vectors *v, uint32_t i, uint32_t k)
{
    if (v->is_text) {
        return ifd_text_order(v->pool->strings[i], v->pool->strings[k]);
    }
    const int64_t a = v->pool->ints[i], b = v->pool->ints[k];
    return a < b ? -1 : a > b;
}

/* Within a length by content, the lengths in order. */
static int compare_grams(const void *a, const void *b)
{
    const struct gram *x = a, *y = b;
    int found = x->length < y->length ? -1 : x->length > y->length;
    for (uint32_t j = 0; found == 0 && j < x->length; j++) {
        found = compare_elements(x->v, x->first + j, y->first + j);
    }
    return found != 0 ? found : x->number < y->number ? -1 : x->number > y->number;
}

static bool are_lists_sound(const struct vectors *v)
{
    if (!v->pool || !v->starts || !v->columns || v->columns->int_count == 0 ||
        (v->weights && v->weights->float_count != v->columns->int_count)) {
        return false;
    }
    int64_t before = 0;
    uint64_t grams = 0;
    for (uint32_t n = 0; n < v->starts->int_count; n++) {
        const int64_t first = v->starts->ints[n];
        const int64_t end =
            n + 1 < v->starts->int_count ? v->starts->ints[n + 1] : (int64_t)v->elements;
        if (first < before || end < first || end > (int64_t)v->elements ||
            (end - first) % (n + 1) != 0 || (n == 0 && first != 0)) {
            return false;
        }
        grams += (uint64_t)(end - first) / (n + 1);
        before = first;
    }
    for (uint32_t i = 0; i < v->columns->int_count; i++) {
        if (v->columns->ints[i] < 0 || v->columns->ints[i] >= INT32_MAX) {
            return false;
        }
    }
    return grams == v->columns->int_count;
}

static void *take(struct ifd_builder *b, size_t count, size_t size)
{
    void *memory = ifd_arena_take_array(b->graph->arena, count, size);
    if (!memory && b->code == IFD_OK) {
        b->code = ifd_arena_fail(b->graph->arena, count * size, b->err);
    }
    return memory;
}

/* The grams of the pool in order. */
static struct gram *sort_grams(const struct vectors *v)
{
    const uint32_t count = v->columns->int_count;
    struct gram *gram = take(v->b, count, sizeof(*gram));
    uint32_t number = 0;
    for (uint32_t n = 0; gram && n < v->starts->int_count; n++) {
        const uint32_t end =
            n + 1 < v->starts->int_count ? (uint32_t)v->starts->ints[n + 1] : v->elements;
        for (uint32_t at = (uint32_t)v->starts->ints[n]; at < end; at += n + 1) {
            gram[number] = (struct gram){.v = v, .first = at, .length = n + 1, .number = number};
            number++;
        }
    }
    if (gram) {
        qsort(gram, count, sizeof(*gram), compare_grams);
    }
    return gram;
}

/* The lists of the operator: grams, starts, columns, weights. */
static void write_lists(const struct vectors *v, const struct gram *gram, uint32_t ret[4])
{
    struct ifd_builder *b = v->b;
    const uint32_t count = v->columns->int_count;
    int64_t *column = take(b, count, sizeof(*column));
    float *weight = take(b, count, sizeof(*weight));
    struct ifd_str *text = v->is_text ? take(b, v->elements, sizeof(*text)) : NULL;
    int64_t *number = v->is_text ? NULL : take(b, v->elements, sizeof(*number));
    uint32_t at = 0;
    for (uint32_t g = 0; b->code == IFD_OK && g < count; g++) {
        column[g] = v->columns->ints[gram[g].number];
        weight[g] = v->weights ? v->weights->floats[gram[g].number] : 1.0F;
        for (uint32_t j = 0; j < gram[g].length; j++, at++) {
            if (v->is_text) {
                text[at] = v->pool->strings[gram[g].first + j];
            } else {
                number[at] = v->pool->ints[gram[g].first + j];
            }
        }
    }
    if (b->code != IFD_OK) {
        return;
    }
    const struct ifd_shape shape = {.rank = 1, .dim = {v->elements}};
    ret[0] = v->is_text ? ifd_onnx_texts(b, text, &shape) : ifd_build_list(b, number, v->elements);
    ret[1] = ifd_build_list(b, v->starts->ints, v->starts->int_count);
    ret[2] = ifd_build_list(b, column, count);
    ret[3] = ifd_onnx_floats(b, weight, (const int64_t[]){count}, 1);
}

static struct ifd_ngrams_attrs attrs_of(struct ifd_onnx_call *call, const struct vectors *v)
{
    const bool is_idf = ifd_onnx_text_is(call, "mode", "IDF", false);
    struct ifd_ngrams_attrs attrs = {.min_length = ifd_onnx_int32(call, "min_gram_length", 1),
                                     .max_length = ifd_onnx_int32(call, "max_gram_length", 1),
                                     .skips = ifd_onnx_int32(call, "max_skip_count", 0),
                                     .is_flag = is_idf};
    for (uint32_t i = 0; i < v->columns->int_count; i++) {
        const int32_t column = (int32_t)v->columns->ints[i];
        attrs.width = column >= attrs.width ? column + 1 : attrs.width;
    }
    return attrs;
}

void ifd_onnx_tf_idf(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = *ifd_build_desc(b, call->input[0]);
    const bool is_text = desc.dtype == IFD_STR;
    struct vectors v = {.b = b,
                        .is_text = is_text,
                        .pool = ifd_onnx_attr(call, is_text ? "pool_strings" : "pool_int64s"),
                        .starts = ifd_onnx_attr(call, "ngram_counts"),
                        .columns = ifd_onnx_attr(call, "ngram_indexes"),
                        .weights = ifd_onnx_attr(call, "weights")};
    v.elements = !v.pool ? 0 : is_text ? v.pool->string_count : v.pool->int_count;
    if (!are_lists_sound(&v) || desc.shape.rank < 1 || desc.shape.rank > 2) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "shape %s, or lists of n-grams that do not fit each other or the type",
                       ifd_shape_text(&desc.shape).s);
        return;
    }
    if (ifd_onnx_text_is(call, "mode", "TF", false)) {
        v.weights = NULL;
    }
    const int64_t rows = desc.shape.rank == 2 ? desc.shape.dim[0] : 1;
    const int64_t dim[2] = {rows, desc.shape.dim[desc.shape.rank - 1]};
    const uint32_t x = is_text ? call->input[0] : ifd_build_cast(b, call->input[0], IFD_S64);
    const struct ifd_ngrams_attrs attrs = attrs_of(call, &v);
    const struct ifd_desc output = {.dtype = IFD_F32};
    const struct gram *gram = sort_grams(&v);
    uint32_t input[5] = {ifd_build_reshape(b, x, dim, 2)};
    if (gram) {
        write_lists(&v, gram, input + 1);
        const uint32_t y = ifd_build_node(b, IFD_OP_NGRAMS, input, 5, &output, &attrs);
        const int64_t width = attrs.width;
        call->output[0] = desc.shape.rank == 2 ? y : ifd_build_reshape(b, y, &width, 1);
    }
}
