/* The drivers of element-wise operators: a tail that begins with the node (tail.h), or a step for
 * two operands that are broadcast otherwise. */
#include "backends/cpuacc/ops/binary.h"
#include "backends/cpuacc/ops/normalize.h"
#include "backends/cpuacc/ops/tail.h"
#include "backends/cpuacc/ops/unary.h"

static enum ifd_code lower(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                           struct ifd_err *err)
{
    bool is_done = false;
    enum ifd_code code = ifd_acc_normalize(lowering, node, &is_done, err);
    if (code != IFD_OK || is_done || ifd_acc_lower_tail(lowering, node, &code, err)) {
        return code;
    }
    return ifd_acc_driver_of(lowering, node) == &ifd_acc_binary
               ? ifd_acc_add_binary(lowering, node, err)
               : ifd_fail(err, IFD_NOMEM, "no memory for a table");
}

const struct ifd_acc_driver ifd_acc_unary = {.takes = ifd_acc_unary_takes, .lower = lower};

const struct ifd_acc_driver ifd_acc_binary = {.takes = ifd_acc_binary_takes, .lower = lower};
