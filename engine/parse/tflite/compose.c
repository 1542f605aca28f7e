/* Operators without a state as several of ours: sparse and segmented tensors, lookups, layers. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/tflite/composite.h"

/* ---- helpers ---- */

static const struct ifd_shape *shape_of(const struct ifd_composite *c, uint32_t value)
{
    return &ifd_build_desc(c->b, value)->shape;
}

static enum ifd_dtype dtype_of(const struct ifd_composite *c, uint32_t value)
{
    return ifd_build_desc(c->b, value)->dtype;
}

static int64_t product(const struct ifd_shape *shape, uint32_t first, uint32_t last)
{
    int64_t all = 1;
    for (uint32_t d = first; d < last; d++) {
        all *= shape->dim[d]; /* of a tensor whose bytes can be counted */
    }
    return all;
}

static uint32_t reshape(const struct ifd_composite *c, uint32_t x, const struct ifd_shape *shape)
{
    return ifd_build_reshape(c->b, x, shape->dim, shape->rank);
}

/* x as rows [n, rest], n being the product of its first dimensions. */
static uint32_t as_rows(const struct ifd_composite *c, uint32_t x, uint32_t first)
{
    const struct ifd_shape shape = *shape_of(c, x);
    return ifd_build_reshape(
        c->b, x, (int64_t[]){product(&shape, 0, first), product(&shape, first, shape.rank)}, 2);
}

static uint32_t scatter(const struct ifd_composite *c, uint32_t base, uint32_t at, uint32_t rows,
                        enum ifd_scatter_mode mode)
{
    const struct ifd_scatter_rows_attrs attrs = {.mode = (int32_t)mode};
    return ifd_build_node(c->b, IFD_OP_SCATTER_ROWS, (const uint32_t[]){base, at, rows}, 3, NULL,
                          &attrs);
}

/* Indices [n, dims] as places in a row-major tensor of these dimensions: [n]. */
static uint32_t places_of(const struct ifd_composite *c, uint32_t indices, const int64_t *dim,
                          uint32_t dims)
{
    int64_t stride[IFD_MAX_RANK];
    for (uint32_t d = dims; d > 0; d--) {
        stride[d - 1] = d == dims ? 1 : stride[d] * dim[d];
    }
    const struct ifd_ints last = {.count = 1, .value = {1}};
    const uint32_t wide = ifd_build_cast(c->b, indices, IFD_S64);
    const uint32_t strides = ifd_build_list(c->b, stride, dims);
    const uint32_t parts = ifd_build_binary(c->b, IFD_OP_MUL, wide, strides);
    return ifd_build_reduce(c->b, IFD_OP_REDUCE_SUM, parts, &last, false);
}

/* Elements of a shape that the file holds as a constant. */
static bool count_elements(const struct ifd_composite *c, const struct ifd_ints *dim, int64_t *ret)
{
    struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = dim->count}};
    size_t count = 0;
    bool fits = true;
    for (uint32_t d = 0; d < dim->count; d++) {
        fits = fits && dim->value[d] >= 0;
        desc.shape.dim[d] = dim->value[d];
    }
    fits =
        fits && ifd_desc_fits(&desc, c->b->tensor_bytes) && ifd_shape_elements(&desc.shape, &count);
    *ret = fits ? (int64_t)count : 0;
    if (!fits) {
        ifd_build_fail(c->b, IFD_TOO_LARGE, "a shape of %s", ifd_shape_text(&desc.shape).s);
    }
    return c->b->code == IFD_OK;
}

/* ---- elementwise ---- */

/* A sparse constant is made dense where it is read. */
void ifd_composite_densify(struct ifd_composite *c)
{
    c->output[0] = c->input[0];
}

void ifd_composite_add_n(struct ifd_composite *c)
{
    if (!ifd_composite_has_inputs(c, c->input_count)) {
        return;
    }
    c->output[0] = c->input[0];
    for (uint32_t i = 1; i < c->input_count; i++) {
        c->output[0] = ifd_build_binary(c->b, IFD_OP_ADD, c->output[0], c->input[i]);
    }
}

