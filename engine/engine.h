/** The engine object: what every model of an engine shares. Thread: any, after
 *  ifd_engine_create. */
#ifndef INFERD_ENGINE_ENGINE_H
#define INFERD_ENGINE_ENGINE_H

#include "engine/backend/registry.h"
#include "engine/base/team.h"
#include "engine/cache/cache.h"

struct ifd_engine {
    const struct ifd_alloc *alloc;
    struct ifd_plugins plugins;
    struct ifd_backend_options backend_options;
    struct ifd_registry registry;
    struct ifd_cores cores;
    bool wants_cache;
    struct ifd_cache *cache; /* NULL: not wanted, or cache_why_not */
    struct ifd_err cache_why_not;
};

#endif
