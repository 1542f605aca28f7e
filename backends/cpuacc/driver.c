/* The table of drivers, and the reference kernels for operators without one. */
#include "backends/cpuacc/driver.h"

#include "backends/lowering/requantize.h"

/* Elements that are texts are places and sizes: the reference moves them. */
static bool has_text(const struct ifd_node_view *node)
{
    bool has = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        has = has || (node->input[i].desc && node->input[i].desc->dtype == IFD_STR);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        has = has || node->output[i].dtype == IFD_STR;
    }
    return has;
}

static bool is_empty(const struct ifd_node_view *node)
{
    bool is = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        for (uint32_t d = 0; d < node->output[i].shape.rank; d++) {
            is = is || node->output[i].shape.dim[d] == 0;
        }
    }
    return is;
}

/* Of an empty tensor other dimensions may be huge: reference kernels know that. */
const struct ifd_acc_driver *ifd_acc_driver(const struct ifd_node_view *node,
                                            struct ifd_err *reason)
{
    static const struct ifd_acc_driver *const drivers[IFD_OP_COUNT] = {
#define DRIVER(op, symbol) [IFD_OP_##op] = &ifd_acc_##symbol,
#include "backends/cpuacc/ops/op_list.inc"
#undef DRIVER
    };
    const bool has_own = (unsigned)node->op < IFD_OP_COUNT && !is_empty(node);
    const struct ifd_acc_driver *own = has_own ? drivers[node->op] : NULL;
    if (has_text(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "texts are left to the reference");
        return NULL;
    }
    if (ifd_low_has_odd_scale(node)) {
        return ifd_acc_reference.takes(node, reason) ? &ifd_acc_reference : NULL;
    }
    if (own && own->takes(node, reason)) {
        return own;
    }
    if (ifd_acc_conv_s16.takes(node, NULL)) {
        return &ifd_acc_conv_s16;
    }
    if (node->op == IFD_OP_REDUCE_SUM && ifd_acc_fold.takes(node, NULL)) {
        return &ifd_acc_fold;
    }
    return ifd_acc_reference.takes(node, own ? NULL : reason) ? &ifd_acc_reference : NULL;
}

static bool moves(const void *context, uint32_t node)
{
    const struct ifd_acc_lowering *lowering = context;
    return lowering->driver[node] == &ifd_acc_moves;
}

static bool reads_apart(const void *context, uint32_t node, uint32_t input)
{
    const struct ifd_acc_lowering *lowering = context;
    const struct ifd_acc_driver *driver = lowering->driver[node];
    return driver->reads_apart && driver->reads_apart(&lowering->base.view->node[node].view, input);
}

struct ifd_low_accepts ifd_acc_accepts(const struct ifd_acc_lowering *lowering)
{
    return (struct ifd_low_accepts){
        .context = lowering, .moves = moves, .reads_apart = reads_apart};
}
