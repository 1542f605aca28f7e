/* Nodes of random shapes, most of them alone: CpuAcc equals the reference kernels, on one thread
 * and on several. */
#include "tests/backends/cpuacc/trial.h"

/* ---- nodes ---- */

static void transpose_conv(struct trial *t, bool is_float)
{
    const int64_t in_c = pick(t, 1, 20), out_c = pick(t, 1, 6), kh = pick(t, 1, 5);
    const int64_t kw = pick(t, 1, 5), stride_h = pick(t, 1, 3), stride_w = pick(t, 1, 3);
    const int64_t h = pick(t, 1, 6), w = pick(t, 1, 9), batch = pick(t, 1, 2);
    const bool is_same = pick(t, 0, 1) != 0;
    const int64_t extra_h = kh > stride_h ? kh - stride_h : 0;
    const int64_t extra_w = kw > stride_w ? kw - stride_w : 0;
    const int32_t dims[] = {(int32_t)batch, (int32_t)(h * stride_h + (is_same ? 0 : extra_h)),
                            (int32_t)(w * stride_w + (is_same ? 0 : extra_w)), (int32_t)out_c};
    const enum ifd_dtype dtype = is_float ? IFD_F32 : IFD_S8;
    const struct ifd_quant weights = {scale_w, zero_w, (uint32_t)out_c, 0};
    t->input = add_value(t, dtype, SHAPE(batch, h, w, in_c), is_float ? none : quant);
    const uint32_t input[] = {
        constant(t, add_value(t, IFD_S32, SHAPE(4), none), dims),
        constant(t, add_value(t, dtype, SHAPE(out_c, kh, kw, in_c), is_float ? none : weights),
                 NULL),
        t->input,
        constant(t, add_value(t, is_float ? IFD_F32 : IFD_S32, SHAPE(out_c), none), NULL),
    };
    struct ifd_node *node =
        add_node(t, IFD_OP_TRANSPOSE_CONV2D, input, (uint32_t)pick(t, 3, 4),
                 add_value(t, dtype, (struct ifd_shape){0}, is_float ? none : quant));
    struct ifd_transpose_conv2d_attrs *attrs = attrs_of(node);
    attrs->window.padding = is_same ? IFD_PAD_SAME : IFD_PAD_VALID;
    attrs->window.stride_h = (int32_t)stride_h;
    attrs->window.stride_w = (int32_t)stride_w;
    attrs->activation = pick(t, 0, 1) ? IFD_ACT_RELU : IFD_ACT_NONE;
}

static void transpose_conv_f32(struct trial *t)
{
    transpose_conv(t, true);
}

static void transpose_conv_s8(struct trial *t)
{
    transpose_conv(t, false);
}

/* A clamp whose upper bound lies half way between two steps, as nearly as a scale can be. */
static void clamped_conv(struct trial *t)
{
    static float scale_out[1];
    const bool is_six = pick(t, 0, 1) != 0;
    const int64_t in_c = pick(t, 1, 20), out_c = 6;
    scale_out[0] = (is_six ? 6.0f : 1.0f) / ((float)pick(t, 1, 120) + 0.5f);
    const struct ifd_quant weights = {scale_w, zero_w, (uint32_t)out_c, 0};
    t->input = add_value(t, IFD_S8, SHAPE(1, pick(t, 1, 6), pick(t, 1, 9), in_c), quant);
    const uint32_t input[] = {
        t->input,
        constant(t, add_value(t, IFD_S8, SHAPE(out_c, 1, 1, in_c), weights), NULL),
    };
    struct ifd_node *node = add_node(
        t, IFD_OP_CONV2D, input, 2,
        add_value(t, IFD_S8, (struct ifd_shape){0}, (struct ifd_quant){scale_out, zero, 1, 0}));
    struct ifd_conv2d_attrs *attrs = attrs_of(node);
    attrs->activation = is_six ? IFD_ACT_RELU6 : IFD_ACT_RELU_N1_TO_1;
}

