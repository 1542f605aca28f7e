/* Constants of a file: content in place where possible, numbers of 2 and 4 bits as bytes or floats,
 * sparse tensors made dense. */
#include "engine/parse/tflite/tflite_build.h"

#include <string.h>

#include "engine/ir/shape.h"

enum ifd_code ifd_tflite_fail_overlap(const struct ifd_tflite_build *b)
{
    return ifd_fail(b->err, IFD_CORRUPT, "buffers overlap: constants add up to more than the file");
}

enum ifd_code ifd_tflite_align_content(struct ifd_tflite_build *b, uint32_t buffer, size_t element,
                                       struct ifd_bytes content, struct ifd_bytes *ret)
{
    size_t after = (size_t)(b->file.data + b->file.size - (content.data + content.size));
    if (b->aligned[buffer].data ||
        ((uintptr_t)content.data % element == 0 && after >= IFD_TENSOR_PAD)) {
        *ret = b->aligned[buffer].data ? b->aligned[buffer] : content;
        return IFD_OK;
    }
    if (content.size > b->copy_bytes_left) {
        return ifd_tflite_fail_overlap(b);
    }
    uint8_t *copy = ifd_arena_take_tensor(b->graph->arena, content.size);
    if (!copy) {
        return ifd_arena_fail(b->graph->arena, content.size, b->err);
    }
    memcpy(copy, content.data, content.size);
    b->copy_bytes_left -= content.size;
    b->aligned[buffer] = (struct ifd_bytes){.data = copy, .size = content.size};
    *ret = b->aligned[buffer];
    return IFD_OK;
}

/* ---- sparse tensors ---- */

#define LEVELS_MAX (2 * IFD_MAX_RANK)

/* A walk over a sparse tensor: a level for each dimension in traversal order. */
struct sparse {
    const struct ifd_tflite_sparsity *as;
    struct ifd_shape shape;
    int64_t place[LEVELS_MAX]; /* per level: elements of the dense tensor per step */
    int64_t limit[LEVELS_MAX]; /* per level: steps */
    struct ifd_bytes content;
    size_t element, used; /* bytes of an element; elements that were placed */
    size_t visits_left;
    uint8_t *dense;
};

/* Numbers of the file may be misaligned. */
static int64_t load(const struct ifd_tflite_indexes *indexes, uint32_t i)
{
    int32_t wide = 0;
    uint16_t narrow = 0;
    if (indexes->width == sizeof(wide)) {
        memcpy(&wide, indexes->data + i * sizeof(wide), sizeof(wide));
        return wide;
    }
    if (indexes->width == sizeof(narrow)) {
        memcpy(&narrow, indexes->data + i * sizeof(narrow), sizeof(narrow));
        return narrow;
    }
    return indexes->data[i];
}

static enum ifd_code fail_sparse(const struct ifd_tflite_build *b,
                                 const struct ifd_tflite_tensor *t, const char *why)
{
    return ifd_fail(b->err, IFD_CORRUPT, "sparse tensor " NAME_FORMAT ": %s", t->name, why);
}

/* A block dimension divides one of the tensor's, and is dense. */
static bool find_blocks(const struct sparse *s, int64_t *ret_block)
{
    const struct ifd_tflite_sparsity *as = s->as;
    for (uint32_t d = 0; d < s->shape.rank; d++) {
        ret_block[d] = 1;
    }
    for (uint32_t level = 0; level < as->dimension_count; level++) {
        const int64_t at = as->traversal_order.value[level];
        if (at < 0 || at >= (int64_t)as->dimension_count) {
            return false;
        }
        if (at < (int64_t)s->shape.rank) {
            continue;
        }
        const int32_t divided = as->block_map.value[at - s->shape.rank];
        const int64_t size = as->dimension[level].dense_size;
        if (divided < 0 || (uint32_t)divided >= s->shape.rank || as->dimension[level].is_sparse ||
            ret_block[divided] != 1 || size < 1 || s->shape.dim[divided] % size != 0) {
            return false;
        }
        ret_block[divided] = size;
    }
    return true;
}

