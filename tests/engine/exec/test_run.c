#include "engine/exec/texts.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/model.h"

#include <sched.h>
#include <string.h>

#define CHANNELS 5

struct fixture {
    struct graph_model m;
    struct ifd_tensor x, out[4]; /* of request; ask() makes x */
    struct ifd_io request;
};

static void begin(struct fixture *f, bool with_fake)
{
    const struct ifd_engine_options options = test_engine_options(with_fake);
    *f = (struct fixture){0};
    graph_model_begin(&f->m, &options, 2);
}

static void end(struct fixture *f)
{
    ifd_release_tensor(ifd_alloc_system(), f->x.data, f->x.bytes);
    graph_model_end(&f->m);
}

/* y = |x| + 1, z = exp(-|x|): free batch, two outputs. */
static void two_outputs(struct fixture *f, int64_t batch)
{
    struct ifd_graph *g = &f->m.model->graph;
    struct ifd_err err = {0};
    const float one[CHANNELS] = {1, 1, 1, 1, 1};
    const uint32_t x = test_graph_f32(g, "x", SHAPE(batch, CHANNELS));
    const uint32_t abs = test_graph_op1(g, IFD_OP_ABS, x, "abs");
    const uint32_t y = test_graph_op2(g, IFD_OP_ADD, abs,
                                      test_graph_constant(g, "one", SHAPE(CHANNELS), one), "y");
    const uint32_t z =
        test_graph_op1(g, IFD_OP_EXP, test_graph_op1(g, IFD_OP_NEG, abs, "neg"), "z");
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, (const uint32_t[]){y, z}, 2, &err), &err);
}

/* Batch not free: a reshape moves the batch to the dimension of softmax. Ports begin with 1. */
static void one_by_one(struct fixture *f)
{
    struct ifd_graph *g = &f->m.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, CHANNELS));
    const uint32_t flat = test_graph_reshape(g, x, SHAPE(CHANNELS), "flat");
    const uint32_t soft = test_graph_op1(g, IFD_OP_SOFTMAX, flat, "soft");
    test_graph_io(g, x, test_graph_reshape(g, soft, SHAPE(1, CHANNELS), "y"));
}

static void fill(struct ifd_tensor *tensor, float first)
{
    float *data = tensor->data;
    for (size_t i = 0; i < tensor->bytes / sizeof(float); i++) {
        data[i] = first - (float)i;
    }
}

static void release(struct ifd_tensor *tensor, size_t bytes)
{
    ifd_release_tensor(ifd_alloc_system(), tensor->data, bytes);
}

static float at(const struct ifd_tensor *tensor, size_t i)
{
    return ((const float *)tensor->data)[i];
}

static float magnitude(float x)
{
    return x < 0 ? -x : x;
}

/* The model of two outputs, for batches up to max_batch. */
static void begin_two(struct fixture *f, bool with_fake, uint32_t max_batch)
{
    begin(f, with_fake);
    two_outputs(f, 1);
    graph_model_plan(&f->m, max_batch);
}

/* Makes the request: batch samples of first, first - 1, …; outputs stay in the instance. */
static void ask(struct fixture *f, int64_t batch, float first)
{
    f->x = test_tensor_f32(SHAPE(batch, CHANNELS));
    fill(&f->x, first);
    f->request = (struct ifd_io){.input = &f->x, .output = f->out, .batch = batch};
}

static void run(struct fixture *f)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_instance_run(f->m.instance, &f->request, 1, &err), &err);
}

static void a_run_computes_and_leaves_results_in_the_instance(void)
{
    for (int with_fake = 0; with_fake < 2; with_fake++) {
        struct fixture f;
        begin_two(&f, with_fake == 1, 1);
        ask(&f, 1, 2);
        for (int again = 0; again < 3; again++) {
            run(&f);
            EXPECT_INT(f.out[0].bytes, CHANNELS * sizeof(float));
            EXPECT_INT(f.out[0].shape.rank, 2);
            EXPECT_INT(f.out[1].dtype, IFD_F32);
            for (size_t i = 0; i < CHANNELS; i++) {
                EXPECT_CLOSE(at(&f.out[0], i), magnitude(at(&f.x, i)) + 1, 0);
            }
            EXPECT_CLOSE(at(&f.out[1], 2), 1, 0);
        }
        end(&f);
    }
}

