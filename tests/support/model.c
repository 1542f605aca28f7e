/* Models of hand-built graphs. */
#include "tests/support/model.h"

#include "backends/cpuref/cpuref.h"
#include "engine/ir/shape.h"
#include "tests/support/fake_backend.h"

#include <stdio.h>
#include <string.h>

struct ifd_engine_options test_engine_options(bool with_fake)
{
    static const struct ifd_backend *const backends[] = {&fake_backend, &ifd_backend_cpuref};
    return (struct ifd_engine_options){.backends = backends + (with_fake ? 0 : 1),
                                       .backend_count = with_fake ? 2 : 1};
}

enum ifd_code test_engine(const struct ifd_alloc *alloc, bool with_fake,
                          struct ifd_engine **ret_engine, struct ifd_err *err)
{
    struct ifd_engine_options options = test_engine_options(with_fake);
    options.alloc = alloc;
    return ifd_engine_create(&options, ret_engine, err);
}

static struct ifd_port *take_ports(struct ifd_model *model, const uint32_t *value, uint32_t count)
{
    struct ifd_port *port = ifd_arena_take_array(&model->arena, count, sizeof(*port));
    for (uint32_t i = 0; port && i < count; i++) {
        port[i].name = model->graph.value[value[i]].name;
    }
    return port;
}

enum ifd_code test_model_build(struct ifd_model *model, struct ifd_err *err)
{
    const struct ifd_graph *graph = &model->graph;
    const struct ifd_parsed parsed = {.format = "test",
                                      .input = take_ports(model, graph->input, graph->input_count),
                                      .output =
                                          take_ports(model, graph->output, graph->output_count)};
    if (!parsed.input || !parsed.output) {
        return ifd_arena_fail(&model->arena, 0, err);
    }
    return ifd_model_build(model, &parsed, err);
}

void test_engine_set_cpu(struct ifd_engine *engine, const struct ifd_cpu *cpu)
{
    engine->registry.host.cpu = *cpu;
    for (uint32_t i = 0; i < engine->registry.count; i++) {
        engine->registry.slot[i].host.cpu = *cpu;
    }
}

void graph_model_begin(struct graph_model *m, const struct ifd_engine_options *options,
                       uint32_t max_threads)
{
    struct ifd_engine_options engine = options ? *options : test_engine_options(false);
    struct ifd_err err = {0};
    *m = (struct graph_model){0};
    fail_alloc_init(&m->fail, 0);
    engine.alloc = &m->fail.alloc;
    REQUIRE_OK(ifd_engine_create(&engine, &m->engine, &err), &err);
    REQUIRE_OK(ifd_model_create(m->engine, &(struct ifd_model_options){.max_threads = max_threads},
                                &m->model, &err),
               &err);
}

void graph_model_plan(struct graph_model *m, uint32_t max_batch)
{
    struct ifd_err err = {0};
    REQUIRE_OK(test_model_build(m->model, &err), &err);
    REQUIRE_OK(ifd_instance_create(m->model, &(struct ifd_instance_options){.max_batch = max_batch},
                                   &m->instance, &err),
               &err);
}

void graph_model_end(struct graph_model *m)
{
    ifd_instance_destroy(m->instance);
    ifd_model_destroy(m->model);
    ifd_engine_destroy(m->engine);
    fail_alloc_finish(&m->fail);
}

struct test_run test_run_open(const struct test_run_options *options)
{
    struct test_run run = {0};
    struct ifd_err err = {0};
    struct ifd_engine_options engine = options->engine;
    const struct ifd_backend *const backends[] = {options->backend, &ifd_backend_cpuref};
    engine.alloc = ifd_alloc_system();
    engine.backends = backends;
    engine.backend_count = options->falls_back ? 2 : 1;
    REQUIRE_OK(ifd_engine_create(&engine, &run.engine, &err), &err);
    if (options->l2_bytes > 0) {
        struct ifd_cpu cpu = run.engine->registry.host.cpu;
        cpu.l2_bytes = options->l2_bytes;
        cpu.l3_bytes = options->l3_bytes;
        test_engine_set_cpu(run.engine, &cpu);
    }
    REQUIRE_OK(ifd_model_create(run.engine, &options->model, &run.model, &err), &err);
    return run;
}

