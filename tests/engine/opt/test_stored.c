/* Stored numbers of 8 bits between a dequantization and a quantization: tables of functions, moves
 * of what is stored. Each test compares the results with those of the graph as it was. */
#include "tests/engine/opt/fixture.h"

static const float scale[] = {0.04f, 0.07f};
static const int32_t zero_point[] = {-20, 5};
static const struct ifd_desc real = {.dtype = IFD_F32},
                             stored = {.dtype = IFD_S8, .quant = {scale, zero_point, 1, 0}},
                             other = {.dtype = IFD_U8, .quant = {scale + 1, zero_point + 1, 1, 0}};

static uint32_t input(struct fixture *f)
{
    setup(f);
    return test_graph_f32(&f->graph, "x", SHAPE(1, 6, 8, 4));
}

static uint32_t quantize(struct fixture *f, uint32_t v, const struct ifd_desc *desc)
{
    return convert(f, IFD_OP_QUANTIZE, v, desc);
}

static uint32_t dequantize(struct fixture *f, uint32_t v)
{
    return convert(f, IFD_OP_DEQUANTIZE, v, &real);
}

/* Optimizes the graph that ends in stored numbers. */
static void finish(struct fixture *f, uint32_t v)
{
    optimize(f, dequantize(f, v));
}

/* ---- tables ---- */

static void a_function_between_stored_numbers_is_a_table(void)
{
    static const enum ifd_op ops[] = {IFD_OP_LOGISTIC, IFD_OP_HARD_SWISH, IFD_OP_ELU, IFD_OP_SQRT};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        const uint32_t x = quantize(&f, input(&f), &stored);
        const uint32_t v = op2(&f, IFD_OP_MUL, dequantize(&f, x), number(&f, 0.7f));
        finish(&f, quantize(&f, op1(&f, ops[i], v), &other));
        EXPECT_INT(f.optimized.node_count, 3);
        EXPECT_INT(count_ops(&f, IFD_OP_TABLE), 1);
        ifd_arena_finish(&f.arena);
    }
}

/* x * sigmoid(x), with stored numbers between the two. */
static void two_ways_from_one_number_are_one_table(void)
{
    struct fixture f;
    struct ifd_node *node = NULL;
    const uint32_t x = quantize(&f, input(&f), &stored);
    const uint32_t gate = quantize(&f, op1(&f, IFD_OP_LOGISTIC, dequantize(&f, x)), &stored);
    const uint32_t y = add_as(&f, IFD_OP_MUL, (const uint32_t[]){x, gate}, 2, &stored, &node);
    infer(&f);
    finish(&f, y);
    EXPECT_INT(f.optimized.node_count, 3);
    EXPECT_INT(count_ops(&f, IFD_OP_TABLE), 1);
    ifd_arena_finish(&f.arena);
}

static void tables_in_a_row_are_one(void)
{
    struct fixture f;
    uint32_t v = quantize(&f, input(&f), &stored);
    for (int i = 0; i < 40; i++) { /* more nodes than one search takes */
        v = quantize(&f, op1(&f, IFD_OP_TANH, dequantize(&f, v)), i % 2 ? &stored : &other);
    }
    finish(&f, v);
    EXPECT_INT(f.optimized.node_count, 3);
    EXPECT_INT(count_ops(&f, IFD_OP_TABLE), 1);
    ifd_arena_finish(&f.arena);
}

static void a_function_of_two_tensors_or_channels_is_no_table(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        struct test_random random = {.state = 3};
        const uint32_t x = input(&f);
        const uint32_t a = dequantize(&f, quantize(&f, x, &stored));
        const uint32_t b = kind == 0 ? dequantize(&f, quantize(&f, op1(&f, IFD_OP_NEG, x), &stored))
                                     : random_constant(&f, SHAPE(4), &random);
        finish(&f, quantize(&f, op2(&f, IFD_OP_ADD, a, b), &other));
        EXPECT_INT(count_ops(&f, IFD_OP_TABLE), 0);
        ifd_arena_finish(&f.arena);
    }
}

static void transposes_meet_across_a_table(void)
{
    static const int64_t to_nchw[4] = {0, 3, 1, 2}, to_nhwc[4] = {0, 2, 3, 1};
    struct fixture f;
    struct ifd_node *node = NULL;
    float list[256];
    for (int i = 0; i < 256; i++) {
        list[i] = (float)(i * 7 % 256 - 128);
    }
    const uint32_t x = transpose(&f, input(&f), to_nchw);
    const uint32_t numbers = test_graph_constant(&f.graph, "list", SHAPE(256), list);
    const struct ifd_desc bytes = {.dtype = IFD_S8};
    const uint32_t both[] = {quantize(&f, x, &stored), convert(&f, IFD_OP_CAST, numbers, &bytes)};
    const uint32_t y = add_as(&f, IFD_OP_TABLE, both, 2, &stored, &node);
    infer(&f);
    optimize(&f, transpose(&f, dequantize(&f, y), to_nhwc));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 0);
    EXPECT_INT(f.optimized.node_count, 3);
    ifd_arena_finish(&f.arena);
}

