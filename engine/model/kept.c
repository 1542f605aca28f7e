/* What a run keeps between the parts of a model that data divides. */
#include "engine/model/kept.h"

#include "engine/ir/shape.h"

#include <string.h>

void ifd_kept_clear(struct ifd_kept *kept)
{
    for (size_t i = 0; i < kept->block_count; i++) {
        ifd_release_tensor(kept->alloc, kept->block[i].data, kept->block[i].bytes);
    }
    for (size_t i = 0; i < kept->list_count; i++) {
        ifd_release_tensor(kept->alloc, kept->list[i].data, kept->list[i].capacity);
    }
    ifd_release(kept->alloc, kept->block, kept->block_capacity * sizeof(*kept->block));
    ifd_release(kept->alloc, kept->list, kept->list_capacity * sizeof(*kept->list));
    *kept = (struct ifd_kept){.alloc = kept->alloc};
}

/* Room for one more entry of an array. */
static enum ifd_code grow(const struct ifd_alloc *alloc, void **array, size_t entry, size_t count,
                          size_t *capacity, struct ifd_err *err)
{
    if (count < *capacity) {
        return IFD_OK;
    }
    const size_t more = *capacity * 2 + 8;
    void *grown = ifd_acquire_zeroed(alloc, more, entry);
    if (!grown) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu tensors", more);
    }
    if (count > 0) {
        memcpy(grown, *array, count * entry);
    }
    ifd_release(alloc, *array, *capacity * entry);
    *array = grown;
    *capacity = more;
    return IFD_OK;
}

/* ---- blocks ---- */

static enum ifd_code add_block(struct ifd_kept *kept, uint8_t *data, size_t bytes,
                               struct ifd_err *err)
{
    const enum ifd_code code = grow(kept->alloc, (void **)&kept->block, sizeof(*kept->block),
                                    kept->block_count, &kept->block_capacity, err);
    if (code == IFD_OK) {
        kept->block[kept->block_count++] = (struct ifd_kept_block){data, bytes};
        kept->bytes += bytes;
    }
    return code;
}

enum ifd_code ifd_kept_copy(struct ifd_kept *kept, struct ifd_tensor *tensor, struct ifd_err *err)
{
    uint8_t *data = ifd_acquire_tensor(kept->alloc, tensor->bytes);
    if (!data) {
        return ifd_fail(err, IFD_NOMEM, "no memory to keep %zu bytes", tensor->bytes);
    }
    const enum ifd_code code = add_block(kept, data, tensor->bytes, err);
    if (code != IFD_OK) {
        ifd_release_tensor(kept->alloc, data, tensor->bytes);
        return code;
    }
    memcpy(data, tensor->data, tensor->bytes);
    tensor->data = data;
    tensor->capacity = tensor->bytes + IFD_TENSOR_PAD;
    return IFD_OK;
}

static bool is_used(const struct ifd_kept_block *block, const struct ifd_tensor *tensor,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tensor[i].data == block->data) {
            return true;
        }
    }
    return false;
}

void ifd_kept_sweep(struct ifd_kept *kept, const struct ifd_tensor *tensor, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < kept->block_count; i++) {
        const struct ifd_kept_block block = kept->block[i];
        if (is_used(&block, tensor, count)) {
            kept->block[left++] = block;
        } else {
            kept->bytes -= block.bytes;
            ifd_release_tensor(kept->alloc, block.data, block.bytes);
        }
    }
    kept->block_count = left;
}

/* ---- lists ---- */

static struct ifd_kept_list *find_list(const struct ifd_kept *kept, uint64_t id)
{
    for (size_t i = 0; i < kept->list_count; i++) {
        if (kept->list[i].id == id) {
            return &kept->list[i];
        }
    }
    return NULL;
}

/* SIZE_MAX: too much. */
static size_t capacity_for(const struct ifd_kept_list *list, size_t used, size_t bytes)
{
    const size_t capacity = list ? list->capacity : 0;
    size_t wanted = 0, twice = 0;
    if (!ifd_size_add(used, bytes, &wanted) || !ifd_size_mul(wanted, 2, &twice)) {
        return SIZE_MAX;
    }
    return wanted <= capacity ? capacity : twice;
}

