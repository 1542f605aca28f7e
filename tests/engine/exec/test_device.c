/* Runs that go through devices with memory of their own. */
#include "backends/cpuref/cpuref.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"

#include <stdio.h>
#include <string.h>

#define CHANNELS 5

struct fixture {
    char told[200]; /* what backend_changed said */
    struct graph_model m;
};

static void hear(void *context, const char *backend, const struct ifd_err *reason)
{
    struct fixture *f = context;
    const size_t used = strlen(f->told);
    (void)snprintf(f->told + used, sizeof(f->told) - used, "%s %s;", backend,
                   reason ? "lost" : "works");
}

/* Dev takes the operators of Fake, Dev2 none, until a test says otherwise. */
static void begin(struct fixture *f)
{
    static const struct ifd_backend *const backends[] = {&fake_device, &fake_device2,
                                                         &ifd_backend_cpuref};
    const struct ifd_engine_options options = {
        .backends = backends, .backend_count = 3, .backend_changed = hear, .backend_context = f};
    *f = (struct fixture){0};
    fake_device_state = (struct fake_device_state){0};
    fake_device_takes_all(1);
    graph_model_begin(&f->m, &options, 2);
}

static void end(struct fixture *f)
{
    graph_model_end(&f->m);
    EXPECT_INT(fake_device_state.contexts, 0);
    EXPECT_INT(fake_device_state.bound, 0);
}

/* x → abs, relu on Dev → exp on CpuRef → tanh on Dev → y, and abs is an output, too. */
static void there_and_back(struct ifd_graph *g)
{
    struct ifd_err err = {0};
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, CHANNELS));
    const uint32_t abs = test_graph_op1(g, IFD_OP_ABS, x, "abs");
    const uint32_t one = test_graph_constant(g, "one", SHAPE(CHANNELS), (float[CHANNELS]){1, 2, 3});
    const uint32_t sum = test_graph_op2(g, IFD_OP_SUB, abs, one, "sum");
    const uint32_t exp = test_graph_op1(g, IFD_OP_EXP, sum, "exp");
    const uint32_t y = test_graph_op2(g, IFD_OP_ADD, exp, sum, "y");
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, (const uint32_t[]){y, abs}, 2, &err), &err);
}

static void begin_there_and_back(struct fixture *f, uint32_t max_batch)
{
    begin(f);
    there_and_back(&f->m.model->graph);
    graph_model_plan(&f->m, max_batch);
}

static enum ifd_code run(struct fixture *f, struct ifd_tensor *x, struct ifd_tensor *out,
                         struct ifd_err *err)
{
    const struct ifd_io io = {.input = x, .output = out, .batch = x->shape.dim[0]};
    return ifd_instance_run(f->m.instance, &io, 1, err);
}

static struct ifd_tensor ask(int64_t batch, struct test_random *random)
{
    struct ifd_tensor x = test_tensor_f32(SHAPE(batch, CHANNELS));
    for (size_t i = 0; i < x.bytes / sizeof(float); i++) {
        ((float *)x.data)[i] = test_random_f32(random, -4, 4);
    }
    return x;
}

static void expect_run(struct fixture *f, int64_t batch, struct test_random *random)
{
    struct ifd_tensor x = ask(batch, random), out[2] = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(run(f, &x, out, &err), &err);
    for (int64_t b = 0; b < batch; b++) {
        float y[CHANNELS], abs[CHANNELS];
        test_graph_interpret(&f->m.model->graph, (const void *[]){(float *)x.data + b * CHANNELS},
                             (void *[]){y, abs});
        EXPECT_BYTES((float *)out[0].data + b * CHANNELS, y, sizeof(y));
        EXPECT_BYTES((float *)out[1].data + b * CHANNELS, abs, sizeof(abs));
    }
    ifd_release_tensor(ifd_alloc_system(), x.data, x.bytes);
}

static void values_cross_once_each_way_and_are_waited_for(void)
{
    struct test_random random = {.state = 1};
    struct fixture f;
    begin_there_and_back(&f, 1);
    for (int i = 0; i < 3; i++) {
        expect_run(&f, 1, &random);
    }
    /* x and exp go there; abs, sum and y come back */
    EXPECT_INT(fake_device_state.writes, 3 * 2);
    EXPECT_INT(fake_device_state.reads, 3 * 3);
    EXPECT_INT(fake_device_state.submits, 3 * 2);
    end(&f);
}

