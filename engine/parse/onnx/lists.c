/* Sequences and optional values: they exist while the file is read, and a run sees their elements
 * only. Positions are constants, or are asked for. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/ir/trace.h"
#include "engine/parse/onnx/onnx_build.h"

#define LENGTH_MAX IFD_PARSE_INLINED_MAX

static const struct ifd_onnx_list nothing = {.is_absent = true};

uint32_t ifd_onnx_add_list(struct ifd_onnx_build *build, const uint32_t *value, uint32_t count,
                           bool is_absent)
{
    struct ifd_builder *b = &build->b;
    struct ifd_arena *arena = build->scratch;
    const size_t lists = (size_t)build->list_count + 1;
    for (uint32_t i = 0; b->code == IFD_OK && i < count; i++) {
        if (value[i] >= b->graph->value_count) {
            ifd_build_fail(b, IFD_CORRUPT, "element %u is a sequence, or absent", i);
        }
    }
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    if (count > LENGTH_MAX || lists > LENGTH_MAX) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%u elements in sequence %zu, limit %d", count,
                              lists, LENGTH_MAX);
    }
    uint32_t *copy = ifd_arena_take_array(arena, (size_t)count + 1, sizeof(*copy));
    struct ifd_onnx_list *grown = build->list;
    if (build->list_count == build->list_capacity) {
        const uint32_t capacity = build->list_capacity * 2 + 16;
        grown = ifd_arena_take_array(arena, capacity, sizeof(*grown));
        if (grown && build->list_count > 0) {
            memcpy(grown, build->list, build->list_count * sizeof(*grown));
        }
        build->list_capacity = capacity;
    }
    if (!copy || !grown) {
        b->code = ifd_arena_fail(arena, count * sizeof(*copy), b->err);
        return IFD_NONE;
    }
    if (count > 0) {
        memcpy(copy, value, count * sizeof(*copy));
    }
    build->list = grown;
    build->list[build->list_count] =
        (struct ifd_onnx_list){.value = copy, .count = count, .is_absent = is_absent};
    return IFD_ONNX_LIST | build->list_count++;
}

const struct ifd_onnx_list *ifd_onnx_list(const struct ifd_onnx_build *build, uint32_t value)
{
    const uint32_t at = value & ~IFD_ONNX_LIST;
    return ifd_onnx_is_list(value) && at < build->list_count ? &build->list[at] : &nothing;
}

/* ---- operators ---- */

/* The sequence of input i; fails if it is none. */
static struct ifd_onnx_list sequence(struct ifd_onnx_call *call, uint32_t i)
{
    const struct ifd_onnx_list *list = ifd_onnx_list(call->build, ifd_onnx_input(call, i));
    if (list->is_absent) {
        ifd_build_fail(call->b, IFD_CORRUPT, "input %u is no sequence", i);
    }
    return *list;
}

/* Position of input i among count places, from the end if it is negative. otherwise: if there is no
 * such input. */
static uint32_t position(struct ifd_onnx_call *call, uint32_t i, uint32_t count, int64_t otherwise)
{
    const uint32_t input = ifd_onnx_input(call, i);
    const int64_t given =
        input != IFD_NONE ? ifd_build_int_of(call->b, input, "the position") : otherwise;
    const int64_t at = given < 0 ? given + (int64_t)count : given;
    if (at < 0 || at >= (int64_t)count) {
        ifd_build_fail(call->b, IFD_INVALID, "position %lld of %u", (long long)given, count);
        return 0;
    }
    return (uint32_t)at;
}

static uint32_t *take(struct ifd_onnx_call *call, size_t count)
{
    uint32_t *value = ifd_arena_take_array(call->build->scratch, count + 1, sizeof(*value));
    if (!value) {
        call->b->code = ifd_arena_fail(call->build->scratch, count * sizeof(*value), call->b->err);
    }
    return value;
}

static void construct(struct ifd_onnx_call *call)
{
    call->output[0] = ifd_onnx_add_list(call->build, call->input, call->input_count, false);
}

static void at(struct ifd_onnx_call *call)
{
    const struct ifd_onnx_list list = sequence(call, 0);
    const uint32_t place = position(call, 1, list.count, 0);
    call->output[0] = call->b->code == IFD_OK ? list.value[place] : IFD_NONE;
}

