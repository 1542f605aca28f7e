#include "server/sched/runners.h"

#include <string.h>

#include "tests/support/model.h"

#define CHANNELS 5
#define BATCH    7 /* samples of a job, at most */

struct fixture {
    struct graph_model m; /* without an instance: the runner makes it */
    struct ifd_runner *runner;
    struct ifd_tensor x, out[2];
    bool wanted[2];
    struct ifd_job job;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.wanted = {true, true}};
    graph_model_begin(&f->m, NULL, 2);
}

/* A byte for each element. */
static uint32_t greater_than_zero(struct ifd_graph *g, uint32_t x, int64_t channels)
{
    struct ifd_err err = {0};
    const float zero[1] = {0};
    const uint32_t compared[] = {x, test_graph_constant(g, "zero", SHAPE(1), zero)};
    const struct ifd_desc desc = {.dtype = IFD_BOOL, .shape = SHAPE(1, channels)};
    struct ifd_node *node = NULL;
    uint32_t result = 0;
    REQUIRE_OK(ifd_graph_add_value(g, "is_positive", &desc, &result, &err), &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_GREATER, compared, 2, &result, 1, &node, &err), &err);
    return result;
}

/* y = |x|, is_positive = x > 0 */
static void two_outputs(struct fixture *f, int64_t channels)
{
    struct ifd_graph *g = &f->m.model->graph;
    struct ifd_err err = {0};
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, channels));
    const uint32_t y = test_graph_op1(g, IFD_OP_ABS, x, "y");
    const uint32_t output[] = {y, greater_than_zero(g, x, channels)};
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, output, 2, &err), &err);
}

/* Makes the runner, and a job of the shape with elements -1, 2, -3, … */
static void build(struct fixture *f, uint32_t max_batch, struct ifd_shape shape)
{
    struct ifd_err err = {0};
    REQUIRE_OK(test_model_build(f->m.model, &err), &err);
    REQUIRE_OK(ifd_runner_engine(f->m.model, 1, max_batch, &f->m.fail.alloc, &f->runner, &err),
               &err);
    f->x = test_tensor_f32(shape);
    float *data = f->x.data;
    for (size_t i = 0; i < f->x.bytes / sizeof(float); i++) {
        data[i] = (float)(i + 1) * (i % 2 == 0 ? -1.0f : 1.0f);
    }
    f->job = (struct ifd_job){.input = &f->x,
                              .output = f->out,
                              .wanted = f->wanted,
                              .input_count = 1,
                              .output_count = ifd_model_info(f->m.model)->output_count};
}

static enum ifd_code run(struct fixture *f, struct ifd_err *err)
{
    struct ifd_job *job = &f->job;
    return f->runner->run(f->runner, &job, 1, err);
}

static void end(struct fixture *f)
{
    f->runner->destroy(f->runner);
    ifd_release_tensor(&f->m.fail.alloc, f->job.memory, f->job.memory_bytes);
    ifd_release_tensor(ifd_alloc_system(), f->x.data, f->x.bytes);
    graph_model_end(&f->m);
}

