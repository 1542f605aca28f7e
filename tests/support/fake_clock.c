/* A clock that goes only when told. */
#include "tests/support/fake_clock.h"

static uint64_t now(void *context)
{
    return ((const struct fake_clock *)context)->now_ns;
}

void fake_clock_init(struct fake_clock *fake, uint64_t now_ns)
{
    *fake = (struct fake_clock){.clock = {.context = fake, .now_ns = now}, .now_ns = now_ns};
}

void fake_clock_advance(struct fake_clock *fake, uint64_t ns)
{
    fake->now_ns += ns;
}