size_t ifd_kept_growth(const struct ifd_kept *kept, uint64_t id, bool begins, size_t bytes)
{
    const struct ifd_kept_list *list = find_list(kept, id);
    return capacity_for(list, list && !begins ? list->bytes : 0, bytes) -
           (list ? list->capacity : 0);
}

static enum ifd_code make_room(struct ifd_kept *kept, struct ifd_kept_list *list, size_t bytes,
                               struct ifd_err *err)
{
    const size_t capacity = capacity_for(list, list->bytes, bytes);
    if (capacity == list->capacity && list->data) {
        return IFD_OK;
    }
    uint8_t *data = capacity < SIZE_MAX ? ifd_acquire_tensor(kept->alloc, capacity) : NULL;
    if (!data) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a list of %lld and more elements",
                        (long long)list->count);
    }
    if (list->bytes > 0) {
        memcpy(data, list->data, list->bytes);
    }
    ifd_release_tensor(kept->alloc, list->data, list->capacity);
    kept->bytes += capacity - list->capacity;
    list->data = data;
    list->capacity = capacity;
    return IFD_OK;
}

enum ifd_code ifd_kept_append(struct ifd_kept *kept, uint64_t id, bool begins,
                              const struct ifd_tensor *element, struct ifd_err *err)
{
    struct ifd_kept_list *list = find_list(kept, id);
    enum ifd_code code = IFD_OK;
    if (!list) {
        code = grow(kept->alloc, (void **)&kept->list, sizeof(*kept->list), kept->list_count,
                    &kept->list_capacity, err);
        if (code != IFD_OK) {
            return code;
        }
        list = &kept->list[kept->list_count++];
        *list = (struct ifd_kept_list){.id = id};
        begins = true;
    }
    if (begins) {
        list->count = 0;
        list->bytes = 0;
        list->dtype = element->dtype;
        list->shape = element->shape;
    } else if (list->dtype != element->dtype || !ifd_shape_equal(&list->shape, &element->shape)) {
        return ifd_fail(err, IFD_INVALID,
                        "turn %lld of a loop gives a result of shape %s, those before %s",
                        (long long)list->count, ifd_shape_text(&element->shape).s,
                        ifd_shape_text(&list->shape).s);
    }
    code = make_room(kept, list, element->bytes, err);
    if (code == IFD_OK) {
        if (element->bytes > 0) {
            memcpy(list->data + list->bytes, element->data, element->bytes);
        }
        list->bytes += element->bytes;
        list->count++;
    }
    return code;
}

enum ifd_code ifd_kept_take(struct ifd_kept *kept, uint64_t id, struct ifd_tensor *ret,
                            struct ifd_err *err)
{
    struct ifd_kept_list *list = find_list(kept, id);
    if (!list || list->shape.rank == IFD_MAX_RANK) {
        return ifd_fail(err, list ? IFD_TOO_LARGE : IFD_INTERNAL, "a list of %u dimensions",
                        list ? list->shape.rank + 1 : 0);
    }
    const struct ifd_kept_list taken = *list;
    const enum ifd_code code = add_block(kept, taken.data, taken.capacity, err);
    if (code != IFD_OK) {
        return code;
    }
    kept->bytes -= taken.capacity; /* counted twice */
    *list = kept->list[--kept->list_count];
    *ret = (struct ifd_tensor){.dtype = taken.dtype,
                               .shape = {.rank = taken.shape.rank + 1, .dim = {taken.count}},
                               .data = taken.data,
                               .bytes = taken.bytes,
                               .capacity = taken.capacity + IFD_TENSOR_PAD};
    memcpy(ret->shape.dim + 1, taken.shape.dim, taken.shape.rank * sizeof(ret->shape.dim[0]));
    return IFD_OK;
}
