/* Which values all their nodes can store in a narrower type, and who sees that. */
#include "backends/lowering/narrow.h"
#include "tests/support/test.h"

enum { VALUES = 6, NODES = 5 };

/* Nodes of up to two inputs and one output, whose values are those of their numbers. */
struct net {
    struct ifd_partition_value value[VALUES];
    struct ifd_partition_node node[NODES];
    uint32_t input[NODES][2], output[NODES];
    struct ifd_operand operand[NODES][2];
    struct ifd_partition_view view;
    struct ifd_arena arena;
    struct ifd_lowering lowering;
    bool is_narrow[VALUES];
    uint32_t count;
};

static void open_net(struct net *net)
{
    *net = (struct net){.view = {.value = net->value, .value_count = VALUES, .node = net->node}};
    for (uint32_t i = 0; i < VALUES; i++) {
        net->value[i].role = i == 0 ? IFD_VALUE_INPUT : IFD_VALUE_INTERNAL;
        net->value[i].desc = (struct ifd_desc){.dtype = IFD_F32, .shape = {1, {4}}};
        net->is_narrow[i] = true;
    }
}

static void add_node(struct net *net, enum ifd_op op, uint32_t a, uint32_t b, uint32_t out)
{
    const uint32_t n = net->view.node_count++;
    net->input[n][0] = a;
    net->input[n][1] = b;
    net->output[n] = out;
    net->operand[n][0].desc = &net->value[a].desc;
    net->operand[n][1].desc = b == IFD_NO_VALUE ? NULL : &net->value[b].desc;
    net->node[n] = (struct ifd_partition_node){.view = {.op = op,
                                                        .input = net->operand[n],
                                                        .input_count = 2,
                                                        .output = &net->value[out].desc,
                                                        .output_count = 1},
                                               .input_value = net->input[n],
                                               .output_value = &net->output[n]};
}

static bool converts(const void *context, uint32_t n)
{
    return ((const struct net *)context)->node[n].view.op == IFD_OP_RELU;
}

static bool moves(const void *context, uint32_t n)
{
    return ((const struct net *)context)->node[n].view.op == IFD_OP_CONCAT;
}

static void narrow_values(struct net *net)
{
    const struct ifd_low_narrow narrow = {
        .dtype = IFD_F16, .context = net, .converts = converts, .moves = moves};
    struct ifd_err err = {0};
    ifd_arena_init(&net->arena, ifd_alloc_system(), (size_t)1 << 20);
    net->lowering = (struct ifd_lowering){.view = &net->view, .arena = &net->arena};
    REQUIRE_OK(ifd_low_narrow_values(&net->lowering, &narrow, net->is_narrow, &net->count, &err),
               &err);
}

static void expect_narrow(const struct net *net, const bool wanted[VALUES])
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < VALUES; v++) {
        EXPECT_INT(net->is_narrow[v], wanted[v]);
        EXPECT_INT(net->lowering.view->value[v].desc.dtype, wanted[v] ? IFD_F16 : IFD_F32);
        EXPECT_INT(net->value[v].desc.dtype, IFD_F32); /* the engine's */
        count += wanted[v];
    }
    EXPECT_INT(net->count, count);
}

static void all_nodes_of_a_value_must_be_able_to(void)
{
    struct net net;
    open_net(&net);
    add_node(&net, IFD_OP_RELU, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_CONCAT, 1, 1, 2);
    add_node(&net, IFD_OP_RELU, 2, IFD_NO_VALUE, 3);
    add_node(&net, IFD_OP_SOFTMAX, 3, IFD_NO_VALUE, 4);
    add_node(&net, IFD_OP_RELU, 4, IFD_NO_VALUE, 5);
    narrow_values(&net);
    expect_narrow(&net, (const bool[VALUES]){false, true, true, false, false, true});
    const struct ifd_partition_node *node = net.lowering.view->node;
    EXPECT_INT(node[1].view.input[1].desc->dtype, IFD_F16); /* it moves elements */
    EXPECT_INT(node[1].view.output[0].dtype, IFD_F16);
    EXPECT_INT(node[2].view.input[0].desc->dtype, IFD_F32);
    ifd_arena_finish(&net.arena);
}

static void floats_that_are_moved_together_are_of_one_type(void)
{
    struct net net;
    open_net(&net);
    net.value[2].role = IFD_VALUE_CONSTANT;
    add_node(&net, IFD_OP_RELU, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_CONCAT, 1, 2, 3);
    add_node(&net, IFD_OP_CONCAT, 3, IFD_NO_VALUE, 4);
    add_node(&net, IFD_OP_RELU, 4, IFD_NO_VALUE, 5);
    narrow_values(&net);
    expect_narrow(&net, (const bool[VALUES]){false, false, false, false, false, true});
    ifd_arena_finish(&net.arena);
}

static void what_may_not_be_narrow_is_not(void)
{
    struct net net;
    open_net(&net);
    net.is_narrow[1] = net.is_narrow[2] = false;
    add_node(&net, IFD_OP_RELU, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_CONCAT, 1, IFD_NO_VALUE, 3);
    add_node(&net, IFD_OP_RELU, 3, IFD_NO_VALUE, 4);
    net.value[5].role = IFD_VALUE_OUTPUT;
    add_node(&net, IFD_OP_RELU, 4, IFD_NO_VALUE, 5);
    narrow_values(&net);
    expect_narrow(&net, (const bool[VALUES]){false, false, false, false, true, false});
    ifd_arena_finish(&net.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(all_nodes_of_a_value_must_be_able_to),
        T(floats_that_are_moved_together_are_of_one_type),
        T(what_may_not_be_narrow_is_not),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
