#include "server/sched/queue.h"

#include <sched.h>

#include "server/sched/runners.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

#define CAPACITY 4

struct fixture {
    struct fake_clock clock;
    struct ifd_queue queue;
    struct ifd_job job[CAPACITY + 1];
};

static void begin(struct fixture *f, const struct ifd_batch_rules *rules)
{
    *f = (struct fixture){0};
    fake_clock_init(&f->clock, 1000);
    ifd_queue_init(&f->queue, rules, CAPACITY, &f->clock.clock);
    for (int i = 0; i <= CAPACITY; i++) {
        f->job[i].batch = 1;
    }
}

static void push(struct fixture *f, int job)
{
    REQUIRE_OK(ifd_queue_push(&f->queue, &f->job[job], NULL), NULL);
}

static uint32_t take(struct fixture *f, struct ifd_job **taken)
{
    uint64_t seen = 0;
    return ifd_queue_take(&f->queue, taken, &seen);
}

static const struct ifd_batch_rules alone = {.max_batch = 1};
static const struct ifd_batch_rules together = {.is_dynamic = true, .max_batch = 8};

static void full_queue_refuses_with_the_number(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f, &alone);
    for (int i = 0; i < CAPACITY; i++) {
        REQUIRE_OK(ifd_queue_push(&f.queue, &f.job[i], &err), &err);
    }
    EXPECT_INT(ifd_queue_push(&f.queue, &f.job[CAPACITY], &err), IFD_BUSY);
    EXPECT_HAS(err.text, "4 requests");
    EXPECT(ifd_queue_clear(&f.queue) == &f.job[0]);
    ifd_queue_finish(&f.queue);
}

static void level_with_a_bound_of_its_own_is_counted_by_itself(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    struct ifd_queue_bound bound = {.capacity = 1};
    struct ifd_job other[2] = {{.level = 1, .bound = &bound, .batch = 1},
                               {.level = 1, .bound = &bound, .batch = 1}};
    begin(&f, &alone);
    REQUIRE_OK(ifd_queue_push(&f.queue, &other[0], &err), &err);
    EXPECT_INT(ifd_queue_push(&f.queue, &other[1], &err), IFD_BUSY);
    EXPECT_HAS(err.text, "1 requests");
    for (int i = 0; i < CAPACITY; i++) { /* the others' bound does not change */
        REQUIRE_OK(ifd_queue_push(&f.queue, &f.job[i], &err), &err);
    }
    EXPECT_INT(ifd_queue_push(&f.queue, &f.job[CAPACITY], &err), IFD_BUSY);
    EXPECT(ifd_queue_remove(&f.queue, &other[0]));
    REQUIRE_OK(ifd_queue_push(&f.queue, &other[1], &err), &err);
    for (int i = 0; i < CAPACITY; i++) {
        EXPECT_INT(take(&f, taken), 1);
    }
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &other[1]);
    EXPECT_INT(bound.count, 0);
    ifd_queue_finish(&f.queue);
}

static void requests_leave_in_order_of_level_then_arrival(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &alone);
    f.job[0].level = 1;
    f.job[2].level = 1;
    for (int i = 0; i < CAPACITY; i++) {
        push(&f, i);
    }
    static const int want[] = {1, 3, 0, 2};
    for (int i = 0; i < CAPACITY; i++) {
        EXPECT_INT(take(&f, taken), 1);
        EXPECT(taken[0] == &f.job[want[i]]);
    }
    EXPECT_INT(ifd_queue_count(&f.queue), 0);
    ifd_queue_finish(&f.queue);
}

static void many_levels_are_kept_apart(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    static const uint32_t level[CAPACITY] = {4000000000u, 20, 21, 20};
    static const int want[] = {1, 3, 2, 0};
    begin(&f, &alone);
    for (int i = 0; i < CAPACITY; i++) {
        f.job[i].level = level[i];
        push(&f, i);
    }
    for (int i = 0; i < CAPACITY; i++) {
        EXPECT_INT(take(&f, taken), 1);
        EXPECT(taken[0] == &f.job[want[i]]);
        EXPECT_INT(taken[0]->ticket, i);
    }
    ifd_queue_finish(&f.queue);
}

