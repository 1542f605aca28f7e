/* Nodes to steps: bookkeeping of values, storages, packed memory, and the layout of scratch. */
#include "backends/cpuacc/compile.h"

#include "backends/cpuacc/schedule/strips.h"
#include "engine/base/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCRATCH_BYTES_MAX ((size_t)2 << 30) /* fits where a size has 32 bits */

void *ifd_acc_params(struct ifd_acc_lowering *lowering, size_t count, size_t size)
{
    return ifd_arena_take_array(lowering->arena, count, size);
}

static enum ifd_code no_memory(const struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    return ifd_arena_fail(lowering->arena, 0, err);
}

/* Appends room for one item to an array in the arena; the old array stays behind there. */
static void *grow(struct ifd_acc_lowering *lowering, void *array, uint32_t count,
                  uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    const uint32_t larger = *capacity ? 2 * *capacity : 64;
    void *copy = ifd_arena_take_array(lowering->arena, larger, size);
    if (copy && count) {
        memcpy(copy, array, count * size);
    }
    if (copy) {
        *capacity = larger;
    }
    return copy;
}

static enum ifd_code add_storage(struct ifd_acc_lowering *lowering,
                                 const struct ifd_acc_storage *storage, uint32_t *ret_index,
                                 struct ifd_err *err)
{
    void *array = grow(lowering, lowering->storage, lowering->storage_count,
                       &lowering->storage_capacity, sizeof(*lowering->storage));
    if (!array) {
        return no_memory(lowering, err);
    }
    lowering->storage = array;
    *ret_index = lowering->storage_count++;
    lowering->storage[*ret_index] = *storage;
    lowering->storage[*ret_index].joined = *ret_index;
    return IFD_OK;
}

enum ifd_code ifd_acc_add_storage(struct ifd_acc_lowering *lowering, size_t bytes, uint32_t first,
                                  uint32_t last, uint32_t *ret_storage, struct ifd_err *err)
{
    const struct ifd_acc_storage storage = {
        .place = {.where = IFD_ACC_SCRATCH}, .bytes = bytes, .first = first, .last = last};
    return add_storage(lowering, &storage, ret_storage, err);
}

/* ---- values and their storages ---- */

static size_t desc_bytes(const struct ifd_desc *desc)
{
    size_t bytes = ifd_dtype_bytes(desc->dtype);
    for (uint32_t i = 0; i < desc->shape.rank; i++) {
        bytes *= (size_t)desc->shape.dim[i]; /* fits: the engine has sized every value */
    }
    return bytes;
}

