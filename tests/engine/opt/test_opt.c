#include "engine/opt/opt.h"
#include "engine/ir/verify.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/graph.h"

#include <string.h>

struct fixture {
    struct ifd_arena arena;
    struct ifd_graph graph;
};

static void setup(struct fixture *f)
{
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
}

static void optimize(struct fixture *f, enum ifd_pass_level level)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_verify(&f->graph, IFD_INVALID, &err), &err);
    REQUIRE_OK(ifd_optimize(&f->graph, level, ifd_alloc_system(), NULL, &err), &err);
    REQUIRE_OK(ifd_graph_verify(&f->graph, IFD_INTERNAL, &err), &err);
}

static void nodes_of_constants_become_constants(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 2));
    const uint32_t a = test_graph_constant(&f.graph, "a", SHAPE(1, 2), (const float[]){1, -2});
    const uint32_t b = test_graph_constant(&f.graph, "b", SHAPE(1, 2), (const float[]){10, 20});
    const uint32_t sum = test_graph_op2(&f.graph, IFD_OP_ADD, a, b, "sum");
    const uint32_t neg = test_graph_op1(&f.graph, IFD_OP_NEG, sum, "neg");
    test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_ADD, x, neg, "y"));
    optimize(&f, IFD_PASS_REQUIRED);
    EXPECT_INT(f.graph.node_count, 1);
    EXPECT_INT(f.graph.value_count, 3);
    const struct ifd_value *folded = &f.graph.value[f.graph.node[0].input[1]];
    EXPECT_TEXT(folded->name, "neg");
    REQUIRE(folded->is_constant && folded->data.size == 8);
    const float *data = (const float *)(const void *)folded->data.data;
    EXPECT_CLOSE(data[0], -11, 0);
    EXPECT_CLOSE(data[1], -18, 0);
    ifd_arena_finish(&f.arena);
}

static void an_output_may_become_constant(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1));
    const uint32_t c = test_graph_constant(&f.graph, "c", SHAPE(1), (const float[]){-3});
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_ABS, c, "y"));
    optimize(&f, IFD_PASS_REQUIRED);
    EXPECT_INT(f.graph.node_count, 0);
    EXPECT(f.graph.value[f.graph.output[0]].is_constant);
    EXPECT_TEXT(f.graph.value[f.graph.output[0]].name, "y");
    ifd_arena_finish(&f.arena);
}

/* Of two products of as many results, as angles of positions are, or square matrices. */
static void products_are_computed_unless_they_take_long(void)
{
    static const float data[1 << 14] = {0};
    for (int64_t depth = 1; depth <= 128; depth += 127) {
        struct fixture f;
        setup(&f);
        f.graph.work_limit = 1 << 20;
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1));
        const uint32_t a = test_graph_constant(&f.graph, "a", SHAPE(1, 128, depth), data);
        const uint32_t b = test_graph_constant(&f.graph, "b", SHAPE(1, depth, 128), data);
        const uint32_t product = test_graph_op2(&f.graph, IFD_OP_BATCH_MATMUL, a, b, "product");
        test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_ADD, x, product, "y"));
        optimize(&f, IFD_PASS_REQUIRED);
        EXPECT_INT(f.graph.node_count, depth == 1 ? 1 : 2);
        ifd_arena_finish(&f.arena);
    }
}

static void half_float_weights_are_widened_once(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    static const uint16_t half[] = {0x3c00, 0xc000, 0x3800}; /* 1, -2, 0.5 */
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 3));
    const struct ifd_desc desc = {.dtype = IFD_F16, .shape = SHAPE(3)};
    uint32_t weights = 0;
    REQUIRE_OK(ifd_graph_add_value(&f.graph, "weights", &desc, &weights, &err), &err);
    REQUIRE_OK(ifd_graph_set_constant(
                   &f.graph, weights,
                   (struct ifd_bytes){.data = (const uint8_t *)half, .size = sizeof(half)}, 0,
                   &err),
               &err);
    const uint32_t wide = test_graph_op1(&f.graph, IFD_OP_DEQUANTIZE, weights, "wide");
    test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_MUL, x, wide, "y"));
    optimize(&f, IFD_PASS_REQUIRED);
    EXPECT_INT(f.graph.node_count, 1);
    const float *data =
        (const float *)(const void *)f.graph.value[f.graph.node[0].input[1]].data.data;
    EXPECT_CLOSE(data[0], 1, 0);
    EXPECT_CLOSE(data[1], -2, 0);
    EXPECT_CLOSE(data[2], 0.5, 0);
    ifd_arena_finish(&f.arena);
}

