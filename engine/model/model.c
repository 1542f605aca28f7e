/* Models: from a graph to a plan, and instances of it. */
#include "engine/model/model.h"

#include "engine/model/cached.h"
#include "engine/model/plans.h"
#include "engine/model/ports.h"
#include "engine/model/shapes.h"
#include "engine/model/spare.h"

/* ---- options ---- */

static const struct ifd_limits default_limits = {
    .file_bytes = SIZE_MAX,
    .nodes = 100000,
    .values = 400000,
    .node_inputs = 4096,
    .tensor_bytes = INT32_MAX,
    .arena_bytes = UINT32_MAX,
};

struct ifd_limits ifd_model_limits(const struct ifd_limits *wanted)
{
    const struct ifd_limits *d = &default_limits;
    return (struct ifd_limits){
        .file_bytes = wanted->file_bytes > 0 ? wanted->file_bytes : d->file_bytes,
        .nodes = wanted->nodes > 0 ? wanted->nodes : d->nodes,
        .values = wanted->values > 0 ? wanted->values : d->values,
        .node_inputs = wanted->node_inputs > 0 ? wanted->node_inputs : d->node_inputs,
        .tensor_bytes = wanted->tensor_bytes > 0 ? wanted->tensor_bytes : d->tensor_bytes,
        .arena_bytes = wanted->arena_bytes > 0 ? wanted->arena_bytes : d->arena_bytes,
    };
}

/* Slots of the named backends; without names, of every backend in the engine's order. */
static enum ifd_code take_preference(struct ifd_model *model,
                                     const struct ifd_model_options *options, struct ifd_err *err)
{
    const struct ifd_registry *registry = &model->engine->registry;
    const uint32_t count = options->backends ? options->backend_count : registry->count;
    model->preference = ifd_arena_take_array(&model->arena, count, sizeof(*model->preference));
    if (!model->preference) {
        return ifd_arena_fail(&model->arena, count * sizeof(*model->preference), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name = options->backends ? options->backends[i] : NULL;
        if (name && ifd_engine_check_backend(model->engine, name, err) != IFD_OK) {
            return IFD_INVALID;
        }
        model->preference[i] = name ? ifd_registry_find(registry, name) : i;
    }
    model->preference_count = count;
    return IFD_OK;
}

enum ifd_code ifd_model_create(struct ifd_engine *engine, const struct ifd_model_options *options,
                               struct ifd_model **ret_model, struct ifd_err *err)
{
    if (engine->registry.host.exact && options->precision != IFD_PRECISION_F32) {
        return ifd_fail(err, IFD_INVALID, "exact results and precision %s exclude each other",
                        ifd_precision_name(options->precision));
    }
    struct ifd_model *model = ifd_acquire_zeroed(engine->alloc, 1, sizeof(*model));
    if (!model) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a model");
    }
    model->engine = engine;
    model->limits = ifd_model_limits(&options->limits);
    model->max_threads = options->max_threads > 0 ? options->max_threads : 1;
    model->no_optimize = options->no_optimize;
    model->keeps_state = options->keeps_state;
    model->precision = options->precision;
    model->releases_weights = options->releases_weights;
    model->hold_shapes = options->hold_shapes;
    model->hold_context = options->hold_context;
    model->info.cache = model->info.precision_why_not = "";
    model->info.taken_back = model->info.unsized = "";
    ifd_arena_init(&model->arena, engine->alloc, 0);
    ifd_graph_init(&model->graph, &model->arena);
    ifd_mutex_init(&model->lock);
    const enum ifd_code code = take_preference(model, options, err);
    if (code != IFD_OK) {
        ifd_model_destroy(model);
        return code;
    }
    *ret_model = model;
    return IFD_OK;
}

/* ---- life ---- */

/* A variant releases what it has made itself: the rest is of its root, and of other variants. What
 * a cut hands on is read later. */
