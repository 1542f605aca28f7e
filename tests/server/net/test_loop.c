/* The loop: alarms and turns that do not wait. */
#include "server/net/loop.h"

#include "engine/base/clock.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

struct seen {
    struct ifd_loop *loop;
    int alarms, wakes, wakes_wanted;
    uint64_t alarm_ns;
};

static void begin(struct seen *seen)
{
    struct ifd_err err = {0};
    *seen = (struct seen){0};
    REQUIRE(ifd_loop_create(ifd_alloc_system(), &seen->loop, &err) == IFD_OK);
}

static void note_alarm(void *arg)
{
    struct seen *seen = arg;
    seen->alarms++;
    seen->alarm_ns = ifd_monotonic_ns();
    ifd_loop_stop(seen->loop);
}

static void note_wake(void *arg)
{
    struct seen *seen = arg;
    if (++seen->wakes == seen->wakes_wanted) {
        ifd_loop_stop(seen->loop);
    }
}

static void alarm_comes_once_and_not_before_its_time(void)
{
    struct seen seen;
    begin(&seen);
    const uint64_t at_ns = ifd_monotonic_ns() + 2 * MS;
    ifd_loop_alarm(seen.loop, at_ns, note_alarm, &seen);
    ifd_loop_run(seen.loop);
    EXPECT_INT(seen.alarms, 1);
    EXPECT(seen.alarm_ns >= at_ns);
    ifd_loop_destroy(seen.loop);
}

static void alarm_replaces_and_takes_back_the_one_before(void)
{
    struct seen first, second;
    begin(&first);
    second = first;
    ifd_loop_alarm(first.loop, ifd_monotonic_ns() + 1 * MS, note_alarm, &first);
    ifd_loop_alarm(first.loop, 0, NULL, NULL);
    ifd_loop_alarm(first.loop, ifd_monotonic_ns() + 3 * MS, note_alarm, &first);
    ifd_loop_alarm(first.loop, ifd_monotonic_ns() + 4 * MS, note_alarm, &second);
    ifd_loop_run(first.loop);
    EXPECT_INT(first.alarms, 0);
    EXPECT_INT(second.alarms, 1);
    ifd_loop_destroy(first.loop);
}

/* Nobody wakes the loop; if it slept, it would sleep for ever. */
static void loop_that_stays_awake_asks_its_receiver_every_turn(void)
{
    struct seen seen;
    begin(&seen);
    seen.wakes_wanted = 3;
    ifd_loop_on_wake(seen.loop, note_wake, &seen);
    ifd_loop_stay_awake(seen.loop, UINT64_MAX);
    ifd_loop_run(seen.loop);
    EXPECT_INT(seen.wakes, 3);
    ifd_loop_destroy(seen.loop);
}

static void loop_sleeps_again_when_its_time_is_over(void)
{
    struct seen seen;
    begin(&seen);
    ifd_loop_on_wake(seen.loop, note_wake, &seen);
    ifd_loop_stay_awake(seen.loop, 1); /* long ago */
    ifd_loop_alarm(seen.loop, ifd_monotonic_ns() + 5 * MS, note_alarm, &seen);
    ifd_loop_run(seen.loop);
    EXPECT(seen.wakes <= 1);
    ifd_loop_destroy(seen.loop);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(alarm_comes_once_and_not_before_its_time),
        T(alarm_replaces_and_takes_back_the_one_before),
        T(loop_that_stays_awake_asks_its_receiver_every_turn),
        T(loop_sleeps_again_when_its_time_is_over),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