/* Steps from min to max, moved so that 0 is one of them. */
void ifd_composite_fake_quant(struct ifd_composite *c)
{
    const struct ifd_tflite_options *o = c->options;
    struct ifd_builder *b = c->b;
    if (!(o->min < o->max) || o->num_bits < 2 || o->num_bits > 16 || !isfinite(o->max - o->min)) {
        ifd_build_fail(b, IFD_CORRUPT, "%d bits from %g to %g", o->num_bits, (double)o->min,
                       (double)o->max);
        return;
    }
    const float low = o->narrow_range ? 1 : 0, high = (float)((1 << o->num_bits) - 1);
    const float scale = (o->max - o->min) / (high - low);
    const float at = low - o->min / scale;
    const float zero = at < low ? low : at > high ? high : roundf(at);
    const float min = (low - zero) * scale, max = (high - zero) * scale;
    const uint32_t clamped = ifd_build_clamp(b, c->input[0], (double)min, (double)max);
    const uint32_t shifted = ifd_build_with(b, IFD_OP_SUB, clamped, (double)min);
    const uint32_t steps = ifd_build_with(b, IFD_OP_MUL, shifted, (double)(1.0f / scale));
    const uint32_t rounded =
        ifd_build_unary(b, IFD_OP_FLOOR, ifd_build_with(b, IFD_OP_ADD, steps, 0.5));
    c->output[0] = ifd_build_with(
        b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, rounded, (double)scale), (double)min);
}

/* The number of boundaries that are not above x. */
void ifd_composite_bucketize(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_tflite_options *o = c->options;
    struct ifd_shape thin = *shape_of(c, c->input[0]);
    const enum ifd_dtype dtype = dtype_of(c, c->input[0]);
    const struct ifd_desc list = {.dtype = IFD_F32,
                                  .shape = {.rank = 1, .dim = {o->boundary_count}}};
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    if (thin.rank == IFD_MAX_RANK || (dtype != IFD_F32 && dtype != IFD_S32 && dtype != IFD_S64)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s with %u dimensions", ifd_dtype_name(dtype),
                       thin.rank);
        return;
    }
    const struct ifd_ints last = {.count = 1, .value = {thin.rank}};
    thin.dim[thin.rank++] = 1;
    const uint32_t boundaries =
        ifd_build_constant(b, &list,
                           (struct ifd_bytes){.data = (const uint8_t *)o->boundaries,
                                              .size = o->boundary_count * sizeof(*o->boundaries)},
                           0);
    const uint32_t pair[2] = {reshape(c, ifd_build_cast(b, c->input[0], IFD_F32), &thin),
                              boundaries};
    const uint32_t is_above = ifd_build_node(b, IFD_OP_GREATER_EQUAL, pair, 2, &flag, NULL);
    c->output[0] =
        ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_build_cast(b, is_above, IFD_S32), &last, false);
}

/* The imaginary or, also by a cast, the real part of complex numbers, which are pairs of floats. */
void ifd_composite_complex_part(struct ifd_composite *c)
{
    enum { IMAG = 133 };
    const struct ifd_desc real = {.dtype = IFD_F32};
    if (!ifd_composite_has_inputs(c, 1)) {
        return;
    }
    const struct ifd_shape shape = *shape_of(c, c->input[0]);
    const int32_t builtin = c->build->model->opcode[c->op->opcode_index].builtin;
    if (dtype_of(c, c->input[0]) != IFD_C64) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "a part of %s",
                       ifd_dtype_name(dtype_of(c, c->input[0])));
        return;
    }
    const uint32_t pairs = ifd_build_node(c->b, IFD_OP_BITCAST, c->input, 1, &real, NULL);
    const uint32_t part =
        reshape(c, ifd_build_cut(c->b, pairs, shape.rank, builtin == IMAG, 1), &shape);
    c->output[0] = ifd_build_cast(c->b, part, ifd_composite_output(c, 0).dtype);
}

