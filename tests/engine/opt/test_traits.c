/* Traits of operators (struct ifd_op_def): a graph for each operator that has the trait, and for
 * similar ones without. */
#include "tests/engine/opt/fixture.h"

#include <math.h>

static const int64_t to_nhwc[4] = {0, 2, 3, 1}, to_nchw[4] = {0, 3, 1, 2};

static void *attrs_of(const struct ifd_node *node)
{
    return (void *)(uintptr_t)node->attrs;
}

/* ---- is_identity ---- */

static uint32_t with_ints(struct fixture *f, enum ifd_op op, uint32_t in, const char *name,
                          const int64_t value[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    set_ints(node, name, value, 4);
    if (op == IFD_OP_SLICE) {
        set_ints(node, "begin", (const int64_t[]){0, 0, 0, 0}, 4);
    }
    infer(f);
    return out;
}

static uint32_t resize(struct fixture *f, enum ifd_op op, uint32_t in)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    struct ifd_resize_attrs *attrs = attrs_of(node);
    attrs->height = 5;
    attrs->width = 6;
    infer(f);
    return out;
}

static uint32_t copy(struct fixture *f, enum ifd_op op, uint32_t in)
{
    static const int64_t zeros[4] = {0, 0, 0, 0}, ones[4] = {1, 1, 1, 1}, dims[4] = {1, 5, 6, 2};
    switch ((int)op) {
    case IFD_OP_RESHAPE:
    case IFD_OP_BROADCAST_TO:
        return with_ints(f, op, in, "shape", dims);
    case IFD_OP_SLICE:
        return with_ints(f, op, in, "size", dims);
    case IFD_OP_TILE:
        return with_ints(f, op, in, "repeats", ones);
    case IFD_OP_PAD:
        return pad(f, in, zeros, zeros);
    case IFD_OP_RESIZE_BILINEAR:
    case IFD_OP_RESIZE_NEAREST:
        return resize(f, op, in);
    default:
        return op1(f, op, in);
    }
}

static void operators_that_copy_are_dropped(void)
{
    static const enum ifd_op ops[] = {
        IFD_OP_RESHAPE,         IFD_OP_CAST,        IFD_OP_SLICE, IFD_OP_TILE,
        IFD_OP_RESIZE_NEAREST,  IFD_OP_PAD,         IFD_OP_SPLIT, IFD_OP_CONCAT,
        IFD_OP_RESIZE_BILINEAR, IFD_OP_BROADCAST_TO};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 2));
        optimize(&f, op1(&f, IFD_OP_ABS, copy(&f, ops[i], op1(&f, IFD_OP_NEG, x))));
        EXPECT_INT(count_ops(&f, ops[i]), 0);
        EXPECT_INT(f.optimized.node_count, 2);
        ifd_arena_finish(&f.arena);
    }
}

/* Its second output is empty, but exists. */
static void a_split_into_all_and_nothing_stays(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t part[2];
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 2));
    const uint32_t v = op1(&f, IFD_OP_NEG, x);
    for (int i = 0; i < 2; i++) {
        const struct ifd_desc desc = {.dtype = IFD_F32};
        REQUIRE_OK(ifd_graph_add_value(&f.graph, "part", &desc, &part[i], &err), &err);
    }
    REQUIRE_OK(ifd_graph_add_node(&f.graph, IFD_OP_SPLIT, &v, 1, part, 2, &node, &err), &err);
    ((struct ifd_split_attrs *)attrs_of(node))->axis = 1;
    set_ints(node, "sizes", (const int64_t[]){5, 0}, 2);
    infer(&f);
    const uint32_t both = add(&f, IFD_OP_CONCAT, part, 2, &node);
    ((struct ifd_axis_attrs *)attrs_of(node))->axis = 1;
    infer(&f);
    optimize(&f, both);
    EXPECT_INT(count_ops(&f, IFD_OP_SPLIT), 1);
    ifd_arena_finish(&f.arena);
}

/* ---- applies_activation ---- */

