/* Models: from the bytes of a file to plans for every batch size that an instance may need, and the instances. */
#include "engine/engine_impl.h"

#include <stdio.h>
#include <string.h>

#include "engine/ir/batch.h"
#include "engine/ir/shape.h"

/* ---- options ---- */

static const struct ifd_limits default_limits = {
    .file_bytes = INT32_MAX,
    .nodes = 100000,
    .values = 400000,
    .node_inputs = 4096,
    .tensor_bytes = INT32_MAX,
    .arena_bytes = UINT32_MAX,
};

static struct ifd_limits effective_limits(const struct ifd_limits *wanted)
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

/* Names to slots; without names every backend in the engine's order. */
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
        const uint32_t slot =
            options->backends ? ifd_registry_find(registry, options->backends[i]) : i;
        if (slot == registry->count) {
            return ifd_fail(err, IFD_INVALID, "backend \"%s\" is unknown", options->backends[i]);
        }
        model->preference[i] = slot;
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
    model->limits = effective_limits(&options->limits);
    model->max_threads = options->max_threads > 0 ? options->max_threads : 1;
    model->no_optimize = options->no_optimize;
    model->precision = options->precision;
    model->releases_weights = options->releases_weights;
    model->info.cache = model->info.precision_why_not = "";
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

/* ---- plans ---- */

static void destroy_plan(struct ifd_model *model, struct ifd_model_plan *plan)
{
    ifd_executable_finish(&plan->executable);
    ifd_arena_finish(&plan->arena);
    ifd_release(model->engine->alloc, plan, sizeof(*plan));
}

/* The graph at a batch size: the model's own if it has that already, else a clone in the plan's arena. batch 0 means as
 * the file has it. */
static enum ifd_code graph_for(struct ifd_model *model, int64_t batch, struct ifd_arena *arena,
                               struct ifd_graph *ret_graph, struct ifd_err *err)
{
    if (batch == 0 || model->graph.value[model->graph.input[0]].desc.shape.dim[0] == batch) {
        *ret_graph = model->graph;
        return IFD_OK;
    }
    enum ifd_code code = ifd_graph_clone(&model->graph, arena, ret_graph, err);
    if (code == IFD_OK) {
        code = ifd_graph_set_batch(ret_graph, batch, err);
    }
    return code;
}

/* Does the model end in a decision, which single steps of rounding before it would tip? */
static bool decides(const struct ifd_graph *graph)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (graph->node[n].op == IFD_OP_DETECTION_POSTPROCESS) {
            return true;
        }
    }
    return false;
}

static void offer_cached(const struct ifd_model *model, const struct ifd_plan *plan)
{
    const struct ifd_cache_entry *entry = &model->cache_entry;
    for (uint32_t p = 0; entry->part_count == plan->partition_count && p < entry->part_count; p++) {
        plan->view[p].packed = ifd_cache_part(entry, p);
    }
}

static enum ifd_code build_plan(struct ifd_model *model, int64_t batch,
                                const struct ifd_executable *like, struct ifd_model_plan *ret_plan,
                                struct ifd_err *err)
{
    struct ifd_engine *engine = model->engine;
    struct ifd_plan_options options = {.registry = &engine->registry,
                                       .preference = model->preference,
                                       .preference_count = model->preference_count,
                                       .max_threads = model->max_threads,
                                       .exact =
                                           engine->registry.host.exact || decides(&model->graph),
                                       .precision = model->precision,
                                       .like = like ? &like->plan : NULL};
    struct ifd_arena scratch;
    struct ifd_graph graph;
    struct ifd_plan plan;
    if (model->releases_weights) {
        options.forget = ifd_weights_forget;
        options.forget_context = &model->weights;
    }
    ifd_arena_init(&scratch, engine->alloc, 0);
    enum ifd_code code = graph_for(model, batch, &ret_plan->arena, &graph, err);
    if (code == IFD_OK) {
        code = ifd_plan_partition(&graph, &options, &ret_plan->arena, &scratch, &plan, err);
    }
    if (code == IFD_OK && !like) {
        offer_cached(model, &plan);
    }
    if (code == IFD_OK) {
        code = ifd_executable_init(&ret_plan->executable, &plan, batch > 0 ? batch : 1,
                                   &engine->registry, like, model->limits.arena_bytes,
                                   &ret_plan->arena, err);
    }
    ifd_arena_finish(&scratch);
    return code;
}

