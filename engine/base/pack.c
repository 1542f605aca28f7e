/* Packing of buffers with lifetimes: largest first, best gap. */
#include "engine/base/pack.h"

#include <stdlib.h>

/* A placed item with its pad, in order of offset. */
struct placed {
    size_t offset, end;
    uint32_t first, last;
};

struct ranked {
    size_t bytes;
    uint32_t index;
};

static int larger_first(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* Lowest start of the tightest gap between placed items that are alive together with item. */
static size_t best_gap(const struct placed *placed, uint32_t count,
                       const struct ifd_pack_item *item, size_t bytes)
{
    size_t best = 0, best_room = SIZE_MAX;
    bool found = false;
    size_t end = 0; /* of everything alive that starts below the present position */
    for (uint32_t i = 0; i < count; i++) {
        if (placed[i].first > item->last || placed[i].last < item->first) {
            continue;
        }
        if (placed[i].offset > end) {
            const size_t room = placed[i].offset - end;
            if (room >= bytes && room < best_room) {
                best = end;
                best_room = room;
                found = true;
            }
        }
        if (placed[i].end > end) {
            end = placed[i].end;
        }
    }
    return found ? best : end;
}

static void insert(struct placed *placed, uint32_t count, struct placed item)
{
    uint32_t i = count;
    for (; i > 0 && placed[i - 1].offset > item.offset; i--) {
        placed[i] = placed[i - 1];
    }
    placed[i] = item;
}

static enum ifd_code too_large(size_t limit_bytes, struct ifd_err *err)
{
    return ifd_fail(err, IFD_TOO_LARGE, "tensors need more than the limit of %zu bytes",
                    limit_bytes);
}

static enum ifd_code pack(struct ifd_pack_item *items, uint32_t count, size_t limit_bytes,
                          struct ranked *order, struct placed *placed, size_t *ret_total,
                          struct ifd_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = items[i].bytes;
        if (bytes > 0 && (!ifd_size_add(bytes, IFD_TENSOR_PAD, &bytes) ||
                          !ifd_size_align(bytes, IFD_TENSOR_ALIGN, &bytes))) {
            return too_large(limit_bytes, err);
        }
        order[i] = (struct ranked){.bytes = bytes, .index = i};
    }
    qsort(order, count, sizeof(*order), larger_first);
    size_t total = 0;
    uint32_t placed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct ifd_pack_item *item = &items[order[i].index];
        if (order[i].bytes == 0) {
            item->offset = 0;
            continue;
        }
        const size_t offset = best_gap(placed, placed_count, item, order[i].bytes);
        size_t end = 0;
        if (!ifd_size_add(offset, order[i].bytes, &end) || end > limit_bytes) {
            return too_large(limit_bytes, err);
        }
        item->offset = offset;
        insert(placed, placed_count,
               (struct placed){
                   .offset = offset, .end = end, .first = item->first, .last = item->last});
        placed_count++;
        total = end > total ? end : total;
    }
    *ret_total = total;
    return IFD_OK;
}

enum ifd_code ifd_pack(struct ifd_pack_item *items, uint32_t count, size_t limit_bytes,
                       const struct ifd_alloc *alloc, size_t *ret_total, struct ifd_err *err)
{
    if (count == 0) {
        *ret_total = 0;
        return IFD_OK;
    }
    const size_t order_bytes = (size_t)count * sizeof(struct ranked);
    const size_t placed_bytes = (size_t)count * sizeof(struct placed);
    struct ranked *order = ifd_acquire(alloc, order_bytes);
    struct placed *placed = ifd_acquire(alloc, placed_bytes);
    enum ifd_code code = IFD_OK;
    if (!order || !placed) {
        code = ifd_fail(err, IFD_NOMEM, "no memory to plan %u buffers", count);
    } else {
        code = pack(items, count, limit_bytes, order, placed, ret_total, err);
    }
    ifd_release(alloc, order, order_bytes);
    ifd_release(alloc, placed, placed_bytes);
    return code;
}
