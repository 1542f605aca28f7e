#include "server/net/pace.h"
#include "tests/support/test.h"

static void nothing_is_slow_within_the_first_window(void)
{
    struct ifd_pace pace = {.since_ms = 100};
    EXPECT(!ifd_pace_is_slow(&pace, 100 + IFD_PACE_WINDOW_MS - 1, 0, 1000000));
    EXPECT(ifd_pace_is_slow(&pace, 100 + IFD_PACE_WINDOW_MS, 0, 1000000));
}

static void fast_start_does_not_pay_for_a_slow_rest(void)
{
    struct ifd_pace pace = {0};
    uint64_t now = IFD_PACE_WINDOW_MS, bytes = 1u << 30;
    EXPECT(!ifd_pace_is_slow(&pace, now, bytes, 1000));
    now += IFD_PACE_WINDOW_MS;
    bytes += 1000 * IFD_PACE_WINDOW_MS / 1000; /* just enough */
    EXPECT(!ifd_pace_is_slow(&pace, now, bytes, 1000));
    now += IFD_PACE_WINDOW_MS;
    bytes += 1000 * IFD_PACE_WINDOW_MS / 1000 - 1;
    EXPECT(ifd_pace_is_slow(&pace, now, bytes, 1000));
}

static void late_look_counts_the_time_that_passed(void)
{
    struct ifd_pace pace = {0};
    EXPECT(ifd_pace_is_slow(&pace, 4 * IFD_PACE_WINDOW_MS, 1000 * IFD_PACE_WINDOW_MS / 1000, 1000));
}

static void no_rate_is_never_slow(void)
{
    struct ifd_pace pace = {0};
    EXPECT(!ifd_pace_is_slow(&pace, 1000 * IFD_PACE_WINDOW_MS, 0, 0));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(nothing_is_slow_within_the_first_window),
        T(fast_start_does_not_pay_for_a_slow_rest),
        T(late_look_counts_the_time_that_passed),
        T(no_rate_is_never_slow),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
