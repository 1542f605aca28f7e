/* Variants of a model with open dimensions. Where data decides shapes, a run goes through several:
 * the graph of each ends where the next one's shapes are not known yet. */
#include "engine/model/shapes.h"

#include "engine/base/buf.h"
#include "engine/base/clock.h"
#include "engine/ir/shape.h"

#include <string.h>

#define CHAIN_MAX 1024 /* variants of one run */
#define KEY_BYTES (CHAIN_MAX * (size_t)(IFD_CUT_BYTES + 64) + ((size_t)1 << 20))

/* A model at certain shapes, with its instance. */
struct link {
    const struct ifd_model *model;
    struct ifd_instance *instance;
    struct ifd_tensor *input; /* behind a cut; NULL: the caller's */
    struct ifd_tensor *made;  /* in front of a cut: the graph's outputs; else NULL */
};

struct variant {
    struct link link;
    struct ifd_model *model;
    uint8_t *key; /* shapes of the inputs, and the content that was found on the way */
    size_t key_bytes;
    size_t bytes;
    uint64_t used; /* number of the run that used it last */
};

struct shapes {
    struct ifd_shapes base;
    const struct ifd_alloc *alloc;
    struct ifd_model *model;
    struct link example;           /* its instance is not owned: for the example shapes */
    struct ifd_input_shape *asked; /* per input: of the variant that is being made */
    struct ifd_buf key;            /* of the present run, so far */
    struct link present;           /* of the present run: what runs */
    uint32_t chain;                /* its number in the run */
    struct variant variant[IFD_SHAPES_MAX];
    uint32_t count;
    size_t bytes;  /* of all variants */
    uint64_t held; /* of these, by hold_shapes */
    uint64_t runs;
};

/* ---- shapes of a run ---- */

static enum ifd_code check_shapes(const struct ifd_model_info *info, const struct ifd_io *io,
                                  struct ifd_err *err)
{
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_shape *wanted = &info->input[i].desc.shape, *got = &io->input[i].shape;
        bool fits = got->rank == wanted->rank;
        for (uint32_t d = 0; fits && d < got->rank; d++) {
            fits = wanted->dim[d] == IFD_DIM_ANY ? got->dim[d] >= 0 : got->dim[d] == wanted->dim[d];
        }
        if (!fits) {
            return ifd_fail(err, IFD_INVALID,
                            "input \"%s\": shape %s, expected %s, any size for -1",
                            info->input[i].name, ifd_shape_text(got).s, ifd_shape_text(wanted).s);
        }
    }
    return IFD_OK;
}

static bool are_examples(const struct ifd_model_info *info, const struct ifd_io *io)
{
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (!ifd_shape_equal(&io->input[i].shape, &info->input[i].example)) {
            return false;
        }
    }
    return true;
}

/* ---- links ---- */

static void finish_link(const struct ifd_alloc *alloc, struct link *link)
{
    if (link->model) {
        ifd_release(alloc, link->input,
                    (link->model->graph.input_count + (size_t)1) * sizeof(*link->input));
        ifd_release(alloc, link->made,
                    (link->model->graph.output_count + (size_t)1) * sizeof(*link->made));
    }
    link->input = link->made = NULL;
}

/* The instance is there already, or comes later. */
static enum ifd_code init_link(const struct ifd_alloc *alloc, const struct ifd_model *model,
                               bool is_behind, struct link *ret, struct ifd_err *err)
{
    const size_t inputs = model->graph.input_count, outputs = model->graph.output_count;
    ret->model = model;
    ret->input = is_behind ? ifd_acquire_zeroed(alloc, inputs + 1, sizeof(*ret->input)) : NULL;
    ret->made =
        model->cut.is_cut ? ifd_acquire_zeroed(alloc, outputs + 1, sizeof(*ret->made)) : NULL;
    return (is_behind && !ret->input) || (model->cut.is_cut && !ret->made)
               ? ifd_fail(err, IFD_NOMEM, "no memory for %zu tensors", inputs + outputs)
               : IFD_OK;
}