/* Groups of channels, with what a layer may take over behind it: a residual, another function. */
static void grouped_conv(struct trial *t)
{
    const int64_t groups = pick(t, 2, 5), side = pick(t, 1, 3);
    const int64_t depth = pick(t, 0, 1) ? 4 * pick(t, 1, 2) : pick(t, 1, 9);
    const bool is_even = pick(t, 0, 1) != 0; /* as many channels out as in */
    const bool has_residual = pick(t, 0, 1) != 0;
    const int64_t in_c = groups * depth;
    const int64_t out_c = has_residual || is_even ? in_c : groups * pick(t, 1, 20);
    const struct ifd_shape filter = SHAPE(out_c, side, pick(t, 1, 3), depth);
    t->input =
        add_value(t, IFD_F32, SHAPE(pick(t, 1, 2), pick(t, 3, 9), pick(t, 3, 12), in_c), none);
    const uint32_t input[] = {t->input, constant(t, add_value(t, IFD_F32, filter, none), NULL),
                              constant(t, add_value(t, IFD_F32, SHAPE(out_c), none), NULL)};
    uint32_t out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    struct ifd_node *node = add_node(t, IFD_OP_CONV2D, input, (uint32_t)pick(t, 2, 3), out);
    struct ifd_conv2d_attrs *attrs = attrs_of(node);
    attrs->window.padding = has_residual || pick(t, 0, 1) ? IFD_PAD_SAME : IFD_PAD_VALID;
    attrs->window.stride_h = has_residual ? 1 : (int32_t)pick(t, 1, 2);
    attrs->window.stride_w = has_residual ? 1 : (int32_t)pick(t, 1, 2);
    attrs->activation = pick(t, 0, 1) ? IFD_ACT_RELU : IFD_ACT_NONE;
    if (has_residual) {
        const uint32_t both[] = {out, t->input};
        out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
        (void)add_node(t, IFD_OP_ADD, both, 2, out);
    }
    if (pick(t, 0, 1)) {
        const uint32_t sum = out;
        out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
        (void)add_node(t, IFD_OP_HARD_SWISH, &sum, 1, out);
    }
}

/* softmax(x k scale + mask) v, all or some of which becomes one step. */
static void attention(struct trial *t)
{
    const int64_t batch = pick(t, 1, 2), heads = pick(t, 1, 3), rows = pick(t, 1, 60);
    const int64_t depth = pick(t, 1, 40), columns = pick(t, 1, 70), wide = pick(t, 1, 40);
    const struct ifd_shape of_k = SHAPE(batch, heads, depth, columns);
    const struct ifd_shape of_v = SHAPE(batch, heads, columns, wide);
    const struct ifd_shape masks[] = {SHAPE(rows, columns), SHAPE(batch, 1, 1, columns),
                                      SHAPE(1, heads, rows, columns)};
    const float number[1] = {0.25f};
    t->input = add_value(t, IFD_F32, SHAPE(batch, heads, rows, depth), none);
    const uint32_t k = constant(t, add_value(t, IFD_F32, of_k, none), NULL);
    const uint32_t v = constant(t, add_value(t, IFD_F32, of_v, none), NULL);
    uint32_t x = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    (void)add_node(t, IFD_OP_BATCH_MATMUL, (const uint32_t[]){t->input, k}, 2, x);
    const uint32_t factor = constant(t, add_value(t, IFD_F32, SHAPE(1), none), number);
    const uint32_t mask = constant(t, add_value(t, IFD_F32, masks[pick(t, 0, 2)], none), NULL);
    const uint32_t other[] = {factor, mask};
    static const enum ifd_op op[] = {IFD_OP_MUL, IFD_OP_ADD};
    for (int i = 0; i < 2; i++) {
        const uint32_t both[] = {x, other[i]};
        if (pick(t, 0, 2) > 0) {
            x = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
            (void)add_node(t, op[i], both, 2, x);
        }
    }
    const uint32_t scores = x;
    x = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    ((struct ifd_softmax_attrs *)attrs_of(add_node(t, IFD_OP_SOFTMAX, &scores, 1, x)))->beta = 1;
    const uint32_t factors[] = {x, v};
    (void)add_node(t, IFD_OP_BATCH_MATMUL, factors, 2,
                   add_value(t, IFD_F32, (struct ifd_shape){0}, none));
}

/* A bias of 64 bits, of 32, or none. */
static uint32_t wide_bias(struct trial *t, int64_t count)
{
    static int64_t data[64];
    for (int64_t i = 0; i < count; i++) {
        data[i] = pick(t, -1000000, 1000000);
    }
    return pick(t, 0, 1) ? constant(t, add_value(t, IFD_S64, SHAPE(count), none), data)
                         : constant(t, add_value(t, IFD_S32, SHAPE(count), none), NULL);
}