/* Backends make tables of these, and join them with the step before. */
static void one_function_of_stored_numbers_stays(void)
{
    struct fixture f;
    const uint32_t x = quantize(&f, input(&f), &stored);
    finish(&f, convert(&f, IFD_OP_RELU, x, &stored));
    EXPECT_INT(count_ops(&f, IFD_OP_RELU), 1);
    EXPECT_INT(count_ops(&f, IFD_OP_TABLE), 0);
    ifd_arena_finish(&f.arena);
}

/* ---- moves ---- */

static uint32_t with_ints(struct fixture *f, enum ifd_op op, uint32_t in, const char *name,
                          const int64_t value[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    set_ints(node, name, value, 4);
    if (op == IFD_OP_SLICE) {
        set_ints(node, "size", (const int64_t[]){1, 4, 8, 3}, 4);
    } else if (op == IFD_OP_PAD || op == IFD_OP_MIRROR_PAD) {
        set_ints(node, "after", value, 4);
    }
    infer(f);
    return out;
}

static uint32_t reduce(struct fixture *f, enum ifd_op op, uint32_t in)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    set_ints(node, "axes", (const int64_t[]){2}, 1);
    infer(f);
    return out;
}

static uint32_t sized(struct fixture *f, enum ifd_op op, uint32_t in)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    void *attrs = (void *)(uintptr_t)node->attrs;
    if (op == IFD_OP_RESIZE_NEAREST) {
        *(struct ifd_resize_attrs *)attrs = (struct ifd_resize_attrs){.height = 9, .width = 5};
    } else {
        ((struct ifd_space_depth_attrs *)attrs)->block = 2;
    }
    infer(f);
    return out;
}

static uint32_t move(struct fixture *f, enum ifd_op op, uint32_t in)
{
    static const int64_t to_nchw[4] = {0, 3, 1, 2}, shape[4] = {1, 12, 1, 16},
                         some[4] = {0, 1, 0, 1}, twice[4] = {1, 2, 1, 1};
    switch ((int)op) {
    case IFD_OP_RESHAPE:
        return with_ints(f, op, in, "shape", shape);
    case IFD_OP_TRANSPOSE:
        return with_ints(f, op, in, "perm", to_nchw);
    case IFD_OP_SLICE:
        return with_ints(f, op, in, "begin", some);
    case IFD_OP_PAD:
    case IFD_OP_MIRROR_PAD:
        return with_ints(f, op, in, "before", some);
    case IFD_OP_TILE:
        return with_ints(f, op, in, "repeats", twice);
    case IFD_OP_MAX_POOL2D:
        return max_pool(f, in);
    case IFD_OP_REDUCE_MAX:
    case IFD_OP_REDUCE_MIN:
        return reduce(f, op, in);
    default:
        return sized(f, op, in);
    }
}

/* With the same scale they are all that is left; with another one there is a table behind. */
static void operators_that_move_numbers_move_stored_ones(void)
{
    static const enum ifd_op ops[] = {
        IFD_OP_RESHAPE,    IFD_OP_TRANSPOSE,      IFD_OP_SLICE,          IFD_OP_PAD,
        IFD_OP_MIRROR_PAD, IFD_OP_TILE,           IFD_OP_MAX_POOL2D,     IFD_OP_REDUCE_MAX,
        IFD_OP_REDUCE_MIN, IFD_OP_RESIZE_NEAREST, IFD_OP_SPACE_TO_DEPTH, IFD_OP_DEPTH_TO_SPACE};
    for (size_t i = 0; i < 2 * sizeof(ops) / sizeof(ops[0]); i++) {
        struct fixture f;
        const uint32_t x = dequantize(&f, quantize(&f, input(&f), &stored));
        const uint32_t v = move(&f, ops[i / 2], x);
        finish(&f, quantize(&f, v, i % 2 ? &other : &stored));
        EXPECT_INT(f.optimized.node_count, i % 2 ? 4 : 3);
        EXPECT_INT(count_ops(&f, IFD_OP_TABLE), i % 2);
        EXPECT_INT(count_ops(&f, IFD_OP_QUANTIZE), 1);
        ifd_arena_finish(&f.arena);
    }
}

