/** Broadcasting of two operands, brought to few dimensions. */
#ifndef INFERD_BACKENDS_LOWERING_BROADCAST_H
#define INFERD_BACKENDS_LOWERING_BROADCAST_H

#include "inferd/backend.h"

/** Operands: two inputs and the output. */
enum { IFD_LOW_A, IFD_LOW_B, IFD_LOW_Y, IFD_LOW_OPERANDS };

/** Merged dimensions, the innermost last; strides in elements, 0 where an operand repeats. The two
 *  innermost are a block of rows × n, in which each operand repeats a row, a value per row, or
 *  neither. */
struct ifd_low_broadcast {
    uint32_t rank; /* ≥ 2 */
    size_t dim[IFD_MAX_RANK];
    size_t stride[IFD_LOW_OPERANDS][IFD_MAX_RANK];
};

void ifd_low_broadcast_init(const struct ifd_shape *a, const struct ifd_shape *b,
                            const struct ifd_shape *y, struct ifd_low_broadcast *ret);
/** How many blocks there are. */
size_t ifd_low_broadcast_blocks(const struct ifd_low_broadcast *broadcast);
/** Where a block begins, in elements of each operand. */
void ifd_low_broadcast_block(const struct ifd_low_broadcast *broadcast, size_t block,
                             size_t ret_offset[IFD_LOW_OPERANDS]);

#endif
