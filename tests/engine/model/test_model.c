#include "engine/base/thread.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/model.h"

#include <string.h>

#define CHANNELS 8

/* A model that uses folding, identities, two backends, scratch and several outputs. All memory
 * comes from the model's arena, so any allocation may fail. */
static enum ifd_code try_op(struct ifd_graph *g, enum ifd_op op, const uint32_t *input,
                            uint32_t count, const char *name, uint32_t *ret_output,
                            struct ifd_err *err)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = SHAPE(1, CHANNELS)};
    struct ifd_node *node = NULL;
    enum ifd_code code = ifd_graph_add_value(g, name, &desc, ret_output, err);
    if (code == IFD_OK) {
        code = ifd_graph_add_node(g, op, input, count, ret_output, 1, &node, err);
    }
    return code == IFD_OK ? ifd_graph_infer_node(g, g->node_count - 1, err) : code;
}

static enum ifd_code try_graph(struct ifd_graph *g, struct ifd_err *err)
{
    static const float data[CHANNELS] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = SHAPE(1, CHANNELS)};
    const struct ifd_desc row = {.dtype = IFD_F32, .shape = SHAPE(CHANNELS)};
    uint32_t x = 0, c = 0, folded = 0, sum = 0, exp = 0, y = 0;
    enum ifd_code code = ifd_graph_add_value(g, "x", &desc, &x, err);
    if (code == IFD_OK) {
        code = ifd_graph_add_value(g, "c", &row, &c, err);
    }
    if (code == IFD_OK) {
        const struct ifd_bytes content = {.data = (const uint8_t *)data, .size = sizeof(data)};
        code = ifd_graph_set_constant(g, c, content, 0, err);
    }
    if (code == IFD_OK) {
        code = try_op(g, IFD_OP_NEG, &c, 1, "folded", &folded, err);
    }
    if (code == IFD_OK) {
        code = try_op(g, IFD_OP_ADD, (const uint32_t[]){x, folded}, 2, "sum", &sum, err);
    }
    if (code == IFD_OK) {
        code = try_op(g, IFD_OP_SOFTMAX, &sum, 1, "soft", &exp, err);
    }
    if (code == IFD_OK) {
        code = try_op(g, IFD_OP_ADD, (const uint32_t[]){exp, x}, 2, "y", &y, err);
    }
    return code == IFD_OK ? ifd_graph_set_io(g, &x, 1, (const uint32_t[]){y, exp}, 2, err) : code;
}

static enum ifd_code try_model(struct ifd_engine *engine, struct ifd_model **ret_model,
                               struct ifd_err *err)
{
    const struct ifd_model_options options = {.max_threads = 2};
    enum ifd_code code = ifd_model_create(engine, &options, ret_model, err);
    if (code == IFD_OK) {
        code = try_graph(&(*ret_model)->graph, err);
    }
    return code == IFD_OK ? test_model_build(*ret_model, err) : code;
}

struct built {
    struct ifd_engine *engine;
    struct ifd_model *model;
};

static struct built build(const struct ifd_alloc *alloc)
{
    struct built b = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(test_engine(alloc, true, &b.engine, &err), &err);
    REQUIRE_OK(try_model(b.engine, &b.model, &err), &err);
    return b;
}

static void destroy(struct built b)
{
    ifd_model_destroy(b.model);
    ifd_engine_destroy(b.engine);
}

static enum ifd_code load_and_run(const struct ifd_alloc *alloc, struct ifd_err *err)
{
    static const struct ifd_instance_options options = {.threads = 2, .max_batch = 20};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    enum ifd_code code = test_engine(alloc, true, &engine, err);
    if (code == IFD_OK) {
        code = try_model(engine, &model, err);
    }
    if (code == IFD_OK) {
        code = ifd_instance_create(model, &options, &instance, err);
    }
    if (code == IFD_OK) {
        struct ifd_tensor x = test_tensor_f32(SHAPE(1, CHANNELS)), out[2] = {0};
        memset(x.data, 0, x.bytes);
        const struct ifd_io io = {.input = &x, .output = out, .batch = 1};
        code = ifd_instance_run(instance, &io, 1, err);
        ifd_release_tensor(ifd_alloc_system(), x.data, x.bytes);
    }
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
    return code;
}

