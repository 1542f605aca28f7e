/* The table of drivers; nothing else. */
#include "backends/cpuacc/lower.h"

#define DRIVER(op, symbol) extern const struct ifd_acc_driver ifd_acc_##symbol;
#include "backends/cpuacc/ops/op_list.inc"
#undef DRIVER

const struct ifd_acc_driver *ifd_acc_driver(enum ifd_op op)
{
    static const struct ifd_acc_driver *const drivers[IFD_OP_COUNT] = {
#define DRIVER(op, symbol) [IFD_OP_##op] = &ifd_acc_##symbol,
#include "backends/cpuacc/ops/op_list.inc"
#undef DRIVER
    };
    return (unsigned)op < IFD_OP_COUNT ? drivers[op] : NULL;
}
