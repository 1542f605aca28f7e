/** A backend for tests: takes some operators only (add, sub, abs, relu, tanh), several nodes per
 *  partition, and keeps what lies between them in its own scratch. It computes with the reference
 *  kernels and checks what the engine promises: alignment, outputs that overlap no input, thread
 *  team, scratch. */
#ifndef INFERD_TESTS_SUPPORT_FAKE_BACKEND_H
#define INFERD_TESTS_SUPPORT_FAKE_BACKEND_H

#include "inferd/backend.h"

/** Named "Fake". */
extern const struct ifd_backend fake_backend;

/** What Fake says that a node costs; 1 at the start. */
extern uint32_t fake_cost_ns;

/** Slots of a partition that it compiled. */
void fake_partition_slots(const struct ifd_partition *partition, uint32_t *ret_inputs,
                          uint32_t *ret_outputs);

#endif
