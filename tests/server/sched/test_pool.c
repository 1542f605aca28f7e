#include "server/sched/pool.h"

#include <sched.h>
#include <time.h>

#include "server/sched/lane.h"
#include "server/sched/sched_impl.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

#define JOBS 40

/* Notes its jobs; takes per_byte_ns for each byte of input; may be held in the middle of a run. */
struct slow {
    struct ifd_runner base;
    struct fake_clock *clock;
    uint64_t per_byte_ns;
    uint64_t rested_ns; /* when it was told to rest */
    atomic_int expected;
    atomic_int *inside, *most_inside; /* runs at the same time */
    atomic_bool *may_end;             /* NULL: at once */
    atomic_uint runs;
};

struct fixture {
    struct fake_clock clock;
    struct ifd_completions completions;
    struct ifd_pool *pool;
    struct ifd_lane *lane[2];
    struct slow slow[2][4];
    struct ifd_tensor input;
    struct ifd_job job[2][JOBS];
    atomic_int inside, most_inside;
    atomic_bool may_end;
};

static int finished;

static void count_finished(struct ifd_completion *completion)
{
    (void)completion;
    finished++;
}

static void no_wake(void *arg)
{
    (void)arg;
}

static void keep(struct ifd_runner *self)
{
    (void)self;
}

static void rest(struct ifd_runner *self)
{
    struct slow *slow = (struct slow *)self;
    slow->rested_ns = slow->clock->now_ns;
}

static void expect(struct ifd_runner *self)
{
    (void)atomic_fetch_add(&((struct slow *)self)->expected, 1);
}

static enum ifd_code run_slowly(struct ifd_runner *self, struct ifd_job *const *job, uint32_t count,
                                struct ifd_err *err)
{
    struct slow *slow = (struct slow *)self;
    (void)err;
    const int inside = atomic_fetch_add(slow->inside, 1) + 1;
    int most = atomic_load(slow->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(slow->most_inside, &most, inside)) {
    }
    while (slow->may_end && !atomic_load(slow->may_end)) {
        (void)sched_yield();
    }
    for (uint32_t i = 0; i < count; i++) {
        fake_clock_advance(slow->clock, slow->per_byte_ns * job[i]->input[0].bytes);
    }
    (void)atomic_fetch_add(&slow->runs, 1);
    (void)atomic_fetch_sub(slow->inside, 1);
    return IFD_OK;
}

static const struct ifd_lane_options plain = {.rules = {.max_batch = 1}, .priority = 1};

/* now_ns: of a clock that does not stand still, or NULL. */
static void begin_with(struct fixture *f, uint32_t cores, uint64_t (*now_ns)(void *context))
{
    *f = (struct fixture){.input = {.bytes = 10}, .may_end = true};
    struct ifd_err err = {0};
    fake_clock_init(&f->clock, 1000);
    f->clock.clock.now_ns = now_ns ? now_ns : f->clock.clock.now_ns;
    ifd_completions_init(&f->completions, no_wake, NULL);
    finished = 0;
    const struct ifd_pool_options options = {.alloc = ifd_alloc_system(),
                                             .clock = &f->clock.clock,
                                             .completions = &f->completions,
                                             .cores = cores};
    REQUIRE_OK(ifd_pool_create(&options, &f->pool, &err), &err);
}

static void begin(struct fixture *f, uint32_t cores)
{
    begin_with(f, cores, NULL);
}

