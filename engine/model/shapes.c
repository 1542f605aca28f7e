/* Variants of a model with open dimensions: made, found again, released. Where data decides shapes,
 * a run goes through several (chain.c). */
#include "engine/ir/eval.h"
#include "engine/model/plans.h"
#include "engine/model/shapes_impl.h"

#include <string.h>
#include <sys/random.h>

/* Of one reading, in the key of a variant. */
#define KEY_BYTES ((size_t)16 << 20)

/* ---- links ---- */

static void finish_link(const struct ifd_alloc *alloc, struct ifd_link *link)
{
    if (link->model) {
        ifd_release(alloc, link->input,
                    (link->model->graph.input_count + (size_t)1) * sizeof(*link->input));
        ifd_release(alloc, link->made,
                    (link->model->graph.output_count + (size_t)1) * sizeof(*link->made));
        ifd_release(alloc, link->sum,
                    (link->model->cut.value_count + (size_t)1) * sizeof(*link->sum));
    }
    link->input = link->made = NULL;
    link->sum = NULL;
}

/* The instance is there already, or comes later. */
static enum ifd_code init_link(const struct ifd_shapes_of *shapes, const struct ifd_model *model,
                               bool is_behind, struct ifd_link *ret, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = shapes->alloc;
    const size_t inputs = model->graph.input_count, outputs = model->graph.output_count;
    const size_t values = model->cut.value_count;
    const bool is_cut = model->cut.is_cut;
    ret->model = model;
    ret->input = is_behind ? ifd_acquire_zeroed(alloc, inputs + 1, sizeof(*ret->input)) : NULL;
    ret->made = is_cut ? ifd_acquire_zeroed(alloc, outputs + 1, sizeof(*ret->made)) : NULL;
    ret->sum = is_cut ? ifd_acquire_zeroed(alloc, values + 1, sizeof(*ret->sum)) : NULL;
    if ((is_behind && !ret->input) || (is_cut && (!ret->made || !ret->sum))) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu tensors", inputs + outputs + values);
    }
    if (is_cut) {
        ifd_link_sum(shapes, ret);
    }
    return IFD_OK;
}

/* ---- variants ---- */

static void finish_variant(const struct ifd_shapes_of *shapes, struct ifd_variant *variant)
{
    ifd_model_drop_instance(variant->link.instance);
    finish_link(shapes->alloc, &variant->link);
    ifd_model_destroy(variant->model);
    ifd_release(shapes->alloc, variant->key, variant->key_bytes);
}

static enum ifd_code hold(struct ifd_shapes_of *shapes, uint64_t bytes, struct ifd_err *err)
{
    const struct ifd_model *model = shapes->model;
    return model->hold_shapes ? model->hold_shapes(model->hold_context, &shapes->held, bytes, err)
                              : IFD_OK;
}

bool ifd_tensor_lies_in(const struct ifd_tensor *tensor, const uint8_t *memory, size_t bytes)
{
    const uintptr_t at = (uintptr_t)tensor->data, begin = (uintptr_t)memory;
    return memory && at >= begin && at - begin < bytes;
}

enum ifd_code ifd_variants_rescue(struct ifd_shapes_of *shapes, const struct ifd_instance *instance,
                                  struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < shapes->live_count; i++) {
        struct ifd_tensor *tensor = &shapes->live[i];
        if (!instance->borrows_arena &&
            (ifd_tensor_lies_in(tensor, instance->arena, instance->arena_bytes) ||
             ifd_tensor_lies_in(tensor, instance->store, instance->store_bytes))) {
            code = ifd_kept_copy(&shapes->kept, tensor, err);
        }
    }
    return code;
}

/* NULL: there is none that may go. */
static struct ifd_variant *find_oldest(struct ifd_shapes_of *shapes)
{
    struct ifd_variant *oldest = NULL;
    for (uint32_t i = 0; i < shapes->count; i++) {
        struct ifd_variant *variant = &shapes->variant[i];
        const bool is_older = !oldest || variant->used < oldest->used;
        if (is_older && variant->link.instance != shapes->present.instance) {
            oldest = variant;
        }
    }
    return oldest;
}

/* What the next variant reads of it is copied: that takes less memory than the variant did. False:
 * there is none that may go, or no memory. */
static bool drop_oldest(struct ifd_shapes_of *shapes)
{
    struct ifd_variant *oldest = find_oldest(shapes);
    if (!oldest || ifd_variants_rescue(shapes, oldest->link.instance, NULL) != IFD_OK) {
        return false;
    }
    shapes->bytes -= oldest->bytes;
    finish_variant(shapes, oldest);
    *oldest = shapes->variant[--shapes->count];
    return true;
}

/* Devices read and write the memory that their instance has had from the beginning. */
static bool borrows_arena(const struct ifd_model *model)
{
    return model->plan[0]->executable.plan.device_count == 0;
}

