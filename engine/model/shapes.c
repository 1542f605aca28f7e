/* Variants of a model with open dimensions. */
#include "engine/model/shapes.h"

#include "engine/ir/shape.h"

struct variant {
    struct ifd_model *model;
    struct ifd_instance *instance;
    struct ifd_shape *shape; /* per input */
    size_t bytes;
    uint64_t used; /* number of the run that used it last */
};

struct shapes {
    struct ifd_shapes base;
    const struct ifd_alloc *alloc;
    struct ifd_model *model;
    struct ifd_instance *example;  /* not owned: for the example shapes */
    struct ifd_input_shape *asked; /* per input: of the variant that is being made */
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
            fits = wanted->dim[d] == IFD_DIM_ANY ? got->dim[d] > 0 : got->dim[d] == wanted->dim[d];
        }
        if (!fits) {
            return ifd_fail(err, IFD_INVALID,
                            "input \"%s\": shape %s, expected %s, 1 or more for -1",
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

static bool is_for(const struct variant *variant, uint32_t input_count, const struct ifd_io *io)
{
    for (uint32_t i = 0; i < input_count; i++) {
        if (!ifd_shape_equal(&io->input[i].shape, &variant->shape[i])) {
            return false;
        }
    }
    return true;
}

/* ---- variants ---- */

static void finish_variant(const struct shapes *shapes, struct variant *variant)
{
    ifd_model_drop_instance(variant->instance);
    ifd_model_destroy(variant->model);
    ifd_release(shapes->alloc, variant->shape,
                (shapes->model->info.input_count + (size_t)1) * sizeof(*variant->shape));
}

static enum ifd_code hold(struct shapes *shapes, uint64_t bytes, struct ifd_err *err)
{
    const struct ifd_model *model = shapes->model;
    return model->hold_shapes ? model->hold_shapes(model->hold_context, &shapes->held, bytes, err)
                              : IFD_OK;
}

static void drop_oldest(struct shapes *shapes)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < shapes->count; i++) {
        oldest = shapes->variant[i].used < shapes->variant[oldest].used ? i : oldest;
    }
    shapes->bytes -= shapes->variant[oldest].bytes;
    finish_variant(shapes, &shapes->variant[oldest]);
    shapes->variant[oldest] = shapes->variant[--shapes->count];
}

/* Memory of a variant: graph, plan, packed weights, and what its instance will take. */
static size_t variant_bytes(const struct ifd_model *model)
{
    return sizeof(*model) + ifd_arena_held_bytes(&model->arena) +
           ifd_arena_held_bytes(&model->plan[0]->arena) + model->info.packed_bytes +
           sizeof(struct ifd_instance) + model->info.arena_bytes;
}

/* Makes room for one more variant. */
static enum ifd_code make_room(struct shapes *shapes, size_t bytes, struct ifd_err *err)
{
    const size_t limit = shapes->model->shape_bytes;
    if (bytes > limit) {
        return ifd_fail(err, IFD_TOO_LARGE, "they take %zu bytes, the limit of an instance is %zu",
                        bytes, limit);
    }
    while (shapes->count > 0 &&
           (shapes->count == IFD_SHAPES_MAX || shapes->bytes > limit - bytes)) {
        drop_oldest(shapes);
    }
    enum ifd_code code = hold(shapes, shapes->bytes + bytes, err);
    while (code != IFD_OK && shapes->count > 0) {
        drop_oldest(shapes);
        code = hold(shapes, shapes->bytes + bytes, err);
    }
    return code;
}

/* Room is made before the instance takes its memory. */
static enum ifd_code fill_variant(struct shapes *shapes, struct variant *variant,
                                  struct ifd_err *err)
{
    const struct ifd_instance_options options = {.threads = shapes->example->team.count};
    enum ifd_code code = ifd_model_bind(shapes->model, shapes->asked, shapes->model->shape_bytes,
                                        &variant->model, err);
    if (code == IFD_OK) {
        variant->bytes = variant_bytes(variant->model);
        code = make_room(shapes, variant->bytes, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_instantiate(variant->model, &options, &variant->instance, err);
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

static enum ifd_code add_variant(struct shapes *shapes, const struct ifd_io *io,
                                 struct variant **ret, struct ifd_err *err)
{
    const uint32_t inputs = shapes->model->info.input_count;
    struct variant variant = {
        .shape = ifd_acquire_zeroed(shapes->alloc, inputs + (size_t)1, sizeof(*variant.shape))};
    if (!variant.shape) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u shapes", inputs);
    }
    for (uint32_t i = 0; i < inputs; i++) {
        variant.shape[i] = shapes->asked[i].shape = io->input[i].shape;
    }
    const enum ifd_code code = fill_variant(shapes, &variant, err);
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

static enum ifd_code choose(struct ifd_shapes *self, const struct ifd_io *io,
                            struct ifd_instance **ret, struct ifd_err *err)
{
    struct shapes *shapes = (struct shapes *)self;
    const struct ifd_model_info *info = &shapes->model->info;
    struct variant *found = NULL;
    enum ifd_code code = check_shapes(info, io, err);
    if (code != IFD_OK || are_examples(info, io)) {
        *ret = shapes->example;
        return code;
    }
    for (uint32_t i = 0; i < shapes->count && !found; i++) {
        found = is_for(&shapes->variant[i], info->input_count, io) ? &shapes->variant[i] : NULL;
    }
    if (!found) {
        code = add_variant(shapes, io, &found, err);
    }
    if (code == IFD_OK) {
        found->used = ++shapes->runs;
        *ret = found->instance;
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
    *shapes = (struct shapes){.base = {.choose = choose},
                              .alloc = alloc,
                              .model = model,
                              .example = instance,
                              .asked = asked};
    instance->shapes = &shapes->base;
    return IFD_OK;
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
    (void)hold(shapes, 0, NULL);
    ifd_release(alloc, shapes->asked, shapes->model->info.input_count * sizeof(*shapes->asked));
    ifd_release(alloc, shapes, sizeof(*shapes));
}
