/** Attributes that name dimensions, for inputs whose dimensions are permuted (permute of struct
 *  ifd_op_def). Thread: any. */
#ifndef INFERD_ENGINE_OPS_PERMUTE_H
#define INFERD_ENGINE_OPS_PERMUTE_H

#include "inferd/op.h"

/** A list of one number per dimension. False if it has another length. */
bool ifd_permute_ints(struct ifd_ints *ints, const struct ifd_perm *perm);

/** A set of dimensions, as bits. */
int32_t ifd_permute_mask(int32_t mask, const struct ifd_perm *perm);

/** A dimension; negative ones count from the end. */
int32_t ifd_permute_axis(int32_t axis, const struct ifd_perm *perm);

#endif
