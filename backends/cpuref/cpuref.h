/** CpuRef: every operator by its reference kernel, one node at a time, on one thread. Slow, and
 * right by definition. */
#ifndef INFERD_BACKENDS_CPUREF_CPUREF_H
#define INFERD_BACKENDS_CPUREF_CPUREF_H

#include "inferd/backend.h"

extern const struct ifd_backend ifd_backend_cpuref;

#endif
