/* Quotients and remainders of integers by constants: signs, the least number by -1, which LiteRT
 * does not survive, and divisors that a kernel must not meet. */
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/lower.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

#define COUNT 8

static const int32_t dividend[COUNT] = {INT32_MIN, INT32_MIN, INT32_MIN, 7, 7, -7, -7, INT32_MAX};
static const int32_t divisor[COUNT] = {-1, 1, INT32_MAX, 2, -2, 2, -2, INT32_MIN};

static void expect(enum ifd_op op, const int32_t *want)
{
    const struct test_run_options options = {.backend = &ifd_backend_gpuacc,
                                             .model = {.no_optimize = true}};
    struct test_run t = test_run_open_device(&options);
    struct ifd_graph *g = &t.model->graph;
    const struct ifd_desc desc = {.dtype = IFD_S32, .shape = SHAPE(COUNT)};
    const struct ifd_bytes content = {.data = (const uint8_t *)divisor, .size = sizeof(divisor)};
    uint32_t in[2] = {0}, out = 0;
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_value(g, "a", &desc, &in[0], NULL), NULL);
    REQUIRE_OK(ifd_graph_add_value(g, "b", &desc, &in[1], NULL), NULL);
    REQUIRE_OK(ifd_graph_add_value(g, "y", &desc, &out, NULL), NULL);
    REQUIRE_OK(ifd_graph_set_constant(g, in[1], content, 0, NULL), NULL);
    REQUIRE_OK(ifd_graph_add_node(g, op, in, 2, &out, 1, &node, NULL), NULL);
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, NULL), NULL);
    REQUIRE_OK(ifd_graph_set_io(g, in, 1, &out, 1, NULL), NULL);
    test_run_input(&t, 0);
    REQUIRE(t.in.bytes == sizeof(dividend));
    memcpy(t.in.data, dividend, sizeof(dividend));
    test_run_plan(&t, 0);
    test_run_once(&t);
    for (size_t i = 0; i < COUNT; i++) {
        EXPECT_INT(((const int32_t *)t.out[0].data)[i], want[i]);
    }
    test_run_close(&t);
}

static void quotients_are_truncated_or_floored(void)
{
    expect(IFD_OP_DIV, (const int32_t[]){INT32_MIN, INT32_MIN, -1, 3, -3, -3, 3, 0});
    expect(IFD_OP_FLOOR_DIV, (const int32_t[]){INT32_MIN, INT32_MIN, -2, 3, -4, -4, 3, -1});
    expect(IFD_OP_FLOOR_MOD, (const int32_t[]){0, 0, INT32_MAX - 1, 1, -1, 1, -1, -1});
}

static bool is_taken(enum ifd_op op, const int32_t *divisors)
{
    const struct ifd_binary_attrs attrs = {.activation = IFD_ACT_NONE};
    const struct ifd_desc desc = {.dtype = IFD_S32, .shape = SHAPE(2)};
    const struct ifd_operand input[] = {{&desc, {NULL, 0}},
                                        {&desc, {(const uint8_t *)divisors, divisors ? 8 : 0}}};
    const struct ifd_node_view node = {.name = "v",
                                       .op = op,
                                       .attrs = &attrs,
                                       .input = input,
                                       .input_count = 2,
                                       .output = &desc,
                                       .output_count = 1};
    return ifd_gpu_driver_of(&node, NULL) != NULL;
}

static void divisors_that_may_be_zero_are_left_to_others(void)
{
    static const enum ifd_op ops[] = {IFD_OP_DIV, IFD_OP_FLOOR_DIV, IFD_OP_FLOOR_MOD};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        EXPECT(is_taken(ops[i], (const int32_t[]){256, -1}));
        EXPECT(!is_taken(ops[i], (const int32_t[]){1, 0}));
        EXPECT(!is_taken(ops[i], NULL)); /* not constant */
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(quotients_are_truncated_or_floored),
        T(divisors_that_may_be_zero_are_left_to_others),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
