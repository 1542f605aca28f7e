/* Values and nodes of a graph under construction. */
#include "engine/build/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/ir/eval.h"
#include "engine/ir/shape.h"
#include "engine/ir/trace.h"

/* Constants up to this size are computed from anything; larger ones only if they are no larger than
 * what they come from. */
#define COMPUTE_BYTES ((size_t)64 * 1024)

#define SHAPE_INPUTS 4 /* most inputs of an operator whose result's shape is an input */

static const struct ifd_desc nothing = {.dtype = IFD_F32};

void ifd_builder_init(struct ifd_builder *b, struct ifd_graph *graph, size_t tensor_bytes,
                      struct ifd_err *err)
{
    *b = (struct ifd_builder){.graph = graph,
                              .tensor_bytes = tensor_bytes,
                              .source_index = IFD_NONE,
                              .source_name = "",
                              .name = "",
                              .err = err};
}

uint32_t ifd_build_fail(struct ifd_builder *b, enum ifd_code code, const char *format, ...)
{
    if (b->code == IFD_OK) {
        char text[IFD_ERR_TEXT_BYTES];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        b->code = ifd_fail(b->err, code, "%s", text);
    }
    return IFD_NONE;
}

/* Keeps what a callee reported. */
static bool passed(struct ifd_builder *b, enum ifd_code code)
{
    b->code = code;
    return code == IFD_OK;
}

/* ---- questions ---- */

const struct ifd_desc *ifd_build_desc(const struct ifd_builder *b, uint32_t value)
{
    return b->code == IFD_OK && value < b->graph->value_count ? &b->graph->value[value].desc
                                                              : &nothing;
}

/* as_sizes: as in struct ifd_step. */
static struct ifd_bytes content_of(const struct ifd_builder *b, uint32_t value, bool as_sizes)
{
    if (b->code == IFD_OK) {
        ifd_trace_read(b->graph, value, as_sizes, b->source_index);
    }
    return b->code == IFD_OK && value < b->graph->value_count && b->graph->value[value].is_constant
               ? b->graph->value[value].data
               : (struct ifd_bytes){0};
}

struct ifd_bytes ifd_build_content(const struct ifd_builder *b, uint32_t value)
{
    return content_of(b, value, false);
}

static double number_at(enum ifd_dtype dtype, const uint8_t *data, size_t i)
{
    union {
        float f32;
        int16_t s16;
        uint16_t u16;
        int32_t s32;
        uint32_t u32;
        int64_t s64;
        uint64_t u64;
    } number = {0};
    const size_t bytes = ifd_dtype_bytes(dtype);
    if (bytes <= sizeof(number)) {
        memcpy(&number, data + i * bytes, bytes);
    }
    switch ((int)dtype) {
    case IFD_F32:
        return (double)number.f32;
    case IFD_S16:
        return number.s16;
    case IFD_U16:
        return number.u16;
    case IFD_S32:
        return number.s32;
    case IFD_U32:
        return number.u32;
    case IFD_S64:
        return (double)number.s64;
    case IFD_U64:
        return (double)number.u64;
    case IFD_S8:
        return (int8_t)data[i];
    case IFD_U8:
    case IFD_BOOL:
        return data[i];
    default:
        return NAN;
    }
}

uint32_t ifd_build_known(struct ifd_builder *b, uint32_t value)
{
    if (!b->ask || b->code != IFD_OK || value >= b->graph->value_count ||
        b->graph->value[value].is_constant) {
        return value;
    }
    const uint32_t known = b->ask(b->ask_context, value);
    return known != IFD_NONE ? known : value;
}

