/* Shapes, constants, and elements that change places. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/ir/trace.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t i)
{
    return ifd_build_desc(call->b, call->input[i])->shape;
}

/* ---- constants and shapes ---- */

static uint32_t constant(struct ifd_onnx_call *call, uint32_t x)
{
    (void)x;
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "value");
    if (attr && attr->tensor) {
        return ifd_onnx_constant(b, attr->tensor);
    }
    attr = ifd_onnx_attr(call, "value_int");
    if (attr) {
        const struct ifd_desc scalar = {.dtype = IFD_S64};
        return ifd_build_constant(
            b, &scalar,
            (struct ifd_bytes){.data = (const uint8_t *)&attr->i, .size = sizeof(attr->i)}, 0);
    }
    attr = ifd_onnx_attr(call, "value_float");
    if (attr) {
        return ifd_build_number(b, IFD_F32, (double)attr->f);
    }
    attr = ifd_onnx_attr(call, "value_ints");
    if (attr) {
        return ifd_build_list(b, attr->ints, attr->int_count);
    }
    attr = ifd_onnx_attr(call, "value_floats");
    if (attr) {
        const struct ifd_desc list = {.dtype = IFD_F32,
                                      .shape = {.rank = 1, .dim = {attr->float_count}}};
        return ifd_build_constant(b, &list,
                                  (struct ifd_bytes){.data = (const uint8_t *)attr->floats,
                                                     .size = attr->float_count * sizeof(float)},
                                  0);
    }
    attr = ifd_onnx_attr(call, "value_string");
    if (attr) {
        const struct ifd_shape scalar = {0};
        return ifd_onnx_texts(b, &attr->s, &scalar);
    }
    attr = ifd_onnx_attr(call, "value_strings");
    if (attr) {
        const struct ifd_shape list = {.rank = 1, .dim = {attr->string_count}};
        return ifd_onnx_texts(b, attr->strings, &list);
    }
    return ifd_build_fail(b, IFD_UNSUPPORTED, "a constant that is sparse");
}

static uint32_t broadcast(struct ifd_builder *b, uint32_t x, const struct ifd_ints *shape)
{
    const struct ifd_broadcast_to_attrs attrs = {.shape = *shape};
    return ifd_build_node(b, IFD_OP_BROADCAST_TO, &x, 1, NULL, &attrs);
}

static uint32_t constant_of_shape(struct ifd_onnx_call *call, uint32_t x)
{
    (void)x;
    struct ifd_builder *b = call->b;
    const struct ifd_ints shape = ifd_build_ints_of(b, call->input[0], "the shape");
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "value");
    const uint32_t one =
        attr && attr->tensor ? ifd_onnx_constant(b, attr->tensor) : ifd_build_number(b, IFD_F32, 0);
    return broadcast(b, ifd_build_reshape(b, one, NULL, 0), &shape);
}

/* Python's slice bounds: clamped, not refused. */
static int64_t bound(int64_t at, int64_t count)
{
    at = at < 0 ? at + count : at;
    return at < 0 ? 0 : at > count ? count : at;
}

static uint32_t whole_shape(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_desc list = {.dtype = IFD_S64};
    return ifd_build_node(b, IFD_OP_SHAPE, &x, 1, &list, NULL);
}

static uint32_t shape_values(struct ifd_onnx_call *call, uint32_t x)
{
    const int64_t rank = shape_of(call, 0).rank;
    const int64_t start = bound(ifd_onnx_int(call, "start", 0), rank);
    const int64_t end = bound(ifd_onnx_int(call, "end", rank), rank);
    const uint32_t shape = whole_shape(call->b, x);
    return start == 0 && end == rank
               ? shape
               : ifd_build_cut(call->b, shape, 0, start, end > start ? end - start : 0);
}

static uint32_t element_count(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_ints all = {.count = 1};
    return ifd_build_reduce(call->b, IFD_OP_REDUCE_PROD, whole_shape(call->b, x), &all, false);
}

/* ---- other shapes of the same elements ---- */

static uint32_t reshape(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    struct ifd_ints target;
    if (call->input_count < 2) {
        ifd_onnx_ints(call, "shape", &target);
    } else {
        target = ifd_build_ints_of(b, call->input[1], "the shape");
    }
    for (uint32_t d = 0; d < target.count; d++) {
        if (target.value[d] == 0 && ifd_onnx_int(call, "allowzero", 0) == 0) {
            target.value[d] = d < shape.rank ? shape.dim[d] : 0;
        }
    }
    return ifd_build_reshape(b, x, target.value, target.count);
}

