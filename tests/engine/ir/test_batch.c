#include "engine/ir/batch.h"
#include "engine/ir/attrs.h"
#include "tests/support/graph.h"

struct fixture {
    struct ifd_arena arena;
    struct ifd_graph graph;
};

static void setup(struct fixture *f)
{
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
}

static bool is_free(const struct fixture *f, struct ifd_err *why_not)
{
    bool input[4], output[4];
    return ifd_graph_batch_is_free(&f->graph, input, output, why_not);
}

static const struct ifd_shape *output_shape(const struct fixture *f)
{
    return &f->graph.value[f->graph.output[0]].desc.shape;
}

static void set_attr(struct fixture *f, const char *name, int64_t value)
{
    struct ifd_node *node = &f->graph.node[f->graph.node_count - 1];
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_int(ifd_op_def(node->op), (void *)node->attrs, name, value, &err),
               &err);
}

static void samples_pass_through_reshape_sum_and_softmax(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const float bias[] = {1, 2, 3, 4, 5, 6};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 2, 3));
    const uint32_t flat = test_graph_reshape(&f.graph, x, SHAPE(1, 6), "flat");
    const uint32_t sum = test_graph_op2(&f.graph, IFD_OP_ADD, flat,
                                        test_graph_constant(&f.graph, "b", SHAPE(6), bias), "sum");
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_SOFTMAX, sum, "y"));
    EXPECT(is_free(&f, &err));
    REQUIRE_OK(ifd_graph_set_batch(&f.graph, 7, &err), &err);
    EXPECT_INT(f.graph.value[x].desc.shape.dim[0], 7);
    EXPECT_INT(output_shape(&f)->dim[0], 7);
    EXPECT_INT(output_shape(&f)->dim[1], 6);
    EXPECT(is_free(&f, &err));
    REQUIRE_OK(ifd_graph_set_batch(&f.graph, 1, &err), &err);
    EXPECT_INT(output_shape(&f)->dim[0], 1);
    ifd_arena_finish(&f.arena);
}

/* Each sample's numbers would depend on the others'. */
static void samples_that_are_quantized_together_stay_together(void)
{
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        struct fixture f;
        struct ifd_err err = {0};
        static const int8_t weights[12] = {1, -2, 3};
        static const float scale = 0.5f;
        static const int32_t zero = 0;
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
        const uint32_t w = test_graph_f32(&f.graph, "w", SHAPE(2, 6));
        struct ifd_desc *desc = &f.graph.value[w].desc;
        desc->dtype = IFD_S8;
        desc->quant = (struct ifd_quant){.scale = &scale, .zero_point = &zero, .count = 1};
        const struct ifd_bytes content = {(const uint8_t *)weights, sizeof(weights)};
        REQUIRE_OK(ifd_graph_set_constant(&f.graph, w, content, 0, &err), &err);
        test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_FULLY_CONNECTED, x, w, "y"));
        set_attr(&f, "rounds_even", is_whole);
        EXPECT_INT(is_free(&f, &err), !is_whole);
        ifd_arena_finish(&f.arena);
    }
}

static void a_clone_at_another_batch_leaves_the_original_alone(void)
{
    struct fixture f;
    struct ifd_arena arena;
    struct ifd_graph clone;
    struct ifd_err err = {0};
    setup(&f);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(2, 6));
    test_graph_io(&f.graph, x, test_graph_reshape(&f.graph, x, SHAPE(2, 3, 2), "y"));
    REQUIRE_OK(ifd_graph_clone(&f.graph, &arena, &clone, &err), &err);
    REQUIRE_OK(ifd_graph_set_batch(&clone, 5, &err), &err);
    EXPECT_INT(clone.value[clone.output[0]].desc.shape.dim[0], 5);
    EXPECT_INT(output_shape(&f)->dim[0], 2);
    REQUIRE_OK(ifd_graph_infer_node(&f.graph, 0, &err), &err);
    EXPECT_INT(output_shape(&f)->dim[0], 2);
    ifd_arena_finish(&arena);
    ifd_arena_finish(&f.arena);
}

