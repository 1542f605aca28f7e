/** The classification extension: the best elements of a tensor as "value:index:label". Thread:
 *  any. */
#ifndef INFERD_API_CORE_CLASSIFY_H
#define INFERD_API_CORE_CLASSIFY_H

#include "api/core/service.h"

/** Takes every data type but BYTES and complex numbers. Turns tensor (batch rows of equal length if
 *  is_batched, one row otherwise) into BYTES of shape [top] or [batch, top], top cut to the row's
 *  length. Equal values are ordered by index, NaN comes last. Strings lie in arena. Errors: NOMEM;
 *  INTERNAL (not divisible). */
IFD_NODISCARD enum ifd_code ifd_classify(const struct ifd_tensor *tensor,
                                         const struct ifd_tensor_info *info, uint64_t top,
                                         bool is_batched, struct ifd_arena *arena,
                                         struct ifd_tensor *ret, struct ifd_err *err);

#endif