static enum ifd_code add_plan(struct ifd_model *model, uint32_t index, int64_t batch,
                              struct ifd_err *err)
{
    struct ifd_model_plan *plan = ifd_acquire_zeroed(model->engine->alloc, 1, sizeof(*plan));
    if (!plan) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a plan");
    }
    ifd_arena_init(&plan->arena, model->engine->alloc, 0);
    const enum ifd_code code =
        build_plan(model, batch, index > 0 ? &model->plan[0]->executable : NULL, plan, err);
    if (code != IFD_OK) {
        if (batch > 1) {
            ifd_err_prefix(err, "batch %lld", (long long)batch);
        }
        destroy_plan(model, plan);
        return code;
    }
    model->plan[index] = plan;
    return IFD_OK;
}

/* ---- ports ---- */

static enum ifd_code take_ports(struct ifd_model *model, const struct ifd_port *parsed,
                                const uint32_t *value, uint32_t count, struct ifd_port **ret_ports,
                                struct ifd_err *err)
{
    struct ifd_port *ports = ifd_arena_take_array(&model->arena, count, sizeof(*ports));
    if (!ports) {
        return ifd_arena_fail(&model->arena, count * sizeof(*ports), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = 0;
        const struct ifd_value *v = &model->graph.value[value[i]];
        ports[i] = parsed[i];
        ports[i].desc = v->desc;
        if (!ifd_desc_bytes(&v->desc, &bytes) || bytes > model->limits.tensor_bytes) {
            return ifd_fail(err, IFD_TOO_LARGE,
                            "tensor \"%s\" of shape %s exceeds the limit of %zu bytes", v->name,
                            ifd_shape_text(&v->desc.shape).s, model->limits.tensor_bytes);
        }
    }
    *ret_ports = ports;
    return IFD_OK;
}

/* Independent of what the rules promise, the shapes must follow: the graph is set to another batch once, on trial. */
static enum ifd_code try_batch(struct ifd_model *model, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    ifd_arena_init(&arena, model->engine->alloc, 0);
    enum ifd_code code = ifd_graph_clone(&model->graph, &arena, &graph, err);
    if (code == IFD_OK) {
        code = ifd_graph_set_batch(&graph, 3, err);
    }
    ifd_arena_finish(&arena);
    return code;
}

static bool all_begin_with_1(const struct ifd_port *port, uint32_t count)
{
    bool all = count > 0;
    for (uint32_t i = 0; i < count; i++) {
        all &= port[i].desc.shape.rank > 0 && port[i].desc.shape.dim[0] == 1;
    }
    return all;
}

/* Three kinds of models: the batch is free; every port begins with a dimension of 1, so that samples can be run one by
 * one; neither, and shapes are as the file says. */
static enum ifd_code find_batch(struct ifd_model *model, struct ifd_port *input,
                                struct ifd_port *output, struct ifd_err *err)
{
    struct ifd_model_info *info = &model->info;
    bool *batched = ifd_arena_take_array(
        &model->arena, (size_t)info->input_count + info->output_count, sizeof(bool));
    if (!batched) {
        return ifd_arena_fail(&model->arena, info->input_count, err);
    }
    struct ifd_err *why_not = &model->batch_why_not;
    info->batch_is_free =
        ifd_graph_batch_is_free(&model->graph, batched, batched + info->input_count, why_not) &&
        try_batch(model, why_not) == IFD_OK;
    if (why_not->code == IFD_NOMEM) {
        return ifd_fail(err, IFD_NOMEM, "%s", why_not->text);
    }
    const bool one_by_one =
        all_begin_with_1(input, info->input_count) && all_begin_with_1(output, info->output_count);
    for (uint32_t i = 0; i < info->input_count; i++) {
        input[i].batched = info->batch_is_free || one_by_one;
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        output[i].batched = info->batch_is_free || one_by_one;
    }
    return IFD_OK;
}

static enum ifd_code describe_model(struct ifd_model *model, const struct ifd_parsed *parsed,
                                    struct ifd_err *err)
{
    const struct ifd_graph *graph = &model->graph;
    struct ifd_port *input = NULL, *output = NULL;
    model->info.format = parsed->format;
    model->info.format_version = parsed->format_version;
    model->info.description = parsed->description ? parsed->description : "";
    enum ifd_code code =
        take_ports(model, parsed->input, graph->input, graph->input_count, &input, err);
    if (code == IFD_OK) {
        code = take_ports(model, parsed->output, graph->output, graph->output_count, &output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    model->info.input = input;
    model->info.input_count = graph->input_count;
    model->info.output = output;
    model->info.output_count = graph->output_count;
    model->info.node_count = graph->node_count;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        model->info.constant_bytes += graph->value[v].data.size;
    }
    return find_batch(model, input, output, err);
}

/* What came of the precision that was asked for. */
static void describe_precision(struct ifd_model *model, const struct ifd_executable *executable)
{
    struct ifd_model_info *info = &model->info;
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        const struct ifd_partition_info *part = &executable->part[p].info;
        if (part->precision != IFD_PRECISION_F32) {
            info->precision = part->precision;
        } else if (part->precision_why_not) {
            info->precision_why_not = part->precision_why_not;
        }
    }
    if (info->precision == model->precision) {
        info->precision_why_not = "";
    } else if (info->precision_why_not[0] == '\0') {
        info->precision_why_not = "no product of floats gains by it";
    }
}

/* Exact as a whole if every part is. */
static void describe_rounding(struct ifd_model *model, const struct ifd_executable *executable)
{
    model->info.exact = true;
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        model->info.exact &= executable->part[p].info.exact;
    }
}