/* ---- variants ---- */

static void finish_variant(const struct shapes *shapes, struct variant *variant)
{
    ifd_model_drop_instance(variant->link.instance);
    finish_link(shapes->alloc, &variant->link);
    ifd_model_destroy(variant->model);
    ifd_release(shapes->alloc, variant->key, variant->key_bytes);
}

static enum ifd_code hold(struct shapes *shapes, uint64_t bytes, struct ifd_err *err)
{
    const struct ifd_model *model = shapes->model;
    return model->hold_shapes ? model->hold_shapes(model->hold_context, &shapes->held, bytes, err)
                              : IFD_OK;
}

/* False: there is none but those of the present run. */
static bool drop_oldest(struct shapes *shapes)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < shapes->count; i++) {
        oldest = shapes->variant[i].used < shapes->variant[oldest].used ? i : oldest;
    }
    if (shapes->count == 0 || shapes->variant[oldest].used == shapes->runs) {
        return false;
    }
    shapes->bytes -= shapes->variant[oldest].bytes;
    finish_variant(shapes, &shapes->variant[oldest]);
    shapes->variant[oldest] = shapes->variant[--shapes->count];
    return true;
}

/* Memory of a variant: graph, plan, packed weights, and what its instance will take. */
static size_t variant_bytes(const struct variant *variant)
{
    const struct ifd_model *model = variant->model;
    return sizeof(*model) + ifd_arena_held_bytes(&model->arena) +
           ifd_arena_held_bytes(&model->plan[0]->arena) + model->info.packed_bytes +
           sizeof(struct ifd_instance) + model->info.arena_bytes + variant->key_bytes;
}

static bool is_full(const struct shapes *shapes, size_t bytes)
{
    return shapes->count == IFD_SHAPES_MAX || shapes->bytes > shapes->model->shape_bytes - bytes;
}

/* Makes room for one more variant. */
static enum ifd_code make_room(struct shapes *shapes, size_t bytes, struct ifd_err *err)
{
    const size_t limit = shapes->model->shape_bytes;
    if (bytes > limit) {
        return ifd_fail(err, IFD_TOO_LARGE, "they take %zu bytes, the limit of an instance is %zu",
                        bytes, limit);
    }
    while (is_full(shapes, bytes)) {
        if (!drop_oldest(shapes)) {
            return ifd_fail(err, IFD_TOO_LARGE,
                            "those of one run take %zu bytes and %zu more in %u plans, the limit "
                            "of an instance is %zu in %d",
                            shapes->bytes, bytes, shapes->count + 1, limit, IFD_SHAPES_MAX);
        }
    }
    enum ifd_code code = hold(shapes, shapes->bytes + bytes, err);
    while (code != IFD_OK && drop_oldest(shapes)) {
        code = hold(shapes, shapes->bytes + bytes, err);
    }
    return code;
}

