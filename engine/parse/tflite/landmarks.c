/* MediaPipe's operators on landmarks: points of x, y and, in rows of three, z. Formulas: MediaPipe
 * 0.10, util/tflite/operations. */
#include <math.h>

#include "engine/parse/tflite/composite.h"
#include "engine/parse/tflite/flexbuffer.h"

#define SUBSET_MAX 1024

static bool is_second_version(const struct ifd_composite *c)
{
    const int32_t version = c->build->model->opcode[c->op->opcode_index].version;
    if (version != 2) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "version %d, expected 2", version);
    }
    return version == 2;
}

/* Column k of rows of points: [count, 1]. */
static uint32_t column(const struct ifd_composite *c, uint32_t points, int64_t k)
{
    return ifd_build_cut(c->b, points, 1, k, 1);
}

static uint32_t sum_of_products(struct ifd_builder *b, uint32_t a, uint32_t x, uint32_t d,
                                uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MUL, a, x),
                            ifd_build_binary(b, IFD_OP_MUL, d, y));
}

static uint32_t difference_of_products(struct ifd_builder *b, uint32_t a, uint32_t x, uint32_t d,
                                       uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_SUB, ifd_build_binary(b, IFD_OP_MUL, a, x),
                            ifd_build_binary(b, IFD_OP_MUL, d, y));
}

/* ---- a matrix from landmarks ---- */

struct options {
    double left, right;   /* landmarks on a line that shall be turned to the angle */
    double angle;         /* radians */
    double height, width; /* of the image that is cut out */
    double scale_y, scale_x;
    int32_t subset[SUBSET_MAX]; /* landmarks that it holds */
    uint32_t subset_count;
};

static bool read_options(const struct ifd_composite *c, int64_t landmarks, struct options *ret)
{
    struct ifd_flex_map map;
    bool is_sound =
        ifd_flex_open(c->op->custom_options, &map) &&
        ifd_flex_number(&map, "left_rotation_idx", &ret->left) &&
        ifd_flex_number(&map, "right_rotation_idx", &ret->right) &&
        ifd_flex_number(&map, "target_rotation_radians", &ret->angle) &&
        ifd_flex_number(&map, "output_height", &ret->height) &&
        ifd_flex_number(&map, "output_width", &ret->width) &&
        ifd_flex_number(&map, "scale_x", &ret->scale_x) &&
        ifd_flex_number(&map, "scale_y", &ret->scale_y) &&
        ifd_flex_ints(&map, "subset_idxs", ret->subset, SUBSET_MAX, &ret->subset_count) &&
        ret->subset_count > 0 && ret->left >= 0 && ret->left < (double)landmarks &&
        ret->right >= 0 && ret->right < (double)landmarks && isfinite(ret->angle) &&
        ret->height > 0 && ret->width > 0 && ret->scale_x > 0 && ret->scale_y > 0;
    for (uint32_t i = 0; is_sound && i < ret->subset_count; i++) {
        is_sound = ret->subset[i] >= 0 && ret->subset[i] < landmarks;
    }
    if (!is_sound) {
        ifd_build_fail(c->b, IFD_CORRUPT, "options for %lld landmarks", (long long)landmarks);
    }
    return is_sound;
}

/* Cosine and sine of the angle by which the image is turned: options.angle less that of the line
 * from left to right, whose length is 0 where both are one point. */