static void a_reshape_that_moves_the_batch_is_named(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
    test_graph_io(&f.graph, x, test_graph_reshape(&f.graph, x, SHAPE(2, 3), "y"));
    EXPECT(!is_free(&f, &err));
    EXPECT_HAS(err.text, "reshape");
    EXPECT_HAS(err.text, "\"y\"");
    EXPECT_CODE(ifd_graph_set_batch(&f.graph, 2, &err), IFD_UNSUPPORTED, &err);
    ifd_arena_finish(&f.arena);
}

static void concat_along_the_batch_is_not_free_but_along_channels_is(void)
{
    for (int axis = 0; axis < 2; axis++) {
        struct fixture f;
        struct ifd_err err = {0};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
        const uint32_t abs = test_graph_op1(&f.graph, IFD_OP_ABS, x, "abs");
        const uint32_t y = test_graph_op2(&f.graph, IFD_OP_CONCAT, x, abs, "y");
        set_attr(&f, "axis", axis);
        REQUIRE_OK(ifd_graph_infer_node(&f.graph, f.graph.node_count - 1, &err), &err);
        test_graph_io(&f.graph, x, y);
        EXPECT_INT(is_free(&f, &err), axis == 1);
        ifd_arena_finish(&f.arena);
    }
}

static void a_gather_whose_indices_are_those_of_samples_is_not_free(void)
{
    for (int batch_dims = 0; batch_dims < 2; batch_dims++) {
        struct fixture f;
        struct ifd_err err = {0};
        setup(&f);
        static const int32_t index[] = {0, 4, 1};
        const struct ifd_desc desc = {.dtype = IFD_S32, .shape = SHAPE(1, 3)};
        uint32_t indices = 0;
        REQUIRE_OK(ifd_graph_add_value(&f.graph, "indices", &desc, &indices, &err), &err);
        REQUIRE_OK(ifd_graph_set_constant(&f.graph, indices,
                                          (struct ifd_bytes){(const uint8_t *)index, sizeof(index)},
                                          0, &err),
                   &err);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 6));
        const uint32_t y = test_graph_op2(&f.graph, IFD_OP_GATHER, x, indices, "y");
        set_attr(&f, "axis", 1);
        set_attr(&f, "batch_dims", batch_dims);
        REQUIRE_OK(ifd_graph_infer_node(&f.graph, f.graph.node_count - 1, &err), &err);
        test_graph_io(&f.graph, x, y);
        EXPECT_INT(is_free(&f, &err), batch_dims == 0);
        ifd_arena_finish(&f.arena);
    }
}

static void a_constant_of_the_batch_size_is_not_free(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const float bias[] = {1, 2};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(2, 1));
    const uint32_t c = test_graph_constant(&f.graph, "c", SHAPE(2, 1), bias);
    test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_ADD, x, c, "y"));
    EXPECT(!is_free(&f, &err));
    EXPECT_HAS(err.text, "add");
    ifd_arena_finish(&f.arena);
}

static void softmax_over_the_batch_is_not_free(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(6));
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_SOFTMAX, x, "y"));
    EXPECT(!is_free(&f, &err));
    ifd_arena_finish(&f.arena);
}

static void set_ints(struct fixture *f, const char *name, const int64_t *value, size_t count)
{
    struct ifd_node *node = &f->graph.node[f->graph.node_count - 1];
    struct ifd_err err = {0};
    REQUIRE_OK(
        ifd_attrs_set_ints(ifd_op_def(node->op), (void *)node->attrs, name, value, count, &err),
        &err);
}

/* A node whose attributes are set before its shape is inferred. */
static uint32_t add_raw(struct fixture *f, enum ifd_op op, uint32_t input)
{
    uint32_t output = test_graph_f32(&f->graph, "y", SHAPE(0));
    struct ifd_node *node = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_node(&f->graph, op, &input, 1, &output, 1, &node, &err), &err);
    return output;
}

