/* Loads a file as a model: reads it (in several sizes where it leaves dimensions open), optimizes
 * and plans it. */
#include "engine/model/cached.h"
#include "engine/model/model.h"
#include "engine/model/readings.h"

#include "engine/ir/batch.h"
#include "engine/ir/trace.h"

#include <string.h>

/* Memory that a model may take for copies of constants and for folded ones (8-bit weights as floats
 * are four times as large, those of 4 bits eight times; turned for a layer they are there twice): a
 * multiple of the file, and a fixed sum. */
#define KEEP_FILE_TIMES 24
#define KEEP_MORE_BYTES ((size_t)48 << 20)
/* Likewise elements and products that are computed while it loads. */
#define WORK_FILE_TIMES 96
#define WORK_MORE       ((size_t)4 << 20)
/* Bytes, elements and products of failed readings, beyond which no other sizes are tried: what a
 * small file asks for it asks for in every size. */
#define TRIALS_FILE_TIMES 96
#define TRIALS_MORE       ((size_t)8 << 20)
#define TRIALS_NODE       1024.0 /* a node takes as long to read as so many of these */
/* Memory of the shapes of requests, if the caller does not say: each plan packs the weights once
 * more. */
#define SHAPES_FILE_TIMES 8
#define SHAPES_LEAST      ((size_t)256 << 20)

/* What is kept of a file for variants: a part of it, and more. */
#define KEPT_FILE_PART  4
#define KEPT_MORE_BYTES ((size_t)4 << 20)

/* A multiple of the file and those beside it. */
static size_t times_the_file(const struct ifd_model *model, size_t times)
{
    size_t product = 0, bytes = model->file.size;
    for (uint32_t i = 0; i < model->external_count; i++) {
        if (!ifd_size_add(bytes, model->external[i].content.size, &bytes)) {
            return SIZE_MAX;
        }
    }
    return ifd_size_mul(bytes, times, &product) ? product : SIZE_MAX;
}

/* A multiple of the file, and more. */
static size_t times_and_more(const struct ifd_model *model, size_t times, size_t more)
{
    size_t limit = 0;
    return ifd_size_add(times_the_file(model, times), more, &limit) ? limit : SIZE_MAX;
}

static size_t shapes_limit(const struct ifd_model *model)
{
    const size_t limit = times_the_file(model, SHAPES_FILE_TIMES);
    return limit > SHAPES_LEAST ? limit : SHAPES_LEAST;
}

/* ---- a second reading, in other sizes ---- */

/* Samples of the second reading: what is free with 1 may not be with more, since a sequence of one
 * step looks like a sample. */
#define PROBE_BATCH 3

static enum ifd_code keep_outputs(struct ifd_model *model, const struct ifd_graph *graph,
                                  struct ifd_err *err)
{
    if (graph->output_count != model->graph.output_count) {
        return ifd_fail(err, IFD_INVALID, "%u outputs, %u in another size", graph->output_count,
                        model->graph.output_count);
    }
    struct ifd_shape *shape =
        ifd_arena_take_array(&model->arena, graph->output_count, sizeof(*shape));
    if (!shape) {
        return ifd_arena_fail(&model->arena, graph->output_count * sizeof(*shape), err);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        shape[i] = graph->value[graph->output[i]].desc.shape;
    }
    model->probe.output = shape;
    model->probe.is_done = true;
    return IFD_OK;
}

static enum ifd_code find_free(struct ifd_graph *graph, bool *ret_is_free, struct ifd_err *err)
{
    const size_t ports = (size_t)graph->input_count + graph->output_count;
    bool *batched = ifd_arena_take_array(graph->arena, ports, sizeof(*batched));
    if (!batched) {
        return ifd_arena_fail(graph->arena, ports * sizeof(*batched), err);
    }
    struct ifd_err why_not = {0};
    *ret_is_free = ifd_graph_batch_is_free(graph, batched, batched + graph->input_count, &why_not);
    return why_not.code == IFD_NOMEM ? ifd_fail(err, IFD_NOMEM, "%s", why_not.text) : IFD_OK;
}