static void turn(const struct ifd_composite *c, uint32_t points, const struct options *o,
                 uint32_t *ret_cos, uint32_t *ret_sin)
{
    struct ifd_builder *b = c->b;
    const uint32_t line =
        ifd_build_binary(b, IFD_OP_SUB, ifd_build_cut(b, points, 0, (int64_t)o->right, 1),
                         ifd_build_cut(b, points, 0, (int64_t)o->left, 1));
    const uint32_t dx = column(c, line, 0), dy = column(c, line, 1);
    const uint32_t length = ifd_build_unary(b, IFD_OP_SQRT, sum_of_products(b, dx, dx, dy, dy));
    const struct ifd_desc flag = {.dtype = IFD_BOOL}, real = {.dtype = IFD_F32};
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0), one = ifd_build_number(b, IFD_F32, 1);
    const uint32_t pair[2] = {length, zero};
    const uint32_t is_point = ifd_build_node(b, IFD_OP_EQUAL, pair, 2, &flag, NULL);
    const uint32_t x = ifd_build_node(
        b, IFD_OP_SELECT,
        (const uint32_t[]){is_point, ifd_build_binary(b, IFD_OP_ADD, dx, one), dx}, 3, &real, NULL);
    const uint32_t divisor = ifd_build_node(
        b, IFD_OP_SELECT,
        (const uint32_t[]){is_point, ifd_build_binary(b, IFD_OP_ADD, length, one), length}, 3,
        &real, NULL);
    const uint32_t line_cos = ifd_build_binary(b, IFD_OP_DIV, x, divisor);
    const uint32_t line_sin = ifd_build_binary(b, IFD_OP_DIV, dy, divisor);
    const uint32_t to_cos = ifd_build_number(b, IFD_F32, cos(o->angle));
    const uint32_t to_sin = ifd_build_number(b, IFD_F32, sin(o->angle));
    *ret_cos = sum_of_products(b, to_cos, line_cos, to_sin, line_sin);
    *ret_sin = difference_of_products(b, to_sin, line_cos, to_cos, line_sin);
}

/* Middle and size of a column of numbers. */
static void extent(struct ifd_builder *b, uint32_t x, uint32_t *ret_middle, uint32_t *ret_size)
{
    const struct ifd_ints rows = {.count = 1, .value = {0}};
    const uint32_t most = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, x, &rows, true);
    const uint32_t least = ifd_build_reduce(b, IFD_OP_REDUCE_MIN, x, &rows, true);
    *ret_middle = ifd_build_with(b, IFD_OP_MUL, ifd_build_binary(b, IFD_OP_ADD, most, least), 0.5);
    *ret_size = ifd_build_binary(b, IFD_OP_SUB, most, least);
}

/* Input: landmarks. Output: the matrix from pixels of an image to the input's place that holds a
 * subset of them, upright: move to its middle, turn, scale, move by half the image. */
