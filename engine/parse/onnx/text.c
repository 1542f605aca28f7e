/* TfIdfVectorizer: how often each n-gram of a list occurs in a row of numbers. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

struct vectors {
    struct ifd_onnx_call *call;
    struct ifd_builder *b;
    uint32_t x; /* s64 [rows, size] */
    int64_t rows, size;
    const struct ifd_onnx_attr *pool, *starts, *columns, *weights;
    int64_t *part; /* as long as the pool */
};

/* Number j of each n-gram of a length, of which there are count from first on. */
static uint32_t pool_column(const struct vectors *v, int64_t first, int64_t length, int64_t count,
                            int64_t j)
{
    for (int64_t g = 0; g < count; g++) {
        v->part[g] = v->pool->ints[first + g * length + j];
    }
    return ifd_build_list(v->b, v->part, (uint32_t)count);
}

/* [rows, count]: how often each occurs, with a distance between its numbers; IFD_NONE: never. */
static uint32_t count_at(const struct vectors *v, int64_t first, int64_t length, int64_t count,
                         int64_t distance)
{
    struct ifd_builder *b = v->b;
    const int64_t places = v->size - (length - 1) * distance;
    const struct ifd_ints axis = {.count = 1, .value = {1}};
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    uint32_t all = IFD_NONE;
    for (int64_t j = 0; places > 0 && j < length; j++) {
        const uint32_t cut = ifd_build_cut(b, v->x, 1, j * distance, places);
        const uint32_t column = ifd_build_reshape(b, cut, (const int64_t[]){v->rows, places, 1}, 3);
        const uint32_t is_same =
            ifd_onnx_compared(b, IFD_OP_EQUAL, column, pool_column(v, first, length, count, j));
        all = all == IFD_NONE ? is_same
                              : ifd_build_node(b, IFD_OP_LOGICAL_AND,
                                               (const uint32_t[]){all, is_same}, 2, &flag, NULL);
    }
    return all == IFD_NONE ? IFD_NONE
                           : ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_build_cast(b, all, IFD_F32),
                                              &axis, false);
}

/* The same for all distances together. n-grams of one number have none. */
static uint32_t count_all(const struct vectors *v, int64_t first, int64_t length, int64_t count)
{
    const int64_t skips = ifd_onnx_int(v->call, "max_skip_count", 0);
    uint32_t sum = IFD_NONE;
    for (int64_t s = 0; v->b->code == IFD_OK && s <= (length > 1 ? skips : 0); s++) {
        if ((length - 1) * (s + 1) >= v->size) {
            break;
        }
        const uint32_t part = count_at(v, first, length, count, s + 1);
        sum = sum == IFD_NONE    ? part
              : part == IFD_NONE ? sum
                                 : ifd_build_binary(v->b, IFD_OP_ADD, sum, part);
    }
    if (sum != IFD_NONE || v->b->code != IFD_OK) {
        return sum;
    }
    const struct ifd_broadcast_to_attrs attrs = {.shape = {.count = 2, .value = {v->rows, count}}};
    const uint32_t zero = ifd_build_number(v->b, IFD_F32, 0);
    return ifd_build_node(v->b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &attrs);
}

static uint32_t weigh(const struct vectors *v, uint32_t count, uint32_t first, uint32_t size)
{
    struct ifd_builder *b = v->b;
    const struct ifd_desc list = {.dtype = IFD_F32, .shape = {.rank = 1, .dim = {size}}};
    const bool is_idf = ifd_onnx_text_is(v->call, "mode", "IDF", false);
    const bool is_tf = ifd_onnx_text_is(v->call, "mode", "TF", false);
    if (is_idf) {
        const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
        count = ifd_build_cast(b, ifd_onnx_compared(b, IFD_OP_GREATER, count, zero), IFD_F32);
    }
    if (is_tf || !v->weights) {
        return count;
    }
    const uint32_t weights =
        ifd_build_constant(b, &list,
                           (struct ifd_bytes){.data = (const uint8_t *)(v->weights->floats + first),
                                              .size = size * sizeof(float)},
                           0);
    return ifd_build_binary(b, IFD_OP_MUL, count, weights);
}

