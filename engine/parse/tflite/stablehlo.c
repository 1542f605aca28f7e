/* Operators that the format took over from StableHLO, as several of ours. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/parse/tflite/composite.h"

#define WINDOW_MAX 4096 /* elements along all dimensions of a window: nodes of ours */

enum { ADD = 163, MULTIPLY = 165, MAXIMUM = 166, AND = 176, MINIMUM = 181 }; /* of the format */

static int32_t builtin_of(const struct ifd_composite *c)
{
    return c->build->model->opcode[c->op->opcode_index].builtin;
}

static const struct ifd_shape *shape_of(const struct ifd_composite *c, uint32_t value)
{
    return &ifd_build_desc(c->b, value)->shape;
}

static enum ifd_dtype dtype_of(const struct ifd_composite *c, uint32_t value)
{
    return ifd_build_desc(c->b, value)->dtype;
}

/* ---- element by element ---- */

/* Of two tensors of one shape. Quantized numbers would need scales, which StableHLO does not have.
 */
static bool is_pair(const struct ifd_composite *c, uint32_t dtypes)
{
    if (!ifd_composite_has_inputs(c, 2)) {
        return false;
    }
    const struct ifd_desc *x = ifd_build_desc(c->b, c->input[0]);
    const struct ifd_desc *y = ifd_build_desc(c->b, c->input[1]);
    if ((dtypes & IFD_BIT(x->dtype)) == 0 || x->dtype != y->dtype || x->quant.count > 0 ||
        y->quant.count > 0 || !ifd_shape_equal(&x->shape, &y->shape)) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "%s %s and %s %s", ifd_dtype_name(x->dtype),
                       ifd_shape_text(&x->shape).s, ifd_dtype_name(y->dtype),
                       ifd_shape_text(&y->shape).s);
    }
    return c->b->code == IFD_OK;
}

void ifd_composite_hlo_binary(struct ifd_composite *c)
{
    static const struct {
        int32_t builtin;
        enum ifd_op op;
    } ops[] = {{ADD, IFD_OP_ADD},
               {MULTIPLY, IFD_OP_MUL},
               {MAXIMUM, IFD_OP_MAXIMUM},
               {MINIMUM, IFD_OP_MINIMUM}};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (ops[i].builtin == builtin_of(c) &&
            is_pair(c, IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))) {
            c->output[0] = ifd_build_binary(c->b, ops[i].op, c->input[0], c->input[1]);
        }
    }
}

/* Inputs min, x, max; a bound is of x's shape or a scalar. */
void ifd_composite_hlo_clamp(struct ifd_composite *c)
{
    const uint32_t dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64);
    if (!ifd_composite_has_inputs(c, 3)) {
        return;
    }
    const struct ifd_desc *x = ifd_build_desc(c->b, c->input[1]);
    for (uint32_t i = 0; i < 3; i++) {
        const struct ifd_desc *y = ifd_build_desc(c->b, c->input[i]);
        const bool fits = y->shape.rank == 0 || ifd_shape_equal(&x->shape, &y->shape);
        if ((dtypes & IFD_BIT(y->dtype)) == 0 || x->dtype != y->dtype || y->quant.count > 0 ||
            !fits) {
            ifd_build_fail(c->b, IFD_UNSUPPORTED, "input %u of %s %s beside %s %s", i,
                           ifd_dtype_name(y->dtype), ifd_shape_text(&y->shape).s,
                           ifd_dtype_name(x->dtype), ifd_shape_text(&x->shape).s);
            return;
        }
    }
    const uint32_t raised = ifd_build_binary(c->b, IFD_OP_MAXIMUM, c->input[1], c->input[0]);
    c->output[0] = ifd_build_binary(c->b, IFD_OP_MINIMUM, raised, c->input[2]);
}

void ifd_composite_hlo_and(struct ifd_composite *c)
{
    if (is_pair(c, IFD_BIT(IFD_BOOL) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))) {
        const bool is_flag = dtype_of(c, c->input[0]) == IFD_BOOL;
        c->output[0] = ifd_build_binary(c->b, is_flag ? IFD_OP_LOGICAL_AND : IFD_OP_BITWISE_AND,
                                        c->input[0], c->input[1]);
    }
}

