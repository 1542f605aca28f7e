/* The system's monotonic clock. */
#include "engine/base/clock.h"

#include <time.h>

uint64_t ifd_monotonic_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t system_now_ns(void *context)
{
    (void)context;
    return ifd_monotonic_ns();
}

const struct ifd_clock *ifd_clock_system(void)
{
    static const struct ifd_clock clock = {.now_ns = system_now_ns};
    return &clock;
}

uint64_t ifd_now_ns(const struct ifd_clock *clock)
{
    return clock->now_ns(clock->context);
}