/* A lane of runners; its jobs. */
static void add_lane(struct fixture *f, int lane, const struct ifd_lane_options *like,
                     uint32_t runners)
{
    struct ifd_runner *runner[4];
    struct ifd_err err = {0};
    struct ifd_lane_options options = *like;
    options.alloc = ifd_alloc_system();
    options.capacity = JOBS;
    for (uint32_t i = 0; i < runners; i++) {
        struct slow *slow = &f->slow[lane][i];
        slow->base.run = run_slowly;
        slow->base.destroy = keep;
        slow->base.rest = rest;
        slow->base.expect = expect;
        slow->clock = &f->clock;
        slow->per_byte_ns = 1;
        slow->inside = &f->inside;
        slow->most_inside = &f->most_inside;
        slow->may_end = &f->may_end;
        runner[i] = &slow->base;
    }
    for (int i = 0; i < JOBS; i++) {
        f->job[lane][i] = (struct ifd_job){
            .completion = {.fn = count_finished}, .input = &f->input, .input_count = 1, .batch = 1};
    }
    REQUIRE_OK(ifd_lane_create(f->pool, &options, runner, runners, &f->lane[lane], &err), &err);
}

static void begin_one(struct fixture *f, uint32_t cores, uint32_t runners)
{
    begin(f, cores);
    add_lane(f, 0, &plain, runners);
}

static void end(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        ifd_lane_destroy(f->lane[i]);
    }
    ifd_pool_destroy(f->pool);
    ifd_completions_drain(&f->completions);
}

static void push(struct fixture *f, int lane, int job)
{
    REQUIRE_OK(ifd_lane_push(f->lane[lane], &f->job[lane][job], NULL), NULL);
}

static void wait_finished(struct fixture *f, int count)
{
    while (finished < count) {
        ifd_completions_drain(&f->completions);
        (void)sched_yield();
    }
}

static void wait_inside(struct fixture *f, int count)
{
    while (atomic_load(&f->inside) < count) {
        (void)sched_yield();
    }
}

static uint32_t sleepers(struct fixture *f)
{
    uint32_t count = 0;
    ifd_mutex_lock(&f->pool->mutex);
    for (const struct ifd_pool_worker *w = f->pool->sleeper; w; w = w->next) {
        count++;
    }
    ifd_mutex_unlock(&f->pool->mutex);
    return count;
}

static void wait_until_asleep(struct fixture *f, uint32_t count)
{
    while (sleepers(f) < count) {
        (void)sched_yield();
    }
}

/* ---- threads and runs ---- */

static void one_wake_is_enough_for_all_threads_and_jobs(void)
{
    struct fixture f;
    begin_one(&f, 2, 2);
    atomic_store(&f.may_end, false);
    wait_until_asleep(&f, 2);
    for (int i = 0; i < JOBS; i++) {
        push(&f, 0, i);
    }
    ifd_pool_wake(f.pool);
    wait_inside(&f, 2);
    atomic_store(&f.may_end, true);
    wait_finished(&f, JOBS);
    EXPECT_INT(atomic_load(&f.most_inside), 2);
    end(&f);
}

static void lane_has_as_many_runs_as_runners(void)
{
    struct fixture f;
    begin_one(&f, 3, 1);
    atomic_store(&f.may_end, false);
    for (int i = 0; i < 5; i++) {
        push(&f, 0, i);
    }
    ifd_pool_wake(f.pool);
    wait_inside(&f, 1);
    wait_until_asleep(&f, 2); /* nobody else is woken in vain, or went back to sleep */
    atomic_store(&f.may_end, true);
    wait_finished(&f, 5);
    EXPECT_INT(atomic_load(&f.most_inside), 1);
    end(&f);
}

static void runs_have_a_core_each(void)
{
    struct fixture f;
    begin_one(&f, 2, 4);
    for (int i = 0; i < JOBS; i++) {
        push(&f, 0, i);
    }
    ifd_pool_wake(f.pool);
    wait_finished(&f, JOBS);
    EXPECT(atomic_load(&f.most_inside) <= 2);
    EXPECT_INT(f.pool->started, 2);
    end(&f);
}

