/** The backends of one engine: checked, opened, in order of preference.
 *
 *  The device of a plugin that has no options is opened when somebody asks for it first: a driver
 *  takes time and memory. A backend that cannot be opened keeps its slot, with the reason, so that
 *  a server can say why a
 *  device is missing.
 *
 *  A plugin may have several devices: options for "NAME@MORE" make one more slot of the plugin
 *  NAME, with these options, behind all others. Thread: any, after init. */
#ifndef INFERD_ENGINE_BACKEND_REGISTRY_H
#define INFERD_ENGINE_BACKEND_REGISTRY_H

#include "engine/backend/health.h"
#include "engine/backend/loader.h"
#include "engine/backend/options.h"
#include "engine/base/thread.h"
#include "inferd/backend.h"

enum ifd_device_state {
    IFD_DEVICE_UNTRIED, /* nobody has asked for it */
    IFD_DEVICE_OPEN,    /* it stays open */
    IFD_DEVICE_ABSENT   /* for the slot's reason, which stays */
};

/** One backend. Immutable after init but for its state. */
struct ifd_backend_slot {
    const char *name; /* the backend's, or one like "GpuAcc@b" */
    const struct ifd_backend *backend;
    const struct ifd_plugin *plugin; /* NULL: built in */
    struct ifd_host host;            /* registry->host, with the options of this backend */
    atomic_uint state;               /* enum ifd_device_state; changes under the lock */
    struct ifd_device *device;
    struct ifd_err reason;    /* why it is absent */
    struct ifd_mutex lock;    /* open, cost and compile: one at a time per device */
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
    /** A device was opened after init, or cannot be (reason); may be NULL. Thread: any. */
    void (*opened)(void *context, const char *backend, const struct ifd_err *reason);
    void *listener; /* context of both */
};

/** What a registry is made of. plugins and options live as long as the registry. */
struct ifd_registry_setup {
    const struct ifd_alloc *alloc;
    const struct ifd_backend *const *backends; /* built in */
    uint32_t backend_count;
    const struct ifd_plugins *plugins;         /* those that were taken follow; NULL: none */
    const struct ifd_backend_options *options; /* NULL: none */
};

/** Checks every descriptor; opens those that are built in or have options. The caller has filled
 *  registry->host (backend/host.h). A backend that refuses to open is not an error, but for an
 *  option.
 *  Errors: INVALID (a NULL descriptor, no name, the same name twice, an option that its backend
 *  does not know or that is for none, a second device of what is no plugin), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_registry_init(struct ifd_registry *registry,
                                              const struct ifd_registry_setup *setup,
                                              struct ifd_err *err);

/** Closes the devices, last one first. No compiled partition may be left. A zeroed registry is
 *  fine. */
void ifd_registry_finish(struct ifd_registry *registry);

/** Position of the backend of that name, or registry->count. Case counts. */
uint32_t ifd_registry_find(const struct ifd_registry *registry, const char *name);

/** Opens the device of a backend if nobody has done so. False if it is absent; reason says why. A
 *  lack of memory is a reason for this time only. */
bool ifd_registry_open(struct ifd_registry *registry, uint32_t index, struct ifd_err *reason);

/** cost, transfer_ns and compile of the backend under the slot's lock. The device must be open; for
 *  transfer_ns the backend has memory. */
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
