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

/* ---- texts ---- */

static size_t text_count(const struct ifd_tensor *tensor)
{
    return tensor->dtype == IFD_STR ? tensor->bytes / sizeof(struct ifd_str) : 0;
}

size_t ifd_kept_bytes_of(const struct ifd_tensor *tensor)
{
    size_t bytes = tensor->bytes;
    for (size_t i = 0; i < text_count(tensor); i++) {
        if (!ifd_size_add(bytes, ((const struct ifd_str *)tensor->data)[i].size, &bytes)) {
            return SIZE_MAX;
        }
    }
    return bytes;
}

/* Writes count texts from at on; returns where they end. */
static uint8_t *put_texts(uint8_t *at, const struct ifd_str *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (text[i].size > 0) {
            memcpy(at, text[i].data, text[i].size);
            at += text[i].size;
        }
    }
    return at;
}

/* Content of ifd_kept_bytes_of bytes: texts follow their tensor. */
static void put(uint8_t *to, const struct ifd_tensor *tensor)
{
    if (tensor->bytes > 0) {
        memcpy(to, tensor->data, tensor->bytes);
        (void)put_texts(to + tensor->bytes, tensor->data, text_count(tensor));
    }
}

/* Texts lie from at on, one behind the other; returns where they end. */
static const uint8_t *place_texts(struct ifd_str *text, size_t count, const uint8_t *at)
{
    for (size_t i = 0; i < count; i++) {
        text[i].data = (const char *)at;
        at += text[i].size;
    }
    return at;
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
    const size_t bytes = ifd_kept_bytes_of(tensor);
    uint8_t *data = bytes < SIZE_MAX ? ifd_acquire_tensor(kept->alloc, bytes) : NULL;
    if (!data) {
        return ifd_fail(err, IFD_NOMEM, "no memory to keep %zu bytes", bytes);
    }
    const enum ifd_code code = add_block(kept, data, bytes, err);
    if (code != IFD_OK) {
        ifd_release_tensor(kept->alloc, data, bytes);
        return code;
    }
    put(data, tensor);
    (void)place_texts((struct ifd_str *)data, text_count(tensor), data + tensor->bytes);
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

size_t ifd_kept_growth(const struct ifd_kept *kept, uint64_t id, bool begins,
                       const struct ifd_tensor *element)
{
    const struct ifd_kept_list *list = find_list(kept, id);
    return capacity_for(list, list && !begins ? list->bytes : 0, ifd_kept_bytes_of(element)) -
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
    const size_t bytes = ifd_kept_bytes_of(element);
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
        list->element_bytes = element->bytes;
    } else if (list->dtype != element->dtype || !ifd_shape_equal(&list->shape, &element->shape)) {
        return ifd_fail(err, IFD_INVALID,
                        "turn %lld of a loop gives a result of shape %s, those before %s",
                        (long long)list->count, ifd_shape_text(&element->shape).s,
                        ifd_shape_text(&list->shape).s);
    }
    code = make_room(kept, list, bytes, err);
    if (code == IFD_OK) {
        put(list->data + list->bytes, element);
        list->bytes += bytes;
        list->count++;
    }
    return code;
}

/* The texts of all elements behind all that say where they are, in as many bytes. */
static size_t gather_texts(const struct ifd_kept_list *list, uint8_t *to)
{
    const size_t bytes = list->element_bytes, all = bytes * (size_t)list->count;
    const uint8_t *from = list->data;
    uint8_t *text = to + all;
    for (int64_t i = 0; bytes > 0 && i < list->count; i++) {
        struct ifd_str *element = (struct ifd_str *)(to + (size_t)i * bytes);
        memcpy(element, from, bytes);
        from = place_texts(element, bytes / sizeof(*element), from + bytes);
        text = put_texts(text, element, bytes / sizeof(*element));
    }
    (void)place_texts((struct ifd_str *)to, all / sizeof(struct ifd_str), to + all);
    return all;
}

/* A list of texts is written anew, in no more memory than it has; *ret_bytes: without them. */
static enum ifd_code write_texts(const struct ifd_alloc *alloc, struct ifd_kept_list *list,
                                 size_t *ret_bytes, struct ifd_err *err)
{
    uint8_t *data = ifd_acquire_tensor(alloc, list->bytes);
    if (!data) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a list of %lld elements",
                        (long long)list->count);
    }
    *ret_bytes = gather_texts(list, data);
    ifd_release_tensor(alloc, list->data, list->capacity);
    list->data = data;
    list->capacity = list->bytes;
    return IFD_OK;
}

enum ifd_code ifd_kept_take(struct ifd_kept *kept, uint64_t id, struct ifd_tensor *ret,
                            struct ifd_err *err)
{
    struct ifd_kept_list *list = find_list(kept, id);
    if (!list || list->shape.rank == IFD_MAX_RANK) {
        return ifd_fail(err, list ? IFD_TOO_LARGE : IFD_INTERNAL, "a list of %u dimensions",
                        list ? list->shape.rank + 1 : 0);
    }
    size_t bytes = list->bytes;
    enum ifd_code code = IFD_OK;
    if (list->dtype == IFD_STR) {
        kept->bytes -= list->capacity;
        code = write_texts(kept->alloc, list, &bytes, err);
        kept->bytes += list->capacity;
    }
    const struct ifd_kept_list taken = *list;
    if (code == IFD_OK) {
        code = add_block(kept, taken.data, taken.capacity, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    kept->bytes -= taken.capacity; /* counted twice */
    *list = kept->list[--kept->list_count];
    *ret = (struct ifd_tensor){.dtype = taken.dtype,
                               .shape = {.rank = taken.shape.rank + 1, .dim = {taken.count}},
                               .data = taken.data,
                               .bytes = bytes,
                               .capacity = taken.capacity + IFD_TENSOR_PAD};
    memcpy(ret->shape.dim + 1, taken.shape.dim, taken.shape.rank * sizeof(ret->shape.dim[0]));
    return IFD_OK;
}