/* A layer with default attributes, except for the window of pools. */
static uint32_t layer(struct fixture *f, enum ifd_op op, uint32_t in, struct test_random *random)
{
    static const int32_t shape[4] = {1, 7, 7, 3};
    const struct ifd_desc shape_desc = {.dtype = IFD_S32, .shape = SHAPE(4)};
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t target = 0, out = 0;
    switch ((int)op) {
    case IFD_OP_AVERAGE_POOL2D:
    case IFD_OP_MAX_POOL2D:
        out = add(f, op, &in, 1, &node);
        ((struct ifd_pool2d_attrs *)attrs_of(node))->filter_h = 2;
        ((struct ifd_pool2d_attrs *)attrs_of(node))->filter_w = 2;
        infer(f);
        return out;
    case IFD_OP_CONV2D:
        return op2(f, op, in, random_constant(f, SHAPE(3, 2, 2, 3), random));
    case IFD_OP_DEPTHWISE_CONV2D:
        return op2(f, op, in, random_constant(f, SHAPE(1, 2, 2, 3), random));
    case IFD_OP_FULLY_CONNECTED:
        return op2(f, op, in, random_constant(f, SHAPE(3, 3), random));
    case IFD_OP_TRANSPOSE_CONV2D:
        REQUIRE_OK(ifd_graph_add_value(&f->graph, "shape", &shape_desc, &target, &err), &err);
        REQUIRE_OK(ifd_graph_set_constant(&f->graph, target,
                                          (struct ifd_bytes){(const uint8_t *)shape, sizeof(shape)},
                                          0, &err),
                   &err);
        out = add(f, op,
                  (const uint32_t[]){target, random_constant(f, SHAPE(3, 2, 2, 3), random), in}, 3,
                  &node);
        ((struct ifd_transpose_conv2d_attrs *)attrs_of(node))->window.padding = IFD_PAD_VALID;
        infer(f);
        return out;
    default: /* of two operands */
        return op2(f, op, in, op1(f, IFD_OP_EXP, in));
    }
}

static void activations_move_into_operators_that_apply_them(void)
{
    static const enum ifd_op ops[] = {IFD_OP_CONV2D,
                                      IFD_OP_DEPTHWISE_CONV2D,
                                      IFD_OP_FULLY_CONNECTED,
                                      IFD_OP_TRANSPOSE_CONV2D,
                                      IFD_OP_ADD,
                                      IFD_OP_SUB,
                                      IFD_OP_MUL,
                                      IFD_OP_DIV,
                                      IFD_OP_MINIMUM,
                                      IFD_OP_MAXIMUM,
                                      IFD_OP_FLOOR_MOD,
                                      IFD_OP_SQUARED_DIFFERENCE,
                                      IFD_OP_CONCAT,
                                      IFD_OP_AVERAGE_POOL2D,
                                      IFD_OP_MAX_POOL2D};
    static const enum ifd_op stay[] = {IFD_OP_MINIMUM, IFD_OP_MAXIMUM, IFD_OP_FLOOR_MOD,
                                       IFD_OP_SQUARED_DIFFERENCE, IFD_OP_CONCAT};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        struct test_random random = {.state = 5};
        bool stays = false;
        for (size_t k = 0; k < sizeof(stay) / sizeof(stay[0]); k++) {
            stays |= ops[i] == stay[k];
        }
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 3));
        optimize(&f, op1(&f, IFD_OP_RELU, layer(&f, ops[i], x, &random)));
        EXPECT_INT(count_ops(&f, IFD_OP_RELU), stays);
        ifd_arena_finish(&f.arena);
    }
}

/* ---- weights ---- */

static void scales_and_shifts_go_into_the_weights_of_every_layer(void)
{
    static const enum ifd_op ops[] = {IFD_OP_CONV2D, IFD_OP_DEPTHWISE_CONV2D,
                                      IFD_OP_FULLY_CONNECTED, IFD_OP_TRANSPOSE_CONV2D};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        struct test_random random = {.state = 6};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 3));
        const uint32_t scaled = op2(&f, IFD_OP_MUL, layer(&f, ops[i], x, &random),
                                    random_constant(&f, SHAPE(3), &random));
        optimize_at(&f, op2(&f, IFD_OP_ADD, scaled, random_constant(&f, SHAPE(3), &random)),
                    IFD_PASS_FUSE);
        EXPECT_INT(f.optimized.node_count, 1);
        ifd_arena_finish(&f.arena);
    }
}

/* ---- bounds ---- */

