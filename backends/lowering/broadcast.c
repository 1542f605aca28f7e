/* Strides over the output's dimensions, merged as far as all operands allow. */
#include "backends/lowering/broadcast.h"

#include <string.h>

/* Strides of an operand over the output's dimensions. */
static void strides_over(const struct ifd_shape *shape, const struct ifd_shape *out,
                         size_t ret[IFD_MAX_RANK])
{
    const uint32_t skip = out->rank - shape->rank;
    size_t stride = 1;
    for (uint32_t d = out->rank; d-- > 0;) {
        const int64_t dim = d >= skip ? shape->dim[d - skip] : 1;
        ret[d] = dim == 1 ? 0 : stride;
        stride *= (size_t)dim;
    }
}

static bool joins(const struct ifd_low_broadcast *b, uint32_t outer,
                  const size_t inner[IFD_LOW_OPERANDS], size_t inner_dim)
{
    for (int i = 0; i < IFD_LOW_OPERANDS; i++) {
        if (b->stride[i][outer] != inner[i] * inner_dim) {
            return false;
        }
    }
    return true;
}

void ifd_low_broadcast_init(const struct ifd_shape *a, const struct ifd_shape *b,
                            const struct ifd_shape *y, struct ifd_low_broadcast *ret)
{
    size_t stride[IFD_LOW_OPERANDS][IFD_MAX_RANK] = {{0}};
    strides_over(a, y, stride[IFD_LOW_A]);
    strides_over(b, y, stride[IFD_LOW_B]);
    strides_over(y, y, stride[IFD_LOW_Y]);
    *ret = (struct ifd_low_broadcast){.rank = 0};
    for (uint32_t d = 0; d < y->rank; d++) {
        const size_t dim = (size_t)y->dim[d];
        const size_t inner[IFD_LOW_OPERANDS] = {stride[IFD_LOW_A][d], stride[IFD_LOW_B][d],
                                                stride[IFD_LOW_Y][d]};
        if (dim == 1) {
            continue;
        }
        uint32_t to = ret->rank;
        if (to > 0 && joins(ret, to - 1, inner, dim)) {
            to--;
            ret->dim[to] *= dim;
        } else {
            ret->dim[to] = dim;
            ret->rank++;
        }
        for (int i = 0; i < IFD_LOW_OPERANDS; i++) {
            ret->stride[i][to] = inner[i];
        }
    }
    while (ret->rank < 2) { /* a block has two dimensions; the new one is outside */
        memmove(&ret->dim[1], &ret->dim[0], ret->rank * sizeof(ret->dim[0]));
        for (int i = 0; i < IFD_LOW_OPERANDS; i++) {
            memmove(&ret->stride[i][1], &ret->stride[i][0], ret->rank * sizeof(ret->stride[i][0]));
            ret->stride[i][0] = 0;
        }
        ret->dim[0] = 1;
        ret->rank++;
    }
}

size_t ifd_low_broadcast_blocks(const struct ifd_low_broadcast *broadcast)
{
    size_t blocks = 1;
    for (uint32_t d = 0; d + 2 < broadcast->rank; d++) {
        blocks *= broadcast->dim[d];
    }
    return blocks;
}

void ifd_low_broadcast_block(const struct ifd_low_broadcast *broadcast, size_t block,
                             size_t ret_offset[IFD_LOW_OPERANDS])
{
    for (int i = 0; i < IFD_LOW_OPERANDS; i++) {
        ret_offset[i] = 0;
    }
    for (uint32_t d = broadcast->rank - 2; d-- > 0;) {
        for (int i = 0; i < IFD_LOW_OPERANDS; i++) {
            ret_offset[i] += block % broadcast->dim[d] * broadcast->stride[i][d];
        }
        block /= broadcast->dim[d];
    }
}