static void insert(struct ifd_onnx_call *call)
{
    const struct ifd_onnx_list list = sequence(call, 0);
    /* Behind the last one is a place, too; from the end, -1 is in front of the last one. */
    const uint32_t input = ifd_onnx_input(call, 2);
    const int64_t given =
        input != IFD_NONE ? ifd_build_int_of(call->b, input, "the position") : (int64_t)list.count;
    const int64_t place = given < 0 ? given + (int64_t)list.count : given;
    uint32_t *value = take(call, list.count + (size_t)1);
    if (call->b->code == IFD_OK && (place < 0 || place > (int64_t)list.count)) {
        ifd_build_fail(call->b, IFD_INVALID, "position %lld of %u", (long long)given, list.count);
    }
    for (uint32_t i = 0; call->b->code == IFD_OK && i <= list.count; i++) {
        value[i] = i < place    ? list.value[i]
                   : i == place ? ifd_onnx_input(call, 1)
                                : list.value[i - 1];
    }
    call->output[0] = ifd_onnx_add_list(call->build, value, list.count + 1, false);
}

static void erase(struct ifd_onnx_call *call)
{
    const struct ifd_onnx_list list = sequence(call, 0);
    const uint32_t place = position(call, 1, list.count, (int64_t)list.count - 1);
    uint32_t *value = take(call, list.count);
    for (uint32_t i = 0; call->b->code == IFD_OK && i + 1 < list.count; i++) {
        value[i] = list.value[i < place ? i : i + 1];
    }
    call->output[0] = call->b->code == IFD_OK
                          ? ifd_onnx_add_list(call->build, value, list.count - 1, false)
                          : IFD_NONE;
}

static void length(struct ifd_onnx_call *call)
{
    const struct ifd_onnx_list list = sequence(call, 0);
    for (uint32_t i = 0; i < list.count; i++) { /* as many as a constant had parts, perhaps */
        ifd_trace_read(call->b->graph, list.value[i], false, call->b->source_index);
    }
    call->output[0] = ifd_build_number(call->b, IFD_S64, list.count);
}

/* One piece of x; without the axis if each piece has one element of it. */
static uint32_t piece(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t begin, int64_t size,
                      bool keeps_axis)
{
    const uint32_t y = ifd_build_cut(b, x, axis, begin, size);
    const struct ifd_shape shape = ifd_build_desc(b, y)->shape;
    int64_t dim[IFD_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (d != axis) {
            dim[rank++] = shape.dim[d];
        }
    }
    return keeps_axis ? y : ifd_build_reshape(b, y, dim, rank);
}

/* The size of piece i: of a list, or all the same. */
static int64_t piece_size(const struct ifd_desc *desc, struct ifd_bytes sizes, size_t i)
{
    int64_t size = 0;
    int32_t narrow = 0;
    i = desc->shape.rank > 0 ? i : 0;
    if ((i + 1) * ifd_dtype_bytes(desc->dtype) <= sizes.size && desc->dtype == IFD_S64) {
        memcpy(&size, sizes.data + i * sizeof(size), sizeof(size));
    } else if ((i + 1) * ifd_dtype_bytes(desc->dtype) <= sizes.size && desc->dtype == IFD_S32) {
        memcpy(&narrow, sizes.data + i * sizeof(narrow), sizeof(narrow));
        size = narrow;
    }
    return size;
}

static void split(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_onnx_input(call, 0), given = ifd_onnx_input(call, 1);
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "axis", 0), shape.rank);
    const bool keeps = given != IFD_NONE || ifd_onnx_int(call, "keepdims", 1) != 0;
    const uint32_t sizes =
        given != IFD_NONE ? ifd_build_known(b, given) : ifd_build_number(b, IFD_S64, 1);
    const struct ifd_desc desc = *ifd_build_desc(b, sizes);
    const struct ifd_bytes content = ifd_build_content(b, sizes);
    const int64_t whole = b->code == IFD_OK ? shape.dim[axis] : 0;
    uint32_t *value = take(call, LENGTH_MAX);
    const bool is_list = desc.shape.rank > 0; /* of the size of each piece, which may be 0 */
    int64_t begin = 0;
    uint32_t count = 0;
    for (; b->code == IFD_OK && (is_list ? count < desc.shape.dim[0] : begin < whole); count++) {
        int64_t size = piece_size(&desc, content, count);
        size = !is_list && size > whole - begin ? whole - begin : size;
        if (size < (is_list ? 0 : 1) || size > whole - begin || count == LENGTH_MAX) {
            ifd_build_fail(b, IFD_INVALID, "piece %u has %lld of %lld elements, limit %d pieces",
                           count, (long long)size, (long long)(whole - begin), LENGTH_MAX);
            return;
        }
        value[count] = piece(b, x, axis, begin, size, keeps);
        begin += size;
    }
    call->output[0] = ifd_onnx_add_list(call->build, value, count, false);
}