/* A product with a power of 2. */
void ifd_composite_hlo_shift_left(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (is_pair(c, IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_S32))) {
        const uint32_t two = ifd_build_number(b, IFD_S64, 2);
        const uint32_t power =
            ifd_build_binary(b, IFD_OP_POW, two, ifd_build_cast(b, c->input[1], IFD_S64));
        const uint32_t wide =
            ifd_build_binary(b, IFD_OP_MUL, ifd_build_cast(b, c->input[0], IFD_S64), power);
        c->output[0] = ifd_build_cast(b, wide, dtype_of(c, c->input[0]));
    }
}

/* ---- elements between and around others ---- */

/* A tensor whose elements are all the scalar value. */
static uint32_t filled(const struct ifd_composite *c, uint32_t value, const int64_t *dim,
                       uint32_t rank)
{
    struct ifd_broadcast_to_attrs attrs = {.shape = {.count = rank}};
    memcpy(attrs.shape.value, dim, rank * sizeof(*dim));
    return ifd_build_node(c->b, IFD_OP_BROADCAST_TO, &value, 1, NULL, &attrs);
}

static uint32_t join(const struct ifd_composite *c, const uint32_t *part, uint32_t count)
{
    const struct ifd_axis_attrs middle = {.axis = 1};
    return count == 1 ? part[0] : ifd_build_node(c->b, IFD_OP_CONCAT, part, count, NULL, &middle);
}

/* x as [outer, n, inner], n being its size along an axis. */
static uint32_t as_cube(const struct ifd_composite *c, uint32_t x, uint32_t axis, int64_t cube[3])
{
    const struct ifd_shape shape = *shape_of(c, x);
    cube[0] = cube[2] = 1;
    cube[1] = shape.dim[axis];
    for (uint32_t d = 0; d < shape.rank; d++) { /* of a tensor whose bytes can be counted */
        cube[d < axis ? 0 : 2] *= d == axis ? 1 : shape.dim[d];
    }
    return ifd_build_reshape(c->b, x, cube, 3);
}

/* count times value behind each element along an axis but the last. */
static uint32_t spread(const struct ifd_composite *c, uint32_t x, uint32_t axis, int64_t count,
                       uint32_t value)
{
    struct ifd_shape shape = *shape_of(c, x);
    const int64_t n = shape.dim[axis];
    int64_t cube[3];
    if (count == 0 || n < 2 || c->b->code != IFD_OK) {
        return x;
    }
    const uint32_t thick = as_cube(c, x, axis, cube);
    const int64_t row[3] = {cube[0] * n, 1, cube[2]}, gap[3] = {cube[0] * n, count, cube[2]};
    const uint32_t part[2] = {ifd_build_reshape(c->b, thick, row, 3), filled(c, value, gap, 3)};
    const int64_t wide[3] = {cube[0], n * (count + 1), cube[2]};
    const uint32_t all = ifd_build_reshape(c->b, join(c, part, 2), wide, 3);
    shape.dim[axis] = (n - 1) * (count + 1) + 1;
    return ifd_build_reshape(c->b, ifd_build_cut(c->b, all, 1, 0, shape.dim[axis]), shape.dim,
                             shape.rank);
}

/* low and high times value around; elements go if that is less than 0. */
static uint32_t extend(const struct ifd_composite *c, uint32_t x, uint32_t axis, int64_t low,
                       int64_t high, uint32_t value)
{
    struct ifd_shape shape = *shape_of(c, x);
    const int64_t n = shape.dim[axis], most = INT32_MAX;
    int64_t cube[3];
    if (c->b->code != IFD_OK || (low == 0 && high == 0)) {
        return x;
    }
    if (low < -n || low > most || high < -n || high > most || n + low + high < 0) {
        return ifd_build_fail(c->b, IFD_CORRUPT,
                              "a padding of %lld and %lld for dimension %u of %s", (long long)low,
                              (long long)high, axis, ifd_shape_text(&shape).s);
    }
    const int64_t first = low < 0 ? -low : 0, last = high < 0 ? n + high : n;
    uint32_t part[3], count = 0;
    const uint32_t thick = as_cube(c, x, axis, cube);
    if (low > 0) {
        part[count++] = filled(c, value, (int64_t[]){cube[0], low, cube[2]}, 3);
    }
    part[count++] = ifd_build_cut(c->b, thick, 1, first, last > first ? last - first : 0);
    if (high > 0) {
        part[count++] = filled(c, value, (int64_t[]){cube[0], high, cube[2]}, 3);
    }
    shape.dim[axis] = n + low + high;
    return ifd_build_reshape(c->b, join(c, part, count), shape.dim, shape.rank);
}

