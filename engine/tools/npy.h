/** Tensors in NumPy's file format (.npy, versions 1 to 3; C order, little-endian). Thread: any. */
#ifndef INFERD_ENGINE_TOOLS_NPY_H
#define INFERD_ENGINE_TOOLS_NPY_H

#include "inferd/alloc.h"
#include "inferd/status.h"

/** Parses a file in memory. ret->data points into file: read-only and not aligned. Errors:
 *  CORRUPT, UNSUPPORTED (type, order), TOO_LARGE (size overflows). */
IFD_NODISCARD enum ifd_code ifd_npy_parse(struct ifd_bytes file, struct ifd_tensor *ret,
                                          struct ifd_err *err);

/** Writes a tensor. Errors: UNSUPPORTED (type), NOMEM, IO. */
IFD_NODISCARD enum ifd_code ifd_npy_write(const char *path, const struct ifd_tensor *tensor,
                                          const struct ifd_alloc *alloc, struct ifd_err *err);

#endif
