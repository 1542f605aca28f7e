/* Operators of MediaPipe and of TensorFlow Addons as several of ours. */
#include <float.h>
#include <string.h>

#include "engine/parse/tflite/composite.h"

static const struct ifd_shape *shape_of(const struct ifd_composite *c, uint32_t value)
{
    return &ifd_build_desc(c->b, value)->shape;
}

static int64_t elements_of(const struct ifd_shape *shape)
{
    size_t count = 0;
    return ifd_shape_elements(shape, &count) ? (int64_t)count : -1;
}

/* ---- options ---- */

/* Options of its operators: 32-bit numbers. */
static bool read_custom(const struct ifd_composite *c, int32_t *ret, size_t count)
{
    if (c->op->custom_options.size < count * sizeof(*ret)) {
        ifd_build_fail(c->b, IFD_CORRUPT, "%zu bytes of options", c->op->custom_options.size);
        return false;
    }
    memcpy(ret, c->op->custom_options.data, count * sizeof(*ret));
    return true;
}

/* Options: padding (1 SAME, 2 VALID), strides of width and height. */
void ifd_composite_transposed(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    int32_t option[3] = {0};
    if (!read_custom(c, option, 3) || !ifd_composite_has_inputs(c, 2)) {
        return;
    }
    const struct ifd_shape x = *shape_of(c, c->input[0]), f = *shape_of(c, c->input[1]);
    const bool is_same = option[0] == 1;
    const int64_t stride[2] = {option[2], option[1]};
    int64_t shape[4] = {x.dim[0], 0, 0, f.dim[0]};
    if (x.rank != 4 || f.rank != 4 || (!is_same && option[0] != 2) || stride[0] < 1 ||
        stride[1] < 1) {
        ifd_build_fail(b, IFD_INVALID, "padding %d, strides %d and %d", option[0], option[1],
                       option[2]);
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t over = f.dim[1 + i] > stride[i] ? f.dim[1 + i] - stride[i] : 0;
        shape[1 + i] = x.dim[1 + i] * stride[i] + (is_same ? 0 : over);
    }
    const struct ifd_transpose_conv2d_attrs attrs = {
        .window = {.padding = is_same ? IFD_PAD_SAME : IFD_PAD_VALID,
                   .stride_h = option[2],
                   .stride_w = option[1],
                   .dilation_h = 1,
                   .dilation_w = 1}};
    const struct ifd_desc desc = {.dtype = IFD_F32};
    const uint32_t operand[4] = {ifd_build_list(b, shape, 4), ifd_composite_real(b, c->input[1]),
                                 c->input[0], ifd_composite_real(b, c->input[2])};
    c->output[0] = ifd_build_node(b, IFD_OP_TRANSPOSE_CONV2D, operand,
                                  operand[3] == IFD_NONE ? 3 : 4, &desc, &attrs);
}

/* Options of both pools: padding, strides of width and height, width and height of the window. */
enum { PADDING, STRIDE_W, STRIDE_H, WINDOW_W, WINDOW_H, ACTIVATION, POOL_OPTIONS };
#define WINDOW_MAX 64 /* places in a window */

static bool read_pool(const struct ifd_composite *c, int32_t *ret)
{
    if (!read_custom(c, ret, POOL_OPTIONS) || !ifd_composite_has_inputs(c, c->input_count)) {
        return false;
    }
    const bool is_sound =
        ret[STRIDE_W] >= 1 && ret[STRIDE_H] >= 1 && ret[WINDOW_W] >= 1 && ret[WINDOW_H] >= 1 &&
        ret[WINDOW_W] <= WINDOW_MAX && ret[WINDOW_H] <= WINDOW_MAX &&
        ret[WINDOW_W] * ret[WINDOW_H] <= WINDOW_MAX && (ret[PADDING] == 1 || ret[PADDING] == 2) &&
        shape_of(c, c->input[0])->rank == 4;
    if (!is_sound) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "padding %d, strides %d and %d, a window of %d by %d",
                       ret[PADDING], ret[STRIDE_H], ret[STRIDE_W], ret[WINDOW_H], ret[WINDOW_W]);
    }
    return is_sound;
}