static void every_batch_size_runs_in_one_context(void)
{
    struct test_random random = {.state = 2};
    struct fixture f;
    begin_there_and_back(&f, 40);
    EXPECT_INT(fake_device_state.contexts, 1);
    for (int64_t batch = 1; batch <= 40; batch += 3) {
        expect_run(&f, batch, &random);
    }
    end(&f);
}

/* However large its tensors are: processors would compute such samples one by one. */
static void a_large_batch_goes_there_as_a_whole(void)
{
    enum { BATCH = 32, SAMPLE = 1 << 17 };
    struct ifd_err err = {0};
    struct fixture f;
    begin(&f);
    struct ifd_graph *g = &f.m.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, SAMPLE));
    const uint32_t y = test_graph_op1(g, IFD_OP_ABS, x, "y");
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, &y, 1, &err), &err);
    graph_model_plan(&f.m, BATCH);
    struct ifd_tensor in = test_tensor_f32(SHAPE(BATCH, SAMPLE)), out = {0};
    const size_t last = (size_t)BATCH * SAMPLE - 1;
    memset(in.data, 0, in.bytes);
    ((float *)in.data)[last] = -7;
    REQUIRE_OK(run(&f, &in, &out, &err), &err);
    EXPECT(((const float *)out.data)[last] == 7);
    EXPECT_INT(fake_device_state.writes, 1);
    EXPECT_INT(fake_device_state.submits, 1);
    ifd_release_tensor(ifd_alloc_system(), in.data, in.bytes);
    end(&f);
}

static void a_run_on_a_device_allocates_nothing(void)
{
    struct test_random random = {.state = 3};
    struct fixture f;
    begin_there_and_back(&f, 1);
    const long before = f.m.fail.requests;
    expect_run(&f, 1, &random);
    EXPECT_INT(f.m.fail.requests, before);
    end(&f);
}

static void copies_are_steps_with_their_bytes(void)
{
    struct fixture f;
    begin_there_and_back(&f, 1);
    uint32_t there = 0, back = 0;
    for (uint32_t i = 0; i < ifd_model_step_count(f.m.model); i++) {
        struct ifd_plan_step step;
        ifd_model_step(f.m.model, i, &step);
        there += strcmp(step.step.kernel, "host to dev, 20 bytes") == 0;
        back += strcmp(step.step.kernel, "dev to host, 20 bytes") == 0;
    }
    EXPECT_INT(there, 2);
    EXPECT_INT(back, 3);
    end(&f);
}

static void a_profile_counts_what_devices_do(void)
{
    struct test_random random = {.state = 4};
    struct fixture f;
    uint64_t ns[32] = {0};
    begin_there_and_back(&f, 1);
    const uint32_t steps = ifd_model_step_count(f.m.model);
    REQUIRE(steps <= 32);
    ifd_instance_profile(f.m.instance, true);
    expect_run(&f, 1, &random);
    ifd_instance_step_ns(f.m.instance, ns, steps);
    for (uint32_t i = 0; i < steps; i++) {
        EXPECT(ns[i] > 0);
    }
    /* A copy is timed alone: what came before it is waited for, and itself. */
    EXPECT(fake_device_state.waits >= 2 * (fake_device_state.writes + fake_device_state.reads));
    end(&f);
}

/* Fake counts its runs as a nanosecond each: the time of a partition is more. */
static void a_profile_times_steps_of_another_batch_as_one(void)
{
    struct test_random random = {.state = 4};
    struct fixture f;
    uint64_t ns[32] = {0};
    begin(&f);
    fake_device_state.merges_in_batches = true;
    there_and_back(&f.m.model->graph);
    graph_model_plan(&f.m, 2);
    REQUIRE(ifd_model_step_count(f.m.model) == 9);
    ifd_instance_profile(f.m.instance, true);
    expect_run(&f, 2, &random);
    ifd_instance_step_ns(f.m.instance, ns, 9);
    EXPECT(ns[1] > 1); /* abs, sub */
    EXPECT_INT(ns[2], 0);
    end(&f);
}