struct ifd_ints ifd_build_ints_of(struct ifd_builder *b, uint32_t value, const char *what)
{
    struct ifd_ints ints = {0};
    value = ifd_build_known(b, value);
    const struct ifd_desc desc = *ifd_build_desc(b, value);
    const struct ifd_bytes content = content_of(b, value, true);
    size_t count = 0;
    if (b->code != IFD_OK) {
        return ints;
    }
    if (value >= b->graph->value_count || !b->graph->value[value].is_constant) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s is not constant", what);
    } else if ((desc.dtype != IFD_S32 && desc.dtype != IFD_S64) || desc.shape.rank > 1 ||
               !ifd_shape_elements(&desc.shape, &count) || count > IFD_MAX_RANK) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s is %s %s, expected at most %d integers", what,
                       ifd_dtype_name(desc.dtype), ifd_shape_text(&desc.shape).s, IFD_MAX_RANK);
    } else {
        for (size_t i = 0; i < count; i++) {
            int32_t narrow = 0;
            if (desc.dtype == IFD_S64) {
                memcpy(&ints.value[i], content.data + i * sizeof(int64_t), sizeof(int64_t));
            } else {
                memcpy(&narrow, content.data + i * sizeof(narrow), sizeof(narrow));
                ints.value[i] = narrow;
            }
        }
        ints.count = (uint32_t)count;
    }
    return ints;
}

int32_t ifd_build_int_of(struct ifd_builder *b, uint32_t value, const char *what)
{
    const struct ifd_ints ints = ifd_build_ints_of(b, value, what);
    const int64_t number = ints.value[0];
    if (b->code == IFD_OK) {
        ifd_trace_read(b->graph, value, false, b->source_index);
    }
    if (b->code == IFD_OK && (ints.count != 1 || number < INT32_MIN || number > INT32_MAX)) {
        ifd_build_fail(b, IFD_INVALID, "%s is %lld (of %u numbers), expected one of 32 bits", what,
                       (long long)number, ints.count);
    }
    return b->code == IFD_OK ? (int32_t)number : 0;
}

double ifd_build_number_of(struct ifd_builder *b, uint32_t value, const char *what)
{
    value = ifd_build_known(b, value);
    const struct ifd_bytes content = ifd_build_content(b, value);
    if (b->code != IFD_OK) {
        return 0;
    }
    const struct ifd_desc *desc = ifd_build_desc(b, value);
    const double number = content.size > 0 ? number_at(desc->dtype, content.data, 0) : NAN;
    size_t count = 0;
    if (content.size == 0 || !ifd_shape_elements(&desc->shape, &count) || count != 1) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s is no constant number", what);
    }
    return number;
}

uint32_t ifd_build_axis(struct ifd_builder *b, int64_t axis, uint32_t rank)
{
    const int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
    if (at < 0 || at >= (int64_t)rank) {
        ifd_build_fail(b, IFD_INVALID, "axis %lld of %u dimensions", (long long)axis, rank);
        return 0;
    }
    return (uint32_t)at;
}

/* ---- constants ---- */

static uint32_t add_value(struct ifd_builder *b, const struct ifd_desc *desc)
{
    uint32_t value = IFD_NONE;
    return passed(b, ifd_graph_add_value(b->graph, b->name, desc, &value, b->err)) ? value
                                                                                   : IFD_NONE;
}

uint32_t ifd_build_constant(struct ifd_builder *b, const struct ifd_desc *desc,
                            struct ifd_bytes content, size_t readable_after)
{
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const uint32_t value = add_value(b, desc);
    if (value != IFD_NONE) {
        passed(b, ifd_graph_set_constant(b->graph, value, content, readable_after, b->err));
    }
    return b->code == IFD_OK ? value : IFD_NONE;
}

/* What lies outside is brought to the nearer end; not a number is 0. */
static double within(double number, double min, double max)
{
    return number < min ? min : number > max ? max : number == number ? number : 0;
}

uint32_t ifd_build_number(struct ifd_builder *b, enum ifd_dtype dtype, double number)
{
    const float f32 = (float)number;
    const int64_t s64 = (int64_t)within(number, -9e18, 9e18);
    const bool is_real = dtype == IFD_F32;
    const struct ifd_desc desc = {.dtype = is_real ? IFD_F32 : IFD_S64};
    const struct ifd_bytes content = {.data =
                                          is_real ? (const uint8_t *)&f32 : (const uint8_t *)&s64,
                                      .size = is_real ? sizeof(f32) : sizeof(s64)};
    return ifd_build_cast(b, ifd_build_constant(b, &desc, content, 0), dtype);
}

