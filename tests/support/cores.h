/** Which cores the calling thread may use, for tests of what moves threads between them. */
#ifndef INFERD_TESTS_SUPPORT_CORES_H
#define INFERD_TESTS_SUPPORT_CORES_H

#include <sched.h>

#include "tests/support/test.h"

static inline void cores_get(cpu_set_t *ret)
{
    REQUIRE(sched_getaffinity(0, sizeof(*ret), ret) == 0);
}

static inline void cores_allow(const cpu_set_t *cores)
{
    REQUIRE(sched_setaffinity(0, sizeof(*cores), cores) == 0);
}

static inline void cores_pin_to_first(const cpu_set_t *allowed)
{
    cpu_set_t first;
    size_t core = 0;
    while (!CPU_ISSET(core, allowed)) {
        core++;
    }
    CPU_ZERO(&first);
    CPU_SET(core, &first);
    cores_allow(&first);
}

/** Skips the case where there are fewer, or where the system lets nobody choose. */
static inline void cores_need(int count, cpu_set_t *ret)
{
    cores_get(ret);
    if (CPU_COUNT(ret) < count) {
        test_does_not_apply("too few cores to move a thread");
    }
    if (sched_setaffinity(0, sizeof(*ret), ret) != 0) {
        test_does_not_apply("the system lets no thread choose its core");
    }
}

#endif
