#include "engine/base/team.h"
#include "engine/base/thread.h"
#include "tests/support/cores.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    long done[8];
    long total[8];
    atomic_uint arrived;
};

/* Index 0 waits until all helpers have entered. */
static void meet(struct work *work, uint32_t index, uint32_t count)
{
    const struct timespec pause = {.tv_nsec = 10000};
    (void)atomic_fetch_add(&work->arrived, 1);
    while (index == 0 && atomic_load(&work->arrived) < count) {
        (void)nanosleep(&pause, NULL);
    }
}

static void run(const struct ifd_team *team, ifd_team_fn fn, struct work *work)
{
    atomic_store(&work->arrived, 0);
    team->run(team, fn, work);
}

static void count_up(void *arg, uint32_t index, uint32_t count)
{
    struct work *work = arg;
    EXPECT(index < count);
    work->done[index]++;
    meet(work, index, count);
}

static void sum_others(void *arg, uint32_t index, uint32_t count)
{
    struct work *work = arg;
    work->total[index] = 0;
    for (uint32_t i = 0; i < count; i++) {
        work->total[index] += work->done[i];
    }
    meet(work, index, count);
}

static void every_index_runs_once_and_sees_what_was_written_before(void)
{
    for (uint32_t count = 1; count <= 4; count++) {
        struct fail_alloc fail;
        struct ifd_team *team = NULL;
        struct ifd_err err = {0};
        struct work work = {0};
        fail_alloc_init(&fail, 0);
        REQUIRE_OK(ifd_team_create(count, &fail.alloc, &team, &err), &err);
        EXPECT_INT(team->count, count);
        for (long round = 1; round <= 300; round++) {
            run(team, count_up, &work);
            run(team, sum_others, &work);
            for (uint32_t i = 0; i < count; i++) {
                EXPECT_INT(work.done[i], round);
                EXPECT_INT(work.total[i], (long long)round * count);
            }
        }
        ifd_team_destroy(team);
        fail_alloc_finish(&fail);
    }
}

static void sleeping_helpers_wake(void)
{
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    struct work work = {0};
    REQUIRE_OK(ifd_team_create(3, ifd_alloc_system(), &team, &err), &err);
    for (int round = 0; round < 3; round++) {
        struct timespec pause = {.tv_nsec = 20000000};
        (void)nanosleep(&pause, NULL);
        run(team, count_up, &work);
    }
    EXPECT_INT(work.done[2], 3);
    ifd_team_destroy(team);
}

/* A helper that expects a run which does not come sleeps again. Runs and expectations may come
 * at any time, also after the team was told to rest. */
static void helpers_that_expect_a_run_still_run_everything_once(void)
{
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    struct work work = {0};
    REQUIRE_OK(ifd_team_create(3, ifd_alloc_system(), &team, &err), &err);
    for (int round = 0; round < 60; round++) {
        struct timespec pause = {.tv_nsec = round % 3 == 0 ? 1000000 : 20000};
        ifd_team_expect(team);
        (void)nanosleep(&pause, NULL);
        ifd_team_expect(team);
        for (int runs = 0; runs < round % 4; runs++) {
            run(team, count_up, &work);
            if (round % 5 == 0) {
                ifd_team_rest(team);
            }
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(work.done[i], 15 * (0 + 1 + 2 + 3));
    }
    ifd_team_expect(team);
    ifd_team_destroy(team);
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &team, &err), &err);
    ifd_team_expect(team);
    ifd_team_destroy(team);
}

#define SLEEPS "voluntary_ctxt_switches:"

/* How often the helper of a team of two went to sleep, by the kernel's count; -1: unknown. */
static long helper_sleeps(void)
{
    long count = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task = tasks ? readdir(tasks) : NULL; task; task = readdir(tasks)) {
        char path[sizeof("/proc/self/task//status") + sizeof(task->d_name)], line[128];
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        bool is_helper = false;
        while (status && fgets(line, sizeof(line), status)) {
            is_helper |= strcmp(line, "Name:\tinferd-team\n") == 0;
            if (is_helper) {
                const size_t name = sizeof(SLEEPS) - 1;
                count = strncmp(line, SLEEPS, name) == 0 ? strtol(line + name, NULL, 10) : count;
            }
        }
        if (status) {
            (void)fclose(status);
        }
    }
    if (tasks) {
        (void)closedir(tasks);
    }
    return count;
}

