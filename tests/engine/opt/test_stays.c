/* Graphs that look like what a pass rewrites, and must stay. */
#include "tests/engine/opt/fixture.h"

/* Quantized: the padding is the least number, or not. */
static void an_8_bit_pad_becomes_padding_of_the_maximum_only_with_the_least_number(void)
{
    static const float scale[] = {0.1f};
    static const int32_t zero_point[][1] = {{-128}, {-127}, {0}, {1}};
    for (int kind = 0; kind < 4; kind++) {
        struct fixture f;
        struct ifd_node *node = NULL;
        setup(&f);
        const struct ifd_desc stored = {.dtype = kind < 2 ? IFD_S8 : IFD_U8,
                                        .quant = {scale, zero_point[kind], 1, 0}};
        const struct ifd_desc real = {.dtype = IFD_F32};
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9, 8, 3));
        uint32_t v = convert(&f, IFD_OP_QUANTIZE, x, &stored);
        v = add_as(&f, IFD_OP_PAD, &v, 1, &stored, &node);
        set_ints(node, "before", (const int64_t[]){0, 1, 2, 0}, 4);
        set_ints(node, "after", (const int64_t[]){0, 1, 0, 0}, 4);
        infer(&f);
        v = add_as(&f, IFD_OP_MAX_POOL2D, &v, 1, &stored, &node);
        struct ifd_pool2d_attrs *attrs = (struct ifd_pool2d_attrs *)(uintptr_t)node->attrs;
        attrs->filter_h = attrs->filter_w = 3;
        attrs->window.padding = IFD_PAD_VALID;
        infer(&f);
        optimize(&f, convert(&f, IFD_OP_DEQUANTIZE, v, &real));
        EXPECT_INT(count_ops(&f, IFD_OP_PAD), kind % 2);
        ifd_arena_finish(&f.arena);
    }
}

/* No window of a pool may lie in its padding alone. */
static void a_pad_as_wide_as_the_window_of_a_maximum_stays(void)
{
    for (int64_t d = 0; d < 4; d++) {
        struct fixture f;
        int64_t before[4] = {0}, after[4] = {0};
        *(d < 2 ? &before[1 + d] : &after[d - 1]) = 3;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9, 8, 3));
        const uint32_t p = pad(&f, op1(&f, IFD_OP_RELU6, x), before, after);
        optimize(&f, max_pool(&f, p));
        EXPECT_INT(count_ops(&f, IFD_OP_PAD), 1);
        ifd_arena_finish(&f.arena);
    }
}

static void constants_whose_product_is_no_normal_number_stay_apart(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    uint32_t v = op2(&f, IFD_OP_MUL, x, number(&f, 1e-30f));
    v = op2(&f, IFD_OP_MUL, v, number(&f, 1e-30f));
    optimize(&f, v);
    EXPECT_INT(count_ops(&f, IFD_OP_MUL), 2);
    ifd_arena_finish(&f.arena);
}

static void a_scale_that_weights_cannot_hold_stays(void)
{
    static const float two[4] = {2, 2, 2, 2};
    struct fixture f;
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    const uint32_t weights = test_graph_constant(&f.graph, "w", SHAPE(2, 1, 1, 2), two);
    uint32_t v = add(&f, IFD_OP_CONV2D, (const uint32_t[]){x, weights}, 2, &node);
    infer(&f);
    v = op1(&f, IFD_OP_RELU6, op2(&f, IFD_OP_MUL, v, number(&f, 3e38f)));
    optimize(&f, v);
    EXPECT_INT(count_ops(&f, IFD_OP_MUL), 1);
    ifd_arena_finish(&f.arena);
}

static void an_activation_between_constants_keeps_them_apart(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6, 2));
    uint32_t v = op2(&f, IFD_OP_ADD, x, number(&f, -2));
    const struct ifd_node *sum = &f.graph.node[f.graph.node_count - 1];
    ((struct ifd_binary_attrs *)(uintptr_t)sum->attrs)->activation = IFD_ACT_RELU;
    v = op2(&f, IFD_OP_SUB, v, number(&f, 1));
    optimize(&f, v);
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

/* With a tiny scale, numbers may leave the range of floats, and the conversion back loses them. */
static void a_conversion_through_a_tiny_scale_is_not_dropped(void)
{
    static const float scale[] = {1e-35f};
    static const int32_t zero_point[] = {3};
    struct fixture f;
    setup(&f);
    const struct ifd_desc stored = {.dtype = IFD_U8, .quant = {scale, zero_point, 1, 0}};
    const struct ifd_desc real = {.dtype = IFD_F32};
    uint32_t v = test_graph_f32(&f.graph, "x", SHAPE(1, 9));
    for (int i = 0; i < 2; i++) {
        v = convert(&f, IFD_OP_DEQUANTIZE, convert(&f, IFD_OP_QUANTIZE, v, &stored), &real);
    }
    optimize(&f, v);
    EXPECT_INT(f.optimized.node_count, 3);
    EXPECT_INT(count_ops(&f, IFD_OP_TABLE), 1);
    ifd_arena_finish(&f.arena);
}

static uint32_t move(struct fixture *f, enum ifd_op op, uint32_t v, const struct ifd_desc *to,
                     const char *const names[3], const int64_t *value[3], size_t count)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add_as(f, op, &v, 1, to, &node);
    for (int i = 0; i < 3 && names[i]; i++) {
        set_ints(node, names[i], value[i], count);
    }
    infer(f);
    return out;
}