/* abs and y on Dev, sum on Dev2, exp on CpuRef: what one device makes reaches the other through the
 * host. */
static void two_devices_share_a_model(void)
{
    struct test_random random = {.state = 5};
    struct fixture f;
    begin(&f);
    fake_device_state.cost_ns[0][IFD_OP_SUB] = 0;
    fake_device_state.cost_ns[1][IFD_OP_SUB] = 1;
    there_and_back(&f.m.model->graph);
    graph_model_plan(&f.m, 1);
    EXPECT_INT(fake_device_state.contexts, 2);
    expect_run(&f, 1, &random);
    EXPECT_INT(fake_device_state.writes, 4); /* x, abs to Dev2, exp, sum to Dev */
    EXPECT_INT(fake_device_state.reads, 3);  /* abs, sum, y */
    expect_run(&f, 1, &random);
    end(&f);
}

static void random_graphs_on_devices_run_as_the_interpreter_says(void)
{
    struct test_random random = {.state = 4711};
    for (int round = 0; round < 100; round++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        test_graph_random(&f.m.model->graph, &random, 2, CHANNELS,
                          (uint32_t)test_random_int(&random, 1, 30));
        struct ifd_tensor x[2] = {ask(2, &random), ask(2, &random)};
        float want[3][2 * CHANNELS];
        graph_model_plan(&f.m, 2);
        test_graph_interpret(&f.m.model->graph, (const void *[]){x[0].data, x[1].data},
                             (void *[]){want[0], want[1], want[2]});
        struct ifd_tensor out[3] = {0};
        const struct ifd_io io = {.input = x, .output = out, .batch = 2};
        REQUIRE_OK(ifd_instance_run(f.m.instance, &io, 1, &err), &err);
        for (uint32_t i = 0; i < ifd_model_info(f.m.model)->output_count; i++) {
            EXPECT_BYTES(out[i].data, want[i], sizeof(want[i]));
        }
        ifd_release_tensor(ifd_alloc_system(), x[0].data, x[0].bytes);
        ifd_release_tensor(ifd_alloc_system(), x[1].data, x[1].bytes);
        end(&f);
    }
}

static enum ifd_code try_build(struct fixture *f, struct ifd_err *err)
{
    enum ifd_code code = test_model_build(f->m.model, err);
    if (code == IFD_OK) {
        code = ifd_instance_create(f->m.model, &(struct ifd_instance_options){.max_batch = 1},
                                   &f->m.instance, err);
    }
    return code;
}

static void an_instance_that_a_device_refuses_leaves_nothing(void)
{
    for (uint32_t k = 1;; k++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        there_and_back(&f.m.model->graph);
        fake_device_state.fails_at = k;
        fake_device_state.fails_with = IFD_NOMEM;
        const enum ifd_code code = try_build(&f, &err);
        const bool was_reached = fake_device_state.fails_at == 0;
        if (was_reached) {
            EXPECT_CODE(code, IFD_NOMEM, &err);
            EXPECT_HAS(err.text, "backend Dev: ");
            EXPECT_HAS(err.text, "failed on demand");
        }
        end(&f);
        if (!was_reached) {
            EXPECT_INT(k, 4); /* a context, two partitions */
            EXPECT_INT(code, IFD_OK);
            break;
        }
    }
}

static void no_memory_for_an_instance_leaves_nothing_on_the_device(void)
{
    for (long k = 1;; k++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        there_and_back(&f.m.model->graph);
        REQUIRE_OK(test_model_build(f.m.model, &err), &err);
        fail_alloc_arm(&f.m.fail, k, false);
        const enum ifd_code code = ifd_instance_create(
            f.m.model, &(struct ifd_instance_options){.max_batch = 2}, &f.m.instance, &err);
        const bool failed = f.m.fail.failed;
        if (failed) {
            EXPECT_CODE(code, IFD_NOMEM, &err);
        }
        end(&f);
        if (!failed) {
            EXPECT_INT(code, IFD_OK);
            break;
        }
    }
}

/* ---- lost devices ---- */

/* As if the pause were over. */
static void pass_the_pause(struct fixture *f)
{
    f->m.engine->registry.slot[0].health.retry_ns = 1;
}

static void lose(uint32_t call)
{
    fake_device_state.fails_at = call;
    fake_device_state.fails_with = IFD_UNAVAILABLE;
}