static enum ifd_code make_storages(struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    static const enum ifd_acc_where where[] = {[IFD_VALUE_CONSTANT] = IFD_ACC_CONSTANT,
                                               [IFD_VALUE_INPUT] = IFD_ACC_INPUT,
                                               [IFD_VALUE_OUTPUT] = IFD_ACC_OUTPUT,
                                               [IFD_VALUE_INTERNAL] = IFD_ACC_SCRATCH};
    for (uint32_t i = 0; i < lowering->view->value_count; i++) {
        const struct ifd_partition_value *view = &lowering->view->value[i];
        const struct ifd_acc_storage storage = {
            .place = {.where = where[view->role], .slot = view->slot, .data = view->data.data},
            .bytes = desc_bytes(&view->desc),
            .first = UINT32_MAX,
        };
        lowering->value[i] = (struct ifd_acc_value){.view = view,
                                                    .bytes = storage.bytes,
                                                    .is_read_apart = true,
                                                    .consumers = view->role == IFD_VALUE_OUTPUT};
        const enum ifd_code code =
            add_storage(lowering, &storage, &lowering->value[i].storage, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

static void count_readers(struct ifd_acc_lowering *lowering)
{
    for (uint32_t n = 0; n < lowering->view->node_count; n++) {
        const struct ifd_partition_node *node = &lowering->view->node[n];
        for (uint32_t i = 0; i < node->view.input_count; i++) {
            if (node->input_value[i] != IFD_NO_VALUE) {
                struct ifd_acc_value *value = &lowering->value[node->input_value[i]];
                value->first_reader = value->consumers == 0 ? n : value->first_reader;
                value->consumers++;
                value->reader = n;
                lowering->storage[ifd_acc_storage_of(lowering, node->input_value[i])].readers++;
            }
        }
    }
}

bool ifd_acc_same_place(const struct ifd_acc_lowering *lowering, uint32_t a, uint32_t b)
{
    const bool is_same = ifd_acc_storage_of(lowering, a) == ifd_acc_storage_of(lowering, b);
    const struct ifd_acc_value *v = &lowering->value[a], *w = &lowering->value[b];
    return is_same && v->offset == w->offset && v->pitch == w->pitch;
}

bool ifd_acc_in_place(struct ifd_acc_lowering *lowering, uint32_t in, uint32_t out)
{
    const bool fits = ifd_acc_is_whole(lowering, in) && ifd_acc_is_whole(lowering, out) &&
                      lowering->value[in].bytes == lowering->value[out].bytes;
    const uint32_t keep = lowering->value[in].storage, gone = lowering->value[out].storage;
    struct ifd_acc_storage *from = &lowering->storage[keep], *to = &lowering->storage[gone];
    if (!fits || from->place.where != IFD_ACC_SCRATCH || to->place.where != IFD_ACC_SCRATCH ||
        from->readers != 1) {
        return false;
    }
    from->readers += to->readers;
    to->joined = keep;
    return true;
}

const struct ifd_partition_node *ifd_acc_sole_reader(const struct ifd_acc_lowering *lowering,
                                                     uint32_t value, uint32_t *ret_node)
{
    const struct ifd_acc_value *v = &lowering->value[value];
    if (v->consumers != 1 || v->view->role != IFD_VALUE_INTERNAL ||
        lowering->node_done[v->reader]) {
        return NULL;
    }
    *ret_node = v->reader;
    return &lowering->view->node[v->reader];
}

void ifd_acc_fuse_node(struct ifd_acc_lowering *lowering, uint32_t node)
{
    lowering->node_done[node] = true;
}

bool ifd_acc_is_ready(const struct ifd_acc_lowering *lowering, uint32_t value)
{
    const enum ifd_value_role role = lowering->value[value].view->role;
    return role == IFD_VALUE_CONSTANT || role == IFD_VALUE_INPUT || lowering->value[value].is_made;
}

/* ---- steps ---- */

static void touch(struct ifd_acc_lowering *lowering, uint32_t storage, uint32_t step)
{
    struct ifd_acc_storage *s = &lowering->storage[storage];
    s->first = s->first == UINT32_MAX ? step : s->first;
    s->last = step;
}

/* A constant that a step reads as it reads activations: a copy in native form takes its place. Constants that are only
 * packed (filters) never get here. */
static enum ifd_code native_constant(struct ifd_acc_lowering *lowering, uint32_t value,
                                     struct ifd_err *err)
{
    struct ifd_acc_storage *storage = &lowering->storage[ifd_acc_storage_of(lowering, value)];
    const uint8_t mask = ifd_acc_flip(lowering->value[value].view->desc.dtype);
    if (storage->place.where != IFD_ACC_CONSTANT || mask == 0 || storage->is_native) {
        return IFD_OK;
    }
    uint8_t *copy = ifd_arena_take_tensor(lowering->arena, storage->bytes);
    if (!copy) {
        return no_memory(lowering, err);
    }
    const uint8_t *data = storage->place.data;
    for (size_t i = 0; i < storage->bytes; i++) {
        copy[i] = data[i] ^ mask;
    }
    storage->place.data = copy;
    storage->is_native = true;
    return IFD_OK;
}

enum ifd_code ifd_acc_add_step(struct ifd_acc_lowering *lowering, ifd_acc_step_fn run,
                               const void *params, const uint32_t *in, uint32_t count, uint32_t out,
                               struct ifd_acc_step **ret_step, struct ifd_err *err)
{
    uint32_t capacity = lowering->step_capacity;
    void *steps =
        grow(lowering, lowering->step, lowering->step_count, &capacity, sizeof(*lowering->step));
    void *wiring = grow(lowering, lowering->wiring, lowering->step_count, &lowering->step_capacity,
                        sizeof(*lowering->wiring));
    if (!params || !steps || !wiring) {
        return no_memory(lowering, err);
    }
    lowering->step = steps;
    lowering->wiring = wiring;
    const uint32_t index = lowering->step_count++;
    struct ifd_acc_wiring *wires = &lowering->wiring[index];
    *wires = (struct ifd_acc_wiring){.out = out, .work = IFD_NO_VALUE};
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < IFD_ACC_STEP_INPUTS; i++) {
        wires->in[i] = i < count ? in[i] : IFD_NO_VALUE;
        if (wires->in[i] != IFD_NO_VALUE) {
            touch(lowering, ifd_acc_storage_of(lowering, wires->in[i]), index);
            code = native_constant(lowering, wires->in[i], err);
        }
    }
    if (code != IFD_OK) {
        return code;
    }
    touch(lowering, ifd_acc_storage_of(lowering, out), index);
    lowering->step[index] = (struct ifd_acc_step){.run = run,
                                                  .params = params,
                                                  .kernels = lowering->kernels,
                                                  .max_threads = UINT32_MAX,
                                                  .pieces = IFD_ACC_PIECES_MAX,
                                                  .info = {.kernel = ""}};
    *ret_step = &lowering->step[index];
    return IFD_OK;
}

enum ifd_code ifd_acc_add_value(struct ifd_acc_lowering *lowering, size_t bytes,
                                uint32_t *ret_value, struct ifd_err *err)
{
    static const struct ifd_partition_value view = {.role = IFD_VALUE_INTERNAL};
    const struct ifd_acc_storage storage = {
        .place = {.where = IFD_ACC_SCRATCH}, .bytes = bytes, .first = UINT32_MAX};
    struct ifd_acc_value *values = grow(lowering, lowering->value, lowering->value_count,
                                        &lowering->value_capacity, sizeof(*values));
    if (!values) {
        return no_memory(lowering, err);
    }
    lowering->value = values;
    *ret_value = lowering->value_count++;
    struct ifd_acc_value *value = &values[*ret_value];
    *value = (struct ifd_acc_value){.view = &view, .bytes = bytes, .is_made = true};
    return add_storage(lowering, &storage, &value->storage, err);
}

enum ifd_code ifd_acc_add_work(struct ifd_acc_lowering *lowering, size_t bytes_per_thread,
                               struct ifd_err *err)
{
    const uint32_t index = lowering->step_count - 1;
    size_t stride = 0, bytes = 0;
    if (!ifd_size_add(bytes_per_thread, IFD_TENSOR_PAD, &stride) ||
        !ifd_size_align(stride, IFD_TENSOR_ALIGN, &stride) ||
        !ifd_size_mul(stride, lowering->view->max_threads, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "work memory of %zu bytes per thread overflows",
                        bytes_per_thread);
    }
    lowering->step[index].work_stride = stride;
    return ifd_acc_add_storage(lowering, bytes, index, index, &lowering->wiring[index].work, err);
}

enum ifd_code ifd_acc_add_pack(struct ifd_acc_lowering *lowering, const void *source, size_t bytes,
                               size_t workspace_bytes, ifd_acc_pack_fn pack, const void *params,
                               struct ifd_err *err)
{
    void *jobs = grow(lowering, lowering->job, lowering->job_count, &lowering->job_capacity,
                      sizeof(*lowering->job));
    size_t size = 0, end = 0;
    if (!jobs) {
        return no_memory(lowering, err);
    }
    if (!ifd_size_add(bytes, IFD_TENSOR_PAD, &size) ||
        !ifd_size_align(size, IFD_TENSOR_ALIGN, &size) ||
        !ifd_size_add(lowering->packed_bytes, size, &end)) {
        return ifd_fail(err, IFD_TOO_LARGE, "packed weights of %zu bytes overflow", bytes);
    }
    lowering->job = jobs;
    lowering->job[lowering->job_count++] =
        (struct ifd_acc_pack_job){.pack = pack,
                                  .params = params,
                                  .source = source,
                                  .offset = lowering->packed_bytes,
                                  .bytes = size,
                                  .step = lowering->step_count - 1};
    lowering->step[lowering->step_count - 1].packed = lowering->packed_bytes;
    lowering->wiring[lowering->step_count - 1].packed_bytes = size;
    lowering->packed_bytes = end;
    lowering->workspace_bytes =
        lowering->workspace_bytes > workspace_bytes ? lowering->workspace_bytes : workspace_bytes;
    return IFD_OK;
}

void ifd_acc_name_step(struct ifd_acc_lowering *lowering, const char *kernel, uint64_t macs,
                       const char *format, ...)
{
    char text[96];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *name = ifd_arena_text(lowering->arena, text, strlen(text));
    struct ifd_step_info *info = &lowering->step[lowering->step_count - 1].info;
    info->name = name ? name : "";
    info->kernel = kernel;
    info->macs = macs;
}

/* ---- the border: s8 tensors on machines whose native form is u8 ---- */

int32_t ifd_acc_zero(const struct ifd_desc *desc)
{
    const int32_t zero = desc->quant.count ? desc->quant.zero_point[0] : 0;
    return zero + (desc->dtype == IFD_S8 ? IFD_Q8_SHIFT_S8 : IFD_Q8_SHIFT_U8);
}

uint8_t ifd_acc_flip(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 ? IFD_Q8_FLIP_S8 : dtype == IFD_U8 ? IFD_Q8_FLIP_U8 : 0;
}

bool ifd_acc_is_q8(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 || dtype == IFD_U8;
}

struct flip_params {
    size_t bytes;
    uint8_t table[256];
};

static void run_flip(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct flip_params *params = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, params->bytes, 64);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    step->kernels->quant.lut_8(range.end - range.begin, in + range.begin, params->table,
                               out + range.begin);
}

static enum ifd_code add_flip(struct ifd_acc_lowering *lowering, uint32_t value,
                              struct ifd_err *err)
{
    struct flip_params *params = ifd_acc_params(lowering, 1, sizeof(*params));
    struct ifd_acc_step *step = NULL;
    enum ifd_code code = ifd_acc_add_step(lowering, run_flip, params, &value, 1, value, &step, err);
    if (code == IFD_OK) {
        const struct ifd_desc *desc = &lowering->value[value].view->desc;
        params->bytes = desc_bytes(desc);
        for (size_t i = 0; i < sizeof(params->table); i++) {
            params->table[i] = (uint8_t)(i ^ ifd_acc_flip(desc->dtype));
        }
        step->info = (struct ifd_step_info){.name = "flip", .kernel = "", .output = ""};
        step->max_threads = (uint32_t)(params->bytes / 8192) + 1;
    }
    return code;
}

/* Inputs: a copy in native form takes the value's place; the step reads the slot itself. */
static enum ifd_code flip_input(struct ifd_acc_lowering *lowering, uint32_t value,
                                struct ifd_err *err)
{
    const uint32_t outside = ifd_acc_storage_of(lowering, value);
    struct ifd_acc_storage copy = lowering->storage[outside];
    copy.place = (struct ifd_acc_place){.where = IFD_ACC_SCRATCH};
    uint32_t inside = 0;
    enum ifd_code code = add_storage(lowering, &copy, &inside, err);
    if (code != IFD_OK) {
        return code;
    }
    lowering->storage[outside].joined = inside;
    code = add_flip(lowering, value, err);
    if (code == IFD_OK) {
        /* The one step whose input is not where the value lives. */
        lowering->step[lowering->step_count - 1].in[0] = lowering->storage[outside].place;
    }
    return code;
}

static bool needs_flip(const struct ifd_partition_value *value, enum ifd_value_role role)
{
    return value->role == role && ifd_acc_flip(value->desc.dtype) != 0;
}

/* ---- all of it ---- */

/* NULL without memory. */
static const struct ifd_acc_driver *const *choose_drivers(struct ifd_acc_lowering *lowering)
{
    const struct ifd_partition_view *view = lowering->view;
    const struct ifd_acc_driver **driver =
        ifd_acc_params(lowering, view->node_count, sizeof(*driver));
    for (uint32_t n = 0; driver && n < view->node_count; n++) {
        driver[n] = ifd_acc_driver(&view->node[n].view, NULL);
    }
    return driver;
}

static enum ifd_code lower_node(struct ifd_acc_lowering *lowering, uint32_t n, struct ifd_err *err)
{
    const struct ifd_partition_node *node = &lowering->view->node[n];
    const uint32_t before = lowering->step_count;
    enum ifd_code code = IFD_OK;
    if (!lowering->node_done[n]) {
        lowering->node_done[n] = true;
        code = ifd_acc_driver_of(lowering, node)->lower(lowering, node, err);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "CpuAcc: \"%s\"", node->view.name);
        return code;
    }
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        if (node->input_value[i] != IFD_NO_VALUE) {
            lowering->storage[ifd_acc_storage_of(lowering, node->input_value[i])].readers--;
        }
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        lowering->value[node->output_value[i]].is_made = true;
    }
    for (uint32_t i = before; i < lowering->step_count; i++) {
        lowering->step[i].info.output =
            lowering->step[i].info.output ? lowering->step[i].info.output : node->view.name;
    }
    return IFD_OK;
}