static uint32_t scalar(const struct ifd_composite *c, uint32_t value)
{
    return ifd_build_reshape(c->b, value, NULL, 0);
}

/* Has y the type and the quantization of x? */
static bool is_like(const struct ifd_composite *c, uint32_t x, uint32_t y)
{
    if (dtype_of(c, x) != dtype_of(c, y) ||
        !ifd_quant_equal(ifd_build_desc(c->b, x), ifd_build_desc(c->b, y))) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "%s with %s of another type or quantization",
                       ifd_dtype_name(dtype_of(c, x)), ifd_dtype_name(dtype_of(c, y)));
    }
    return c->b->code == IFD_OK;
}

static bool has_numbers(const struct ifd_composite *c, uint32_t count, uint32_t rank)
{
    if (c->b->code == IFD_OK && count != rank) {
        ifd_build_fail(c->b, IFD_CORRUPT, "%u numbers for %u dimensions", count, rank);
    }
    return c->b->code == IFD_OK;
}

/* Inputs: x, the distance of its elements along each dimension, what comes between. */
void ifd_composite_dilate(struct ifd_composite *c)
{
    if (!ifd_composite_has_inputs(c, 3)) {
        return;
    }
    const struct ifd_ints distance = ifd_build_ints_of(c->b, c->input[1], "the dilations");
    uint32_t x = c->input[0];
    const uint32_t value = scalar(c, c->input[2]), rank = shape_of(c, x)->rank;
    if (!has_numbers(c, distance.count, rank)) {
        return;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (distance.value[d] < 1 || distance.value[d] > INT32_MAX) {
            ifd_build_fail(c->b, IFD_CORRUPT, "a dilation of %lld", (long long)distance.value[d]);
            return;
        }
        x = spread(c, x, d, distance.value[d] - 1, value);
    }
    c->output[0] = x;
}

static const struct ifd_tflite_windows *windows_of(const struct ifd_composite *c)
{
    if (!c->options->windows) {
        ifd_build_fail(c->b, IFD_CORRUPT, "no options");
    }
    return c->options->windows;
}

void ifd_composite_hlo_pad(struct ifd_composite *c)
{
    const struct ifd_tflite_windows *o = windows_of(c);
    if (!o || !ifd_composite_has_inputs(c, 2)) {
        return;
    }
    uint32_t x = c->input[0];
    const uint32_t value = scalar(c, c->input[1]), rank = shape_of(c, x)->rank;
    if (!has_numbers(c, o->low.count, rank) || !has_numbers(c, o->high.count, rank) ||
        !has_numbers(c, o->between.count, rank)) {
        return;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (o->between.value[d] < 0 || o->between.value[d] > INT32_MAX) {
            ifd_build_fail(c->b, IFD_CORRUPT, "%lld elements between others",
                           (long long)o->between.value[d]);
            return;
        }
        x = spread(c, x, d, o->between.value[d], value);
        x = extend(c, x, d, o->low.value[d], o->high.value[d], value);
    }
    c->output[0] = x;
}

/* Column k of the constant [rank, 2]. */
static struct ifd_ints column_of(const struct ifd_composite *c, uint32_t pairs, int64_t k)
{
    const int64_t rank = shape_of(c, pairs)->dim[0];
    const uint32_t column = ifd_build_cut(c->b, pairs, 1, k, 1);
    return ifd_build_ints_of(c->b, ifd_build_reshape(c->b, column, &rank, 1), "the paddings");
}