static void only_numbers_in_order_are_bounds(void)
{
    float min = 5, max = 5;
    const float number = 2;
    const struct ifd_clamp_attrs in_order = {.min = -1, .max = 3}, reversed = {.min = 3, .max = -1};
    const struct ifd_op_def *clamp = ifd_op_def(IFD_OP_CLAMP);
    EXPECT(clamp->bounds(&in_order, NULL, &min, &max));
    EXPECT(min == -1 && max == 3);
    EXPECT(!clamp->bounds(&reversed, NULL, &min, &max));
    for (int i = 0; i < 2; i++) {
        const struct ifd_op_def *def = ifd_op_def(i == 0 ? IFD_OP_MINIMUM : IFD_OP_MAXIMUM);
        EXPECT(def->bounds(NULL, &number, &min, &max));
        EXPECT(i == 0 ? min == -INFINITY && max == 2 : min == 2 && max == INFINITY);
        EXPECT(!def->bounds(NULL, NULL, &min, &max));
        EXPECT(!def->bounds(NULL, &(const float){NAN}, &min, &max));
    }
}

/* An activation returns NaN for NaN; a maximum need not: exact passes keep it. */
static void a_maximum_is_no_activation_for_exact_passes(void)
{
    struct fixture f;
    struct test_random random = {.state = 2};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 2));
    const uint32_t c = conv(&f, x, SHAPE(3, 1, 1, 2), &random);
    optimize(&f, op2(&f, IFD_OP_MAXIMUM, c, number(&f, 0)));
    EXPECT_INT(count_ops(&f, IFD_OP_MAXIMUM), 1);
    ifd_arena_finish(&f.arena);
}

/* ---- permute ---- */

static uint32_t between(struct fixture *f, enum ifd_op op, uint32_t t)
{
    struct ifd_node *node = NULL;
    const uint32_t two[2] = {t, t};
    uint32_t out = 0;
    switch ((int)op) {
    case IFD_OP_CONCAT: /* of height */
        out = add(f, op, two, 2, &node);
        ((struct ifd_axis_attrs *)attrs_of(node))->axis = -2;
        break;
    case IFD_OP_SLICE:
        out = add(f, op, &t, 1, &node);
        set_ints(node, "begin", (const int64_t[]){0, 1, 2, 3}, 4);
        set_ints(node, "size", (const int64_t[]){1, 1, 2, -1}, 4);
        break;
    case IFD_OP_PAD:
        out = add(f, op, &t, 1, &node);
        set_ints(node, "before", (const int64_t[]){0, 1, 2, 3}, 4);
        set_ints(node, "after", (const int64_t[]){0, 3, 0, 1}, 4);
        break;
    case IFD_OP_MIRROR_PAD:
        out = add(f, op, &t, 1, &node);
        set_ints(node, "before", (const int64_t[]){0, 0, 2, 1}, 4);
        set_ints(node, "after", (const int64_t[]){0, 1, 0, 3}, 4);
        break;
    case IFD_OP_CUMSUM:
        out = add(f, op, &t, 1, &node);
        ((struct ifd_cumsum_attrs *)attrs_of(node))->axis = -1;
        break;
    case IFD_OP_REVERSE:
        out = add(f, op, &t, 1, &node);
        set_ints(node, "axes", (const int64_t[]){2, -3}, 2);
        break;
    default: /* reductions over height and channels */
        out = add(f, op, &t, 1, &node);
        set_ints(node, "axes", (const int64_t[]){2, -3}, 2);
        ((struct ifd_reduce_attrs *)attrs_of(node))->keep_dims = true;
        break;
    }
    infer(f);
    return out;
}

static void transposes_meet_across_operators_that_name_dimensions(void)
{
    static const enum ifd_op ops[] = {IFD_OP_CONCAT,      IFD_OP_SLICE,      IFD_OP_PAD,
                                      IFD_OP_REDUCE_MEAN, IFD_OP_REDUCE_SUM, IFD_OP_REDUCE_MAX,
                                      IFD_OP_REDUCE_MIN,  IFD_OP_MIRROR_PAD, IFD_OP_CUMSUM,
                                      IFD_OP_REVERSE};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 7, 3));
        /* numbers are added in another order */
        const bool adds = ops[i] == IFD_OP_REDUCE_MEAN || ops[i] == IFD_OP_REDUCE_SUM;
        optimize_at(&f, transpose(&f, between(&f, ops[i], transpose(&f, x, to_nchw)), to_nhwc),
                    adds ? IFD_PASS_FUSE : IFD_PASS_EXACT);
        EXPECT_INT(count_ops(&f, ops[i]), 1);
        EXPECT_INT(f.optimized.node_count, 1);
        ifd_arena_finish(&f.arena);
    }
}

