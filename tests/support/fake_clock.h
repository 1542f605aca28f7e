/** A clock that goes only when told. Thread: any, after init. */
#ifndef INFERD_TESTS_SUPPORT_FAKE_CLOCK_H
#define INFERD_TESTS_SUPPORT_FAKE_CLOCK_H

#include "engine/base/clock.h"

struct fake_clock {
    struct ifd_clock clock;
    _Atomic uint64_t now_ns;
};

void fake_clock_init(struct fake_clock *fake, uint64_t now_ns);
void fake_clock_advance(struct fake_clock *fake, uint64_t ns);

#endif