static void every_failing_allocation_is_reported_and_nothing_leaks(void)
{
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_err err = {0};
        fail_alloc_init(&fail, k);
        const enum ifd_code code = load_and_run(&fail.alloc, &err);
        fail_alloc_finish(&fail);
        if (!fail.failed) {
            EXPECT_CODE(code, IFD_OK, &err);
            EXPECT(k > 50);
            break;
        }
        EXPECT_CODE(code, IFD_NOMEM, &err);
        EXPECT(err.text[0] != '\0');
    }
}

static void a_failed_instance_leaves_a_model_that_works(void)
{
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_instance *instance = NULL;
        struct ifd_err err = {0};
        fail_alloc_init(&fail, 0);
        struct built b = build(&fail.alloc);
        fail.fail_at = atomic_load(&fail.requests) + k;
        const enum ifd_code code = ifd_instance_create(
            b.model, &(struct ifd_instance_options){.max_batch = 17}, &instance, &err);
        const bool failed = fail.failed;
        fail.fail_at = 0;
        if (code == IFD_OK) {
            ifd_instance_destroy(instance);
        }
        REQUIRE_OK(ifd_instance_create(b.model, &(struct ifd_instance_options){.max_batch = 17},
                                       &instance, &err),
                   &err);
        ifd_instance_destroy(instance);
        destroy(b);
        fail_alloc_finish(&fail);
        if (!failed) {
            EXPECT_INT(code, IFD_OK);
            break;
        }
        EXPECT_INT(code, IFD_NOMEM);
    }
}

/* ---- threads ---- */

struct runner {
    struct ifd_model *model;
    float want;
    bool ok;
};

static void run_many(void *arg)
{
    struct runner *runner = arg;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    struct ifd_tensor x = test_tensor_f32(SHAPE(3, CHANNELS)), out[2] = {0};
    for (size_t i = 0; i < 3 * CHANNELS; i++) {
        ((float *)x.data)[i] = runner->want + (float)(i % CHANNELS);
    }
    const struct ifd_io io = {.input = &x, .output = out, .batch = 3};
    runner->ok = ifd_instance_create(runner->model,
                                     &(struct ifd_instance_options){.threads = 2, .max_batch = 3},
                                     &instance, &err) == IFD_OK;
    for (int i = 0; runner->ok && i < 50; i++) {
        runner->ok = ifd_instance_run(instance, &io, 1, &err) == IFD_OK;
        /* x + (-c) is the same everywhere, so softmax gives 1/8; y = 1/8 + x. */
        const float *y = out[0].data;
        for (size_t k = 0; runner->ok && k < 3 * CHANNELS; k++) {
            const float wanted = 0.125f + ((const float *)x.data)[k];
            runner->ok = y[k] > wanted - 1e-4f && y[k] < wanted + 1e-4f;
        }
    }
    ifd_instance_destroy(instance);
    ifd_release_tensor(ifd_alloc_system(), x.data, x.bytes);
}

static void instances_of_one_model_run_at_the_same_time(void)
{
    struct built b = build(ifd_alloc_system());
    struct ifd_thread thread[4];
    struct runner runner[4];
    struct ifd_err err = {0};
    for (int i = 0; i < 4; i++) {
        runner[i] = (struct runner){.model = b.model, .want = (float)i};
        REQUIRE_OK(
            ifd_thread_start(&thread[i], "runner", run_many, &runner[i], ifd_alloc_system(), &err),
            &err);
    }
    for (int i = 0; i < 4; i++) {
        ifd_thread_join(&thread[i]);
        EXPECT(runner[i].ok);
    }
    destroy(b);
}

struct text {
    char s[8192];
    size_t size;
};