static void urgent_requests_lead_the_batch(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    const struct ifd_batch_rules pairs = {.is_dynamic = true, .max_batch = 2};
    begin(&f, &pairs);
    f.job[0].level = f.job[1].level = 1;
    for (int i = 0; i < CAPACITY; i++) {
        push(&f, i);
    }
    EXPECT_INT(take(&f, taken), 2);
    EXPECT(taken[0] == &f.job[2] && taken[1] == &f.job[3]);
    EXPECT_INT(take(&f, taken), 2);
    EXPECT(taken[0] == &f.job[0] && taken[1] == &f.job[1]);
    ifd_queue_finish(&f.queue);
}

static void patient_queue_gives_what_it_has_when_the_delay_is_over(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    const struct ifd_batch_rules patient = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = 500};
    begin(&f, &patient);
    push(&f, 0);
    fake_clock_advance(&f.clock, 499);
    push(&f, 1);
    fake_clock_advance(&f.clock, 1);
    EXPECT_INT(take(&f, taken), 2);
    ifd_queue_finish(&f.queue);
}

static void take_there(void *arg)
{
    struct fixture *f = arg;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    EXPECT_INT(take(f, taken), 2);
}

/* A taker that waits for a batch leaves when the queue is hurried; later ones do not wait. */
static void hurried_queue_waits_for_no_batch(void)
{
    struct fixture f;
    struct ifd_thread thread;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    const struct ifd_batch_rules endless = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = UINT64_MAX};
    begin(&f, &endless);
    push(&f, 0);
    push(&f, 1);
    REQUIRE_OK(ifd_thread_start(&thread, "taker", take_there, &f, ifd_alloc_system(), NULL), NULL);
    for (bool is_asleep = false; !is_asleep;) {
        ifd_mutex_lock(&f.queue.mutex);
        is_asleep = f.queue.sleepers == 1;
        ifd_mutex_unlock(&f.queue.mutex);
        (void)sched_yield();
    }
    ifd_queue_hurry(&f.queue);
    ifd_thread_join(&thread);
    push(&f, 2);
    EXPECT_INT(take(&f, taken), 1);
    ifd_queue_finish(&f.queue);
}

static void late_request_does_not_join_a_batch(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &together);
    f.job[1].deadline_ns = 5000;
    for (int i = 0; i < 3; i++) {
        push(&f, i);
    }
    fake_clock_advance(&f.clock, 4000);
    EXPECT_INT(take(&f, taken), 2);
    EXPECT(taken[0] == &f.job[0] && taken[1] == &f.job[2]);
    EXPECT(ifd_queue_expire(&f.queue) == &f.job[1]);
    EXPECT_INT(ifd_queue_count(&f.queue), 0);
    ifd_queue_finish(&f.queue);
}

static void waiting_requests_leave_together(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &together);
    for (int i = 0; i < 3; i++) {
        push(&f, i);
    }
    EXPECT_INT(take(&f, taken), 3);
    EXPECT(taken[0] == &f.job[0] && taken[2] == &f.job[2]);
    ifd_queue_finish(&f.queue);
}

/* Of three requests, the one in this place has another shape. */
static void push_with_odd_one(struct fixture *f, struct ifd_tensor *tensor, int odd)
{
    static char byte;
    begin(f, &together);
    for (int i = 0; i < 3; i++) {
        tensor[i] = (struct ifd_tensor){.dtype = IFD_F32,
                                        .shape = {.rank = 2, .dim = {i + 1, i == odd ? 17 : 16}}};
        tensor[i].data = &byte;
        f->job[i].input = &tensor[i];
        f->job[i].input_count = 1;
        push(f, i);
    }
}