static struct ifd_acc_place place_of(const struct ifd_acc_lowering *lowering, uint32_t value)
{
    struct ifd_acc_place place = lowering->storage[ifd_acc_storage_of(lowering, value)].place;
    const size_t offset = lowering->value[value].offset;
    place.offset += offset;
    place.data = place.data ? (const uint8_t *)place.data + offset : NULL;
    return place;
}

/* Offsets of all scratch storages, then the places of every step. */
static enum ifd_code lay_out(struct ifd_acc_lowering *lowering, size_t *ret_scratch,
                             struct ifd_err *err)
{
    struct ifd_layout_item *item =
        ifd_arena_take_array(lowering->arena, lowering->storage_count, sizeof(*item));
    if (!item) {
        return no_memory(lowering, err);
    }
    for (uint32_t i = 0; i < lowering->storage_count; i++) {
        const struct ifd_acc_storage *s = &lowering->storage[i];
        const bool used = s->place.where == IFD_ACC_SCRATCH && s->first != UINT32_MAX;
        item[i] = (struct ifd_layout_item){
            .first = used ? s->first : 0, .last = used ? s->last : 0, .bytes = used ? s->bytes : 0};
    }
    const enum ifd_code code = ifd_lay_out(item, lowering->storage_count, SCRATCH_BYTES_MAX,
                                           lowering->host->alloc, ret_scratch, err);
    if (code != IFD_OK) {
        return code;
    }
    for (uint32_t i = 0; i < lowering->storage_count; i++) {
        lowering->storage[i].place.offset = item[i].offset;
    }
    for (uint32_t i = 0; i < lowering->step_count; i++) {
        struct ifd_acc_step *step = &lowering->step[i];
        const struct ifd_acc_wiring *wires = &lowering->wiring[i];
        for (uint32_t k = 0; k < IFD_ACC_STEP_INPUTS; k++) {
            if (wires->in[k] != IFD_NO_VALUE && step->in[k].where == IFD_ACC_ABSENT) {
                step->in[k] = place_of(lowering, wires->in[k]);
            }
        }
        step->out = place_of(lowering, wires->out);
        if (wires->work != IFD_NO_VALUE) {
            step->work = lowering->storage[wires->work].place.offset;
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_acc_lower(struct ifd_acc_lowering *lowering, size_t *ret_scratch,
                            struct ifd_err *err)
{
    const struct ifd_partition_view *view = lowering->view;
    lowering->value = ifd_acc_params(lowering, view->value_count, sizeof(*lowering->value));
    lowering->node_done = ifd_acc_params(lowering, view->node_count, sizeof(*lowering->node_done));
    lowering->driver = lowering->driver ? lowering->driver : choose_drivers(lowering);
    if (!lowering->value || !lowering->node_done || !lowering->driver) {
        return no_memory(lowering, err);
    }
    lowering->value_count = lowering->value_capacity = view->value_count;
    enum ifd_code code = make_storages(lowering, err);
    if (code == IFD_OK) {
        ifd_acc_join_parts(lowering);
        count_readers(lowering);
    }
    for (uint32_t i = 0; code == IFD_OK && i < view->value_count; i++) {
        if (needs_flip(&view->value[i], IFD_VALUE_INPUT)) {
            code = flip_input(lowering, i, err);
        }
    }
    const uint32_t *order = code == IFD_OK ? ifd_acc_order_nodes(lowering) : NULL;
    if (code == IFD_OK && !order) {
        return no_memory(lowering, err);
    }
    for (uint32_t n = 0; code == IFD_OK && n < view->node_count; n++) {
        code = lower_node(lowering, order[n], err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < view->value_count; i++) {
        if (needs_flip(&view->value[i], IFD_VALUE_OUTPUT)) {
            code = add_flip(lowering, i, err);
        }
    }
    if (code == IFD_OK) {
        code = ifd_acc_join_strips(lowering, err);
    }
    return code == IFD_OK ? lay_out(lowering, ret_scratch, err) : code;
}
