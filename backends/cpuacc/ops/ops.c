/* The table of drivers, and what stands in where there is none. */
#include "backends/cpuacc/driver.h"

const struct ifd_acc_driver *ifd_acc_driver(const struct ifd_node_view *node,
                                            struct ifd_err *reason)
{
    static const struct ifd_acc_driver *const drivers[IFD_OP_COUNT] = {
#define DRIVER(op, symbol) [IFD_OP_##op] = &ifd_acc_##symbol,
#include "backends/cpuacc/ops/op_list.inc"
#undef DRIVER
    };
    const struct ifd_acc_driver *own = (unsigned)node->op < IFD_OP_COUNT ? drivers[node->op] : NULL;
    if (own && own->takes(node, reason)) {
        return own;
    }
    if (ifd_acc_conv_s16.takes(node, NULL)) {
        return &ifd_acc_conv_s16;
    }
    return ifd_acc_reference.takes(node, own ? NULL : reason) ? &ifd_acc_reference : NULL;
}
