/* Names and sizes of data types. */
#include "inferd/types.h"

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
