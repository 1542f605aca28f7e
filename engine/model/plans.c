/* Plans of a model, one for each batch size. They share packed weights. */
#include "engine/model/plans.h"

#include "engine/ir/batch.h"
#include "engine/model/cached.h"

#include <string.h>

static void destroy_plan(struct ifd_model *model, struct ifd_model_plan *plan)
{
    ifd_executable_finish(&plan->executable);
    ifd_arena_finish(&plan->arena);
    ifd_release(model->engine->alloc, plan, sizeof(*plan));
}

/* The graph at a batch size (0: that of the file): the model's if it has it, else a clone in the
 * plan's arena. */
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

static bool decides(const struct ifd_graph *graph)
{
    for (; graph; graph = graph->next) {
        for (uint32_t n = 0; n < graph->node_count; n++) {
            if (ifd_op_def(graph->node[n].op)->decides) {
                return true;
            }
        }
    }
    return false;
}

/* What a plan is made with. */
struct making {
    int64_t batch;                           /* 0: that of the file */
    const struct ifd_executable *share_with; /* NULL: nothing */
    bool is_spare;                           /* no devices with memory of their own */
};

/* Fills ret with the slots of the model's preference that compute in host memory. */
static uint32_t prefer_host(const struct ifd_model *model, uint32_t *ret)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->preference_count; i++) {
        const uint32_t slot = model->preference[i];
        if (!model->engine->registry.slot[slot].backend->memory) {
            ret[count++] = slot;
        }
    }
    return count;
}

static enum ifd_code set_options(struct ifd_model *model, const struct making *making,
                                 struct ifd_arena *scratch, struct ifd_plan_options *ret,
                                 struct ifd_err *err)
{
    struct ifd_engine *engine = model->engine;
    *ret = (struct ifd_plan_options){.registry = &engine->registry,
                                     .preference = model->preference,
                                     .preference_count = model->preference_count,
                                     .max_threads = model->max_threads,
                                     .exact = engine->registry.host.exact || decides(&model->graph),
                                     .precision = model->precision,
                                     .share_with =
                                         making->share_with ? &making->share_with->plan : NULL};
    if (model->releases_weights) {
        ret->release_constant = ifd_weights_release;
        ret->release_context = &model->weights;
    }
    if (making->is_spare) {
        uint32_t *host = ifd_arena_take_array(scratch, model->preference_count, sizeof(*host));
        if (!host) {
            return ifd_arena_fail(scratch, model->preference_count * sizeof(*host), err);
        }
        ret->preference_count = prefer_host(model, host);
        ret->preference = host;
    }
    return IFD_OK;
}

/* The spare plan reads constants again. */
static void keep_constants(const struct ifd_plan *plan)
{
    for (uint32_t p = 0; plan->device_count > 0 && p < plan->partition_count; p++) {
        plan->view[p].release_constant = NULL;
    }
}

static enum ifd_code build_plan(struct ifd_model *model, const struct making *making,
                                struct ifd_model_plan *ret_plan, struct ifd_err *err)
{
    const int64_t batch = making->batch;
    struct ifd_plan_options options;
    struct ifd_arena scratch;
    struct ifd_graph graph;
    struct ifd_plan plan;
    ifd_arena_init(&scratch, model->engine->alloc, 0);
    enum ifd_code code = set_options(model, making, &scratch, &options, err);
    if (code == IFD_OK) {
        code = graph_for(model, batch, &ret_plan->arena, &graph, err);
    }
    if (code == IFD_OK) {
        code = ifd_plan_partition(&graph, &options, &ret_plan->arena, &scratch, &plan, err);
    }
    if (code == IFD_OK) {
        keep_constants(&plan);
    }
    if (code == IFD_OK && !making->share_with && !making->is_spare) {
        ifd_model_offer_cached(model, &plan);
    }
    if (code == IFD_OK) {
        code = ifd_executable_init(&ret_plan->executable, &plan, batch > 0 ? batch : 1, &options,
                                   making->share_with, model->limits.arena_bytes, &ret_plan->arena,
                                   err);
    }
    ifd_arena_finish(&scratch);
    return code;
}

/* A backend may find when it compiles that it cannot compute a node that it took. It does not take
 * the node again: each plan is another one than that before, or fails with the same words. */