/* The scales give results of all sizes, saturated ones included. */
static struct ifd_quant wide_out(struct trial *t)
{
    static float scale_out[1];
    static const int32_t zero_out[] = {0};
    scale_out[0] = test_random_f32(&t->random, 0.02f, 0.5f);
    return (struct ifd_quant){scale_out, zero_out, 1, 0};
}

static const float scale_wide[] = {0.0005f};
static const struct ifd_quant wide = {scale_wide, zero_w, 1, 0};

static void conv_s16(struct trial *t)
{
    const bool is_depthwise = pick(t, 0, 1) != 0;
    const int64_t c = pick(t, 1, 40), kh = pick(t, 1, 3), kw = pick(t, 1, 3);
    const int64_t out_c = is_depthwise ? c : pick(t, 1, 6), batch = pick(t, 1, 2);
    const struct ifd_quant weights = {scale_w, zero_w, is_depthwise ? 1 : (uint32_t)out_c, 0};
    t->input = add_value(t, IFD_S16, SHAPE(batch, pick(t, 3, 7), pick(t, 3, 9), c), wide);
    const uint32_t input[] = {
        t->input,
        constant(t,
                 add_value(t, IFD_S8, is_depthwise ? SHAPE(1, kh, kw, c) : SHAPE(out_c, kh, kw, c),
                           weights),
                 NULL),
        wide_bias(t, out_c),
    };
    struct ifd_node *node = add_node(t, is_depthwise ? IFD_OP_DEPTHWISE_CONV2D : IFD_OP_CONV2D,
                                     input, (uint32_t)pick(t, 2, 3),
                                     add_value(t, IFD_S16, (struct ifd_shape){0}, wide_out(t)));
    struct ifd_conv2d_attrs *attrs = attrs_of(node);
    attrs->window.padding = pick(t, 0, 1) ? IFD_PAD_SAME : IFD_PAD_VALID;
    attrs->window.stride_h = (int32_t)pick(t, 1, 2);
    attrs->window.stride_w = (int32_t)pick(t, 1, 2);
    attrs->window.dilation_h = attrs->window.padding == IFD_PAD_SAME ? (int32_t)pick(t, 1, 2) : 1;
    attrs->activation = (int32_t)pick(t, IFD_ACT_NONE, IFD_ACT_RELU6);
}

static void fully_connected_s16(struct trial *t)
{
    const int64_t k = pick(t, 1, 300), n = pick(t, 1, 40), rows = pick(t, 1, 40);
    const struct ifd_quant weights = {scale_w, zero_w, 1, 0};
    t->input = add_value(t, IFD_S16, SHAPE(rows, k), wide);
    const uint32_t input[] = {
        t->input,
        constant(t, add_value(t, IFD_S8, SHAPE(n, k), weights), NULL),
        wide_bias(t, n),
    };
    (void)add_node(t, IFD_OP_FULLY_CONNECTED, input, (uint32_t)pick(t, 2, 3),
                   add_value(t, IFD_S16, (struct ifd_shape){0}, wide_out(t)));
}

static void tile(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 3), pick(t, 1, 4), pick(t, 1, 5)), how);
    struct ifd_node *node =
        add_node(t, IFD_OP_TILE, &t->input, 1, add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_tile_attrs *attrs = attrs_of(node);
    attrs->repeats =
        (struct ifd_ints){.count = 3, .value = {pick(t, 1, 3), pick(t, 1, 3), pick(t, 1, 3)}};
}