/* x with what its windows reach over, as the least number. */
static uint32_t pad_windows(const struct ifd_composite *c, const int32_t *option,
                            struct ifd_window_size *ret)
{
    const struct ifd_shape x = *shape_of(c, c->input[0]);
    const struct ifd_window window = {.padding =
                                          option[PADDING] == 1 ? IFD_PAD_SAME : IFD_PAD_VALID,
                                      .stride_h = option[STRIDE_H],
                                      .stride_w = option[STRIDE_W],
                                      .dilation_h = 1,
                                      .dilation_w = 1};
    if (!ifd_window_resolve(&window, option[WINDOW_H], option[WINDOW_W], x.dim[1], x.dim[2], ret)) {
        return ifd_build_fail(c->b, IFD_INVALID, "windows do not fit %s", ifd_shape_text(&x).s);
    }
    const struct ifd_pad_attrs pad = {
        .before = {.count = 4, .value = {0, ret->pad_top, ret->pad_left, 0}},
        .after = {.count = 4, .value = {0, ret->pad_bottom, ret->pad_right, 0}},
        .has_value = true,
        .value = -FLT_MAX};
    return ifd_build_node(c->b, IFD_OP_PAD, &c->input[0], 1, NULL, &pad);
}

/* Outputs: the largest number of each window, and its place in it: row by row, and 0.1 more. */
void ifd_composite_max_pool_places(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    int32_t option[POOL_OPTIONS];
    struct ifd_window_size size = {0};
    uint32_t place[WINDOW_MAX];
    if (!read_pool(c, option)) {
        return;
    }
    const uint32_t x = pad_windows(c, option, &size);
    const struct ifd_shape shape = *shape_of(c, x);
    const int64_t strides[2] = {option[STRIDE_H], option[STRIDE_W]};
    const uint32_t places = (uint32_t)(option[WINDOW_H] * option[WINDOW_W]);
    for (uint32_t k = 0; k < places && b->code == IFD_OK; k++) {
        const int64_t y0 = k / (uint32_t)option[WINDOW_W], x0 = k % (uint32_t)option[WINDOW_W];
        const struct ifd_strided_slice_attrs cut = {
            .begin = {.count = 4, .value = {0, y0, x0, 0}},
            .end = {.count = 4,
                    .value = {shape.dim[0], y0 + (size.out_h - 1) * strides[0] + 1,
                              x0 + (size.out_w - 1) * strides[1] + 1, shape.dim[3]}},
            .strides = {.count = 4, .value = {1, strides[0], strides[1], 1}}};
        place[k] = ifd_build_node(b, IFD_OP_STRIDED_SLICE, &x, 1, NULL, &cut);
    }
    const struct ifd_axis_attrs stack = {.axis = 4};
    const struct ifd_arg_attrs along = {.axis = 4};
    const struct ifd_ints last = {.count = 1, .value = {4}};
    const struct ifd_desc index = {.dtype = IFD_S32};
    const uint32_t all = ifd_build_node(b, IFD_OP_PACK, place, places, NULL, &stack);
    const uint32_t at = ifd_build_node(b, IFD_OP_ARG_MAX, &all, 1, &index, &along);
    c->output[0] = ifd_composite_activate(
        b, ifd_build_reduce(b, IFD_OP_REDUCE_MAX, all, &last, false), option[ACTIVATION]);
    if (c->output_count > 1) {
        c->output[1] = ifd_build_with(b, IFD_OP_ADD, ifd_build_cast(b, at, IFD_F32), (double)0.1f);
    }
}