static void transposes_meet_across_a_split(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t half[2];
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 3));
    const uint32_t t = transpose(&f, x, to_nchw);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(ifd_graph_add_value(&f.graph, "half", &(struct ifd_desc){.dtype = IFD_F32},
                                       &half[i], &err),
                   &err);
    }
    REQUIRE_OK(ifd_graph_add_node(&f.graph, IFD_OP_SPLIT, &t, 1, half, 2, &node, &err), &err);
    ((struct ifd_split_attrs *)attrs_of(node))->axis = -1; /* width */
    infer(&f);
    optimize(&f,
             op2(&f, IFD_OP_SUB, transpose(&f, half[0], to_nhwc), transpose(&f, half[1], to_nhwc)));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 0);
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void transposes_meet_across_a_softmax_only_if_the_last_dimension_stays(void)
{
    static const int64_t rows[4] = {0, 2, 1, 3};
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 7, 3));
        const uint32_t v = op1(&f, IFD_OP_SOFTMAX, transpose(&f, x, kind == 0 ? rows : to_nchw));
        optimize(&f, transpose(&f, v, kind == 0 ? rows : to_nhwc));
        EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), kind == 0 ? 0 : 2);
        ifd_arena_finish(&f.arena);
    }
}

static void attributes_that_cannot_be_permuted_are_refused(void)
{
    const struct ifd_perm perm = {.rank = 4, .axis = {0, 2, 3, 1}};
    struct ifd_reduce_attrs reduce = {.axes = {1, {2}}};
    EXPECT(!ifd_op_def(IFD_OP_REDUCE_SUM)->permute(&reduce, &perm));
    const struct ifd_ints four = {4, {0, 1, 2, 3}}, two = {2, {0, 1}};
    const struct ifd_strided_slice_attrs slices[] = {
        {.begin = four, .end = four, .strides = four},
        {.begin = two, .end = four, .strides = four},
        {.begin = four, .end = two, .strides = four},
        {.begin = four, .end = four, .strides = two},
        {.begin = four, .end = four, .strides = four, .ellipsis_mask = 1},
        {.begin = four, .end = four, .strides = four, .new_axis_mask = 1},
        {.begin = four, .end = four, .strides = four, .shrink_axis_mask = 1},
    };
    for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
        struct ifd_strided_slice_attrs attrs = slices[i];
        EXPECT_INT(ifd_op_def(IFD_OP_STRIDED_SLICE)->permute(&attrs, &perm), i == 0);
    }
    struct ifd_slice_attrs begin = {.begin = two, .size = four},
                           size = {.begin = four, .size = two};
    EXPECT(!ifd_op_def(IFD_OP_SLICE)->permute(&begin, &perm));
    EXPECT(!ifd_op_def(IFD_OP_SLICE)->permute(&size, &perm));
    struct ifd_pad_attrs before = {.before = two, .after = four};
    struct ifd_pad_attrs after = {.before = four, .after = two};
    EXPECT(!ifd_op_def(IFD_OP_PAD)->permute(&before, &perm));
    EXPECT(!ifd_op_def(IFD_OP_PAD)->permute(&after, &perm));
}

/* ---- reads_shape_only ---- */

static void the_shape_of_an_input_is_a_constant(void)
{
    static const enum ifd_op ops[] = {IFD_OP_SHAPE, IFD_OP_RANK};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 7, 3));
        const uint32_t shape = convert(&f, ops[i], x, &(struct ifd_desc){.dtype = IFD_S32});
        optimize(&f, convert(&f, IFD_OP_CAST, shape, &(struct ifd_desc){.dtype = IFD_F32}));
        EXPECT_INT(f.optimized.node_count, 0);
        ifd_arena_finish(&f.arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(operators_that_copy_are_dropped),
        T(a_split_into_all_and_nothing_stays),
        T(activations_move_into_operators_that_apply_them),
        T(scales_and_shifts_go_into_the_weights_of_every_layer),
        T(only_numbers_in_order_are_bounds),
        T(a_maximum_is_no_activation_for_exact_passes),
        T(transposes_meet_across_operators_that_name_dimensions),
        T(transposes_meet_across_a_split),
        T(transposes_meet_across_a_softmax_only_if_the_last_dimension_stays),
        T(attributes_that_cannot_be_permuted_are_refused),
        T(the_shape_of_an_input_is_a_constant),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
