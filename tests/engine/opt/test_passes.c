#include "tests/engine/opt/fixture.h"

static const int64_t to_nhwc[4] = {0, 2, 3, 1}, to_nchw[4] = {0, 3, 1, 2};

static void a_pad_becomes_padding_of_the_convolution(void)
{
    struct fixture f;
    struct test_random random = {.state = 1};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9, 8, 3));
    const uint32_t p = pad(&f, x, (const int64_t[]){0, 1, 2, 0}, (const int64_t[]){0, 3, 0, 0});
    optimize(&f, conv(&f, p, SHAPE(4, 3, 3, 3), &random));
    EXPECT_INT(f.optimized.node_count, 1);
    EXPECT_INT(count_ops(&f, IFD_OP_PAD), 0);
    ifd_arena_finish(&f.arena);
}

static void a_pad_of_channels_or_with_a_value_stays(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        struct test_random random = {.state = 1};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9, 8, 3));
        const int64_t channels = kind == 0 ? 1 : 0;
        const uint32_t p =
            pad(&f, x, (const int64_t[]){0, 1, 1, channels}, (const int64_t[]){0, 0, 0, 0});
        if (kind == 1) {
            struct ifd_pad_attrs *attrs = (struct ifd_pad_attrs *)(uintptr_t)f.graph.node[0].attrs;
            attrs->has_value = true;
            attrs->value = 2;
        }
        optimize(&f, conv(&f, p, SHAPE(4, 3, 3, 3 + channels), &random));
        EXPECT_INT(count_ops(&f, IFD_OP_PAD), 1);
        ifd_arena_finish(&f.arena);
    }
}

/* Optimizes one convolution over 5 x 6 pixels; ret_filter: the shape of its filter then. */
static struct ifd_window crop(struct ifd_shape filter, struct ifd_window window,
                              struct ifd_shape *ret_filter)
{
    struct fixture f;
    struct test_random random = {.state = 3};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(2, 5, 6, 3));
    struct ifd_node *node = NULL;
    const uint32_t input[] = {x, random_constant(&f, filter, &random)};
    const uint32_t out = add(&f, IFD_OP_CONV2D, input, 2, &node);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window = window;
    infer(&f);
    optimize(&f, out);
    const struct ifd_node *conv = &f.optimized.node[0];
    *ret_filter = f.optimized.value[conv->input[1]].desc.shape;
    window = ((const struct ifd_conv2d_attrs *)conv->attrs)->window;
    ifd_arena_finish(&f.arena);
    return window;
}

static void a_filter_loses_what_meets_only_padding(void)
{
    struct ifd_shape left;
    struct ifd_window window = crop(SHAPE(2, 3, 3, 3),
                                    (struct ifd_window){.padding = IFD_PAD_SAME,
                                                        .stride_h = 1,
                                                        .stride_w = 1,
                                                        .dilation_h = 5,
                                                        .dilation_w = 6},
                                    &left);
    EXPECT(ifd_shape_equal(&left, &SHAPE(2, 1, 1, 3)));
    EXPECT_INT(window.pad_top + window.pad_bottom + window.pad_left + window.pad_right, 0);
    EXPECT_INT(window.dilation_h, 1);
    /* rows 0 and 2 of 3 stay inside at one place each, column 0 of 2 never */
    window = crop(SHAPE(2, 3, 2, 3),
                  (struct ifd_window){.padding = IFD_PAD_EXPLICIT,
                                      .stride_h = 2,
                                      .stride_w = 3,
                                      .dilation_h = 4,
                                      .dilation_w = 9,
                                      .pad_top = 4,
                                      .pad_bottom = 4,
                                      .pad_left = 9,
                                      .pad_right = 0},
                  &left);
    EXPECT(ifd_shape_equal(&left, &SHAPE(2, 3, 1, 3)));
    EXPECT_INT(window.pad_top, 4);
    EXPECT_INT(window.pad_left, 0);
    EXPECT_INT(window.dilation_h, 4);
    EXPECT_INT(window.dilation_w, 1);
}