static void nodes_that_reach_no_output_are_dropped(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 2));
    const uint32_t dead = test_graph_op1(&f.graph, IFD_OP_ABS, x, "dead");
    test_graph_op1(&f.graph, IFD_OP_NEG, dead, "deader");
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_RELU, x, "y"));
    optimize(&f, IFD_PASS_REQUIRED);
    EXPECT_INT(f.graph.node_count, 1);
    EXPECT_INT(f.graph.value_count, 2);
    EXPECT_TEXT(f.graph.value[f.graph.input[0]].name, "x");
    EXPECT_TEXT(f.graph.value[f.graph.output[0]].name, "y");
    ifd_arena_finish(&f.arena);
}

static void unused_inputs_stay(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    setup(&f);
    const uint32_t input[] = {test_graph_f32(&f.graph, "x", SHAPE(1)),
                              test_graph_f32(&f.graph, "unused", SHAPE(1))};
    const uint32_t output = test_graph_op1(&f.graph, IFD_OP_ABS, input[0], "y");
    REQUIRE_OK(ifd_graph_set_io(&f.graph, input, 2, &output, 1, &err), &err);
    optimize(&f, IFD_PASS_FUSE);
    EXPECT_INT(f.graph.input_count, 2);
    EXPECT_TEXT(f.graph.value[f.graph.input[1]].name, "unused");
    ifd_arena_finish(&f.arena);
}

static void reshapes_to_the_same_shape_are_dropped(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    const uint32_t same = test_graph_reshape(&f.graph, x, SHAPE(1, 6), "same");
    const uint32_t again = test_graph_reshape(&f.graph, same, SHAPE(-1, 6), "again");
    const uint32_t abs = test_graph_op1(&f.graph, IFD_OP_ABS, again, "abs");
    test_graph_io(&f.graph, x, test_graph_reshape(&f.graph, abs, SHAPE(1, 6), "y"));
    optimize(&f, IFD_PASS_EXACT);
    REQUIRE(f.graph.node_count == 1);
    EXPECT_INT(f.graph.node[0].op, IFD_OP_ABS);
    EXPECT_INT(f.graph.node[0].input[0], f.graph.input[0]);
    EXPECT_TEXT(f.graph.value[f.graph.output[0]].name, "y");
    ifd_arena_finish(&f.arena);
}

static void reshapes_to_another_shape_stay(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    test_graph_io(&f.graph, x, test_graph_reshape(&f.graph, x, SHAPE(2, 3), "y"));
    optimize(&f, IFD_PASS_FUSE);
    EXPECT_INT(f.graph.node_count, 1);
    ifd_arena_finish(&f.arena);
}

/* Both names are promised to the caller, so something has to copy. */
static void an_identity_between_input_and_output_stays(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    test_graph_io(&f.graph, x, test_graph_reshape(&f.graph, x, SHAPE(1, 6), "y"));
    optimize(&f, IFD_PASS_FUSE);
    EXPECT_INT(f.graph.node_count, 1);
    ifd_arena_finish(&f.arena);
}

static void an_identity_between_two_outputs_stays(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "a");
    const uint32_t b = test_graph_reshape(&f.graph, a, SHAPE(1, 6), "b");
    REQUIRE_OK(ifd_graph_set_io(&f.graph, &x, 1, (const uint32_t[]){a, b}, 2, &err), &err);
    optimize(&f, IFD_PASS_FUSE);
    EXPECT_INT(f.graph.node_count, 2);
    EXPECT_TEXT(f.graph.value[f.graph.output[0]].name, "a");
    EXPECT_TEXT(f.graph.value[f.graph.output[1]].name, "b");
    ifd_arena_finish(&f.arena);
}