/* Waits until the helper sleeps; returns how often it slept. */
static long wait_for_sleep(void)
{
    enum { STILL = 20, PATIENCE = 5000 };
    const struct timespec pause = {.tv_nsec = 2000000};
    long asleep = helper_sleeps();
    for (int still = 0, i = 0; still < STILL && i < PATIENCE; i++) {
        (void)nanosleep(&pause, NULL);
        const long now = helper_sleeps();
        still = now == asleep && now > 0 ? still + 1 : 0;
        asleep = now;
    }
    if (asleep <= 0) {
        test_does_not_apply("/proc does not tell when threads sleep");
    }
    return asleep;
}

/* The helper wakes up without a run and goes back to sleep. */
static void a_sleeping_helper_is_woken_by_what_is_expected(void)
{
    enum { PATIENCE = 5000 };
    const struct timespec pause = {.tv_nsec = 2000000};
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(2, ifd_alloc_system(), &team, &err), &err);
    const long asleep = wait_for_sleep();
    bool has_woken = false;
    for (int i = 0; !has_woken && i < PATIENCE; i++) {
        ifd_team_expect(team);
        (void)nanosleep(&pause, NULL);
        has_woken = helper_sleeps() > asleep;
    }
    EXPECT(has_woken);
    ifd_team_destroy(team);
}

static void a_run_may_have_fewer_threads_than_the_team(void)
{
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    struct work work = {0};
    REQUIRE_OK(ifd_team_create(4, ifd_alloc_system(), &team, &err), &err);
    for (uint32_t round = 0; round < 400; round++) {
        struct ifd_team part = *team;
        part.count = 1 + round % 4;
        run(&part, count_up, &work);
    }
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_INT(work.done[i], 400 - 100 * (long)i);
    }
    ifd_team_destroy(team);
}

struct visit {
    atomic_uint begun, ended; /* by helpers */
    long calls[8];
    bool waits;   /* index 0 waits for a helper to begin */
    bool is_slow; /* that helper takes long */
};

static void come_and_go(void *arg, uint32_t index, uint32_t count)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct visit *visit = arg;
    EXPECT(index < count);
    visit->calls[index]++;
    if (index == 0) {
        while (visit->waits && atomic_load(&visit->begun) == 0) {
        }
        return;
    }
    (void)atomic_fetch_add(&visit->begun, 1);
    if (visit->is_slow) {
        (void)nanosleep(&pause, NULL);
    }
    (void)atomic_fetch_add(&visit->ended, 1);
}

/* Runs in a row that are over before a helper can enter. */
static void a_helper_that_is_late_is_left_out_or_waited_for(void)
{
    enum { ROUNDS = 20000 };
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    struct visit visit = {0};
    REQUIRE_OK(ifd_team_create(3, ifd_alloc_system(), &team, &err), &err);
    for (long round = 1; round <= ROUNDS; round++) {
        team->run(team, come_and_go, &visit);
        EXPECT_INT(visit.calls[0], round);
        EXPECT(visit.calls[1] <= round && visit.calls[2] <= round);
        EXPECT_INT(atomic_load(&visit.begun), visit.calls[1] + visit.calls[2]);
        EXPECT_INT(atomic_load(&visit.ended), visit.calls[1] + visit.calls[2]);
        if (round % 1000 == 0) {
            ifd_team_rest(team);
        }
    }
    ifd_team_destroy(team);
}

static void a_helper_that_has_begun_is_waited_for(void)
{
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(2, ifd_alloc_system(), &team, &err), &err);
    for (int round = 0; round < 20; round++) {
        struct visit visit = {.waits = true, .is_slow = true};
        team->run(team, come_and_go, &visit);
        EXPECT_INT(atomic_load(&visit.ended), 1);
        EXPECT_INT(visit.calls[1], 1);
    }
    ifd_team_destroy(team);
}

struct caller {
    const struct ifd_team *team;
    struct ifd_thread thread;
    atomic_uint inside; /* bits of the indexes in the present run */
    uint32_t runs;
    long calls;
};

static void be_the_only_one_with_this_index(void *arg, uint32_t index, uint32_t count)
{
    struct caller *caller = arg;
    EXPECT(index < count);
    EXPECT((atomic_fetch_or(&caller->inside, 1u << index) & 1u << index) == 0);
    if (index == 0) {
        caller->calls++;
    }
}

static void run_often(void *arg)
{
    struct caller *caller = arg;
    for (uint32_t i = 0; i < caller->runs; i++) {
        atomic_store(&caller->inside, 0);
        caller->team->run(caller->team, be_the_only_one_with_this_index, caller);
    }
}