/* Padding cannot say that a window begins inside the image. */
static void a_filter_whose_rest_would_begin_inside_stays(void)
{
    struct ifd_shape left;
    (void)crop(SHAPE(2, 2, 1, 3),
               (struct ifd_window){.padding = IFD_PAD_EXPLICIT,
                                   .stride_h = 1,
                                   .stride_w = 1,
                                   .dilation_h = 6,
                                   .dilation_w = 1,
                                   .pad_top = 3,
                                   .pad_bottom = 1},
               &left);
    EXPECT(ifd_shape_equal(&left, &SHAPE(2, 2, 1, 3)));
}

static void an_activation_moves_into_the_convolution(void)
{
    struct fixture f;
    struct test_random random = {.state = 2};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 2));
    optimize(&f, op1(&f, IFD_OP_RELU6, conv(&f, x, SHAPE(3, 1, 1, 2), &random)));
    EXPECT_INT(f.optimized.node_count, 1);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)f.optimized.node[0].attrs)->activation,
               IFD_ACT_RELU6);
    ifd_arena_finish(&f.arena);
}

static void an_activation_stays_where_its_input_is_read_twice(void)
{
    struct fixture f;
    struct test_random random = {.state = 2};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 2));
    const uint32_t c = conv(&f, x, SHAPE(3, 1, 1, 2), &random);
    optimize(&f, op2(&f, IFD_OP_ADD, op1(&f, IFD_OP_RELU, c), c));
    EXPECT_INT(count_ops(&f, IFD_OP_RELU), 1);
    ifd_arena_finish(&f.arena);
}

/* The nodes for a dilation by 2. has_bytes: the filter has 8 bits. */
static void optimize_dilated(struct fixture *f, bool has_bytes)
{
    static const float scale = 0.5f;
    static const int32_t zero = 0;
    struct test_random random = {.state = 4};
    struct ifd_node *node = NULL;
    setup(f);
    const uint32_t x = test_graph_f32(&f->graph, "x", SHAPE(1, 7, 9, 3));
    const uint32_t split = add(f, IFD_OP_SPACE_TO_BATCH, &x, 1, &node);
    set_ints(node, "block", (const int64_t[]){2, 2}, 2);
    set_ints(node, "before", (const int64_t[]){2, 2}, 2);
    set_ints(node, "after", (const int64_t[]){3, 3}, 2);
    infer(f);
    const uint32_t inner = conv(f, split, SHAPE(4, 3, 3, 3), &random);
    for (uint32_t v = 0; has_bytes && v < f->graph.value_count; v++) {
        struct ifd_value *value = &f->graph.value[v];
        if (value->desc.shape.rank == 4 && value->desc.shape.dim[0] == 4 &&
            value->desc.shape.dim[3] == 3 && value->data.data) {
            value->desc.dtype = IFD_S8;
            value->data.size /= sizeof(float);
            value->desc.quant = (struct ifd_quant){&scale, &zero, 1, 0};
        }
    }
    const uint32_t joined = add(f, IFD_OP_BATCH_TO_SPACE, &inner, 1, &node);
    set_ints(node, "block", (const int64_t[]){2, 2}, 2);
    set_ints(node, "before", (const int64_t[]){0, 0}, 2);
    set_ints(node, "after", (const int64_t[]){1, 1}, 2);
    infer(f);
    optimize(f, joined);
}

static void space_to_batch_around_a_convolution_is_a_dilation(void)
{
    struct fixture f;
    optimize_dilated(&f, false);
    EXPECT_INT(f.optimized.node_count, 1);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)f.optimized.node[0].attrs)->window.dilation_h, 2);
    ifd_arena_finish(&f.arena);
}

/* Such a convolution finds a scale for each image of its batch, here for each block. */
static void space_to_batch_around_a_convolution_that_finds_scales_stays(void)
{
    struct fixture f;
    optimize_dilated(&f, true);
    EXPECT_INT(f.optimized.node_count, 3);
    ifd_arena_finish(&f.arena);
}

static void reshapes_in_a_row_become_one(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6));
    const uint32_t a = test_graph_reshape(&f.graph, x, SHAPE(24), "a");
    const uint32_t b = test_graph_reshape(&f.graph, a, SHAPE(2, 12), "b");
    optimize(&f, test_graph_reshape(&f.graph, b, SHAPE(3, 8), "c"));
    EXPECT_INT(f.optimized.node_count, 1);
    ifd_arena_finish(&f.arena);
}

