/* When a result is due, as earlier runs tell it. */
#include "server/ahead.h"

#include "tests/support/test.h"

#define US UINT64_C(1000)

static void pulse_of_unknown_batch_is_never_due(void)
{
    struct ifd_pulse pulse = {0};
    EXPECT_INT(ifd_pulse_due(&pulse, 1, 5000 * US), 0);
    ifd_pulse_learn(&pulse, 1, 1000 * US);
    EXPECT_INT(ifd_pulse_due(&pulse, 2, 5000 * US), 0);
}

static void pulse_is_due_before_the_end_of_the_run(void)
{
    struct ifd_pulse pulse = {0};
    ifd_pulse_learn(&pulse, 1, 1000 * US);
    const uint64_t due_ns = ifd_pulse_due(&pulse, 1, 5000 * US);
    EXPECT(due_ns > 5000 * US);
    EXPECT(due_ns < 6000 * US);
}

static void pulse_of_short_runs_is_due_at_once(void)
{
    struct ifd_pulse pulse = {0};
    ifd_pulse_learn(&pulse, 1, 3 * US);
    EXPECT_INT(ifd_pulse_due(&pulse, 1, 5000 * US), 5000 * US);
}

static void pulse_follows_the_shorter_runs(void)
{
    struct ifd_pulse pulse = {0};
    for (int i = 0; i < 1000; i++) {
        ifd_pulse_learn(&pulse, 1, (i % 2 ? 1000 : 2000) * US);
    }
    EXPECT(pulse.run_ns >= 1000 * US);
    EXPECT(pulse.run_ns < 1200 * US);
}

static void pulse_of_another_batch_starts_anew(void)
{
    struct ifd_pulse pulse = {0};
    ifd_pulse_learn(&pulse, 1, 1000 * US);
    ifd_pulse_learn(&pulse, 4, 3000 * US);
    EXPECT_INT(pulse.run_ns, 3000 * US);
    EXPECT_INT(pulse.batch, 4);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(pulse_of_unknown_batch_is_never_due), T(pulse_is_due_before_the_end_of_the_run),
        T(pulse_of_short_runs_is_due_at_once),  T(pulse_follows_the_shorter_runs),
        T(pulse_of_another_batch_starts_anew),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