static void results_go_to_the_callers_memory_aligned_or_not(void)
{
    struct fixture f;
    begin_two(&f, true, 1);
    ask(&f, 1, 3);
    float odd_in[CHANNELS + 1], odd_out[CHANNELS + 1];
    struct ifd_tensor direct = test_tensor_f32(SHAPE(1, CHANNELS));
    memcpy(odd_in + 1, f.x.data, f.x.bytes);
    struct ifd_tensor odd = f.x;
    odd.data = odd_in + 1;
    odd.capacity = odd.bytes;
    f.request.input = &odd;
    f.out[0] = (struct ifd_tensor){.data = odd_out + 1, .capacity = f.x.bytes};
    f.out[1] = direct;
    run(&f);
    EXPECT(f.out[0].data == odd_out + 1 && f.out[1].data == direct.data);
    EXPECT_CLOSE(odd_out[1], 4, 0);
    EXPECT_CLOSE(at(&direct, 3), 1, 0);
    release(&direct, direct.bytes);
    end(&f);
}

static void only_padded_memory_is_worked_on_directly(void)
{
    for (int is_padded = 0; is_padded < 2; is_padded++) {
        struct fixture f;
        begin_two(&f, true, 1);
        ask(&f, 1, 1);
        struct ifd_tensor y = test_tensor_f32(SHAPE(1, CHANNELS));
        f.x.capacity = y.capacity = y.bytes + (is_padded ? IFD_TENSOR_PAD : IFD_TENSOR_PAD - 1);
        f.out[0] = y;
        run(&f);
        EXPECT_INT(f.m.instance->input[0] == f.x.data, is_padded);
        EXPECT_INT(f.m.instance->output[0] == y.data, is_padded);
        EXPECT_CLOSE(at(&y, 4), 4, 0);
        release(&y, y.bytes);
        end(&f);
    }
}

/* Runs a batch that is split over callers as counts says and checks every element. */
static void check_batch(struct fixture *f, const int64_t *counts, uint32_t callers,
                        bool bring_memory)
{
    struct ifd_tensor x[8], out[8][2];
    struct ifd_io io[8];
    struct ifd_err err = {0};
    REQUIRE(callers <= 8);
    for (uint32_t k = 0; k < callers; k++) {
        x[k] = test_tensor_f32(SHAPE(counts[k], CHANNELS));
        fill(&x[k], (float)k * 7);
        memset(out[k], 0, sizeof(out[k]));
        if (bring_memory) {
            out[k][0] = test_tensor_f32(SHAPE(counts[k], CHANNELS));
        }
        io[k] = (struct ifd_io){.input = &x[k], .output = out[k], .batch = counts[k]};
    }
    REQUIRE_OK(ifd_instance_run(f->m.instance, io, callers, &err), &err);
    for (uint32_t k = 0; k < callers; k++) {
        EXPECT_INT(out[k][0].shape.dim[0], counts[k]);
        for (size_t i = 0; i < (size_t)counts[k] * CHANNELS; i++) {
            EXPECT_CLOSE(at(&out[k][0], i), magnitude(at(&x[k], i)) + 1, 0);
            EXPECT((at(&out[k][1], i) == 1.0f) == (at(&x[k], i) == 0));
        }
        if (bring_memory) {
            release(&out[k][0], out[k][0].bytes);
        }
        release(&x[k], x[k].bytes);
    }
}

static void one_model_runs_at_every_batch_size(void)
{
    for (int64_t file_batch = 1; file_batch <= 3; file_batch += 2) {
        struct fixture f;
        begin(&f, true);
        two_outputs(&f, file_batch);
        graph_model_plan(&f.m, 70);
        EXPECT(ifd_model_info(f.m.model)->batch_is_free);
        EXPECT_INT(ifd_model_info(f.m.model)->input[0].desc.shape.dim[0], file_batch);
        for (int64_t batch = 1; batch <= 70; batch++) {
            check_batch(&f, &batch, 1, batch % 2 == 0);
        }
        end(&f);
    }
}