/* The shape that two shapes broadcast to. */
void ifd_composite_broadcast_args(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    uint32_t side[2] = {c->input[0], c->input[1]};
    if (!ifd_composite_has_inputs(c, 2)) {
        return;
    }
    const int64_t count[2] = {shape_of(c, side[0])->dim[0], shape_of(c, side[1])->dim[0]};
    const struct ifd_axis_attrs attrs = {.axis = 0};
    for (int k = 0; k < 2; k++) {
        const int64_t more = count[1 - k] - count[k];
        if (more > 0) {
            const uint32_t parts[2] = {ifd_composite_fill(b, dtype_of(c, side[k]), 1, &more, 1),
                                       side[k]};
            side[k] = ifd_build_node(b, IFD_OP_CONCAT, parts, 2, NULL, &attrs);
        }
    }
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const struct ifd_desc output = {.dtype = dtype_of(c, side[0])};
    const uint32_t pair[2] = {side[0], ifd_build_number(b, dtype_of(c, side[0]), 1)};
    const uint32_t is_one = ifd_build_node(b, IFD_OP_EQUAL, pair, 2, &flag, NULL);
    const uint32_t choice[3] = {is_one, side[1], side[0]};
    c->output[0] = ifd_build_node(b, IFD_OP_SELECT, choice, 3, &output, NULL);
}

/* ---- sparse, segments, lookups ---- */

/* Inputs: indices of 0 to 2 dimensions, shape, values (one for each index, or one), default. */
void ifd_composite_sparse_to_dense(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    int64_t elements = 0;
    if (!ifd_composite_has_inputs(c, 4)) {
        return;
    }
    const struct ifd_ints dim = ifd_build_ints_of(b, c->input[1], "the shape");
    const struct ifd_shape indices = *shape_of(c, c->input[0]);
    const int64_t count = indices.rank == 0 ? 1 : indices.dim[0];
    if (b->code != IFD_OK || !count_elements(c, &dim, &elements)) {
        return;
    }
    if (indices.rank > 2 || (indices.rank == 2 ? indices.dim[1] : 1) != (int64_t)dim.count) {
        ifd_build_fail(b, IFD_INVALID, "indices %s into %u dimensions", ifd_shape_text(&indices).s,
                       dim.count);
        return;
    }
    const struct ifd_broadcast_to_attrs flat = {.shape = {.count = 1, .value = {elements}}};
    const struct ifd_broadcast_to_attrs each = {.shape = {.count = 1, .value = {count}}};
    const uint32_t base = ifd_build_node(b, IFD_OP_BROADCAST_TO, &c->input[3], 1, NULL, &flat);
    const uint32_t values = ifd_build_node(b, IFD_OP_BROADCAST_TO, &c->input[2], 1, NULL, &each);
    const uint32_t table = ifd_build_reshape(b, c->input[0], (int64_t[]){count, dim.count}, 2);
    const uint32_t at = places_of(c, table, dim.value, dim.count);
    c->output[0] = ifd_build_reshape(b, scatter(c, base, at, values, IFD_SCATTER_REPLACE),
                                     dim.value, dim.count);
}

/* What a segment without rows holds. */
static double neutral(enum ifd_scatter_mode mode, enum ifd_dtype dtype)
{
    const bool is_real = dtype == IFD_F32;
    switch ((int)mode) {
    case IFD_SCATTER_MUL:
        return 1;
    case IFD_SCATTER_MIN:
        return is_real ? (double)FLT_MAX : INT32_MAX;
    case IFD_SCATTER_MAX:
        return is_real ? (double)-FLT_MAX : INT32_MIN;
    default:
        return 0;
    }
}

static enum ifd_scatter_mode mode_of(const struct ifd_composite *c)
{
    enum { PROD = 153, MAX = 154, SUM = 155 };
    const int32_t builtin = c->build->model->opcode[c->op->opcode_index].builtin;
    return builtin == PROD  ? IFD_SCATTER_MUL
           : builtin == MAX ? IFD_SCATTER_MAX
           : builtin == SUM ? IFD_SCATTER_ADD
                            : IFD_SCATTER_MIN;
}

/* Inputs: data, the segment of each of its rows, the number of segments. Rows of a negative segment
 * go to one more segment at the end, which is cut off. */