static void requests_of_other_shapes_do_not_share(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    struct ifd_tensor tensor[3];
    push_with_odd_one(&f, tensor, 2);
    EXPECT_INT(take(&f, taken), 2);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[2]);
    ifd_queue_finish(&f.queue);

    push_with_odd_one(&f, tensor, 1); /* the one behind it waits, too: nobody overtakes */
    for (int i = 0; i < 3; i++) {
        REQUIRE(take(&f, taken) == 1); /* an empty queue would be waited for */
        EXPECT(taken[0] == &f.job[i]);
    }
    ifd_queue_finish(&f.queue);
}

static void removed_request_never_runs(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &alone);
    push(&f, 0);
    push(&f, 1);
    EXPECT(ifd_queue_remove(&f.queue, &f.job[0]));
    EXPECT(!ifd_queue_remove(&f.queue, &f.job[0]));
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[1]);
    EXPECT(!ifd_queue_remove(&f.queue, &f.job[1]));
    ifd_queue_finish(&f.queue);
}

static void late_request_expires(void)
{
    struct fixture f;
    begin(&f, &alone);
    f.job[0].deadline_ns = 5000;
    push(&f, 0);
    push(&f, 1);
    EXPECT(ifd_queue_expire(&f.queue) == NULL);
    fake_clock_advance(&f.clock, 4000);
    struct ifd_job *expired = ifd_queue_expire(&f.queue);
    EXPECT(expired == &f.job[0] && expired->next == NULL);
    EXPECT_INT(ifd_queue_count(&f.queue), 1);
    (void)ifd_queue_clear(&f.queue);
    ifd_queue_finish(&f.queue);
}

static void late_request_is_not_run_before_it_expires(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &alone);
    f.job[0].deadline_ns = 5000;
    push(&f, 0);
    push(&f, 1);
    fake_clock_advance(&f.clock, 4000);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[1]);
    (void)ifd_queue_clear(&f.queue);
    ifd_queue_finish(&f.queue);
}

static void delayed_request_runs_after_all_others(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &alone);
    f.job[0].deadline_ns = 5000;
    f.job[0].lower_at_deadline = true;
    f.job[1].level = 3;
    push(&f, 0);
    push(&f, 1);
    fake_clock_advance(&f.clock, 4000);
    EXPECT(ifd_queue_expire(&f.queue) == NULL);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[1]);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[0]);
    ifd_queue_finish(&f.queue);
}

static void closed_queue_refuses_and_ends_its_takers(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &alone);
    push(&f, 0);
    ifd_queue_close(&f.queue);
    EXPECT_INT(ifd_queue_push(&f.queue, &f.job[1], NULL), IFD_UNAVAILABLE);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT_INT(take(&f, taken), 0);
    ifd_queue_finish(&f.queue);
}

/* ---- with workers ---- */

struct failing {
    struct ifd_runner base;
    uint32_t runs;
};

/* Fails every batch that holds a job of batch 7. */
static enum ifd_code fail_sevens(struct ifd_runner *self, struct ifd_job *const *job,
                                 uint32_t count, struct ifd_err *err)
{
    ((struct failing *)self)->runs++;
    for (uint32_t i = 0; i < count; i++) {
        if (job[i]->batch == 7) {
            return ifd_fail(err, IFD_INVALID, "a seven");
        }
    }
    return IFD_OK;
}

static void keep(struct ifd_runner *self)
{
    (void)self;
}

static void no_wake(void *arg)
{
    (void)arg;
}

static int finished;

static void count_finished(struct ifd_completion *completion)
{
    (void)completion;
    finished++;
}