static void requests_share_a_run(void)
{
    struct fixture f;
    begin_two(&f, true, 40);
    check_batch(&f, (const int64_t[]){1, 2, 3}, 3, false);
    check_batch(&f, (const int64_t[]){1, 2, 3}, 3, true);
    check_batch(&f, (const int64_t[]){10, 1, 20, 5}, 4, false);
    check_batch(&f, (const int64_t[]){10, 1, 20, 5}, 4, true);
    check_batch(&f, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 33}, 8, true);
    end(&f);
}

/* The tensors still point to the results of the run before; another batch size uses that memory for
 * something else. */
static void output_tensors_may_be_used_again(void)
{
    static const int64_t batches[] = {2, 16, 1, 40, 33, 2, 20};
    struct fixture f;
    begin_two(&f, true, 40);
    for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
        release(&f.x, f.x.bytes);
        ask(&f, batches[b], 4);
        run(&f);
        for (size_t i = 0; i < (size_t)batches[b] * CHANNELS; i++) {
            EXPECT_CLOSE(at(&f.out[0], i), magnitude(at(&f.x, i)) + 1, 0);
            EXPECT((at(&f.out[1], i) == 1.0f) == (at(&f.x, i) == 0));
        }
    }
    end(&f);
}

/* The largest plan has room for all, but 20 samples run as 16 and 4. */
static void a_batch_between_two_plans_has_its_results_in_one_place(void)
{
    struct fixture f;
    begin_two(&f, true, 32);
    check_batch(&f, (const int64_t[]){20}, 1, false);
    check_batch(&f, (const int64_t[]){3, 28}, 2, false);
    end(&f);
}

/* A batch in between takes several runs, so no result shows which sizes have a plan. */
static void plans_are_for_sizes_up_to_16_and_powers_of_two_above(void)
{
    for (uint32_t i = 0; i < IFD_BATCH_DENSE; i++) {
        EXPECT_INT(ifd_batch_size(i), i + 1);
    }
    EXPECT_INT(ifd_batch_size(IFD_BATCH_DENSE), 32);
    EXPECT_INT(ifd_batch_size(IFD_BATCH_DENSE + 1), 64);
    EXPECT_INT(ifd_batch_size(IFD_BATCH_PLANS - 1), IFD_MAX_BATCH);
}

/* 16 samples take one run, 17 take two: their results have to wait in one place. */
static void only_an_instance_whose_batch_takes_several_runs_has_a_store(void)
{
    size_t bytes[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct fixture f;
        begin_two(&f, true, IFD_BATCH_DENSE + i);
        EXPECT_INT(f.m.instance->store != NULL, i);
        bytes[i] = ifd_instance_bytes(f.m.instance);
        EXPECT_INT(ifd_instance_device_bytes(f.m.instance), 0);
        end(&f);
    }
    EXPECT_INT(bytes[1] - bytes[0], 2 * 384); /* two outputs of 17 * 20 bytes, aligned */
    for (uint32_t i = 0; i < 2; i++) {
        struct fixture f;
        begin(&f, false);
        one_by_one(&f);
        graph_model_plan(&f.m, 1 + i);
        EXPECT_INT(f.m.instance->store_bytes, i * 64);
        end(&f);
    }
}

static void results_of_several_runs_count_for_the_memory_limit(void)
{
    for (size_t is_enough = 0; is_enough < 2; is_enough++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f, false);
        one_by_one(&f);
        REQUIRE_OK(test_model_build(f.m.model, &err), &err);
        f.m.model->limits.arena_bytes = 4031 + is_enough; /* 200 * 20 bytes, aligned: 4032 */
        const enum ifd_code code = ifd_instance_create(
            f.m.model, &(struct ifd_instance_options){.max_batch = 200}, &f.m.instance, &err);
        EXPECT_CODE(code, is_enough ? IFD_OK : IFD_TOO_LARGE, &err);
        if (!is_enough) {
            EXPECT_TEXT(err.text,
                        "an instance for batch 200 needs more than the limit of 4031 bytes");
        }
        end(&f);
    }
}

