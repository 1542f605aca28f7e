/* Every rule of the structural check, broken one at a time in a graph that is otherwise right. */
#include "engine/ir/verify.h"

#include "tests/support/fake_ops.h"
#include "tests/support/test.h"

/* x, y → add → s; (s, shape) → reshape → r; output r. */
enum { X, Y, S, SHAPE, R };

struct fixture {
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){0};
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
    const struct ifd_desc desc[] = {fake_f32(2, 2, 3), fake_f32(2, 2, 3), fake_f32(2, 2, 3),
                                    fake_s32(1), fake_f32(1, 6, 0)};
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t index = 0;
        REQUIRE_OK(ifd_graph_add_value(&f->graph, (const char *[]){"x", "y", "s", "shape", "r"}[i],
                                       &desc[i], &index, &f->err),
                   &f->err);
    }
    const int32_t target = 6;
    REQUIRE_OK(ifd_graph_set_constant(&f->graph, SHAPE,
                                      (struct ifd_bytes){(const uint8_t *)&target, 4}, 0, &f->err),
               &f->err);
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(&f->graph, IFD_OP_ADD, (uint32_t[]){X, Y}, 2, (uint32_t[]){S}, 1,
                                  &node, &f->err),
               &f->err);
    REQUIRE_OK(ifd_graph_add_node(&f->graph, IFD_OP_RESHAPE, (uint32_t[]){S, SHAPE}, 2,
                                  (uint32_t[]){R}, 1, &node, &f->err),
               &f->err);
    REQUIRE_OK(ifd_graph_set_io(&f->graph, (uint32_t[]){X, Y}, 2, (uint32_t[]){R}, 1, &f->err),
               &f->err);
    REQUIRE_OK(ifd_graph_verify(&f->graph, IFD_INTERNAL, &f->err), &f->err);
}

static void expect(struct fixture *f, const char *part)
{
    EXPECT_CODE(ifd_graph_verify(&f->graph, IFD_INVALID, &f->err), IFD_INVALID, &f->err);
    EXPECT_HAS(f->err.text, part);
    ifd_arena_finish(&f->arena);
}

static void nodes_out_of_order_are_refused(void)
{
    struct fixture f;
    setup(&f);
    struct ifd_node node = f.graph.node[0];
    f.graph.node[0] = f.graph.node[1];
    f.graph.node[1] = node;
    f.graph.value[R].producer = 0;
    f.graph.value[S].producer = 1;
    expect(&f, "input 0 \"s\" is not made before this node");
}

static void a_node_that_reads_its_own_output_is_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.node[0].input[1] = S;
    expect(&f, "input 1 \"s\" is not made before this node");
}

static void a_value_made_twice_is_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.node[1].output[0] = S;
    expect(&f, "output 0 \"s\" has another producer");
}

static void an_index_out_of_range_is_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.node[0].input[0] = 5;
    expect(&f, "input 0 is value 5 of 5");
    setup(&f);
    f.graph.output[0] = 77;
    expect(&f, "graph output 0 is value 77 of 5");
    setup(&f);
    f.graph.input[1] = 77;
    expect(&f, "graph input 1 is value 77 of 5");
}

static void graph_inputs_are_distinct_and_come_from_outside(void)
{
    struct fixture f;
    setup(&f);
    f.graph.input[1] = X;
    expect(&f, "listed twice");
    setup(&f);
    f.graph.input[1] = S;
    expect(&f, "made by a node");
    setup(&f);
    f.graph.input[1] = SHAPE;
    expect(&f, "a constant");
}

static void a_graph_output_made_by_nothing_is_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.node_count = 1;
    f.graph.value[R].producer = IFD_NONE;
    expect(&f, "graph output 0 \"r\" is made by no node");
}