/* Memory of a variant: graph, plans, packed weights, and what its instance will take. */
static size_t variant_bytes(const struct ifd_variant *variant)
{
    const struct ifd_model *model = variant->model;
    size_t plans = 0, arena = 0;
    for (uint32_t i = 0; i < IFD_BATCH_PLANS && model->plan[i]; i++) {
        const size_t wanted = model->plan[i]->executable.plan.arena_bytes;
        plans += ifd_arena_held_bytes(&model->plan[i]->arena);
        arena = wanted > arena ? wanted : arena;
    }
    return sizeof(*model) + ifd_arena_held_bytes(&model->arena) - model->weights.released_bytes +
           plans + model->info.packed_bytes + sizeof(struct ifd_instance) +
           (borrows_arena(model) ? 0 : arena) + variant->key_bytes;
}

/* It is there, so the sum is no larger than memory. */
size_t ifd_variants_bytes(const struct ifd_shapes_of *shapes)
{
    return shapes->bytes + shapes->kept.bytes + shapes->shared_bytes;
}

static bool is_full(const struct ifd_shapes_of *shapes, size_t bytes, uint32_t variants)
{
    const size_t limit = shapes->model->shape_bytes - bytes;
    return shapes->count + variants > IFD_SHAPES_MAX || ifd_variants_bytes(shapes) > limit;
}

enum ifd_code ifd_variants_make_room(struct ifd_shapes_of *shapes, size_t bytes, uint32_t variants,
                                     struct ifd_err *err)
{
    const size_t limit = shapes->model->shape_bytes;
    if (bytes > limit) {
        return ifd_fail(err, IFD_TOO_LARGE, "they take %zu bytes, the limit of an instance is %zu",
                        bytes, limit);
    }
    while (is_full(shapes, bytes, variants)) {
        if (!drop_oldest(shapes)) {
            return ifd_fail(err, IFD_TOO_LARGE,
                            "those of one run take %zu bytes and %zu more in %u plans, the limit "
                            "of an instance is %zu in %d",
                            ifd_variants_bytes(shapes), bytes, shapes->count + variants, limit,
                            IFD_SHAPES_MAX);
        }
    }
    enum ifd_code code = hold(shapes, ifd_variants_bytes(shapes) + bytes, err);
    while (code != IFD_OK && drop_oldest(shapes)) {
        code = hold(shapes, ifd_variants_bytes(shapes) + bytes, err);
    }
    shapes->is_denied = code != IFD_OK;
    return code;
}

/* A run while the model loads may compute as much as the file may ask for. */
static enum ifd_code check_work(struct ifd_shapes_of *shapes, const struct ifd_model *model,
                                struct ifd_err *err)
{
    if (shapes->work_limit == 0) {
        return IFD_OK;
    }
    shapes->work += ifd_graph_work(&model->graph);
    return shapes->work <= shapes->work_limit
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "%.0f elements and products, the limit is %.0f",
                          shapes->work, shapes->work_limit);
}

/* Room is made before the instance takes its memory. */
static enum ifd_code fill_variant(struct ifd_shapes_of *shapes, const struct ifd_resume *resume,
                                  struct ifd_variant *variant, struct ifd_err *err)
{
    const struct ifd_instance_options options = {.threads = shapes->example.instance->team.count,
                                                 .max_batch =
                                                     shapes->is_shared ? shapes->max_batch : 1};
    uint32_t plans = 0;
    enum ifd_code code = ifd_model_bind(shapes->model, shapes->asked, resume, shapes->is_shared,
                                        shapes->model->shape_bytes, &variant->model, err);
    if (code == IFD_OK) {
        code = check_work(shapes, variant->model, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_complete_plans(variant->model, options.max_batch, &plans, err);
    }
    if (code == IFD_OK) {
        code = init_link(shapes, variant->model, resume != NULL, &variant->link, err);
    }
    if (code == IFD_OK) {
        variant->bytes = variant_bytes(variant);
        code = ifd_variants_make_room(shapes, variant->bytes, 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_instantiate(variant->model, &options, borrows_arena(variant->model),
                                     &variant->link.instance, err);
    }
    if (code == IFD_OK) {
        shapes->bytes += variant->bytes; /* it is there while others make room */
        code = ifd_shared_lend(shapes, variant->link.instance, err);
        shapes->bytes -= variant->bytes;
    }
    if (code == IFD_OK) { /* room for inputs that are read in place is never touched */
        variant->link.instance->populates = false;
    }
    return code;
}

/* Room for one variant more. */
static enum ifd_code grow_list(struct ifd_shapes_of *shapes, struct ifd_err *err)
{
    if (shapes->count < shapes->capacity) {
        return IFD_OK;
    }
    const uint32_t more = shapes->capacity > 0 ? 2 * shapes->capacity : 8;
    struct ifd_variant *grown = ifd_acquire_zeroed(shapes->alloc, more, sizeof(*grown));
    if (!grown) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u plans", more);
    }
    if (shapes->count > 0) {
        memcpy(grown, shapes->variant, shapes->count * sizeof(*grown));
    }
    ifd_release(shapes->alloc, shapes->variant, shapes->capacity * sizeof(*grown));
    shapes->variant = grown;
    shapes->capacity = more;
    return IFD_OK;
}

/* The file was sound in other shapes. */
static enum ifd_code blame_shapes(enum ifd_code code, struct ifd_err *err)
{
    if (code == IFD_TOO_LARGE) {
        ifd_err_prefix(err, "shapes of this size");
    }
    if (code != IFD_CORRUPT && code != IFD_UNSUPPORTED) {
        return code;
    }
    ifd_err_prefix(err, "the model cannot take these shapes");
    if (err) {
        err->code = IFD_INVALID;
    }
    return IFD_INVALID;
}

enum ifd_code ifd_variant_add(struct ifd_shapes_of *shapes, const struct ifd_resume *resume,
                              struct ifd_variant **ret, struct ifd_err *err)
{
    struct ifd_variant variant = {
        .key_bytes = shapes->key.size, .key_sum = shapes->key_sum, .used = shapes->steps};
    variant.key = ifd_acquire(shapes->alloc, variant.key_bytes);
    if (!variant.key) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes of shapes", variant.key_bytes);
    }
    memcpy(variant.key, shapes->key.data, variant.key_bytes);
    enum ifd_code code = grow_list(shapes, err);
    if (code == IFD_OK) {
        code = fill_variant(shapes, resume, &variant, err);
    }
    if (code != IFD_OK) {
        finish_variant(shapes, &variant);
        (void)hold(shapes, ifd_variants_bytes(shapes), NULL); /* less always succeeds */
        return blame_shapes(code, err);
    }
    shapes->bytes += variant.bytes;
    shapes->variant[shapes->count] = variant;
    *ret = &shapes->variant[shapes->count++];
    return IFD_OK;
}

