/* Elements by index: gather and scatter in all their forms, one-hot, the largest ones. Forms that
 * name single elements become rows of a flat list. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t i)
{
    return ifd_build_desc(call->b, call->input[i])->shape;
}

static uint32_t plus(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, x, y);
}

/* Negative indices count from the end. size: a number or a list beside the last dimension. */
static uint32_t from_front(struct ifd_builder *b, uint32_t indices, uint32_t size)
{
    const uint32_t is_below =
        ifd_onnx_compared(b, IFD_OP_LESS, indices, ifd_build_number(b, IFD_S64, 0));
    return ifd_onnx_selected(b, is_below, plus(b, indices, size), indices);
}

/* 0, step, 2 step … along dimension d of rank. */
static uint32_t ramp(struct ifd_builder *b, int64_t count, int64_t step, uint32_t d, uint32_t rank)
{
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)count),
                                ifd_build_number(b, IFD_S64, 1)};
    int64_t dim[IFD_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dim[d] = count;
    const uint32_t steps = ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL);
    return ifd_build_reshape(b, ifd_build_with(b, IFD_OP_MUL, steps, (double)step), dim, rank);
}

static uint32_t flat(struct ifd_builder *b, uint32_t x)
{
    return ifd_build_reshape(b, x, (const int64_t[]){-1}, 1);
}

/* ---- along an axis ---- */

void ifd_onnx_gather(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct ifd_gather_attrs attrs = {.axis = ifd_onnx_int32(call, "axis", 0)};
    call->output[0] = ifd_build_node(call->b, IFD_OP_GATHER, call->input, 2, NULL, &attrs);
}

const struct ifd_node *ifd_onnx_made_by(const struct ifd_builder *b, uint32_t value, enum ifd_op op)
{
    const uint32_t producer = b->code == IFD_OK && value < b->graph->value_count
                                  ? b->graph->value[value].producer
                                  : IFD_NONE;
    return producer != IFD_NONE && b->graph->node[producer].op == op ? &b->graph->node[producer]
                                                                     : NULL;
}

/* The numbers of whole rows, where all indices of a row were one that was expanded: so exporters
 * write x[rows] = y. IFD_NONE: they may differ. */
static uint32_t row_numbers(struct ifd_builder *b, uint32_t indices, const struct ifd_shape *data,
                            uint32_t axis)
{
    const struct ifd_node *expanded = ifd_onnx_made_by(b, indices, IFD_OP_BROADCAST_TO);
    if (!expanded || axis != 0) {
        return IFD_NONE;
    }
    const struct ifd_shape to = ifd_build_desc(b, indices)->shape;
    const struct ifd_shape from = ifd_build_desc(b, expanded->input[0])->shape;
    bool are_rows = from.rank == to.rank && data->rank == to.rank && from.dim[0] == to.dim[0];
    for (uint32_t d = 1; d < to.rank && are_rows; d++) {
        are_rows = from.dim[d] == 1 && to.dim[d] == data->dim[d];
    }
    return are_rows ? flat(b, expanded->input[0]) : IFD_NONE;
}

/* For each index along an axis of a tensor of this shape: the number of its element in the flat
 * tensor. Its other coordinates are those of the index. */
static uint32_t element_numbers(struct ifd_builder *b, uint32_t indices,
                                const struct ifd_shape *data, uint32_t axis)
{
    const struct ifd_shape shape = ifd_build_desc(b, indices)->shape;
    int64_t stride[IFD_MAX_RANK];
    if (shape.rank != data->rank || shape.rank == 0) {
        return ifd_build_fail(b, IFD_INVALID, "indices of shape %s into shape %s",
                              ifd_shape_text(&shape).s, ifd_shape_text(data).s);
    }
    ifd_shape_strides(data, stride);
    uint32_t number = from_front(b, ifd_build_cast(b, indices, IFD_S64),
                                 ifd_build_number(b, IFD_S64, (double)data->dim[axis]));
    number = ifd_build_with(b, IFD_OP_MUL, number, (double)stride[axis]);
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (shape.dim[d] > data->dim[d] && d != axis) {
            return ifd_build_fail(b, IFD_INVALID, "indices of shape %s along %u of shape %s",
                                  ifd_shape_text(&shape).s, axis, ifd_shape_text(data).s);
        }
        if (d != axis && shape.dim[d] > 1) {
            number = plus(b, number, ramp(b, shape.dim[d], stride[d], d, shape.rank));
        }
    }
    return number;
}

