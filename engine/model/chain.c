/* A run of a model with open dimensions. Where data decides shapes it goes through several
 * variants: the graph of each ends where the next one's shapes are not known yet. A variant is
 * found again by all that its reading depends on, so the turns of a loop share one while their
 * shapes are the same. */
#include "engine/base/clock.h"
#include "engine/exec/control.h"
#include "engine/ir/shape.h"
#include "engine/model/shapes_impl.h"

#include <string.h>

#define CHAIN_MAX 65536 /* variants of one run */
#define MADE_MAX  4096  /* those that it has to make */
/* A run without a deadline has IFD_LOOP_NS from the first turn of its loops on, or from when it
 * has made more plans than this. One whose loops carry sequences reads all turns again for each
 * plan. */
#define MADE_QUICKLY 256
/* Those of a run while a file loads, whatever the time: a busy machine refuses no file. */
#define TRIED_EVER 16

/* ---- shapes of a run ---- */

static enum ifd_code check_shapes(const struct ifd_model_info *info, const struct ifd_io *io,
                                  struct ifd_err *err)
{
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_shape *wanted = &info->input[i].desc.shape, *got = &io->input[i].shape;
        const bool is_batched = info->input[i].batched;
        bool fits = got->rank == wanted->rank && (!is_batched || got->dim[0] >= 0);
        for (uint32_t d = is_batched ? 1 : 0; fits && d < got->rank; d++) {
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
    if (info->unsized[0] != '\0') {
        return false;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (!ifd_shape_equal(&io->input[i].shape, &info->input[i].example)) {
            return false;
        }
    }
    return true;
}

/* ---- between two variants ---- */

/* The last link writes what the caller wants. */
static void bind_present(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                         struct ifd_io *ret_io)
{
    const struct ifd_link *link = &shapes->present;
    *ret_io = *io;
    ret_io->input = link->input ? link->input : io->input;
    ret_io->deadline_ns = shapes->deadline_ns;
    if (link->made) {
        memset(link->made, 0, link->model->graph.output_count * sizeof(*link->made));
        ret_io->output = link->made;
        ret_io->output_wanted = NULL;
    }
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
static enum ifd_code tensor_of(const struct ifd_link *link, const struct ifd_io *io,
                               const struct ifd_cut_value *value, struct ifd_tensor *ret,
                               struct ifd_err *err)
{
    if (value->source == IFD_CUT_CONSTANT) {
        *ret = (struct ifd_tensor){.dtype = value->desc.dtype,
                                   .shape = value->desc.shape,
                                   .data = (void *)(uintptr_t)value->data.data,
                                   .bytes = value->data.size,
                                   .capacity = value->data.size};
        return IFD_OK;
    }
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
static const struct ifd_quant *quant_of(const struct ifd_link *link,
                                        const struct ifd_cut_value *value)
{
    const struct ifd_graph *graph = &link->model->graph;
    if (value->source == IFD_CUT_CONSTANT) {
        return &value->desc.quant;
    }
    const uint32_t at =
        value->source == IFD_CUT_OUTPUT ? graph->output[value->index] : graph->input[value->index];
    return &graph->value[at].desc.quant;
}

/* What behind the cut is a constant, and what an input: from->input becomes its content. */
static enum ifd_code describe_value(const struct ifd_link *link, const struct ifd_io *io,
                                    const struct ifd_cut_value *value, struct ifd_tensor *tensor,
                                    struct ifd_resume_value *ret, struct ifd_err *err)
{
    *ret = (struct ifd_resume_value){.id = value->id,
                                     .alias = value->alias,
                                     .desc = value->desc,
                                     .data = value->data,
                                     .is_constant = true};
    if (value->source == IFD_CUT_CONSTANT && !value->is_variable) {
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

/* Is the loop over whose turn the link was? */
static bool is_over(const struct ifd_link *link)
{
    const struct ifd_tensor *wanted = &link->made[0];
    return wanted->bytes == 0 || *(const uint8_t *)wanted->data == 0;
}

/* Adds an element to its list. *ret_is_whole: the loop is over, and *tensor the list. No variant
 * goes for it: what the next one reads is not known yet. */
static enum ifd_code take_element(struct ifd_shapes_of *shapes, const struct ifd_cut_value *value,
                                  struct ifd_tensor *tensor, bool *ret_is_whole,
                                  struct ifd_err *err)
{
    struct ifd_kept *kept = &shapes->kept;
    const bool begins = value->list == IFD_CUT_LIST_BEGINS;
    const size_t growth = ifd_kept_growth(kept, value->id, begins, tensor);
    const size_t limit = shapes->model->shape_bytes;
    const struct ifd_tensor element = *tensor;
    *ret_is_whole = is_over(&shapes->present);
    if (kept->bytes > limit || growth > limit - kept->bytes) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "the lists of a loop take %zu bytes and %zu more, the limit of an instance "
                        "is %zu",
                        kept->bytes, growth, limit);
    }
    const enum ifd_code code = ifd_kept_append(kept, value->id, begins, &element, err);
    return code == IFD_OK && *ret_is_whole ? ifd_kept_take(kept, value->id, tensor, err) : code;
}

/* Is it one that the next run of a plan overwrites? Texts that a link makes or hands on lie in the
 * memory of any plan, wherever their tensor is. */
static bool is_fleeting(const struct ifd_cut_value *value, const struct ifd_tensor *tensor)
{
    return value->is_variable ||
           (value->source == IFD_CUT_OUTPUT && tensor->dtype == IFD_STR && tensor->bytes > 0);
}

/* One text may be many elements: their copies have the limit of lists. */
static enum ifd_code keep(struct ifd_shapes_of *shapes, struct ifd_tensor *tensor,
                          struct ifd_err *err)
{
    const size_t limit = shapes->model->shape_bytes, bytes = ifd_kept_bytes_of(tensor);
    if (tensor->dtype == IFD_STR &&
        (shapes->kept.bytes > limit || bytes > limit - shapes->kept.bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "a run keeps %zu bytes and %zu more of texts, the limit of an instance is "
                        "%zu",
                        shapes->kept.bytes, bytes, limit);
    }
    return ifd_kept_copy(&shapes->kept, tensor, err);
}

static enum ifd_code take_value(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                const struct ifd_cut_value *value, struct ifd_tensor *tensor,
                                struct ifd_resume *resume, struct ifd_err *err)
{
    struct ifd_resume_value *to = (struct ifd_resume_value *)&resume->value[resume->value_count];
    bool is_whole = true;
    enum ifd_code code = IFD_OK;
    if (value->list == IFD_CUT_NO_LIST) {
        code = describe_value(&shapes->present, io, value, tensor, to, err);
    } else {
        code = tensor_of(&shapes->present, io, value, tensor, err);
        if (code == IFD_OK) {
            code = take_element(shapes, value, tensor, &is_whole, err);
        }
        *to = (struct ifd_resume_value){.id = value->id,
                                        .desc = {.dtype = tensor->dtype, .shape = tensor->shape},
                                        .is_constant = tensor->bytes == 0};
    }
    if (code == IFD_OK && value->list == IFD_CUT_NO_LIST && !to->is_constant &&
        is_fleeting(value, tensor)) {
        code = keep(shapes, tensor, err);
    }
    shapes->live_count += is_whole && !to->is_constant ? 1 : 0;
    resume->value_count += is_whole ? 1 : 0;
    return code;
}

/* The inputs behind the cut, in shapes->live, and how to read on. value: room for those of it. */
static enum ifd_code describe_cut(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                  struct ifd_resume_value *value, struct ifd_resume *ret,
                                  struct ifd_err *err)
{
    const struct ifd_cut *cut = &shapes->present.model->cut;
    enum ifd_code code = IFD_OK;
    *ret = (struct ifd_resume){.node = cut->node, .value = value};
    for (uint32_t i = 0; code == IFD_OK && i < cut->value_count; i++) {
        code = take_value(shapes, io, &cut->value[i], &shapes->live[shapes->live_count], ret, err);
    }
    return code;
}

/* ---- a run ---- */

static void begin_run(struct ifd_shapes_of *shapes, const struct ifd_io *io, uint32_t io_count)
{
    shapes->io = io;
    shapes->io_count = io_count;
    shapes->deadline_ns = io->deadline_ns;
    shapes->steps++;
    shapes->chain = shapes->made = 0;
    shapes->is_denied = false;
    shapes->live = NULL;
    shapes->live_count = 0;
    shapes->present = (struct ifd_link){0};
    ifd_kept_clear(&shapes->kept);
    ifd_shared_forget(shapes, io, io_count);
}

/* Files may give the first dimensions of inputs names of their own. */
static bool has_one_batch(const struct ifd_model_info *info, const struct ifd_io *io)
{
    bool is_one = true;
    for (uint32_t i = 0; i < info->input_count; i++) {
        is_one = is_one && io->input[i].shape.rank > 0 && io->input[i].shape.dim[0] == io->batch;
    }
    return is_one;
}

/* Samples in all if the requests can share a variant, else 0. */
static int64_t shared_samples(const struct ifd_shapes_of *shapes, const struct ifd_io *io,
                              uint32_t io_count)
{
    int64_t samples = 0;
    if (!shapes->model->info.batch_is_free || shapes->max_batch < 2) {
        return 0;
    }
    for (uint32_t k = 0; k < io_count; k++) {
        if (io[k].batch < 1 || io[k].batch > (int64_t)shapes->max_batch - samples ||
            !has_one_batch(&shapes->model->info, &io[k])) {
            return 0;
        }
        samples += io[k].batch;
    }
    return samples;
}

/* With the key of the shapes. adds: makes it if it is not there. *ret: NULL if it is not. */
static enum ifd_code look_up(struct ifd_shapes_of *shapes, const struct ifd_io *io, bool is_shared,
                             bool adds, struct ifd_variant **ret, struct ifd_err *err)
{
    shapes->is_shared = is_shared;
    enum ifd_code code = ifd_key_begin(shapes, io, err);
    *ret = code == IFD_OK ? ifd_variant_find(shapes) : NULL;
    return code == IFD_OK && !*ret && adds ? ifd_variant_add(shapes, NULL, ret, err) : code;
}

/* Where many shapes in a row could not be shared, not every request pays for another trial. */
#define REFUSALS_MAX 6

static bool tries_to_share(struct ifd_shapes_of *shapes)
{
    const uint32_t one_in = 1u << shapes->refusals;
    return shapes->chances++ % one_in == 0;
}

/* Notes how a trial ended. Too little memory says nothing about other shapes. */
static void note_trial(struct ifd_shapes_of *shapes, enum ifd_code code)
{
    if (code == IFD_INVALID && shapes->refusals < REFUSALS_MAX) {
        shapes->refusals++;
    } else if (code == IFD_OK) {
        shapes->refusals = 0;
    }
}

/* The variant of several requests. Where one alone has a variant of its own after a trial, they
 * cannot share one: none is planned for each batch anew. */
static enum ifd_code share_first(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                 struct ifd_variant **ret, struct ifd_err *err)
{
    struct ifd_variant *own = NULL;
    enum ifd_code code = look_up(shapes, io, true, false, ret, err);
    if (code == IFD_OK && !*ret) {
        code = look_up(shapes, io, false, false, &own, err);
    }
    if (code != IFD_OK || *ret) {
        return code;
    }
    if ((own && own->shares_not) || !tries_to_share(shapes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "requests of these shapes share no run");
    }
    return look_up(shapes, io, true, true, ret, err);
}

/* Of one request: the variant that it could share with others; else its own. What cannot be shared
 * in these shapes, or would take too much memory, is not tried again. */
static enum ifd_code find_first(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                bool may_share, struct ifd_variant **ret, struct ifd_err *err)
{
    enum ifd_code shared = IFD_OK, code = look_up(shapes, io, false, false, ret, err);
    if (code != IFD_OK || (*ret && (!may_share || (*ret)->shares_not))) {
        return code;
    }
    if (may_share) {
        code = look_up(shapes, io, true, false, ret, err);
        if (code == IFD_OK && !*ret && tries_to_share(shapes)) {
            code = shared = look_up(shapes, io, true, true, ret, err);
            note_trial(shapes, shared);
        }
    }
    const bool is_too_large = code == IFD_TOO_LARGE || (code == IFD_NOMEM && shapes->is_denied);
    if (*ret || (code != IFD_OK && code != IFD_INVALID && !is_too_large)) {
        return code;
    }
    code = look_up(shapes, io, false, true, ret, err);
    if (code == IFD_OK) {
        (*ret)->shares_not = shared != IFD_OK;
    }
    return code;
}

static enum ifd_code choose_first(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                  uint32_t io_count, struct ifd_err *err)
{
    const bool may_share = shared_samples(shapes, io, io_count) > 0, is_alone = io_count == 1;
    struct ifd_variant *found = NULL;
    if (is_alone && are_examples(&shapes->model->info, io)) {
        shapes->present = shapes->example;
        shapes->is_shared = false;
        return ifd_key_begin(shapes, io, err);
    }
    if (!may_share && !is_alone) {
        return ifd_fail(err, IFD_INVALID, "%u requests in one run, expected 1", io_count);
    }
    const enum ifd_code code = is_alone ? find_first(shapes, io, may_share, &found, err)
                                        : share_first(shapes, io, &found, err);
    shapes->present = code == IFD_OK ? found->link : (struct ifd_link){0};
    return code == IFD_OK ? ifd_shared_lend(shapes, found->link.instance, err) : code;
}

enum ifd_code ifd_chain_first(struct ifd_shapes *self, const struct ifd_io *io, uint32_t io_count,
                              struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err)
{
    struct ifd_shapes_of *shapes = (struct ifd_shapes_of *)self;
    enum ifd_code code = IFD_OK;
    begin_run(shapes, io, io_count);
    for (uint32_t k = 0; k < io_count && code == IFD_OK; k++) {
        code = check_shapes(&shapes->model->info, &io[k], err);
    }
    if (code == IFD_OK) {
        code = choose_first(shapes, io, io_count, err);
    }
    if (code == IFD_OK) {
        bind_present(shapes, io, ret_io);
        ret_io->batch = shapes->is_shared ? io->batch : 1;
        *ret = shapes->present.instance;
    }
    return code;
}

/* The variant may be the one that has just run, or one whose results are still read. */
static enum ifd_code switch_to(struct ifd_shapes_of *shapes, const struct ifd_variant *variant,
                               struct ifd_err *err)
{
    enum ifd_code code = ifd_variants_rescue(shapes, variant->link.instance, err);
    if (code != IFD_OK) {
        return code;
    }
    shapes->present = variant->link;
    ifd_kept_sweep(&shapes->kept, shapes->live, shapes->live_count);
    code = ifd_variants_make_room(shapes, 0, 0, err);
    if (code == IFD_OK) {
        code = ifd_shared_lend(shapes, shapes->present.instance, err);
    }
    if (code == IFD_OK) {
        memcpy(shapes->present.input, shapes->live, shapes->live_count * sizeof(*shapes->live));
    }
    return code;
}

static enum ifd_code follow(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                            struct ifd_resume_value *value, struct ifd_err *err)
{
    struct ifd_resume resume;
    enum ifd_code code = describe_cut(shapes, io, value, &resume, err);
    if (code == IFD_OK) {
        code = ifd_key_resume(shapes, &resume, err);
    }
    struct ifd_variant *next = code == IFD_OK ? ifd_variant_find(shapes) : NULL;
    if (code == IFD_OK && !next) {
        shapes->made++;
        code = ifd_variant_add(shapes, &resume, &next, err);
    }
    return code == IFD_OK ? switch_to(shapes, next, err) : code;
}

static enum ifd_code check_chain(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                 struct ifd_err *err)
{
    shapes->steps++;
    shapes->chain++;
    if (shapes->chain == CHAIN_MAX || shapes->made == MADE_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "data decides shapes more than %u times, in %u plans",
                        shapes->chain, shapes->made);
    }
    if (io->is_over && io->is_over(io->is_over_context)) {
        return ifd_fail(err, IFD_CANCELLED, "nobody waits for what data decides, after %u times",
                        shapes->chain);
    }
    const bool turns = shapes->present.model->cut.is_turn && !is_over(&shapes->present);
    const bool is_long = turns || shapes->made > MADE_QUICKLY;
    if (is_long && shapes->deadline_ns == 0) {
        shapes->deadline_ns = ifd_monotonic_ns() + IFD_LOOP_NS;
    }
    const bool may_go_on = shapes->work_limit > 0 && shapes->chain <= TRIED_EVER;
    const bool has_to_end = (is_long || io->deadline_ns > 0) && !may_go_on;
    if (has_to_end && ifd_monotonic_ns() >= shapes->deadline_ns) {
        return ifd_fail(err, IFD_DEADLINE, "data has decided shapes %u times when time is over",
                        shapes->chain);
    }
    return IFD_OK;
}

enum ifd_code ifd_chain_next(struct ifd_shapes *self, const struct ifd_io *io,
                             struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err)
{
    struct ifd_shapes_of *shapes = (struct ifd_shapes_of *)self;
    *ret = NULL;
    if (!shapes->present.made) {
        return IFD_OK;
    }
    const size_t count = shapes->present.model->cut.value_count + (size_t)1;
    struct ifd_resume_value *value = ifd_acquire_zeroed(shapes->alloc, count, sizeof(*value));
    shapes->live = ifd_acquire_zeroed(shapes->alloc, count, sizeof(*shapes->live));
    shapes->live_count = 0;
    enum ifd_code code = value && shapes->live
                             ? check_chain(shapes, io, err)
                             : ifd_fail(err, IFD_NOMEM, "no memory for %zu tensors", count);
    if (code == IFD_OK) {
        code = follow(shapes, io, value, err);
    }
    ifd_release(shapes->alloc, value, count * sizeof(*value));
    ifd_release(shapes->alloc, shapes->live, count * sizeof(*shapes->live));
    shapes->live = NULL;
    shapes->live_count = 0;
    if (code == IFD_OK) {
        bind_present(shapes, io, ret_io);
        *ret = shapes->present.instance;
    }
    return code;
}
