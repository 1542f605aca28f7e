/* The backends of one engine: checks descriptors, opens devices, finds them by name. */
#include "engine/backend/registry.h"

#include <string.h>

static enum ifd_code check_memory(const struct ifd_backend *backend, struct ifd_err *err)
{
    const struct ifd_memory_ops *ops = backend->memory;
    if (ops->bytes < sizeof(*ops) || !ops->kind || !ops->transfer_ns || !ops->context_create ||
        !ops->context_destroy || !ops->bind || !ops->unbind || !ops->write || !ops->submit ||
        !ops->read || !ops->wait) {
        return ifd_fail(err, IFD_UNSUPPORTED, "backend %s: its memory lacks a function or its kind",
                        backend->name);
    }
    return IFD_OK;
}

/* A descriptor must have every function of this version of the ABI. */
static enum ifd_code check(const struct ifd_backend *backend, struct ifd_err *err)
{
    if (backend->abi != IFD_BACKEND_ABI) {
        return ifd_fail(err, IFD_UNSUPPORTED, "backend %s: ABI version %u, expected %u",
                        backend->name, backend->abi, IFD_BACKEND_ABI);
    }
    if (backend->bytes < sizeof(*backend)) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "backend %s: descriptor of %u bytes, expected at least %zu", backend->name,
                        backend->bytes, sizeof(*backend));
    }
    if (!backend->open || !backend->cost || !backend->compile || !backend->release ||
        !backend->close || (!backend->run && !backend->memory)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "backend %s: descriptor lacks a function",
                        backend->name);
    }
    return backend->memory ? check_memory(backend, err) : IFD_OK;
}

static enum ifd_code check_name(const struct ifd_registry *registry, const char *name,
                                struct ifd_err *err)
{
    if (!name || name[0] == '\0') {
        return ifd_fail(err, IFD_INVALID, "backend %u has no name", registry->count);
    }
    if (ifd_registry_find(registry, name) < registry->count) {
        return ifd_fail(err, IFD_INVALID, "backend %s is named twice", name);
    }
    return IFD_OK;
}

static struct ifd_host host_of(const struct ifd_registry *registry,
                               const struct ifd_backend_options *options, const char *name)
{
    struct ifd_host host = registry->host;
    if (options) {
        host.option = &options->option[ifd_backend_options_find(options, name, &host.option_count)];
    }
    return host;
}

/* The lock is held, or nobody else knows the slot. After a lack of memory the device can be tried
 * again. */
static enum ifd_code open_device(struct ifd_backend_slot *slot)
{
    slot->reason = (struct ifd_err){0};
    enum ifd_code code = check(slot->backend, &slot->reason);
    if (code == IFD_OK) {
        code = slot->backend->open(&slot->host, &slot->device, &slot->reason);
    }
    if (code != IFD_NOMEM) {
        atomic_store_explicit(&slot->state, code == IFD_OK ? IFD_DEVICE_OPEN : IFD_DEVICE_ABSENT,
                              memory_order_release);
    }
    return code;
}

/* A device that is missing is the slot's reason; a wrong option and a lack of memory are errors. */

static enum ifd_code add(struct ifd_registry *registry, const char *name,
                         const struct ifd_backend *backend, const struct ifd_plugin *plugin,
                         const struct ifd_backend_options *options, struct ifd_err *err)
{
    enum ifd_code code = check_name(registry, name, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_backend_slot *slot = &registry->slot[registry->count++];
    slot->name = name;
    slot->backend = backend;
    slot->plugin = plugin;
    slot->host = host_of(registry, options, name);
    ifd_mutex_init(&slot->lock);
    ifd_health_init(&slot->health);
    const bool waits = plugin && slot->host.option_count == 0;
    code = waits ? IFD_OK : open_device(slot);
    return code == IFD_NOMEM || code == IFD_INVALID
               ? ifd_fail(err, code, "backend %s: %s", name, slot->reason.text)
               : IFD_OK;
}

/* One more device of a plugin, if a name is "NAME@MORE". */
static enum ifd_code add_another(struct ifd_registry *registry, const char *name,
                                 const struct ifd_backend_options *options, struct ifd_err *err)
{
    const char *at = strchr(name, '@');
    if (!at || at[1] == '\0' || ifd_registry_find(registry, name) < registry->count) {
        return IFD_OK;
    }
    const size_t size = (size_t)(at - name);
    for (uint32_t i = 0; i < registry->count; i++) {
        const struct ifd_backend_slot *slot = &registry->slot[i];
        if (slot->plugin && strlen(slot->name) == size && strncmp(slot->name, name, size) == 0) {
            return add(registry, name, slot->backend, slot->plugin, options, err);
        }
    }
    return ifd_fail(err, IFD_INVALID, "backend option for %s: there is no plugin %.*s", name,
                    (int)size, name);
}

/* An option for a backend that is not there would have no effect. */
static enum ifd_code check_options(const struct ifd_registry *registry,
                                   const struct ifd_backend_options *options, struct ifd_err *err)
{
    for (uint32_t i = 0; i < options->count; i++) {
        if (ifd_registry_find(registry, options->backend[i]) == registry->count) {
            return ifd_fail(err, IFD_INVALID, "backend option %s:%s=%s: there is no backend %s",
                            options->backend[i], options->option[i].key, options->option[i].value,
                            options->backend[i]);
        }
    }
    return IFD_OK;
}

static enum ifd_code add_all(struct ifd_registry *registry, const struct ifd_registry_setup *setup,
                             struct ifd_err *err)
{
    const struct ifd_plugins *plugins = setup->plugins;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < setup->backend_count; i++) {
        const struct ifd_backend *backend = setup->backends[i];
        code = add(registry, backend ? backend->name : NULL, backend, NULL, setup->options, err);
    }
    for (uint32_t i = 0; code == IFD_OK && plugins && i < plugins->count; i++) {
        const struct ifd_plugin *plugin = &plugins->plugin[i];
        if (plugin->backend) {
            code =
                add(registry, plugin->backend->name, plugin->backend, plugin, setup->options, err);
        }
    }
    for (uint32_t i = 0; code == IFD_OK && setup->options && i < setup->options->count; i++) {
        code = add_another(registry, setup->options->backend[i], setup->options, err);
    }
    return code == IFD_OK && setup->options ? check_options(registry, setup->options, err) : code;
}