static void a_run_gives_its_cores_back(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin_two(&f, true, 1);
    struct ifd_cores *cores = f.m.instance->cores;
    check_batch(&f, (const int64_t[]){1}, 1, false);
    EXPECT_INT(atomic_load(&cores->busy), 0);
    EXPECT_INT(atomic_load(&cores->runs), 0);
    struct ifd_tensor out[2] = {0};
    EXPECT_CODE(
        ifd_instance_run(f.m.instance, &(struct ifd_io){.output = out, .batch = 0}, 1, &err),
        IFD_INVALID, &err);
    EXPECT_INT(atomic_load(&cores->busy), 0);
    end(&f);
}

static void begin_threads(struct fixture *f, uint32_t cores)
{
    struct ifd_err err = {0};
    begin(f, true);
    ifd_cores_init(&f->m.engine->cores, cores);
    two_outputs(f, 1);
    REQUIRE_OK(test_model_build(f->m.model, &err), &err);
    REQUIRE_OK(ifd_instance_create(f->m.model, &(struct ifd_instance_options){.threads = 2},
                                   &f->m.instance, &err),
               &err);
    ask(f, 1, 2);
}

static void instances_of_an_engine_share_its_threads(void)
{
    struct fixture f;
    struct ifd_instance *other = NULL;
    const struct ifd_instance_options options = {.threads = 2};
    begin_threads(&f, 3);
    REQUIRE_OK(ifd_instance_create(f.m.model, &options, &other, NULL), NULL);
    EXPECT(f.m.instance->team.context != NULL);
    EXPECT(f.m.instance->team.context == other->team.context);
    EXPECT_INT(f.m.engine->team->count, 3);
    EXPECT_INT(other->team.count, 2);
    ifd_instance_destroy(other);
    end(&f);
}

/* A run that found fewer free cores says nothing about the gain of more threads. */
static void a_run_counts_for_its_pace_if_it_had_the_cores_that_it_wanted(void)
{
    struct fixture f;
    begin_threads(&f, 2);
    struct ifd_cores *cores = &f.m.engine->cores;
    struct ifd_pace *pace = &f.m.instance->table[0].pace;
    pace->window_ns = UINT64_MAX;
    EXPECT_INT(ifd_pace_choose(pace), 2);
    EXPECT_INT(ifd_cores_take(cores, 1, 0), 1);
    run(&f);
    EXPECT(!pace->is_warm);
    EXPECT(atomic_load(&f.m.instance->is_alone));
    ifd_cores_give(cores, 1, 0);
    ifd_cores_init(cores, 2); /* as if that had been long ago */
    run(&f);
    EXPECT(pace->is_warm);
    EXPECT(!atomic_load(&f.m.instance->is_alone));
    EXPECT_INT(pace->runs, 0);
    run(&f);
    EXPECT_INT(pace->runs, 1);
    pace->threads = 1;
    EXPECT_INT(ifd_cores_take(cores, 1, 0), 1);
    run(&f);
    EXPECT(atomic_load(&f.m.instance->is_alone));
    EXPECT_INT(pace->runs, 2);
    ifd_cores_give(cores, 1, 0);
    EXPECT_INT(atomic_load(&cores->busy), 0);
    EXPECT_INT(atomic_load(&cores->runs), 0);
    end(&f);
}

static void a_short_run_wakes_no_helper(void)
{
    struct fixture f;
    begin_threads(&f, 2);
    struct ifd_pace *pace = &f.m.instance->table[0].pace;
    pace->window_ns = UINT64_MAX;
    for (int is_long = 0; is_long < 2; is_long++) {
        ifd_team_rest(&f.m.instance->team);
        while (!ifd_team_sleeps(&f.m.instance->team)) {
            (void)sched_yield();
        }
        pace->mean_ns = is_long ? 100001 : 100000;
        run(&f);
        EXPECT(atomic_load(&f.m.instance->is_alone) == !is_long);
    }
    end(&f);
}

static void a_run_wants_no_more_threads_than_there_are_cores(void)
{
    struct fixture f;
    begin_threads(&f, 1);
    EXPECT_INT(ifd_pace_choose(&f.m.instance->table[0].pace), 1);
    run(&f);
    EXPECT(f.m.instance->table[0].pace.is_warm);
    end(&f);
}

