#include "server/sched/worker.h"

#include <sched.h>

#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

#define JOBS 8

/* Takes per_byte_ns for each byte of input. */
struct slow {
    struct ifd_runner base;
    struct fake_clock *clock;
    uint64_t per_byte_ns;
    ifd_thread_fn during; /* called in the middle of a run */
    void *during_arg;
    uint64_t rested_ns; /* when it was told to rest */
};

struct fixture {
    struct fake_clock clock;
    struct ifd_queue queue;
    struct ifd_completions completions;
    struct ifd_workers *workers;
    struct slow slow;
    struct ifd_tensor input;
    struct ifd_job job[JOBS];
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

static enum ifd_code run_slowly(struct ifd_runner *self, struct ifd_job *const *job, uint32_t count,
                                struct ifd_err *err)
{
    struct slow *slow = (struct slow *)self;
    (void)err;
    if (slow->during) {
        slow->during(slow->during_arg);
    }
    for (uint32_t i = 0; i < count; i++) {
        fake_clock_advance(slow->clock, slow->per_byte_ns * job[i]->input[0].bytes);
    }
    return IFD_OK;
}

static void begin(struct fixture *f, const struct ifd_batch_rules *rules, uint32_t workers,
                  bool in_order)
{
    struct ifd_runner *runner[2] = {&f->slow.base, &f->slow.base};
    struct ifd_err err = {0};
    *f = (struct fixture){.input = {.bytes = 10}};
    fake_clock_init(&f->clock, 1000);
    f->slow = (struct slow){.base = {.run = run_slowly, .destroy = keep, .is_instant = true},
                            .clock = &f->clock,
                            .per_byte_ns = 1};
    ifd_queue_init(&f->queue, rules, JOBS, &f->clock.clock);
    ifd_completions_init(&f->completions, no_wake, NULL);
    for (int i = 0; i < JOBS; i++) {
        f->job[i] = (struct ifd_job){
            .completion = {.fn = count_finished}, .input = &f->input, .input_count = 1, .batch = 1};
    }
    finished = 0;
    REQUIRE_OK(ifd_workers_create(&f->queue, runner, workers, in_order, &f->completions,
                                  ifd_alloc_system(), &f->workers, &err),
               &err);
}

static void end(struct fixture *f)
{
    ifd_queue_close(&f->queue);
    ifd_workers_destroy(f->workers);
    ifd_completions_drain(&f->completions);
    ifd_queue_finish(&f->queue);
}

static void wait_until_asleep(struct fixture *f, uint32_t workers)
{
    while (!ifd_queue_is_idle(&f->queue, workers)) {
        (void)sched_yield();
    }
}

/* Has a worker run a job. */
static void run_once(struct fixture *f, struct ifd_job *job)
{
    wait_until_asleep(f, 1);
    REQUIRE_OK(ifd_queue_push(&f->queue, job, NULL), NULL);
    ifd_queue_wake(&f->queue);
    wait_until_asleep(f, 1);
    ifd_completions_drain(&f->completions);
}

static const struct ifd_batch_rules alone = {.max_batch = 1};

static void one_wake_is_enough_for_all_workers_and_jobs(void)
{
    struct fixture f;
    begin(&f, &alone, 2, false);
    f.slow.per_byte_ns = 0;
    wait_until_asleep(&f, 2);
    for (int i = 0; i < JOBS; i++) {
        REQUIRE_OK(ifd_queue_push(&f.queue, &f.job[i], NULL), NULL);
    }
    ifd_queue_wake(&f.queue);
    while (finished < JOBS) {
        ifd_completions_drain(&f.completions);
    }
    end(&f);
}

/* Nobody wakes it a second time. */
static void awake_worker_takes_a_job_by_itself(void)
{
    struct fixture f;
    begin(&f, &alone, 1, false);
    f.slow.base.is_instant = false;
    wait_until_asleep(&f, 1);
    ifd_workers_stay_awake(f.workers, UINT64_MAX);
    REQUIRE_OK(ifd_queue_push(&f.queue, &f.job[0], NULL), NULL);
    while (finished < 1) {
        ifd_completions_drain(&f.completions);
    }
    EXPECT(ifd_workers_core(f.workers) >= 0);
    end(&f);
}

static void awake_worker_sleeps_when_nothing_came(void)
{
    struct fixture f;
    begin(&f, &alone, 1, false);
    f.slow.base.is_instant = false;
    wait_until_asleep(&f, 1);
    ifd_workers_stay_awake(f.workers, ifd_now_ns(&f.clock.clock) + 100);
    while (ifd_queue_is_idle(&f.queue, 1)) {
        (void)sched_yield();
    }
    fake_clock_advance(&f.clock, 100);
    wait_until_asleep(&f, 1);
    end(&f);
}

static void awake_worker_ends_with_its_queue(void)
{
    struct fixture f;
    begin(&f, &alone, 1, false);
    f.slow.base.is_instant = false;
    wait_until_asleep(&f, 1);
    ifd_workers_stay_awake(f.workers, UINT64_MAX);
    end(&f);
}

static void instant_run_is_done_by_the_caller(void)
{
    struct fixture f;
    begin(&f, &alone, 1, false);
    f.slow.base.rest = rest;
    wait_until_asleep(&f, 1);
    uint64_t before_ns = f.clock.now_ns;
    REQUIRE(ifd_workers_run_here(f.workers, &f.job[1]));
    EXPECT_INT(f.job[1].code, IFD_OK);
    EXPECT_INT(f.job[1].queued_ns, before_ns);
    EXPECT_INT(f.job[1].started_ns, before_ns);
    EXPECT_INT(f.job[1].finished_ns, before_ns + 10);
    EXPECT_INT(f.slow.rested_ns, before_ns + 10);
    ifd_completions_drain(&f.completions);
    EXPECT_INT(finished, 0); /* the caller has it in hand */
    end(&f);
}

static void worker_that_waits_awake_is_not_passed_over(void)
{
    struct fixture f;
    begin(&f, &alone, 1, false);
    f.slow.base.is_instant = false;
    EXPECT(!ifd_workers_are_instant(f.workers));
    wait_until_asleep(&f, 1);
    ifd_workers_stay_awake(f.workers, UINT64_MAX);
    while (ifd_queue_is_idle(&f.queue, 1)) {
        (void)sched_yield();
    }
    EXPECT(!ifd_workers_run_here(f.workers, &f.job[0]));
    end(&f);
}

static void nothing_runs_here_where_requests_wait_batch_or_keep_order(void)
{
    static const struct ifd_batch_rules together = {.is_dynamic = true, .max_batch = 8};
    struct fixture f;
    begin(&f, &alone, 1, false);
    run_once(&f, &f.job[0]);
    REQUIRE_OK(ifd_queue_push(&f.queue, &f.job[0], NULL), NULL);
    EXPECT(!ifd_workers_run_here(f.workers, &f.job[1]));
    end(&f);

    begin(&f, &alone, 1, true);
    run_once(&f, &f.job[0]);
    EXPECT(!ifd_workers_run_here(f.workers, &f.job[1]));
    end(&f);

    begin(&f, &together, 1, false);
    REQUIRE_OK(ifd_queue_push(&f.queue, &f.job[0], NULL), NULL);
    ifd_queue_wake(&f.queue);
    while (finished < 1) {
        ifd_completions_drain(&f.completions);
    }
    EXPECT(!ifd_workers_run_here(f.workers, &f.job[1]));
    end(&f);
}

static void ask_again(void *arg)
{
    struct fixture *f = arg;
    EXPECT(!ifd_workers_run_here(f->workers, &f->job[1]));
}

static void nothing_runs_here_while_a_worker_is_at_work(void)
{
    struct fixture f;
    begin(&f, &alone, 1, false);
    run_once(&f, &f.job[0]);
    f.slow.during = ask_again; /* on the worker's thread: it is not asleep */
    f.slow.during_arg = &f;
    run_once(&f, &f.job[0]);
    end(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(one_wake_is_enough_for_all_workers_and_jobs),
        T(awake_worker_takes_a_job_by_itself),
        T(awake_worker_sleeps_when_nothing_came),
        T(awake_worker_ends_with_its_queue),
        T(instant_run_is_done_by_the_caller),
        T(worker_that_waits_awake_is_not_passed_over),
        T(nothing_runs_here_where_requests_wait_batch_or_keep_order),
        T(nothing_runs_here_while_a_worker_is_at_work),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