/* In one dimension: reshapes make an image of one line for the convolution. */
static void space_to_batch_around_a_convolution_of_lines_is_a_dilation(void)
{
    struct fixture f;
    struct test_random random = {.state = 5};
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 10, 3));
    const uint32_t split = add(&f, IFD_OP_SPACE_TO_BATCH, &x, 1, &node);
    set_ints(node, "block", (const int64_t[]){3}, 1);
    set_ints(node, "before", (const int64_t[]){0}, 1);
    set_ints(node, "after", (const int64_t[]){2}, 1);
    infer(&f);
    const uint32_t image = test_graph_reshape(&f.graph, split, SHAPE(3, 1, 4, 3), "image");
    const uint32_t inner = conv(&f, image, SHAPE(4, 1, 2, 3), &random);
    const uint32_t line = test_graph_reshape(&f.graph, inner, SHAPE(3, 3, 4), "line");
    const uint32_t joined = add(&f, IFD_OP_BATCH_TO_SPACE, &line, 1, &node);
    set_ints(node, "block", (const int64_t[]){3}, 1);
    set_ints(node, "before", (const int64_t[]){0}, 1);
    set_ints(node, "after", (const int64_t[]){2}, 1);
    infer(&f);
    optimize(&f, joined);
    EXPECT_INT(f.optimized.node_count, 3);
    EXPECT_INT(count_ops(&f, IFD_OP_RESHAPE), 2);
    REQUIRE(f.optimized.node[1].op == IFD_OP_CONV2D);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)f.optimized.node[1].attrs)->window.dilation_w, 3);
    ifd_arena_finish(&f.arena);
}

static void maximum_and_minimum_with_a_number_are_a_clamp(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    const uint32_t low = op2(&f, IFD_OP_MAXIMUM, x, number(&f, -0.5f));
    const uint32_t high = op2(&f, IFD_OP_MINIMUM, number(&f, 2.5f), low);
    optimize_at(&f, high, IFD_PASS_FUSE);
    REQUIRE(f.optimized.node_count == 1 && f.optimized.node[0].op == IFD_OP_CLAMP);
    EXPECT_CLOSE(((const struct ifd_clamp_attrs *)f.optimized.node[0].attrs)->min, -0.5, 0);
    EXPECT_CLOSE(((const struct ifd_clamp_attrs *)f.optimized.node[0].attrs)->max, 2.5, 0);
    ifd_arena_finish(&f.arena);
}

/* As exporters write it (form 0 and 1), and what looks like it: another number, another x. */
static void the_formula_of_gelu_is_one_operator(void)
{
    for (int form = 0; form < 4; form++) {
        struct fixture f;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
        const uint32_t y = op1(&f, IFD_OP_TANH, x);
        const uint32_t scaled = form == 1 ? op2(&f, IFD_OP_MUL, number(&f, 0.70710678f), y)
                                          : op2(&f, IFD_OP_DIV, y, number(&f, 1.41421354f));
        const uint32_t one = number(&f, form == 2 ? 2.0f : 1.0f);
        const uint32_t share = op2(&f, IFD_OP_ADD, op1(&f, IFD_OP_ERF, scaled), one);
        const uint32_t of = form == 3 ? x : y;
        const uint32_t out =
            form == 1 ? op2(&f, IFD_OP_MUL, op2(&f, IFD_OP_MUL, of, number(&f, 0.5f)), share)
                      : op2(&f, IFD_OP_MUL, op2(&f, IFD_OP_MUL, of, share), number(&f, 0.5f));
        optimize_at(&f, out, IFD_PASS_FUSE);
        EXPECT_INT(count_ops(&f, IFD_OP_GELU), form < 2);
        EXPECT_INT(count_ops(&f, IFD_OP_ERF), form >= 2);
        ifd_arena_finish(&f.arena);
    }
}

/* As TensorFlow's converter writes it: bit 0: with a shift, bit 1: with a scale. Bit 2: what looks
 * like it, of the mean of another tensor. */