static void strided_slice(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const int64_t dim[] = {pick(t, 1, 4), pick(t, 1, 6), pick(t, 1, 5)};
    t->input = add_value(t, dtype, SHAPE(dim[0], dim[1], dim[2]), how);
    struct ifd_node *node = add_node(t, IFD_OP_STRIDED_SLICE, &t->input, 1,
                                     add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_strided_slice_attrs *attrs = attrs_of(node);
    const uint32_t count = (uint32_t)pick(t, 1, 3);
    attrs->begin.count = attrs->end.count = count;
    attrs->strides.count = pick(t, 0, 2) > 0 ? count : 0; /* none: all are 1 */
    for (uint32_t d = 0; d < IFD_MAX_RANK; d++) {
        const int64_t begin = d < count ? pick(t, -dim[d], dim[d] - 1) : 0;
        const int64_t first = begin < 0 ? begin + dim[d] : begin;
        attrs->begin.value[d] = begin;
        /* never empty: the planner leaves that to CpuRef */
        attrs->end.value[d] = d < count ? pick(t, first + 1, dim[d] + 2) : 0;
        attrs->strides.value[d] =
            pick(t, 0, 9) > 0 ? pick(t, 1, 3) : 1LL << 52; /* whether they count or not */
    }
    attrs->begin_mask = (int32_t)pick(t, 0, 7);
    attrs->end_mask = (int32_t)pick(t, 0, 7);
    attrs->shrink_axis_mask = pick(t, 0, 2) > 0 ? 0 : (int32_t)pick(t, 0, 7);
}

static void gather(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const int64_t dim[] = {pick(t, 1, 3), pick(t, 1, 7), pick(t, 1, 5)};
    const int64_t axis = pick(t, 0, 2), batch_dims = pick(t, 0, axis > 1 ? 1 : axis);
    int32_t index[3 * 4];
    for (int i = 0; i < 12; i++) {
        index[i] = (int32_t)pick(t, -dim[axis], dim[axis] - 1);
    }
    t->input = add_value(t, dtype, SHAPE(dim[0], dim[1], dim[2]), how);
    const struct ifd_shape shape = batch_dims ? SHAPE(dim[0], 4) : SHAPE(2, 3);
    const uint32_t input[] = {t->input, constant(t, add_value(t, IFD_S32, shape, none), index)};
    struct ifd_node *node =
        add_node(t, IFD_OP_GATHER, input, 2, add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_gather_attrs *attrs = attrs_of(node);
    attrs->axis = (int32_t)axis;
    attrs->batch_dims = (int32_t)batch_dims;
}

static void space(struct trial *t)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const bool to_deep = pick(t, 0, 1) != 0;
    const int64_t block_h = pick(t, 1, 3), block_w = pick(t, 1, 3), h = pick(t, 1, 4);
    const int64_t w = pick(t, 1, 4), c = pick(t, 1, 5), batch = pick(t, 1, 2);
    const int64_t before_h = pick(t, 0, block_h - 1), before_w = pick(t, 0, block_w - 1);
    const int64_t after_h = to_deep ? block_h - before_h : 0;
    t->input = add_value(t, dtype,
                         to_deep ? SHAPE(batch, h * block_h, w * block_w - before_w, c)
                                 : SHAPE(batch * block_h * block_w, h, w, c),
                         how);
    struct ifd_node *node = add_node(t, to_deep ? IFD_OP_SPACE_TO_BATCH : IFD_OP_BATCH_TO_SPACE,
                                     &t->input, 1, add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_space_batch_attrs *attrs = attrs_of(node);
    attrs->block = (struct ifd_ints){.count = 2, .value = {block_h, block_w}};
    attrs->before = (struct ifd_ints){.count = 2, .value = {before_h, before_w}};
    attrs->after = (struct ifd_ints){.count = 2, .value = {after_h, 0}};
}

/* One dimension, or two neighbours, counted from either end; or a scalar, for which any axis will
 * do. */
static void reduce(struct trial *t)
{
    static const enum ifd_op op[] = {IFD_OP_REDUCE_MEAN, IFD_OP_REDUCE_SUM, IFD_OP_REDUCE_MAX};
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    const bool is_scalar = pick(t, 0, 7) == 0;
    const int64_t count = pick(t, 1, 2), axis = is_scalar ? pick(t, -IFD_MAX_RANK, IFD_MAX_RANK - 2)
                                                : pick(t, 0, 1) ? pick(t, -3, -count)
                                                                : pick(t, 0, 3 - count);
    t->input = add_value(t, dtype,
                         is_scalar ? (struct ifd_shape){0}
                                   : SHAPE(pick(t, 1, 3), pick(t, 1, 6), pick(t, 1, 40)),
                         how);
    struct ifd_node *node = add_node(t, op[pick(t, 0, 2)], &t->input, 1,
                                     add_value(t, dtype, (struct ifd_shape){0}, how));
    struct ifd_reduce_attrs *attrs = attrs_of(node);
    attrs->axes = (struct ifd_ints){.count = (uint32_t)count, .value = {axis, axis + 1}};
}

/* Large enough that threads share it: by lines, or a small image by channels. */
static void mean_of_image(struct trial *t)
{
    const bool is_small = pick(t, 0, 1) != 0;
    const int64_t h = is_small ? 4 : pick(t, 10, 30);
    const int64_t c = is_small ? pick(t, 1400, 2000) : pick(t, 140, 200);
    t->input = add_value(t, IFD_F32, SHAPE(pick(t, 1, 2), h, pick(t, 10, 16), c), none);
    struct ifd_node *node = add_node(t, IFD_OP_REDUCE_MEAN, &t->input, 1,
                                     add_value(t, IFD_F32, (struct ifd_shape){0}, none));
    struct ifd_reduce_attrs *attrs = attrs_of(node);
    attrs->axes = (struct ifd_ints){.count = 2, .value = {1, 2}};
}

static uint32_t resized(struct trial *t, enum ifd_op op, int64_t height, int64_t width)
{
    const uint32_t out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    struct ifd_resize_attrs *attrs = attrs_of(add_node(t, op, &t->input, 1, out));
    const int64_t positions = pick(t, 0, 2);
    attrs->height = (int32_t)height;
    attrs->width = (int32_t)width;
    attrs->align_corners = positions == 1;
    attrs->half_pixel_centers = positions == 2;
    return out;
}

/* Images that are written into a concatenation. */
static void resized_beside(struct trial *t)
{
    const int64_t height = pick(t, 1, 9), width = pick(t, 1, 9);
    t->input = add_value(t, IFD_F32,
                         SHAPE(pick(t, 1, 2), pick(t, 1, 5), pick(t, 1, 5), pick(t, 1, 40)), none);
    const uint32_t part[] = {resized(t, IFD_OP_RESIZE_BILINEAR, height, width),
                             resized(t, IFD_OP_RESIZE_NEAREST, height, width),
                             resized(t, IFD_OP_RESIZE_BILINEAR, height, width)};
    struct ifd_axis_attrs *attrs = attrs_of(
        add_node(t, IFD_OP_CONCAT, part, 3, add_value(t, IFD_F32, (struct ifd_shape){0}, none)));
    attrs->axis = 3;
}

static void cast(struct trial *t)
{
    static const enum ifd_dtype types[][2] = {{IFD_F32, IFD_S32},
                                              {IFD_S32, IFD_F32},
                                              {IFD_S32, IFD_S64},
                                              {IFD_S8, IFD_F32},
                                              {IFD_U8, IFD_F32}};
    const int64_t i = pick(t, 0, 4);
    t->input = add_value(t, types[i][0], SHAPE(pick(t, 1, 3), pick(t, 1, 99)), none);
    (void)add_node(t, IFD_OP_CAST, &t->input, 1,
                   add_value(t, types[i][1], (struct ifd_shape){0}, none));
}

static void log_of(struct trial *t)
{
    t->input = add_value(t, IFD_F32, SHAPE(pick(t, 1, 3), pick(t, 1, 99)), none);
    (void)add_node(t, IFD_OP_LOG, &t->input, 1, add_value(t, IFD_F32, (struct ifd_shape){0}, none));
}

static void floor_mod(struct trial *t)
{
    static const enum ifd_dtype types[] = {IFD_F32, IFD_S32};
    const enum ifd_dtype dtype = types[pick(t, 0, 1)];
    const int64_t n = pick(t, 1, 40);
    const int32_t divisor = (int32_t)pick(t, 1, 50);
    const float real = (float)divisor;
    t->input = add_value(t, dtype, SHAPE(pick(t, 1, 3), n), none);
    const void *data = dtype == IFD_F32 ? (const void *)&real : (const void *)&divisor;
    const uint32_t input[] = {t->input, constant(t, add_value(t, dtype, SHAPE(1), none), data)};
    (void)add_node(t, IFD_OP_FLOOR_MOD, input, 2, add_value(t, dtype, (struct ifd_shape){0}, none));
}

/* Enough rows that every number of fill() is an index, or too few. */
static void pick_rows(struct trial *t, int64_t rows)
{
    struct ifd_quant how;
    const enum ifd_dtype dtype = float_or_s8(t, &how);
    t->input = add_value(t, IFD_S32, SHAPE(pick(t, 20, 40)), none);
    const uint32_t input[] = {
        constant(t, add_value(t, dtype, SHAPE(rows, pick(t, 1, 9)), how), NULL), t->input};
    (void)add_node(t, IFD_OP_GATHER, input, 2, add_value(t, dtype, (struct ifd_shape){0}, how));
}

static void computed_gather(struct trial *t)
{
    pick_rows(t, 2001);
}

static void gather_out_of_range(struct trial *t)
{
    pick_rows(t, 3);
}

NODE(transpose_conv2d_of_floats, transpose_conv_f32)
NODE(transpose_conv2d_of_8_bits, transpose_conv_s8)
NODE(convolution_with_a_bound_between_two_steps, clamped_conv)
NODE(convolution_of_groups, grouped_conv)
NODE(attention, attention)
NODE(convolution_of_16_bits, conv_s16)
NODE(fully_connected_of_16_bits, fully_connected_s16)
NODE(tile, tile)
NODE(strided_slice, strided_slice)
NODE(gather, gather)
NODE(space_to_batch_and_back, space)
NODE(reduction, reduce)
NODE(mean_of_an_image, mean_of_image)
NODE(resizing_beside_another, resized_beside)
NODE(cast, cast)
NODE(log, log_of)
NODE(floor_mod, floor_mod)
NODE(gather_with_computed_indices, computed_gather)

static void index_out_of_range_fails_the_run(void)
{
    run_one(gather_out_of_range, 1, 1, IFD_INVALID, "expected -3 to 2");
    run_one(gather_out_of_range, 2, 3, IFD_INVALID, "expected -3 to 2");
}

/* Each phase of a stride would have its packed weights: a small file could ask for any amount of
 * memory. */
static void transpose_conv2d_of_huge_strides_is_left_to_others(void)
{
    static const int32_t one[4] = {1, 1, 1, 1};
    static const float weight[1] = {1};
    static const int32_t strides[][2] = {
        {INT32_MAX, INT32_MAX}, {5, 1}, {1, 5}, {1 << 20, 1 << 20}, {4, 4}};
    const struct ifd_host host = {.bytes = sizeof(host), .alloc = ifd_alloc_system()};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    const struct ifd_desc shape = {.dtype = IFD_S32, .shape = SHAPE(4)},
                          image = {.dtype = IFD_F32, .shape = SHAPE(1, 1, 1, 1)};
    const struct ifd_operand input[] = {
        {&shape, {(const uint8_t *)one, sizeof(one)}},
        {&image, {(const uint8_t *)weight, sizeof(weight)}},
        {&image, {NULL, 0}},
    };
    REQUIRE_OK(ifd_backend_cpuacc.open(&host, &device, &err), &err);
    for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
        const struct ifd_transpose_conv2d_attrs attrs = {.window = {.padding = IFD_PAD_SAME,
                                                                    .stride_h = strides[i][0],
                                                                    .stride_w = strides[i][1],
                                                                    .dilation_h = 1,
                                                                    .dilation_w = 1}};
        const struct ifd_node_view node = {.name = "v",
                                           .op = IFD_OP_TRANSPOSE_CONV2D,
                                           .attrs = &attrs,
                                           .input = input,
                                           .input_count = 3,
                                           .output = &image,
                                           .output_count = 1};
        EXPECT_INT(ifd_backend_cpuacc.cost(device, &node, &err) > 0, strides[i][0] == 4);
    }
    ifd_backend_cpuacc.close(device);
}

/* Sums of bytes have 32 bits. */
static void averages_of_8_bits_over_huge_windows_are_left_to_others(void)
{
    const struct ifd_host host = {.bytes = sizeof(host), .alloc = ifd_alloc_system()};
    const struct ifd_desc in = {.dtype = IFD_S8, .shape = SHAPE(1, 4000, 4000, 1), .quant = quant},
                          out = {.dtype = IFD_S8, .shape = SHAPE(1, 1, 1, 1), .quant = quant};
    const struct ifd_operand input = {&in, {NULL, 0}};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_backend_cpuacc.open(&host, &device, &err), &err);
    for (int32_t height = 1000; height <= 4000; height += 1000) {
        const struct ifd_pool2d_attrs attrs = {
            .window = {.padding = IFD_PAD_VALID}, .filter_h = height, .filter_w = INT32_MAX};
        const struct ifd_node_view node = {.name = "v",
                                           .op = IFD_OP_AVERAGE_POOL2D,
                                           .attrs = &attrs,
                                           .input = &input,
                                           .input_count = 1,
                                           .output = &out,
                                           .output_count = 1};
        EXPECT_INT(ifd_backend_cpuacc.cost(device, &node, &err) > 0, height <= 2000);
    }
    ifd_backend_cpuacc.close(device);
}