static uint32_t conv_of_bytes(struct fixture *f, uint32_t v, const struct ifd_desc *to)
{
    static const float scale[] = {0.02f};
    static const int32_t zero_point[] = {0};
    static const int8_t weights[] = {9, -7, 5, -3, 1, 2, -4, 6, -8, 7, -5, 3, 9, 8, -6, 4, -2, 1};
    const struct ifd_desc desc = {
        .dtype = IFD_S8, .shape = SHAPE(1, 3, 3, 2), .quant = {scale, zero_point, 1, 0}};
    struct ifd_node *node = NULL;
    struct ifd_err err = {0};
    uint32_t filter = 0;
    REQUIRE_OK(ifd_graph_add_value(&f->graph, "w", &desc, &filter, &err), &err);
    const struct ifd_bytes content = {(const uint8_t *)weights, sizeof(weights)};
    REQUIRE_OK(ifd_graph_set_constant(&f->graph, filter, content, 0, &err), &err);
    const uint32_t out = add_as(f, IFD_OP_CONV2D, (const uint32_t[]){v, filter}, 2, to, &node);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window.padding = IFD_PAD_VALID;
    infer(f);
    return out;
}

/* Numbers are moved as they are stored. Only where they have the scale and zero point of before may
 * the next node read them there. */
static void what_moves_numbers_to_another_quantization_stays(void)
{
    static const float scale[] = {0.1f, 0.04f};
    static const int32_t zero_point[] = {-128, 20};
    static const char *const pads[3] = {"before", "after"}, *const perm[3] = {"perm"},
                             *const blocks[3] = {"block", "before", "after"};
    const int64_t *sides[3] = {(const int64_t[]){0, 1, 1, 0}, (const int64_t[]){0, 1, 1, 0}};
    const int64_t *to_batch[3] = {(const int64_t[]){2, 2}, (const int64_t[]){2, 2},
                                  (const int64_t[]){2, 2}};
    const int64_t *to_space[3] = {(const int64_t[]){2, 2}, (const int64_t[]){0, 0},
                                  (const int64_t[]){0, 0}};
    const int64_t *turn[3] = {(const int64_t[]){0, 3, 1, 2}};
    const int64_t *back[3] = {(const int64_t[]){0, 2, 3, 1}};
    enum { PADDED_CONV, PADDED_POOL, TO_BATCH, TO_SPACE, TURN, TURN_BACK, KINDS };
    for (int i = 0; i < 2 * KINDS; i++) {
        struct fixture f;
        const int kind = i / 2;
        const bool changes = i % 2 == 1;
        setup(&f);
        const struct ifd_desc from = {.dtype = IFD_S8, .quant = {scale, zero_point, 1, 0}};
        const struct ifd_desc other = {.dtype = IFD_S8, .quant = {scale + 1, zero_point + 1, 1, 0}};
        const struct ifd_desc real = {.dtype = IFD_F32};
        const struct ifd_desc *to = changes ? &other : &from;
        uint32_t v =
            convert(&f, IFD_OP_QUANTIZE, test_graph_f32(&f.graph, "x", SHAPE(1, 8, 6, 2)), &from);
        enum ifd_op gone = IFD_OP_PAD;
        uint32_t stays = 1;
        if (kind == PADDED_CONV) {
            v = conv_of_bytes(&f, move(&f, gone, v, to, pads, sides, 4), &from);
        } else if (kind == PADDED_POOL) {
            struct ifd_node *node = NULL;
            v = move(&f, gone, v, to, pads, sides, 4);
            v = add_as(&f, IFD_OP_MAX_POOL2D, &v, 1, to, &node);
            struct ifd_pool2d_attrs *attrs = (struct ifd_pool2d_attrs *)(uintptr_t)node->attrs;
            attrs->filter_h = attrs->filter_w = 3;
            attrs->window.padding = IFD_PAD_VALID;
            infer(&f);
        } else if (kind == TO_BATCH || kind == TO_SPACE) {
            const struct ifd_desc *inner = kind == TO_BATCH ? to : &from;
            gone = IFD_OP_SPACE_TO_BATCH;
            v = move(&f, gone, v, inner, blocks, to_batch, 2);
            v = move(&f, IFD_OP_BATCH_TO_SPACE, conv_of_bytes(&f, v, &from),
                     kind == TO_SPACE ? to : &from, blocks, to_space, 2);
        } else {
            const struct ifd_desc *inner = kind == TURN ? to : &from;
            v = move(&f, IFD_OP_TRANSPOSE, v, inner, perm, turn, 4);
            v = convert(&f, IFD_OP_ABS, v, inner);
            v = move(&f, IFD_OP_TRANSPOSE, v, to, perm, back, 4);
            gone = kind == TURN ? IFD_OP_TRANSPOSE : IFD_OP_RESHAPE; /* of the same shape */
            stays = kind == TURN ? 2 : 1;
        }
        optimize(&f, convert(&f, IFD_OP_DEQUANTIZE, v, &real));
        EXPECT_INT(count_ops(&f, gone), changes ? stays : 0);
        ifd_arena_finish(&f.arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(an_8_bit_pad_becomes_padding_of_the_maximum_only_with_the_least_number),
        T(a_pad_as_wide_as_the_window_of_a_maximum_stays),
        T(constants_whose_product_is_no_normal_number_stay_apart),
        T(a_scale_that_weights_cannot_hold_stays),
        T(an_activation_between_constants_keeps_them_apart),
        T(a_conversion_through_a_tiny_scale_is_not_dropped),
        T(what_moves_numbers_to_another_quantization_stays),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