/* Inputs: numbers, their places in the windows; elsewhere windows hold 0. */
void ifd_composite_max_unpool(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    int32_t option[POOL_OPTIONS];
    uint32_t place[WINDOW_MAX];
    if (!read_pool(c, option)) {
        return;
    }
    const struct ifd_shape x = *shape_of(c, c->input[0]);
    const int64_t rows = option[WINDOW_H], columns = option[WINDOW_W];
    if (option[STRIDE_H] != rows || option[STRIDE_W] != columns ||
        !ifd_shape_equal(&x, shape_of(c, c->input[1]))) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "windows of %lld by %lld that overlap, or places %s",
                       (long long)rows, (long long)columns,
                       ifd_shape_text(shape_of(c, c->input[1])).s);
        return;
    }
    const struct ifd_desc flag = {.dtype = IFD_BOOL}, real = {.dtype = IFD_F32};
    const uint32_t at = ifd_build_cast(b, c->input[1], IFD_S32);
    const uint32_t zeros = ifd_build_unary(b, IFD_OP_ZEROS_LIKE, c->input[0]);
    for (int64_t k = 0; k < rows * columns && b->code == IFD_OK; k++) {
        const uint32_t pair[2] = {at, ifd_build_number(b, IFD_S32, (double)k)};
        const uint32_t choice[3] = {ifd_build_node(b, IFD_OP_EQUAL, pair, 2, &flag, NULL),
                                    c->input[0], zeros};
        place[k] = ifd_build_node(b, IFD_OP_SELECT, choice, 3, &real, NULL);
    }
    const struct ifd_axis_attrs channels = {.axis = 3};
    const uint32_t all =
        ifd_build_node(b, IFD_OP_CONCAT, place, (uint32_t)(rows * columns), NULL, &channels);
    const int64_t apart[6] = {x.dim[0], x.dim[1], x.dim[2], rows, columns, x.dim[3]};
    const int64_t whole[4] = {x.dim[0], x.dim[1] * rows, x.dim[2] * columns, x.dim[3]};
    const uint32_t turned = ifd_build_transpose(b, ifd_build_reshape(b, all, apart, 6),
                                                (const uint32_t[]){0, 1, 3, 2, 4, 5});
    c->output[0] = ifd_build_reshape(b, turned, whole, 4);
}

/* Coordinates of the pixels of an image, along one axis: [height * width]. */
static uint32_t coordinates(const struct ifd_composite *c, int64_t height, int64_t width,
                            bool of_rows)
{
    struct ifd_builder *b = c->b;
    const int64_t count = of_rows ? height : width;
    const int64_t line[2] = {of_rows ? height : 1, of_rows ? 1 : width}, all = height * width;
    const struct ifd_broadcast_to_attrs image = {.shape = {.count = 2, .value = {height, width}}};
    const uint32_t range[3] = {ifd_build_number(b, IFD_S32, 0),
                               ifd_build_number(b, IFD_S32, (double)count),
                               ifd_build_number(b, IFD_S32, 1)};
    const uint32_t numbers = ifd_build_node(b, IFD_OP_RANGE, range, 3, NULL, NULL);
    const uint32_t one = ifd_build_reshape(b, ifd_build_cast(b, numbers, IFD_F32), line, 2);
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_BROADCAST_TO, &one, 1, NULL, &image), &all,
                             1);
}

/* One coordinate of the pixels in the source: row of the matrix times (x, y, 0, 1). */
static uint32_t transformed(const struct ifd_composite *c, uint32_t matrix, int64_t row,
                            const uint32_t *xy)
{
    struct ifd_builder *b = c->b;
    uint32_t m[4];
    for (int64_t k = 0; k < 4; k++) {
        m[k] = ifd_build_cut(b, matrix, 0, row * 4 + k, 1);
    }
    const int32_t version = c->build->model->opcode[c->op->opcode_index].version;
    if (version >= 2) { /* of the centres of pixels */
        const uint32_t half =
            ifd_build_with(b, IFD_OP_SUB,
                           ifd_build_binary(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, m[0], 0.5),
                                            ifd_build_with(b, IFD_OP_MUL, m[1], 0.5)),
                           0.5);
        m[3] = ifd_build_binary(b, IFD_OP_ADD, m[3], half);
    }
    const uint32_t parts =
        ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MUL, xy[0], m[0]),
                         ifd_build_binary(b, IFD_OP_MUL, xy[1], m[1]));
    return ifd_build_binary(b, IFD_OP_ADD, parts, m[3]);
}