/* Room is made before the instance takes its memory. */
static enum ifd_code fill_variant(struct shapes *shapes, const struct ifd_resume *resume,
                                  struct variant *variant, struct ifd_err *err)
{
    const struct ifd_instance_options options = {.threads = shapes->example.instance->team.count};
    enum ifd_code code = ifd_model_bind(shapes->model, shapes->asked, resume,
                                        shapes->model->shape_bytes, &variant->model, err);
    if (code == IFD_OK) {
        code = init_link(shapes->alloc, variant->model, resume != NULL, &variant->link, err);
    }
    if (code == IFD_OK) {
        variant->bytes = variant_bytes(variant);
        code = make_room(shapes, variant->bytes, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_instantiate(variant->model, &options, &variant->link.instance, err);
    }
    return code;
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

/* For the key of the present run. */
static enum ifd_code add_variant(struct shapes *shapes, const struct ifd_resume *resume,
                                 struct variant **ret, struct ifd_err *err)
{
    struct variant variant = {.key_bytes = shapes->key.size, .used = shapes->runs};
    variant.key = ifd_acquire(shapes->alloc, variant.key_bytes);
    if (!variant.key) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes of shapes", variant.key_bytes);
    }
    memcpy(variant.key, shapes->key.data, variant.key_bytes);
    const enum ifd_code code = fill_variant(shapes, resume, &variant, err);
    if (code != IFD_OK) {
        finish_variant(shapes, &variant);
        (void)hold(shapes, shapes->bytes, NULL); /* less always succeeds */
        return blame_shapes(code, err);
    }
    shapes->bytes += variant.bytes;
    shapes->variant[shapes->count] = variant;
    *ret = &shapes->variant[shapes->count++];
    return IFD_OK;
}

static struct variant *find_variant(struct shapes *shapes)
{
    for (uint32_t i = 0; i < shapes->count; i++) {
        struct variant *variant = &shapes->variant[i];
        if (variant->key_bytes == shapes->key.size &&
            memcmp(variant->key, shapes->key.data, shapes->key.size) == 0) {
            variant->used = shapes->runs;
            return variant;
        }
    }
    return NULL;
}

/* ---- a run ---- */

/* The last link writes what the caller wants. */
static void bind_present(struct shapes *shapes, const struct ifd_io *io, struct ifd_io *ret_io)
{
    const struct link *link = &shapes->present;
    *ret_io = *io;
    ret_io->input = link->input ? link->input : io->input;
    if (link->made) {
        memset(link->made, 0, link->model->graph.output_count * sizeof(*link->made));
        ret_io->output = link->made;
        ret_io->output_wanted = NULL;
    }
}

static enum ifd_code begin_key(struct shapes *shapes, const struct ifd_io *io, struct ifd_err *err)
{
    shapes->key.size = 0;
    for (uint32_t i = 0; i < shapes->model->info.input_count; i++) {
        const struct ifd_shape *shape = &io->input[i].shape;
        shapes->asked[i].shape = *shape;
        ifd_buf_add(&shapes->key, shape->dim, shape->rank * sizeof(shape->dim[0]));
    }
    return ifd_buf_check(&shapes->key, err);
}

static enum ifd_code first(struct ifd_shapes *self, const struct ifd_io *io,
                           struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err)
{
    struct shapes *shapes = (struct shapes *)self;
    const struct ifd_model_info *info = &shapes->model->info;
    shapes->runs++;
    shapes->chain = 0;
    enum ifd_code code = check_shapes(info, io, err);
    if (code == IFD_OK) {
        code = begin_key(shapes, io, err);
    }
    if (code == IFD_OK && are_examples(info, io)) {
        shapes->present = shapes->example;
    } else if (code == IFD_OK) {
        struct variant *found = find_variant(shapes);
        if (!found) {
            code = add_variant(shapes, NULL, &found, err);
        }
        shapes->present = code == IFD_OK ? found->link : (struct link){0};
    }
    if (code == IFD_OK) {
        bind_present(shapes, io, ret_io);
        *ret = shapes->present.instance;
    }
    return code;
}

/* The wanted value is output 0. */
static int64_t wanted_size(const struct ifd_tensor *wanted)
{
    int64_t size = 0;
    if (wanted->dtype == IFD_S64 && wanted->bytes >= sizeof(size)) {
        memcpy(&size, wanted->data, sizeof(size));
    }
    return size;
}

/* What a link hands on, as a tensor in its size. */
static enum ifd_code tensor_of(const struct link *link, const struct ifd_io *io,
                               const struct ifd_cut_value *value, struct ifd_tensor *ret,
                               struct ifd_err *err)
{
    const struct ifd_tensor *from = value->source == IFD_CUT_OUTPUT ? &link->made[value->index]
                                    : link->input                   ? &link->input[value->index]
                                                                    : &io->input[value->index];
    const int64_t size = wanted_size(&link->made[0]);
    *ret = *from;
    if (value->source == IFD_CUT_OUTPUT) {
        ret->capacity = from->bytes + IFD_TENSOR_PAD; /* it lies in an arena */
    }
    if (value->axis == IFD_NONE) {
        return IFD_OK;
    }
    const bool has_room =
        value->axis < ret->shape.rank && size >= 0 && size <= ret->shape.dim[value->axis];
    struct ifd_desc desc = {.dtype = ret->dtype, .shape = ret->shape};
    desc.shape.dim[has_room ? value->axis : 0] = size;
    if (!has_room || !ifd_desc_bytes(&desc, &ret->bytes)) {
        return ifd_fail(err, IFD_INTERNAL, "a result of size %lld in %s", (long long)size,
                        ifd_shape_text(&from->shape).s);
    }
    ret->shape = desc.shape;
    return IFD_OK;
}

/* Quantization goes with a value. */
static const struct ifd_quant *quant_of(const struct link *link, const struct ifd_cut_value *value)
{
    const struct ifd_graph *graph = &link->model->graph;
    const uint32_t at =
        value->source == IFD_CUT_OUTPUT ? graph->output[value->index] : graph->input[value->index];
    return &graph->value[at].desc.quant;
}

/* What behind the cut is a constant, and what an input: from->input becomes its content. */
static enum ifd_code describe_value(const struct link *link, const struct ifd_io *io,
                                    const struct ifd_cut_value *value, struct ifd_tensor *tensor,
                                    struct ifd_resume_value *ret, struct ifd_err *err)
{
    *ret = (struct ifd_resume_value){.id = value->id,
                                     .alias = value->alias,
                                     .desc = value->desc,
                                     .data = value->data,
                                     .is_constant = true};
    if (value->source == IFD_CUT_CONSTANT) {
        return IFD_OK;
    }
    const enum ifd_code code = tensor_of(link, io, value, tensor, err);
    ret->desc = (struct ifd_desc){
        .dtype = tensor->dtype, .shape = tensor->shape, .quant = *quant_of(link, value)};
    ret->is_constant = value->is_wanted || tensor->bytes == 0;
    if (ret->is_constant && tensor->bytes > 0) {
        ret->data = (struct ifd_bytes){.data = tensor->data, .size = tensor->bytes};
    }
    return code;
}

/* The inputs behind the cut, and how to read on. value, tensor: room for those of the cut. */
static enum ifd_code describe_cut(const struct link *link, const struct ifd_io *io,
                                  struct ifd_resume_value *value, struct ifd_tensor *tensor,
                                  struct ifd_resume *ret, struct ifd_err *err)
{
    const struct ifd_cut *cut = &link->model->cut;
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < cut->value_count; i++) {
        const enum ifd_code code =
            describe_value(link, io, &cut->value[i], &tensor[inputs], &value[i], err);
        if (code != IFD_OK) {
            return code;
        }
        inputs += value[i].is_constant ? 0 : 1;
    }
    *ret = (struct ifd_resume){.node = cut->node, .value = value, .value_count = cut->value_count};
    return IFD_OK;
}

