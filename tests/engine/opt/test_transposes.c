/* Transpositions move and cancel: graphs before and after. */
#include "tests/engine/opt/fixture.h"

static const int64_t to_nhwc[4] = {0, 2, 3, 1}, to_nchw[4] = {0, 3, 1, 2};

static void transposes_meet_and_vanish(void)
{
    struct fixture f;
    struct test_random random = {.state = 3};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    const uint32_t a = transpose(&f, conv(&f, x, SHAPE(4, 1, 1, 4), &random), to_nchw);
    const uint32_t silu = op2(&f, IFD_OP_MUL, a, op1(&f, IFD_OP_LOGISTIC, a));
    const uint32_t biased =
        op2(&f, IFD_OP_ADD, silu, random_constant(&f, SHAPE(1, 4, 1, 1), &random));
    const uint32_t p =
        pad(&f, biased, (const int64_t[]){0, 0, 1, 1}, (const int64_t[]){0, 0, 1, 1});
    optimize(&f, conv(&f, transpose(&f, p, to_nhwc), SHAPE(2, 3, 3, 4), &random));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 0);
    EXPECT_INT(count_ops(&f, IFD_OP_PAD), 0);
    EXPECT_INT(f.optimized.node_count, 5);
    ifd_arena_finish(&f.arena);
}

static void transposes_that_only_add_up_become_one(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    optimize(&f, transpose(&f, op1(&f, IFD_OP_ABS, transpose(&f, x, to_nchw)), to_nchw));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 1);
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void a_transposed_output_of_the_graph_stays(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    optimize(&f, op1(&f, IFD_OP_NEG, transpose(&f, x, to_nchw)));
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void a_transpose_of_dimensions_of_1_is_a_reshape(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 1));
    optimize(&f, op1(&f, IFD_OP_ABS, transpose(&f, x, to_nchw)));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 0);
    EXPECT_INT(count_ops(&f, IFD_OP_RESHAPE), 1);
    ifd_arena_finish(&f.arena);
}

/* Its masks have a bit for each dimension: begin and end are ignored there. */
static void transposes_meet_across_a_strided_slice(void)
{
    struct fixture f;
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 7, 6));
    const uint32_t t = transpose(&f, x, to_nchw);
    const uint32_t v = add(&f, IFD_OP_STRIDED_SLICE, &t, 1, &node);
    set_ints(node, "begin", (const int64_t[]){0, 3, 1, 2}, 4);
    set_ints(node, "end", (const int64_t[]){1, 5, 4, 1}, 4);
    set_ints(node, "strides", (const int64_t[]){1, 1, 1, 2}, 4);
    struct ifd_strided_slice_attrs *attrs =
        (struct ifd_strided_slice_attrs *)(uintptr_t)node->attrs;
    attrs->begin_mask = 1 << 1;
    attrs->end_mask = 1 << 3;
    infer(&f);
    optimize(&f, transpose(&f, v, to_nhwc));
    EXPECT_INT(f.optimized.node_count, 1);
    ifd_arena_finish(&f.arena);
}

static uint32_t largest(struct fixture *f, uint32_t x, const int64_t *axes, uint32_t count)
{
    struct ifd_node *node = NULL;
    const uint32_t v = add(f, IFD_OP_REDUCE_MAX, &x, 1, &node);
    set_ints(node, "axes", axes, count);
    infer(f);
    return v;
}

/* As where a tensor is quantized by its own range. */
static void transposes_meet_across_what_the_whole_tensor_decides(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 7, 6));
    const uint32_t t = transpose(&f, x, to_nchw);
    const uint32_t most = largest(&f, t, (const int64_t[]){0, 1, -2, 3}, 4);
    optimize(&f, transpose(&f, op2(&f, IFD_OP_DIV, t, most), to_nhwc));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 0);
    EXPECT_INT(f.optimized.node_count, 2);
    ifd_arena_finish(&f.arena);
}

/* The dimensions that are left have an order. */
static void a_transpose_before_a_reduction_to_fewer_dimensions_stays(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 7, 6));
    const uint32_t t = transpose(&f, x, to_nchw);
    const uint32_t most = largest(&f, t, (const int64_t[]){0, 3, 0, -1}, 4);
    optimize(&f, op1(&f, IFD_OP_ABS, most));
    EXPECT_INT(count_ops(&f, IFD_OP_TRANSPOSE), 1);
    ifd_arena_finish(&f.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(transposes_meet_and_vanish),
        T(transposes_that_only_add_up_become_one),
        T(a_transposed_output_of_the_graph_stays),
        T(a_transpose_of_dimensions_of_1_is_a_reshape),
        T(transposes_meet_across_a_strided_slice),
        T(transposes_meet_across_what_the_whole_tensor_decides),
        T(a_transpose_before_a_reduction_to_fewer_dimensions_stays),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
