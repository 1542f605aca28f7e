/** Shapes that requests name. Thread: any. */
#ifndef INFERD_API_CORE_SHAPE_H
#define INFERD_API_CORE_SHAPE_H

#include "inferd/types.h"

/** Elements of a shape without IFD_DIM_ANY; false if they cannot be counted. */
bool ifd_shape_count(const struct ifd_shape *shape, size_t *ret) IFD_NODISCARD;

#endif