/* PADV2 with a value of any type, which a run may compute. Inputs: x, paddings [rank, 2], value. */
void ifd_composite_pad(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 3)) {
        return;
    }
    uint32_t x = c->input[0];
    const uint32_t value = scalar(c, c->input[2]), rank = shape_of(c, x)->rank;
    const uint32_t pads = ifd_build_known(b, c->input[1]);
    const struct ifd_shape *shape = shape_of(c, pads);
    if (b->code == IFD_OK && (shape->rank != 2 || shape->dim[0] != rank || shape->dim[1] != 2)) {
        ifd_build_fail(b, IFD_CORRUPT, "paddings %s for %u dimensions", ifd_shape_text(shape).s,
                       rank);
    }
    if (b->code == IFD_OK && !is_like(c, x, value)) {
        return;
    }
    const struct ifd_ints low = column_of(c, pads, 0), high = column_of(c, pads, 1);
    for (uint32_t d = 0; d < rank && b->code == IFD_OK; d++) {
        if (low.value[d] < 0 || high.value[d] < 0) {
            ifd_build_fail(b, IFD_CORRUPT, "a padding of %lld and %lld", (long long)low.value[d],
                           (long long)high.value[d]);
        }
        x = extend(c, x, d, low.value[d], high.value[d], value);
    }
    c->output[0] = x;
}

/* ---- windows ---- */

struct windows {
    struct ifd_ints size, stride, dilation;
    enum ifd_op op;
};

/* What a window along one dimension makes of x: w slices. */
static uint32_t reduce_axis(const struct ifd_composite *c, const struct windows *w, uint32_t x,
                            uint32_t axis)
{
    const struct ifd_shape shape = *shape_of(c, x);
    const int64_t size = w->size.value[axis], stride = w->stride.value[axis];
    const int64_t dilation = w->dilation.value[axis];
    const int64_t places = (shape.dim[axis] - (size - 1) * dilation - 1) / stride + 1;
    struct ifd_strided_slice_attrs attrs = {.begin = {.count = shape.rank},
                                            .end = {.count = shape.rank},
                                            .strides = {.count = shape.rank}};
    uint32_t y = IFD_NONE;
    if (shape.dim[axis] < (size - 1) * dilation + 1) {
        return ifd_build_fail(c->b, IFD_UNSUPPORTED, "a window of %lld in dimension %u of %s",
                              (long long)size, axis, ifd_shape_text(&shape).s);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        attrs.end.value[d] = shape.dim[d];
        attrs.strides.value[d] = 1;
    }
    for (int64_t i = 0; i < size && c->b->code == IFD_OK; i++) {
        attrs.begin.value[axis] = i * dilation;
        attrs.end.value[axis] = i * dilation + (places - 1) * stride + 1;
        attrs.strides.value[axis] = stride;
        const uint32_t part = ifd_build_node(c->b, IFD_OP_STRIDED_SLICE, &x, 1, NULL, &attrs);
        y = i == 0 ? part : ifd_build_binary(c->b, w->op, y, part);
    }
    return y;
}

/* All dimensions, one after the other; each result begins with init. */
static uint32_t reduce(const struct ifd_composite *c, const struct windows *w, uint32_t x,
                       uint32_t init)
{
    const struct ifd_desc desc = *ifd_build_desc(c->b, x);
    const bool is_logical = w->op == IFD_OP_LOGICAL_AND || w->op == IFD_OP_LOGICAL_OR;
    const uint32_t dtypes =
        is_logical ? IFD_BIT(IFD_BOOL) : IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64);
    int64_t nodes = 0;
    if (!has_numbers(c, w->size.count, desc.shape.rank) ||
        !has_numbers(c, w->stride.count, desc.shape.rank) ||
        !has_numbers(c, w->dilation.count, desc.shape.rank)) {
        return IFD_NONE;
    }
    if ((dtypes & IFD_BIT(desc.dtype)) == 0 || desc.quant.count > 0) {
        return ifd_build_fail(c->b, IFD_UNSUPPORTED, "windows of %s", ifd_dtype_name(desc.dtype));
    }
    for (uint32_t d = 0; d < desc.shape.rank; d++) {
        const int64_t size = w->size.value[d];
        if (size < 1 || w->stride.value[d] < 1 || w->dilation.value[d] < 1 ||
            w->stride.value[d] > INT32_MAX || w->dilation.value[d] > INT32_MAX) {
            return ifd_build_fail(c->b, IFD_CORRUPT, "a window of %lld, stride %lld, dilation %lld",
                                  (long long)size, (long long)w->stride.value[d],
                                  (long long)w->dilation.value[d]);
        }
        nodes = size > WINDOW_MAX ? WINDOW_MAX + 1 : nodes + size;
        if (nodes > WINDOW_MAX) {
            return ifd_build_fail(c->b, IFD_UNSUPPORTED, "a window of more than %d along its sides",
                                  WINDOW_MAX);
        }
    }
    for (uint32_t d = 0; d < desc.shape.rank && c->b->code == IFD_OK; d++) {
        if (w->size.value[d] > 1 || w->stride.value[d] > 1) {
            x = reduce_axis(c, w, x, d);
        }
    }
    return ifd_build_binary(c->b, w->op, x, init);
}