void ifd_composite_unsorted_segment(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 3)) {
        return;
    }
    const enum ifd_dtype dtype = dtype_of(c, c->input[0]);
    const struct ifd_shape data = *shape_of(c, c->input[0]), ids = *shape_of(c, c->input[1]);
    const int32_t segments = ifd_build_int_of(b, c->input[2], "the number of segments");
    if (b->code == IFD_OK && (ids.rank > data.rank || dtype_of(c, c->input[1]) != IFD_S32 ||
                              segments < 0 || (dtype != IFD_F32 && dtype != IFD_S32))) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%d segments of %s %s", segments, ifd_dtype_name(dtype),
                       ifd_shape_text(&data).s);
    }
    if (b->code != IFD_OK) {
        return; /* ids of more dimensions than data, too */
    }
    const enum ifd_scatter_mode mode = mode_of(c);
    const uint32_t rows = as_rows(c, c->input[0], ids.rank);
    const int64_t base_dim[2] = {(int64_t)segments + 1, shape_of(c, rows)->dim[1]};
    const int64_t count = shape_of(c, rows)->dim[0];
    const uint32_t flat = ifd_build_reshape(b, c->input[1], &count, 1);
    const uint32_t at = ifd_build_with(b, IFD_OP_MAXIMUM, flat, -1);
    const uint32_t base = ifd_composite_fill(b, dtype, neutral(mode, dtype), base_dim, 2);
    const uint32_t all = scatter(c, base, at, rows, mode);
    struct ifd_shape shape = {.rank = 1 + data.rank - ids.rank, .dim = {segments}};
    for (uint32_t d = 1; d < shape.rank; d++) {
        shape.dim[d] = data.dim[ids.rank + d - 1];
    }
    c->output[0] = reshape(c, ifd_build_cut(b, all, 0, 0, segments), &shape);
}

/* Inputs: what is looked up [n], keys [k], rows [k, ...]. Outputs: rows, zeros where there is no
 * such key, and which were found. */
void ifd_composite_hashtable_lookup(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 3)) {
        return;
    }
    struct ifd_shape wide = *shape_of(c, c->input[2]);
    const struct ifd_shape lookup = *shape_of(c, c->input[0]), keys = *shape_of(c, c->input[1]);
    if (lookup.rank != 1 || keys.rank != 1 || wide.rank < 1) {
        ifd_build_fail(b, IFD_INVALID, "keys %s looked up in %s", ifd_shape_text(&lookup).s,
                       ifd_shape_text(&keys).s);
        return;
    }
    for (uint32_t d = 0; d < wide.rank; d++) {
        wide.dim[d] = d == 0 ? lookup.dim[0] : 1;
    }
    const struct ifd_desc flag = {.dtype = IFD_BOOL}, index = {.dtype = IFD_S32};
    const struct ifd_ints last = {.count = 1, .value = {1}};
    const struct ifd_arg_attrs along = {.axis = 1};
    const struct ifd_gather_attrs first = {.axis = 0};
    const uint32_t pair[2] = {ifd_build_reshape(b, c->input[0], (int64_t[]){lookup.dim[0], 1}, 2),
                              ifd_build_reshape(b, c->input[1], (int64_t[]){1, keys.dim[0]}, 2)};
    const uint32_t is_equal = ifd_build_node(b, IFD_OP_EQUAL, pair, 2, &flag, NULL);
    const uint32_t hits = ifd_build_cast(b, is_equal, IFD_S32);
    const uint32_t at = ifd_build_node(b, IFD_OP_ARG_MAX, &hits, 1, &index, &along);
    const uint32_t found = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, hits, &last, false);
    const uint32_t pick[2] = {c->input[2], at};
    const uint32_t rows = ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, &first);
    const uint32_t choice[3] = {reshape(c, ifd_build_cast(b, found, IFD_BOOL), &wide), rows,
                                ifd_build_unary(b, IFD_OP_ZEROS_LIKE, rows)};
    const struct ifd_desc like = {.dtype = dtype_of(c, rows)};
    c->output[0] = ifd_build_node(b, IFD_OP_SELECT, choice, 3, &like, NULL);
    if (c->output_count > 1) {
        c->output[1] = ifd_build_cast(b, found, IFD_U8);
    }
}