static enum ifd_code extend_key(struct shapes *shapes, struct ifd_err *err)
{
    const struct ifd_tensor *wanted = &shapes->present.made[0];
    ifd_buf_add(&shapes->key, &wanted->bytes, sizeof(wanted->bytes));
    ifd_buf_add(&shapes->key, wanted->data, wanted->bytes);
    return ifd_buf_check(&shapes->key, err);
}

static enum ifd_code follow(struct shapes *shapes, const struct ifd_io *io,
                            struct ifd_resume_value *value, struct ifd_tensor *tensor,
                            struct ifd_err *err)
{
    struct ifd_resume resume;
    enum ifd_code code = describe_cut(&shapes->present, io, value, tensor, &resume, err);
    if (code == IFD_OK) {
        code = extend_key(shapes, err);
    }
    struct variant *found = code == IFD_OK ? find_variant(shapes) : NULL;
    if (code == IFD_OK && !found) {
        code = add_variant(shapes, &resume, &found, err);
    }
    if (code == IFD_OK) {
        shapes->present = found->link;
        memcpy(found->link.input, tensor, found->model->graph.input_count * sizeof(*tensor));
    }
    return code;
}

static enum ifd_code check_chain(struct shapes *shapes, const struct ifd_io *io,
                                 struct ifd_err *err)
{
    shapes->chain++;
    if (shapes->chain == CHAIN_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "data decides shapes more than %d times", CHAIN_MAX);
    }
    if (io->deadline_ns > 0 && ifd_monotonic_ns() >= io->deadline_ns) {
        return ifd_fail(err, IFD_DEADLINE, "data has decided shapes %u times when time is over",
                        shapes->chain);
    }
    return IFD_OK;
}

