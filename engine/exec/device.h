/** The devices with memory of their own that an instance uses: a context on each, in which the
 *  partitions of its executables are bound; the tasks of a run that go through their queues.
 *  For the files of this folder. Thread: one at a time per instance. */
#ifndef INFERD_ENGINE_EXEC_DEVICE_H
#define INFERD_ENGINE_EXEC_DEVICE_H

#include "engine/exec/executable.h"

struct ifd_instance;
struct ifd_instance_table;

/** Of an instance; entry d is that of ifd_plan.device[d] of all its executables. */
struct ifd_instance_device {
    const struct ifd_memory_ops *ops;
    struct ifd_backend_slot *slot;
    struct ifd_context *context;
    size_t bytes;
    bool is_lost; /* a call has said so */
};

/** Makes the contexts and binds all partitions. A device that is lost is no error if there is a
 *  spare instance. Errors: those of the backends, prefixed by their names; NOMEM. What was made is
 *  left for ifd_devices_close. */
IFD_NODISCARD enum ifd_code ifd_devices_start(struct ifd_instance *instance, struct ifd_err *err);
void ifd_devices_close(struct ifd_instance *instance);

/** Before a run: may it use its devices? Opens them again if they were lost and it is time for a
 *  trial. UNAVAILABLE: the device is lost, err says why. */
IFD_NODISCARD enum ifd_code ifd_devices_ready(struct ifd_instance *instance, struct ifd_err *err);
/** After a run that ended with code and err. True: a device was lost in it; all contexts are
 *  closed. */
bool ifd_devices_were_lost(struct ifd_instance *instance, enum ifd_code code,
                           const struct ifd_err *err);

/** Waits for the READs that partition p needs, and puts p, if it is a device's, into its queue.
 *  counters: NULL, or one time for each step of p. */
IFD_NODISCARD enum ifd_code ifd_devices_await(struct ifd_instance *instance,
                                              const struct ifd_instance_table *table, uint32_t p,
                                              struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_devices_submit(struct ifd_instance *instance,
                                               const struct ifd_instance_table *table, uint32_t p,
                                               uint64_t *counters, struct ifd_err *err);
/** Waits until the queues are empty: callers' memory is not touched any more. */
IFD_NODISCARD enum ifd_code ifd_devices_finish(struct ifd_instance *instance, struct ifd_err *err);

#endif
