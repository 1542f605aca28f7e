/* Counts elements without overflow. */
#include "api/core/shape.h"

#include "engine/base/arena.h"

bool ifd_shape_count(const struct ifd_shape *shape, size_t *ret)
{
    size_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 0 || (uint64_t)shape->dim[i] > SIZE_MAX ||
            !ifd_size_mul(count, (size_t)shape->dim[i], &count)) {
            return false;
        }
    }
    *ret = count;
    return true;
}
