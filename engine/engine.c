/* The engine object of inferd/engine.h. Models are in model/. */
#include "engine/engine.h"

#include "engine/backend/host.h"

#include "engine/base/str.h"

#include <string.h>

#define CACHE_BYTES ((uint64_t)1 << 30)

static enum ifd_code open_backends(struct ifd_engine *engine,
                                   const struct ifd_engine_options *options, struct ifd_err *err)
{
    const struct ifd_plugin_search search = {.folders = options->plugin_folders,
                                             .folder_count = options->plugin_folder_count,
                                             .beside_program = options->finds_plugins,
                                             .builtin = options->backends,
                                             .builtin_count = options->backend_count};
    const struct ifd_registry_setup setup = {.alloc = engine->alloc,
                                             .backends = options->backends,
                                             .backend_count = options->backend_count,
                                             .plugins = &engine->plugins,
                                             .options = &engine->backend_options};
    enum ifd_code code = ifd_plugins_load(&search, engine->alloc, &engine->plugins, err);
    if (code == IFD_OK) {
        code = ifd_backend_options_init(&engine->backend_options, options->backend_options,
                                        options->backend_option_count, engine->alloc, err);
    }
    return code == IFD_OK ? ifd_registry_init(&engine->registry, &setup, err) : code;
}

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
    ifd_mutex_init(&engine->mutex);
    ifd_host_init(&engine->registry.host, options);
    ifd_cores_init(&engine->cores,
                   options->cores > 0 ? options->cores : engine->registry.host.cpu.cores);
    engine->registry.changed = options->backend_changed;
    engine->registry.opened = options->backend_opened;
    engine->registry.listener = options->backend_context;
    const enum ifd_code code = open_backends(engine, options, err);
    if (code != IFD_OK) {
        ifd_engine_destroy(engine);
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
        ifd_team_destroy(engine->team);
        ifd_mutex_finish(&engine->mutex);
        ifd_cache_close(engine->cache);
        ifd_registry_finish(&engine->registry);
        ifd_backend_options_finish(&engine->backend_options);
        ifd_plugins_unload(&engine->plugins);
        ifd_release(engine->alloc, engine, sizeof(*engine));
    }
}

enum ifd_code ifd_engine_team(struct ifd_engine *engine, struct ifd_team **ret_team,
                              struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    ifd_mutex_lock(&engine->mutex);
    if (!engine->team) {
        code = ifd_team_create(engine->cores.count, engine->alloc, &engine->team, err);
    }
    *ret_team = engine->team;
    ifd_mutex_unlock(&engine->mutex);
    return code;
}

/* ---- looking at backends ---- */

/* File number index of those that were not taken; NULL behind the last. */
static const struct ifd_plugin *rejected(const struct ifd_engine *engine, uint32_t index)
{
    for (uint32_t i = 0; i < engine->plugins.count; i++) {
        if (!engine->plugins.plugin[i].backend && index-- == 0) {
            return &engine->plugins.plugin[i];
        }
    }
    return NULL;
}

uint32_t ifd_engine_backend_count(const struct ifd_engine *engine)
{
    uint32_t count = engine->registry.count;
    for (uint32_t i = 0; i < engine->plugins.count; i++) {
        count += engine->plugins.plugin[i].backend ? 0 : 1;
    }
    return count;
}

void ifd_engine_backend_info(const struct ifd_engine *engine, uint32_t index,
                             struct ifd_backend_info *ret)
{
    const uint32_t taken = engine->registry.count;
    if (index >= taken) {
        const struct ifd_plugin *plugin = rejected(engine, index - taken);
        *ret = (struct ifd_backend_info){
            .name = plugin->file, .file = plugin->path, .reason = plugin->reason.text};
        return;
    }
    struct ifd_backend_slot *slot = &engine->registry.slot[index];
    const unsigned state = atomic_load_explicit(&slot->state, memory_order_acquire);
    *ret = (struct ifd_backend_info){.name = slot->name,
                                     .file = slot->plugin ? slot->plugin->path : "",
                                     .is_taken = true,
                                     .is_untried = state == IFD_DEVICE_UNTRIED,
                                     .available = state == IFD_DEVICE_OPEN,
                                     .reason = state == IFD_DEVICE_ABSENT ? slot->reason.text : "",
                                     .degraded = atomic_load(&slot->health.is_degraded)};
    ifd_health_read(&slot->health, &ret->failures, &ret->lost);
}

enum ifd_code ifd_engine_open_backend(struct ifd_engine *engine, const char *name,
                                      struct ifd_err *err)
{
    struct ifd_err reason = {0};
    const enum ifd_code code = ifd_engine_check_backend(engine, name, err);
    if (code != IFD_OK ||
        ifd_registry_open(&engine->registry, ifd_registry_find(&engine->registry, name), &reason)) {
        return code;
    }
    return ifd_fail(err, IFD_UNAVAILABLE, "%s is not available: %s", name, reason.text);
}

enum ifd_code ifd_engine_check_health(const struct ifd_engine *engine, struct ifd_err *err)
{
    for (uint32_t i = 0; i < engine->registry.count; i++) {
        struct ifd_backend_slot *slot = &engine->registry.slot[i];
        if (atomic_load(&slot->health.is_degraded)) {
            struct ifd_err lost;
            uint64_t failures = 0;
            ifd_health_read(&slot->health, &failures, &lost);
            return ifd_fail(err, IFD_UNAVAILABLE, "%s", lost.text);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_engine_check_backend(const struct ifd_engine *engine, const char *name,
                                       struct ifd_err *err)
{
    if (ifd_registry_find(&engine->registry, name) < engine->registry.count) {
        return IFD_OK;
    }
    char there[2 * IFD_ERR_TEXT_BYTES] = "";
    for (uint32_t i = 0; i < ifd_engine_backend_count(engine); i++) {
        struct ifd_backend_info info;
        ifd_engine_backend_info(engine, i, &info);
        const size_t used = strlen(there);
        (void)ifd_str_format(there + used, sizeof(there) - used, "%s%s%s%s",
                             i == 0          ? ""
                             : info.is_taken ? ", "
                                             : "; not taken: ",
                             info.name, info.is_taken ? "" : ": ",
                             info.is_taken ? "" : info.reason);
    }
    return ifd_fail(err, IFD_INVALID, "unknown backend \"%.60s\"; there are %s", name, there);
}

const struct ifd_cpu *ifd_engine_cpu(const struct ifd_engine *engine)
{
    return &engine->registry.host.cpu;
}