static enum ifd_code probe_once(struct ifd_model *model, const struct ifd_parse_options *options,
                                struct ifd_arena *arena, struct ifd_err *err)
{
    struct ifd_graph graph;
    struct ifd_trace trace;
    struct ifd_parsed parsed = {0};
    ifd_graph_init(&graph, arena);
    graph.work_limit = model->graph.work_limit;
    ifd_trace_begin(&trace, &graph);
    enum ifd_code code =
        ifd_trace_check(&trace, ifd_parse(model->file, options, &graph, &parsed, err), err);
    /* One sample does not tell. Where the file fixes it, variants that requests share do. */
    const bool tells = code == IFD_OK && parsed.opens_first && options->open_first > 1;
    model->probe.batch_is_free = !parsed.opens_first;
    /* Where it opens others, too, each shared variant is compared with a reading of its own. */
    bool agree = tells;
    if (tells && !parsed.opens_others) {
        code = ifd_readings_compare(&model->graph, &graph, &agree, err);
    }
    ifd_trace_end(&trace, &graph);
    if (code == IFD_OK && agree) {
        code = ifd_optimize(&graph, model->no_optimize ? IFD_PASS_REQUIRED : IFD_PASS_FUSE,
                            model->engine->alloc, NULL, err);
    }
    if (agree && code == IFD_OK) {
        code = find_free(&graph, &model->probe.batch_is_free, err);
    }
    model->probe.cost += (double)ifd_arena_held_bytes(arena) + graph.work;
    return code == IFD_OK ? keep_outputs(model, &graph, err) : code;
}

/* What the file does not allow in other sizes stays unknown; only lack of memory is an error. */
static enum ifd_code probe(struct ifd_model *model, const struct ifd_parse_options *options,
                           const struct ifd_parsed *parsed, struct ifd_err *err)
{
    struct ifd_parse_options other = *options;
    const int64_t size = options->open_other > 0 ? options->open_other : IFD_PARSE_OPEN_DIM;
    enum ifd_code code = IFD_INVALID;
    other.open_other = parsed->opens_others ? 2 * size : options->open_other;
    const int64_t batch = options->open_first > 0 ? 2 * options->open_first : PROBE_BATCH;
    for (int64_t first = parsed->opens_first ? batch : 1; first > 0 && code != IFD_OK;
         first = first > 1 && parsed->opens_others ? 1 : 0) {
        struct ifd_arena arena;
        struct ifd_err why_not = {0};
        other.open_first = first;
        ifd_arena_init(&arena, model->engine->alloc, model->arena.cap_bytes);
        code = probe_once(model, &other, &arena, &why_not);
        ifd_arena_finish(&arena);
        if (code == IFD_NOMEM) {
            return ifd_fail(err, code, "%s", why_not.text);
        }
    }
    return IFD_OK;
}

/* ---- a shared variant is read three times ---- */

/* A number that the file computes of how many samples there are is a constant of the reading. */
static enum ifd_code compare_samples(const struct ifd_model *model,
                                     const struct ifd_parse_options *options,
                                     const struct ifd_input_shape *shape, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_trace trace;
    struct ifd_parsed parsed = {0};
    struct ifd_parse_options other = *options;
    bool agree = false;
    other.shape = shape;
    ifd_arena_init(&arena, model->engine->alloc, model->arena.cap_bytes);
    ifd_graph_init(&graph, &arena);
    graph.work_limit = model->graph.work_limit;
    ifd_trace_begin(&trace, &graph);
    enum ifd_code code =
        ifd_trace_check(&trace, ifd_parse(model->file, &other, &graph, &parsed, err), err);
    if (code == IFD_OK) {
        code = ifd_readings_compare(&model->graph, &graph, &agree, err);
    }
    ifd_trace_end(&trace, &graph);
    if (code == IFD_OK && !agree) {
        code = ifd_fail(err, IFD_UNSUPPORTED,
                        "requests cannot share a run: it computes with the number of samples");
    }
    ifd_arena_finish(&arena);
    return code;
}

