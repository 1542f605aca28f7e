/* Operators that share a constant of indices, which means something else to each of them;
 * conditions of fewer dimensions than what they choose from. */
#include "backends/gpuacc/gpuacc.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

static struct test_run begin(void)
{
    const struct test_run_options options = {.backend = &ifd_backend_gpuacc,
                                             .model = {.no_optimize = true}};
    return test_run_open_device(&options);
}

static uint32_t indices(struct ifd_graph *g, struct ifd_shape shape, const int32_t *data)
{
    const struct ifd_desc desc = {.dtype = IFD_S32, .shape = shape};
    struct ifd_bytes content = {.data = (const uint8_t *)data};
    uint32_t value = 0;
    REQUIRE(ifd_desc_bytes(&desc, &content.size));
    REQUIRE_OK(ifd_graph_add_value(g, "indices", &desc, &value, NULL), NULL);
    REQUIRE_OK(ifd_graph_set_constant(g, value, content, 0, NULL), NULL);
    return value;
}

static uint32_t gather(struct ifd_graph *g, uint32_t x, uint32_t at, int32_t axis)
{
    const uint32_t in[] = {x, at}, out = test_graph_f32(g, "gathered", SHAPE(0));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_GATHER, in, 2, &out, 1, &node, NULL), NULL);
    ((struct ifd_gather_attrs *)(uintptr_t)node->attrs)->axis = axis;
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, NULL), NULL);
    return out;
}

/* Outputs of a graph whose input x holds 0, 1, 2 … */
static void run(struct test_run *t, uint32_t x, const uint32_t *output, uint32_t count)
{
    struct ifd_graph *g = &t->model->graph;
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, output, count, NULL), NULL);
    test_run_input(t, 0);
    for (size_t i = 0; i < t->in.bytes / sizeof(float); i++) {
        ((float *)t->in.data)[i] = (float)i;
    }
    test_run_plan(t, 0);
    test_run_once(t);
}

static void expect(const struct ifd_tensor *got, const float *want, size_t count)
{
    REQUIRE(got->bytes == count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        EXPECT_CLOSE(((const float *)got->data)[i], want[i], 0);
    }
}

static void the_last_of_a_row_is_not_the_last_of_a_column(void)
{
    struct test_run t = begin();
    struct ifd_graph *g = &t.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(2, 3));
    const uint32_t last = indices(g, SHAPE(1), (const int32_t[]){-1});
    const uint32_t output[] = {gather(g, x, last, 1), gather(g, x, last, 0)};
    run(&t, x, output, 2);
    expect(&t.out[0], (const float[]){2, 5}, 2);
    expect(&t.out[1], (const float[]){3, 4, 5}, 3);
    test_run_close(&t);
}

static void a_pair_names_other_elements_of_another_shape(void)
{
    struct test_run t = begin();
    struct ifd_graph *g = &t.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(2, 3));
    const uint32_t turned = test_graph_reshape(g, x, SHAPE(3, 2), "turned");
    const uint32_t pair = indices(g, SHAPE(1, 2), (const int32_t[]){1, 1});
    const uint32_t output[] = {test_graph_op2(g, IFD_OP_GATHER_ND, x, pair, "a"),
                               test_graph_op2(g, IFD_OP_GATHER_ND, turned, pair, "b")};
    run(&t, x, output, 2);
    expect(&t.out[0], (const float[]){4}, 1);
    expect(&t.out[1], (const float[]){3}, 1);
    test_run_close(&t);
}

static void a_leading_condition_begins_where_its_operand_does(void)
{
    struct test_run t = begin();
    struct ifd_graph *g = &t.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(3, 1));
    const float other[2 * 3 * 2] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    const struct ifd_desc desc = {.dtype = IFD_BOOL, .shape = SHAPE(3)};
    uint32_t in[] = {0, x, test_graph_constant(g, "other", SHAPE(2, 3, 2), other)};
    REQUIRE_OK(ifd_graph_add_value(g, "condition", &desc, &in[0], NULL), NULL);
    const struct ifd_bytes condition = {.data = (const uint8_t[]){1, 0, 1}, .size = 3};
    REQUIRE_OK(ifd_graph_set_constant(g, in[0], condition, 0, NULL), NULL);
    const uint32_t out = test_graph_f32(g, "chosen", SHAPE(0));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_SELECT, in, 3, &out, 1, &node, NULL), NULL);
    ((struct ifd_select_attrs *)(uintptr_t)node->attrs)->leading = true;
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, NULL), NULL);
    run(&t, x, &out, 1);
    expect(&t.out[0], (const float[]){0, 0, 12, 13, 2, 2, 0, 0, 18, 19, 2, 2}, 12);
    test_run_close(&t);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(the_last_of_a_row_is_not_the_last_of_a_column),
        T(a_pair_names_other_elements_of_another_shape),
        T(a_leading_condition_begins_where_its_operand_does),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