static void append(void *context, const char *chunk, size_t size)
{
    struct text *text = context;
    REQUIRE(text->size + size < sizeof(text->s));
    memcpy(text->s + text->size, chunk, size);
    text->size += size;
    text->s[text->size] = '\0';
}

/* ---- options and limits ---- */

static void unknown_backends_threads_and_batches_are_refused(void)
{
    struct built b = build(ifd_alloc_system());
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    const char *const names[] = {"CpuRef", "CpuFast"};
    const struct ifd_model_options options = {.backends = names, .backend_count = 2};
    EXPECT_CODE(ifd_model_create(b.engine, &options, &model, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "\"CpuFast\"");
    EXPECT_CODE(
        ifd_instance_create(b.model, &(struct ifd_instance_options){.threads = 3}, &instance, &err),
        IFD_INVALID, &err);
    EXPECT_HAS(err.text, "3 threads");
    EXPECT_CODE(ifd_instance_create(b.model,
                                    &(struct ifd_instance_options){.max_batch = IFD_MAX_BATCH + 1},
                                    &instance, &err),
                IFD_TOO_LARGE, &err);
    destroy(b);
}

static void models_without_batch_dimension_run_at_batch_1_only(void)
{
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(test_engine(ifd_alloc_system(), false, &engine, &err), &err);
    REQUIRE_OK(ifd_model_create(engine, &(struct ifd_model_options){0}, &model, &err), &err);
    const uint32_t x = test_graph_f32(&model->graph, "x", SHAPE(4));
    test_graph_io(&model->graph, x, test_graph_op1(&model->graph, IFD_OP_SOFTMAX, x, "y"));
    REQUIRE_OK(test_model_build(model, &err), &err);
    EXPECT(!ifd_model_info(model)->input[0].batched);
    struct text text = {0};
    REQUIRE_OK(ifd_model_dump(model, IFD_DUMP_TEXT, append, &text, &err), &err);
    EXPECT_HAS(text.s, "batch fixed: node 0 (softmax) \"y\" does not treat samples one by one");
    EXPECT_CODE(
        ifd_instance_create(model, &(struct ifd_instance_options){.max_batch = 2}, &instance, &err),
        IFD_INVALID, &err);
    EXPECT_HAS(err.text, "no batch dimension");
    REQUIRE_OK(ifd_instance_create(model, &(struct ifd_instance_options){0}, &instance, &err),
               &err);
    struct ifd_tensor in = test_tensor_f32(SHAPE(4)), out = {0};
    memset(in.data, 0, in.bytes);
    const struct ifd_io io = {.input = &in, .output = &out, .batch = 1};
    REQUIRE_OK(ifd_instance_run(instance, &io, 1, &err), &err);
    EXPECT_INT(out.shape.rank, 1);
    EXPECT_CLOSE(((const float *)out.data)[3], 0.25, 1e-6);
    ifd_release_tensor(ifd_alloc_system(), in.data, in.bytes);
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
}

static void a_dump_of_the_passes_says_what_each_did(void)
{
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_err err = {0};
    struct text text = {0};
    REQUIRE_OK(test_engine(ifd_alloc_system(), false, &engine, &err), &err);
    REQUIRE_OK(ifd_model_create(engine, &(struct ifd_model_options){0}, &model, &err), &err);
    const uint32_t x = test_graph_f32(&model->graph, "x", SHAPE(1, 4));
    const uint32_t six = test_graph_constant(&model->graph, "six", SHAPE(1), (const float[]){6});
    const uint32_t low = test_graph_op1(&model->graph, IFD_OP_RELU, x, "low");
    test_graph_io(&model->graph, x, test_graph_op2(&model->graph, IFD_OP_MINIMUM, low, six, "y"));
    REQUIRE_OK(test_model_build(model, &err), &err);
    REQUIRE_OK(ifd_model_dump(model, IFD_DUMP_PASSES, append, &text, &err), &err);
    EXPECT_HAS(text.s, "pass fold_constants: nothing to do\n");
    EXPECT_HAS(text.s, "pass fuse_clamp: 1 changes, 2 nodes to 1: minimum 1 fewer, relu 1 fewer, "
                       "clamp 1 more\n");
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
}

static void the_arena_limit_is_kept_for_large_batches(void)
{
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    const struct ifd_model_options options = {.limits = {.arena_bytes = 100000}};
    REQUIRE_OK(test_engine(ifd_alloc_system(), false, &engine, &err), &err);
    REQUIRE_OK(ifd_model_create(engine, &options, &model, &err), &err);
    REQUIRE_OK(try_graph(&model->graph, &err), &err);
    REQUIRE_OK(test_model_build(model, &err), &err);
    EXPECT_CODE(ifd_instance_create(model, &(struct ifd_instance_options){.max_batch = 4096},
                                    &instance, &err),
                IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "100000 bytes");
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
}

/* Boxes or points, not samples. */
static void a_first_dimension_beyond_any_batch_stays_fixed(void)
{
    const struct ifd_desc points = {.dtype = IFD_F32, .shape = SHAPE(IFD_MAX_BATCH + 1, 1)};
    const struct ifd_model_options options = {.max_threads = 1};
    struct ifd_instance_options one = {.max_batch = 1};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    uint32_t x = 0, y = 0;
    REQUIRE_OK(test_engine(ifd_alloc_system(), false, &engine, &err), &err);
    REQUIRE_OK(ifd_model_create(engine, &options, &model, &err), &err);
    struct ifd_graph *g = &model->graph;
    REQUIRE_OK(ifd_graph_add_value(g, "x", &points, &x, &err), &err);
    REQUIRE_OK(try_op(g, IFD_OP_NEG, &x, 1, "y", &y, &err), &err);
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, &y, 1, &err), &err);
    REQUIRE_OK(test_model_build(model, &err), &err);
    EXPECT(!ifd_model_info(model)->batch_is_free && !ifd_model_info(model)->input[0].batched);
    EXPECT_HAS(model->batch_why_not.text, "input \"x\" begins with 4097, a batch has 4096");
    REQUIRE_OK(ifd_instance_create(model, &one, &instance, &err), &err);
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
}

