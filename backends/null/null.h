/** The example backend: refuses every node. Not in ifd_backends_builtin(). */
#ifndef INFERD_BACKENDS_NULL_NULL_H
#define INFERD_BACKENDS_NULL_NULL_H

#include "inferd/backend.h"

extern const struct ifd_backend ifd_backend_null;

#endif
