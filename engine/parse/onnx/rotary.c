/* RotaryEmbedding and CenterCropPad: operators of newer opsets that are a few of ours. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t concat(struct ifd_builder *b, uint32_t x, uint32_t y, uint32_t axis)
{
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)axis};
    return ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){x, y}, 2, NULL, &attrs);
}

/* ---- rotary embedding ---- */

uint32_t ifd_onnx_turned(struct ifd_builder *b, uint32_t x, uint32_t cosine, uint32_t sine,
                         bool is_interleaved)
{
    const struct ifd_shape s = shape_of(b, x);
    const int64_t half = s.dim[3] / 2;
    const int64_t apart[5] = {s.dim[0], s.dim[1], s.dim[2], is_interleaved ? half : 2,
                              is_interleaved ? 2 : half};
    const uint32_t axis = is_interleaved ? 4 : 3;
    const uint32_t pairs = ifd_build_reshape(b, x, apart, 5);
    const int64_t part[4] = {s.dim[0], s.dim[1], s.dim[2], half};
    const uint32_t re = ifd_build_reshape(b, ifd_build_cut(b, pairs, axis, 0, 1), part, 4);
    const uint32_t im = ifd_build_reshape(b, ifd_build_cut(b, pairs, axis, 1, 1), part, 4);
    const uint32_t turned_re =
        ifd_build_binary(b, IFD_OP_SUB, ifd_build_binary(b, IFD_OP_MUL, re, cosine),
                         ifd_build_binary(b, IFD_OP_MUL, im, sine));
    const uint32_t turned_im =
        ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MUL, re, sine),
                         ifd_build_binary(b, IFD_OP_MUL, im, cosine));
    const struct ifd_axis_attrs pack = {.axis = (int32_t)axis};
    const uint32_t both =
        ifd_build_node(b, IFD_OP_PACK, (const uint32_t[]){turned_re, turned_im}, 2, NULL, &pack);
    return ifd_build_reshape(b, both, s.dim, 4);
}

/* One position is that of the first of t places. */
static uint32_t positions_of(struct ifd_builder *b, uint32_t given, int64_t t)
{
    const struct ifd_shape shape = shape_of(b, given);
    if (given == IFD_NONE || shape.rank != 1) {
        return given;
    }
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)t),
                                ifd_build_number(b, IFD_S64, 1)};
    const int64_t row[2] = {1, t}, one[2] = {1, 1};
    const uint32_t places =
        ifd_build_reshape(b, ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL), row, 2);
    return ifd_build_binary(b, IFD_OP_ADD, places, ifd_build_reshape(b, given, one, 2));
}

/* Angles of each place as [n or 1, t, 1, size / 2]; positions choose rows of the cache. */
static uint32_t angles(struct ifd_onnx_call *call, uint32_t i, uint32_t positions)
{
    struct ifd_builder *b = call->b;
    uint32_t cache = call->input[i];
    if (positions != IFD_NONE) {
        const uint32_t pick[2] = {cache, positions};
        cache = ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, NULL);
    }
    const struct ifd_shape s = shape_of(b, cache);
    if (s.rank != 3) {
        return ifd_build_fail(b, IFD_INVALID, "angles of shape %s", ifd_shape_text(&s).s);
    }
    const int64_t dim[4] = {s.dim[0], s.dim[1], 1, s.dim[2]};
    return ifd_build_reshape(b, cache, dim, 4);
}

/* Which of three lists of positions a column of the cache takes its rows by: sections of columns
 * in a row, or, from the front, every third column of the second and the third. */
static uint32_t list_of(const struct ifd_ints *sections, bool is_interleaved, int64_t column)
{
    if (is_interleaved) {
        const uint32_t list = (uint32_t)(column % 3);
        return list > 0 && column / 3 < sections->value[list] ? list : 0;
    }
    return column < sections->value[0]                        ? 0
           : column < sections->value[0] + sections->value[1] ? 1
                                                              : 2;
}

/* The same as angles() of three lists of positions [3, n, t], for a place in time and a picture. */
static uint32_t mixed_angles(struct ifd_onnx_call *call, uint32_t i)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape cache = shape_of(b, call->input[i]), at = shape_of(b, call->input[1]);
    const int64_t columns = cache.dim[1];
    struct ifd_ints sections = {.count = 0};
    bool fits = ifd_onnx_ints(call, "mrope_section", &sections) && sections.count == 3 &&
                cache.rank == 2 && at.rank == 3 && at.dim[0] == 3;
    int64_t left = fits ? columns : 0;
    for (uint32_t k = 0; fits && k < 3; k++) {
        fits = sections.value[k] >= 0 && sections.value[k] <= left;
        left -= fits ? sections.value[k] : 0;
    }
    float *share = fits && left == 0
                       ? ifd_arena_take_array(b->graph->arena, (size_t)columns * 3, sizeof(*share))
                       : NULL;
    if (!share) {
        return ifd_build_fail(b, IFD_INVALID, "sections of angles %s at positions %s",
                              ifd_shape_text(&cache).s, ifd_shape_text(&at).s);
    }
    const bool is_interleaved = ifd_onnx_int(call, "mrope_layout", 0) != 0;
    for (int64_t column = 0; column < columns; column++) {
        for (uint32_t k = 0; k < 3; k++) {
            share[k * columns + column] = list_of(&sections, is_interleaved, column) == k;
        }
    }
    const uint32_t pick[2] = {call->input[i], call->input[1]};
    const struct ifd_ints lists = {.count = 1, .value = {0}};
    const uint32_t rows = ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, NULL);
    const uint32_t shares = ifd_onnx_floats(b, share, (const int64_t[]){3, 1, 1, columns}, 4);
    const uint32_t sum = ifd_build_reduce(
        b, IFD_OP_REDUCE_SUM, ifd_build_binary(b, IFD_OP_MUL, rows, shares), &lists, false);
    return ifd_build_reshape(b, sum, (const int64_t[]){at.dim[1], at.dim[2], 1, columns}, 4);
}