/* ---- looking inside ---- */

static void info_names_ports_steps_and_memory(void)
{
    struct built b = build(ifd_alloc_system());
    const struct ifd_model_info *info = ifd_model_info(b.model);
    EXPECT_TEXT(info->format, "test");
    EXPECT_INT(info->input_count, 1);
    EXPECT_INT(info->output_count, 2);
    EXPECT_TEXT(info->input[0].name, "x");
    EXPECT_TEXT(info->output[1].name, "soft");
    EXPECT(info->batch_is_free);
    EXPECT_INT(info->node_count, 3);
    EXPECT_INT(info->step_count, 3);
    EXPECT(info->arena_bytes > 0);
    struct ifd_plan_step step;
    ifd_model_step(b.model, 1, &step);
    EXPECT_TEXT(step.backend, "CpuRef");
    EXPECT_TEXT(step.step.name, "softmax");
    EXPECT_TEXT(step.step.output, "soft");
    EXPECT_INT(step.arena_bytes, CHANNELS * sizeof(float));
    ifd_model_step(b.model, 0, &step);
    EXPECT_TEXT(step.backend, "Fake");
    EXPECT_TEXT(step.step.name, "add");
    destroy(b);
}

/* x → abs → boxes of a detection, whose scores and anchors are constants. */
static void detection_graph(struct ifd_graph *g)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const struct ifd_desc f32 = {.dtype = IFD_F32};
    struct ifd_node *node = NULL;
    struct ifd_err err = {0};
    uint32_t out[4];
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, 2, 4));
    const uint32_t in[3] = {test_graph_op1(g, IFD_OP_ABS, x, "boxes"),
                            test_graph_constant(g, "scores", SHAPE(1, 2, 2), ones),
                            test_graph_constant(g, "anchors", SHAPE(2, 4), ones)};
    for (int i = 0; i < 4; i++) {
        REQUIRE_OK(ifd_graph_add_value(g, "found", &f32, &out[i], &err), &err);
    }
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_DETECTION_POSTPROCESS, in, 3, out, 4, &node, &err),
               &err);
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, out, 4, &err), &err);
}