static void plans_of_larger_batches_share_constants(void)
{
    struct fixture f;
    begin_two(&f, true, 4);
    size_t packed = 0;
    for (int i = 0; i < 4; i++) {
        packed += f.m.model->plan[i]->executable.constant_bytes;
    }
    EXPECT_INT(packed, f.m.model->plan[0]->executable.constant_bytes);
    EXPECT(packed > 0);
    EXPECT(f.m.model->plan[4] == NULL);
    end(&f);
}

static void samples_of_other_models_run_one_by_one(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f, false);
    one_by_one(&f);
    graph_model_plan(&f.m, 3);
    const struct ifd_model_info *info = ifd_model_info(f.m.model);
    EXPECT(!info->batch_is_free);
    EXPECT(info->input[0].batched && info->output[0].batched);
    ask(&f, 3, 0);
    run(&f);
    const struct ifd_tensor *out = &f.out[0];
    EXPECT_INT(out->shape.dim[0], 3);
    for (size_t s = 0; s < 3; s++) {
        float sum = 0;
        for (size_t i = 0; i < CHANNELS; i++) {
            sum += at(out, s * CHANNELS + i);
        }
        EXPECT_CLOSE(sum, 1, 1e-5);
        EXPECT_CLOSE(at(out, s * CHANNELS), at(out, 0), 1e-6);
    }
    const struct ifd_io io[2] = {f.request, f.request};
    EXPECT_CODE(ifd_instance_run(f.m.instance, io, 2, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "2 requests in one run");
    end(&f);
}

static void a_run_allocates_nothing(void)
{
    struct fixture f;
    begin_two(&f, true, 40);
    f.m.fail.fail_at = -1;
    check_batch(&f, (const int64_t[]){1}, 1, false);
    check_batch(&f, (const int64_t[]){10, 1, 20, 5}, 4, true);
    EXPECT(!f.m.fail.failed);
    EXPECT(ifd_acquire(&f.m.fail.alloc, 1) == NULL);
    f.m.fail.fail_at = 0;
    end(&f);
}

/* A tensor of samples whose memory holds room samples; all of it is 9. */
static struct ifd_tensor roomy(int64_t samples, int64_t room)
{
    struct ifd_tensor tensor = test_tensor_f32(SHAPE(room, CHANNELS));
    float *data = tensor.data;
    for (int64_t i = 0; i < room * CHANNELS; i++) {
        data[i] = 9;
    }
    tensor.shape = SHAPE(samples, CHANNELS);
    tensor.bytes = (size_t)samples * CHANNELS * sizeof(float);
    return tensor;
}

/* The memory of each would hold the results of both. */
static void requests_that_share_a_run_touch_only_their_own_samples(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin_two(&f, true, 2);
    struct ifd_tensor x[2], out[2][2];
    struct ifd_io io[3] = {[2] = {.batch = -100}}; /* behind the last request of the run */
    for (int k = 0; k < 2; k++) {
        x[k] = roomy(1, 2);
        fill(&x[k], (float)k * 7);
        out[k][0] = roomy(1, 2);
        out[k][1] = (struct ifd_tensor){0};
        io[k] = (struct ifd_io){.input = &x[k], .output = out[k], .batch = 1};
    }
    REQUIRE_OK(ifd_instance_run(f.m.instance, io, 2, &err), &err);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < CHANNELS; i++) {
            EXPECT_CLOSE(at(&out[k][0], i), magnitude(at(&x[k], i)) + 1, 0);
            EXPECT_CLOSE(at(&out[k][0], CHANNELS + i), 9, 0);
        }
        release(&x[k], 2 * x[k].bytes);
        release(&out[k][0], 2 * out[k][0].bytes);
    }
    end(&f);
}

