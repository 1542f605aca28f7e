/** Monotonic time behind a pointer, so that tests bring their own. Thread: any. */
#ifndef INFERD_ENGINE_BASE_CLOCK_H
#define INFERD_ENGINE_BASE_CLOCK_H

#include <stdint.h>

struct ifd_clock {
    void *context;
    uint64_t (*now_ns)(void *context);
};

/** CLOCK_MONOTONIC. Static. */
const struct ifd_clock *ifd_clock_system(void);

/** Nanoseconds since a fixed moment; never decreases. */
uint64_t ifd_now_ns(const struct ifd_clock *clock);

/** The system's monotonic time in nanoseconds, without a context. */
uint64_t ifd_monotonic_ns(void);

#endif