static void failed_batch_fails_only_its_own_member(void)
{
    struct ifd_queue queue;
    struct ifd_completions completions;
    struct ifd_workers *workers = NULL;
    struct ifd_err err = {0};
    const struct ifd_batch_rules rules = {.is_dynamic = true, .max_batch = 100};
    struct failing failing = {.base = {.run = fail_sevens, .destroy = keep}};
    struct ifd_runner *runner[] = {&failing.base};
    struct ifd_job job[3] = {{.batch = 1}, {.batch = 7}, {.batch = 2}};
    ifd_queue_init(&queue, &rules, 10, ifd_clock_system());
    ifd_completions_init(&completions, no_wake, NULL);
    for (int i = 0; i < 3; i++) {
        job[i].completion.fn = count_finished;
        REQUIRE_OK(ifd_queue_push(&queue, &job[i], &err), &err);
    }
    REQUIRE_OK(ifd_workers_create(&queue, runner, 1, false, &completions, ifd_alloc_system(),
                                  &workers, &err),
               &err);
    ifd_queue_close(&queue);
    ifd_workers_destroy(workers);
    finished = 0;
    ifd_completions_drain(&completions);
    EXPECT_INT(finished, 3);
    EXPECT_INT(job[0].code, IFD_OK);
    EXPECT_INT(job[1].code, IFD_INVALID);
    EXPECT_TEXT(job[1].err.text, "a seven");
    EXPECT_INT(job[2].code, IFD_OK);
    EXPECT_INT(failing.runs, 4);
    ifd_queue_finish(&queue);
}

#define ORDERED 20

/* Two workers: whoever has job 0 is done only after the other has run nearly all the rest. */
struct slow_first {
    struct ifd_runner base;
    atomic_int *others;
    const struct ifd_job *first;
};

static enum ifd_code run_first_last(struct ifd_runner *self, struct ifd_job *const *job,
                                    uint32_t count, struct ifd_err *err)
{
    struct slow_first *slow = (struct slow_first *)self;
    (void)count;
    (void)err;
    if (job[0] != slow->first) {
        atomic_fetch_add(slow->others, 1);
        return IFD_OK;
    }
    while (atomic_load(slow->others) < ORDERED - 1) {
        (void)sched_yield();
    }
    return IFD_OK;
}

struct ordered_job {
    struct ifd_job job;
    int number;
};

static int order_seen[ORDERED];

static void note_order(struct ifd_completion *completion)
{
    order_seen[finished++] = ((struct ordered_job *)completion)->number;
}

static void answers_keep_their_order_across_workers(void)
{
    struct ifd_queue queue;
    struct ifd_completions completions;
    struct ifd_workers *workers = NULL;
    struct ifd_err err = {0};
    atomic_int others = 0;
    struct ordered_job job[ORDERED] = {0};
    struct slow_first slow[2];
    struct ifd_runner *runner[2];
    ifd_queue_init(&queue, &alone, ORDERED, ifd_clock_system());
    ifd_completions_init(&completions, no_wake, NULL);
    for (int i = 0; i < 2; i++) {
        slow[i] = (struct slow_first){.base = {.run = run_first_last, .destroy = keep},
                                      .others = &others,
                                      .first = &job[0].job};
        runner[i] = &slow[i].base;
    }
    for (int i = 0; i < ORDERED; i++) {
        job[i].number = i;
        job[i].job.batch = 1;
        job[i].job.completion.fn = note_order;
        REQUIRE_OK(ifd_queue_push(&queue, &job[i].job, &err), &err);
    }
    REQUIRE_OK(ifd_workers_create(&queue, runner, 2, true, &completions, ifd_alloc_system(),
                                  &workers, &err),
               &err);
    ifd_queue_close(&queue);
    ifd_workers_destroy(workers);
    finished = 0;
    ifd_completions_drain(&completions);
    REQUIRE(finished == ORDERED);
    for (int i = 0; i < ORDERED; i++) {
        EXPECT_INT(order_seen[i], i);
    }
    ifd_queue_finish(&queue);
}

/* Stays in its run until it is released. */
struct stuck {
    struct ifd_runner base;
    atomic_bool has_begun, may_end;
};

static enum ifd_code run_until_let_go(struct ifd_runner *self, struct ifd_job *const *job,
                                      uint32_t count, struct ifd_err *err)
{
    struct stuck *stuck = (struct stuck *)self;
    (void)job;
    (void)count;
    (void)err;
    atomic_store(&stuck->has_begun, true);
    while (!atomic_load(&stuck->may_end)) {
        (void)sched_yield();
    }
    return IFD_OK;
}

