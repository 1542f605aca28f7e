/** The services that an engine gives its backends. Thread: one at a time while it is made, any afterwards. */
#ifndef INFERD_ENGINE_BACKEND_HOST_H
#define INFERD_ENGINE_BACKEND_HOST_H

#include "inferd/engine.h"

/** Fills host from the options of an engine: the allocator (the system's if none is given), the processor's features
 *  under the mask, the wish for exact results, the debug sink. */
void ifd_host_init(struct ifd_host *host, const struct ifd_engine_options *options);

#endif
