/* The backends of one engine: checks descriptors, opens devices, finds them by name. */
#include "engine/backend/registry.h"

#include <string.h>

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
    if (!backend->open || !backend->cost || !backend->compile || !backend->run ||
        !backend->release || !backend->close) {
        return ifd_fail(err, IFD_UNSUPPORTED, "backend %s: descriptor lacks a function",
                        backend->name);
    }
    return IFD_OK;
}

static enum ifd_code check_name(const struct ifd_registry *registry,
                                const struct ifd_backend *backend, struct ifd_err *err)
{
    if (!backend || !backend->name || backend->name[0] == '\0') {
        return ifd_fail(err, IFD_INVALID, "backend %u has no name", registry->count);
    }
    if (ifd_registry_find(registry, backend->name) < registry->count) {
        return ifd_fail(err, IFD_INVALID, "backend %s is named twice", backend->name);
    }
    return IFD_OK;
}

enum ifd_code ifd_registry_init(struct ifd_registry *registry, const struct ifd_alloc *alloc,
                                const struct ifd_backend *const *backends, uint32_t count,
                                struct ifd_err *err)
{
    registry->alloc = alloc;
    registry->count = 0;
    registry->slot = ifd_acquire_zeroed(alloc, count, sizeof(*registry->slot));
    if (!registry->slot) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u backends", count);
    }
    registry->capacity = count;
    for (uint32_t i = 0; i < count; i++) {
        enum ifd_code code = check_name(registry, backends[i], err);
        if (code != IFD_OK) {
            ifd_registry_finish(registry);
            return code;
        }
        struct ifd_backend_slot *slot = &registry->slot[i];
        slot->backend = backends[i];
        ifd_mutex_init(&slot->lock);
        registry->count++;
        code = check(slot->backend, &slot->reason);
        if (code == IFD_OK) {
            code = slot->backend->open(&registry->host, &slot->device, &slot->reason);
        }
        if (code == IFD_NOMEM) {
            if (err) {
                *err = slot->reason;
            }
            ifd_registry_finish(registry);
            return code;
        }
        slot->available = code == IFD_OK;
    }
    return IFD_OK;
}

void ifd_registry_finish(struct ifd_registry *registry)
{
    for (uint32_t i = registry->count; i-- > 0;) {
        struct ifd_backend_slot *slot = &registry->slot[i];
        if (slot->available) {
            slot->backend->close(slot->device);
        }
        ifd_mutex_finish(&slot->lock);
    }
    ifd_release(registry->alloc, registry->slot, registry->capacity * sizeof(*registry->slot));
    registry->slot = NULL;
    registry->count = 0;
}

uint32_t ifd_registry_find(const struct ifd_registry *registry, const char *name)
{
    for (uint32_t i = 0; i < registry->count; i++) {
        if (strcmp(registry->slot[i].backend->name, name) == 0) {
            return i;
        }
    }
    return registry->count;
}

uint32_t ifd_backend_slot_cost(struct ifd_backend_slot *slot, const struct ifd_node_view *node,
                               struct ifd_err *reason)
{
    ifd_mutex_lock(&slot->lock);
    const uint32_t cost = slot->backend->cost(slot->device, node, reason);
    ifd_mutex_unlock(&slot->lock);
    return cost;
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