static void expect_degraded(const struct fixture *f, bool degraded, uint64_t failures)
{
    struct ifd_backend_info info;
    struct ifd_err err = {0};
    ifd_engine_backend_info(f->m.engine, 0, &info);
    EXPECT_INT(info.degraded, degraded);
    EXPECT_INT(info.failures, failures);
    EXPECT_CODE(ifd_engine_check_health(f->m.engine, &err), degraded ? IFD_UNAVAILABLE : IFD_OK,
                &err);
    if (degraded) {
        EXPECT_HAS(err.text, "backend Dev: ");
        EXPECT_HAS(err.text, "failed on demand");
    }
}

/* Whatever call loses it: write, submit, read, wait. */
static void a_run_that_loses_its_device_ends_on_the_next_backend(void)
{
    struct test_random random = {.state = 6};
    bool was_lost = true;
    uint32_t k = 0;
    while (was_lost) {
        struct fixture f;
        begin(&f);
        there_and_back(&f.m.model->graph);
        graph_model_plan(&f.m, 1);
        lose(++k);
        expect_run(&f, 1, &random);
        was_lost = fake_device_state.fails_at == 0;
        expect_degraded(&f, was_lost, was_lost ? 1 : 0);
        EXPECT_TEXT(f.told, was_lost ? "Dev lost;" : "");
        fake_device_state.fails_at = 0;
        end(&f);
    }
    EXPECT_INT(k, 2 + 2 + 3 + 2 + 1); /* writes, submits, reads, waits, and none */
}

static void a_lost_device_is_left_alone_until_its_pause_is_over(void)
{
    struct test_random random = {.state = 7};
    struct fixture f;
    begin_there_and_back(&f, 1);
    lose(1);
    expect_run(&f, 1, &random);
    EXPECT_INT(fake_device_state.contexts, 0); /* its memory went back */
    const uint32_t calls = fake_device_state.calls;
    expect_run(&f, 1, &random);
    EXPECT_INT(fake_device_state.calls, calls);
    pass_the_pause(&f);
    expect_run(&f, 1, &random);
    EXPECT(fake_device_state.calls > calls);
    expect_degraded(&f, false, 1);
    EXPECT_TEXT(f.told, "Dev lost;Dev works;");
    end(&f);
}

static void pauses_double_while_trials_fail(void)
{
    struct test_random random = {.state = 8};
    struct fixture f;
    begin_there_and_back(&f, 1);
    const struct ifd_health *health = &f.m.engine->registry.slot[0].health;
    for (uint64_t seconds = 1; seconds < 200; seconds *= 2) {
        lose(1); /* the first one in the run, the others in a trial: a context */
        expect_run(&f, 1, &random);
        EXPECT_INT(health->pause_ns, 1000000000 * (seconds < 32 ? 2 * seconds : 64));
        pass_the_pause(&f);
    }
    EXPECT_TEXT(f.told, "Dev lost;");
    expect_run(&f, 1, &random);
    EXPECT_INT(health->pause_ns, 1000000000);
    end(&f);
}

static void an_instance_begins_without_a_device_that_is_lost(void)
{
    struct test_random random = {.state = 9};
    for (uint32_t k = 1; k <= 3; k++) { /* context, two partitions */
        struct fixture f;
        begin(&f);
        there_and_back(&f.m.model->graph);
        lose(k);
        graph_model_plan(&f.m, 4);
        expect_degraded(&f, true, 1);
        expect_run(&f, 3, &random);
        pass_the_pause(&f);
        expect_run(&f, 4, &random);
        expect_degraded(&f, false, 1);
        EXPECT(fake_device_state.submits > 0);
        end(&f);
    }
}

static void constants_stay_for_the_next_backend(void)
{
    struct fixture f;
    begin(&f);
    f.m.model->releases_weights = true;
    there_and_back(&f.m.model->graph);
    graph_model_plan(&f.m, 1);
    EXPECT(!fake_device_state.may_release);
    end(&f);
}

