/* Values, storages and the layout of scratch. */
#include "backends/lowering/values.h"

#include "engine/base/layout.h"

#include <string.h>

#define SCRATCH_BYTES_MAX ((size_t)2 << 30) /* fits where a size has 32 bits */

void *ifd_low_params(struct ifd_lowering *lowering, size_t count, size_t size)
{
    return ifd_arena_take_array(lowering->arena, count, size);
}

static enum ifd_code no_memory(const struct ifd_lowering *lowering, struct ifd_err *err)
{
    return ifd_arena_fail(lowering->arena, 0, err);
}

void *ifd_low_grow(struct ifd_lowering *lowering, void *array, uint32_t count, uint32_t *capacity,
                   size_t size)
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

static enum ifd_code add_storage(struct ifd_lowering *lowering,
                                 const struct ifd_low_storage *storage, uint32_t *ret_index,
                                 struct ifd_err *err)
{
    void *array = ifd_low_grow(lowering, lowering->storage, lowering->storage_count,
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

enum ifd_code ifd_low_add_storage(struct ifd_lowering *lowering, size_t bytes, uint32_t first,
                                  uint32_t last, uint32_t *ret_storage, struct ifd_err *err)
{
    const struct ifd_low_storage storage = {
        .place = {.where = IFD_LOW_SCRATCH}, .bytes = bytes, .first = first, .last = last};
    return add_storage(lowering, &storage, ret_storage, err);
}

static size_t desc_bytes(const struct ifd_desc *desc)
{
    size_t bytes = ifd_dtype_bytes(desc->dtype);
    for (uint32_t i = 0; i < desc->shape.rank; i++) {
        bytes *= (size_t)desc->shape.dim[i]; /* fits: the engine has sized every value */
    }
    return bytes;
}

enum ifd_code ifd_low_make_values(struct ifd_lowering *lowering, struct ifd_err *err)
{
    static const enum ifd_low_where where[] = {[IFD_VALUE_CONSTANT] = IFD_LOW_CONSTANT,
                                               [IFD_VALUE_INPUT] = IFD_LOW_INPUT,
                                               [IFD_VALUE_OUTPUT] = IFD_LOW_OUTPUT,
                                               [IFD_VALUE_INTERNAL] = IFD_LOW_SCRATCH};
    const uint32_t count = lowering->view->value_count;
    lowering->value = ifd_low_params(lowering, count, sizeof(*lowering->value));
    lowering->node_done =
        ifd_low_params(lowering, lowering->view->node_count, sizeof(*lowering->node_done));
    if (!lowering->value || !lowering->node_done) {
        return no_memory(lowering, err);
    }
    lowering->value_count = lowering->value_capacity = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_partition_value *view = &lowering->view->value[i];
        const struct ifd_low_storage storage = {
            .place = {.where = where[view->role], .slot = view->slot, .data = view->data.data},
            .bytes = desc_bytes(&view->desc),
            .first = UINT32_MAX,
        };
        lowering->value[i] = (struct ifd_low_value){.view = view,
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

void ifd_low_count_readers(struct ifd_lowering *lowering)
{
    for (uint32_t n = 0; n < lowering->view->node_count; n++) {
        const struct ifd_partition_node *node = &lowering->view->node[n];
        for (uint32_t i = 0; i < node->view.input_count; i++) {
            if (node->input_value[i] != IFD_NO_VALUE) {
                struct ifd_low_value *value = &lowering->value[node->input_value[i]];
                value->first_reader = value->consumers == 0 ? n : value->first_reader;
                value->consumers++;
                value->reader = n;
                lowering->storage[ifd_low_storage_of(lowering, node->input_value[i])].readers++;
            }
        }
    }
}

bool ifd_low_is_whole(const struct ifd_lowering *lowering, uint32_t value)
{
    const uint32_t storage = ifd_low_storage_of(lowering, value);
    const struct ifd_low_value *v = &lowering->value[value];
    return v->offset == 0 && v->pitch == 0 && v->bytes == lowering->storage[storage].bytes;
}

bool ifd_low_same_place(const struct ifd_lowering *lowering, uint32_t a, uint32_t b)
{
    const bool is_same = ifd_low_storage_of(lowering, a) == ifd_low_storage_of(lowering, b);
    const struct ifd_low_value *v = &lowering->value[a], *w = &lowering->value[b];
    return is_same && v->offset == w->offset && v->pitch == w->pitch;
}

bool ifd_low_in_place(struct ifd_lowering *lowering, uint32_t in, uint32_t out)
{
    const bool fits = ifd_low_is_whole(lowering, in) && ifd_low_is_whole(lowering, out) &&
                      lowering->value[in].bytes == lowering->value[out].bytes;
    const uint32_t keep = lowering->value[in].storage, gone = lowering->value[out].storage;
    struct ifd_low_storage *from = &lowering->storage[keep], *to = &lowering->storage[gone];
    if (!fits || from->place.where != IFD_LOW_SCRATCH || to->place.where != IFD_LOW_SCRATCH ||
        from->readers != 1) {
        return false;
    }
    from->readers += to->readers;
    to->joined = keep;
    return true;
}

bool ifd_low_overlap(const struct ifd_lowering *lowering, uint32_t a, uint32_t b)
{
    const bool is_one = ifd_low_storage_of(lowering, a) == ifd_low_storage_of(lowering, b);
    const struct ifd_low_value *v = &lowering->value[a], *w = &lowering->value[b];
    return is_one && (v->pitch || w->pitch ||
                      (v->offset < w->offset + w->bytes && w->offset < v->offset + v->bytes));
}

const struct ifd_partition_node *ifd_low_sole_reader(const struct ifd_lowering *lowering,
                                                     uint32_t value, uint32_t *ret_node)
{
    const struct ifd_low_value *v = &lowering->value[value];
    if (v->consumers != 1 || v->view->role != IFD_VALUE_INTERNAL ||
        lowering->node_done[v->reader]) {
        return NULL;
    }
    *ret_node = v->reader;
    return &lowering->view->node[v->reader];
}

void ifd_low_fuse_node(struct ifd_lowering *lowering, uint32_t node)
{
    lowering->node_done[node] = true;
}

bool ifd_low_is_ready(const struct ifd_lowering *lowering, uint32_t value)
{
    const enum ifd_value_role role = lowering->value[value].view->role;
    return role == IFD_VALUE_CONSTANT || role == IFD_VALUE_INPUT || lowering->value[value].is_made;
}

void ifd_low_end_node(struct ifd_lowering *lowering, uint32_t n)
{
    const struct ifd_partition_node *node = &lowering->view->node[n];
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        if (node->input_value[i] != IFD_NO_VALUE) {
            lowering->storage[ifd_low_storage_of(lowering, node->input_value[i])].readers--;
        }
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        lowering->value[node->output_value[i]].is_made = true;
    }
}

void ifd_low_touch(struct ifd_lowering *lowering, uint32_t storage, uint32_t step)
{
    struct ifd_low_storage *s = &lowering->storage[storage];
    s->first = s->first == UINT32_MAX ? step : s->first;
    s->last = step;
}

void ifd_low_stretch(struct ifd_lowering *lowering, uint32_t storage, uint32_t first, uint32_t last)
{
    struct ifd_low_storage *s = &lowering->storage[storage];
    s->first = s->first < first ? s->first : first;
    s->last = s->last > last ? s->last : last;
}

enum ifd_code ifd_low_add_value(struct ifd_lowering *lowering, size_t bytes, uint32_t *ret_value,
                                struct ifd_err *err)
{
    static const struct ifd_partition_value view = {.role = IFD_VALUE_INTERNAL};
    const struct ifd_low_storage storage = {
        .place = {.where = IFD_LOW_SCRATCH}, .bytes = bytes, .first = UINT32_MAX};
    struct ifd_low_value *values = ifd_low_grow(lowering, lowering->value, lowering->value_count,
                                                &lowering->value_capacity, sizeof(*values));
    if (!values) {
        return no_memory(lowering, err);
    }
    lowering->value = values;
    *ret_value = lowering->value_count++;
    struct ifd_low_value *value = &values[*ret_value];
    *value = (struct ifd_low_value){.view = &view, .bytes = bytes, .is_made = true};
    return add_storage(lowering, &storage, &value->storage, err);
}

enum ifd_code ifd_low_move_inside(struct ifd_lowering *lowering, uint32_t value,
                                  struct ifd_low_place *ret_outside, struct ifd_err *err)
{
    const uint32_t outside = ifd_low_storage_of(lowering, value);
    struct ifd_low_storage copy = lowering->storage[outside];
    copy.place = (struct ifd_low_place){.where = IFD_LOW_SCRATCH};
    uint32_t inside = 0;
    const enum ifd_code code = add_storage(lowering, &copy, &inside, err);
    if (code == IFD_OK) {
        *ret_outside = lowering->storage[outside].place;
        lowering->storage[outside].joined = inside;
    }
    return code;
}

enum ifd_code ifd_low_lay_out(struct ifd_lowering *lowering, const struct ifd_alloc *alloc,
                              size_t *ret_bytes, struct ifd_err *err)
{
    struct ifd_layout_item *item =
        ifd_arena_take_array(lowering->arena, lowering->storage_count, sizeof(*item));
    if (!item) {
        return no_memory(lowering, err);
    }
    for (uint32_t i = 0; i < lowering->storage_count; i++) {
        const struct ifd_low_storage *s = &lowering->storage[i];
        const bool used = s->place.where == IFD_LOW_SCRATCH && s->first != UINT32_MAX;
        item[i] = (struct ifd_layout_item){
            .first = used ? s->first : 0, .last = used ? s->last : 0, .bytes = used ? s->bytes : 0};
    }
    const enum ifd_code code =
        ifd_lay_out(item, lowering->storage_count, SCRATCH_BYTES_MAX, alloc, ret_bytes, err);
    for (uint32_t i = 0; code == IFD_OK && i < lowering->storage_count; i++) {
        lowering->storage[i].place.offset = item[i].offset;
    }
    return code;
}

struct ifd_low_place ifd_low_place_of(const struct ifd_lowering *lowering, uint32_t value)
{
    struct ifd_low_place place = lowering->storage[ifd_low_storage_of(lowering, value)].place;
    const size_t offset = lowering->value[value].offset;
    place.offset += offset;
    place.data = place.data ? (const uint8_t *)place.data + offset : NULL;
    return place;
}