static void what_ends_in_a_decision_is_computed_exactly(void)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct ifd_model_options options = {0};
        struct ifd_engine *engine = NULL;
        struct ifd_model *model = NULL;
        struct ifd_err err = {0};
        REQUIRE_OK(test_engine(ifd_alloc_system(), true, &engine, &err), &err);
        REQUIRE_OK(ifd_model_create(engine, &options, &model, &err), &err);
        if (kind == 0) {
            detection_graph(&model->graph);
        } else {
            REQUIRE_OK(try_graph(&model->graph, &err), &err);
        }
        REQUIRE_OK(test_model_build(model, &err), &err);
        EXPECT_INT(ifd_model_info(model)->exact, kind == 0);
        ifd_model_destroy(model);
        ifd_engine_destroy(engine);
    }
}

static void dumps_show_graph_passes_plan_and_memory(void)
{
    struct built b = build(ifd_alloc_system());
    struct text text = {0}, json = {0}, dot = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_model_dump(b.model, IFD_DUMP_TEXT, append, &text, &err), &err);
    EXPECT_HAS(text.s, "softmax");
    EXPECT_HAS(text.s, "pass fold_constants: 1 changes, 4 nodes to 3");
    EXPECT_HAS(text.s, "step 1 partition 1 on CpuRef: softmax [reference] => \"soft\"");
    EXPECT_HAS(text.s, "\narena ");
    REQUIRE_OK(ifd_model_dump(b.model, IFD_DUMP_JSON, append, &json, &err), &err);
    EXPECT_HAS(json.s, "\"backend\":\"Fake\"");
    EXPECT_HAS(text.s, "\nprecision f32\n");
    EXPECT_HAS(json.s, "\"batch_is_free\":true,\"batch_why_not\":\"\"");
    EXPECT_HAS(json.s, "\"precision\":\"f32\",\"precision_why_not\":\"\",\"taken_back\":\"\"}");
    REQUIRE_OK(ifd_model_dump(b.model, IFD_DUMP_DOT, append, &dot, &err), &err);
    EXPECT_HAS(dot.s, "digraph");
    EXPECT_CODE(ifd_model_dump(b.model, (enum ifd_dump_format)9, append, &dot, &err), IFD_INVALID,
                &err);
    destroy(b);
}

static void engines_name_their_backends(void)
{
    struct ifd_engine *engine = NULL;
    struct ifd_backend_info info = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(test_engine(NULL, true, &engine, &err), &err);
    EXPECT_INT(ifd_engine_backend_count(engine), 2);
    ifd_engine_backend_info(engine, 1, &info);
    EXPECT_TEXT(info.name, "CpuRef");
    EXPECT(info.available);
    EXPECT(ifd_engine_cpu(engine)->cores >= 1);
    ifd_engine_destroy(engine);
    EXPECT_CODE(ifd_engine_create(&(struct ifd_engine_options){0}, &engine, &err), IFD_INVALID,
                &err);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_failing_allocation_is_reported_and_nothing_leaks),
        T(a_failed_instance_leaves_a_model_that_works),
        T(instances_of_one_model_run_at_the_same_time),
        T(unknown_backends_threads_and_batches_are_refused),
        T(models_without_batch_dimension_run_at_batch_1_only),
        T(a_dump_of_the_passes_says_what_each_did),
        T(the_arena_limit_is_kept_for_large_batches),
        T(a_first_dimension_beyond_any_batch_stays_fixed),
        T(info_names_ports_steps_and_memory),
        T(what_ends_in_a_decision_is_computed_exactly),
        T(dumps_show_graph_passes_plan_and_memory),
        T(engines_name_their_backends),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
