/** The statically linked backends, in the order in which they are preferred when nobody says
 *  otherwise. */
#ifndef INFERD_BACKENDS_BUILTIN_H
#define INFERD_BACKENDS_BUILTIN_H

#include "inferd/backend.h"

/** *ret_count descriptors, as struct ifd_engine_options wants them. Static. Thread: any. */
const struct ifd_backend *const *ifd_backends_builtin(uint32_t *ret_count);

#endif