/* These long sums fit because weights are near their zero point. The weights are released when the
 * plan for four samples is made, and the bound without them does not hold. */
static void nodes_of_later_plans_run_as_those_of_the_first(void)
{
    enum { INPUTS = 24576, OUTPUTS = 4, SAMPLES = 4 };
    static const float one[] = {1};
    static const int32_t middle[] = {128}, high[] = {200};
    static int8_t data[OUTPUTS * INPUTS];
    static uint8_t want[SAMPLES * OUTPUTS];
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    struct test_run run = test_run_open(
        &(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                   .engine = {.exact = true},
                                   .model = {.max_threads = 1, .releases_weights = true}});
    struct trial t = {.graph = &run.model->graph, .random = {.state = 11}};
    const uint32_t in =
        add_value(&t, IFD_U8, SHAPE(1, INPUTS), (struct ifd_quant){scale, middle, 1, 0});
    const uint32_t weights =
        add_value(&t, IFD_U8, SHAPE(OUTPUTS, INPUTS), (struct ifd_quant){scale_w, high, 1, 0});
    const uint32_t out =
        add_value(&t, IFD_U8, (struct ifd_shape){0}, (struct ifd_quant){one, middle, 1, 0});
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (int8_t)(uint8_t)pick(&t, 199, 201);
    }
    REQUIRE_OK(ifd_graph_set_constant(t.graph, weights,
                                      (struct ifd_bytes){(uint8_t *)data, sizeof(data)}, 0, &err),
               &err);
    REQUIRE_OK(ifd_graph_add_node(t.graph, IFD_OP_FULLY_CONNECTED, (const uint32_t[]){in, weights},
                                  2, &out, 1, &node, &err),
               &err);
    REQUIRE_OK(ifd_graph_infer_node(t.graph, 0, &err), &err);
    test_graph_io(t.graph, in, out);
    test_run_input(&run, SAMPLES);
    uint8_t *sample = run.in.data;
    fill(&t, IFD_U8, sample, run.in.bytes);
    for (size_t i = 0; i < SAMPLES; i++) {
        test_graph_interpret(t.graph, (const void *[]){sample + i * INPUTS},
                             (void *[]){want + i * OUTPUTS});
    }
    test_run_plan(&run, SAMPLES);
    EXPECT(ifd_model_info(run.model)->released_bytes > 0);
    test_run_once(&run);
    EXPECT_BYTES(run.out[0].data, want, sizeof(want));
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(transpose_conv2d_of_floats_equals_its_reference),
        T(transpose_conv2d_of_8_bits_equals_its_reference),
        T(transpose_conv2d_of_huge_strides_is_left_to_others),
        T(averages_of_8_bits_over_huge_windows_are_left_to_others),
        T(convolution_with_a_bound_between_two_steps_equals_its_reference),
        T(convolution_of_groups_equals_its_reference),
        T(attention_equals_its_reference),
        T(convolution_of_16_bits_equals_its_reference),
        T(fully_connected_of_16_bits_equals_its_reference),
        T(tile_equals_its_reference),
        T(strided_slice_equals_its_reference),
        T(gather_equals_its_reference),
        T(space_to_batch_and_back_equals_its_reference),
        T(reduction_equals_its_reference),
        T(mean_of_an_image_equals_its_reference),
        T(resizing_beside_another_equals_its_reference),
        T(cast_equals_its_reference),
        T(log_equals_its_reference),
        T(floor_mod_equals_its_reference),
        T(gather_with_computed_indices_equals_its_reference),
        T(index_out_of_range_fails_the_run),
        T(nodes_of_later_plans_run_as_those_of_the_first),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