/* ---- life ---- */

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
    if (code == IFD_OK) {
        code = describe_model(model, parsed, err);
    }
    if (code == IFD_OK && model->releases_weights) {
        code = ifd_weights_init(&model->weights, &model->graph, &model->arena, err);
    }
    if (code == IFD_OK) {
        code = add_plan(model, 0, model->info.batch_is_free ? 1 : 0, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_executable *executable = &model->plan[0]->executable;
    model->info.constant_bytes += executable->constant_bytes - model->weights.released_bytes;
    model->info.released_bytes = model->weights.released_bytes;
    model->info.packed_bytes = executable->constant_bytes;
    model->info.arena_bytes = executable->plan.arena_bytes;
    model->info.step_count = executable->step_count;
    describe_precision(model, executable);
    describe_rounding(model, executable);
    return IFD_OK;
}

/* ---- packed weights of earlier starts ---- */

/* Looks for them. Whatever is wrong is a note. */
static void find_cached(struct ifd_model *model, struct ifd_bytes file)
{
    const struct ifd_engine *engine = model->engine;
    const struct ifd_cpu *cpu = &engine->registry.host.cpu;
    char setup[512];
    struct ifd_err *note = &model->cache_note;
    if (!engine->cache) {
        *note = engine->cache_why_not;
        return;
    }
    size_t used = (size_t)snprintf(setup, sizeof(setup), "%x %zu %zu %zu %u %d%d%d%d", cpu->flags,
                                   cpu->l1d_bytes, cpu->l2_bytes, cpu->l3_bytes, model->max_threads,
                                   engine->registry.host.exact, engine->registry.host.fast,
                                   model->no_optimize, (int)model->precision);
    for (uint32_t i = 0; i < model->preference_count && used < sizeof(setup); i++) {
        used += (size_t)snprintf(setup + used, sizeof(setup) - used, " %s",
                                 engine->registry.slot[model->preference[i]].backend->name);
    }
    if (used >= sizeof(setup)) {
        ifd_fail(note, IFD_UNAVAILABLE, "too many backends");
        return;
    }
    model->cache_name = ifd_cache_name(
        engine->cache, file, (struct ifd_bytes){.data = (const uint8_t *)setup, .size = used});
    model->info.is_from_cache =
        ifd_cache_find(engine->cache, model->cache_name, &model->cache_entry, note) == IFD_OK;
}

static enum ifd_code write_cached(struct ifd_model *model, const struct ifd_bytes *part,
                                  size_t count)
{
    struct ifd_err *note = &model->cache_note, why = {0};
    const bool is_new = note->code == IFD_NOT_FOUND;
    const enum ifd_code code =
        ifd_cache_write(model->engine->cache, model->cache_name, part, count, &why);
    if (code != IFD_OK) {
        *note = why;
        ifd_err_prefix(note, "packed weights not kept");
    } else if (is_new) {
        ifd_fail(note, IFD_OK, "packed weights kept");
    } else {
        ifd_err_prefix(note, "packed weights kept anew");
    }
    return code == IFD_NOMEM ? code : IFD_OK;
}

/* Says what became of them, and keeps what was packed now. */
static enum ifd_code settle_cached(struct ifd_model *model, struct ifd_err *err)
{
    const struct ifd_executable *executable = &model->plan[0]->executable;
    const uint32_t count = executable->plan.partition_count;
    struct ifd_model_info *info = &model->info;
    struct ifd_bytes *part = ifd_arena_take_array(&model->arena, count, sizeof(*part));
    size_t bytes = 0;
    if (!part) {
        return ifd_arena_fail(&model->arena, count * sizeof(*part), err);
    }
    info->is_from_cache = info->is_from_cache && model->cache_entry.part_count == count;
    for (uint32_t p = 0; p < count; p++) {
        part[p] = executable->part[p].info.packed;
        bytes += part[p].size;
        info->is_from_cache =
            info->is_from_cache &&
            (part[p].size == 0 || part[p].data == ifd_cache_part(&model->cache_entry, p).data);
    }
    info->cache = model->cache_note.text;
    if (bytes == 0) {
        info->is_from_cache = false;
        ifd_fail(&model->cache_note, IFD_OK, "nothing to keep");
    } else if (info->is_from_cache) {
        ifd_fail(&model->cache_note, IFD_OK, "%zu bytes of packed weights mapped", bytes);
    } else if (model->engine->cache && write_cached(model, part, count) == IFD_NOMEM) {
        return ifd_fail(err, IFD_NOMEM, "no memory to keep packed weights");
    }
    return IFD_OK;
}

/* What a file may make us keep: copies of its constants, and what folding makes of them (8-bit weights as floats are
 * four times as large). A small file cannot cost more than a fixed sum. */
#define KEEP_FILE_TIMES 8
#define KEEP_MORE_BYTES ((size_t)64 << 20)

static size_t keep_limit(size_t file_bytes)
{
    size_t limit = 0;
    if (!ifd_size_mul(file_bytes, KEEP_FILE_TIMES, &limit) ||
        !ifd_size_add(limit, KEEP_MORE_BYTES, &limit)) {
        return SIZE_MAX;
    }
    return limit;
}

enum ifd_code ifd_model_load(struct ifd_engine *engine, struct ifd_bytes file,
                             const struct ifd_model_options *options, struct ifd_model **ret_model,
                             struct ifd_err *err)
{
    struct ifd_model *model = NULL;
    struct ifd_parsed parsed = {0};
    enum ifd_code code = ifd_model_create(engine, options, &model, err);
    if (code != IFD_OK) {
        return code;
    }
    model->arena.cap_bytes = keep_limit(file.size);
    if (engine->wants_cache) {
        find_cached(model, file);
    }
    code = ifd_parse(file, &model->limits, &model->graph, &parsed, err);
    if (code == IFD_OK) {
        code = ifd_model_build(model, &parsed, err);
    }
    if (code == IFD_OK && engine->wants_cache) {
        code = settle_cached(model, err);
    }
    if (code != IFD_OK) {
        ifd_model_destroy(model);
        return code;
    }
    *ret_model = model;
    return IFD_OK;
}

void ifd_model_destroy(struct ifd_model *model)
{
    if (!model) {
        return;
    }
    /* plan[0] last: the others share its packed constants. */
    for (uint32_t i = IFD_BATCH_PLANS; i-- > 0;) {
        if (model->plan[i]) {
            destroy_plan(model, model->plan[i]);
        }
    }
    ifd_cache_entry_finish(&model->cache_entry);
    ifd_mutex_finish(&model->lock);
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

/* Taken for the second-level cache where that is not known. */
#define CACHE_BYTES ((size_t)1 << 20)

/* A batch pays while its tensors stay in the cache or weigh less than the weights, which it reads once: beyond, several runs
 * of fewer samples are faster, and need less memory. */
static bool batch_pays(const struct ifd_model *model, int64_t batch)
{
    const size_t known = model->engine->registry.host.cpu.l2_bytes;
    const size_t cache = known > 0 ? known : CACHE_BYTES;
    const size_t most = model->info.constant_bytes > cache ? model->info.constant_bytes : cache;
    return (size_t)batch <= most / (model->info.arena_bytes > 0 ? model->info.arena_bytes : 1);
}

/* Makes the plans for batches up to max_batch that no instance has asked for before. Where a backend cannot make one any
 * more, smaller ones do. */
static enum ifd_code complete_plans(struct ifd_model *model, uint32_t max_batch,
                                    uint32_t *ret_count, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    uint32_t count = 1;
    ifd_mutex_lock(&model->lock);
    while (model->info.batch_is_free && count < IFD_BATCH_PLANS &&
           ifd_batch_size(count) <= max_batch && batch_pays(model, ifd_batch_size(count))) {
        if (!model->plan[count]) {
            code = add_plan(model, count, ifd_batch_size(count), err);
        }
        if (code == IFD_UNSUPPORTED && model->releases_weights) {
            code = IFD_OK;
            break;
        }
        if (code != IFD_OK) {
            break;
        }
        count++;
    }
    ifd_mutex_unlock(&model->lock);
    *ret_count = count;
    return code;
}

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

enum ifd_code ifd_instance_create(struct ifd_model *model,
                                  const struct ifd_instance_options *options,
                                  struct ifd_instance **ret_instance, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = model->engine->alloc;
    const struct ifd_executable *executable[IFD_BATCH_PLANS] = {0};
    struct ifd_instance_setup setup = {.alloc = alloc,
                                       .info = &model->info,
                                       .executable = executable,
                                       .threads = options->threads > 0 ? options->threads : 1,
                                       .max_batch = options->max_batch > 0 ? options->max_batch : 1,
                                       .cores = &model->engine->cores,
                                       .limit_bytes = model->limits.arena_bytes};
    enum ifd_code code = check_instance(model, setup.threads, setup.max_batch, err);
    if (code == IFD_OK) {
        code = complete_plans(model, setup.max_batch, &setup.executable_count, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    for (uint32_t i = 0; i < setup.executable_count; i++) {
        executable[i] = &model->plan[i]->executable;
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

void ifd_instance_destroy(struct ifd_instance *instance)
{
    if (instance) {
        const struct ifd_alloc *alloc = instance->alloc;
        ifd_instance_finish(instance);
        ifd_release(alloc, instance, sizeof(*instance));
    }
}