uint32_t ifd_build_list(struct ifd_builder *b, const int64_t *number, uint32_t count)
{
    const struct ifd_desc desc = {.dtype = IFD_S64, .shape = {.rank = 1, .dim = {count}}};
    return ifd_build_constant(
        b, &desc,
        (struct ifd_bytes){.data = (const uint8_t *)number, .size = count * sizeof(*number)}, 0);
}

/* ---- nodes ---- */

static bool are_values(struct ifd_builder *b, const uint32_t *input, uint32_t count)
{
    for (uint32_t i = 0; b->code == IFD_OK && i < count; i++) {
        if (input[i] != IFD_NONE && input[i] >= b->graph->value_count) {
            ifd_build_fail(b, IFD_INTERNAL, "value %u of %u", input[i], b->graph->value_count);
        }
    }
    return b->code == IFD_OK;
}

/* Is the result worth keeping as a constant? */
static bool may_compute(const struct ifd_builder *b, const struct ifd_node *node, size_t *ret_limit)
{
    size_t limit = COMPUTE_BYTES;
    size_t from = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE) {
            from += b->graph->value[node->input[i]].data.size;
        }
    }
    *ret_limit = from > limit ? from : limit;
    return ifd_graph_is_computable(b->graph, node);
}

/* Results without elements are constants, whatever they come from. */
static bool is_empty(const struct ifd_graph *graph, const struct ifd_node *node)
{
    bool is_so = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        size_t count = 0;
        is_so = is_so && ifd_shape_elements(&graph->value[node->output[i]].desc.shape, &count) &&
                count == 0;
    }
    return is_so;
}

/* Shapes, limits, and the content of what can be computed now. */
static void finish_node(struct ifd_builder *b)
{
    const uint32_t index = b->graph->node_count - 1;
    if (!passed(b, ifd_graph_infer_node(b->graph, index, b->err))) {
        return;
    }
    const struct ifd_node *node = &b->graph->node[index];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct ifd_desc *desc = &b->graph->value[node->output[i]].desc;
        if (!ifd_desc_fits(desc, b->tensor_bytes)) {
            ifd_build_fail(b, IFD_TOO_LARGE, "output %u of %s %s has more than %zu bytes", i,
                           ifd_dtype_name(desc->dtype), ifd_shape_text(&desc->shape).s,
                           b->tensor_bytes);
            return;
        }
    }
    if (is_empty(b->graph, node)) {
        for (uint32_t i = 0; b->code == IFD_OK && i < node->output_count; i++) {
            b->graph->value[node->output[i]].producer = IFD_NONE;
            passed(b, ifd_graph_set_constant(b->graph, node->output[i], (struct ifd_bytes){0}, 0,
                                             b->err));
        }
        ifd_trace_computed(b->graph, node);
        b->graph->node_count--;
        return;
    }
    size_t limit = 0;
    bool done = false;
    if (may_compute(b, node, &limit) &&
        passed(b, ifd_graph_compute_node(b->graph, index, limit, &done, b->err)) && done) {
        b->graph->node_count--; /* it was the last one */
    }
}

/* Inputs that decide the shape of the result are constants. */
static const uint32_t *know_shape_inputs(struct ifd_builder *b, enum ifd_op op,
                                         const uint32_t *input, uint32_t count,
                                         uint32_t known[SHAPE_INPUTS])
{
    const uint32_t wanted = ifd_op_def(op)->shape_inputs;
    if (wanted == 0 || count > SHAPE_INPUTS) {
        return input;
    }
    for (uint32_t i = 0; i < count; i++) {
        known[i] = (wanted & IFD_BIT(i)) != 0 ? ifd_build_known(b, input[i]) : input[i];
    }
    return known;
}