/* Inputs: x, where each result begins, size of the window, strides, dilations. */
void ifd_composite_reduce_window(struct ifd_composite *c)
{
    static const enum ifd_op ops[] = {
        [1] = IFD_OP_ADD,     [2] = IFD_OP_MUL,         [3] = IFD_OP_MINIMUM,
        [4] = IFD_OP_MAXIMUM, [5] = IFD_OP_LOGICAL_AND, [6] = IFD_OP_LOGICAL_OR};
    const int32_t function = c->options->mode;
    if (!ifd_composite_has_inputs(c, 5)) {
        return;
    }
    if (function < 1 || function >= (int32_t)(sizeof(ops) / sizeof(ops[0]))) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "reduce function %d", function);
        return;
    }
    const struct windows w = {.size = ifd_build_ints_of(c->b, c->input[2], "the window"),
                              .stride = ifd_build_ints_of(c->b, c->input[3], "the strides"),
                              .dilation = ifd_build_ints_of(c->b, c->input[4], "the dilations"),
                              .op = ops[function]};
    if (c->b->code == IFD_OK) {
        c->output[0] = reduce(c, &w, c->input[0], scalar(c, c->input[1]));
    }
}

/* What the only operator of a subgraph of two inputs computes. */
static bool find_function(const struct ifd_composite *c, enum ifd_op *ret)
{
    static const struct {
        int32_t builtin;
        enum ifd_op op, flag_op; /* flag_op: of bool */
    } known[] = {{ADD, IFD_OP_ADD, IFD_OP_LOGICAL_OR},
                 {MULTIPLY, IFD_OP_MUL, IFD_OP_LOGICAL_AND},
                 {MAXIMUM, IFD_OP_MAXIMUM, IFD_OP_LOGICAL_OR},
                 {MINIMUM, IFD_OP_MINIMUM, IFD_OP_LOGICAL_AND},
                 {AND, IFD_OP_BITWISE_AND, IFD_OP_LOGICAL_AND}};
    const struct ifd_tflite_model *model = c->build->model;
    const struct ifd_tflite_subgraph *g = c->options->subgraph[0] < model->subgraph_count
                                              ? &model->subgraph[c->options->subgraph[0]]
                                              : NULL;
    if (!g || g->op_count != 1 || g->input.count != 2 || g->op[0].input.count != 2) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "a body of more than one operator");
        return false;
    }
    const int32_t builtin = model->opcode[g->op[0].opcode_index].builtin;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].builtin == builtin) {
            *ret = dtype_of(c, c->input[0]) == IFD_BOOL ? known[i].flag_op : known[i].op;
            return true;
        }
    }
    ifd_build_fail(c->b, IFD_UNSUPPORTED, "a body of operator number %d", builtin);
    return false;
}

/* Inputs: x, where each result begins. */
void ifd_composite_hlo_reduce_window(struct ifd_composite *c)
{
    const struct ifd_tflite_windows *o = windows_of(c);
    enum ifd_op op = IFD_OP_ADD;
    if (!o || !ifd_composite_has_inputs(c, 2) || !find_function(c, &op)) {
        return;
    }
    const struct windows w = {
        .size = o->size, .stride = o->stride, .dilation = o->dilation, .op = op};
    uint32_t x = c->input[0];
    const uint32_t init = scalar(c, c->input[1]), rank = shape_of(c, x)->rank;
    if (!has_numbers(c, o->between.count, rank) || !has_numbers(c, o->low.count, rank) ||
        !has_numbers(c, o->high.count, rank)) {
        return;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (o->between.value[d] < 1 || o->between.value[d] > INT32_MAX) {
            ifd_build_fail(c->b, IFD_CORRUPT, "a dilation of %lld", (long long)o->between.value[d]);
            return;
        }
        x = spread(c, x, d, o->between.value[d] - 1, init);
        x = extend(c, x, d, o->low.value[d], o->high.value[d], init);
    }
    c->output[0] = reduce(c, &w, x, init);
}