static void check_outputs(const struct fixture *f, int64_t batch)
{
    const size_t count = (size_t)batch * CHANNELS;
    for (size_t i = 0; i < 2; i++) {
        if (f->wanted[i]) {
            EXPECT_INT(f->out[i].dtype, i == 0 ? IFD_F32 : IFD_BOOL);
            EXPECT_INT(f->out[i].shape.rank, 2);
            EXPECT_INT(f->out[i].shape.dim[0], batch);
            EXPECT_INT(f->out[i].bytes, i == 0 ? count * sizeof(float) : count);
            const uint8_t *data = f->out[i].data;
            REQUIRE(data >= f->job.memory &&
                    data + f->out[i].capacity <= f->job.memory + f->job.memory_bytes);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (f->wanted[0]) {
            EXPECT_CLOSE(((const float *)f->out[0].data)[i], (double)(i + 1), 0);
        }
        if (f->wanted[1]) {
            EXPECT_INT(((const uint8_t *)f->out[1].data)[i], i % 2);
        }
    }
}

/* Aligned and padded, as the engine needs it to write without a copy; and no more than that. */
static void output_has_room_for_its_padding(void)
{
    static const struct {
        int64_t channels;
        size_t capacity;
    } of_bytes[] = {{1, 128}, {63, 128}, {64, 128}, {65, 192}};
    for (size_t i = 0; i < sizeof(of_bytes) / sizeof(of_bytes[0]); i++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        two_outputs(&f, of_bytes[i].channels);
        f.wanted[0] = false;
        build(&f, 1, SHAPE(1, of_bytes[i].channels));
        REQUIRE_OK(run(&f, &err), &err);
        EXPECT_INT(f.out[1].bytes, of_bytes[i].channels);
        EXPECT_INT(f.out[1].capacity, of_bytes[i].capacity);
        EXPECT_INT(f.job.memory_bytes, of_bytes[i].capacity);
        EXPECT(f.out[1].data == f.job.memory);
        end(&f);
    }
}

/* Whole runs and a shorter one at the end. */
static void job_beyond_the_largest_batch_runs_in_parts(void)
{
    for (uint32_t max_batch = 1; max_batch <= BATCH; max_batch++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        two_outputs(&f, CHANNELS);
        build(&f, max_batch, SHAPE(BATCH, CHANNELS));
        REQUIRE_OK(run(&f, &err), &err);
        check_outputs(&f, BATCH);
        EXPECT(f.job.computed_ns > 0);
        end(&f);
    }
}

/* What lies behind a shorter input is not read. */
static void inputs_of_a_batch_have_as_many_samples(void)
{
    for (uint32_t max_batch = 1; max_batch <= 4; max_batch += 3) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        struct ifd_graph *g = &f.m.model->graph;
        const uint32_t in[] = {test_graph_f32(g, "x", SHAPE(1, 2)),
                               test_graph_f32(g, "k", SHAPE(1, 2))};
        const uint32_t out[] = {test_graph_op1(g, IFD_OP_ABS, in[0], "y"),
                                test_graph_op1(g, IFD_OP_ABS, in[1], "z")};
        REQUIRE_OK(ifd_graph_set_io(g, in, 2, out, 2, &err), &err);
        build(&f, max_batch, SHAPE(3, 2));
        float one[2] = {1, 2};
        struct ifd_tensor input[] = {f.x,
                                     {.dtype = IFD_F32,
                                      .shape = SHAPE(1, 2),
                                      .data = one,
                                      .bytes = sizeof(one),
                                      .capacity = sizeof(one)}};
        f.job.input = input;
        f.job.input_count = 2;
        EXPECT_CODE(run(&f, &err), IFD_INVALID, &err);
        EXPECT_HAS(err.text, "input \"k\": a batch of 1, expected 3");
        end(&f);
    }
}

static void a_batch_without_samples_has_results_without_any(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    two_outputs(&f, CHANNELS);
    build(&f, 1, SHAPE(0, CHANNELS));
    REQUIRE_OK(run(&f, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        EXPECT(ifd_shape_equal(&f.out[i].shape, &SHAPE(0, CHANNELS)));
        EXPECT_INT(f.out[i].bytes, 0);
    }
    end(&f);
}

static void parts_leave_out_what_nobody_wants(void)
{
    for (int unwanted = 0; unwanted < 2; unwanted++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f);
        two_outputs(&f, CHANNELS);
        f.wanted[unwanted] = false;
        build(&f, 2, SHAPE(BATCH, CHANNELS));
        REQUIRE_OK(run(&f, &err), &err);
        check_outputs(&f, BATCH);
        EXPECT(f.out[unwanted].data == NULL);
        end(&f);
    }
}

static void batch_may_be_the_only_dimension(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    struct ifd_graph *g = &f.m.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1));
    test_graph_io(g, x, test_graph_op1(g, IFD_OP_ABS, x, "y"));
    build(&f, 2, SHAPE(BATCH));
    REQUIRE_OK(run(&f, &err), &err);
    EXPECT_INT(f.out[0].shape.dim[0], BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        EXPECT_CLOSE(((const float *)f.out[0].data)[i], (double)(i + 1), 0);
    }
    end(&f);
}

