/* Runs on a simulated machine: the times of runs are given, the tests check what the pace
 * chooses. */
#include "engine/base/pace.h"
#include "tests/support/test.h"

enum { MOST = 8, MS = 1000000 };

/* ns[i]: time of a run with i + 1 threads. Every stall_ns a run with all threads loses lost_ns. */
struct machine {
    uint64_t ns[MOST];
    uint64_t stall_ns, lost_ns;
    uint64_t stalled_ns; /* since the last stall */
};

static uint64_t run_once(struct machine *machine, struct ifd_pace *pace)
{
    const uint32_t threads = ifd_pace_choose(pace);
    REQUIRE(threads >= 1 && threads <= pace->most);
    uint64_t ns = machine->ns[threads - 1];
    if (threads == pace->most && machine->stall_ns > 0) {
        machine->stalled_ns += ns;
        if (machine->stalled_ns >= machine->stall_ns) {
            machine->stalled_ns = 0;
            ns += machine->lost_ns;
        }
    }
    ifd_pace_note(pace, ns);
    return ns;
}

/* Runs for ns; returns the number of runs with this number of threads, ret_all that of all runs. */
static uint32_t count_runs(struct machine *machine, struct ifd_pace *pace, uint64_t ns,
                           uint32_t threads, uint32_t *ret_all)
{
    uint32_t count = 0;
    *ret_all = 0;
    for (uint64_t now = 0; now < ns; (*ret_all)++) {
        count += ifd_pace_choose(pace) == threads;
        now += run_once(machine, pace);
    }
    return count;
}

/* Fewer threads are tried at the beginning, to learn their time, and hardly ever again. */
static void all_threads_run_where_they_help(void)
{
    struct machine machine = {.ns = {2 * MS, 1 * MS}};
    struct ifd_pace pace = ifd_pace_init(2);
    uint32_t all;
    EXPECT_INT(count_runs(&machine, &pace, 10000ull * MS, 1, &all), 1);
    const uint32_t tried = count_runs(&machine, &pace, 200000ull * MS, 1, &all);
    EXPECT(tried > 0 && tried < all / 500);
}

/* Two threads are twice as fast as one, which takes one_ns: one thread is tried once, whatever
 * the pace measured before. */
static void expect_one_try(struct ifd_pace *pace, uint64_t one_ns, uint64_t ns)
{
    struct machine machine = {.ns = {one_ns, one_ns / 2}};
    uint32_t all;
    EXPECT_INT(count_runs(&machine, pace, ns, 1, &all), 1);
}

static void a_small_model_is_tried_once_too(void)
{
    struct ifd_pace pace = ifd_pace_init(2);
    expect_one_try(&pace, MS / 50, 100ull * MS);
}

static void a_slow_first_run_counts_for_nothing(void)
{
    struct ifd_pace pace = ifd_pace_init(2);
    ifd_pace_note(&pace, 100ull * MS);
    expect_one_try(&pace, 2 * MS, 100ull * MS);
}

/* Nor do the next runs: another process may have disturbed them. */
static void a_slow_second_run_takes_no_thread(void)
{
    struct ifd_pace pace = ifd_pace_init(2);
    ifd_pace_note(&pace, 1ull * MS);
    ifd_pace_note(&pace, 10ull * MS);
    expect_one_try(&pace, 2 * MS, 1000ull * MS);
}

static void one_runs_where_two_are_slower_and_two_are_tried_ever_more_rarely(void)
{
    struct machine machine = {.ns = {2 * MS, 3 * MS}};
    struct ifd_pace pace = ifd_pace_init(2);
    uint32_t all;
    (void)count_runs(&machine, &pace, 3000ull * MS, 2, &all);
    const uint32_t tried = count_runs(&machine, &pace, 10000ull * MS, 2, &all);
    EXPECT(tried > 0 && tried < all / 20);
}