static void a_transpose_is_free_if_the_batch_stays_first(void)
{
    static const int64_t perm[2][3] = {{0, 2, 1}, {1, 0, 2}};
    for (int moved = 0; moved < 2; moved++) {
        struct fixture f;
        struct ifd_err err = {0};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 1, 4));
        const uint32_t y = add_raw(&f, IFD_OP_TRANSPOSE, x);
        set_ints(&f, "perm", perm[moved], 3);
        REQUIRE_OK(ifd_graph_infer_node(&f.graph, 0, &err), &err);
        test_graph_io(&f.graph, x, y);
        EXPECT_INT(output_shape(&f)->dim[0], 1);
        EXPECT_INT(is_free(&f, &err), moved == 0);
        ifd_arena_finish(&f.arena);
    }
}

static void a_slice_is_free_if_it_takes_every_sample(void)
{
    /* All samples in three ways, the last, the first two: alike at batch 1. */
    static const int64_t begin[5] = {0, 0, 0, -1, 0}, end[5] = {1, INT32_MAX, 1000000000, 1, 2};
    for (int i = 0; i < 5; i++) {
        struct fixture f;
        struct ifd_err err = {0};
        setup(&f);
        const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
        const uint32_t y = add_raw(&f, IFD_OP_STRIDED_SLICE, x);
        set_ints(&f, "begin", (const int64_t[]){begin[i], 1}, 2);
        set_ints(&f, "end", (const int64_t[]){end[i], 3}, 2);
        set_ints(&f, "strides", (const int64_t[]){1, 1}, 2);
        REQUIRE_OK(ifd_graph_infer_node(&f.graph, 0, &err), &err);
        test_graph_io(&f.graph, x, y);
        EXPECT_INT(output_shape(&f)->dim[0], 1);
        EXPECT_INT(is_free(&f, &err), i < 3);
        if (i < 3) {
            REQUIRE_OK(ifd_graph_set_batch(&f.graph, 3, &err), &err);
            EXPECT_INT(output_shape(&f)->dim[0], 3);
            EXPECT_INT(output_shape(&f)->dim[1], 2);
        }
        ifd_arena_finish(&f.arena);
    }
}

/* From [batch,2,2,1] to [batch,4,4,1]; the size is a constant, or an input. */
static uint32_t add_transposed(struct fixture *f, uint32_t x, bool has_constant_size, int32_t batch)
{
    static const float filter[4] = {1, 2, 3, 4};
    struct ifd_graph *g = &f->graph;
    struct ifd_err err = {0};
    const int32_t size[] = {batch, 4, 4, 1};
    const struct ifd_desc desc = {.dtype = IFD_S32, .shape = SHAPE(4)};
    uint32_t in[3] = {0, test_graph_constant(g, "w", SHAPE(1, 2, 2, 1), filter), x};
    REQUIRE_OK(ifd_graph_add_value(g, "size", &desc, &in[0], &err), &err);
    if (has_constant_size) {
        const struct ifd_bytes data = {(const uint8_t *)size, sizeof(size)};
        REQUIRE_OK(ifd_graph_set_constant(g, in[0], data, 0, &err), &err);
    }
    const uint32_t y = test_graph_f32(g, "y", SHAPE(batch, 4, 4, 1));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_TRANSPOSE_CONV2D, in, 3, &y, 1, &node, &err), &err);
    ((struct ifd_transpose_conv2d_attrs *)node->attrs)->window =
        (struct ifd_window){.stride_h = 2, .stride_w = 2, .dilation_h = 1, .dilation_w = 1};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return y;
}