/* More callers than runs that can have helpers, and of different sizes. */
static void several_callers_run_at_a_time(void)
{
    enum { CALLERS = 4, RUNS = 5000 };
    struct ifd_team *team = NULL, part[CALLERS];
    struct caller caller[CALLERS];
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(5, ifd_alloc_system(), &team, &err), &err);
    for (uint32_t i = 0; i < CALLERS; i++) {
        part[i] = ifd_team_part(team, 2 + i % 3);
        caller[i] = (struct caller){.team = &part[i], .runs = RUNS};
        REQUIRE_OK(ifd_thread_start(&caller[i].thread, "caller", run_often, &caller[i],
                                    ifd_alloc_system(), &err),
                   &err);
    }
    for (int i = 0; i < CALLERS; i++) {
        ifd_thread_join(&caller[i].thread);
        EXPECT_INT(caller[i].calls, RUNS);
    }
    ifd_team_destroy(team);
}

static void a_part_is_no_larger_than_the_team(void)
{
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    struct work work = {0};
    struct ifd_team part = ifd_team_part(NULL, 4);
    EXPECT_INT(part.count, 1);
    run(&part, count_up, &work);
    EXPECT_INT(work.done[0], 1);
    ifd_team_expect(&part);
    ifd_team_rest(&part);
    REQUIRE_OK(ifd_team_create(3, ifd_alloc_system(), &team, &err), &err);
    EXPECT_INT(ifd_team_part(team, 2).count, 2);
    EXPECT_INT(ifd_team_part(team, 9).count, 3);
    ifd_team_destroy(team);
}

struct cores {
    atomic_uint arrived;
    bool gathers; /* moves to the first core; may use all cores afterwards */
    cpu_set_t allowed;
    int on[2];
    bool is_pinned[2];
};

/* A waiting thread yields its core to the other one. */
static void note_core(void *arg, uint32_t index, uint32_t count)
{
    struct cores *cores = arg;
    cpu_set_t allowed;
    if (cores->gathers) {
        cores_pin_to_first(&cores->allowed);
        cores_allow(&cores->allowed);
    }
    cores->on[index] = ifd_thread_core();
    cores_get(&allowed);
    cores->is_pinned[index] = !CPU_EQUAL(&allowed, &cores->allowed);
    (void)atomic_fetch_add(&cores->arrived, 1);
    for (uint32_t i = 0; atomic_load(&cores->arrived) < count; i++) {
        ifd_relax_more(i);
    }
}

/* The kernel may move it, too, but not within a run: mostly it was the helper. Both may use all
 * cores at the end. */
static void a_helper_leaves_the_core_of_the_caller(void)
{
    enum { ROUNDS = 100 };
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    struct cores cores = {0};
    uint32_t together = 0, apart = 0;
    cores_need(2, &cores.allowed);
    REQUIRE_OK(ifd_team_create(2, ifd_alloc_system(), &team, &err), &err);
    for (int round = 0; round < ROUNDS; round++) {
        cores.gathers = true;
        atomic_store(&cores.arrived, 0);
        team->run(team, note_core, &cores);
        const bool is_together = cores.on[0] == cores.on[1];
        cores.gathers = false;
        atomic_store(&cores.arrived, 0);
        team->run(team, note_core, &cores);
        EXPECT(!cores.is_pinned[0] && !cores.is_pinned[1]);
        together += is_together;
        apart += is_together && cores.on[0] != cores.on[1];
    }
    printf("%u of %u times apart\n", apart, together);
    EXPECT(together > ROUNDS / 2);
    EXPECT(apart > together / 2);
    ifd_team_destroy(team);
}

static void do_nothing(void *arg, uint32_t index, uint32_t count)
{
    (void)arg;
    (void)index;
    (void)count;
}

/* The team ends at every moment of a helper that wakes up for its last run; one that missed the
 * end would be joined forever. */
static void a_team_ends_while_its_helper_wakes_up(void)
{
    for (int round = 0; round < 10000; round++) {
        struct ifd_team *team = NULL;
        struct ifd_err err = {0};
        struct work work = {0};
        REQUIRE_OK(ifd_team_create(2, ifd_alloc_system(), &team, &err), &err);
        run(team, count_up, &work); /* now the helper spins */
        team->run(team, do_nothing, NULL);
        for (int i = 0; i < round % 64; i++) {
            ifd_relax();
        }
        ifd_team_destroy(team);
    }
}

/* With real-time priority on one core: the helper runs, and sleeps again, only when the caller
 * yields. */
