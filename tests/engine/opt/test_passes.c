#include "engine/ir/attrs.h"
#include "engine/ir/verify.h"
#include "engine/opt/opt.h"
#include "tests/support/graph.h"

#include <string.h>

/* A graph and its copy that is optimized: both must compute the same. */
struct fixture {
    struct ifd_arena arena;
    struct ifd_graph graph;
};

static void setup(struct fixture *f)
{
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
}

static uint32_t add(struct fixture *f, enum ifd_op op, const uint32_t *input, uint32_t count,
                    struct ifd_node **ret_node)
{
    static const struct ifd_desc desc = {.dtype = IFD_F32};
    struct ifd_err err = {0};
    uint32_t out = 0;
    REQUIRE_OK(ifd_graph_add_value(&f->graph, "v", &desc, &out, &err), &err);
    REQUIRE_OK(ifd_graph_add_node(&f->graph, op, input, count, &out, 1, ret_node, &err), &err);
    return out;
}

static void infer(struct fixture *f)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(&f->graph, f->graph.node_count - 1, &err), &err);
}

static void set_ints(struct ifd_node *node, const char *name, const int64_t *value, size_t count)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(node->op), (void *)(uintptr_t)node->attrs, name, value,
                                  count, &err),
               &err);
}

static uint32_t transpose(struct fixture *f, uint32_t in, const int64_t perm[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, IFD_OP_TRANSPOSE, &in, 1, &node);
    set_ints(node, "perm", perm, 4);
    infer(f);
    return out;
}

static uint32_t op1(struct fixture *f, enum ifd_op op, uint32_t in)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    infer(f);
    return out;
}

static uint32_t op2(struct fixture *f, enum ifd_op op, uint32_t a, uint32_t b)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, (const uint32_t[]){a, b}, 2, &node);
    infer(f);
    return out;
}

static uint32_t pad(struct fixture *f, uint32_t in, const int64_t before[4], const int64_t after[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, IFD_OP_PAD, &in, 1, &node);
    set_ints(node, "before", before, 4);
    set_ints(node, "after", after, 4);
    infer(f);
    return out;
}

static uint32_t random_constant(struct fixture *f, struct ifd_shape shape,
                                struct test_random *random)
{
    float data[512];
    size_t count = 1;
    for (uint32_t d = 0; d < shape.rank; d++) {
        count *= (size_t)shape.dim[d];
    }
    REQUIRE(count <= 512);
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(random, -1, 1);
    }
    return test_graph_constant(&f->graph, "c", shape, data);
}

static uint32_t conv(struct fixture *f, uint32_t in, struct ifd_shape filter,
                     struct test_random *random)
{
    struct ifd_node *node = NULL;
    const uint32_t weights = random_constant(f, filter, random);
    const uint32_t out = add(f, IFD_OP_CONV2D, (const uint32_t[]){in, weights}, 2, &node);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window.padding = IFD_PAD_VALID;
    infer(f);
    return out;
}

static uint32_t count_ops(const struct ifd_graph *graph, enum ifd_op op)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        count += graph->node[n].op == op;
    }
    return count;
}

/* Optimizes a copy, compares what both compute on random input, and hands the copy out. Numbers may differ by rounding
 * only where a pass changes the order of additions; none of these does. */
static void optimize(struct fixture *f, uint32_t output, struct ifd_graph *ret)
{
    struct ifd_err err = {0};
    float input[4096], before[4096] = {0}, after[4096] = {0};
    struct test_random random = {.state = 7};
    const uint32_t x = 0;
    REQUIRE_OK(ifd_graph_set_io(&f->graph, &x, 1, &output, 1, &err), &err);
    REQUIRE_OK(ifd_graph_verify(&f->graph, IFD_INVALID, &err), &err);
    REQUIRE_OK(ifd_graph_clone(&f->graph, &f->arena, ret, &err), &err);
    REQUIRE_OK(ifd_optimize(ret, IFD_PASS_EXACT, ifd_alloc_system(), NULL, &err), &err);
    REQUIRE_OK(ifd_graph_verify(ret, IFD_INTERNAL, &err), &err);
    EXPECT(ret->node_count <= f->graph.node_count);
    for (size_t i = 0; i < 4096; i++) {
        input[i] = test_random_f32(&random, -3, 9);
    }
    test_graph_interpret(&f->graph, (const void *const[]){input}, (void *const[]){before});
    test_graph_interpret(ret, (const void *const[]){input}, (void *const[]){after});
    EXPECT_BYTES(after, before, sizeof(before));
}

static const int64_t to_nhwc[4] = {0, 2, 3, 1}, to_nchw[4] = {0, 3, 1, 2};

static void a_pad_becomes_padding_of_the_convolution(void)
{
    struct fixture f;
    struct ifd_graph graph;
    struct test_random random = {.state = 1};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 9, 8, 3));
    const uint32_t p = pad(&f, x, (const int64_t[]){0, 1, 2, 0}, (const int64_t[]){0, 3, 0, 0});
    optimize(&f, conv(&f, p, SHAPE(4, 3, 3, 3), &random), &graph);
    EXPECT_INT(graph.node_count, 1);
    EXPECT_INT(count_ops(&graph, IFD_OP_PAD), 0);
    ifd_arena_finish(&f.arena);
}

static void a_pad_of_channels_or_with_a_value_stays(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        struct ifd_graph graph;
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
        optimize(&f, conv(&f, p, SHAPE(4, 3, 3, 3 + channels), &random), &graph);
        EXPECT_INT(count_ops(&graph, IFD_OP_PAD), 1);
        ifd_arena_finish(&f.arena);
    }
}