static void layer_normalization_of_tensorflow_is_written_as_others_do(void)
{
    for (int form = 0; form < 8; form++) {
        struct fixture f;
        struct ifd_node *node = NULL;
        struct test_random random = {.state = 9};
        setup(&f);
        const bool has_shift = form & 1, has_scale = form & 2, is_other = form & 4;
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 5));
        const uint32_t of = is_other ? op1(&f, IFD_OP_TANH, x) : x;
        const uint32_t mean = add(&f, IFD_OP_REDUCE_MEAN, &of, 1, &node);
        set_ints(node, "axes", (const int64_t[]){3}, 1);
        ((struct ifd_reduce_attrs *)(uintptr_t)node->attrs)->keep_dims = true;
        infer(&f);
        uint32_t gain = op1(&f, IFD_OP_RSQRT, op1(&f, IFD_OP_EXP, mean));
        if (has_scale) {
            gain = op2(&f, IFD_OP_MUL, gain, random_constant(&f, SHAPE(1, 1, 5), &random));
        }
        const uint32_t minus = has_shift ? mean : op1(&f, IFD_OP_NEG, mean);
        uint32_t rest = op2(&f, IFD_OP_MUL, minus, gain);
        if (has_shift) {
            rest = op2(&f, IFD_OP_SUB, random_constant(&f, SHAPE(5), &random), rest);
        }
        const uint32_t out = op2(&f, IFD_OP_ADD, op2(&f, IFD_OP_MUL, gain, x), rest);
        optimize_at(&f, out, IFD_PASS_FUSE);
        const int wanted = 3 + 2 + has_shift + has_scale; /* mean, its exponential and root */
        EXPECT_INT(f.optimized.node_count, is_other ? f.graph.node_count : (uint32_t)wanted);
        EXPECT_INT(count_ops(&f, IFD_OP_NEG), is_other && !has_shift);
        ifd_arena_finish(&f.arena);
    }
}

/* A root that does not come from the mean may be made before it. */
static void layer_normalization_with_a_gain_before_the_mean_is_valid(void)
{
    for (int has_shift = 0; has_shift < 2; has_shift++) {
        struct fixture f;
        struct ifd_node *node = NULL;
        struct test_random random = {.state = 9};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 5));
        const uint32_t root = op1(&f, IFD_OP_RSQRT, op1(&f, IFD_OP_EXP, x));
        const uint32_t gain =
            op2(&f, IFD_OP_MUL, root, random_constant(&f, SHAPE(1, 1, 5), &random));
        const uint32_t mean = add(&f, IFD_OP_REDUCE_MEAN, &x, 1, &node);
        set_ints(node, "axes", (const int64_t[]){3}, 1);
        ((struct ifd_reduce_attrs *)(uintptr_t)node->attrs)->keep_dims = true;
        infer(&f);
        uint32_t rest = op2(&f, IFD_OP_MUL, has_shift ? mean : op1(&f, IFD_OP_NEG, mean), gain);
        if (has_shift) {
            rest = op2(&f, IFD_OP_SUB, random_constant(&f, SHAPE(5), &random), rest);
        }
        optimize_at(&f, op2(&f, IFD_OP_ADD, op2(&f, IFD_OP_MUL, gain, x), rest), IFD_PASS_FUSE);
        EXPECT_INT(count_ops(&f, IFD_OP_NEG), 0);
        ifd_arena_finish(&f.arena);
    }
}

static void a_maximum_of_two_tensors_is_no_clamp(void)
{
    struct fixture f;
    struct test_random random = {.state = 8};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    const uint32_t c = random_constant(&f, SHAPE(2), &random);
    optimize_at(&f, op2(&f, IFD_OP_MAXIMUM, x, c), IFD_PASS_FUSE);
    EXPECT_INT(count_ops(&f, IFD_OP_MAXIMUM), 1);
    ifd_arena_finish(&f.arena);
}

static void maximum_and_minimum_end_as_the_activation_of_the_convolution(void)
{
    struct fixture f;
    struct test_random random = {.state = 8};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    const uint32_t c = conv(&f, x, SHAPE(3, 1, 1, 2), &random);
    const uint32_t high = op2(&f, IFD_OP_MINIMUM, c, number(&f, 6));
    optimize_at(&f, op2(&f, IFD_OP_MAXIMUM, high, number(&f, 0)), IFD_PASS_FUSE);
    REQUIRE(f.optimized.node_count == 1);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)f.optimized.node[0].attrs)->activation,
               IFD_ACT_RELU6);
    ifd_arena_finish(&f.arena);
}

