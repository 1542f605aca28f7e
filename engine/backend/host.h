/** The services that an engine gives its backends. Thread: one at a time while it is made, any
 *  afterwards. */
#ifndef INFERD_ENGINE_BACKEND_HOST_H
#define INFERD_ENGINE_BACKEND_HOST_H

#include "inferd/engine.h"

/** Fills host from the options of an engine: the allocator (default: the system's), the processor's
 *  features under the mask, exact and fast, the debug sink. */
void ifd_host_init(struct ifd_host *host, const struct ifd_engine_options *options);

#endif