uint32_t ifd_onnx_gathered(struct ifd_builder *b, uint32_t x, uint32_t indices, uint32_t axis)
{
    const struct ifd_shape data = ifd_build_desc(b, x)->shape;
    const uint32_t input[2] = {flat(b, x), element_numbers(b, indices, &data, axis)};
    return ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, NULL);
}

void ifd_onnx_gather_elements(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const uint32_t rank = shape_of(call, 0).rank;
    const uint32_t axis = ifd_build_axis(call->b, ifd_onnx_int(call, "axis", 0), rank);
    call->output[0] = ifd_onnx_gathered(call->b, call->input[0], call->input[1], axis);
}

static int32_t scatter_mode(struct ifd_onnx_call *call)
{
    static const struct {
        const char *name;
        int32_t mode;
    } rows[] = {{"add", IFD_SCATTER_ADD},
                {"mul", IFD_SCATTER_MUL},
                {"min", IFD_SCATTER_MIN},
                {"max", IFD_SCATTER_MAX}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (ifd_onnx_text_is(call, "reduction", rows[i].name, false)) {
            return rows[i].mode;
        }
    }
    return IFD_SCATTER_REPLACE;
}

/* In a type that has sums and products. */
static uint32_t countable(struct ifd_builder *b, uint32_t x)
{
    const bool is_truth = ifd_build_desc(b, x)->dtype == IFD_BOOL;
    return is_truth ? ifd_build_cast(b, x, IFD_S32) : ifd_onnx_widened(b, x);
}

static uint32_t scatter(struct ifd_onnx_call *call, uint32_t data, uint32_t rows, uint32_t updates)
{
    struct ifd_builder *b = call->b;
    const struct ifd_scatter_rows_attrs attrs = {.mode = scatter_mode(call)};
    const struct ifd_shape shape = shape_of(call, 0);
    const enum ifd_dtype dtype = ifd_build_desc(b, data)->dtype;
    if (attrs.mode != IFD_SCATTER_REPLACE) {
        data = countable(b, data);
        updates = countable(b, updates);
    }
    const uint32_t y = ifd_build_node(b, IFD_OP_SCATTER_ROWS,
                                      (const uint32_t[]){data, rows, updates}, 3, NULL, &attrs);
    return ifd_build_reshape(b, ifd_build_cast(b, y, dtype), shape.dim, shape.rank);
}

void ifd_onnx_scatter_elements(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape data = shape_of(call, 0);
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "axis", 0), data.rank);
    const uint32_t rows = row_numbers(b, call->input[1], &data, axis);
    if (rows != IFD_NONE) {
        call->output[0] = scatter(call, call->input[0], rows, call->input[2]);
        return;
    }
    const uint32_t numbers = element_numbers(b, call->input[1], &data, axis);
    call->output[0] =
        scatter(call, flat(b, call->input[0]), flat(b, numbers), flat(b, call->input[2]));
}

/* ---- by several coordinates ---- */

/* Tuples of coordinates as numbers of slices: [..., k] becomes a list. */
static uint32_t slice_numbers(struct ifd_onnx_call *call, uint32_t depth)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape data = shape_of(call, 0);
    int64_t factor[IFD_MAX_RANK];
    for (uint32_t d = depth; d-- > 0;) {
        factor[d] = d + 1 == depth ? 1 : factor[d + 1] * data.dim[d + 1];
    }
    const uint32_t tuples = from_front(b, ifd_build_cast(b, call->input[1], IFD_S64),
                                       ifd_build_list(b, data.dim, depth));
    const struct ifd_ints last = {.count = 1, .value = {-1}};
    const uint32_t parts =
        ifd_build_binary(b, IFD_OP_MUL, tuples, ifd_build_list(b, factor, depth));
    return flat(b, ifd_build_reduce(b, IFD_OP_REDUCE_SUM, parts, &last, false));
}

/* How many dimensions a tuple names; 0 after a failure. */
static uint32_t tuple_depth(struct ifd_onnx_call *call)
{
    const struct ifd_shape data = shape_of(call, 0), indices = shape_of(call, 1);
    const int64_t depth = indices.rank > 0 ? indices.dim[indices.rank - 1] : 0;
    if (depth < 1 || depth > (int64_t)data.rank) {
        ifd_build_fail(call->b, IFD_INVALID, "indices of shape %s into shape %s",
                       ifd_shape_text(&indices).s, ifd_shape_text(&data).s);
        return 0;
    }
    return (uint32_t)depth;
}

