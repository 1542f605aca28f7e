/* Nodes that normalize, choose, compare, sum up and move: CpuAcc equals the reference kernels, on
 * one thread and on several. */
#include "tests/backends/cpuacc/trial.h"

static uint32_t next_value(struct trial *t)
{
    return add_value(t, IFD_F32, (struct ifd_shape){0}, none);
}

static uint32_t binary(struct trial *t, enum ifd_op op, uint32_t a, uint32_t b)
{
    const uint32_t out = next_value(t);
    (void)add_node(t, op, (const uint32_t[]){a, b}, 2, out);
    return out;
}

static uint32_t mean_of_rows(struct trial *t, uint32_t x)
{
    const uint32_t out = next_value(t);
    struct ifd_reduce_attrs *attrs = attrs_of(add_node(t, IFD_OP_REDUCE_MEAN, &x, 1, out));
    attrs->axes = (struct ifd_ints){.count = 1, .value = {pick(t, 0, 1) ? 2 : -1}};
    attrs->keep_dims = true;
    return out;
}

/* Rows by their mean and deviation, or by their squares alone, in the forms that exporters write;
 * sometimes the mean or a centred row is read by others, too. */
static void normalized(struct trial *t)
{
    static const float epsilon[] = {1e-3f};
    const int64_t n = pick(t, 2, 70);
    const bool has_mean = pick(t, 0, 2) > 0, divides = pick(t, 0, 1) != 0;
    t->input = add_value(t, IFD_F32, SHAPE(pick(t, 1, 3), pick(t, 1, 50), n), none);
    uint32_t centred = t->input;
    const uint32_t mean = has_mean ? mean_of_rows(t, t->input) : 0;
    if (has_mean) {
        centred = binary(t, IFD_OP_SUB, t->input, mean);
    }
    uint32_t square = next_value(t);
    if (has_mean && pick(t, 0, 1)) {
        square = binary(t, IFD_OP_SQUARED_DIFFERENCE, t->input, mean);
    } else if (pick(t, 0, 1)) {
        (void)add_node(t, IFD_OP_SQUARE, &centred, 1, square);
    } else {
        square = binary(t, IFD_OP_MUL, centred, centred);
    }
    const uint32_t sum = binary(t, IFD_OP_ADD, mean_of_rows(t, square),
                                constant(t, add_value(t, IFD_F32, SHAPE(1), none), epsilon));
    const uint32_t root = next_value(t);
    (void)add_node(t, divides ? IFD_OP_SQRT : IFD_OP_RSQRT, &sum, 1, root);
    uint32_t out = divides || pick(t, 0, 1)
                       ? binary(t, divides ? IFD_OP_DIV : IFD_OP_MUL, centred, root)
                       : binary(t, IFD_OP_MUL, root, centred);
    if (pick(t, 0, 2) > 0) {
        out = binary(t, IFD_OP_MUL, out, constant(t, add_value(t, IFD_F32, SHAPE(n), none), NULL));
    }
    if (pick(t, 0, 2) > 0) {
        out =
            binary(t, IFD_OP_ADD, constant(t, add_value(t, IFD_F32, SHAPE(1, n), none), NULL), out);
    }
    if (pick(t, 0, 3) == 0) {
        (void)binary(t, IFD_OP_ADD, out, has_mean && pick(t, 0, 1) ? mean : centred);
    }
}

/* ---- between floats and 8 bits ---- */

static uint32_t quantized(struct trial *t, uint32_t x, struct ifd_quant how)
{
    const uint32_t out = add_value(t, IFD_S8, (struct ifd_shape){0}, how);
    struct ifd_quantize_attrs *attrs = attrs_of(add_node(t, IFD_OP_QUANTIZE, &x, 1, out));
    attrs->rounds_even = pick(t, 0, 1) != 0;
    return out;
}

/* A mean of stored numbers, often half way between two others: of as many as floats divide by
 * without rounding. */
static void stored_mean(struct trial *t)
{
    static const float scale_x[] = {0x1p-4f}, scale_y[] = {0x1p-5f};
    const struct ifd_quant x = {scale_x, zero, 1, 0}, y = {scale_y, zero, 1, 0};
    const int64_t axis = pick(t, 0, 1), h = (int64_t)1 << pick(t, 0, 3);
    t->input = add_value(
        t, IFD_S8,
        SHAPE((int64_t)1 << pick(t, 0, 2), h, (int64_t)1 << pick(t, 0, 3), pick(t, 1, 90)), x);
    const uint32_t real = next_value(t), mean = next_value(t);
    (void)add_node(t, IFD_OP_DEQUANTIZE, &t->input, 1, real);
    struct ifd_reduce_attrs *attrs = attrs_of(add_node(t, IFD_OP_REDUCE_MEAN, &real, 1, mean));
    attrs->axes = (struct ifd_ints){.count = 2, .value = {axis, axis - 3}};
    attrs->keep_dims = pick(t, 0, 1) != 0;
    (void)quantized(t, mean, pick(t, 0, 1) ? x : y);
}