/* On one core: those that wait do not keep a computing one from running. */
static void runs_that_wait_take_no_core(void)
{
    struct fixture f;
    begin(&f, 1);
    add_lane(&f, 0, &plain, 3);
    add_lane(&f, 1, &plain, 1);
    for (int i = 0; i < 3; i++) {
        f.slow[0][i].base.waits = true;
    }
    f.slow[1][0].may_end = NULL;
    atomic_store(&f.may_end, false);
    for (int i = 0; i < 3; i++) {
        push(&f, 0, i);
        ifd_pool_wake(f.pool);
        wait_inside(&f, i + 1);
    }
    push(&f, 1, 0);
    ifd_pool_wake(f.pool);
    wait_finished(&f, 1);
    EXPECT(f.job[1][0].finished_ns > 0);
    atomic_store(&f.may_end, true);
    wait_finished(&f, 4);
    end(&f);
}

static void destroyed_lane_finishes_its_jobs(void)
{
    static const struct ifd_lane_options endless = {
        .rules = {.is_dynamic = true, .max_batch = 100, .max_delay_ns = UINT64_MAX}, .priority = 1};
    struct fixture f;
    begin(&f, 2);
    add_lane(&f, 0, &endless, 2);
    wait_until_asleep(&f, 2);
    for (int i = 0; i < 7; i++) {
        push(&f, 0, i);
    }
    ifd_lane_destroy(f.lane[0]);
    f.lane[0] = NULL;
    ifd_completions_drain(&f.completions);
    EXPECT_INT(finished, 7);
    EXPECT_INT(f.job[0][6].run_jobs, 7);
    end(&f);
}

/* The pool's clock stands still; the wait is the system's. */
static void thread_wakes_up_by_itself_when_a_batch_is_due(void)
{
    static const struct ifd_lane_options patient = {
        .rules = {.is_dynamic = true, .max_batch = 100, .max_delay_ns = 500}, .priority = 1};
    struct fixture f;
    begin(&f, 2);
    add_lane(&f, 0, &patient, 1);
    push(&f, 0, 0);
    ifd_pool_wake(f.pool);
    push(&f, 0, 1);
    fake_clock_advance(&f.clock, 500);
    wait_finished(&f, 2);
    EXPECT_INT(f.job[0][0].run_jobs, 2);
    end(&f);
}

static uint64_t tick(void *context)
{
    return atomic_fetch_add(&((struct fake_clock *)context)->now_ns, 1);
}