void ifd_onnx_scatter_nd(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape data = shape_of(call, 0);
    const uint32_t depth = tuple_depth(call);
    int64_t dim[IFD_MAX_RANK + 1] = {-1};
    for (uint32_t d = depth; depth > 0 && d < data.rank; d++) {
        dim[1 + d - depth] = data.dim[d];
    }
    if (depth > 0) {
        const uint32_t rank = 1 + data.rank - depth;
        call->output[0] =
            scatter(call, ifd_build_reshape(b, call->input[0], dim, rank),
                    slice_numbers(call, depth), ifd_build_reshape(b, call->input[2], dim, rank));
    }
}

/* The leading dimensions that both share become a coordinate each in front of the others. */
static uint32_t with_batches(struct ifd_onnx_call *call, uint32_t batch_dims)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape indices = shape_of(call, 1);
    const uint32_t last = indices.rank - 1;
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)last};
    uint32_t part[IFD_MAX_RANK + 1];
    struct ifd_ints dims = {.count = indices.rank};
    memcpy(dims.value, indices.dim, sizeof(dims.value));
    dims.value[last] = 1;
    const struct ifd_broadcast_to_attrs whole = {.shape = dims};
    for (uint32_t d = 0; d < batch_dims; d++) {
        const uint32_t coordinate = ramp(b, indices.dim[d], 1, d, indices.rank);
        part[d] = ifd_build_node(b, IFD_OP_BROADCAST_TO, &coordinate, 1, NULL, &whole);
    }
    part[batch_dims] = ifd_build_cast(b, call->input[1], IFD_S64);
    return ifd_build_node(b, IFD_OP_CONCAT, part, batch_dims + 1, NULL, &attrs);
}

void ifd_onnx_gather_nd(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape data = shape_of(call, 0), indices = shape_of(call, 1);
    const int64_t batch_dims = ifd_onnx_int(call, "batch_dims", 0);
    if (tuple_depth(call) == 0) {
        return;
    }
    if (batch_dims < 0 || batch_dims >= (int64_t)indices.rank || batch_dims > (int64_t)data.rank) {
        ifd_build_fail(b, IFD_INVALID, "%lld batch dimensions of %s and %s", (long long)batch_dims,
                       ifd_shape_text(&data).s, ifd_shape_text(&indices).s);
        return;
    }
    const uint32_t tuples = batch_dims > 0 ? with_batches(call, (uint32_t)batch_dims)
                                           : ifd_build_cast(b, call->input[1], IFD_S64);
    const struct ifd_shape shape = ifd_build_desc(b, tuples)->shape;
    const int64_t depth = shape.rank > 0 ? shape.dim[shape.rank - 1] : 0;
    if (b->code != IFD_OK || depth > (int64_t)data.rank) {
        ifd_build_fail(b, IFD_INVALID, "indices of shape %s into shape %s",
                       ifd_shape_text(&shape).s, ifd_shape_text(&data).s);
        return;
    }
    const uint32_t input[2] = {call->input[0],
                               from_front(b, tuples, ifd_build_list(b, data.dim, (uint32_t)depth))};
    call->output[0] = ifd_build_node(b, IFD_OP_GATHER_ND, input, 2, NULL, NULL);
}

/* ---- one-hot, order ---- */

/* The values are [off, on]; an index outside of the depth is off everywhere. */
void ifd_onnx_one_hot(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const double depth = ifd_build_number_of(b, call->input[1], "the depth");
    if (!(depth >= 0 && depth <= INT32_MAX)) {
        ifd_build_fail(b, IFD_INVALID, "the depth is %g", depth);
        return;
    }
    const struct ifd_one_hot_attrs attrs = {.axis = ifd_onnx_int32(call, "axis", -1),
                                            .depth = (int32_t)depth};
    const uint32_t values = call->input[2];
    const struct ifd_desc output = {.dtype = ifd_build_desc(b, values)->dtype};
    const uint32_t indices = from_front(b, ifd_build_cast(b, call->input[0], IFD_S64),
                                        ifd_build_number(b, IFD_S64, depth));
    const uint32_t input[3] = {indices, ifd_build_cut(b, values, 0, 1, 1),
                               ifd_build_cut(b, values, 0, 0, 1)};
    call->output[0] = ifd_build_node(b, IFD_OP_ONE_HOT, input, 3, &output, &attrs);
}

/* The order of numbers turned: bits of whole ones, of which the smallest has no opposite. */
static uint32_t upside_down(struct ifd_builder *b, uint32_t x)
{
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    return dtype == IFD_F32 ? ifd_build_unary(b, IFD_OP_NEG, x) : ifd_onnx_inverted(b, x);
}