static void probe_comes_back_only_when_every_worker_has_seen_it(void)
{
    struct ifd_queue queue;
    struct ifd_completions completions;
    struct ifd_workers *workers = NULL;
    struct ifd_err err = {0};
    struct stuck stuck = {.base = {.run = run_until_let_go, .destroy = keep}};
    struct ifd_runner *runner[] = {&stuck.base, &stuck.base, &stuck.base};
    struct ifd_job job = {.batch = 1, .completion = {.fn = count_finished}};
    struct ifd_completion probe = {.fn = count_finished};
    ifd_queue_init(&queue, &alone, 10, ifd_clock_system());
    ifd_completions_init(&completions, no_wake, NULL);
    REQUIRE_OK(ifd_workers_create(&queue, runner, 3, false, &completions, ifd_alloc_system(),
                                  &workers, &err),
               &err);
    finished = 0;
    for (int round = 1; round <= 3; round++) { /* idle workers */
        ifd_workers_probe(workers, &probe);
        while (finished < round) {
            ifd_completions_drain(&completions);
            (void)sched_yield();
        }
    }
    REQUIRE_OK(ifd_queue_push(&queue, &job, &err), &err);
    ifd_queue_wake(&queue);
    while (!atomic_load(&stuck.has_begun)) {
        (void)sched_yield();
    }
    finished = 0;
    ifd_workers_probe(workers, &probe);
    for (int i = 0; i < 1000; i++) { /* two of three have seen it soon, and that is not enough */
        ifd_completions_drain(&completions);
        (void)sched_yield();
    }
    EXPECT_INT(finished, 0);
    atomic_store(&stuck.may_end, true);
    while (finished < 2) { /* the job and the probe */
        ifd_completions_drain(&completions);
        (void)sched_yield();
    }
    ifd_workers_probe(workers, &probe); /* the queue closes while it is away */
    ifd_queue_close(&queue);
    ifd_workers_destroy(workers);
    ifd_completions_drain(&completions);
    EXPECT_INT(finished, 3);
    ifd_queue_finish(&queue);
}

static void identity_returns_its_inputs(void)
{
    struct ifd_runner *runner = NULL;
    float values[3] = {1, 2, 3};
    const struct ifd_tensor in = {.dtype = IFD_F32,
                                  .shape = {.rank = 1, .dim = {3}},
                                  .data = values,
                                  .bytes = sizeof(values)};
    struct ifd_tensor out = {0};
    struct ifd_job job = {.input = &in, .output = &out, .input_count = 1, .output_count = 1};
    struct ifd_job *jobs[] = {&job};
    REQUIRE_OK(ifd_runner_identity(0, ifd_alloc_system(), &runner, NULL), NULL);
    REQUIRE_OK(runner->run(runner, jobs, 1, NULL), NULL);
    EXPECT(out.data == values);
    EXPECT_INT(out.bytes, sizeof(values));
    runner->destroy(runner);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(full_queue_refuses_with_the_number),
        T(level_with_a_bound_of_its_own_is_counted_by_itself),
        T(requests_leave_in_order_of_level_then_arrival),
        T(many_levels_are_kept_apart),
        T(urgent_requests_lead_the_batch),
        T(patient_queue_gives_what_it_has_when_the_delay_is_over),
        T(hurried_queue_waits_for_no_batch),
        T(late_request_does_not_join_a_batch),
        T(waiting_requests_leave_together),
        T(requests_of_other_shapes_do_not_share),
        T(removed_request_never_runs),
        T(late_request_expires),
        T(late_request_is_not_run_before_it_expires),
        T(delayed_request_runs_after_all_others),
        T(closed_queue_refuses_and_ends_its_takers),
        T(failed_batch_fails_only_its_own_member),
        T(answers_keep_their_order_across_workers),
        T(probe_comes_back_only_when_every_worker_has_seen_it),
        T(identity_returns_its_inputs),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