/* Divides sums of rows by the sum of weights, or by the root of the sum of their squares. */
static uint32_t normalize(const struct ifd_composite *c, uint32_t sums, uint32_t at,
                          uint32_t weights, int64_t buckets)
{
    enum { SUM = 0, MEAN = 1 };
    struct ifd_builder *b = c->b;
    const int64_t dim[2] = {buckets, 1};
    const struct ifd_desc flag = {.dtype = IFD_BOOL}, real = {.dtype = IFD_F32};
    if (c->options->combiner == SUM) {
        return sums;
    }
    const bool is_mean = c->options->combiner == MEAN;
    const uint32_t added = is_mean ? weights : ifd_build_binary(b, IFD_OP_MUL, weights, weights);
    const uint32_t base = ifd_composite_fill(b, IFD_F32, 0, dim, 2);
    const uint32_t total = scatter(c, base, at, added, IFD_SCATTER_ADD);
    const uint32_t divisor = is_mean ? total : ifd_build_unary(b, IFD_OP_SQRT, total);
    const uint32_t pair[2] = {divisor, ifd_build_number(b, IFD_F32, 0)};
    const uint32_t is_empty = ifd_build_node(b, IFD_OP_EQUAL, pair, 2, &flag, NULL);
    const uint32_t choice[3] = {is_empty, ifd_composite_fill(b, IFD_F32, 1, dim, 2), divisor};
    return ifd_build_binary(b, IFD_OP_DIV, sums,
                            ifd_build_node(b, IFD_OP_SELECT, choice, 3, &real, NULL));
}

/* Inputs: ids [n] of rows; for each its place [n, r] in a sparse tensor; that one's shape [r];
 * weights [n]; the rows. Those of one place but for its last dimension are combined. */
void ifd_composite_embedding_sparse(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 5)) {
        return;
    }
    struct ifd_ints dim = ifd_build_ints_of(b, c->input[2], "the shape");
    const struct ifd_shape ids = *shape_of(c, c->input[0]), places = *shape_of(c, c->input[1]);
    const struct ifd_shape table = *shape_of(c, c->input[4]);
    struct ifd_shape shape = {.rank = dim.count - 1 + table.rank - 1};
    int64_t buckets = 0;
    if (b->code == IFD_OK && (ids.rank != 1 || places.rank != 2 || table.rank < 1 ||
                              dim.count < 2 || places.dim[1] != (int64_t)dim.count ||
                              shape.rank > IFD_MAX_RANK || dtype_of(c, c->input[4]) != IFD_F32)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "ids %s at %s", ifd_shape_text(&ids).s,
                       ifd_shape_text(&places).s);
    }
    dim.count -= b->code == IFD_OK;
    if (b->code != IFD_OK || !count_elements(c, &dim, &buckets)) {
        return;
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.dim[d] = d < dim.count ? dim.value[d] : table.dim[1 + d - dim.count];
    }
    const struct ifd_gather_attrs first = {.axis = 0};
    const uint32_t pick[2] = {as_rows(c, c->input[4], 1), c->input[0]};
    const uint32_t rows = ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, &first);
    const uint32_t weights = ifd_build_reshape(b, c->input[3], (int64_t[]){ids.dim[0], 1}, 2);
    const uint32_t at =
        places_of(c, ifd_build_cut(b, c->input[1], 1, 0, dim.count), dim.value, dim.count);
    const uint32_t base =
        ifd_composite_fill(b, IFD_F32, 0, (int64_t[]){buckets, product(&table, 1, table.rank)}, 2);
    const uint32_t sums =
        scatter(c, base, at, ifd_build_binary(b, IFD_OP_MUL, rows, weights), IFD_SCATTER_ADD);
    c->output[0] = reshape(c, normalize(c, sums, at, weights, buckets), &shape);
}

/* ---- layers ---- */

void ifd_composite_l2_pool(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_tflite_options *o = c->options;
    const struct ifd_pool2d_attrs attrs = {.window = {.padding = o->padding,
                                                      .stride_h = o->stride_h,
                                                      .stride_w = o->stride_w,
                                                      .dilation_h = 1,
                                                      .dilation_w = 1},
                                           .filter_h = o->filter_h,
                                           .filter_w = o->filter_w};
    const uint32_t squares = ifd_build_binary(b, IFD_OP_MUL, c->input[0], c->input[0]);
    const uint32_t mean = ifd_build_node(b, IFD_OP_AVERAGE_POOL2D, &squares, 1, NULL, &attrs);
    c->output[0] = ifd_composite_activate(b, ifd_build_unary(b, IFD_OP_SQRT, mean), o->activation);
}