/* Softmax over dimension 0, which therefore is no batch. */
static void first_dimension_need_not_be_a_batch(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    struct ifd_graph *g = &f.m.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(CHANNELS));
    test_graph_io(g, x, test_graph_op1(g, IFD_OP_SOFTMAX, x, "y"));
    build(&f, 1, SHAPE(CHANNELS));
    REQUIRE(!ifd_model_info(f.m.model)->input[0].batched);
    REQUIRE_OK(run(&f, &err), &err);
    EXPECT_INT(f.out[0].bytes, CHANNELS * sizeof(float));
    float sum = 0;
    for (size_t i = 0; i < CHANNELS; i++) {
        sum += ((const float *)f.out[0].data)[i];
    }
    EXPECT_CLOSE(sum, 1, 1e-6);
    end(&f);
}

/* An output without elements has no memory that the engine could write to: then all results are
 * copied out of the instance, before its next run. */
static void results_in_the_instance_are_copied_into_the_job(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    struct ifd_graph *g = &f.m.model->graph;
    const uint32_t in[] = {test_graph_f32(g, "x", SHAPE(1, 2)),
                           test_graph_f32(g, "empty", SHAPE(1, 0)),
                           test_graph_f32(g, "single", SHAPE(1, 1))};
    const uint32_t out[] = {test_graph_op1(g, IFD_OP_ABS, in[0], "y"),
                            test_graph_op1(g, IFD_OP_ABS, in[1], "nothing"),
                            greater_than_zero(g, in[2], 1)};
    REQUIRE_OK(ifd_graph_set_io(g, in, 3, out, 3, &err), &err);
    build(&f, 1, SHAPE(1, 2));
    float single = 3;
    const struct ifd_tensor input[] = {
        f.x,
        {.dtype = IFD_F32, .shape = SHAPE(1, 0), .data = &single},
        {.dtype = IFD_F32, .shape = SHAPE(1, 1), .data = &single, .bytes = 4, .capacity = 4}};
    struct ifd_tensor output[3];
    f.job.input = input;
    f.job.input_count = 3;
    f.job.output = output;
    for (int again = 0; again < 2; again++) {
        f.job.wanted = (const bool[]){true, true, true};
        REQUIRE_OK(run(&f, &err), &err);
        EXPECT(output[0].data == f.job.memory);
        EXPECT(output[2].data == f.job.memory + 192);
        EXPECT_INT(f.job.memory_bytes, 320);
        for (int i = 0; i < 3; i++) {
            EXPECT_INT(output[i].bytes, i == 0 ? 8 : i == 1 ? 0 : 1);
            EXPECT_INT(output[i].capacity, i == 1 ? 64 : 128);
        }
        EXPECT_CLOSE(((const float *)output[0].data)[0], 1, 0);
        EXPECT_CLOSE(((const float *)output[0].data)[1], 2, 0);
        EXPECT_INT(((const uint8_t *)output[2].data)[0], 1);
        memset(f.job.memory, 0xaa, f.job.memory_bytes);
    }
    f.job.wanted = (const bool[]){false, true, true};
    REQUIRE_OK(run(&f, &err), &err);
    EXPECT(output[0].data == NULL);
    EXPECT(output[2].data == f.job.memory + 64);
    EXPECT_INT(((const uint8_t *)output[2].data)[0], 1);
    end(&f);
}

/* of texts: both inputs are x */
static uint32_t doubled(struct ifd_graph *g, enum ifd_op op, uint32_t x, struct ifd_shape shape)
{
    struct ifd_err err = {0};
    const uint32_t both[2] = {x, x};
    const struct ifd_desc desc = {.dtype = IFD_STR, .shape = shape};
    struct ifd_node *node = NULL;
    uint32_t result = 0;
    REQUIRE_OK(ifd_graph_add_value(g, "twice", &desc, &result, &err), &err);
    REQUIRE_OK(
        ifd_graph_add_node(g, op, both, op == IFD_OP_TEXT_CAST ? 1 : 2, &result, 1, &node, &err),
        &err);
    return result;
}