/* 40 samples run as 32 and 8; each part is one request. */
static void a_part_of_the_batch_that_is_one_request_is_worked_on_in_its_memory(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const int64_t counts[] = {32, 8};
    begin_two(&f, true, 40);
    struct ifd_tensor x[2], out[2][2] = {0};
    struct ifd_io io[2];
    for (int k = 0; k < 2; k++) {
        x[k] = roomy(counts[k], counts[k]);
        out[k][0] = roomy(counts[k], counts[k]);
        io[k] = (struct ifd_io){.input = &x[k], .output = out[k], .batch = counts[k]};
    }
    REQUIRE_OK(ifd_instance_run(f.m.instance, io, 2, &err), &err);
    EXPECT(f.m.instance->input[0] == x[1].data);
    EXPECT(f.m.instance->output[0] == out[1][0].data);
    for (int k = 0; k < 2; k++) {
        EXPECT_CLOSE(at(&out[k][0], (size_t)counts[k] * CHANNELS - 1), 10, 0);
        release(&x[k], x[k].bytes);
        release(&out[k][0], out[k][0].bytes);
    }
    end(&f);
}

static void a_request_without_tensors_is_refused(void)
{
    struct fixture f;
    begin_two(&f, true, 1);
    ask(&f, 1, 1);
    const struct ifd_io cases[] = {
        {.output = f.out, .batch = 1},
        {.input = &f.x, .batch = 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ifd_err err = {0};
        EXPECT_CODE(ifd_instance_run(f.m.instance, &cases[i], 1, &err), IFD_INVALID, &err);
        EXPECT_TEXT(err.text, "no tensors, expected 1 inputs and 2 outputs");
    }
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_instance_run(f.m.instance, cases, 0, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "0 requests in one run, expected 1 or more");
    end(&f);
}

static void unwanted_outputs_are_left_alone(void)
{
    const bool wanted[] = {false, true};
    struct fixture f;
    begin_two(&f, true, 1);
    ask(&f, 1, 1);
    f.request.output_wanted = wanted;
    run(&f);
    EXPECT(f.out[0].data == NULL && f.out[0].bytes == 0);
    EXPECT(f.out[1].data != NULL);
    struct ifd_tensor brought = roomy(1, 1);
    f.out[0] = brought;
    run(&f);
    EXPECT_CLOSE(at(&brought, 0), 9, 0);
    release(&brought, brought.bytes);
    end(&f);
}

static void wrong_tensors_are_refused_by_name(void)
{
    struct fixture f;
    begin_two(&f, true, 2);
    struct ifd_tensor good = test_tensor_f32(SHAPE(1, CHANNELS)), out[2] = {0}, x = good;
    const struct ifd_io io = {.input = &x, .output = out, .batch = 1};
    struct {
        struct ifd_tensor tensor;
        int64_t batch;
        const char *text;
    } cases[] = {
        {.tensor = good, .batch = 0, .text = "a batch of 0 after 0, expected 1 to 2 in all"},
        {.tensor = good, .batch = 3, .text = "a batch of 3"},
        {.tensor = good,
         .batch = 2,
         .text = "input \"x\": shape [1,5], expected [-1,5] with a batch of 2"},
        {.tensor = good, .batch = 1, .text = "type s8, expected f32"},
        {.tensor = good, .batch = 1, .text = "12 bytes (capacity 84), expected 20"},
        {.tensor = good, .batch = 1, .text = "data is missing"},
        {.tensor = good, .batch = 1, .text = "not aligned"},
    };
    cases[3].tensor.dtype = IFD_S8;
    cases[4].tensor.bytes = 12;
    cases[5].tensor.data = NULL;
    cases[6].tensor.data = (char *)good.data + 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ifd_io wrong = io;
        struct ifd_err err = {0};
        x = cases[i].tensor;
        wrong.batch = cases[i].batch;
        EXPECT_CODE(ifd_instance_run(f.m.instance, &wrong, 1, &err), IFD_INVALID, &err);
        EXPECT_HAS(err.text, cases[i].text);
        EXPECT(out[0].data == NULL);
    }
    struct ifd_err err = {0};
    float small[2];
    x = good;
    out[1] = (struct ifd_tensor){.data = small, .capacity = sizeof(small)};
    EXPECT_CODE(ifd_instance_run(f.m.instance, &io, 1, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "output \"z\": 20 bytes");
    release(&good, good.bytes);
    end(&f);
}

static void results_of_a_run_cannot_be_the_next_input_in_place(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin_two(&f, true, 1);
    ask(&f, 1, 1);
    run(&f);
    f.request.input = &f.out[0];
    EXPECT_CODE(ifd_instance_run(f.m.instance, &f.request, 1, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "instance's own memory");
    end(&f);
}

static void inputs_constants_and_twins_may_be_outputs(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    begin(&f, true);
    struct ifd_graph *g = &f.m.model->graph;
    const float data[CHANNELS] = {5, 4, 3, 2, 1};
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, CHANNELS));
    const uint32_t c = test_graph_constant(g, "c", SHAPE(1, CHANNELS), data);
    const uint32_t y = test_graph_op1(g, IFD_OP_ABS, x, "y");
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, (const uint32_t[]){x, y, c, y}, 4, &err), &err);
    graph_model_plan(&f.m, 1);
    ask(&f, 1, 2);
    run(&f);
    const struct ifd_tensor *out = f.out;
    EXPECT(out[0].data != f.x.data && out[1].data != out[3].data);
    EXPECT_BYTES(out[0].data, f.x.data, f.x.bytes);
    EXPECT_BYTES(out[2].data, data, sizeof(data));
    EXPECT_BYTES(out[3].data, out[1].data, out[1].bytes);
    EXPECT_CLOSE(at(&out[1], 4), 2, 0);
    end(&f);
}