static void a_caller_with_priority_lets_a_helper_have_its_core(void)
{
    const struct sched_param priority = {.sched_priority = 1}, none = {0};
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    cpu_set_t allowed;
    cores_need(1, &allowed);
    cores_pin_to_first(&allowed);
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        test_does_not_apply("needs the right to real-time priority");
    }
    REQUIRE_OK(ifd_team_create(2, ifd_alloc_system(), &team, &err), &err);
    const long asleep = wait_for_sleep();
    for (int run = 0; run < 8; run++) {
        team->run(team, do_nothing, NULL);
    }
    EXPECT(helper_sleeps() > asleep);
    ifd_team_destroy(team);
    REQUIRE(sched_setscheduler(0, SCHED_OTHER, &none) == 0);
    cores_allow(&allowed);
}

static void cores_are_shared_and_a_run_has_one_at_least(void)
{
    struct ifd_cores cores;
    ifd_cores_init(&cores, 4);
    EXPECT_INT(ifd_cores_take(&cores, 1, 1), 1);
    EXPECT_INT(ifd_cores_take(&cores, 2, 1), 2);
    EXPECT_INT(ifd_cores_take(&cores, 8, 1), 1);
    EXPECT_INT(ifd_cores_take(&cores, 8, 1), 1); /* more runs than cores */
    ifd_cores_give(&cores, 2, 1);
    EXPECT_INT(ifd_cores_take(&cores, 8, 1), 1);
    for (int i = 0; i < 4; i++) {
        ifd_cores_give(&cores, 1, 1);
    }
    EXPECT_INT(ifd_cores_take(&cores, 8, 2 + IFD_CROWD_NS), 4);
    ifd_cores_init(&cores, 0);
    EXPECT_INT(ifd_cores_take(&cores, 8, 1), 1);
}

/* Two clients that ask again and again: while one sends, the other's run is alone. */
static void a_run_in_a_gap_takes_its_share_only(void)
{
    struct ifd_cores cores;
    const uint64_t long_ns = 10 * IFD_CROWD_NS;
    ifd_cores_init(&cores, 4);
    EXPECT_INT(ifd_cores_take(&cores, 8, 1), 4); /* the first knows of nobody else */
    EXPECT_INT(ifd_cores_take(&cores, 8, 2), 1);
    ifd_cores_give(&cores, 4, 3);
    ifd_cores_give(&cores, 1, 4);
    EXPECT_INT(ifd_cores_take(&cores, 8, 5), 2);
    EXPECT_INT(ifd_cores_take(&cores, 8, 6), 2);
    ifd_cores_give(&cores, 2, long_ns); /* long runs: there were two until now */
    ifd_cores_give(&cores, 2, long_ns + 1);
    EXPECT_INT(ifd_cores_take(&cores, 8, long_ns + 2), 2);
    ifd_cores_give(&cores, 2, long_ns + 3);
    EXPECT_INT(ifd_cores_take(&cores, 8, long_ns + IFD_CROWD_NS), 2);
    ifd_cores_give(&cores, 2, long_ns + IFD_CROWD_NS);
    EXPECT_INT(ifd_cores_take(&cores, 8, long_ns + 1 + IFD_CROWD_NS), 4); /* nobody came */
    ifd_cores_give(&cores, 4, 2 * long_ns);
    EXPECT_INT(ifd_cores_take(&cores, 3, 2 * long_ns), 3);
    for (uint32_t i = 0; i < 8; i++) { /* more runs than cores */
        EXPECT_INT(ifd_cores_take(&cores, 8, 2 * long_ns), 1);
    }
}

static void missing_memory_leaves_nothing_behind(void)
{
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_team *team = NULL;
        fail_alloc_init(&fail, k);
        enum ifd_code code = ifd_team_create(3, &fail.alloc, &team, NULL);
        bool refused = fail.failed;
        EXPECT_INT(code, refused ? IFD_NOMEM : IFD_OK);
        ifd_team_destroy(team);
        fail_alloc_finish(&fail);
        if (!refused) {
            break;
        }
    }
    ifd_team_destroy(NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_index_runs_once_and_sees_what_was_written_before),
        T(sleeping_helpers_wake),
        T(helpers_that_expect_a_run_still_run_everything_once),
        T(a_sleeping_helper_is_woken_by_what_is_expected),
        T(a_run_may_have_fewer_threads_than_the_team),
        T(a_helper_that_is_late_is_left_out_or_waited_for),
        T(a_helper_that_has_begun_is_waited_for),
        T(several_callers_run_at_a_time),
        T(a_part_is_no_larger_than_the_team),
        T(a_helper_leaves_the_core_of_the_caller),
        T(a_team_ends_while_its_helper_wakes_up),
        T(a_caller_with_priority_lets_a_helper_have_its_core),
        T(cores_are_shared_and_a_run_has_one_at_least),
        T(a_run_in_a_gap_takes_its_share_only),
        T(missing_memory_leaves_nothing_behind),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