static void an_input_or_a_constant_may_be_an_output(void)
{
    struct fixture f;
    setup(&f);
    f.graph.output[0] = X;
    REQUIRE_OK(ifd_graph_verify(&f.graph, IFD_INTERNAL, &f.err), &f.err);
    f.graph.output[0] = SHAPE;
    REQUIRE_OK(ifd_graph_verify(&f.graph, IFD_INTERNAL, &f.err), &f.err);
    ifd_arena_finish(&f.arena);
}

static void a_stale_shape_is_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.value[R].desc.shape.dim[0] = 5;
    expect(&f, "output 0 \"r\" has shape [5], the rule gives [6]");
}

static void a_shape_input_must_be_constant(void)
{
    struct fixture f;
    setup(&f);
    f.graph.value[SHAPE].is_constant = false;
    f.graph.value[SHAPE].data = (struct ifd_bytes){0};
    f.graph.input_count = 3;
    f.graph.input = (uint32_t[]){X, Y, SHAPE};
    EXPECT_CODE(ifd_graph_verify(&f.graph, IFD_INVALID, &f.err), IFD_UNSUPPORTED, &f.err);
    EXPECT_HAS(f.err.text, "reshape (node 1, output \"r\"): input 1 \"shape\" decides the shape");
    ifd_arena_finish(&f.arena);
}

static void wrong_counts_types_and_operators_are_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.node[0].input_count = 1;
    expect(&f, "1 inputs, expected 2");
    setup(&f);
    f.graph.node[0].op = IFD_OP_CONCAT;
    f.graph.node[0].input_count = 0;
    expect(&f, "0 inputs, expected 1 or more");
    setup(&f);
    f.graph.node[0].op = IFD_OP_SPLIT;
    f.graph.node[0].input_count = 1;
    f.graph.node[0].output_count = 0;
    expect(&f, "0 outputs, expected 1 or more");
    setup(&f);
    f.graph.node[0].output_count = 0;
    expect(&f, "0 outputs, expected 1");
    setup(&f);
    f.graph.node[0].input[1] = IFD_NONE;
    expect(&f, "input 1 is absent");
    setup(&f);
    f.graph.node[0].op = IFD_OP_COUNT;
    expect(&f, "no operator");
    setup(&f);
    f.graph.value[X].desc.dtype = IFD_S8;
    EXPECT_CODE(ifd_graph_verify(&f.graph, IFD_INVALID, &f.err), IFD_UNSUPPORTED, &f.err);
    EXPECT_HAS(f.err.text, "type s8 is not supported");
    ifd_arena_finish(&f.arena);
}

static void broken_constants_are_refused(void)
{
    struct fixture f;
    setup(&f);
    f.graph.value[SHAPE].data.size = 8;
    expect(&f, "8 bytes do not fit");
    setup(&f);
    f.graph.value[SHAPE].data.data += 1;
    expect(&f, "is not aligned");
}

static void broken_quantization_is_refused(void)
{
    static const float scale[3] = {1, 1, 1};
    static const int32_t zero_point[3] = {0};
    struct fixture f;
    setup(&f);
    f.graph.value[X].desc.quant = (struct ifd_quant){.scale = scale, .count = 1};
    expect(&f, "without parameters");
    setup(&f);
    f.graph.value[X].desc.quant =
        (struct ifd_quant){.scale = scale, .zero_point = zero_point, .count = 3, .axis = 0};
    expect(&f, "3 scales along axis 0 of [2,3]");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(nodes_out_of_order_are_refused),
        T(a_node_that_reads_its_own_output_is_refused),
        T(a_value_made_twice_is_refused),
        T(an_index_out_of_range_is_refused),
        T(graph_inputs_are_distinct_and_come_from_outside),
        T(a_graph_output_made_by_nothing_is_refused),
        T(an_input_or_a_constant_may_be_an_output),
        T(a_stale_shape_is_refused),
        T(a_shape_input_must_be_constant),
        T(wrong_counts_types_and_operators_are_refused),
        T(broken_constants_are_refused),
        T(broken_quantization_is_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
