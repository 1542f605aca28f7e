/* Names and sizes of data types and precisions; equality of shapes. */
#include "inferd/types.h"

#include <string.h>

size_t ifd_dtype_bytes(enum ifd_dtype dtype)
{
    static const uint8_t bytes[] = {
#define IFD_X(id, text, size, wire) [IFD_##id] = size,
        IFD_DTYPES(IFD_X)
#undef IFD_X
    };
    return (unsigned)dtype < IFD_DTYPE_COUNT ? bytes[dtype] : 0;
}

const char *ifd_dtype_name(enum ifd_dtype dtype)
{
    static const char *const names[] = {
#define IFD_X(id, text, size, wire) [IFD_##id] = text,
        IFD_DTYPES(IFD_X)
#undef IFD_X
    };
    return (unsigned)dtype < IFD_DTYPE_COUNT ? names[dtype] : "?";
}

const char *ifd_dtype_wire_name(enum ifd_dtype dtype)
{
    static const char *const names[] = {
#define IFD_X(id, text, size, wire) [IFD_##id] = wire,
        IFD_DTYPES(IFD_X)
#undef IFD_X
    };
    return (unsigned)dtype < IFD_DTYPE_COUNT ? names[dtype] : "?";
}

static const char *const precision_names[] = {"f32", "bf16", "fp16"};

#define PRECISION_COUNT (sizeof(precision_names) / sizeof(precision_names[0]))

const char *ifd_precision_name(enum ifd_precision precision)
{
    return (unsigned)precision < PRECISION_COUNT ? precision_names[precision] : "?";
}

bool ifd_precision_by_name(const char *name, enum ifd_precision *ret_precision)
{
    for (unsigned i = 0; i < PRECISION_COUNT; i++) {
        if (strcmp(precision_names[i], name) == 0) {
            *ret_precision = (enum ifd_precision)i;
            return true;
        }
    }
    return false;
}

bool ifd_shape_equal(const struct ifd_shape *a, const struct ifd_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0])) == 0;
}