static uint32_t flatten(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_shape shape = shape_of(call, 0);
    const int64_t given = ifd_onnx_int(call, "axis", 1);
    const int64_t axis = given < 0 ? given + (int64_t)shape.rank : given;
    int64_t dim[2] = {1, 1};
    for (uint32_t d = 0; d < shape.rank; d++) {
        dim[d < axis ? 0 : 1] *= shape.dim[d];
    }
    return ifd_build_reshape(call->b, x, dim, 2);
}

static uint32_t squeeze(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_shape shape = shape_of(call, 0);
    struct ifd_ints axes;
    uint32_t dropped = 0;
    const bool names = ifd_onnx_axes(call, 1, shape.rank, &axes);
    for (uint32_t i = 0; i < axes.count; i++) {
        dropped |= IFD_BIT(axes.value[i]);
    }
    int64_t dim[IFD_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (names ? (dropped & IFD_BIT(d)) == 0 : shape.dim[d] != 1) {
            dim[rank++] = shape.dim[d];
        }
    }
    return ifd_build_reshape(call->b, x, dim, rank);
}

static uint32_t unsqueeze(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    struct ifd_ints axes;
    if (!ifd_onnx_ints(call, "axes", &axes) && call->input_count > 1) {
        axes = ifd_build_ints_of(b, call->input[1], "the list of axes");
    }
    const uint32_t rank = shape.rank + axes.count;
    if (rank > IFD_MAX_RANK) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%u dimensions, limit %d", rank, IFD_MAX_RANK);
    }
    uint32_t added = 0;
    for (uint32_t i = 0; i < axes.count; i++) {
        added |= IFD_BIT(ifd_build_axis(b, axes.value[i], rank));
    }
    int64_t dim[IFD_MAX_RANK];
    uint32_t from = 0;
    for (uint32_t d = 0; d < rank; d++) {
        const bool is_new = (added & IFD_BIT(d)) != 0 || from >= shape.rank;
        dim[d] = is_new ? 1 : shape.dim[from++];
    }
    return ifd_build_reshape(b, x, dim, rank);
}

static uint32_t transpose(struct ifd_onnx_call *call, uint32_t x)
{
    const uint32_t rank = shape_of(call, 0).rank;
    struct ifd_ints perm;
    uint32_t order[IFD_MAX_RANK];
    const bool has_perm = ifd_onnx_ints(call, "perm", &perm);
    if (has_perm && perm.count != rank) {
        return ifd_build_fail(call->b, IFD_INVALID, "a permutation of %u dimensions for %u",
                              perm.count, rank);
    }
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = has_perm ? ifd_build_axis(call->b, perm.value[d], rank) : rank - 1 - d;
    }
    return ifd_build_transpose(call->b, x, order);
}

/* ---- joined and cut ---- */

static uint32_t concat(struct ifd_onnx_call *call, uint32_t x)
{
    (void)x;
    const struct ifd_axis_attrs attrs = {.axis = ifd_onnx_int32(call, "axis", 0)};
    return call->input_count == 1 ? call->input[0]
                                  : ifd_build_node(call->b, IFD_OP_CONCAT, call->input,
                                                   call->input_count, NULL, &attrs);
}

static uint32_t split(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "axis", 0), shape.rank);
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "split");
    const uint32_t count = call->output_count;
    const struct ifd_bytes sizes = call->input_count > 1
                                       ? ifd_build_content(b, ifd_build_known(b, call->input[1]))
                                       : (struct ifd_bytes){0};
    const bool by_input = call->input_count > 1;
    if (by_input && sizes.size != count * sizeof(int64_t)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "the sizes of %u parts are not constant", count);
    }
    if (attr && attr->int_count != count) {
        ifd_build_fail(b, IFD_INVALID, "%u sizes for %u parts", attr->int_count, count);
    }
    const int64_t even = (shape.dim[axis] + count - 1) / count; /* the last one may be smaller */
    int64_t begin = 0;
    for (uint32_t i = 0; b->code == IFD_OK && i < count; i++) {
        const int64_t left = shape.dim[axis] - begin;
        int64_t size = even < left ? even : left;
        if (by_input) {
            memcpy(&size, sizes.data + i * sizeof(size), sizeof(size));
        } else if (attr) {
            size = attr->ints[i];
        }
        if (size < 0 || size > left) {
            ifd_build_fail(b, IFD_INVALID, "part %u of a split has %lld of %lld elements", i,
                           (long long)size, (long long)left);
            return IFD_NONE;
        }
        call->output[i] = ifd_build_cut(b, x, axis, begin, size);
        begin += size;
    }
    return call->output[0];
}

/* ---- larger ---- */