/* A picture that comes in planes, and turns that are none of pixels. */
static void picture(struct trial *t)
{
    const bool is_turn = pick(t, 0, 4) > 0;
    const int64_t c = pick(t, 1, 18), h = pick(t, 1, 40);
    t->input = add_value(t, IFD_F32, SHAPE(pick(t, 1, 4) / 4 + 1, c, h, 1600 / c / h + 1), none);
    const uint32_t stored = quantized(t, t->input, quant);
    const uint32_t out = add_value(t, IFD_S8, (struct ifd_shape){0}, quant);
    struct ifd_transpose_attrs *attrs = attrs_of(add_node(t, IFD_OP_TRANSPOSE, &stored, 1, out));
    attrs->perm = is_turn ? (struct ifd_ints){.count = 4, .value = {0, 2, 3, 1}}
                          : (struct ifd_ints){.count = 4, .value = {0, 3, 2, 1}};
}

/* ---- folds ---- */

static void arg(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 3), pick(t, 1, 40), pick(t, 1, 90)), how);
    struct ifd_node *node =
        add_node(t, pick(t, 0, 1) ? IFD_OP_ARG_MAX : IFD_OP_ARG_MIN, &t->input, 1,
                 add_value(t, pick(t, 0, 1) ? IFD_S32 : IFD_S64, (struct ifd_shape){0}, none));
    struct ifd_arg_attrs *attrs = attrs_of(node);
    attrs->axis = (int32_t)pick(t, -3, 2);
    attrs->keep_dims = pick(t, 0, 1) != 0;
}

static void fold(struct trial *t)
{
    static const enum ifd_op op[] = {IFD_OP_REDUCE_MAX,  IFD_OP_REDUCE_MIN, IFD_OP_REDUCE_SUM,
                                     IFD_OP_REDUCE_PROD, IFD_OP_REDUCE_ANY, IFD_OP_REDUCE_ALL};
    const int64_t which = pick(t, 0, 5);
    struct ifd_quant how = none;
    enum ifd_dtype dtype = which < 2 ? float_or_s8(t, &how) : which < 4 ? IFD_S32 : IFD_BOOL;
    if (which < 2 && pick(t, 0, 2) == 0) {
        dtype = IFD_S32;
        how = none;
    }
    const int64_t count = pick(t, 1, 2), axis = pick(t, 0, 3 - count);
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 3), pick(t, 1, 40), pick(t, 1, 90)), how);
    struct ifd_node *node =
        add_node(t, op[which], &t->input, 1, add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_reduce_attrs *attrs = attrs_of(node);
    attrs->axes = (struct ifd_ints){.count = (uint32_t)count, .value = {axis, axis + 1}};
}

static void cumsum(struct trial *t)
{
    const enum ifd_dtype dtype = pick(t, 0, 1) ? IFD_F32 : IFD_S32;
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 4), pick(t, 1, 20), pick(t, 1, 30)), none);
    struct ifd_node *node =
        add_node(t, IFD_OP_CUMSUM, &t->input, 1, add_value(t, dtype, (struct ifd_shape){0}, none));
    struct ifd_cumsum_attrs *attrs = attrs_of(node);
    attrs->axis = (int32_t)pick(t, -3, 2);
    attrs->exclusive = pick(t, 0, 1) != 0;
    attrs->reverse = pick(t, 0, 1) != 0;
}

/* Values or indices of the best ones. */
static void top_k(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const enum ifd_dtype index = pick(t, 0, 1) ? IFD_S32 : IFD_S64;
    const int64_t n = pick(t, 1, 400);
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 5), n), how);
    const uint32_t out[] = {add_value(t, dtype, (struct ifd_shape){0}, how),
                            add_value(t, index, (struct ifd_shape){0}, none)};
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(t->graph, IFD_OP_TOP_K, &t->input, 1, out, 2, &node, &err), &err);
    ((struct ifd_top_k_attrs *)attrs_of(node))->k = (int32_t)pick(t, 1, n);
    REQUIRE_OK(ifd_graph_set_io(t->graph, &t->input, 1, &out[pick(t, 0, 1)], 1, &err), &err);
}