/* Places and limits of all levels. Each dimension is traversed once. */
static bool lay_out_levels(struct sparse *s)
{
    const struct ifd_tflite_sparsity *as = s->as;
    int64_t block[IFD_MAX_RANK], stride[IFD_MAX_RANK];
    uint32_t seen = 0;
    if (as->dimension_count > LEVELS_MAX || as->traversal_order.count != as->dimension_count ||
        as->dimension_count != s->shape.rank + as->block_map.count || !find_blocks(s, block)) {
        return false;
    }
    for (uint32_t d = s->shape.rank; d > 0; d--) {
        stride[d - 1] = d == s->shape.rank ? 1 : stride[d] * s->shape.dim[d];
    }
    for (uint32_t level = 0; level < as->dimension_count; level++) {
        const uint32_t at = (uint32_t)as->traversal_order.value[level];
        const bool is_block = at >= s->shape.rank;
        const uint32_t d = is_block ? (uint32_t)as->block_map.value[at - s->shape.rank] : at;
        const struct ifd_tflite_dimension *dimension = &as->dimension[level];
        s->place[level] = is_block ? stride[d] : stride[d] * block[d];
        s->limit[level] = is_block ? block[d] : s->shape.dim[d] / block[d];
        if ((seen & IFD_BIT(at)) != 0 ||
            (!dimension->is_sparse && dimension->dense_size != s->limit[level])) {
            return false;
        }
        seen |= IFD_BIT(at);
    }
    return true;
}

/* Numbers first … last-1 of a level belong to entry parent of the level before. */
static bool find_range(const struct sparse *s, uint32_t level, int64_t parent, int64_t *ret_first,
                       int64_t *ret_last)
{
    const struct ifd_tflite_dimension *dimension = &s->as->dimension[level];
    *ret_first = parent * s->limit[level];
    *ret_last = *ret_first + s->limit[level];
    if (!dimension->is_sparse) {
        return true;
    }
    if (parent + 1 >= (int64_t)dimension->segments.count) {
        return false;
    }
    *ret_first = load(&dimension->segments, (uint32_t)parent);
    *ret_last = load(&dimension->segments, (uint32_t)parent + 1);
    return *ret_first >= 0 && *ret_first <= *ret_last &&
           *ret_last <= (int64_t)dimension->indices.count;
}

/* Copies all elements below entry parent of the level before, whose first lies at. The depth is
 * that of the levels. */
static bool place(struct sparse *s, uint32_t level, int64_t parent, int64_t at)
{
    int64_t first = 0, last = 0;
    if (level == s->as->dimension_count) {
        if (s->used == s->content.size / s->element) {
            return false;
        }
        memcpy(s->dense + (size_t)at * s->element, s->content.data + s->used * s->element,
               s->element);
        s->used++;
        return true;
    }
    if (!find_range(s, level, parent, &first, &last) || (uint64_t)(last - first) > s->visits_left) {
        return false;
    }
    s->visits_left -= (size_t)(last - first);
    const struct ifd_tflite_dimension *dimension = &s->as->dimension[level];
    for (int64_t i = first; i < last; i++) {
        const int64_t index =
            dimension->is_sparse ? load(&dimension->indices, (uint32_t)i) : i - first;
        if (index < 0 || index >= s->limit[level] ||
            !place(s, level + 1, i, at + index * s->place[level])) {
            return false;
        }
    }
    return true;
}

static enum ifd_code make_dense(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                const struct ifd_desc *desc, struct ifd_bytes *content)
{
    struct ifd_arena *arena = b->graph->arena;
    struct sparse s = {.as = t->sparsity,
                       .shape = desc->shape,
                       .content = *content,
                       .element = ifd_dtype_bytes(desc->dtype)};
    size_t bytes = 0;
    if (ifd_tflite_narrow_bits(t->type) > 0 || t->has_blocks) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "sparse tensor " NAME_FORMAT " of numbers of less than 8 bits", t->name);
    }
    if (!lay_out_levels(&s)) {
        return fail_sparse(b, t, "its dimensions do not fit its shape");
    }
    if (!ifd_desc_bytes(desc, &bytes) || !ifd_desc_fits(desc, b->options->limits->tensor_bytes) ||
        !ifd_size_mul(bytes / s.element + 1, s.as->dimension_count + (size_t)1, &s.visits_left)) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "sparse tensor " NAME_FORMAT " of %s", t->name,
                        ifd_shape_text(&desc->shape).s);
    }
    s.dense = ifd_arena_take_tensor(arena, bytes);
    if (!s.dense) {
        return ifd_arena_fail(arena, bytes, b->err);
    }
    if (bytes > 0 && (!place(&s, 0, 0, 0) || s.used * s.element != content->size)) {
        return fail_sparse(b, t, "its indices do not fit its shape and its content");
    }
    *content = (struct ifd_bytes){.data = s.dense, .size = bytes};
    return IFD_OK;
}

/* ---- texts ---- */

static uint32_t number_at(struct ifd_bytes content, size_t i)
{
    uint32_t number = 0;
    memcpy(&number, content.data + i * sizeof(number), sizeof(number));
    return number;
}

