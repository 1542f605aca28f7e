/** The engine object: what every model of an engine shares. Thread: any, after
 *  ifd_engine_create. */
#ifndef INFERD_ENGINE_ENGINE_H
#define INFERD_ENGINE_ENGINE_H

#include "engine/backend/registry.h"
#include "engine/base/team.h"
#include "engine/base/thread.h"
#include "engine/cache/cache.h"

struct ifd_engine {
    const struct ifd_alloc *alloc;
    struct ifd_plugins plugins;
    struct ifd_backend_options backend_options;
    struct ifd_registry registry;
    struct ifd_cores cores;
    struct ifd_mutex mutex; /* guards team */
    struct ifd_team *team;  /* of all instances; NULL until one has more than one thread */
    bool wants_cache;
    struct ifd_cache *cache; /* NULL: not wanted, or cache_why_not */
    struct ifd_err cache_why_not;
};

/** The team of all instances, with a thread for each core that runs may take. Errors: NOMEM,
 *  UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_engine_team(struct ifd_engine *engine, struct ifd_team **ret_team,
                                            struct ifd_err *err);

#endif