static uint32_t expand(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    const struct ifd_ints wanted = ifd_build_ints_of(b, call->input[1], "the shape");
    struct ifd_shape target = {.rank = wanted.count};
    struct ifd_shape both;
    for (uint32_t d = 0; d < wanted.count; d++) {
        target.dim[d] = wanted.value[d];
    }
    if (!ifd_shape_broadcast(&shape, &target, &both)) {
        return ifd_build_fail(b, IFD_INVALID, "shapes %s and %s do not broadcast",
                              ifd_shape_text(&shape).s, ifd_shape_text(&target).s);
    }
    struct ifd_ints dims = {.count = both.rank};
    memcpy(dims.value, both.dim, sizeof(dims.value));
    return ifd_shape_equal(&shape, &both) ? x : broadcast(b, x, &dims);
}

static uint32_t tile(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_tile_attrs attrs = {
        .repeats = ifd_build_ints_of(call->b, call->input[1], "the list of repeats")};
    return ifd_build_node(call->b, IFD_OP_TILE, &x, 1, NULL, &attrs);
}

/* ---- blocks ---- */

static uint32_t move_blocks(struct ifd_onnx_call *call, uint32_t x, bool to_depth)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    const struct ifd_space_depth_attrs attrs = {.block = ifd_onnx_int32(call, "blocksize", 1)};
    const int64_t block = attrs.block;
    if (shape.rank != 4 || block < 1) {
        return ifd_build_fail(b, IFD_INVALID, "shape %s in blocks of %lld",
                              ifd_shape_text(&shape).s, (long long)block);
    }
    if (ifd_onnx_text_is(call, "mode", "DCR", true)) {
        const uint32_t nhwc = ifd_build_to_nhwc(b, x);
        return ifd_build_to_nchw(
            b, ifd_build_node(b, to_depth ? IFD_OP_SPACE_TO_DEPTH : IFD_OP_DEPTH_TO_SPACE, &nhwc, 1,
                              NULL, &attrs));
    }
    if (to_depth) {
        const int64_t height = shape.dim[2] / block, width = shape.dim[3] / block;
        if (shape.dim[1] > INT64_MAX / (block * block)) {
            return ifd_build_fail(b, IFD_TOO_LARGE, "shape %s in blocks of %lld",
                                  ifd_shape_text(&shape).s, (long long)block);
        }
        const int64_t whole[4] = {shape.dim[0], shape.dim[1] * block * block, height, width};
        const int64_t parts[6] = {shape.dim[0], shape.dim[1], height, block, width, block};
        const uint32_t moved = ifd_build_transpose(b, ifd_build_reshape(b, x, parts, 6),
                                                   (const uint32_t[]){0, 1, 3, 5, 2, 4});
        return ifd_build_reshape(b, moved, whole, 4);
    }
    const int64_t depth = shape.dim[1] / block / block;
    const int64_t parts[6] = {shape.dim[0], depth, block, block, shape.dim[2], shape.dim[3]};
    const uint32_t moved = ifd_build_transpose(b, ifd_build_reshape(b, x, parts, 6),
                                               (const uint32_t[]){0, 1, 4, 2, 5, 3});
    const int64_t whole[4] = {shape.dim[0], depth, shape.dim[2] * block, shape.dim[3] * block};
    return ifd_build_reshape(b, moved, whole, 4);
}

static uint32_t depth_to_space(struct ifd_onnx_call *call, uint32_t x)
{
    return move_blocks(call, x, false);
}

static uint32_t space_to_depth(struct ifd_onnx_call *call, uint32_t x)
{
    return move_blocks(call, x, true);
}

/* ---- matrices ---- */

#define DIAGONALS_MAX (1 << 20)

/* [rows, columns]: the number of the diagonal that an element lies on. */
static uint32_t diagonals(struct ifd_builder *b, int64_t rows, int64_t columns)
{
    uint32_t step[3] = {ifd_build_number(b, IFD_S64, 0), ifd_build_number(b, IFD_S64, 0),
                        ifd_build_number(b, IFD_S64, 1)};
    if (rows > DIAGONALS_MAX || columns > DIAGONALS_MAX) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "a matrix of %lld x %lld, limit %d",
                              (long long)rows, (long long)columns, DIAGONALS_MAX);
    }
    step[1] = ifd_build_number(b, IFD_S64, (double)columns);
    const uint32_t column = ifd_build_node(b, IFD_OP_RANGE, step, 3, NULL, NULL);
    step[1] = ifd_build_number(b, IFD_S64, (double)rows);
    const uint32_t row = ifd_build_reshape(b, ifd_build_node(b, IFD_OP_RANGE, step, 3, NULL, NULL),
                                           (const int64_t[]){rows, 1}, 2);
    return ifd_build_binary(b, IFD_OP_SUB, column, row);
}