static enum ifd_code next(struct ifd_shapes *self, const struct ifd_io *io,
                          struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err)
{
    struct shapes *shapes = (struct shapes *)self;
    *ret = NULL;
    if (!shapes->present.made) {
        return IFD_OK;
    }
    const size_t count = shapes->present.model->cut.value_count + (size_t)1;
    struct ifd_resume_value *value = ifd_acquire_zeroed(shapes->alloc, count, sizeof(*value));
    struct ifd_tensor *tensor = ifd_acquire_zeroed(shapes->alloc, count, sizeof(*tensor));
    enum ifd_code code = value && tensor
                             ? check_chain(shapes, io, err)
                             : ifd_fail(err, IFD_NOMEM, "no memory for %zu tensors", count);
    if (code == IFD_OK) {
        code = follow(shapes, io, value, tensor, err);
    }
    ifd_release(shapes->alloc, value, count * sizeof(*value));
    ifd_release(shapes->alloc, tensor, count * sizeof(*tensor));
    if (code == IFD_OK) {
        bind_present(shapes, io, ret_io);
        *ret = shapes->present.instance;
    }
    return code;
}

/* ---- life ---- */

enum ifd_code ifd_shapes_create(struct ifd_model *model, struct ifd_instance *instance,
                                struct ifd_err *err)
{
    const struct ifd_alloc *alloc = model->engine->alloc;
    const uint32_t inputs = model->info.input_count;
    struct shapes *shapes = ifd_acquire_zeroed(alloc, 1, sizeof(*shapes));
    struct ifd_input_shape *asked = ifd_acquire_zeroed(alloc, inputs, sizeof(*asked));
    if (!shapes || !asked) {
        ifd_release(alloc, shapes, sizeof(*shapes));
        ifd_release(alloc, asked, inputs * sizeof(*asked));
        return ifd_fail(err, IFD_NOMEM, "no memory for the shapes of an instance");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        asked[i].name = model->info.input[i].name;
    }
    *shapes = (struct shapes){.base = {.first = first, .next = next},
                              .alloc = alloc,
                              .model = model,
                              .example = {.instance = instance},
                              .asked = asked};
    ifd_buf_init(&shapes->key, alloc, KEY_BYTES);
    instance->shapes = &shapes->base;
    return init_link(alloc, model, false, &shapes->example, err);
}

void ifd_shapes_destroy(struct ifd_shapes *base)
{
    struct shapes *shapes = (struct shapes *)base;
    if (!shapes) {
        return;
    }
    const struct ifd_alloc *alloc = shapes->alloc;
    for (uint32_t i = 0; i < shapes->count; i++) {
        finish_variant(shapes, &shapes->variant[i]);
    }
    finish_link(alloc, &shapes->example);
    ifd_buf_finish(&shapes->key);
    (void)hold(shapes, 0, NULL);
    ifd_release(alloc, shapes->asked, shapes->model->info.input_count * sizeof(*shapes->asked));
    ifd_release(alloc, shapes, sizeof(*shapes));
}