static void an_activation_moves_into_the_convolution(void)
{
    struct fixture f;
    struct ifd_graph graph;
    struct test_random random = {.state = 2};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 2));
    optimize(&f, op1(&f, IFD_OP_RELU6, conv(&f, x, SHAPE(3, 1, 1, 2), &random)), &graph);
    EXPECT_INT(graph.node_count, 1);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)graph.node[0].attrs)->activation, IFD_ACT_RELU6);
    ifd_arena_finish(&f.arena);
}

static void an_activation_stays_where_its_input_is_read_twice(void)
{
    struct fixture f;
    struct ifd_graph graph;
    struct test_random random = {.state = 2};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6, 6, 2));
    const uint32_t c = conv(&f, x, SHAPE(3, 1, 1, 2), &random);
    optimize(&f, op2(&f, IFD_OP_ADD, op1(&f, IFD_OP_RELU, c), c), &graph);
    EXPECT_INT(count_ops(&graph, IFD_OP_RELU), 1);
    ifd_arena_finish(&f.arena);
}

static void transposes_meet_and_vanish(void)
{
    struct fixture f;
    struct ifd_graph graph;
    struct test_random random = {.state = 3};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    const uint32_t a = transpose(&f, conv(&f, x, SHAPE(4, 1, 1, 4), &random), to_nchw);
    const uint32_t silu = op2(&f, IFD_OP_MUL, a, op1(&f, IFD_OP_LOGISTIC, a));
    const uint32_t biased =
        op2(&f, IFD_OP_ADD, silu, random_constant(&f, SHAPE(1, 4, 1, 1), &random));
    const uint32_t p =
        pad(&f, biased, (const int64_t[]){0, 0, 1, 1}, (const int64_t[]){0, 0, 1, 1});
    optimize(&f, conv(&f, transpose(&f, p, to_nhwc), SHAPE(2, 3, 3, 4), &random), &graph);
    EXPECT_INT(count_ops(&graph, IFD_OP_TRANSPOSE), 0);
    EXPECT_INT(count_ops(&graph, IFD_OP_PAD), 0);
    EXPECT_INT(graph.node_count, 5);
    ifd_arena_finish(&f.arena);
}

static void transposes_that_only_add_up_become_one(void)
{
    struct fixture f;
    struct ifd_graph graph;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    optimize(&f, transpose(&f, op1(&f, IFD_OP_ABS, transpose(&f, x, to_nchw)), to_nchw), &graph);
    EXPECT_INT(count_ops(&graph, IFD_OP_TRANSPOSE), 1);
    EXPECT_INT(graph.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void a_transposed_output_of_the_graph_stays(void)
{
    struct fixture f;
    struct ifd_graph graph;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 5, 6, 4));
    optimize(&f, op1(&f, IFD_OP_NEG, transpose(&f, x, to_nchw)), &graph);
    EXPECT_INT(graph.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void space_to_batch_around_a_convolution_is_a_dilation(void)
{
    struct fixture f;
    struct ifd_graph graph;
    struct test_random random = {.state = 4};
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 7, 9, 3));
    const uint32_t split = add(&f, IFD_OP_SPACE_TO_BATCH, &x, 1, &node);
    set_ints(node, "block", (const int64_t[]){2, 2}, 2);
    set_ints(node, "before", (const int64_t[]){2, 2}, 2);
    set_ints(node, "after", (const int64_t[]){3, 3}, 2);
    infer(&f);
    const uint32_t inner = conv(&f, split, SHAPE(4, 3, 3, 3), &random);
    const uint32_t joined = add(&f, IFD_OP_BATCH_TO_SPACE, &inner, 1, &node);
    set_ints(node, "block", (const int64_t[]){2, 2}, 2);
    set_ints(node, "before", (const int64_t[]){0, 0}, 2);
    set_ints(node, "after", (const int64_t[]){1, 1}, 2);
    infer(&f);
    optimize(&f, joined, &graph);
    EXPECT_INT(graph.node_count, 1);
    EXPECT_INT(((const struct ifd_conv2d_attrs *)graph.node[0].attrs)->window.dilation_h, 2);
    ifd_arena_finish(&f.arena);
}

static void reshapes_in_a_row_become_one(void)
{
    struct fixture f;
    struct ifd_graph graph;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4, 6));
    const uint32_t a = test_graph_reshape(&f.graph, x, SHAPE(24), "a");
    const uint32_t b = test_graph_reshape(&f.graph, a, SHAPE(2, 12), "b");
    optimize(&f, test_graph_reshape(&f.graph, b, SHAPE(3, 8), "c"), &graph);
    EXPECT_INT(graph.node_count, 1);
    ifd_arena_finish(&f.arena);
}

/* Chains of random transposes, pads and element-wise operators: the same numbers, never more nodes (both checked by
 * optimize), and never more than the one transposition that the chain as a whole may be. */
static void random_chains_compute_the_same(void)
{
    struct test_random random = {.state = 11};
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        struct ifd_graph graph;
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
            optimize(&f, v, &graph);
            EXPECT(count_ops(&graph, IFD_OP_TRANSPOSE) <= 1);
        }
        ifd_arena_finish(&f.arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_pad_becomes_padding_of_the_convolution),
        T(a_pad_of_channels_or_with_a_value_stays),
        T(an_activation_moves_into_the_convolution),
        T(an_activation_stays_where_its_input_is_read_twice),
        T(transposes_meet_and_vanish),
        T(transposes_that_only_add_up_become_one),
        T(a_transposed_output_of_the_graph_stays),
        T(space_to_batch_around_a_convolution_is_a_dilation),
        T(reshapes_in_a_row_become_one),
        T(random_chains_compute_the_same),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