/* Boxes that overlap by halves and more; or how many were kept. */
static void suppressed(struct trial *t)
{
    static float at[ELEMENTS];
    const int64_t batch = pick(t, 1, 2), classes = pick(t, 1, 3), boxes = pick(t, 1, 60);
    for (int64_t i = 0; i < batch * boxes * 4; i++) {
        at[i] = (float)pick(t, 0, 6);
    }
    t->input = add_value(t, IFD_F32, SHAPE(batch, classes, boxes), none);
    const uint32_t input[] = {constant(t, add_value(t, IFD_F32, SHAPE(batch, boxes, 4), none), at),
                              t->input};
    const uint32_t out[] = {add_value(t, IFD_S64, (struct ifd_shape){0}, none),
                            add_value(t, IFD_S64, (struct ifd_shape){0}, none)};
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    REQUIRE_OK(
        ifd_graph_add_node(t->graph, IFD_OP_NON_MAX_SUPPRESSION, input, 2, out, 2, &node, &err),
        &err);
    struct ifd_non_max_suppression_attrs *attrs = attrs_of(node);
    attrs->max_boxes = (int32_t)pick(t, 1, 70);
    attrs->iou_threshold = test_random_f32(&t->random, -0.1f, 0.9f);
    attrs->has_score = pick(t, 0, 1) != 0;
    attrs->score_threshold = test_random_f32(&t->random, -3, 2);
    attrs->is_centered = pick(t, 0, 1) != 0;
    REQUIRE_OK(ifd_graph_set_io(t->graph, &t->input, 1, &out[pick(t, 0, 1)], 1, &err), &err);
}

/* ---- elements by conditions ---- */

/* A shape that broadcasts to dim. */
static struct ifd_shape part_of(struct trial *t, const int64_t *dim)
{
    struct ifd_shape shape = {.rank = (uint32_t)pick(t, 0, 3)};
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.dim[d] = pick(t, 0, 2) ? dim[3 - shape.rank + d] : 1;
    }
    return shape;
}

static void compared(struct trial *t)
{
    static const enum ifd_op op[] = {IFD_OP_EQUAL,       IFD_OP_NOT_EQUAL, IFD_OP_LESS,
                                     IFD_OP_LESS_EQUAL,  IFD_OP_GREATER,   IFD_OP_GREATER_EQUAL,
                                     IFD_OP_LOGICAL_AND, IFD_OP_LOGICAL_OR};
    static int32_t few[ELEMENTS];
    const int64_t which = pick(t, 0, 7), dim[] = {pick(t, 1, 4), pick(t, 1, 9), pick(t, 1, 70)};
    const enum ifd_dtype dtype = which >= 6 ? IFD_BOOL : pick(t, 0, 1) ? IFD_F32 : IFD_S32;
    for (size_t i = 0; i < ELEMENTS; i++) {
        few[i] = dtype == IFD_BOOL ? (int32_t)pick(t, 0, 1) * 0x01000001 : (int32_t)pick(t, -1, 1);
    }
    t->input =
        add_value(t, dtype, pick(t, 0, 1) ? SHAPE(dim[0], dim[1], dim[2]) : part_of(t, dim), none);
    const uint32_t other = constant(t, add_value(t, dtype, part_of(t, dim), none), few);
    const bool is_first = pick(t, 0, 1) != 0;
    const uint32_t input[] = {is_first ? t->input : other, is_first ? other : t->input};
    (void)add_node(t, op[which], input, 2, add_value(t, IFD_BOOL, (struct ifd_shape){0}, none));
}

static void selected(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const int64_t dim[] = {pick(t, 1, 4), pick(t, 1, 9), pick(t, 1, 70)};
    static uint8_t condition[ELEMENTS];
    for (size_t i = 0; i < ELEMENTS; i++) {
        condition[i] = (uint8_t)pick(t, 0, 1);
    }
    const bool leading = pick(t, 0, 2) == 0, is_first = pick(t, 0, 1) != 0;
    const uint32_t rank = (uint32_t)pick(t, 1, 3); /* of a, whose first dimension leads */
    struct ifd_shape a = part_of(t, dim), b = part_of(t, dim), which = part_of(t, dim);
    if (leading) {
        a.rank = rank;
        memcpy(a.dim, dim + 3 - rank, rank * sizeof(*dim));
        which = SHAPE(dim[3 - rank]);
    }
    t->input = add_value(t, dtype, is_first ? a : b, how);
    const uint32_t chosen = constant(t, add_value(t, IFD_BOOL, which, none), condition);
    const uint32_t other = constant(t, add_value(t, dtype, is_first ? b : a, how), NULL);
    const uint32_t input[] = {chosen, is_first ? t->input : other, is_first ? other : t->input};
    struct ifd_node *node =
        add_node(t, IFD_OP_SELECT, input, 3, add_value(t, dtype, (struct ifd_shape){0}, how));
    ((struct ifd_select_attrs *)attrs_of(node))->leading = leading;
}