/* With one sample more, and one less: a file may make one sample something special. */
static enum ifd_code read_other_samples(const struct ifd_model *model,
                                        const struct ifd_parse_options *options,
                                        struct ifd_err *err)
{
    static const int64_t more[] = {1, -1};
    const struct ifd_alloc *alloc = model->engine->alloc;
    const uint32_t count = options->shape_count;
    struct ifd_input_shape *shape = ifd_acquire_zeroed(alloc, count, sizeof(*shape));
    if (!shape) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u shapes", count);
    }
    enum ifd_code code = IFD_OK;
    for (size_t k = 0; code == IFD_OK && k < sizeof(more) / sizeof(more[0]); k++) {
        for (uint32_t i = 0; i < count; i++) {
            shape[i] = options->shape[i];
            shape[i].shape.dim[0] += more[k];
        }
        code = compare_samples(model, options, shape, err);
    }
    ifd_release(alloc, shape, count * sizeof(*shape));
    return code;
}

/* ---- loading ---- */

static enum ifd_code read_and_build(struct ifd_model *model,
                                    const struct ifd_parse_options *options,
                                    struct ifd_parsed *parsed, struct ifd_err *err)
{
    model->arena.cap_bytes = times_and_more(model, KEEP_FILE_TIMES, KEEP_MORE_BYTES);
    model->graph.work_limit = (double)times_and_more(model, WORK_FILE_TIMES, WORK_MORE);
    struct ifd_trace trace;
    const bool may_be_free = model->is_shared || !model->is_bound;
    if (may_be_free) {
        ifd_trace_begin(&trace, &model->graph);
    }
    enum ifd_code code = ifd_parse(model->file, options, &model->graph, parsed, err);
    if (may_be_free) {
        code = ifd_trace_check(&trace, code, err);
    }
    if (code == IFD_OK && !parsed->cut.is_cut && (parsed->opens_first || parsed->opens_others)) {
        code = probe(model, options, parsed, err);
    }
    if (code == IFD_OK && model->is_shared && !parsed->cut.is_cut) {
        code = read_other_samples(model, options, err);
    }
    if (may_be_free) {
        ifd_trace_end(&trace, &model->graph);
    }
    return code == IFD_OK ? ifd_model_build(model, parsed, err) : code;
}

/* The caller's list may go, the content stays. */
static enum ifd_code keep_externals(struct ifd_model *model,
                                    const struct ifd_model_options *options, struct ifd_err *err)
{
    const uint32_t count = options->external_count;
    struct ifd_external_file *kept = ifd_arena_take_array(&model->arena, count, sizeof(*kept));
    for (uint32_t i = 0; kept && i < count; i++) {
        const struct ifd_external_file *from = &options->external[i];
        kept[i] = (struct ifd_external_file){
            .name = ifd_arena_text(&model->arena, from->name, strlen(from->name)),
            .content = from->content};
        if (!kept[i].name) {
            return ifd_arena_fail(&model->arena, strlen(from->name), err);
        }
    }
    model->external = kept;
    model->external_count = count;
    return kept ? IFD_OK : ifd_arena_fail(&model->arena, count * sizeof(*kept), err);
}

/* Variants read again what is large beside the file, such as numbers that it does not store raw. */
static void forget_what_is_large(struct ifd_model *model)
{
    const size_t most = model->file.size / KEPT_FILE_PART + KEPT_MORE_BYTES;
    if (!model->info.has_open_dims || ifd_arena_held_bytes(&model->kept.arena) > most) {
        ifd_arena_finish(&model->kept.arena);
        model->kept.read = NULL;
    }
}

/* Sizes of open dimensions with which a model may be computed, as in struct ifd_parse_options. */
struct trial {
    int64_t first, other;
    const struct ifd_err *why_unsized; /* not NULL: no size is known */
};

/* What those that failed have cost, all together, and the time left for runs of zeros. */
struct trials {
    double cost, limit;
    uint64_t left_ns;
};

/* Loops end then. What a run computes besides has the limit of the file. */
#define RUNS_NS ((uint64_t)40000000)

static double cost_of(const struct ifd_model *model)
{
    return (double)ifd_arena_held_bytes(&model->arena) + model->graph.work + model->probe.cost +
           TRIALS_NODE * (double)model->graph.node_count;
}