void ifd_composite_landmarks_matrix(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    struct options o = {0};
    if (!ifd_composite_has_inputs(c, 1) || !is_second_version(c)) {
        return;
    }
    const struct ifd_shape x = ifd_build_desc(b, c->input[0])->shape;
    if (x.rank != 3 || x.dim[0] != 1 || x.dim[2] != 3) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "landmarks %s, expected [1,n,3]", ifd_shape_text(&x).s);
        return;
    }
    if (!read_options(c, x.dim[1], &o)) {
        return;
    }
    int64_t subset[SUBSET_MAX];
    for (uint32_t i = 0; i < o.subset_count; i++) {
        subset[i] = o.subset[i];
    }
    const struct ifd_gather_attrs first = {.axis = 0};
    const uint32_t points = ifd_build_reshape(b, c->input[0], x.dim + 1, 2);
    const uint32_t some = ifd_build_node(
        b, IFD_OP_GATHER, (const uint32_t[]){points, ifd_build_list(b, subset, o.subset_count)}, 2,
        NULL, &first);
    uint32_t cosine = IFD_NONE, sine = IFD_NONE;
    turn(c, points, &o, &cosine, &sine);
    const uint32_t px = column(c, some, 0), py = column(c, some, 1);
    uint32_t middle_x = IFD_NONE, middle_y = IFD_NONE, size_x = IFD_NONE, size_y = IFD_NONE;
    extent(b, difference_of_products(b, px, cosine, py, sine), &middle_x, &size_x);
    extent(b, sum_of_products(b, px, sine, py, cosine), &middle_y, &size_y);
    const uint32_t to_x = ifd_build_with(b, IFD_OP_MUL, size_x, o.scale_x / o.width);
    const uint32_t to_y = ifd_build_with(b, IFD_OP_MUL, size_y, o.scale_y / o.height);
    /* the turned middle less half of the turned size */
    const uint32_t from_x =
        ifd_build_binary(b, IFD_OP_SUB, middle_x, ifd_build_with(b, IFD_OP_MUL, to_x, o.width / 2));
    const uint32_t from_y = ifd_build_binary(b, IFD_OP_SUB, middle_y,
                                             ifd_build_with(b, IFD_OP_MUL, to_y, o.height / 2));
    const uint32_t zero = ifd_composite_fill(b, IFD_F32, 0, (const int64_t[]){1, 1}, 2);
    const uint32_t one = ifd_composite_fill(b, IFD_F32, 1, (const int64_t[]){1, 1}, 2);
    const uint32_t back = ifd_build_binary(b, IFD_OP_SUB, zero, sine);
    const uint32_t element[16] = {ifd_build_binary(b, IFD_OP_MUL, cosine, to_x),
                                  ifd_build_binary(b, IFD_OP_MUL, sine, to_y),
                                  zero,
                                  sum_of_products(b, cosine, from_x, sine, from_y),
                                  ifd_build_binary(b, IFD_OP_MUL, back, to_x),
                                  ifd_build_binary(b, IFD_OP_MUL, cosine, to_y),
                                  zero,
                                  sum_of_products(b, back, from_x, cosine, from_y),
                                  zero,
                                  zero,
                                  one,
                                  zero,
                                  zero,
                                  zero,
                                  zero,
                                  one};
    const struct ifd_axis_attrs along = {.axis = 1};
    c->output[0] = ifd_build_reshape(b, ifd_build_node(b, IFD_OP_CONCAT, element, 16, NULL, &along),
                                     (const int64_t[]){1, 4, 4}, 3);
}

/* ---- landmarks by a matrix ---- */

/* Inputs: landmarks of two or three numbers, a matrix of 4 by 4, of which x and y get the first two
 * rows: z does not count, and stays. */
void ifd_composite_transform_landmarks(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (!ifd_composite_has_inputs(c, 2) || !is_second_version(c)) {
        return;
    }
    const struct ifd_shape x = ifd_build_desc(b, c->input[0])->shape;
    const struct ifd_shape m = ifd_build_desc(b, c->input[1])->shape;
    size_t elements = 0;
    if (x.rank != 3 || x.dim[0] != 1 || (x.dim[2] != 2 && x.dim[2] != 3) ||
        !ifd_shape_elements(&m, &elements) || elements != 16) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "landmarks %s by a matrix %s", ifd_shape_text(&x).s,
                       ifd_shape_text(&m).s);
        return;
    }
    const uint32_t matrix = ifd_build_reshape(b, c->input[1], (const int64_t[]){4, 4}, 2);
    const uint32_t points = ifd_build_reshape(b, c->input[0], x.dim + 1, 2);
    const uint32_t px = column(c, points, 0), py = column(c, points, 1);
    uint32_t made[3];
    for (int64_t row = 0; row < 2; row++) {
        const uint32_t line = ifd_build_cut(b, matrix, 0, row, 1);
        made[row] = ifd_build_binary(
            b, IFD_OP_ADD, sum_of_products(b, px, column(c, line, 0), py, column(c, line, 1)),
            column(c, line, 3));
    }
    if (x.dim[2] == 3) {
        made[2] = column(c, points, 2);
    }
    const struct ifd_axis_attrs along = {.axis = 1};
    c->output[0] = ifd_build_reshape(
        b, ifd_build_node(b, IFD_OP_CONCAT, made, (uint32_t)x.dim[2], NULL, &along), x.dim, 3);
}