/* A batch normalization that a converter could not fold. */
static void a_batch_normalization_goes_into_weights_and_bias(void)
{
    struct fixture f;
    struct test_random random = {.state = 9};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    uint32_t v = conv(&f, x, SHAPE(3, 3, 3, 2), &random);
    v = op2(&f, IFD_OP_SUB, v, random_constant(&f, SHAPE(3), &random));
    v = op2(&f, IFD_OP_DIV, v, number(&f, 1.7f));
    v = op2(&f, IFD_OP_MUL, random_constant(&f, SHAPE(1, 1, 1, 3), &random), v);
    v = op2(&f, IFD_OP_ADD, v, random_constant(&f, SHAPE(3), &random));
    optimize_at(&f, op1(&f, IFD_OP_RELU, v), IFD_PASS_FUSE);
    REQUIRE(f.optimized.node_count == 1);
    EXPECT_INT(f.optimized.node[0].input_count, 3);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)f.optimized.node[0].attrs)->activation,
               IFD_ACT_RELU);
    ifd_arena_finish(&f.arena);
}

static void a_scale_stays_behind_an_activation_or_where_the_convolution_is_read_twice(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        struct test_random random = {.state = 9};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
        const uint32_t c = conv(&f, x, SHAPE(3, 3, 3, 2), &random);
        const uint32_t v = kind == 0 ? op1(&f, IFD_OP_RELU, c) : c;
        const uint32_t scaled = op2(&f, IFD_OP_MUL, v, random_constant(&f, SHAPE(3), &random));
        optimize_at(&f, kind == 0 ? scaled : op2(&f, IFD_OP_ADD, scaled, v), IFD_PASS_FUSE);
        EXPECT_INT(count_ops(&f, IFD_OP_MUL), 1);
        ifd_arena_finish(&f.arena);
    }
}

static void constants_in_a_row_are_one(void)
{
    struct fixture f;
    struct test_random random = {.state = 10};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    uint32_t v = op2(&f, IFD_OP_MUL, x, number(&f, 0.5f));
    v = op2(&f, IFD_OP_DIV, v, random_constant(&f, SHAPE(2), &random));
    v = op2(&f, IFD_OP_MUL, number(&f, 0.25f), v);
    v = op2(&f, IFD_OP_SUB, v, number(&f, 3));
    v = op2(&f, IFD_OP_ADD, v, number(&f, 1));
    optimize_at(&f, v, IFD_PASS_FUSE);
    EXPECT_INT(f.optimized.node_count, 2);
    EXPECT_INT(count_ops(&f, IFD_OP_MUL), 1);
    EXPECT_INT(count_ops(&f, IFD_OP_ADD), 1);
    ifd_arena_finish(&f.arena);
}

static void equal_nodes_are_one(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    const uint32_t a = op2(&f, IFD_OP_ADD, transpose(&f, x, to_nchw), number(&f, 2));
    const uint32_t b = op2(&f, IFD_OP_ADD, transpose(&f, x, to_nchw), number(&f, 2));
    const uint32_t c = op2(&f, IFD_OP_ADD, transpose(&f, x, to_nchw), number(&f, 3));
    optimize(&f, op2(&f, IFD_OP_MUL, op2(&f, IFD_OP_MUL, a, b), c));
    EXPECT_INT(count_ops(&f, IFD_OP_ADD), 2);
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 1);
    ifd_arena_finish(&f.arena);
}

static void a_tile_in_front_of_an_operator_that_broadcasts_is_left_out(void)
{
    struct fixture f;
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 2));
    const uint32_t mean = add(&f, IFD_OP_REDUCE_MEAN, &x, 1, &node);
    set_ints(node, "axes", (const int64_t[]){1, 2}, 2);
    ((struct ifd_reduce_attrs *)(uintptr_t)node->attrs)->keep_dims = true;
    infer(&f);
    const uint32_t tile = add(&f, IFD_OP_TILE, &mean, 1, &node);
    set_ints(node, "repeats", (const int64_t[]){1, 5, 6, 1}, 4);
    infer(&f);
    optimize(&f, op2(&f, IFD_OP_SUB, x, tile));
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