/* One thread is slow at first by accident. */
static void what_was_found_once_is_not_believed_for_ever(void)
{
    struct machine machine = {.ns = {4 * MS, 3 * MS}};
    struct ifd_pace pace = ifd_pace_init(2);
    uint32_t all;
    EXPECT_INT(count_runs(&machine, &pace, 1000ull * MS, 1, &all), 1);
    machine.ns[0] = 2 * MS;
    (void)count_runs(&machine, &pace, 20000ull * MS, 2, &all);
    EXPECT(count_runs(&machine, &pace, 10000ull * MS, 2, &all) < all / 20);
}

/* Most runs are fast; 1 of 2.6 waits for a thread that lost its core. */
static void means_decide_where_only_some_runs_wait(void)
{
    struct machine machine = {.ns = {1850000, 1100000}, .stall_ns = 3300000, .lost_ns = 4ull * MS};
    struct ifd_pace pace = ifd_pace_init(2);
    uint32_t all;
    (void)count_runs(&machine, &pace, 3000ull * MS, 2, &all);
    EXPECT(count_runs(&machine, &pace, 10000ull * MS, 2, &all) < all / 20);
    machine.lost_ns = 1ull * MS; /* half of what sharing gains */
    (void)count_runs(&machine, &pace, 3000ull * MS, 2, &all);
    EXPECT(count_runs(&machine, &pace, 10000ull * MS, 2, &all) > all - all / 20);
}

static void what_happens_once_changes_nothing(void)
{
    struct machine machine = {
        .ns = {2 * MS, 1 * MS}, .stall_ns = 1000ull * MS, .lost_ns = 50ull * MS};
    struct ifd_pace pace = ifd_pace_init(2);
    uint32_t all;
    EXPECT_INT(count_runs(&machine, &pace, 10000ull * MS, 1, &all), 1);
}

static void neighbours_come_and_go(void)
{
    const struct machine calm = {.ns = {12 * MS, 6 * MS}}, crowded = {.ns = {12 * MS, 20 * MS}};
    struct machine machine = calm;
    struct ifd_pace pace = ifd_pace_init(2);
    uint32_t all;
    for (int i = 0; i < 5; i++) {
        machine = calm;
        (void)count_runs(&machine, &pace, 3000ull * MS, 1, &all);
        EXPECT_INT(count_runs(&machine, &pace, 3000ull * MS, 1, &all), 0);
        machine = crowded;
        (void)count_runs(&machine, &pace, 500ull * MS, 2, &all);
        EXPECT(count_runs(&machine, &pace, 3000ull * MS, 2, &all) < all / 4);
    }
}

static void as_many_run_as_have_cores(void)
{
    struct machine machine = {
        .ns = {70 * MS, 36 * MS, 24 * MS, 19 * MS, 15 * MS, 18 * MS, 21 * MS, 24 * MS}};
    struct ifd_pace pace = ifd_pace_init(MOST);
    uint32_t all;
    (void)count_runs(&machine, &pace, 5000ull * MS, 5, &all);
    EXPECT(count_runs(&machine, &pace, 20000ull * MS, 5, &all) > all - all / 10);
}

static void one_thread_is_one_thread(void)
{
    struct machine machine = {.ns = {2 * MS}};
    struct ifd_pace pace = ifd_pace_init(1);
    for (int i = 0; i < 1000; i++) {
        EXPECT_INT(ifd_pace_choose(&pace), 1);
        (void)run_once(&machine, &pace);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(all_threads_run_where_they_help),
        T(a_small_model_is_tried_once_too),
        T(a_slow_first_run_counts_for_nothing),
        T(a_slow_second_run_takes_no_thread),
        T(one_runs_where_two_are_slower_and_two_are_tried_ever_more_rarely),
        T(what_was_found_once_is_not_believed_for_ever),
        T(means_decide_where_only_some_runs_wait),
        T(what_happens_once_changes_nothing),
        T(neighbours_come_and_go),
        T(as_many_run_as_have_cores),
        T(one_thread_is_one_thread),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