static void a_row_of_moves_is_stored(void)
{
    struct fixture f;
    uint32_t v = dequantize(&f, quantize(&f, input(&f), &stored));
    v = move(&f, IFD_OP_PAD, max_pool(&f, move(&f, IFD_OP_DEPTH_TO_SPACE, v)));
    finish(&f, quantize(&f, v, &stored));
    EXPECT_INT(f.optimized.node_count, 5);
    ifd_arena_finish(&f.arena);
}

/* A border of another number, a mean, a clamp, and floats that somebody reads. */
static void moves_that_compute_or_are_read_as_floats_stay(void)
{
    for (int kind = 0; kind < 4; kind++) {
        struct fixture f;
        const uint32_t x = dequantize(&f, quantize(&f, input(&f), &stored));
        uint32_t v = kind == 1   ? reduce(&f, IFD_OP_REDUCE_MEAN, x)
                     : kind == 2 ? max_pool(&f, x)
                                 : move(&f, IFD_OP_PAD, x);
        void *attrs = (void *)(uintptr_t)f.graph.node[f.graph.node_count - 1].attrs;
        if (kind == 0) {
            ((struct ifd_pad_attrs *)attrs)->has_value = true;
            ((struct ifd_pad_attrs *)attrs)->value = 2;
        } else if (kind == 2) {
            ((struct ifd_pool2d_attrs *)attrs)->activation = IFD_ACT_RELU6;
        }
        const uint32_t y = dequantize(&f, quantize(&f, v, &stored));
        optimize(&f, kind == 3 ? op2(&f, IFD_OP_ADD, y, v) : y);
        EXPECT_INT(count_ops(&f, IFD_OP_QUANTIZE), 2);
        ifd_arena_finish(&f.arena);
    }
}

static void split(struct fixture *f, uint32_t in, uint32_t part[2])
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(ifd_graph_add_value(&f->graph, "part", &real, &part[i], &err), &err);
    }
    REQUIRE_OK(ifd_graph_add_node(&f->graph, IFD_OP_SPLIT, &in, 1, part, 2, &node, &err), &err);
    ((struct ifd_split_attrs *)(uintptr_t)node->attrs)->axis = 3;
    infer(f);
}

static uint32_t join(struct fixture *f, const uint32_t part[2])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, IFD_OP_CONCAT, part, 2, &node);
    ((struct ifd_axis_attrs *)(uintptr_t)node->attrs)->axis = 3;
    infer(f);
    return out;
}

/* Kind 0: all have one scale. 1: one part of the split has another one. 2: so has the whole, and
 * its parts become like it. */
static void parts_are_split_and_joined_as_stored_numbers(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct fixture f;
        uint32_t part[2];
        split(&f, dequantize(&f, quantize(&f, input(&f), &stored)), part);
        for (int i = 0; i < 2; i++) {
            const struct ifd_desc *desc = kind == 1 && i == 1 ? &other : &stored;
            part[i] = dequantize(&f, quantize(&f, part[i], desc));
        }
        finish(&f, quantize(&f, join(&f, part), kind == 2 ? &other : &stored));
        EXPECT_INT(count_ops(&f, IFD_OP_QUANTIZE), 1);
        EXPECT_INT(count_ops(&f, IFD_OP_DEQUANTIZE), 1);
        EXPECT_INT(count_ops(&f, IFD_OP_TABLE), kind);
        ifd_arena_finish(&f.arena);
    }
}

/* Of a split whose second part is read as floats, or of a joined part with another scale. */
static void parts_that_are_read_as_floats_stay(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        uint32_t part[2];
        split(&f, dequantize(&f, quantize(&f, input(&f), &stored)), part);
        const uint32_t a = dequantize(&f, quantize(&f, part[0], &other));
        const uint32_t b = kind == 0 ? part[1] : dequantize(&f, quantize(&f, part[1], &stored));
        const uint32_t c = kind == 0 ? b : op1(&f, IFD_OP_SQUARE, a);
        const uint32_t joined =
            dequantize(&f, quantize(&f, join(&f, (const uint32_t[]){a, b}), &stored));
        const uint32_t both[] = {joined, c};
        optimize(&f, join(&f, both));
        EXPECT_INT(count_ops(&f, IFD_OP_QUANTIZE), kind == 0 ? 3 : 2);
        ifd_arena_finish(&f.arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_function_between_stored_numbers_is_a_table),
        T(two_ways_from_one_number_are_one_table),
        T(tables_in_a_row_are_one),
        T(a_function_of_two_tensors_or_channels_is_no_table),
        T(transposes_meet_across_a_table),
        T(one_function_of_stored_numbers_stays),
        T(operators_that_move_numbers_move_stored_ones),
        T(a_row_of_moves_is_stored),
        T(moves_that_compute_or_are_read_as_floats_stay),
        T(parts_are_split_and_joined_as_stored_numbers),
        T(parts_that_are_read_as_floats_stay),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