/* It may add dimensions; as an operand of what does not broadcast it stays. */
static void a_broadcast_in_front_of_an_operator_that_broadcasts_is_left_out(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        struct ifd_node *node = NULL;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 2));
        const uint32_t sums = add(&f, IFD_OP_REDUCE_SUM, &x, 1, &node);
        set_ints(node, "axes", (const int64_t[]){0, 1, 2}, 3);
        infer(&f);
        const uint32_t wide = add(&f, IFD_OP_BROADCAST_TO, &sums, 1, &node);
        set_ints(node, "shape", (const int64_t[]){1, 5, 6, 2}, 4);
        infer(&f);
        if (kind == 0) {
            optimize(&f, op2(&f, IFD_OP_SUB, x, wide));
        } else {
            const uint32_t both = add(&f, IFD_OP_CONCAT, (const uint32_t[]){x, wide}, 2, &node);
            infer(&f);
            optimize(&f, both);
        }
        EXPECT_INT(count_ops(&f, IFD_OP_BROADCAST_TO), kind);
        ifd_arena_finish(&f.arena);
    }
}

/* Zeros cannot be the maximum behind a relu; elsewhere they can. */
static void a_pad_becomes_padding_of_the_maximum_where_it_cannot_win(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9, 8, 3));
        const uint32_t v = op1(&f, kind == 0 ? IFD_OP_RELU6 : IFD_OP_NEG, x);
        const uint32_t p = pad(&f, v, (const int64_t[]){0, 1, 2, 0}, (const int64_t[]){0, 1, 0, 0});
        optimize(&f, max_pool(&f, p));
        EXPECT_INT(count_ops(&f, IFD_OP_PAD), kind);
        ifd_arena_finish(&f.arena);
    }
}

/* Back to the same scale and zero point changes nothing; back to others rounds. */
static void a_conversion_there_and_back_is_dropped(void)
{
    static const float scale[] = {0.1f, 0.3f};
    static const int32_t zero_point[] = {3};
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        setup(&f);
        const struct ifd_desc stored = {.dtype = IFD_U8, .quant = {scale, zero_point, 1, 0}};
        const struct ifd_desc other = {.dtype = IFD_U8, .quant = {scale + kind, zero_point, 1, 0}};
        const struct ifd_desc real = {.dtype = IFD_F32}, wide = {.dtype = IFD_F64};
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9));
        uint32_t v = convert(&f, IFD_OP_CAST, convert(&f, IFD_OP_CAST, x, &wide), &real);
        v = convert(&f, IFD_OP_DEQUANTIZE, convert(&f, IFD_OP_QUANTIZE, v, &stored), &real);
        v = convert(&f, IFD_OP_DEQUANTIZE, convert(&f, IFD_OP_QUANTIZE, v, &other), &real);
        optimize(&f, v);
        EXPECT_INT(f.optimized.node_count, kind == 0 ? 2 : 3);
        EXPECT_INT(count_ops(&f, IFD_OP_TABLE), kind);
        EXPECT_INT(count_ops(&f, IFD_OP_CAST), 0);
        ifd_arena_finish(&f.arena);
    }
}

static void a_quantized_activation_moves_into_the_sum_only_with_the_same_scale(void)
{
    static const float scale[] = {0.1f, 0.05f};
    static const int32_t zero_point[] = {-100};
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        struct ifd_node *node = NULL;
        setup(&f);
        const struct ifd_desc stored = {
            .dtype = IFD_S8, .shape = SHAPE(1, 9), .quant = {scale, zero_point, 1, 0}};
        const struct ifd_desc other = {.dtype = IFD_S8, .quant = {scale + kind, zero_point, 1, 0}};
        const struct ifd_desc real = {.dtype = IFD_F32};
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9));
        const uint32_t q = convert(&f, IFD_OP_QUANTIZE, x, &stored);
        const uint32_t r = convert(&f, IFD_OP_QUANTIZE, op1(&f, IFD_OP_NEG, x), &stored);
        const uint32_t sum = add_as(&f, IFD_OP_ADD, (const uint32_t[]){q, r}, 2, &stored, &node);
        infer(&f);
        const uint32_t v = convert(&f, IFD_OP_RELU6, sum, &other);
        optimize(&f, convert(&f, IFD_OP_DEQUANTIZE, v, &real));
        EXPECT_INT(count_ops(&f, IFD_OP_RELU6), kind);
        ifd_arena_finish(&f.arena);
    }
}