static void required_level_keeps_identities(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    const uint32_t same = test_graph_reshape(&f.graph, x, SHAPE(1, 6), "same");
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_ABS, same, "y"));
    optimize(&f, IFD_PASS_REQUIRED);
    EXPECT_INT(f.graph.node_count, 2);
    ifd_arena_finish(&f.arena);
}

static void report_says_what_each_pass_did(void)
{
    struct fixture f;
    struct ifd_pass_report report[32];
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    test_graph_op1(&f.graph, IFD_OP_NEG, x, "dead");
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_ABS, x, "y"));
    REQUIRE(ifd_pass_count() <= 32);
    REQUIRE_OK(ifd_optimize(&f.graph, IFD_PASS_FUSE, ifd_alloc_system(), report, NULL), NULL);
    for (uint32_t i = 0; i < ifd_pass_count(); i++) {
        const bool is_dead = strcmp(report[i].name, "drop_dead") == 0;
        EXPECT_INT(report[i].changes > 0, is_dead);
        EXPECT_INT(report[i].nodes_after, is_dead ? 1 : report[i].nodes_before);
    }
    ifd_arena_finish(&f.arena);
}

#define BATCH    2
#define CHANNELS 5
#define FLOATS   (BATCH * CHANNELS)

static void random_graphs_with_several_inputs_and_outputs_compute_the_same(void)
{
    struct test_random random = {.state = 99};
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        float x[2][FLOATS], before[3][FLOATS], after[3][FLOATS];
        setup(&f);
        test_graph_random(&f.graph, &random, BATCH, CHANNELS,
                          (uint32_t)test_random_int(&random, 1, 25));
        for (int i = 0; i < FLOATS; i++) {
            x[0][i] = test_random_f32(&random, -8, 8);
            x[1][i] = test_random_f32(&random, -8, 8);
        }
        const void *input[] = {x[0], x[1]};
        test_graph_interpret(&f.graph, input, (void *[]){before[0], before[1], before[2]});
        const uint32_t nodes = f.graph.node_count;
        const uint32_t outputs = f.graph.output_count;
        optimize(&f, IFD_PASS_EXACT);
        EXPECT(f.graph.node_count <= nodes);
        REQUIRE(f.graph.input_count == 2 && f.graph.output_count == outputs);
        test_graph_interpret(&f.graph, input, (void *[]){after[0], after[1], after[2]});
        for (uint32_t i = 0; i < outputs; i++) {
            EXPECT_BYTES(after[i], before[i], sizeof(after[i]));
        }
        ifd_arena_finish(&f.arena);
    }
}

static void no_memory_is_reported_and_nothing_leaks(void)
{
    for (long k = 1;; k++) {
        struct fixture f;
        struct fail_alloc fail;
        struct ifd_err err = {0};
        setup(&f);
        fail_alloc_init(&fail, k);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 2));
        const uint32_t a = test_graph_constant(&f.graph, "a", SHAPE(1, 2), (const float[]){1, -2});
        const uint32_t neg = test_graph_op1(&f.graph, IFD_OP_NEG, a, "neg");
        test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_ADD, x, neg, "y"));
        const enum ifd_code code = ifd_optimize(&f.graph, IFD_PASS_FUSE, &fail.alloc, NULL, &err);
        fail_alloc_finish(&fail);
        ifd_arena_finish(&f.arena);
        if (!fail.failed) {
            EXPECT_CODE(code, IFD_OK, &err);
            break;
        }
        EXPECT_CODE(code, IFD_NOMEM, &err);
        EXPECT_HAS(err.text, "pass ");
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(nodes_of_constants_become_constants),
        T(an_output_may_become_constant),
        T(products_are_computed_unless_they_take_long),
        T(half_float_weights_are_widened_once),
        T(nodes_that_reach_no_output_are_dropped),
        T(unused_inputs_stay),
        T(reshapes_to_the_same_shape_are_dropped),
        T(reshapes_to_another_shape_stay),
        T(an_identity_between_input_and_output_stays),
        T(an_identity_between_two_outputs_stays),
        T(required_level_keeps_identities),
        T(report_says_what_each_pass_did),
        T(random_graphs_with_several_inputs_and_outputs_compute_the_same),
        T(no_memory_is_reported_and_nothing_leaks),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