/* stride - 1 zeros between the elements along an axis. */
static uint32_t spread(const struct ifd_composite *c, uint32_t x, uint32_t axis, int64_t stride)
{
    struct ifd_shape shape = *shape_of(c, x), cells = {.rank = shape.rank + 1};
    struct ifd_pad_attrs attrs = {.before = {.count = cells.rank}, .after = {.count = cells.rank}};
    const int64_t size = shape.dim[axis];
    if (stride == 1 || size == 0) {
        return x;
    }
    for (uint32_t d = 0; d < cells.rank; d++) {
        cells.dim[d] = d <= axis ? shape.dim[d] : d == axis + 1 ? 1 : shape.dim[d - 1];
    }
    attrs.after.value[axis + 1] = stride - 1;
    shape.dim[axis] *= stride;
    const uint32_t thin = reshape(c, x, &cells);
    const uint32_t wide = ifd_build_node(c->b, IFD_OP_PAD, &thin, 1, NULL, &attrs);
    return ifd_build_cut(c->b, reshape(c, wide, &shape), axis, 0, (size - 1) * stride + 1);
}

/* Inputs: shape of the output, filter [d,h,w,out,in], x, bias. A convolution of x with zeros
 * between its elements by the reversed filter. */
void ifd_composite_conv3d_transpose(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_tflite_options *o = c->options;
    if (!ifd_composite_has_inputs(c, 3)) {
        return;
    }
    const struct ifd_ints target = ifd_build_ints_of(b, c->input[0], "the shape");
    const struct ifd_shape x = *shape_of(c, c->input[2]), f = *shape_of(c, c->input[1]);
    const int64_t stride[3] = {o->stride_d, o->stride_h, o->stride_w};
    const int64_t dilation[3] = {o->dilation_d, o->dilation_h, o->dilation_w};
    struct ifd_pad_attrs pad = {.before = {.count = 5}, .after = {.count = 5}};
    uint32_t spaced = c->input[2];
    if (b->code != IFD_OK || x.rank != 5 || f.rank != 5 || target.count != 5) {
        ifd_build_fail(b, IFD_INVALID, "input %s, filter %s", ifd_shape_text(&x).s,
                       ifd_shape_text(&f).s);
        return;
    }
    for (uint32_t i = 0; i < 3 && b->code == IFD_OK; i++) {
        const int64_t reach = (f.dim[i] - 1) * dilation[i];
        const int64_t spread_size = (x.dim[1 + i] - 1) * stride[i] + 1;
        const int64_t over = spread_size + reach - target.value[1 + i];
        const int64_t before = reach - (over > 0 ? over / 2 : 0);
        const int64_t after = target.value[1 + i] + reach - before - spread_size;
        if (stride[i] < 1 || dilation[i] < 1 || before < 0 || after < 0 || x.dim[1 + i] < 1) {
            ifd_build_fail(b, IFD_UNSUPPORTED, "an output of %lld from %lld",
                           (long long)target.value[1 + i], (long long)x.dim[1 + i]);
            return;
        }
        pad.before.value[1 + i] = before;
        pad.after.value[1 + i] = after;
        spaced = spread(c, spaced, 1 + i, stride[i]);
    }
    const struct ifd_reverse_attrs axes = {.axes = {.count = 3, .value = {0, 1, 2}}};
    const struct ifd_conv3d_attrs attrs = {.window = {.padding = IFD_PAD_VALID,
                                                      .stride_h = 1,
                                                      .stride_w = 1,
                                                      .dilation_h = o->dilation_h,
                                                      .dilation_w = o->dilation_w},
                                           .stride_d = 1,
                                           .dilation_d = o->dilation_d,
                                           .activation = o->activation};
    const uint32_t turned = ifd_build_node(b, IFD_OP_REVERSE, &c->input[1], 1, NULL, &axes);
    const uint32_t operand[3] = {ifd_build_node(b, IFD_OP_PAD, &spaced, 1, NULL, &pad),
                                 ifd_build_swap(b, turned, 3, 4), ifd_composite_input(c, 3)};
    c->output[0] =
        ifd_build_node(b, IFD_OP_CONV3D, operand, operand[2] == IFD_NONE ? 2 : 3, NULL, &attrs);
}