uint32_t ifd_onnx_on_diagonal(struct ifd_builder *b, uint32_t x, uint32_t i, uint32_t k)
{
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    int64_t dim[IFD_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dim[i] = desc.shape.dim[i];
    dim[k] = desc.shape.dim[k];
    const uint32_t diagonal =
        ifd_build_reshape(b, diagonals(b, dim[i], dim[k]), dim, desc.shape.rank);
    const uint32_t mask =
        ifd_onnx_compared(b, IFD_OP_EQUAL, diagonal, ifd_build_number(b, IFD_S64, 0));
    return ifd_onnx_selected(b, mask, x, ifd_build_number(b, desc.dtype, 0));
}

static uint32_t triangle(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    const struct ifd_shape *shape = &desc.shape;
    const bool is_upper = ifd_onnx_int(call, "upper", 1) != 0;
    const uint32_t k = call->input_count > 1 ? call->input[1] : ifd_build_number(b, IFD_S64, 0);
    if (shape->rank < 2) {
        return ifd_build_fail(b, IFD_INVALID, "a triangle of shape %s", ifd_shape_text(shape).s);
    }
    const uint32_t diagonal =
        diagonals(b, shape->dim[shape->rank - 2], shape->dim[shape->rank - 1]);
    const uint32_t mask =
        ifd_onnx_compared(b, is_upper ? IFD_OP_GREATER_EQUAL : IFD_OP_LESS_EQUAL, diagonal, k);
    return ifd_onnx_selected(b, mask, x, ifd_build_number(b, desc.dtype, 0));
}

static uint32_t eye_like(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = *ifd_build_desc(b, x);
    const struct ifd_onnx_attr *type = ifd_onnx_attr(call, "dtype");
    enum ifd_dtype dtype = desc.dtype;
    if (desc.shape.rank != 2 || (type && !ifd_onnx_dtype(type->i, &dtype))) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "a matrix of shape %s or its element type",
                              ifd_shape_text(&desc.shape).s);
    }
    const int64_t k = ifd_onnx_int(call, "k", 0);
    ifd_trace_read(b->graph, x, true, b->source_index);
    const uint32_t is_on =
        ifd_onnx_compared(b, IFD_OP_EQUAL, diagonals(b, desc.shape.dim[0], desc.shape.dim[1]),
                          ifd_build_list(b, &k, 1));
    return ifd_build_cast(b, is_on, dtype);
}

static uint32_t identity(struct ifd_onnx_call *call, uint32_t x)
{
    (void)call;
    return x;
}

/* In inference it keeps everything, and so does it in training with a ratio of 0. */
static uint32_t dropout(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t ratio = ifd_onnx_input(call, 1), trains = ifd_onnx_input(call, 2);
    const bool keeps = trains == IFD_NONE ||
                       ifd_build_number_of(b, trains, "\"training_mode\"") == 0 ||
                       (ratio != IFD_NONE && ifd_build_number_of(b, ratio, "\"ratio\"") == 0);
    if (!keeps) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "\"training_mode\" is set");
    }
    if (call->output_count > 1) {
        const struct ifd_shape shape = shape_of(call, 0);
        struct ifd_ints dims = {.count = shape.rank};
        memcpy(dims.value, shape.dim, sizeof(dims.value));
        call->output[1] = broadcast(b, ifd_build_number(b, IFD_BOOL, 1), &dims);
    }
    return x;
}

void ifd_onnx_move(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const movements[])(struct ifd_onnx_call *, uint32_t) = {
        [IFD_ONNX_CONSTANT] = constant,
        [IFD_ONNX_CONSTANT_OF_SHAPE] = constant_of_shape,
        [IFD_ONNX_SHAPE] = shape_values,
        [IFD_ONNX_SIZE] = element_count,
        [IFD_ONNX_RESHAPE] = reshape,
        [IFD_ONNX_FLATTEN] = flatten,
        [IFD_ONNX_SQUEEZE] = squeeze,
        [IFD_ONNX_UNSQUEEZE] = unsqueeze,
        [IFD_ONNX_TRANSPOSE] = transpose,
        [IFD_ONNX_CONCAT] = concat,
        [IFD_ONNX_SPLIT] = split,
        [IFD_ONNX_SLICE] = ifd_onnx_slice,
        [IFD_ONNX_EXPAND] = expand,
        [IFD_ONNX_TILE] = tile,
        [IFD_ONNX_DEPTH_TO_SPACE] = depth_to_space,
        [IFD_ONNX_SPACE_TO_DEPTH] = space_to_depth,
        [IFD_ONNX_RANGE] = ifd_onnx_range,
        [IFD_ONNX_TRILU] = triangle,
        [IFD_ONNX_EYE_LIKE] = eye_like,
        [IFD_ONNX_DROPOUT] = dropout,
        [IFD_ONNX_IDENTITY] = identity,
    };
    call->output[0] = movements[which](call, call->input_count > 0 ? call->input[0] : IFD_NONE);
}