static void without_another_backend_a_run_says_what_was_lost(void)
{
    struct test_random random = {.state = 11};
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    const uint32_t x = test_graph_f32(&f.m.model->graph, "x", SHAPE(1, CHANNELS));
    test_graph_io(&f.m.model->graph, x, test_graph_op1(&f.m.model->graph, IFD_OP_TANH, x, "y"));
    f.m.model->preference_count = 1;
    graph_model_plan(&f.m, 1);
    struct ifd_tensor in = ask(1, &random), out = {0};
    lose(1);
    for (int i = 0; i < 2; i++) { /* the second time the device is not asked */
        EXPECT_CODE(run(&f, &in, &out, &err), IFD_UNAVAILABLE, &err);
        EXPECT_HAS(err.text, "backend Dev: write failed on demand; without it: no backend takes");
    }
    pass_the_pause(&f);
    REQUIRE_OK(run(&f, &in, &out, &err), &err);
    ifd_release_tensor(ifd_alloc_system(), in.data, in.bytes);
    end(&f);
}

/* Memory is short on the device: that is no reason to give it up. */
static void another_error_of_a_device_fails_the_run_only(void)
{
    struct test_random random = {.state = 12};
    struct fixture f;
    struct ifd_err err = {0};
    begin_there_and_back(&f, 1);
    struct ifd_tensor in = ask(1, &random), out[2] = {0};
    fake_device_state.fails_at = 2;
    fake_device_state.fails_with = IFD_NOMEM;
    EXPECT_CODE(run(&f, &in, out, &err), IFD_NOMEM, &err);
    EXPECT_HAS(err.text, "backend Dev: submit failed on demand");
    expect_degraded(&f, false, 0);
    expect_run(&f, 1, &random);
    ifd_release_tensor(ifd_alloc_system(), in.data, in.bytes);
    end(&f);
}

static void a_wrong_request_is_no_fault_of_the_device(void)
{
    struct test_random random = {.state = 13};
    struct fixture f;
    struct ifd_err err = {0};
    begin_there_and_back(&f, 1);
    struct ifd_tensor in = ask(1, &random), out[2] = {0};
    in.bytes--;
    EXPECT_CODE(run(&f, &in, out, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "input \"x\"");
    expect_degraded(&f, false, 0);
    in.bytes++;
    ifd_release_tensor(ifd_alloc_system(), in.data, in.bytes);
    end(&f);
}

static void no_memory_for_the_spare_instance_fails_the_run_only(void)
{
    struct test_random random = {.state = 14};
    struct ifd_tensor in = ask(1, &random);
    bool failed = true;
    for (long k = 1; failed; k++) {
        struct fixture f;
        struct ifd_tensor out[2] = {0};
        begin(&f);
        there_and_back(&f.m.model->graph);
        graph_model_plan(&f.m, 1);
        lose(1);
        fail_alloc_arm(&f.m.fail, k, false);
        const enum ifd_code code = run(&f, &in, out, NULL);
        failed = f.m.fail.failed;
        EXPECT_INT(code, failed ? IFD_UNAVAILABLE : IFD_OK);
        fail_alloc_arm(&f.m.fail, 0, false);
        expect_run(&f, 1, &random);
        end(&f);
    }
    ifd_release_tensor(ifd_alloc_system(), in.data, in.bytes);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(values_cross_once_each_way_and_are_waited_for),
        T(every_batch_size_runs_in_one_context),
        T(a_large_batch_goes_there_as_a_whole),
        T(a_run_on_a_device_allocates_nothing),
        T(copies_are_steps_with_their_bytes),
        T(a_profile_counts_what_devices_do),
        T(a_profile_times_steps_of_another_batch_as_one),
        T(two_devices_share_a_model),
        T(random_graphs_on_devices_run_as_the_interpreter_says),
        T(an_instance_that_a_device_refuses_leaves_nothing),
        T(no_memory_for_an_instance_leaves_nothing_on_the_device),
        T(a_run_that_loses_its_device_ends_on_the_next_backend),
        T(a_lost_device_is_left_alone_until_its_pause_is_over),
        T(pauses_double_while_trials_fail),
        T(an_instance_begins_without_a_device_that_is_lost),
        T(constants_stay_for_the_next_backend),
        T(without_another_backend_a_run_says_what_was_lost),
        T(another_error_of_a_device_fails_the_run_only),
        T(a_wrong_request_is_no_fault_of_the_device),
        T(no_memory_for_the_spare_instance_fails_the_run_only),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
