/* Operator id → definition: the table and nothing else. */
#include "inferd/op.h"

#define OP(ID, symbol) extern const struct ifd_op_def ifd_op_##symbol;
#include "inferd/op_list.inc"
#undef OP

static const struct ifd_op_def *const op_defs[IFD_OP_COUNT] = {
#define OP(ID, symbol) [IFD_OP_##ID] = &ifd_op_##symbol,
#include "inferd/op_list.inc"
#undef OP
};

const struct ifd_op_def *ifd_op_def(enum ifd_op op)
{
    return (unsigned)op < IFD_OP_COUNT ? op_defs[op] : NULL;
}