/* Each look at the clock is one tick; one of the deadlines comes between two looks at the queue. */
static void no_run_is_left_without_jobs_by_a_deadline(void)
{
    struct fixture f;
    begin_with(&f, 1, tick);
    add_lane(&f, 0, &plain, 1);
    for (int i = 0; i < JOBS; i++) {
        f.job[0][i].deadline_ns = atomic_load(&f.clock.now_ns) + (uint64_t)i / 2;
        push(&f, 0, i);
        ifd_pool_wake(f.pool);
        for (int k = 0; k < 20 && ifd_lane_count(f.lane[0]) > 0; k++) {
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
        (void)ifd_lane_expire(f.lane[0]);
    }
    const struct slow *slow = &f.slow[0][0];
    ifd_lane_destroy(f.lane[0]);
    f.lane[0] = NULL;
    ifd_completions_drain(&f.completions);
    EXPECT_INT(atomic_load(&slow->runs), finished);
    end(&f);
}

/* ---- shares ---- */

/* Pushes all jobs of both lanes while a run is held; returns how many of lane 0 are among the first
 * count to run. */
static int share_of_first_lane(struct fixture *f, int count)
{
    int first = 0;
    atomic_store(&f->may_end, false);
    push(f, 1, 0);
    ifd_pool_wake(f->pool);
    wait_inside(f, 1);
    for (int i = 0; i < JOBS; i++) {
        push(f, 0, i);
        if (i > 0) {
            push(f, 1, i);
        }
    }
    atomic_store(&f->may_end, true);
    wait_finished(f, 2 * JOBS);
    const uint64_t step_ns = 10; /* one thread: the clock counts the runs */
    for (int i = 0; i < JOBS; i++) {
        first += f->job[0][i].finished_ns <= 1000 + (uint64_t)count * step_ns;
    }
    return first;
}

static void lanes_share_time_evenly(void)
{
    struct fixture f;
    begin(&f, 1);
    add_lane(&f, 0, &plain, 1);
    add_lane(&f, 1, &plain, 1);
    const int share = share_of_first_lane(&f, 40);
    EXPECT(share >= 19 && share <= 21);
    end(&f);
}

static void lane_of_priority_three_gets_a_third_of_the_time(void)
{
    static const struct ifd_lane_options third = {.rules = {.max_batch = 1}, .priority = 3};
    struct fixture f;
    begin(&f, 1);
    add_lane(&f, 0, &third, 1);
    add_lane(&f, 1, &plain, 1);
    const int share = share_of_first_lane(&f, 40);
    EXPECT(share >= 9 && share <= 11);
    end(&f);
}

/* Runs of the first lane take four times as long, so it has a quarter of the runs. */
static void share_is_one_of_time_not_of_runs(void)
{
    struct fixture f;
    struct ifd_tensor large = {.bytes = 40};
    begin(&f, 1);
    add_lane(&f, 0, &plain, 1);
    add_lane(&f, 1, &plain, 1);
    for (int i = 0; i < JOBS; i++) {
        f.job[0][i].input = &large;
    }
    const int share = share_of_first_lane(&f, 40);
    EXPECT(share >= 4 && share <= 6);
    end(&f);
}

/* ---- waking ahead, and runs of the caller ---- */

/* Nobody wakes it a second time. */
static void awake_thread_takes_a_job_by_itself(void)
{
    struct fixture f;
    begin_one(&f, 1, 1);
    wait_until_asleep(&f, 1);
    ifd_lane_stay_awake(f.lane[0], UINT64_MAX);
    push(&f, 0, 0);
    wait_finished(&f, 1);
    EXPECT(ifd_lane_core(f.lane[0]) >= 0);
    end(&f);
}

static void awake_thread_sleeps_when_nothing_came(void)
{
    struct fixture f;
    begin_one(&f, 1, 1);
    wait_until_asleep(&f, 1);
    ifd_lane_stay_awake(f.lane[0], ifd_now_ns(&f.clock.clock) + 100);
    while (sleepers(&f) > 0) {
        (void)sched_yield();
    }
    fake_clock_advance(&f.clock, 100);
    wait_until_asleep(&f, 1);
    end(&f);
}

static void awake_thread_ends_with_its_pool(void)
{
    struct fixture f;
    begin_one(&f, 1, 1);
    wait_until_asleep(&f, 1);
    ifd_lane_stay_awake(f.lane[0], UINT64_MAX);
    end(&f);
}

static void runner_prepares_only_in_an_idle_pool(void)
{
    struct fixture f;
    begin_one(&f, 1, 1);
    ifd_lane_expect(f.lane[0]);
    EXPECT_INT(atomic_load(&f.slow[0][0].expected), 1);
    atomic_store(&f.may_end, false);
    push(&f, 0, 0);
    ifd_lane_expect(f.lane[0]);
    ifd_pool_wake(f.pool);
    wait_inside(&f, 1);
    ifd_lane_expect(f.lane[0]);
    EXPECT_INT(atomic_load(&f.slow[0][0].expected), 1);
    atomic_store(&f.may_end, true);
    end(&f);
}

static void run_is_done_by_the_caller(void)
{
    struct fixture f;
    begin_one(&f, 1, 1);
    const uint64_t before_ns = f.clock.now_ns;
    REQUIRE(ifd_lane_run_here(f.lane[0], &f.job[0][1]));
    EXPECT_INT(f.job[0][1].code, IFD_OK);
    EXPECT_INT(f.job[0][1].queued_ns, before_ns);
    EXPECT_INT(f.job[0][1].started_ns, before_ns);
    EXPECT_INT(f.job[0][1].finished_ns, before_ns + 10);
    EXPECT_INT(f.slow[0][0].rested_ns, before_ns + 10);
    ifd_completions_drain(&f.completions);
    EXPECT_INT(finished, 0); /* the caller has it in hand */
    end(&f);
}

static void nothing_runs_here_where_requests_wait_batch_or_keep_order(void)
{
    static const struct ifd_lane_options together = {.rules = {.is_dynamic = true, .max_batch = 8},
                                                     .priority = 1};
    static const struct ifd_lane_options ordered = {
        .rules = {.max_batch = 1}, .priority = 1, .in_order = true};
    struct fixture f;
    begin_one(&f, 1, 1);
    push(&f, 0, 0);
    EXPECT(!ifd_lane_run_here(f.lane[0], &f.job[0][1]));
    end(&f);

    begin(&f, 1);
    add_lane(&f, 0, &ordered, 1);
    add_lane(&f, 1, &together, 1);
    EXPECT(!ifd_lane_run_here(f.lane[0], &f.job[0][0]));
    EXPECT(!ifd_lane_run_here(f.lane[1], &f.job[1][0]));
    end(&f);

    begin_one(&f, 1, 1);
    f.slow[0][0].base.may_linger = true;
    EXPECT(!ifd_lane_run_here(f.lane[0], &f.job[0][0]));
    end(&f);
}

static void nothing_runs_here_without_a_free_runner(void)
{
    struct fixture f;
    begin_one(&f, 1, 2);
    atomic_store(&f.may_end, false);
    f.slow[0][1].may_end = NULL;
    push(&f, 0, 0);
    ifd_pool_wake(f.pool);
    wait_inside(&f, 1);
    EXPECT(ifd_lane_run_here(f.lane[0], &f.job[0][1])); /* the second */
    atomic_store(&f.may_end, true);
    end(&f);

    begin_one(&f, 1, 1);
    atomic_store(&f.may_end, false);
    push(&f, 0, 0);
    ifd_pool_wake(f.pool);
    wait_inside(&f, 1);
    EXPECT(!ifd_lane_run_here(f.lane[0], &f.job[0][1]));
    atomic_store(&f.may_end, true);
    end(&f);
}

/* ---- batches that fail, order, probes ---- */

/* Fails every batch that holds a job of batch 7. */
static enum ifd_code fail_sevens(struct ifd_runner *self, struct ifd_job *const *job,
                                 uint32_t count, struct ifd_err *err)
{
    (void)atomic_fetch_add(&((struct slow *)self)->runs, 1);
    for (uint32_t i = 0; i < count; i++) {
        if (job[i]->batch == 7) {
            return ifd_fail(err, IFD_INVALID, "a seven");
        }
    }
    return IFD_OK;
}

static void failed_batch_fails_only_its_own_member(void)
{
    static const struct ifd_lane_options together = {
        .rules = {.is_dynamic = true, .max_batch = 100}, .priority = 1};
    struct fixture f;
    begin(&f, 1);
    add_lane(&f, 0, &together, 1);
    f.slow[0][0].base.run = fail_sevens;
    f.job[0][1].batch = 7;
    wait_until_asleep(&f, 1);
    for (int i = 0; i < 3; i++) {
        push(&f, 0, i);
    }
    ifd_pool_wake(f.pool);
    wait_finished(&f, 3);
    EXPECT_INT(f.job[0][0].code, IFD_OK);
    EXPECT_INT(f.job[0][1].code, IFD_INVALID);
    EXPECT_TEXT(f.job[0][1].err.text, "a seven");
    EXPECT_INT(f.job[0][2].code, IFD_OK);
    EXPECT_INT(atomic_load(&f.slow[0][0].runs), 4);
    end(&f);
}

static struct fixture *ordered;
static int order_seen[JOBS];

/* Whoever has job 0 is done only after another thread has run all the rest. */
static enum ifd_code run_first_last(struct ifd_runner *self, struct ifd_job *const *job,
                                    uint32_t count, struct ifd_err *err)
{
    (void)self;
    (void)count;
    (void)err;
    if (job[0] != &ordered->job[0][0]) {
        (void)atomic_fetch_add(&ordered->inside, 1);
        return IFD_OK;
    }
    wait_inside(ordered, JOBS - 1);
    return IFD_OK;
}

static void note_order(struct ifd_completion *completion)
{
    order_seen[finished++] = (int)((struct ifd_job *)completion - ordered->job[0]);
}

static void answers_keep_their_order_across_threads(void)
{
    static const struct ifd_lane_options in_order = {
        .rules = {.max_batch = 1}, .priority = 1, .in_order = true};
    struct fixture f;
    begin(&f, 2);
    add_lane(&f, 0, &in_order, 2);
    ordered = &f;
    f.slow[0][0].base.run = f.slow[0][1].base.run = run_first_last;
    for (int i = 0; i < JOBS; i++) {
        f.job[0][i].completion.fn = note_order;
        push(&f, 0, i);
    }
    ifd_pool_wake(f.pool);
    wait_finished(&f, JOBS);
    for (int i = 0; i < JOBS; i++) {
        EXPECT_INT(order_seen[i], i);
    }
    end(&f);
}

static void probe_comes_back_only_when_every_thread_has_seen_it(void)
{
    struct ifd_completion probe = {.fn = count_finished};
    struct fixture f;
    begin_one(&f, 3, 1);
    for (int round = 1; round <= 3; round++) { /* idle threads */
        ifd_pool_probe(f.pool, &probe);
        wait_finished(&f, round);
    }
    finished = 0;
    atomic_store(&f.may_end, false);
    push(&f, 0, 0);
    ifd_pool_wake(f.pool);
    wait_inside(&f, 1);
    ifd_pool_probe(f.pool, &probe);
    for (int i = 0; i < 1000; i++) { /* two of three have seen it soon, and that is not enough */
        ifd_completions_drain(&f.completions);
        (void)sched_yield();
    }
    EXPECT_INT(finished, 0);
    atomic_store(&f.may_end, true);
    wait_finished(&f, 2);           /* the job and the probe */
    ifd_pool_probe(f.pool, &probe); /* the pool ends while it is away */
    end(&f);
    EXPECT_INT(finished, 3);
}

static void missing_memory_leaves_nothing_behind(void)
{
    struct fake_clock clock;
    struct ifd_completions completions;
    fake_clock_init(&clock, 1000);
    ifd_completions_init(&completions, no_wake, NULL);
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_pool *pool = NULL;
        fail_alloc_init(&fail, k);
        const struct ifd_pool_options options = {
            .alloc = &fail.alloc, .clock = &clock.clock, .completions = &completions, .cores = 2};
        const enum ifd_code code = ifd_pool_create(&options, &pool, NULL);
        const bool refused = fail.failed;
        EXPECT_INT(code, refused ? IFD_NOMEM : IFD_OK);
        ifd_pool_destroy(pool);
        fail_alloc_finish(&fail);
        if (!refused) {
            break;
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(one_wake_is_enough_for_all_threads_and_jobs),
        T(lane_has_as_many_runs_as_runners),
        T(runs_have_a_core_each),
        T(runs_that_wait_take_no_core),
        T(destroyed_lane_finishes_its_jobs),
        T(thread_wakes_up_by_itself_when_a_batch_is_due),
        T(no_run_is_left_without_jobs_by_a_deadline),
        T(lanes_share_time_evenly),
        T(lane_of_priority_three_gets_a_third_of_the_time),
        T(share_is_one_of_time_not_of_runs),
        T(awake_thread_takes_a_job_by_itself),
        T(awake_thread_sleeps_when_nothing_came),
        T(awake_thread_ends_with_its_pool),
        T(runner_prepares_only_in_an_idle_pool),
        T(run_is_done_by_the_caller),
        T(nothing_runs_here_where_requests_wait_batch_or_keep_order),
        T(nothing_runs_here_without_a_free_runner),
        T(failed_batch_fails_only_its_own_member),
        T(answers_keep_their_order_across_threads),
        T(probe_comes_back_only_when_every_thread_has_seen_it),
        T(missing_memory_leaves_nothing_behind),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
