/* The order in which nodes become steps: that of the partition, except that nodes between a
 * convolution and its only reader come before both, if they need neither. Otherwise a pooling in
 * the shortcut of a block would keep the two from being neighbours. */
#include "backends/lowering/order.h"

/* Nodes further behind than this do not belong to the same block. */
#define NEAR 8

struct order {
    const struct ifd_lowering *lowering;
    uint32_t *node;
    uint32_t count;
    bool *is_placed; /* per node */
    bool *is_made;   /* per value, by a node that is placed */
};

static bool is_window(const struct ifd_partition_node *node)
{
    return node->view.op == IFD_OP_CONV2D || node->view.op == IFD_OP_DEPTHWISE_CONV2D;
}

static bool can_be_next(const struct order *order, uint32_t n)
{
    const struct ifd_partition_node *node = &order->lowering->view->node[n];
    bool can = !order->is_placed[n];
    for (uint32_t i = 0; can && i < node->view.input_count; i++) {
        const uint32_t value = node->input_value[i];
        can = value == IFD_NO_VALUE || order->is_made[value] ||
              ifd_low_is_ready(order->lowering, value);
    }
    return can;
}

static void place(struct order *order, uint32_t n)
{
    const struct ifd_partition_node *node = &order->lowering->view->node[n];
    order->node[order->count++] = n;
    order->is_placed[n] = true;
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        order->is_made[node->output_value[i]] = true;
    }
}

const uint32_t *ifd_low_order_nodes(struct ifd_lowering *lowering)
{
    const struct ifd_partition_view *view = lowering->view;
    struct order order = {
        .lowering = lowering,
        .node = ifd_low_params(lowering, view->node_count, sizeof(*order.node)),
        .is_placed = ifd_low_params(lowering, view->node_count, sizeof(*order.is_placed)),
        .is_made = ifd_low_params(lowering, view->value_count, sizeof(*order.is_made))};
    if (!order.node || !order.is_placed || !order.is_made) {
        return NULL;
    }
    for (uint32_t n = 0; n < view->node_count; n++) {
        const struct ifd_partition_node *node = &view->node[n];
        uint32_t reader = n;
        if (order.is_placed[n]) {
            continue;
        }
        if (is_window(node) && (!ifd_low_sole_reader(lowering, node->output_value[0], &reader) ||
                                !is_window(&view->node[reader]) || reader > n + NEAR)) {
            reader = n;
        }
        for (uint32_t between = n + 1; between < reader; between++) {
            if (can_be_next(&order, between)) {
                place(&order, between);
            }
        }
        place(&order, n);
    }
    return order.node;
}