/* ---- moves ---- */

static void reverse(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const uint32_t count = (uint32_t)pick(t, 1, 3);
    const int64_t first = pick(t, 0, 2);
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 4), pick(t, 1, 9), pick(t, 1, 20)), how);
    struct ifd_node *node =
        add_node(t, IFD_OP_REVERSE, &t->input, 1, add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_reverse_attrs *attrs = attrs_of(node);
    attrs->axes.count = count;
    for (uint32_t i = 0; i < count; i++) {
        attrs->axes.value[i] = (first + i) % 3 - (pick(t, 0, 1) ? 3 : 0);
    }
}

static void mirror_pad(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const int64_t dim[] = {pick(t, 1, 4), pick(t, 1, 9), pick(t, 1, 9), pick(t, 1, 9)};
    const bool symmetric = pick(t, 0, 1) != 0;
    t->input = add_value(t, dtype, SHAPE(dim[0], dim[1], dim[2], dim[3]), how);
    struct ifd_node *node = add_node(t, IFD_OP_MIRROR_PAD, &t->input, 1,
                                     add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_mirror_pad_attrs *attrs = attrs_of(node);
    attrs->before.count = attrs->after.count = 4;
    attrs->symmetric = symmetric;
    for (uint32_t d = (uint32_t)pick(t, 1, 2); d < 4; d++) {
        const int64_t most = dim[d] - (symmetric ? 0 : 1);
        attrs->before.value[d] = pick(t, 0, 2) ? pick(t, 0, most) : 0;
        attrs->after.value[d] = pick(t, 0, 2) ? pick(t, 0, most) : 0;
    }
}

static void depth(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const bool to_depth = pick(t, 0, 1) != 0;
    const int64_t block = pick(t, 1, 4), batch = pick(t, 1, 2), h = pick(t, 1, 6);
    const int64_t w = pick(t, 1, 6), c = pick(t, 1, 6);
    t->input = add_value(t, dtype,
                         to_depth ? SHAPE(batch, h * block, w * block, c)
                                  : SHAPE(batch, h, w, c * block * block),
                         how);
    struct ifd_node *node = add_node(t, to_depth ? IFD_OP_SPACE_TO_DEPTH : IFD_OP_DEPTH_TO_SPACE,
                                     &t->input, 1, add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_space_depth_attrs *attrs = attrs_of(node);
    attrs->block = (int32_t)block;
}

/* ---- recurrent layers ---- */

static const float scale_gate[] = {0.008f}, scale_cell[] = {0x1p-11f}, scale_bias[] = {0.0004f};
static const float scale_state[] = {0.01f};
static const int32_t zero_state[] = {5};

/* A few steps of a layer, with the state of an earlier call or without. */
static void lstm(struct trial *t)
{
    const struct ifd_quant weights = {scale_gate, zero_w, 1, 0}, bias = {scale_bias, zero_w, 1, 0};
    const struct ifd_quant state = {scale_state, zero_state, 1, 0};
    const struct ifd_quant cell = {scale_cell, zero_w, 1, 0};
    const int64_t batch = pick(t, 1, 3), steps = pick(t, 1, 6), in = pick(t, 1, 40);
    const int64_t cells = pick(t, 1, 50);
    const bool is_major = pick(t, 0, 1) != 0, has_input_gate = pick(t, 0, 2) > 0;
    uint32_t input[15], count = 13, out[3];
    t->input =
        add_value(t, IFD_S8, is_major ? SHAPE(steps, batch, in) : SHAPE(batch, steps, in), quant);
    input[0] = t->input;
    for (uint32_t g = 0; g < 4; g++) {
        const bool has = g > 0 || has_input_gate;
        input[1 + g] =
            has ? constant(t, add_value(t, IFD_S8, SHAPE(cells, in), weights), NULL) : IFD_NO_VALUE;
        input[5 + g] = has ? constant(t, add_value(t, IFD_S8, SHAPE(cells, cells), weights), NULL)
                           : IFD_NO_VALUE;
        input[9 + g] =
            has ? constant(t, add_value(t, IFD_S32, SHAPE(cells), bias), NULL) : IFD_NO_VALUE;
    }
    if (pick(t, 0, 1)) {
        input[13] = constant(t, add_value(t, IFD_S8, SHAPE(batch, cells), state), NULL);
        input[14] = constant(t, add_value(t, IFD_S16, SHAPE(batch, cells), cell), NULL);
        count = 15;
    }
    out[0] = add_value(t, IFD_S8, (struct ifd_shape){0}, state);
    out[1] = add_value(t, IFD_S8, (struct ifd_shape){0}, state);
    out[2] = add_value(t, IFD_S16, (struct ifd_shape){0}, cell);
    const bool keeps = pick(t, 0, 1) != 0;
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    REQUIRE_OK(
        ifd_graph_add_node(t->graph, IFD_OP_LSTM, input, count, out, keeps ? 3 : 1, &node, &err),
        &err);
    struct ifd_lstm_attrs *attrs = attrs_of(node);
    attrs->time_major = is_major;
    attrs->cell_exponent = (int32_t)pick(t, -13, -10);
    attrs->cell_clip = pick(t, 0, 1) ? test_random_f32(&t->random, 0.5f, 9) : 0;
    for (int g = 0; g < 4; g++) {
        attrs->gate_scale[g] = 0x1p-12f;
    }
    REQUIRE_OK(ifd_graph_set_io(t->graph, &t->input, 1, &out[keeps ? pick(t, 0, 2) : 0], 1, &err),
               &err);
}

static void svdf(struct trial *t)
{
    static const float scale_x[] = {0.03f}, scale_feature[] = {0.01f}, scale_time[] = {0x1p-12f};
    static const float scale_memory[] = {0x1p-9f};
    const struct ifd_quant feature = {scale_feature, zero_w, 1, 0};
    const struct ifd_quant memory = {scale_memory, zero_w, 1, 0}, x = {scale_x, zero, 1, 0};
    const struct ifd_quant time = {scale_time, zero_w, 1, 0};
    const int64_t batch = pick(t, 1, 3), in = pick(t, 1, 40), rank = pick(t, 1, 2);
    const int64_t filters = rank * pick(t, 1, 20), length = pick(t, 1, 9);
    t->input = add_value(t, IFD_S8, SHAPE(batch, in), x);
    const uint32_t input[] = {
        t->input, constant(t, add_value(t, IFD_S8, SHAPE(filters, in), feature), NULL),
        constant(t, add_value(t, IFD_S16, SHAPE(filters, length), time), NULL),
        pick(t, 0, 1) ? constant(t, add_value(t, IFD_S32, SHAPE(filters / rank), none), NULL)
                      : IFD_NO_VALUE,
        constant(t, add_value(t, IFD_S16, SHAPE(batch, filters * length), memory), NULL)};
    const uint32_t out[] = {add_value(t, IFD_S8, (struct ifd_shape){0}, quant),
                            add_value(t, IFD_S16, (struct ifd_shape){0}, memory)};
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(t->graph, IFD_OP_SVDF, input, 5, out, 2, &node, &err), &err);
    ((struct ifd_svdf_attrs *)attrs_of(node))->rank = (int32_t)rank;
    REQUIRE_OK(ifd_graph_set_io(t->graph, &t->input, 1, &out[pick(t, 0, 1)], 1, &err), &err);
}

NODE(normalization_of_rows, normalized)
NODE(mean_of_stored_numbers, stored_mean)
NODE(picture_in_planes, picture)
NODE(arg_max_and_arg_min, arg)
NODE(fold, fold)
NODE(cumsum, cumsum)
NODE(top_k, top_k)
NODE(non_max_suppression, suppressed)
NODE(comparison, compared)
NODE(select, selected)
NODE(reverse, reverse)
NODE(mirror_pad, mirror_pad)
NODE(depth_to_space_and_back, depth)
NODE(lstm_of_8_bits, lstm)
NODE(svdf_of_8_bits, svdf)

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(normalization_of_rows_equals_its_reference),
        T(mean_of_stored_numbers_equals_its_reference),
        T(picture_in_planes_equals_its_reference),
        T(arg_max_and_arg_min_equals_its_reference),
        T(fold_equals_its_reference),
        T(cumsum_equals_its_reference),
        T(top_k_equals_its_reference),
        T(non_max_suppression_equals_its_reference),
        T(comparison_equals_its_reference),
        T(select_equals_its_reference),
        T(reverse_equals_its_reference),
        T(mirror_pad_equals_its_reference),
        T(depth_to_space_and_back_equals_its_reference),
        T(lstm_of_8_bits_equals_its_reference),
        T(svdf_of_8_bits_equals_its_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
