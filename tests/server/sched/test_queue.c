#include "server/sched/queue.h"

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
    const uint32_t count = ifd_queue_choose(&f->queue, taken).take;
    ifd_queue_take(&f->queue, taken, count);
    return count;
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
    EXPECT_INT(f.queue.count, 0);
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
}

static void hurried_queue_waits_for_no_batch(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    const struct ifd_batch_rules endless = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = UINT64_MAX};
    begin(&f, &endless);
    push(&f, 0);
    push(&f, 1);
    EXPECT_INT(take(&f, taken), 0);
    f.queue.is_hurried = true;
    EXPECT_INT(take(&f, taken), 2);
    push(&f, 2);
    EXPECT_INT(take(&f, taken), 1);
}

static void queue_tells_until_when_it_waits_for_a_batch(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    const struct ifd_batch_rules patient = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = 500};
    begin(&f, &patient);
    EXPECT_INT(ifd_queue_choose(&f.queue, taken).wait_until_ns, UINT64_MAX);
    push(&f, 0);
    EXPECT_INT(ifd_queue_choose(&f.queue, taken).take, 0);
    EXPECT_INT(ifd_queue_choose(&f.queue, taken).wait_until_ns, 1500);
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
    EXPECT_INT(f.queue.count, 0);
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
}

/* Of three requests, the one in this place has another shape. */
static void push_with_odd_one(struct fixture *f, const struct ifd_batch_rules *rules,
                              struct ifd_tensor *tensor, int odd)
{
    static char byte;
    begin(f, rules);
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
    push_with_odd_one(&f, &together, tensor, 2);
    EXPECT_INT(take(&f, taken), 2);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[2]);

    push_with_odd_one(&f, &together, tensor, 1); /* it waits for a run of its own */
    REQUIRE(take(&f, taken) == 2);
    EXPECT(taken[0] == &f.job[0] && taken[1] == &f.job[2]);
    REQUIRE(take(&f, taken) == 1);
    EXPECT(taken[0] == &f.job[1]);
}

static void in_order_the_one_behind_another_shape_waits_too(void)
{
    const struct ifd_batch_rules in_order = {.is_dynamic = true, .max_batch = 8, .in_order = true};
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    struct ifd_tensor tensor[3];
    push_with_odd_one(&f, &in_order, tensor, 1);
    for (int i = 0; i < 3; i++) {
        REQUIRE(take(&f, taken) == 1);
        EXPECT(taken[0] == &f.job[i]);
    }
}

static void request_that_is_to_run_alone_waits_for_no_others(void)
{
    const struct ifd_batch_rules endless = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = UINT64_MAX};
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &endless);
    f.job[1].is_alone = true;
    push(&f, 0);
    push(&f, 1);
    REQUIRE(take(&f, taken) == 1);
    EXPECT(taken[0] == &f.job[1]);
    EXPECT_INT(take(&f, taken), 0);
}

/* The last fits the first, but lies too far behind: what is there need not wait. */
static void a_decision_looks_at_a_part_of_a_long_queue(void)
{
    enum { COUNT = 16000 };
    static struct ifd_job job[COUNT];
    static struct ifd_tensor tensor[COUNT];
    static char byte;
    const struct ifd_batch_rules endless = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = UINT64_MAX};
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &endless);
    f.queue.common.capacity = COUNT;
    for (int i = 0; i < COUNT; i++) {
        const int64_t width = i == 1 || i == COUNT - 1 ? 0 : i; /* as the first */
        tensor[i] = (struct ifd_tensor){
            .dtype = IFD_F32, .shape = {.rank = 2, .dim = {1, width}}, .data = &byte};
        job[i] = (struct ifd_job){.batch = 1, .input = &tensor[i], .input_count = 1};
        REQUIRE_OK(ifd_queue_push(&f.queue, &job[i], NULL), NULL);
    }
    REQUIRE(take(&f, taken) == 2);
    EXPECT(taken[0] == &job[0] && taken[1] == &job[1]);
    REQUIRE(take(&f, taken) == 1);
    EXPECT(taken[0] == &job[2]);
    for (int i = 3; i < COUNT - 1000; i++) {
        EXPECT(ifd_queue_remove(&f.queue, &job[i]));
    }
    EXPECT_INT(take(&f, taken), 0); /* it sees all that are left */
}

/* The first waits for its delay; two of another shape fill a batch meanwhile. */
static void a_shape_whose_batch_is_full_does_not_wait_for_another(void)
{
    const struct ifd_batch_rules pairs = {.is_dynamic = true, .max_batch = 2, .max_delay_ns = 100};
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    struct ifd_tensor tensor[3];
    push_with_odd_one(&f, &pairs, tensor, 0);
    REQUIRE(take(&f, taken) == 2);
    EXPECT(taken[0] == &f.job[1] && taken[1] == &f.job[2]);
    EXPECT_INT(take(&f, taken), 0);
    EXPECT_INT(ifd_queue_choose(&f.queue, taken).wait_until_ns, f.job[0].queued_ns + 100);
    push(&f, 1);
    fake_clock_advance(&f.clock, 100);
    push(&f, 2); /* a full batch behind it: the oldest goes first */
    REQUIRE(take(&f, taken) == 1);
    EXPECT(taken[0] == &f.job[0]);
    REQUIRE(take(&f, taken) == 2);
}

/* One that is measured, or whose loop may have to end before those of others. */
static void request_that_is_to_run_alone_shares_no_run(void)
{
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &together);
    f.job[1].is_alone = true;
    for (int i = 0; i < 4; i++) {
        push(&f, i);
    }
    EXPECT_INT(take(&f, taken), 3);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT(taken[0] == &f.job[1]);
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
    EXPECT_INT(f.queue.count, 1);
    (void)ifd_queue_clear(&f.queue);
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
}

static void closed_queue_refuses_and_gives_what_it_has(void)
{
    static const struct ifd_batch_rules endless = {
        .is_dynamic = true, .max_batch = 8, .max_delay_ns = UINT64_MAX};
    struct fixture f;
    struct ifd_job *taken[IFD_BATCH_ITEMS_MAX];
    begin(&f, &endless);
    push(&f, 0);
    f.queue.is_closed = true;
    EXPECT_INT(ifd_queue_push(&f.queue, &f.job[1], NULL), IFD_UNAVAILABLE);
    EXPECT_INT(take(&f, taken), 1);
    EXPECT_INT(take(&f, taken), 0);
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
        T(queue_tells_until_when_it_waits_for_a_batch),
        T(late_request_does_not_join_a_batch),
        T(waiting_requests_leave_together),
        T(requests_of_other_shapes_do_not_share),
        T(in_order_the_one_behind_another_shape_waits_too),
        T(request_that_is_to_run_alone_waits_for_no_others),
        T(a_decision_looks_at_a_part_of_a_long_queue),
        T(a_shape_whose_batch_is_full_does_not_wait_for_another),
        T(request_that_is_to_run_alone_shares_no_run),
        T(removed_request_never_runs),
        T(late_request_expires),
        T(late_request_is_not_run_before_it_expires),
        T(delayed_request_runs_after_all_others),
        T(closed_queue_refuses_and_gives_what_it_has),
        T(identity_returns_its_inputs),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