/* Elements may be one text of 4 MiB, whose copies are 512 MiB. */
static void texts_beyond_the_limit_are_refused(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    struct ifd_graph *g = &f.m.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1));
    uint32_t y = doubled(g, IFD_OP_TEXT_CAST, x, SHAPE(1));
    for (int i = 0; i < 21; i++) { /* it begins with "-1" */
        y = doubled(g, IFD_OP_TEXT_JOIN, y, SHAPE(1));
    }
    for (int64_t elements = 2; elements <= 128; elements *= 2) {
        y = doubled(g, IFD_OP_CONCAT, y, SHAPE(elements));
    }
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, &y, 1, &err), &err);
    build(&f, 1, SHAPE(1));
    EXPECT_CODE(run(&f, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "bytes of texts");
    end(&f);
}

static void measured_job_has_the_time_of_each_step(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    uint64_t step_ns[16];
    begin(&f);
    two_outputs(&f, CHANNELS);
    build(&f, BATCH, SHAPE(BATCH, CHANNELS));
    f.job.step_count = ifd_model_step_count(f.m.model);
    REQUIRE(f.job.step_count > 0 && f.job.step_count < 16);
    memset(step_ns, 0xff, sizeof(step_ns));
    f.job.step_ns = step_ns;
    REQUIRE_OK(run(&f, &err), &err);
    check_outputs(&f, BATCH);
    for (uint32_t i = 0; i < 16; i++) {
        EXPECT((step_ns[i] == UINT64_MAX) == (i >= f.job.step_count));
    }
    memset(step_ns, 0xff, sizeof(step_ns));
    f.job.step_ns = NULL; /* the next one is not measured */
    REQUIRE_OK(run(&f, &err), &err);
    EXPECT(step_ns[0] == UINT64_MAX);
    end(&f);
}

/* A team of one has nobody to wake. */
static void only_a_team_is_woken(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f);
    two_outputs(&f, CHANNELS);
    build(&f, 1, SHAPE(1, CHANNELS));
    EXPECT(!f.runner->expect && !f.runner->rest);
    EXPECT_INT(f.runner->threads, 1);
    EXPECT(f.runner->bytes > 0);
    struct ifd_runner *team = NULL;
    REQUIRE_OK(ifd_runner_engine(f.m.model, 2, 1, &f.m.fail.alloc, &team, &err), &err);
    EXPECT(team->expect && team->rest);
    EXPECT_INT(team->threads, 2);
    team->destroy(team);
    end(&f);
}

static void refused_memory_leaves_nothing_behind(void)
{
    struct fixture f;
    begin(&f);
    two_outputs(&f, CHANNELS);
    build(&f, 1, SHAPE(1, CHANNELS));
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    long k = 0;
    do {
        struct ifd_runner *runner = NULL;
        struct ifd_err err = {0};
        fail_alloc_init(&fail, ++k);
        const enum ifd_code code = ifd_runner_engine(f.m.model, 1, 1, &fail.alloc, &runner, &err);
        EXPECT_CODE(code, fail.failed ? IFD_NOMEM : IFD_OK, &err);
        if (!code) {
            runner->destroy(runner);
        }
        fail_alloc_finish(&fail);
    } while (fail.failed);
    struct ifd_runner *none = NULL;
    struct ifd_err err = {0};
    fail_alloc_init(&fail, 0);
    EXPECT_CODE(ifd_runner_engine(f.m.model, 3, 1, &fail.alloc, &none, &err), IFD_INVALID, &err);
    fail_alloc_finish(&fail);
    end(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(output_has_room_for_its_padding),
        T(job_beyond_the_largest_batch_runs_in_parts),
        T(inputs_of_a_batch_have_as_many_samples),
        T(a_batch_without_samples_has_results_without_any),
        T(parts_leave_out_what_nobody_wants),
        T(batch_may_be_the_only_dimension),
        T(first_dimension_need_not_be_a_batch),
        T(results_in_the_instance_are_copied_into_the_job),
        T(texts_beyond_the_limit_are_refused),
        T(measured_job_has_the_time_of_each_step),
        T(only_a_team_is_woken),
        T(refused_memory_leaves_nothing_behind),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
