/** The backends of one engine: checked, opened, in order of preference.
 *
 *  A backend that cannot be opened keeps its slot, with the reason, so that a server can say why a
 *  device is missing. Slots do not change after init. Thread: any, after init. */
#ifndef INFERD_ENGINE_BACKEND_REGISTRY_H
#define INFERD_ENGINE_BACKEND_REGISTRY_H

#include "engine/backend/health.h"
#include "engine/backend/loader.h"
#include "engine/backend/options.h"
#include "engine/base/thread.h"
#include "inferd/backend.h"

/** One backend. Immutable after init but for the lock. */
struct ifd_backend_slot {
    const struct ifd_backend *backend; /* its name may be read even if it is not available */
    const struct ifd_plugin *plugin;   /* NULL: built in */
    struct ifd_host host;              /* registry->host, with the options of this backend */
    struct ifd_device *device;
    bool available;
    struct ifd_err reason;    /* why not */
    struct ifd_mutex lock;    /* cost and compile: one at a time per device */
    struct ifd_health health; /* of a device with memory of its own */
};

struct ifd_registry {
    const struct ifd_alloc *alloc;
    struct ifd_host host;          /* without options */
    struct ifd_backend_slot *slot; /* stays where it is: backends keep a pointer to their host */
    uint32_t capacity;
    uint32_t count;
    /** A device was lost (reason), or works again (NULL); may be NULL. Thread: any. */
    void (*changed)(void *context, const char *backend, const struct ifd_err *reason);
    void *changed_context;
};

/** What a registry is made of. plugins and options live as long as the registry. */
struct ifd_registry_setup {
    const struct ifd_alloc *alloc;
    const struct ifd_backend *const *backends; /* built in */
    uint32_t backend_count;
    const struct ifd_plugins *plugins;         /* those that were taken follow; NULL: none */
    const struct ifd_backend_options *options; /* NULL: none */
};

/** Checks and opens every descriptor. The caller has filled registry->host (backend/host.h).
 *  A backend that refuses to open is not an error, but for an option.
 *  Errors: INVALID (a NULL descriptor, no name, the same name twice, an option that its backend
 *  does not know or that is for none), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_registry_init(struct ifd_registry *registry,
                                              const struct ifd_registry_setup *setup,
                                              struct ifd_err *err);

/** Closes the devices, last one first. No compiled partition may be left. A zeroed registry is
 *  fine. */
void ifd_registry_finish(struct ifd_registry *registry);

/** Position of the backend of that name, or registry->count. Case counts. */
uint32_t ifd_registry_find(const struct ifd_registry *registry, const char *name);

/** cost, transfer_ns and compile of the backend under the slot's lock. The slot must be available;
 *  for transfer_ns the backend has memory. */
uint32_t ifd_backend_slot_cost(struct ifd_backend_slot *slot, const struct ifd_node_view *node,
                               struct ifd_err *reason);
uint64_t ifd_backend_slot_transfer_ns(struct ifd_backend_slot *slot, size_t bytes);
IFD_NODISCARD enum ifd_code ifd_backend_slot_compile(struct ifd_backend_slot *slot,
                                                     const struct ifd_partition_view *view,
                                                     struct ifd_partition *share_with,
                                                     struct ifd_partition **ret_partition,
                                                     struct ifd_partition_info *ret_info,
                                                     struct ifd_err *err);

#endif