enum ifd_code ifd_registry_init(struct ifd_registry *registry,
                                const struct ifd_registry_setup *setup, struct ifd_err *err)
{
    const uint32_t most = setup->backend_count + (setup->plugins ? setup->plugins->count : 0) +
                          (setup->options ? setup->options->count : 0);
    registry->alloc = setup->alloc;
    registry->count = 0;
    registry->slot = ifd_acquire_zeroed(setup->alloc, most, sizeof(*registry->slot));
    if (!registry->slot) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u backends", most);
    }
    registry->capacity = most;
    const enum ifd_code code = add_all(registry, setup, err);
    if (code != IFD_OK) {
        ifd_registry_finish(registry);
    }
    return code;
}

void ifd_registry_finish(struct ifd_registry *registry)
{
    for (uint32_t i = registry->count; i-- > 0;) {
        struct ifd_backend_slot *slot = &registry->slot[i];
        if (atomic_load(&slot->state) == IFD_DEVICE_OPEN) {
            slot->backend->close(slot->device);
        }
        ifd_health_finish(&slot->health);
        ifd_mutex_finish(&slot->lock);
    }
    ifd_release(registry->alloc, registry->slot, registry->capacity * sizeof(*registry->slot));
    registry->slot = NULL;
    registry->count = 0;
}

uint32_t ifd_registry_find(const struct ifd_registry *registry, const char *name)
{
    for (uint32_t i = 0; i < registry->count; i++) {
        if (strcmp(registry->slot[i].name, name) == 0) {
            return i;
        }
    }
    return registry->count;
}

bool ifd_registry_open(struct ifd_registry *registry, uint32_t index, struct ifd_err *reason)
{
    struct ifd_backend_slot *slot = &registry->slot[index];
    if (atomic_load_explicit(&slot->state, memory_order_acquire) == IFD_DEVICE_OPEN) {
        return true;
    }
    ifd_mutex_lock(&slot->lock);
    const bool is_new = atomic_load(&slot->state) == IFD_DEVICE_UNTRIED;
    if (is_new) {
        (void)open_device(slot);
    }
    const bool is_open = atomic_load(&slot->state) == IFD_DEVICE_OPEN;
    const struct ifd_err why = slot->reason;
    ifd_mutex_unlock(&slot->lock);
    if (is_new && registry->opened) {
        registry->opened(registry->listener, slot->name, is_open ? NULL : &why);
    }
    if (!is_open && reason) {
        *reason = why;
    }
    return is_open;
}

uint32_t ifd_backend_slot_cost(struct ifd_backend_slot *slot, const struct ifd_node_view *node,
                               struct ifd_err *reason)
{
    ifd_mutex_lock(&slot->lock);
    const uint32_t cost = slot->backend->cost(slot->device, node, reason);
    ifd_mutex_unlock(&slot->lock);
    return cost;
}

uint64_t ifd_backend_slot_transfer_ns(struct ifd_backend_slot *slot, size_t bytes)
{
    ifd_mutex_lock(&slot->lock);
    const uint64_t ns = slot->backend->memory->transfer_ns(slot->device, bytes);
    ifd_mutex_unlock(&slot->lock);
    return ns;
}

enum ifd_code ifd_backend_slot_compile(struct ifd_backend_slot *slot,
                                       const struct ifd_partition_view *view,
                                       struct ifd_partition *share_with,
                                       struct ifd_partition **ret_partition,
                                       struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    ifd_mutex_lock(&slot->lock);
    const enum ifd_code code =
        slot->backend->compile(slot->device, view, share_with, ret_partition, ret_info, err);
    ifd_mutex_unlock(&slot->lock);
    return code;
}
