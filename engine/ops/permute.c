/* Attributes that name dimensions, permuted. */
#include "engine/ops/permute.h"

bool ifd_permute_ints(struct ifd_ints *ints, const struct ifd_perm *perm)
{
    const struct ifd_ints before = *ints;
    for (uint32_t i = 0; i < perm->rank && i < before.count; i++) {
        ints->value[perm->axis[i]] = before.value[i];
    }
    return before.count == perm->rank;
}

int32_t ifd_permute_mask(int32_t mask, const struct ifd_perm *perm)
{
    int32_t result = 0;
    for (uint32_t i = 0; i < perm->rank; i++) {
        result |= (mask >> i & 1) << perm->axis[i];
    }
    return result;
}

int32_t ifd_permute_axis(int32_t axis, const struct ifd_perm *perm)
{
    return perm->axis[axis < 0 ? axis + (int32_t)perm->rank : axis];
}