static void what_copies_its_whole_input_is_dropped(void)
{
    struct fixture f;
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 2));
    uint32_t v = op1(&f, IFD_OP_NEG, x);
    v = op1(&f, IFD_OP_SPLIT, v);
    v = op1(&f, IFD_OP_CONCAT, v);
    v = pad(&f, v, (const int64_t[]){0, 0, 0, 0}, (const int64_t[]){0, 0, 0, 0});
    v = add(&f, IFD_OP_RESIZE_BILINEAR, &v, 1, &node);
    struct ifd_resize_attrs *attrs = (struct ifd_resize_attrs *)(uintptr_t)node->attrs;
    attrs->height = 5;
    attrs->width = 6;
    infer(&f);
    optimize(&f, op1(&f, IFD_OP_ABS, v));
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void random_chains_compute_the_same(void)
{
    struct test_random random = {.state = 11};
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        setup(&f);
        uint32_t v = test_graph_f32(&f.graph, "x", SHAPE(1, 3, 4, 2));
        for (long long i = test_random_int(&random, 1, 12); i > 0; i--) {
            switch (test_random_int(&random, 0, 4)) {
            case 0:
                v = transpose(&f, v, to_nchw);
                break;
            case 1:
                v = transpose(&f, v, to_nhwc);
                break;
            case 2:
                v = pad(&f, v, (const int64_t[]){0, test_random_int(&random, 0, 1), 0, 1},
                        (const int64_t[]){0, 0, 0, 0});
                break;
            case 3:
                v = op2(&f, IFD_OP_MUL, v, op1(&f, IFD_OP_TANH, v));
                break;
            default:
                v = op1(&f, IFD_OP_RELU, v);
                break;
            }
        }
        if (f.graph.node_count > 0) {
            optimize(&f, v);
            EXPECT(count_ops(&f, IFD_OP_TRANSPOSE) <= 1);
        }
        ifd_arena_finish(&f.arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_filter_loses_what_meets_only_padding),
        T(a_filter_whose_rest_would_begin_inside_stays),
        T(a_pad_becomes_padding_of_the_convolution),
        T(a_pad_of_channels_or_with_a_value_stays),
        T(an_activation_moves_into_the_convolution),
        T(an_activation_stays_where_its_input_is_read_twice),
        T(space_to_batch_around_a_convolution_is_a_dilation),
        T(space_to_batch_around_a_convolution_that_finds_scales_stays),
        T(reshapes_in_a_row_become_one),
        T(space_to_batch_around_a_convolution_of_lines_is_a_dilation),
        T(maximum_and_minimum_with_a_number_are_a_clamp),
        T(the_formula_of_gelu_is_one_operator),
        T(layer_normalization_of_tensorflow_is_written_as_others_do),
        T(layer_normalization_with_a_gain_before_the_mean_is_valid),
        T(a_maximum_of_two_tensors_is_no_clamp),
        T(maximum_and_minimum_end_as_the_activation_of_the_convolution),
        T(a_batch_normalization_goes_into_weights_and_bias),
        T(a_scale_stays_behind_an_activation_or_where_the_convolution_is_read_twice),
        T(constants_in_a_row_are_one),
        T(equal_nodes_are_one),
        T(a_tile_in_front_of_an_operator_that_broadcasts_is_left_out),
        T(a_broadcast_in_front_of_an_operator_that_broadcasts_is_left_out),
        T(a_pad_becomes_padding_of_the_maximum_where_it_cannot_win),
        T(a_conversion_there_and_back_is_dropped),
        T(a_quantized_activation_moves_into_the_sum_only_with_the_same_scale),
        T(what_copies_its_whole_input_is_dropped),
        T(random_chains_compute_the_same),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