static void the_constant_size_of_a_transposed_convolution_follows(void)
{
    struct fixture f;
    struct ifd_arena arena;
    struct ifd_graph clone;
    struct ifd_err err = {0};
    setup(&f);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(2, 2, 2, 1));
    test_graph_io(&f.graph, x, add_transposed(&f, x, true, 2));
    EXPECT(is_free(&f, &err));
    REQUIRE_OK(ifd_graph_clone(&f.graph, &arena, &clone, &err), &err);
    REQUIRE_OK(ifd_graph_set_batch(&clone, 5, &err), &err);
    const struct ifd_value *size = &clone.value[clone.node[0].input[0]];
    EXPECT_INT(((const int32_t *)size->data.data)[0], 5);
    EXPECT_INT(((const int32_t *)size->data.data)[1], 4);
    EXPECT_INT(clone.value[clone.output[0]].desc.shape.dim[0], 5);
    /* and back; the graph that it came from has its own */
    REQUIRE_OK(ifd_graph_set_batch(&clone, 1, &err), &err);
    EXPECT_INT(clone.value[clone.output[0]].desc.shape.dim[0], 1);
    EXPECT_INT(((const int32_t *)f.graph.value[f.graph.node[0].input[0]].data.data)[0], 2);
    REQUIRE_OK(ifd_graph_infer_node(&f.graph, 0, &err), &err);
    ifd_arena_finish(&arena);
    ifd_arena_finish(&f.arena);
}

static void a_size_that_is_computed_is_not_free(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 2, 2, 1));
    test_graph_io(&f.graph, x, add_transposed(&f, x, false, 1));
    EXPECT(!is_free(&f, &err));
    EXPECT_HAS(err.text, "transpose_conv2d");
    ifd_arena_finish(&f.arena);
}

/* Of [2,2,3]: as many steps as samples. */
static bool is_free_sequence(bool time_major, bool has_state, struct ifd_err *err)
{
    static const float zeros[2 * 5];
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(2, 2, 3));
    uint32_t in[IFD_LSTM_INPUTS];
    for (uint32_t i = 0; i < IFD_LSTM_INPUTS; i++) {
        in[i] = IFD_NONE;
    }
    in[0] = x;
    in[IFD_LSTM_WEIGHTS(IFD_LSTM_CELL_GATE)] =
        test_graph_constant(&f.graph, "w", SHAPE(3, 3), zeros);
    if (has_state) {
        in[IFD_LSTM_STATE] = test_graph_constant(&f.graph, "state", SHAPE(2, 5), zeros);
    }
    const uint32_t y = test_graph_f32(&f.graph, "y", SHAPE(2, 2, 5));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(&f.graph, IFD_OP_LSTM, in, IFD_LSTM_INPUTS, &y, 1, &node, err),
               err);
    ((struct ifd_lstm_attrs *)node->attrs)->time_major = time_major;
    test_graph_io(&f.graph, x, y);
    const bool result = is_free(&f, err);
    ifd_arena_finish(&f.arena);
    return result;
}

static void a_sequence_is_free_if_samples_lead_and_have_no_state(void)
{
    struct ifd_err err = {0};
    EXPECT(is_free_sequence(false, false, &err));
    EXPECT(!is_free_sequence(true, false, &err));
    EXPECT_HAS(err.text, "lstm");
    EXPECT(!is_free_sequence(false, true, &err));
}

static void an_output_without_samples_is_not_free(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 2));
    const uint32_t c = test_graph_constant(&f.graph, "c", SHAPE(1, 2), (const float[]){1, 2});
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_ABS, c, "y"));
    EXPECT(!is_free(&f, &err));
    EXPECT_HAS(err.text, "\"y\"");
    ifd_arena_finish(&f.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(samples_pass_through_reshape_sum_and_softmax),
        T(samples_that_are_quantized_together_stay_together),
        T(a_clone_at_another_batch_leaves_the_original_alone),
        T(a_reshape_that_moves_the_batch_is_named),
        T(concat_along_the_batch_is_not_free_but_along_channels_is),
        T(a_gather_whose_indices_are_those_of_samples_is_not_free),
        T(a_constant_of_the_batch_size_is_not_free),
        T(softmax_over_the_batch_is_not_free),
        T(a_transpose_is_free_if_the_batch_stays_first),
        T(a_slice_is_free_if_it_takes_every_sample),
        T(the_constant_size_of_a_transposed_convolution_follows),
        T(a_size_that_is_computed_is_not_free),
        T(a_sequence_is_free_if_samples_lead_and_have_no_state),
        T(an_output_without_samples_is_not_free),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