struct ifd_variant *ifd_variant_find(struct ifd_shapes_of *shapes)
{
    struct ifd_mac mac;
    ifd_mac_start(&mac, shapes->mac_key);
    ifd_mac_add(&mac, shapes->key.data, shapes->key.size);
    shapes->key_sum = ifd_mac_sum(&mac);
    for (uint32_t i = 0; i < shapes->count; i++) {
        struct ifd_variant *variant = &shapes->variant[i];
        if (variant->key_sum == shapes->key_sum && variant->key_bytes == shapes->key.size &&
            memcmp(variant->key, shapes->key.data, shapes->key.size) == 0) {
            variant->used = shapes->steps;
            return variant;
        }
    }
    return NULL;
}

/* ---- life ---- */

enum ifd_code ifd_shapes_create(struct ifd_model *model, struct ifd_instance *instance,
                                uint32_t max_batch, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = model->engine->alloc;
    const uint32_t inputs = model->info.input_count;
    struct ifd_shapes_of *shapes = ifd_acquire_zeroed(alloc, 1, sizeof(*shapes));
    struct ifd_input_shape *asked = ifd_acquire_zeroed(alloc, inputs, sizeof(*asked));
    if (!shapes || !asked) {
        ifd_release(alloc, shapes, sizeof(*shapes));
        ifd_release(alloc, asked, inputs * sizeof(*asked));
        return ifd_fail(err, IFD_NOMEM, "no memory for the shapes of an instance");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        asked[i].name = model->info.input[i].name;
    }
    *shapes = (struct ifd_shapes_of){.base = {.first = ifd_chain_first, .next = ifd_chain_next},
                                     .alloc = alloc,
                                     .model = model,
                                     .example = {.instance = instance},
                                     .asked = asked,
                                     .max_batch = max_batch,
                                     .kept = {.alloc = alloc}};
    ifd_buf_init(&shapes->key, alloc, KEY_BYTES);
    instance->shapes = &shapes->base;
    if (getrandom(shapes->mac_key, sizeof(shapes->mac_key), 0) < 0) {
        return ifd_fail(err, IFD_IO, "no random numbers");
    }
    return init_link(shapes, model, false, &shapes->example, err);
}

void ifd_shapes_destroy(struct ifd_shapes *base)
{
    struct ifd_shapes_of *shapes = (struct ifd_shapes_of *)base;
    if (!shapes) {
        return;
    }
    const struct ifd_alloc *alloc = shapes->alloc;
    for (uint32_t i = 0; i < shapes->count; i++) {
        finish_variant(shapes, &shapes->variant[i]);
    }
    finish_link(alloc, &shapes->example);
    ifd_kept_clear(&shapes->kept);
    ifd_shared_finish(shapes);
    ifd_buf_finish(&shapes->key);
    (void)hold(shapes, 0, NULL);
    ifd_release(alloc, shapes->variant, shapes->capacity * sizeof(*shapes->variant));
    ifd_release(alloc, shapes->asked, shapes->model->info.input_count * sizeof(*shapes->asked));
    ifd_release(alloc, shapes, sizeof(*shapes));
}