static void profile_counts_every_step(void)
{
    struct fixture f;
    begin_two(&f, true, 2);
    ask(&f, 1, 1);
    uint64_t ns[16] = {0};
    const uint32_t steps = ifd_model_step_count(f.m.model);
    REQUIRE(steps == 4);
    run(&f);
    ifd_instance_profile(f.m.instance, true);
    run(&f);
    run(&f);
    ifd_instance_step_ns(f.m.instance, ns, steps);
    for (uint32_t i = 0; i < steps; i++) {
        struct ifd_plan_step step;
        ifd_model_step(f.m.model, i, &step);
        if (step.backend[0] == 'F') {
            EXPECT_INT(ns[i], 2); /* Fake counts its runs */
        }
    }
    const uint64_t counted = ns[0];
    ifd_instance_profile(f.m.instance, false);
    run(&f);
    ifd_instance_step_ns(f.m.instance, ns, steps);
    EXPECT_INT(ns[0], counted);
    ifd_instance_profile(f.m.instance, true);
    ifd_instance_step_ns(f.m.instance, ns, steps);
    EXPECT_INT(ns[0], 0);
    end(&f);
}

/* Fake describes no step: the last of its partition has the partition's first output. */
static void a_step_without_a_description_shows_what_its_partition_makes(void)
{
    struct fixture f;
    struct ifd_plan_step step;
    begin_two(&f, true, 1);
    REQUIRE(f.m.model->plan[0]->executable.part[0].info.step_count == 2);
    ifd_model_step(f.m.model, 0, &step);
    EXPECT_TEXT(step.step.output, "");
    EXPECT_INT(step.arena_bytes, 0);
    ifd_model_step(f.m.model, 1, &step);
    EXPECT_TEXT(step.step.name, "abs");
    EXPECT_TEXT(step.step.output, "abs");
    EXPECT_INT(step.arena_bytes, CHANNELS * sizeof(float));
    EXPECT_INT(step.partition, 0);
    ifd_model_step(f.m.model, 2, &step);
    EXPECT_INT(step.partition, 1);
    end(&f);
}

static void a_step_shows_where_in_the_arena_its_output_lies(void)
{
    struct fixture f;
    size_t largest = 0;
    begin_two(&f, false, 1);
    const struct ifd_plan *plan = &f.m.model->plan[0]->executable.plan;
    REQUIRE(plan->partition_count == ifd_model_step_count(f.m.model));
    for (uint32_t i = 0; i < plan->partition_count; i++) {
        struct ifd_plan_step step;
        ifd_model_step(f.m.model, i, &step);
        EXPECT_INT(step.arena_offset, plan->value[plan->partition[i].output[0]].offset);
        largest = step.arena_offset > largest ? step.arena_offset : largest;
    }
    EXPECT(largest > 0);
    end(&f);
}