/* Inputs: x, cosines, sines, positions; of com.microsoft: x, positions, cosines, sines. Attributes
 * "scale" and "is_packed_batching" mean nothing to ONNX Runtime's code for processors. */
void ifd_onnx_rotary_embedding(struct ifd_onnx_call *call, int which)
{
    const bool is_microsoft = which != IFD_ONNX_ROTARY, is_mixed = which == IFD_ONNX_MIXED_ROTARY;
    struct ifd_builder *b = call->b;
    const struct ifd_shape given = shape_of(b, call->input[0]);
    const uint32_t cosines = is_microsoft ? 2 : 1;
    const int64_t turned_size = ifd_onnx_int(call, "rotary_embedding_dim", 0);
    int64_t heads = ifd_onnx_int(call, "num_heads", 0);
    uint32_t x = call->input[0];
    if (is_microsoft && heads == 0 && turned_size == 0 && given.rank == 3) {
        const struct ifd_shape cache = shape_of(b, call->input[cosines]);
        heads = cache.rank == 2 && cache.dim[1] > 0 ? given.dim[2] / (2 * cache.dim[1]) : 0;
    }
    if (given.rank == 3 && heads > 0 && given.dim[2] % heads == 0) {
        const int64_t dim[4] = {given.dim[0], given.dim[1], heads, given.dim[2] / heads};
        x = ifd_build_reshape(b, x, dim, 4);
    } else if (given.rank == 4) {
        x = ifd_build_swap(b, x, 1, 2);
    } else {
        ifd_build_fail(b, IFD_INVALID, "%lld heads of shape %s", (long long)heads,
                       ifd_shape_text(&given).s);
        return;
    }
    const struct ifd_shape s = shape_of(b, x);
    const int64_t size = turned_size > 0 ? turned_size : s.dim[3];
    if (size > s.dim[3] || size % 2 != 0) {
        ifd_build_fail(b, IFD_INVALID, "%lld numbers of %lld to turn", (long long)size,
                       (long long)s.dim[3]);
        return;
    }
    const uint32_t positions = is_mixed       ? IFD_NONE
                               : is_microsoft ? positions_of(b, call->input[1], s.dim[1])
                                              : ifd_onnx_input(call, 3);
    uint32_t by[2];
    for (uint32_t i = 0; i < 2; i++) {
        by[i] = is_mixed ? mixed_angles(call, cosines + i) : angles(call, cosines + i, positions);
    }
    uint32_t y = ifd_onnx_turned(b, size < s.dim[3] ? ifd_build_cut(b, x, 3, 0, size) : x, by[0],
                                 by[1], ifd_onnx_int(call, "interleaved", 0) != 0);
    if (size < s.dim[3]) {
        y = concat(b, y, ifd_build_cut(b, x, 3, size, s.dim[3] - size), 3);
    }
    call->output[0] = given.rank == 4 ? ifd_build_swap(b, y, 1, 2)
                                      : ifd_build_reshape(b, y, given.dim, given.rank);
}

/* ---- crops and pads about the center ---- */

static uint32_t resized_about_center(struct ifd_builder *b, uint32_t x, uint32_t d, int64_t wanted)
{
    const struct ifd_shape s = shape_of(b, x);
    const int64_t size = s.dim[d];
    if (wanted < 0) {
        return ifd_build_fail(b, IFD_INVALID, "a size of %lld", (long long)wanted);
    }
    if (wanted <= size) {
        return ifd_build_cut(b, x, d, (size - wanted) / 2, wanted);
    }
    struct ifd_pad_attrs attrs = {.before = {.count = s.rank}, .after = {.count = s.rank}};
    attrs.before.value[d] = (wanted - size) / 2;
    attrs.after.value[d] = wanted - size - attrs.before.value[d];
    return ifd_build_node(b, IFD_OP_PAD, &x, 1, NULL, &attrs);
}

void ifd_onnx_center_crop_pad(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const uint32_t rank = shape_of(b, call->input[0]).rank;
    const struct ifd_ints sizes = ifd_build_ints_of(b, call->input[1], "the shape");
    struct ifd_ints axes = {.count = rank};
    uint32_t x = call->input[0];
    const bool has_axes = ifd_onnx_ints(call, "axes", &axes);
    if (!has_axes) {
        axes.count = rank;
    }
    if (sizes.count != axes.count) {
        ifd_build_fail(b, IFD_INVALID, "%u sizes for %u axes", sizes.count, axes.count);
        return;
    }
    for (uint32_t i = 0; b->code == IFD_OK && i < axes.count; i++) {
        const uint32_t d = has_axes ? ifd_build_axis(b, axes.value[i], rank) : i;
        x = resized_about_center(b, x, d, sizes.value[i]);
    }
    call->output[0] = x;
}