struct test_run test_run_open_device(const struct test_run_options *options)
{
    struct test_run run = test_run_open(options);
    struct ifd_backend_info info;
    ifd_engine_backend_info(run.engine, 0, &info);
    if (!info.available) {
        char reason[IFD_ERR_TEXT_BYTES];
        (void)snprintf(reason, sizeof(reason), "%s", info.reason);
        test_run_close(&run);
        test_skip(reason);
    }
    return run;
}

void test_run_input(struct test_run *run, uint32_t batch)
{
    const struct ifd_graph *graph = &run->model->graph;
    struct ifd_desc desc = graph->value[graph->input[0]].desc;
    if (batch > 0) {
        desc.shape.dim[0] = batch;
    }
    run->in = (struct ifd_tensor){.dtype = desc.dtype, .shape = desc.shape};
    REQUIRE(ifd_desc_bytes(&desc, &run->in.bytes));
    run->in.capacity = run->in.bytes + IFD_TENSOR_PAD;
    run->in.data = ifd_acquire_tensor(ifd_alloc_system(), run->in.bytes);
    REQUIRE(run->in.data != NULL);
    memset(run->in.data, 0, run->in.bytes);
}

void test_run_plan(struct test_run *run, uint32_t max_batch)
{
    struct ifd_err err = {0};
    if (!run->in.data) {
        test_run_input(run, max_batch);
    }
    REQUIRE_OK(test_model_build(run->model, &err), &err);
    const struct ifd_model_info *info = ifd_model_info(run->model);
    run->batch = max_batch > 0         ? max_batch
                 : info->batch_is_free ? (uint32_t)run->in.shape.dim[0]
                                       : 1;
    const struct ifd_instance_options options = {.threads = run->model->max_threads,
                                                 .max_batch = run->batch};
    REQUIRE_OK(ifd_instance_create(run->model, &options, &run->instance, &err), &err);
    REQUIRE(info->output_count <= TEST_RUN_OUTPUTS);
}

enum ifd_code test_run_try(struct test_run *run, uint32_t batch, struct ifd_err *err)
{
    struct ifd_tensor in = run->in;
    if (batch != run->batch) {
        in.bytes = in.bytes / run->batch * batch;
        in.shape.dim[0] = batch;
    }
    const struct ifd_io io = {.input = &in, .output = run->out, .batch = batch};
    return ifd_instance_run(run->instance, &io, 1, err);
}

void test_run_once(struct test_run *run)
{
    struct ifd_err err = {0};
    REQUIRE_OK(test_run_try(run, run->batch, &err), &err);
}

static void run_alone(const struct ifd_team *team, ifd_team_fn fn, void *arg)
{
    fn(arg, 0, team->count);
}

void test_run_alone(struct test_run *run)
{
    run->instance->team.run = run_alone;
}

uint32_t test_run_count(const struct test_run *run, const char *kernel)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ifd_model_step_count(run->model); i++) {
        struct ifd_plan_step step;
        ifd_model_step(run->model, i, &step);
        count += strcmp(step.step.kernel, kernel) == 0;
    }
    return count;
}

void test_run_close(struct test_run *run)
{
    ifd_release_tensor(ifd_alloc_system(), run->in.data, run->in.bytes);
    ifd_instance_destroy(run->instance);
    ifd_model_destroy(run->model);
    ifd_engine_destroy(run->engine);
    *run = (struct test_run){0};
}

struct ifd_tensor test_tensor_f32(struct ifd_shape shape)
{
    size_t bytes = sizeof(float);
    for (uint32_t i = 0; i < shape.rank; i++) {
        bytes *= (size_t)shape.dim[i];
    }
    struct ifd_tensor tensor = {.dtype = IFD_F32,
                                .shape = shape,
                                .data = ifd_acquire_tensor(ifd_alloc_system(), bytes),
                                .bytes = bytes,
                                .capacity = bytes + IFD_TENSOR_PAD};
    REQUIRE(tensor.data != NULL);
    return tensor;
}
