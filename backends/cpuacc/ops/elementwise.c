/* The drivers of element-wise operators: a tail that begins with the node (tail.h), or a step for
 * two operands that are broadcast otherwise. */
#include "backends/cpuacc/ops/binary.h"
#include "backends/cpuacc/ops/tail.h"
#include "backends/cpuacc/ops/unary.h"

const struct ifd_acc_driver ifd_acc_unary = {.takes = ifd_acc_unary_takes,
                                             .lower = ifd_acc_lower_unary};

static enum ifd_code binary_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    return ifd_acc_lower_tail(lowering, node, &code, err) ? code
                                                          : ifd_acc_add_binary(lowering, node, err);
}

const struct ifd_acc_driver ifd_acc_binary = {.takes = ifd_acc_binary_takes, .lower = binary_lower};
