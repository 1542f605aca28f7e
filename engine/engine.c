/* The engine object of inferd/engine.h. Models are in model/. */
#include "engine/engine.h"

#include "engine/backend/host.h"

#define CACHE_BYTES ((uint64_t)1 << 30)

enum ifd_code ifd_engine_create(const struct ifd_engine_options *options,
                                struct ifd_engine **ret_engine, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = options->alloc ? options->alloc : ifd_alloc_system();
    if (options->backend_count == 0 || !options->backends) {
        return ifd_fail(err, IFD_INVALID, "an engine needs at least one backend");
    }
    if (options->exact && options->fast) {
        return ifd_fail(err, IFD_INVALID, "--exact and --fast exclude each other");
    }
    struct ifd_engine *engine = ifd_acquire_zeroed(alloc, 1, sizeof(*engine));
    if (!engine) {
        return ifd_fail(err, IFD_NOMEM, "no memory for an engine");
    }
    engine->alloc = alloc;
    ifd_host_init(&engine->registry.host, options);
    ifd_cores_init(&engine->cores,
                   options->cores > 0 ? options->cores : engine->registry.host.cpu.cores);
    const enum ifd_code code =
        ifd_registry_init(&engine->registry, alloc, options->backends, options->backend_count, err);
    if (code != IFD_OK) {
        ifd_release(alloc, engine, sizeof(*engine));
        return code;
    }
    engine->wants_cache = options->cache_folder != NULL;
    const uint64_t cache_bytes = options->cache_bytes > 0 ? options->cache_bytes : CACHE_BYTES;
    if (engine->wants_cache &&
        ifd_cache_open(options->cache_folder, cache_bytes, alloc, &engine->cache,
                       &engine->cache_why_not) == IFD_NOMEM) {
        ifd_engine_destroy(engine);
        return ifd_fail(err, IFD_NOMEM, "no memory for a cache");
    }
    *ret_engine = engine;
    return IFD_OK;
}

void ifd_engine_destroy(struct ifd_engine *engine)
{
    if (engine) {
        ifd_cache_close(engine->cache);
        ifd_registry_finish(&engine->registry);
        ifd_release(engine->alloc, engine, sizeof(*engine));
    }
}

uint32_t ifd_engine_backend_count(const struct ifd_engine *engine)
{
    return engine->registry.count;
}

void ifd_engine_backend_info(const struct ifd_engine *engine, uint32_t index,
                             struct ifd_backend_info *ret)
{
    const struct ifd_backend_slot *slot = &engine->registry.slot[index];
    *ret = (struct ifd_backend_info){.name = slot->backend->name,
                                     .available = slot->available,
                                     .reason = slot->available ? "" : slot->reason.text};
}

const struct ifd_cpu *ifd_engine_cpu(const struct ifd_engine *engine)
{
    return &engine->registry.host.cpu;
}