static enum ifd_code load_once(struct ifd_engine *engine, struct ifd_bytes file,
                               const struct ifd_model_options *options, const struct trial *trial,
                               struct trials *trials, struct ifd_model **ret_model,
                               struct ifd_parsed *parsed, struct ifd_err *err)
{
    struct ifd_model *model = NULL;
    enum ifd_code code = ifd_model_create(engine, options, &model, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_parse_options parse = {.limits = &model->limits,
                                      .kept = &model->kept,
                                      .shape = options->input_shape,
                                      .shape_count = options->input_shape_count,
                                      .open_first = trial->first,
                                      .open_other = trial->other,
                                      .ports_only = trial->why_unsized != NULL,
                                      .keeps_state = options->keeps_state,
                                      .signature = options->signature};
    model->file = file;
    if (trial->why_unsized) {
        model->unsized = *trial->why_unsized;
        model->info.unsized = model->unsized.text;
    }
    ifd_arena_init(&model->kept.arena, engine->alloc, model->limits.arena_bytes);
    code = keep_externals(model, options, err);
    parse.external = model->external;
    parse.external_count = model->external_count;
    model->shape_bytes = options->shape_bytes > 0 ? options->shape_bytes : shapes_limit(model);
    if (code == IFD_OK && engine->wants_cache) {
        ifd_model_find_cached(model, options);
    }
    if (code == IFD_OK && options->signature) {
        model->signature =
            ifd_arena_text(&model->arena, options->signature, strlen(options->signature));
        code = model->signature ? IFD_OK : ifd_fail(err, IFD_NOMEM, "no memory for a name");
    }
    if (code == IFD_OK) {
        code = read_and_build(model, &parse, parsed, err);
        forget_what_is_large(model);
    }
    if (code == IFD_OK && engine->wants_cache) {
        code = ifd_model_settle_cached(model, err);
    }
    if (code == IFD_OK && parsed->is_unknown) {
        code = ifd_model_find_results(model, parsed->is_unknown, &trials->left_ns, err);
    }
    if (code != IFD_OK) {
        trials->cost += cost_of(model);
        trials->limit = (double)times_and_more(model, TRIALS_FILE_TIMES, TRIALS_MORE);
        ifd_model_destroy(model);
        return code;
    }
    *ret_model = model;
    return IFD_OK;
}

/* The first trial failed. If no other size works either, requests may know one; but what the file
 * is refused for in the same words in every size that is tried is no matter of sizes. */
static enum ifd_code try_sizes(struct ifd_engine *engine, struct ifd_bytes file,
                               const struct ifd_model_options *options, struct ifd_parsed first,
                               const struct ifd_err *first_why, struct trials *trials,
                               struct ifd_model **ret_model, struct ifd_err *err)
{
    static const struct trial sizes[] = {{.other = 64},
                                         {.other = 16},
                                         {.other = 128},
                                         {.other = 224},
                                         {.other = 256},
                                         {.other = 512},
                                         {.other = 8},
                                         {.other = 1},
                                         {.first = 2},
                                         {.first = 3},
                                         {.first = 4},
                                         {.first = 8},
                                         {.first = 5, .other = 7}};
    bool is_of_sizes = false;
    const size_t count = sizeof(sizes) / sizeof(sizes[0]);
    for (size_t i = 0; i < count && trials->cost <= trials->limit; i++) {
        struct ifd_err why = {0};
        struct ifd_parsed parsed = {0};
        if ((sizes[i].first == 0 && !first.opens_others) ||
            (sizes[i].other == 0 && !first.opens_first)) {
            continue; /* it is like one before */
        }
        const enum ifd_code code =
            load_once(engine, file, options, &sizes[i], trials, ret_model, &parsed, &why);
        if (code == IFD_OK || code == IFD_NOMEM) {
            return code == IFD_OK ? code : ifd_fail(err, code, "%s", why.text);
        }
        is_of_sizes = is_of_sizes || strcmp(why.text, first_why->text) != 0;
    }
    struct ifd_parsed parsed = {0};
    struct ifd_err why = {0};
    const struct trial unsized = {.first = 1, .other = 1, .why_unsized = first_why};
    const enum ifd_code code =
        is_of_sizes ? load_once(engine, file, options, &unsized, trials, ret_model, &parsed, &why)
                    : first_why->code;
    if (code != IFD_OK && err) {
        *err = code == IFD_NOMEM ? why : *first_why;
    }
    return code == IFD_OK || code == IFD_NOMEM ? code : first_why->code;
}

enum ifd_code ifd_model_load(struct ifd_engine *engine, struct ifd_bytes file,
                             const struct ifd_model_options *options, struct ifd_model **ret_model,
                             struct ifd_err *err)
{
    struct ifd_parsed parsed = {0};
    struct ifd_err why = {0};
    struct trials trials = {.left_ns = RUNS_NS};
    const enum ifd_code code =
        load_once(engine, file, options, &(struct trial){0}, &trials, ret_model, &parsed, &why);
    if (code == IFD_OK) {
        return code;
    }
    if ((parsed.opens_first || parsed.opens_others) && code != IFD_NOMEM) {
        return try_sizes(engine, file, options, parsed, &why, &trials, ret_model, err);
    }
    if (err) {
        *err = why;
    }
    return code;
}

enum ifd_code ifd_model_bind(const struct ifd_model *root, const struct ifd_input_shape *shape,
                             const struct ifd_resume *resume, bool is_shared, size_t limit_bytes,
                             struct ifd_model **ret_model, struct ifd_err *err)
{
    struct ifd_parse_kept kept = root->kept; /* what is there is only read */
    struct ifd_model *model = ifd_acquire_zeroed(root->engine->alloc, 1, sizeof(*model));
    if (!model) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a model");
    }
    model->engine = root->engine;
    model->file = root->file;
    model->external = root->external;
    model->external_count = root->external_count;
    model->limits = root->limits;
    model->limits.arena_bytes =
        limit_bytes < root->limits.arena_bytes ? limit_bytes : root->limits.arena_bytes;
    model->preference = root->preference;
    model->preference_count = root->preference_count;
    model->max_threads = root->max_threads;
    model->no_optimize = root->no_optimize;
    model->keeps_state = root->keeps_state;
    model->signature = root->signature;
    model->precision = root->precision;
    model->is_bound = true;
    model->is_shared = is_shared;
    model->info.cache = model->info.precision_why_not = "";
    model->info.taken_back = model->info.unsized = "";
    ifd_arena_init(&model->arena, root->engine->alloc, 0);
    ifd_graph_init(&model->graph, &model->arena);
    ifd_mutex_init(&model->lock);
    const struct ifd_parse_options parse = {.limits = &root->limits,
                                            .external = root->external,
                                            .external_count = root->external_count,
                                            .shape = shape,
                                            .shape_count = root->info.input_count,
                                            .are_final = true,
                                            .kept = &kept,
                                            .resume = resume,
                                            .keeps_state = root->keeps_state,
                                            .signature = root->signature};
    struct ifd_parsed parsed = {0};
    enum ifd_code code = read_and_build(model, &parse, &parsed, err);
    if (code == IFD_OK && !parsed.cut.is_cut) {
        code = ifd_model_check_results(root, model, err);
    }
    if (code != IFD_OK) {
        ifd_model_destroy(model);
        return code;
    }
    *ret_model = model;
    return IFD_OK;
}

enum ifd_code ifd_model_externals(struct ifd_bytes file, const struct ifd_alloc *alloc,
                                  enum ifd_code (*fn)(void *context,
                                                      const struct ifd_external_names *names,
                                                      struct ifd_err *err),
                                  void *context, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_external_names names;
    const struct ifd_limits limits = ifd_model_limits(&(const struct ifd_limits){0});
    ifd_arena_init(&arena, alloc, limits.arena_bytes);
    enum ifd_code code = ifd_parse_externals(file, &limits, &arena, &names, err);
    if (code == IFD_OK && names.count > 0) {
        code = fn(context, &names, err);
    }
    ifd_arena_finish(&arena);
    return code;
}
