/* Cuts by the data: values that go from one reading to the next. */
#include "engine/parse/cut.h"

#include <string.h>

#include "engine/ir/shape.h"

/* ---- the values behind a cut ---- */

enum ifd_code ifd_cut_begin(struct ifd_cutter *cutter, struct ifd_arena *scratch, size_t most,
                            uint32_t wanted, struct ifd_err *err)
{
    struct ifd_graph *graph = cutter->graph;
    cutter->cut->value = ifd_arena_take_array(scratch, most, sizeof(*cutter->cut->value));
    cutter->output = ifd_arena_take_array(scratch, most + 1, sizeof(*cutter->output));
    cutter->output_of =
        ifd_arena_take_array(scratch, graph->value_count, sizeof(*cutter->output_of));
    if (!cutter->cut->value || !cutter->output || !cutter->output_of) {
        return ifd_arena_fail(scratch, most * sizeof(*cutter->cut->value), err);
    }
    memset(cutter->output_of, 0xff, graph->value_count * sizeof(*cutter->output_of));
    cutter->output[cutter->output_count++] = wanted;
    cutter->output_of[wanted] = 0;
    return IFD_OK;
}

static uint32_t input_number(const struct ifd_cutter *cutter, uint32_t value)
{
    uint32_t i = 0;
    while (i < cutter->input_count && cutter->input[i] != value) {
        i++;
    }
    return i;
}

struct ifd_cut_value *ifd_cut_add(struct ifd_cutter *cutter, uint64_t id, uint32_t value)
{
    const struct ifd_value *v = &cutter->graph->value[value];
    struct ifd_cut_value *to = &cutter->cut->value[cutter->cut->value_count++];
    *to = (struct ifd_cut_value){.id = id, .axis = IFD_NONE};
    if (v->is_constant) {
        to->source = IFD_CUT_CONSTANT;
        to->desc = v->desc;
        to->data = v->data;
    } else if (v->producer == IFD_NONE) {
        to->source = IFD_CUT_INPUT;
        to->index = input_number(cutter, value);
    } else {
        if (cutter->output_of[value] == IFD_NONE) {
            cutter->output_of[value] = cutter->output_count;
            cutter->output[cutter->output_count++] = value;
        }
        to->source = IFD_CUT_OUTPUT;
        to->index = cutter->output_of[value];
    }
    return to;
}

enum ifd_code ifd_cut_end(const struct ifd_cutter *cutter, struct ifd_err *err)
{
    const struct ifd_cut_value *from = cutter->cut->value;
    const uint32_t count = cutter->cut->value_count;
    struct ifd_arena *arena = cutter->graph->arena;
    struct ifd_cut_value *value = ifd_arena_take_array(arena, count, sizeof(*value));
    if (!value) {
        return ifd_arena_fail(arena, count * sizeof(*value), err);
    }
    if (count > 0) {
        memcpy(value, from, count * sizeof(*value));
    }
    cutter->cut->value = value;
    return ifd_graph_set_io(cutter->graph, cutter->input, cutter->input_count, cutter->output,
                            cutter->output_count, err);
}

/* ---- what is wanted ---- */

uint32_t ifd_cut_own(struct ifd_builder *b, uint32_t wanted)
{
    const struct ifd_value *v = &b->graph->value[wanted];
    if (v->producer != IFD_NONE) {
        return wanted;
    }
    const struct ifd_shape shape = v->desc.shape;
    return ifd_build_reshape(b, wanted, shape.dim, shape.rank);
}

void ifd_cut_check(struct ifd_builder *b, uint32_t wanted)
{
    size_t bytes = 0;
    if (!ifd_desc_bytes(ifd_build_desc(b, wanted), &bytes) || bytes > IFD_CUT_BYTES) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "content of %zu bytes decides a shape, limit %d for what is not constant",
                       bytes, IFD_CUT_BYTES);
    }
}

uint32_t ifd_cut_front(struct ifd_builder *b, uint32_t value, uint32_t axis, int64_t size)
{
    struct ifd_desc desc = *ifd_build_desc(b, value);
    struct ifd_bytes content = ifd_build_content(b, value);
    if (axis != IFD_NONE) {
        desc.shape.dim[axis] = size;
    }
    if (b->code == IFD_OK && !ifd_desc_bytes(&desc, &content.size)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "a result of size %lld", (long long)size);
    }
    return ifd_build_constant(b, &desc, content, IFD_TENSOR_PAD);
}

/* ---- going on ---- */

static bool copy_quant(struct ifd_arena *arena, struct ifd_quant *quant)
{
    if (quant->count == 0) {
        return true;
    }
    float *scale = ifd_arena_take_array(arena, quant->count, sizeof(*scale));
    int32_t *zero = ifd_arena_take_array(arena, quant->count, sizeof(*zero));
    if (!scale || !zero) {
        return false;
    }
    memcpy(scale, quant->scale, quant->count * sizeof(*scale));
    memcpy(zero, quant->zero_point, quant->count * sizeof(*zero));
    quant->scale = scale;
    quant->zero_point = zero;
    return true;
}

static size_t readable_after(struct ifd_bytes file, struct ifd_bytes data)
{
    const uintptr_t at = (uintptr_t)data.data, begin = (uintptr_t)file.data;
    const bool is_inside = at >= begin && at - begin <= file.size;
    return is_inside ? file.size - (at - begin) - data.size : 0;
}

bool ifd_parse_is_kept(const struct ifd_parse_kept *kept, struct ifd_bytes data,
                       size_t *ret_readable)
{
    return kept && kept->content && data.size > IFD_CUT_BYTES &&
           ifd_arena_holds(kept->content, data.data, ret_readable) && *ret_readable >= data.size;
}

/* The texts of one reading may be gone before the next one's graph is. */
static enum ifd_code copy_texts(struct ifd_arena *arena, struct ifd_bytes *texts,
                                struct ifd_err *err)
{
    struct ifd_str *to = ifd_arena_take_tensor(arena, texts->size);
    if (!to) {
        return ifd_arena_fail(arena, texts->size, err);
    }
    for (size_t i = 0; i < texts->size / sizeof(*to); i++) {
        struct ifd_str from;
        memcpy(&from, texts->data + i * sizeof(from), sizeof(from));
        to[i] = (struct ifd_str){.data = ifd_arena_text(arena, from.data, from.size),
                                 .size = from.size};
        if (!to[i].data) {
            return ifd_arena_fail(arena, from.size, err);
        }
    }
    texts->data = (const uint8_t *)to;
    return IFD_OK;
}

enum ifd_code ifd_resume_take(struct ifd_graph *graph, struct ifd_bytes file,
                              const struct ifd_parse_kept *kept, const char *name,
                              const struct ifd_resume_value *from, uint32_t *ret,
                              struct ifd_err *err)
{
    struct ifd_desc desc = from->desc;
    if (!copy_quant(graph->arena, &desc.quant)) {
        return ifd_arena_fail(graph->arena, desc.quant.count * sizeof(float), err);
    }
    struct ifd_bytes data = from->data;
    size_t room = readable_after(file, data), readable = 0;
    if (ifd_parse_is_kept(kept, data, &readable)) {
        room = readable - data.size;
    }
    enum ifd_code code = ifd_graph_add_value(graph, name, &desc, ret, err);
    if (code == IFD_OK && from->is_constant && desc.dtype == IFD_STR) {
        code = copy_texts(graph->arena, &data, err);
        room = IFD_TENSOR_PAD;
    }
    return code == IFD_OK && from->is_constant
               ? ifd_graph_set_constant(graph, *ret, data, room, err)
               : code;
}