/* Whole numbers without sign among those with sign, in the same order, and back: the same bits but
 * for the highest. */
static uint32_t exchanged(struct ifd_builder *b, uint32_t x, enum ifd_dtype dtype)
{
    const struct ifd_desc wanted = {.dtype = dtype}, number = {.dtype = IFD_S64};
    const int64_t lowest = INT64_MIN;
    const uint32_t top = ifd_build_constant(
        b, &number, (struct ifd_bytes){(const uint8_t *)&lowest, sizeof(lowest)}, 0);
    if (dtype == IFD_S64) {
        x = ifd_build_node(b, IFD_OP_BITCAST, &x, 1, &wanted, NULL);
    }
    x = ifd_build_binary(b, IFD_OP_BITWISE_XOR, x, top);
    return dtype == IFD_S64 ? x : ifd_build_node(b, IFD_OP_BITCAST, &x, 1, &wanted, NULL);
}

void ifd_onnx_top_k(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const enum ifd_dtype given = ifd_build_desc(b, call->input[0])->dtype;
    const uint32_t x = given == IFD_U64 ? exchanged(b, call->input[0], IFD_S64) : call->input[0];
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    const uint32_t rank = desc.shape.rank;
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "axis", -1), rank);
    const struct ifd_top_k_attrs attrs = {.k = call->input_count > 1
                                                   ? ifd_build_int_of(b, call->input[1], "k")
                                                   : ifd_onnx_int32(call, "k", 0)};
    const bool is_largest = ifd_onnx_int(call, "largest", 1) != 0;
    const uint32_t swapped = ifd_build_swap(b, x, axis, rank > 0 ? rank - 1 : 0);
    const uint32_t ordered = is_largest ? swapped : upside_down(b, swapped);
    const struct ifd_desc output[2] = {{.dtype = desc.dtype}, {.dtype = IFD_S64}};
    uint32_t found[2];
    ifd_build_nodes(b, IFD_OP_TOP_K, &ordered, 1, output, 2, &attrs, found);
    found[0] = is_largest ? found[0] : upside_down(b, found[0]);
    found[0] = given == IFD_U64 ? exchanged(b, found[0], IFD_U64) : found[0];
    for (uint32_t i = 0; i < call->output_count; i++) {
        call->output[i] = ifd_build_swap(b, found[i], axis, rank > 0 ? rank - 1 : 0);
    }
}

void ifd_onnx_reverse_sequence(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct ifd_reverse_sequence_attrs attrs = {
        .seq_dim = ifd_onnx_int32(call, "time_axis", 0),
        .batch_dim = ifd_onnx_int32(call, "batch_axis", 1)};
    call->output[0] =
        ifd_build_node(call->b, IFD_OP_REVERSE_SEQUENCE, call->input, 2, NULL, &attrs);
}

/* 1 at the first largest element along an axis, else 0; before opset 13 along all from the axis. */
void ifd_onnx_hardmax(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    const bool is_new = call->opset >= 13;
    const uint32_t axis =
        ifd_build_axis(b, ifd_onnx_int(call, "axis", is_new ? -1 : 1), shape.rank);
    uint32_t x = call->input[0];
    struct ifd_shape rows = shape;
    if (!is_new) {
        rows = (struct ifd_shape){.rank = 2, .dim = {1, 1}};
        for (uint32_t d = 0; d < shape.rank; d++) {
            rows.dim[d < axis ? 0 : 1] *= shape.dim[d];
        }
        x = ifd_build_reshape(b, x, rows.dim, rows.rank);
    }
    const uint32_t along = is_new ? axis : 1;
    const struct ifd_arg_attrs arg = {.axis = (int32_t)along};
    const struct ifd_one_hot_attrs hot = {.axis = (int32_t)along,
                                          .depth = (int32_t)rows.dim[along]};
    const struct ifd_desc index = {.dtype = IFD_S64}, output = {.dtype = IFD_F32};
    const uint32_t input[3] = {ifd_build_node(b, IFD_OP_ARG_MAX, &x, 1, &index, &arg),
                               ifd_build_number(b, IFD_F32, 1), ifd_build_number(b, IFD_F32, 0)};
    const uint32_t y = ifd_build_node(b, IFD_OP_ONE_HOT, input, 3, &output, &hot);
    call->output[0] = ifd_build_reshape(b, y, shape.dim, shape.rank);
}