static void concat(struct ifd_onnx_call *call)
{
    const struct ifd_onnx_list list = sequence(call, 0);
    const bool is_new = ifd_onnx_int(call, "new_axis", 0) != 0;
    struct ifd_axis_attrs attrs = {.axis = ifd_onnx_int32(call, "axis", 0)};
    if (list.count == 0) {
        ifd_build_fail(call->b, IFD_INVALID, "a sequence of no tensors has no shape");
    } else if (list.count == 1 && !is_new) {
        call->output[0] = list.value[0];
    } else {
        call->output[0] = ifd_build_node(call->b, is_new ? IFD_OP_PACK : IFD_OP_CONCAT, list.value,
                                         list.count, NULL, &attrs);
    }
}

/* The body for each element; inputs that are tensors are the same each time. */
static void map(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_list list = sequence(call, 0);
    const struct ifd_onnx_attr *body = ifd_onnx_attr(call, "body");
    if (!body || !body->graph || body->graph->output_count < call->output_count) {
        ifd_build_fail(b, IFD_CORRUPT, "no graph \"body\" of %u outputs", call->output_count);
        return;
    }
    const size_t outputs = body->graph->output_count;
    uint32_t *input = take(call, call->input_count), *output = take(call, outputs);
    uint32_t *value = take(call, (size_t)list.count * call->output_count);
    for (uint32_t t = 0; b->code == IFD_OK && t < list.count; t++) {
        for (uint32_t i = 0; b->code == IFD_OK && i < call->input_count; i++) {
            const bool is_list = ifd_onnx_is_list(call->input[i]);
            const struct ifd_onnx_list part =
                is_list ? sequence(call, i) : (struct ifd_onnx_list){0};
            if (is_list && part.count <= t) {
                ifd_build_fail(b, IFD_INVALID, "input %u has %u elements, input 0 %u", i,
                               part.count, list.count);
            }
            input[i] = b->code == IFD_OK && is_list ? part.value[t] : call->input[i];
        }
        if (b->code == IFD_OK) {
            b->code = ifd_onnx_inline(call->build, body->graph, NULL, NULL, input,
                                      call->input_count, output);
        }
        for (uint32_t k = 0; b->code == IFD_OK && k < call->output_count; k++) {
            value[k * list.count + t] = output[k];
        }
    }
    for (uint32_t k = 0; b->code == IFD_OK && k < call->output_count; k++) {
        call->output[k] = ifd_onnx_add_list(call->build, value + k * list.count, list.count, false);
    }
}

/* A value, or none. */
static void optional(struct ifd_onnx_call *call)
{
    const uint32_t x = ifd_onnx_input(call, 0);
    call->output[0] = x != IFD_NONE ? x : ifd_onnx_add_list(call->build, NULL, 0, true);
}

static bool is_there(const struct ifd_onnx_call *call)
{
    const uint32_t x = ifd_onnx_input(call, 0);
    return x != IFD_NONE && !(ifd_onnx_is_list(x) && ifd_onnx_list(call->build, x)->is_absent);
}

static void has_element(struct ifd_onnx_call *call)
{
    call->output[0] = ifd_build_number(call->b, IFD_BOOL, is_there(call));
}

static void get_element(struct ifd_onnx_call *call)
{
    if (!is_there(call)) {
        ifd_build_fail(call->b, IFD_INVALID, "the optional value is absent");
        return;
    }
    call->output[0] = ifd_onnx_input(call, 0);
}

void ifd_onnx_lists(struct ifd_onnx_call *call, int which)
{
    static void (*const operators[])(struct ifd_onnx_call * call) = {
        [IFD_ONNX_SEQUENCE_CONSTRUCT] = construct,
        [IFD_ONNX_SEQUENCE_AT] = at,
        [IFD_ONNX_SEQUENCE_INSERT] = insert,
        [IFD_ONNX_SEQUENCE_ERASE] = erase,
        [IFD_ONNX_SEQUENCE_LENGTH] = length,
        [IFD_ONNX_SEQUENCE_MAP] = map,
        [IFD_ONNX_SPLIT_TO_SEQUENCE] = split,
        [IFD_ONNX_CONCAT_FROM_SEQUENCE] = concat,
        [IFD_ONNX_OPTIONAL] = optional,
        [IFD_ONNX_OPTIONAL_HAS] = has_element,
        [IFD_ONNX_OPTIONAL_GET] = get_element,
    };
    operators[which](call);
}
