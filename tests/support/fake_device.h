/** Two backends with memory of their own for tests, "Dev" and "Dev2". They compute with Fake's
 *  partitions, in blocks that no host pointer shows. Nothing is done before wait(): a run that does
 *  not wait for what it reads gets what was there before. */
#ifndef INFERD_TESTS_SUPPORT_FAKE_DEVICE_H
#define INFERD_TESTS_SUPPORT_FAKE_DEVICE_H

#include <stdatomic.h>

#include "inferd/backend.h"

extern const struct ifd_backend fake_device, fake_device2;

/** What a test sets and counts, for all devices of the process. */
struct fake_device_state {
    uint32_t cost_ns[2][IFD_OP_COUNT]; /* of Dev and Dev2; 0: it does not take the operator */
    uint64_t transfer_ns;              /* of each copy */
    /** Calls of context_create, bind, write, submit, read and wait until one fails with fails_with;
     *  0: none does. From then on all calls on contexts of that time fail. */
    atomic_uint fails_at;
    enum ifd_code fails_with;
    bool merges_in_batches; /* all nodes of a partition are one step there */
    bool may_release;       /* a partition was compiled that may release constants */
    uint32_t calls, writes, reads, submits, waits;
    uint32_t contexts, bound; /* that exist now */
};

/** All zero at the start of a test. */
extern struct fake_device_state fake_device_state;

/** Gives Dev the operators of Fake, each with this cost. */
void fake_device_takes_all(uint32_t cost_ns);

#endif