/* The columns of [rows, n] at other places of a wider result; what has none stays 0. */
static uint32_t spread(const struct vectors *v, uint32_t count)
{
    struct ifd_builder *b = v->b;
    int64_t width = 0;
    for (uint32_t i = 0; i < v->columns->int_count; i++) {
        width = v->columns->ints[i] >= width ? v->columns->ints[i] + 1 : width;
    }
    const struct ifd_broadcast_to_attrs whole = {.shape = {.count = 2, .value = {width, v->rows}}};
    const struct ifd_scatter_rows_attrs adds = {.mode = IFD_SCATTER_ADD};
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    const uint32_t input[3] = {ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &whole),
                               ifd_build_list(b, v->columns->ints, v->columns->int_count),
                               ifd_build_swap(b, count, 0, 1)};
    return ifd_build_swap(b, ifd_build_node(b, IFD_OP_SCATTER_ROWS, input, 3, NULL, &adds), 0, 1);
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
            n + 1 < v->starts->int_count ? v->starts->ints[n + 1] : (int64_t)v->pool->int_count;
        if (first < before || end < first || end > (int64_t)v->pool->int_count ||
            (end - first) % (n + 1) != 0) {
            return false;
        }
        grams += (uint64_t)(end - first) / (n + 1);
        before = first;
    }
    for (uint32_t i = 0; i < v->columns->int_count; i++) {
        if (v->columns->ints[i] < 0 || v->columns->ints[i] > INT32_MAX) {
            return false;
        }
    }
    return grams == v->columns->int_count;
}

/* Lengths below min_gram_length have places in the lists, too, but do not count. */
static uint32_t count_lengths(struct vectors *v)
{
    const struct ifd_axis_attrs along = {.axis = 1};
    const int64_t least = ifd_onnx_int(v->call, "min_gram_length", 1);
    const int64_t most = ifd_onnx_int(v->call, "max_gram_length", 1);
    uint32_t part[IFD_ONNX_GRAM_MAX], parts = 0, gram = 0;
    for (uint32_t n = 0; n < v->starts->int_count && n < IFD_ONNX_GRAM_MAX; n++) {
        const int64_t first = v->starts->ints[n], length = (int64_t)n + 1;
        const int64_t end =
            n + 1 < v->starts->int_count ? v->starts->ints[n + 1] : (int64_t)v->pool->int_count;
        const int64_t count = (end - first) / length;
        if (count > 0) {
            const bool counts = length >= least && length <= most;
            const uint32_t found = count_all(v, first, length, count);
            part[parts++] = weigh(v, counts ? found : ifd_build_with(v->b, IFD_OP_MUL, found, 0),
                                  gram, (uint32_t)count);
            gram += (uint32_t)count;
        }
    }
    return parts == 1 ? part[0] : ifd_build_node(v->b, IFD_OP_CONCAT, part, parts, NULL, &along);
}

void ifd_onnx_tf_idf(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = ifd_build_desc(b, call->input[0])->shape;
    struct vectors v = {.call = call,
                        .b = b,
                        .pool = ifd_onnx_attr(call, "pool_int64s"),
                        .starts = ifd_onnx_attr(call, "ngram_counts"),
                        .columns = ifd_onnx_attr(call, "ngram_indexes"),
                        .weights = ifd_onnx_attr(call, "weights")};
    if (!are_lists_sound(&v) || shape.rank < 1 || shape.rank > 2 ||
        v.starts->int_count > IFD_ONNX_GRAM_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "shape %s, or lists of n-grams that are text, do not fit each other, or are "
                       "longer than %d",
                       ifd_shape_text(&shape).s, IFD_ONNX_GRAM_MAX);
        return;
    }
    v.rows = shape.rank == 2 ? shape.dim[0] : 1;
    v.size = shape.dim[shape.rank - 1];
    v.x = ifd_build_reshape(b, ifd_build_cast(b, call->input[0], IFD_S64),
                            (const int64_t[]){v.rows, v.size}, 2);
    v.part = ifd_arena_take_array(b->graph->arena, v.pool->int_count, sizeof(*v.part));
    if (!v.part) {
        b->code = ifd_arena_fail(b->graph->arena, v.pool->int_count * sizeof(*v.part), b->err);
        return;
    }
    const uint32_t y = spread(&v, count_lengths(&v));
    const int64_t width = ifd_build_desc(b, y)->shape.dim[1];
    call->output[0] = shape.rank == 2 ? y : ifd_build_reshape(b, y, &width, 1);
}
