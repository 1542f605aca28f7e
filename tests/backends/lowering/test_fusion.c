/* Which element-wise operators can follow a value in its step, and in which order nodes come. */
#include "backends/lowering/fusion.h"
#include "backends/lowering/order.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

enum { VALUES = 8, NODES = 6, CHANNELS = 4 };

struct net {
    struct ifd_partition_value value[VALUES];
    struct ifd_partition_node node[NODES];
    uint32_t input[NODES][2], output[NODES];
    struct ifd_binary_attrs attrs;
    struct ifd_operand operand[NODES][2];
    struct ifd_partition_view view;
    struct ifd_arena arena;
    struct ifd_lowering lowering;
};

static void open_net(struct net *net)
{
    *net = (struct net){.attrs = {.activation = IFD_ACT_NONE}};
    for (uint32_t i = 0; i < VALUES; i++) {
        net->value[i].role = i == 0 ? IFD_VALUE_INPUT : IFD_VALUE_INTERNAL;
        net->value[i].desc = (struct ifd_desc){.dtype = IFD_F32, .shape = {3, {2, 3, CHANNELS}}};
    }
    net->view.value = net->value;
    net->view.value_count = VALUES;
    net->view.node = net->node;
}

/* b: IFD_NO_VALUE for one operand. */
static void add_node(struct net *net, enum ifd_op op, uint32_t a, uint32_t b, uint32_t out)
{
    const uint32_t n = net->view.node_count++;
    net->input[n][0] = a;
    net->input[n][1] = b;
    net->output[n] = out;
    net->operand[n][0].desc = &net->value[a].desc;
    net->operand[n][1].desc = b == IFD_NO_VALUE ? NULL : &net->value[b].desc;
    net->node[n] = (struct ifd_partition_node){.view = {.op = op,
                                                        .attrs = &net->attrs,
                                                        .input = net->operand[n],
                                                        .input_count = b == IFD_NO_VALUE ? 1 : 2,
                                                        .output = &net->value[out].desc,
                                                        .output_count = 1},
                                               .input_value = net->input[n],
                                               .output_value = &net->output[n]};
}

static void prepare(struct net *net)
{
    struct ifd_err err = {0};
    ifd_arena_init(&net->arena, ifd_alloc_system(), (size_t)1 << 20);
    net->lowering = (struct ifd_lowering){.view = &net->view, .arena = &net->arena};
    REQUIRE_OK(ifd_low_make_values(&net->lowering, &err), &err);
    ifd_low_count_readers(&net->lowering);
}

static void operands_meet_by_their_shape(void)
{
    struct net net;
    struct ifd_low_follower found;
    open_net(&net);
    net.value[2].role = net.value[4].role = IFD_VALUE_CONSTANT;
    net.value[2].desc.shape = (struct ifd_shape){1, {CHANNELS}};
    net.value[4].desc.shape = (struct ifd_shape){1, {1}};
    add_node(&net, IFD_OP_RELU, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_SUB, 2, 1, 3); /* a row first */
    add_node(&net, IFD_OP_MUL, 3, 4, 5); /* a number */
    add_node(&net, IFD_OP_ADD, 5, 0, 6); /* a tensor */
    add_node(&net, IFD_OP_ADD, 6, 7, 6); /* one that is not ready */
    prepare(&net);
    EXPECT(ifd_low_find_follower(&net.lowering, 1, CHANNELS, &found));
    EXPECT(found.kind == IFD_LOW_OPERAND_ROW && found.comes_first && found.other == 2);
    EXPECT(!ifd_low_find_follower(&net.lowering, 1, 2 * CHANNELS, &found)); /* other rows */
    EXPECT(ifd_low_find_follower(&net.lowering, 3, CHANNELS, &found));
    EXPECT(found.kind == IFD_LOW_OPERAND_NUMBER && !found.comes_first && found.out == 5);
    EXPECT(ifd_low_find_follower(&net.lowering, 5, CHANNELS, &found));
    EXPECT(found.kind == IFD_LOW_OPERAND_SAME && found.other == 0 && found.fused[0] == 3);
    EXPECT(!ifd_low_find_follower(&net.lowering, 6, CHANNELS, &found));
    ifd_arena_finish(&net.arena);
}

static void a_value_times_its_logistic_is_one_operator(void)
{
    struct net net;
    struct ifd_low_follower found;
    open_net(&net);
    add_node(&net, IFD_OP_RELU, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_LOGISTIC, 1, IFD_NO_VALUE, 2);
    add_node(&net, IFD_OP_MUL, 2, 1, 3);
    add_node(&net, IFD_OP_LOGISTIC, 3, IFD_NO_VALUE, 4);
    add_node(&net, IFD_OP_MUL, 4, 4, 5); /* of the logistic with itself */
    prepare(&net);
    EXPECT(ifd_low_find_follower(&net.lowering, 1, CHANNELS, &found));
    EXPECT(!found.node && found.out == 3 && found.fused_count == 2);
    EXPECT(found.fused[0] == 1 && found.fused[1] == 2);
    EXPECT(ifd_low_find_follower(&net.lowering, 3, CHANNELS, &found));
    EXPECT(found.node == &net.node[3] && found.out == 4);
    ifd_arena_finish(&net.arena);
}

static void residuals_are_ready_tensors_of_the_same_shape(void)
{
    struct net net;
    uint32_t add = 0, other = 0;
    open_net(&net);
    add_node(&net, IFD_OP_CONV2D, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_ADD, 0, 1, 2);
    add_node(&net, IFD_OP_CONV2D, 2, IFD_NO_VALUE, 3);
    add_node(&net, IFD_OP_ADD, 3, 4, 5); /* 4 is not made yet */
    prepare(&net);
    EXPECT(ifd_low_find_residual(&net.lowering, 1, &add, &other));
    EXPECT(add == 1 && other == 0);
    EXPECT(!ifd_low_find_residual(&net.lowering, 3, &add, &other));
    net.lowering.value[4].is_made = true;
    EXPECT(ifd_low_find_residual(&net.lowering, 3, &add, &other));
    EXPECT(!ifd_low_find_residual(&net.lowering, 0, &add, &other));
    ifd_arena_finish(&net.arena);
}

/* A block with a pooled shortcut: 0 expands, 1 pools, 2 filters, 3 adds. */
static void shortcuts_come_before_neighbouring_convolutions(void)
{
    struct net net;
    open_net(&net);
    add_node(&net, IFD_OP_CONV2D, 0, IFD_NO_VALUE, 1);
    add_node(&net, IFD_OP_MAX_POOL2D, 0, IFD_NO_VALUE, 2);
    add_node(&net, IFD_OP_DEPTHWISE_CONV2D, 1, IFD_NO_VALUE, 3);
    add_node(&net, IFD_OP_ADD, 3, 2, 4);
    prepare(&net);
    const uint32_t *order = ifd_low_order_nodes(&net.lowering);
    REQUIRE(order);
    EXPECT(order[0] == 1 && order[1] == 0 && order[2] == 2 && order[3] == 3);
    ifd_arena_finish(&net.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(operands_meet_by_their_shape),
        T(a_value_times_its_logistic_is_one_operator),
        T(residuals_are_ready_tensors_of_the_same_shape),
        T(shortcuts_come_before_neighbouring_convolutions),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