/* The texts of a buffer, whose places are checked. */
static enum ifd_code copy_texts(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                struct ifd_bytes content, size_t count)
{
    struct ifd_arena *arena = b->graph->arena;
    struct ifd_str *text = ifd_arena_take_tensor(arena, count * sizeof(*text));
    if (!text) {
        return ifd_arena_fail(arena, count * sizeof(*text), b->err);
    }
    for (size_t i = 0; i < count; i++) {
        const size_t begin = number_at(content, 1 + i), end = number_at(content, 2 + i);
        if (begin > end || end > content.size) {
            return ifd_fail(b->err, IFD_CORRUPT, "tensor " NAME_FORMAT ": text %zu lies outside",
                            t->name, i);
        }
        if (end - begin > b->copy_bytes_left) {
            return ifd_tflite_fail_overlap(b);
        }
        b->copy_bytes_left -= end - begin;
        text[i].data = ifd_arena_text(arena, (const char *)content.data + begin, end - begin);
        text[i].size = end - begin;
        if (!text[i].data) {
            return ifd_arena_fail(arena, end - begin, b->err);
        }
    }
    b->texts[t->buffer] =
        (struct ifd_bytes){.data = (const uint8_t *)text, .size = count * sizeof(*text)};
    return IFD_OK;
}

/* Their count, count + 1 places in the content, the texts. The file may be gone when a model runs:
 * they are copied, once per buffer. */
static enum ifd_code take_texts(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                const struct ifd_desc *desc, struct ifd_bytes *content)
{
    size_t count = 0;
    enum ifd_code code = IFD_OK;
    const size_t numbers = content->size / sizeof(uint32_t);
    if (!ifd_shape_elements(&desc->shape, &count) || numbers < 2 || count > numbers - 2 ||
        number_at(*content, 0) != count) {
        return ifd_fail(b->err, IFD_CORRUPT, "tensor " NAME_FORMAT " is no list of %zu texts",
                        t->name, count);
    }
    if (!b->texts[t->buffer].data) {
        if (count > b->copy_bytes_left / sizeof(uint32_t)) {
            return ifd_tflite_fail_overlap(b);
        }
        b->copy_bytes_left -= count * sizeof(uint32_t);
        code = copy_texts(b, t, *content, count);
    }
    *content = b->texts[t->buffer];
    return code;
}

/* ---- all ---- */

/* Content of a constant as the graph holds it. */
static enum ifd_code take_content(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                  const struct ifd_desc *desc, struct ifd_bytes *content)
{
    if (desc->dtype == IFD_STR) {
        return take_texts(b, t, desc, content);
    }
    if (t->sparsity) {
        return make_dense(b, t, desc, content);
    }
    if (ifd_tflite_narrow_bits(t->type) > 0 || t->has_blocks) {
        return ifd_tflite_widen(b, t, desc, content);
    }
    return ifd_tflite_align_content(b, t->buffer, ifd_dtype_bytes(desc->dtype), *content, content);
}

/* A state that nothing has written: zeros. */
static enum ifd_code take_zeros(struct ifd_tflite_build *b, const struct ifd_desc *desc,
                                struct ifd_bytes *content)
{
    size_t bytes = 0;
    if (!ifd_desc_bytes(desc, &bytes) || !ifd_desc_fits(desc, b->options->limits->tensor_bytes)) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "a state of %s", ifd_shape_text(&desc->shape).s);
    }
    uint8_t *zeros = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!zeros) {
        return ifd_arena_fail(b->graph->arena, bytes, b->err);
    }
    if (desc->dtype == IFD_S8 && desc->quant.count == 1) {
        memset(zeros, desc->quant.zero_point[0], bytes);
    }
    *content = (struct ifd_bytes){.data = zeros, .size = bytes};
    return IFD_OK;
}

bool ifd_tflite_has_content(const struct ifd_tflite_build *b, uint32_t tensor,
                            struct ifd_bytes *ret)
{
    const uint32_t buffer = b->g->tensor[tensor].buffer;
    return buffer < b->model->buffer_count &&
           ifd_tflite_content(&b->model->buffer[buffer], b->file, ret) && ret->size > 0;
}

/* check.c checked that the tensor has content, or no elements, or is a variable. */
enum ifd_code ifd_tflite_add_constant(struct ifd_tflite_build *b, uint32_t tensor, uint32_t *ret)
{
    const struct ifd_tflite_tensor *t = &b->g->tensor[tensor];
    struct ifd_bytes content = {0};
    enum ifd_code code = ifd_tflite_add_value(b, tensor, ret);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *desc = &b->graph->value[*ret].desc;
    if (ifd_tflite_has_content(b, tensor, &content)) {
        code = take_content(b, t, desc, &content);
    } else if (t->is_variable) {
        code = take_zeros(b, desc, &content);
    }
    return code == IFD_OK ? ifd_graph_set_constant(b->graph, *ret, content, IFD_TENSOR_PAD, b->err)
                          : code;
}