static enum ifd_code plan_until_all_compile(struct ifd_model *model, const struct making *making,
                                            struct ifd_model_plan *plan, struct ifd_err *err)
{
    struct ifd_err before = {0}, now = {0};
    enum ifd_code code = build_plan(model, making, plan, &now);
    while (code == IFD_UNSUPPORTED && !making->share_with && strcmp(before.text, now.text) != 0) {
        before = now;
        ifd_arena_finish(&plan->arena);
        ifd_arena_init(&plan->arena, model->engine->alloc, 0);
        code = build_plan(model, making, plan, &now);
    }
    if (code != IFD_OK) {
        const bool has_why = strcmp(before.text, now.text) != 0 && before.text[0] != '\0';
        (void)ifd_fail(err, code, "%s%s%s", now.text, has_why ? "; " : "",
                       has_why ? before.text : "");
    } else if (!model->plan[0] && before.text[0] != '\0') {
        model->taken_back = before;
        model->info.taken_back = model->taken_back.text;
    }
    return code;
}

static enum ifd_code make_plan(struct ifd_model *model, const struct making *making,
                               struct ifd_model_plan **ret, struct ifd_err *err)
{
    struct ifd_model_plan *plan = ifd_acquire_zeroed(model->engine->alloc, 1, sizeof(*plan));
    if (!plan) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a plan");
    }
    ifd_arena_init(&plan->arena, model->engine->alloc, 0);
    const enum ifd_code code = plan_until_all_compile(model, making, plan, err);
    if (code != IFD_OK) {
        if (making->batch > 1) {
            ifd_err_prefix(err, "batch %lld", (long long)making->batch);
        }
        destroy_plan(model, plan);
        return code;
    }
    *ret = plan;
    return IFD_OK;
}

enum ifd_code ifd_model_add_plan(struct ifd_model *model, uint32_t index, int64_t batch,
                                 struct ifd_err *err)
{
    const struct making making = {.batch = batch,
                                  .share_with = index > 0 ? &model->plan[0]->executable : NULL};
    return make_plan(model, &making, &model->plan[index], err);
}

enum ifd_code ifd_model_spare_plan(struct ifd_model *model, const struct ifd_executable **ret,
                                   struct ifd_err *err)
{
    const struct making making = {.batch = ifd_model_plan_batch(model), .is_spare = true};
    enum ifd_code code = IFD_OK;
    ifd_mutex_lock(&model->lock);
    if (!model->spare_plan) {
        code = make_plan(model, &making, &model->spare_plan, err);
    }
    if (code == IFD_OK) {
        *ret = &model->spare_plan->executable;
    }
    ifd_mutex_unlock(&model->lock);
    return code;
}

int64_t ifd_model_plan_batch(const struct ifd_model *model)
{
    return model->info.batch_is_free && !model->info.has_open_dims ? 1 : 0;
}

void ifd_model_destroy_plans(struct ifd_model *model)
{
    if (model->spare_plan) {
        destroy_plan(model, model->spare_plan);
    }
    /* plan[0] last: the others share its packed constants. */
    for (uint32_t i = IFD_BATCH_PLANS; i-- > 0;) {
        if (model->plan[i]) {
            destroy_plan(model, model->plan[i]);
        }
    }
}

/* Of the second-level cache, where it is unknown. */
#define CACHE_BYTES ((size_t)1 << 20)

/* On processors a batch pays while its tensors fit the second-level cache or are smaller than the
 * weights, which it reads once. Beyond, several runs of fewer samples are faster and take less
 * memory. A device with memory of its own is faster the more it gets at once. */
static bool batch_pays(const struct ifd_model *model, int64_t batch)
{
    if (model->plan[0]->executable.plan.device_count > 0) {
        return true;
    }
    const size_t known = model->engine->registry.host.cpu.l2_bytes;
    const size_t cache = known > 0 ? known : CACHE_BYTES;
    const size_t most = model->info.constant_bytes > cache ? model->info.constant_bytes : cache;
    return (size_t)batch <= most / (model->info.arena_bytes > 0 ? model->info.arena_bytes : 1);
}

enum ifd_code ifd_model_complete_plans(struct ifd_model *model, uint32_t max_batch,
                                       uint32_t *ret_count, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    uint32_t count = 1;
    ifd_mutex_lock(&model->lock);
    while (model->info.batch_is_free && count < IFD_BATCH_PLANS &&
           ifd_batch_size(count) <= max_batch && batch_pays(model, ifd_batch_size(count))) {
        if (!model->plan[count]) {
            code = ifd_model_add_plan(model, count, ifd_batch_size(count), err);
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