static enum ifd_code find_weights(struct ifd_model *model, struct ifd_err *err)
{
    const struct ifd_cut *cut = &model->cut;
    struct ifd_bytes *other = ifd_arena_take_array(&model->arena, cut->value_count, sizeof(*other));
    if (!other) {
        return ifd_arena_fail(&model->arena, cut->value_count * sizeof(*other), err);
    }
    struct ifd_weights_scope scope = {.only_in_arena = model->is_bound, .others = other};
    for (uint32_t i = 0; i < cut->value_count; i++) {
        if (cut->value[i].source == IFD_CUT_CONSTANT && cut->value[i].data.size > 0) {
            other[scope.other_count++] = cut->value[i].data;
        }
    }
    return ifd_weights_init(&model->weights, &model->graph, &scope, &model->arena, err);
}

enum ifd_code ifd_model_build(struct ifd_model *model, const struct ifd_parsed *parsed,
                              struct ifd_err *err)
{
    model->pass = ifd_arena_take_array(&model->arena, ifd_pass_count(), sizeof(*model->pass));
    if (!model->pass) {
        return ifd_arena_fail(&model->arena, ifd_pass_count() * sizeof(*model->pass), err);
    }
    enum ifd_code code =
        ifd_optimize(&model->graph, model->no_optimize ? IFD_PASS_REQUIRED : IFD_PASS_FUSE,
                     model->engine->alloc, model->pass, err);
    for (struct ifd_graph *inner = model->graph.next; code == IFD_OK && inner;
         inner = inner->next) {
        model->releases_weights = false; /* graphs may share content */
        code = ifd_optimize(inner, model->no_optimize ? IFD_PASS_REQUIRED : IFD_PASS_FUSE,
                            model->engine->alloc, NULL, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_describe(model, parsed, err);
    }
    if (code == IFD_OK && model->is_bound && !model->is_shared && !model->graph.next) {
        model->releases_weights = true;
    }
    if (code == IFD_OK && model->releases_weights) {
        code = find_weights(model, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_add_plan(model, 0, ifd_model_plan_batch(model), err);
    }
    if (code == IFD_OK) {
        ifd_model_describe_plan(model);
    }
    return code;
}

void ifd_model_destroy(struct ifd_model *model)
{
    if (!model) {
        return;
    }
    ifd_model_destroy_plans(model);
    ifd_cache_entry_finish(&model->cache_entry);
    ifd_mutex_finish(&model->lock);
    ifd_arena_finish(&model->kept.arena);
    ifd_arena_finish(&model->arena);
    ifd_release(model->engine->alloc, model, sizeof(*model));
}

const struct ifd_model_info *ifd_model_info(const struct ifd_model *model)
{
    return &model->info;
}

uint32_t ifd_model_step_count(const struct ifd_model *model)
{
    return model->info.step_count;
}

void ifd_model_step(const struct ifd_model *model, uint32_t index, struct ifd_plan_step *ret)
{
    ifd_executable_step(&model->plan[0]->executable, index, ret);
}

/* ---- instances ---- */

static enum ifd_code check_instance(const struct ifd_model *model, uint32_t threads,
                                    uint32_t max_batch, struct ifd_err *err)
{
    if (threads > model->max_threads) {
        return ifd_fail(err, IFD_INVALID, "%u threads, but the model was loaded for at most %u",
                        threads, model->max_threads);
    }
    if (max_batch > IFD_MAX_BATCH) {
        return ifd_fail(err, IFD_TOO_LARGE, "a batch of %u exceeds the limit of %d", max_batch,
                        IFD_MAX_BATCH);
    }
    if (max_batch > 1 && (model->info.input_count == 0 || !model->info.input[0].batched)) {
        return ifd_fail(err, IFD_INVALID, "a batch of %u, but the model has no batch dimension",
                        max_batch);
    }
    return IFD_OK;
}

enum ifd_code ifd_model_make_instance(struct ifd_model *model,
                                      const struct ifd_instance_options *options,
                                      const struct ifd_executable *const *executable,
                                      uint32_t executable_count, bool borrows_arena,
                                      struct ifd_spare *spare, struct ifd_instance **ret_instance,
                                      struct ifd_err *err)
{
    const struct ifd_alloc *alloc = model->engine->alloc;
    struct ifd_instance_setup setup = {.alloc = alloc,
                                       .info = model->info.has_open_dims ? &model->plan_info
                                                                         : &model->info,
                                       .executable = executable,
                                       .executable_count = executable_count,
                                       .spare = spare,
                                       .threads = options->threads,
                                       .max_batch = options->max_batch,
                                       .cores = &model->engine->cores,
                                       .limit_bytes = model->limits.arena_bytes,
                                       .borrows_arena = borrows_arena};
    struct ifd_team *team = NULL;
    enum ifd_code code = IFD_OK;
    if (setup.threads > 1) {
        code = ifd_engine_team(model->engine, &team, err);
        setup.team = team;
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_instance *instance = ifd_acquire_zeroed(alloc, 1, sizeof(*instance));
    if (!instance) {
        return ifd_fail(err, IFD_NOMEM, "no memory for an instance");
    }
    code = ifd_instance_init(instance, &setup, err);
    if (code != IFD_OK) {
        ifd_release(alloc, instance, sizeof(*instance));
        return code;
    }
    *ret_instance = instance;
    return IFD_OK;
}

enum ifd_code ifd_model_instantiate(struct ifd_model *model,
                                    const struct ifd_instance_options *options, bool borrows_arena,
                                    struct ifd_instance **ret_instance, struct ifd_err *err)
{
    const struct ifd_instance_options asked = {
        .threads = options->threads > 0 ? options->threads : 1,
        .max_batch = options->max_batch > 0 ? options->max_batch : 1};
    const struct ifd_executable *executable[IFD_BATCH_PLANS] = {0};
    struct ifd_spare *spare = NULL;
    uint32_t count = 0;
    enum ifd_code code = check_instance(model, asked.threads, asked.max_batch, err);
    if (code == IFD_OK) {
        code = ifd_model_complete_plans(model, asked.max_batch, &count, err);
    }
    if (code == IFD_OK && model->plan[0]->executable.plan.device_count > 0) {
        code = ifd_spare_create(model, &asked, &spare, err);
    }
    for (uint32_t i = 0; i < count; i++) {
        executable[i] = &model->plan[i]->executable;
    }
    if (code == IFD_OK) {
        code = ifd_model_make_instance(model, &asked, executable, count, borrows_arena, spare,
                                       ret_instance, err);
    }
    if (code != IFD_OK) {
        ifd_spare_destroy(spare);
    }
    return code;
}

enum ifd_code ifd_instance_create(struct ifd_model *model,
                                  const struct ifd_instance_options *options,
                                  struct ifd_instance **ret_instance, struct ifd_err *err)
{
    struct ifd_instance *instance = NULL;
    struct ifd_instance_options own = *options;
    if (model->info.has_open_dims) {
        own.max_batch = 1; /* its plan serves the example */
    }
    enum ifd_code code = check_instance(model, options->threads, options->max_batch, err);
    code = code == IFD_OK ? ifd_model_instantiate(model, &own, false, &instance, err) : code;
    if (code == IFD_OK && model->info.has_open_dims) {
        code = ifd_shapes_create(model, instance, options->max_batch, err);
    }
    if (code != IFD_OK) {
        ifd_instance_destroy(instance);
        return code;
    }
    *ret_instance = instance;
    return IFD_OK;
}

void ifd_model_drop_instance(struct ifd_instance *instance)
{
    if (instance) {
        const struct ifd_alloc *alloc = instance->alloc;
        ifd_spare_destroy(instance->spare);
        ifd_instance_finish(instance);
        ifd_release(alloc, instance, sizeof(*instance));
    }
}

void ifd_instance_destroy(struct ifd_instance *instance)
{
    if (instance) {
        ifd_shapes_destroy(instance->shapes);
        ifd_model_drop_instance(instance);
    }
}