/* Are the coordinates within 0 … last? */
static uint32_t within(const struct ifd_composite *c, uint32_t at, int64_t last)
{
    struct ifd_builder *b = c->b;
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const uint32_t low[2] = {at, ifd_build_number(b, IFD_F32, 0)};
    const uint32_t high[2] = {at, ifd_build_number(b, IFD_F32, (double)last)};
    const uint32_t both[2] = {ifd_build_node(b, IFD_OP_GREATER_EQUAL, low, 2, &flag, NULL),
                              ifd_build_node(b, IFD_OP_LESS_EQUAL, high, 2, &flag, NULL)};
    return ifd_build_node(b, IFD_OP_LOGICAL_AND, both, 2, &flag, NULL);
}

/* Pixels [n, c] between two neighbours: a + (b - a) share, as (1 - share) a + share b. */
static uint32_t blend(const struct ifd_composite *c, uint32_t share, uint32_t first,
                      uint32_t second)
{
    struct ifd_builder *b = c->b;
    const uint32_t rest = ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 1), share);
    return ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MUL, rest, first),
                            ifd_build_binary(b, IFD_OP_MUL, share, second));
}

/* A grid of source pixels at floor(coordinate) and the next: clamped s32 indices, and the share of
 * the second. */
struct grid {
    uint32_t first, second, share;
};

static struct grid grid_of(const struct ifd_composite *c, uint32_t at, int64_t last, int64_t count)
{
    struct ifd_builder *b = c->b;
    const int64_t column[2] = {count, 1};
    const uint32_t below = ifd_build_unary(b, IFD_OP_FLOOR, at);
    const uint32_t share = ifd_build_binary(b, IFD_OP_SUB, at, below);
    const uint32_t first = ifd_build_clamp(b, below, 0, (double)last);
    const uint32_t second =
        ifd_build_clamp(b, ifd_build_with(b, IFD_OP_ADD, below, 1), 0, (double)last);
    return (struct grid){.first = ifd_build_cast(b, first, IFD_S32),
                         .second = ifd_build_cast(b, second, IFD_S32),
                         .share = ifd_build_reshape(b, share, column, 2)};
}

static uint32_t pixels_at(const struct ifd_composite *c, uint32_t pixels, uint32_t row,
                          uint32_t column, int64_t width)
{
    struct ifd_builder *b = c->b;
    const struct ifd_gather_attrs first = {.axis = 0};
    const uint32_t at =
        ifd_build_binary(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, row, (double)width), column);
    return ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){pixels, at}, 2, NULL, &first);
}

/* Inputs: an image, a matrix of 4 by 4 from pixels of the output to those of the image. Outside of
 * it the output is 0. */