void ifd_build_nodes(struct ifd_builder *b, enum ifd_op op, const uint32_t *input,
                     uint32_t input_count, const struct ifd_desc *output, uint32_t output_count,
                     const void *attrs, uint32_t *ret_output)
{
    uint32_t known[SHAPE_INPUTS];
    for (uint32_t i = 0; i < output_count; i++) {
        ret_output[i] = IFD_NONE;
    }
    if (!are_values(b, input, input_count)) {
        return;
    }
    input = know_shape_inputs(b, op, input, input_count, known);
    for (uint32_t i = 0; b->code == IFD_OK && i < output_count; i++) {
        const struct ifd_desc desc = {.dtype = output[i].dtype, .quant = output[i].quant};
        ret_output[i] = add_value(b, &desc);
    }
    struct ifd_node *node = NULL;
    if (b->code == IFD_OK &&
        passed(b, ifd_graph_add_node(b->graph, op, input, input_count, ret_output, output_count,
                                     &node, b->err))) {
        node->source_index = b->source_index;
        node->source_name = b->source_name;
        if (attrs) {
            memcpy((void *)(uintptr_t)node->attrs, attrs, ifd_op_def(op)->attrs_bytes);
        }
        finish_node(b);
    }
    for (uint32_t i = 0; b->code != IFD_OK && i < output_count; i++) {
        ret_output[i] = IFD_NONE;
    }
}

uint32_t ifd_build_node(struct ifd_builder *b, enum ifd_op op, const uint32_t *input,
                        uint32_t input_count, const struct ifd_desc *output, const void *attrs)
{
    uint32_t value = IFD_NONE;
    const struct ifd_desc *first = ifd_build_desc(b, input[0]);
    const bool is_like = first->quant.count == 1; /* of one channel it would name the axis */
    const struct ifd_desc like = {.dtype = first->dtype,
                                  .quant = is_like ? first->quant : (struct ifd_quant){0}};
    ifd_build_nodes(b, op, input, input_count, output ? output : &like, 1, attrs, &value);
    return value;
}

uint32_t ifd_build_unary(struct ifd_builder *b, enum ifd_op op, uint32_t x)
{
    return ifd_build_node(b, op, &x, 1, NULL, NULL);
}

uint32_t ifd_build_binary(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y)
{
    return ifd_build_node(b, op, (const uint32_t[]){x, y}, 2, NULL, NULL);
}

uint32_t ifd_build_with(struct ifd_builder *b, enum ifd_op op, uint32_t x, double number)
{
    return ifd_build_binary(b, op, x, ifd_build_number(b, ifd_build_desc(b, x)->dtype, number));
}

uint32_t ifd_build_cast(struct ifd_builder *b, uint32_t x, enum ifd_dtype dtype)
{
    const struct ifd_desc output = {.dtype = dtype};
    return ifd_build_desc(b, x)->dtype == dtype
               ? x
               : ifd_build_node(b, IFD_OP_CAST, &x, 1, &output, NULL);
}

uint32_t ifd_build_reshape(struct ifd_builder *b, uint32_t x, const int64_t *dim, uint32_t rank)
{
    struct ifd_reshape_attrs attrs = {.shape = {.count = rank}};
    if (rank > IFD_MAX_RANK) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%u dimensions, limit %d", rank, IFD_MAX_RANK);
    }
    for (uint32_t i = 0; i < rank; i++) {
        attrs.shape.value[i] = dim[i];
    }
    return ifd_build_node(b, IFD_OP_RESHAPE, &x, 1, NULL, &attrs);
}

uint32_t ifd_build_reduce(struct ifd_builder *b, enum ifd_op op, uint32_t x,
                          const struct ifd_ints *axes, bool keep_dims)
{
    const struct ifd_reduce_attrs attrs = {.axes = *axes, .keep_dims = keep_dims};
    return ifd_build_node(b, op, &x, 1, NULL, &attrs);
}

uint32_t ifd_build_clamp(struct ifd_builder *b, uint32_t x, double min, double max)
{
    const struct ifd_clamp_attrs attrs = {.min = (float)min, .max = (float)max};
    return ifd_build_node(b, IFD_OP_CLAMP, &x, 1, NULL, &attrs);
}

uint32_t ifd_build_cut(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t begin,
                       int64_t size)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    struct ifd_slice_attrs attrs = {.begin = {.count = shape.rank}, .size = {.count = shape.rank}};
    for (uint32_t d = 0; d < shape.rank; d++) {
        attrs.begin.value[d] = d == axis ? begin : 0;
        attrs.size.value[d] = d == axis ? size : shape.dim[d];
    }
    return ifd_build_node(b, IFD_OP_SLICE, &x, 1, NULL, &attrs);
}