static void random_graphs_run_as_the_interpreter_says(void)
{
    struct test_random random = {.state = 4711};
    for (int round = 0; round < 100; round++) {
        struct fixture f;
        struct ifd_err err = {0};
        begin(&f, round % 2 == 0);
        test_graph_random(&f.m.model->graph, &random, 2, CHANNELS,
                          (uint32_t)test_random_int(&random, 1, 30));
        struct ifd_tensor x[2] = {test_tensor_f32(SHAPE(2, CHANNELS)),
                                  test_tensor_f32(SHAPE(2, CHANNELS))};
        float want[3][2 * CHANNELS];
        fill(&x[0], test_random_f32(&random, -4, 9));
        fill(&x[1], test_random_f32(&random, -4, 9));
        /* Sums of the optimized graph may round differently: the interpreter gets it, too. */
        graph_model_plan(&f.m, 2);
        test_graph_interpret(&f.m.model->graph, (const void *[]){x[0].data, x[1].data},
                             (void *[]){want[0], want[1], want[2]});
        struct ifd_tensor out[3] = {0};
        const struct ifd_io io = {.input = x, .output = out, .batch = 2};
        REQUIRE_OK(ifd_instance_run(f.m.instance, &io, 1, &err), &err);
        for (uint32_t i = 0; i < ifd_model_info(f.m.model)->output_count; i++) {
            EXPECT_BYTES(out[i].data, want[i], sizeof(want[i]));
        }
        release(&x[0], x[0].bytes);
        release(&x[1], x[1].bytes);
        end(&f);
    }
}

static void a_text_that_has_no_room_says_whether_memory_or_the_limit_is_short(void)
{
    struct fail_alloc fail;
    struct ifd_text_store store;
    struct ifd_err err = {0};
    char *text = NULL;
    fail_alloc_init(&fail, 2);
    ifd_text_store_init(&store, &fail.alloc);
    REQUIRE_OK(store.base.take(&store.base, 100000, &text, &err), &err);
    EXPECT_CODE(store.base.take(&store.base, 100000, &text, &err), IFD_NOMEM, &err);
    EXPECT_CODE(store.base.take(&store.base, IFD_TEXTS_BYTES - 99999, &text, &err), IFD_TOO_LARGE,
                &err);
    REQUIRE_OK(store.base.take(&store.base, IFD_TEXTS_BYTES - 100000, &text, &err), &err);
    ifd_text_store_finish(&store);
    fail_alloc_finish(&fail);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_run_computes_and_leaves_results_in_the_instance),
        T(results_go_to_the_callers_memory_aligned_or_not),
        T(only_padded_memory_is_worked_on_directly),
        T(one_model_runs_at_every_batch_size),
        T(requests_share_a_run),
        T(output_tensors_may_be_used_again),
        T(a_batch_between_two_plans_has_its_results_in_one_place),
        T(plans_are_for_sizes_up_to_16_and_powers_of_two_above),
        T(only_an_instance_whose_batch_takes_several_runs_has_a_store),
        T(results_of_several_runs_count_for_the_memory_limit),
        T(a_run_gives_its_cores_back),
        T(instances_of_an_engine_share_its_threads),
        T(a_run_counts_for_its_pace_if_it_had_the_cores_that_it_wanted),
        T(a_short_run_wakes_no_helper),
        T(a_run_wants_no_more_threads_than_there_are_cores),
        T(plans_of_larger_batches_share_constants),
        T(samples_of_other_models_run_one_by_one),
        T(a_run_allocates_nothing),
        T(requests_that_share_a_run_touch_only_their_own_samples),
        T(a_part_of_the_batch_that_is_one_request_is_worked_on_in_its_memory),
        T(a_request_without_tensors_is_refused),
        T(unwanted_outputs_are_left_alone),
        T(wrong_tensors_are_refused_by_name),
        T(results_of_a_run_cannot_be_the_next_input_in_place),
        T(inputs_constants_and_twins_may_be_outputs),
        T(profile_counts_every_step),
        T(a_step_without_a_description_shows_what_its_partition_makes),
        T(a_step_shows_where_in_the_arena_its_output_lies),
        T(a_text_that_has_no_room_says_whether_memory_or_the_limit_is_short),
        T(random_graphs_run_as_the_interpreter_says),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