void ifd_composite_transform(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 2)) {
        return;
    }
    const struct ifd_shape x = *shape_of(c, c->input[0]), m = *shape_of(c, c->input[1]);
    const struct ifd_shape y = ifd_composite_output(c, 0).shape;
    const int64_t sixteen = 16, height = y.dim[1], width = y.dim[2];
    if (x.rank != 4 || y.rank != 4 || x.dim[0] != 1 || y.dim[0] != 1 || y.dim[3] != x.dim[3] ||
        elements_of(&m) != sixteen || height < 1 || width < 1 || height > INT16_MAX ||
        width > INT16_MAX || elements_of(&x) < 1 || x.dim[1] * x.dim[2] > INT32_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s from %s by a matrix %s", ifd_shape_text(&y).s,
                       ifd_shape_text(&x).s, ifd_shape_text(&m).s);
        return;
    }
    const int64_t count = height * width;
    const uint32_t matrix = ifd_build_reshape(b, c->input[1], &sixteen, 1);
    const uint32_t xy[2] = {coordinates(c, height, width, false),
                            coordinates(c, height, width, true)};
    const uint32_t at_x = transformed(c, matrix, 0, xy), at_y = transformed(c, matrix, 1, xy);
    const struct grid columns = grid_of(c, at_x, x.dim[2] - 1, count);
    const struct grid rows = grid_of(c, at_y, x.dim[1] - 1, count);
    const uint32_t pixels =
        ifd_build_reshape(b, c->input[0], (int64_t[]){x.dim[1] * x.dim[2], x.dim[3]}, 2);
    const uint32_t upper =
        blend(c, columns.share, pixels_at(c, pixels, rows.first, columns.first, x.dim[2]),
              pixels_at(c, pixels, rows.first, columns.second, x.dim[2]));
    const uint32_t lower =
        blend(c, columns.share, pixels_at(c, pixels, rows.second, columns.first, x.dim[2]),
              pixels_at(c, pixels, rows.second, columns.second, x.dim[2]));
    const uint32_t value = blend(c, rows.share, upper, lower);
    const struct ifd_desc flag = {.dtype = IFD_BOOL}, real = {.dtype = IFD_F32};
    const uint32_t both[2] = {within(c, at_x, x.dim[2] - 1), within(c, at_y, x.dim[1] - 1)};
    const uint32_t inside = ifd_build_node(b, IFD_OP_LOGICAL_AND, both, 2, &flag, NULL);
    const uint32_t choice[3] = {ifd_build_reshape(b, inside, (int64_t[]){count, 1}, 2), value,
                                ifd_build_unary(b, IFD_OP_ZEROS_LIKE, value)};
    c->output[0] = ifd_build_reshape(b, ifd_build_node(b, IFD_OP_SELECT, choice, 3, &real, NULL),
                                     y.dim, y.rank);
}

/* Images [n,h,w,c] read at places [n,...,2], pixels of width and height; outside are zeros. A place
 * p of a line of s pixels is (2p + 1) / s - 1 for grid_sample. */
void ifd_composite_resampler(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 2)) {
        return;
    }
    const uint32_t images = ifd_composite_real(b, c->input[0]);
    const uint32_t warp = ifd_composite_real(b, c->input[1]);
    const struct ifd_shape x = *shape_of(c, images), at = *shape_of(c, warp);
    if (x.rank != 4 || at.rank < 2 || at.dim[at.rank - 1] != 2 || at.dim[0] != x.dim[0] ||
        elements_of(&x) < 1 || elements_of(&at) < 1) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "images %s read at %s", ifd_shape_text(&x).s,
                       ifd_shape_text(&at).s);
        return;
    }
    const float w = (float)x.dim[2], h = (float)x.dim[1];
    const float number[2][2] = {{2 / w, 2 / h}, {1 / w - 1, 1 / h - 1}};
    const struct ifd_desc pair = {.dtype = IFD_F32, .shape = {.rank = 1, .dim = {2}}};
    uint32_t grid =
        ifd_build_reshape(b, warp, (int64_t[]){x.dim[0], elements_of(&at) / x.dim[0] / 2, 1, 2}, 4);
    for (int i = 0; i < 2; i++) {
        const struct ifd_bytes content = {(const uint8_t *)number[i], sizeof(number[i])};
        grid = ifd_build_binary(b, i == 0 ? IFD_OP_MUL : IFD_OP_ADD, grid,
                                ifd_build_constant(b, &pair, content, 0));
    }
    const struct ifd_grid_sample_attrs attrs = {.mode = IFD_SAMPLE_LINEAR,
                                                .padding = IFD_SAMPLE_ZEROS};
    const uint32_t operand[2] = {images, grid};
    struct ifd_shape y = at;
    y.dim[y.rank - 1] = x.dim[3];
    c->output[0] = ifd_build_reshape(
        b, ifd_build_node(b, IFD_OP_GRID_SAMPLE, operand, 2, NULL, &attrs), y.dim, y.rank);
}
