#include "server/sched/batch.h"

#include "tests/support/test.h"

#define US 1000u

static const struct ifd_batch_rules greedy = {.is_dynamic = true, .max_batch = 8};
static const struct ifd_batch_rules patient = {
    .is_dynamic = true, .max_batch = 8, .max_delay_ns = 100 * US};

static struct ifd_batch_item item(int64_t batch, uint64_t queued_us)
{
    return (struct ifd_batch_item){.batch = batch, .queued_ns = queued_us * US, .fits_first = true};
}

static void without_batching_every_request_runs_alone(void)
{
    const struct ifd_batch_rules none = {.max_batch = 8, .max_delay_ns = 100 * US};
    const struct ifd_batch_item items[] = {item(1, 0), item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&none, items, 2, 0, false).take, 1);
}

static void greedy_takes_what_fits_at_once(void)
{
    const struct ifd_batch_item items[] = {item(3, 0), item(4, 0), item(2, 0), item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&greedy, items, 1, 0, false).take, 1);
    EXPECT_INT(ifd_batch_choose(&greedy, items, 2, 0, false).take, 2);
    EXPECT_INT(ifd_batch_choose(&greedy, items, 4, 0, false).take,
               2); /* 3 + 4 + 2 > 8, never split */
}

static void one_request_of_the_whole_batch_runs(void)
{
    const struct ifd_batch_item items[] = {item(8, 0), item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&greedy, items, 2, 0, false).take, 1);
}

static void request_beyond_the_maximum_still_runs_alone(void)
{
    const struct ifd_batch_item items[] = {item(20, 0), item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&greedy, items, 2, 0, false).take, 1);
}

static void another_shape_ends_the_batch(void)
{
    struct ifd_batch_item items[] = {item(1, 0), item(1, 0), item(1, 0)};
    items[1].fits_first = false;
    EXPECT_INT(ifd_batch_choose(&greedy, items, 3, 0, false).take, 1);
    EXPECT_INT(ifd_batch_choose(&patient, items, 3, 0, false).take, 1); /* waiting could not help */
}

static void delay_counts_from_the_oldest(void)
{
    const struct ifd_batch_item items[] = {item(1, 10), item(1, 90)};
    struct ifd_batch_choice choice = ifd_batch_choose(&patient, items, 2, 100 * US, false);
    EXPECT_INT(choice.take, 0);
    EXPECT_INT(choice.wait_until_ns, 110 * US);
    EXPECT_INT(ifd_batch_choose(&patient, items, 2, 110 * US, false).take, 2);
}

static void full_batch_does_not_wait(void)
{
    const struct ifd_batch_item items[] = {item(4, 0), item(4, 0)};
    EXPECT_INT(ifd_batch_choose(&patient, items, 2, 0, false).take, 2);
}

static void preferred_size_does_not_wait(void)
{
    static const int32_t preferred[] = {2, 4};
    struct ifd_batch_rules rules = patient;
    rules.preferred = preferred;
    rules.preferred_count = 2;
    const struct ifd_batch_item items[] = {item(1, 0), item(1, 0), item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&rules, items, 1, 0, false).take, 0);
    EXPECT_INT(ifd_batch_choose(&rules, items, 2, 0, false).take, 2);
    EXPECT_INT(ifd_batch_choose(&rules, items, 3, 0, false).take, 2);
    EXPECT_INT(ifd_batch_choose(&rules, items, 3, 200 * US, false).take, 3); /* delay over: all */
}

static void preferred_size_comes_before_a_fuller_batch(void)
{
    static const int32_t preferred[] = {2, 4};
    struct ifd_batch_rules rules = greedy;
    rules.preferred = preferred;
    rules.preferred_count = 2;
    const struct ifd_batch_item items[] = {item(1, 0), item(1, 0), item(1, 0),
                                           item(1, 0), item(1, 0), item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&rules, items, 6, 0, false).take, 4);
    EXPECT_INT(ifd_batch_choose(&rules, items, 3, 0, false).take, 2);
    EXPECT_INT(ifd_batch_choose(&rules, items, 1, 0, false).take, 1); /* no delay: what there is */
}

static void preferred_size_that_large_requests_jump_over_is_not_waited_for(void)
{
    static const int32_t preferred[] = {4};
    struct ifd_batch_rules rules = patient;
    rules.preferred = preferred;
    rules.preferred_count = 1;
    const struct ifd_batch_item items[] = {item(3, 0), item(3, 0), item(3, 0)};
    EXPECT_INT(ifd_batch_choose(&rules, items, 2, 0, false).take, 0);
    EXPECT_INT(ifd_batch_choose(&rules, items, 3, 0, false).take, 2); /* cannot grow: 9 > 8 */
}

static void oldest_need_not_be_first(void)
{
    const struct ifd_batch_item items[] = {item(1, 50), item(1, 10)}; /* the first is more urgent */
    struct ifd_batch_choice choice = ifd_batch_choose(&patient, items, 2, 100 * US, false);
    EXPECT_INT(choice.take, 0);
    EXPECT_INT(choice.wait_until_ns, 110 * US);
}

static void endless_delay_waits_for_a_full_batch(void)
{
    const struct ifd_batch_rules endless = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = UINT64_MAX};
    const struct ifd_batch_item items[] = {item(4, 10), item(4, 20)};
    const struct ifd_batch_choice choice = ifd_batch_choose(&endless, items, 1, 1 << 30, false);
    EXPECT_INT(choice.take, 0);
    EXPECT(choice.wait_until_ns == UINT64_MAX);
    EXPECT_INT(ifd_batch_choose(&endless, items, 2, 1 << 30, false).take, 2);
}

static void hurried_queue_does_not_wait(void)
{
    const struct ifd_batch_item items[] = {item(1, 0)};
    EXPECT_INT(ifd_batch_choose(&patient, items, 1, 0, true).take, 1);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(without_batching_every_request_runs_alone),
        T(greedy_takes_what_fits_at_once),
        T(one_request_of_the_whole_batch_runs),
        T(request_beyond_the_maximum_still_runs_alone),
        T(another_shape_ends_the_batch),
        T(delay_counts_from_the_oldest),
        T(full_batch_does_not_wait),
        T(preferred_size_does_not_wait),
        T(preferred_size_comes_before_a_fuller_batch),
        T(preferred_size_that_large_requests_jump_over_is_not_waited_for),
        T(oldest_need_not_be_first),
        T(endless_delay_waits_for_a_full_batch),
        T(hurried_queue_does_not_wait),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
