/* Prediction of a result from earlier runs. */
#include "server/serve/ahead.h"

#include "engine/base/clock.h"
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

static void only_known_runs_are_short(void)
{
    struct ifd_pulse pulse = {0};
    EXPECT(!ifd_pulse_is_short(&pulse));
    ifd_pulse_learn(&pulse, 1, 20 * US);
    EXPECT(ifd_pulse_is_short(&pulse));
    ifd_pulse_learn(&pulse, 2, 21 * US);
    EXPECT(!ifd_pulse_is_short(&pulse));
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

static uint32_t count_of(void *arg)
{
    return *(const uint32_t *)arg;
}

static void only_short_runs_of_one_connection_are_done_here(void)
{
    uint32_t connections = 1;
    struct ifd_ahead ahead = {
        .here_ns = 2000 * US, .connections = count_of, .connections_arg = &connections};
    struct ifd_pulse pulse = {0};
    EXPECT(!ifd_ahead_runs_here(&ahead, &pulse)); /* how long it takes is not known */
    ifd_pulse_learn(&pulse, 1, 2000 * US);
    EXPECT(ifd_ahead_runs_here(&ahead, &pulse));
    connections = 2;
    EXPECT(!ifd_ahead_runs_here(&ahead, &pulse));
    connections = 1;
    ahead.here_ns = 1999 * US;
    EXPECT(!ifd_ahead_runs_here(&ahead, &pulse));
    ahead.here_ns = 0;
    EXPECT(!ifd_ahead_runs_here(&ahead, &pulse));
}

static void runs_shorter_than_a_hand_over_are_done_here_for_a_time(void)
{
    uint32_t connections = 100;
    struct ifd_ahead ahead = {
        .here_ns = 2000 * US, .connections = count_of, .connections_arg = &connections};
    const struct ifd_pulse tiny = {.run_ns = 20 * US}, longer = {.run_ns = 21 * US};
    EXPECT(ifd_ahead_runs_here(&ahead, &tiny));
    EXPECT(!ifd_ahead_runs_here(&ahead, &longer));
    ifd_ahead_ran_here(&ahead, 999 * US);
    EXPECT(ifd_ahead_runs_here(&ahead, &tiny));
    ifd_ahead_ran_here(&ahead, 1 * US);
    EXPECT(!ifd_ahead_runs_here(&ahead, &tiny));
    ifd_ahead_end_turn(&ahead);
    EXPECT(ifd_ahead_runs_here(&ahead, &tiny));
    ahead.here_ns = 0;
    EXPECT(!ifd_ahead_runs_here(&ahead, &tiny));
}

static void loop_looks_out_for_a_client_that_asks_again_at_once(void)
{
    struct ifd_ahead ahead = {.spin_ns = 3600000000 * US, .cores = 2};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_loop_create(ifd_alloc_system(), &ahead.loop, &err), &err);
    ifd_ahead_begun(&ahead);
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    EXPECT(!ahead.is_looking_out); /* the first one tells nothing */
    ifd_ahead_begun(&ahead);       /* a client that takes long to send a body */
    ifd_ahead_begun(&ahead);
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    EXPECT(ahead.is_looking_out);
    ifd_ahead_begun(&ahead);
    EXPECT(ahead.is_looking_out); /* for its body */
    ifd_ahead_task(&ahead);
    EXPECT(!ahead.is_looking_out); /* it would take the core from what it waits for */
    ifd_ahead_begun(&ahead);
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    EXPECT(!ahead.is_looking_out); /* nor beside another's */
    ifd_ahead_done(&ahead);
    ifd_ahead_begun(&ahead);
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    EXPECT(!ahead.is_looking_out); /* more of it may come */
    ahead.away_ns = 0;             /* but none did for long */
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    ifd_ahead_begun(&ahead);
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    EXPECT(ahead.is_looking_out);
    ahead.spin_ns = 0; /* nobody is so quick */
    ifd_ahead_begun(&ahead);
    ifd_ahead_ended(&ahead, ifd_monotonic_ns());
    EXPECT(!ahead.is_looking_out);
    ifd_loop_destroy(ahead.loop);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(pulse_of_unknown_batch_is_never_due),
        T(pulse_is_due_before_the_end_of_the_run),
        T(pulse_of_short_runs_is_due_at_once),
        T(only_known_runs_are_short),
        T(pulse_follows_the_shorter_runs),
        T(pulse_of_another_batch_starts_anew),
        T(only_short_runs_of_one_connection_are_done_here),
        T(runs_shorter_than_a_hand_over_are_done_here_for_a_time),
        T(loop_looks_out_for_a_client_that_asks_again_at_once),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
