/* Layout of buffers with lifetimes: largest first, best gap. */
#include "engine/base/layout.h"

#include <stdlib.h>
#include <string.h>

/* A placed item and its pad. */
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

/* Placed items are kept in order of offset, in blocks that a search can skip as a whole. */
#define BLOCK_ITEMS 512

struct block {
    struct block *next; /* NULL: the last */
    uint32_t count;
    uint32_t first_min, first_max, last_min, last_max;
    size_t offset;       /* of the first item */
    size_t end;          /* largest end of an item */
    size_t room;         /* largest gap between items, if all are alive */
    struct placed *item; /* BLOCK_ITEMS; elsewhere in memory, as most searches skip most blocks */
};

struct blocks {
    struct block *block; /* [0] has the lowest offsets; .next gives the order of the others */
    uint32_t count;
    struct placed *item; /* of all blocks */
};

/* A walk by offset; best is the tightest gap so far. */
struct search {
    size_t bytes; /* wanted */
    size_t best, best_room;
    size_t end; /* largest end of a live item that was passed */
};

/* Live items lie from offset to end. */
static void pass(struct search *search, size_t offset, size_t end)
{
    const size_t room = offset > search->end ? offset - search->end : 0;
    if (room >= search->bytes && room < search->best_room) {
        search->best = search->end;
        search->best_room = room;
    }
    search->end = end > search->end ? end : search->end;
}

static void search_block(struct search *search, const struct block *block,
                         const struct ifd_layout_item *item)
{
    if (block->first_max <= item->last && block->last_min >= item->first &&
        block->room < search->bytes) {
        pass(search, block->offset, block->end);
        return;
    }
    for (uint32_t i = 0; i < block->count; i++) {
        if (block->item[i].first <= item->last && block->item[i].last >= item->first) {
            pass(search, block->item[i].offset, block->item[i].end);
        }
    }
}

/* Lowest offset of the tightest gap between placed items that are alive together with item. */
static size_t best_gap(const struct blocks *blocks, const struct ifd_layout_item *item,
                       size_t bytes)
{
    struct search search = {.bytes = bytes, .best_room = SIZE_MAX};
    for (const struct block *block = blocks->block; block; block = block->next) {
        if (block->first_min <= item->last && block->last_max >= item->first) {
            search_block(&search, block, item);
        }
    }
    return search.best_room < SIZE_MAX ? search.best : search.end;
}

static void sum_up(struct block *block)
{
    block->first_min = block->last_min = UINT32_MAX;
    block->first_max = block->last_max = 0;
    block->offset = block->item[0].offset;
    block->end = block->item[0].end;
    block->room = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        const struct placed *item = &block->item[i];
        block->first_min = item->first < block->first_min ? item->first : block->first_min;
        block->first_max = item->first > block->first_max ? item->first : block->first_max;
        block->last_min = item->last < block->last_min ? item->last : block->last_min;
        block->last_max = item->last > block->last_max ? item->last : block->last_max;
        const size_t room = item->offset > block->end ? item->offset - block->end : 0;
        block->room = room > block->room ? room : block->room;
        block->end = item->end > block->end ? item->end : block->end;
    }
}

/* Moves the upper half of a full block to a new one behind it. */
static void split(struct blocks *blocks, struct block *low)
{
    struct block *high = &blocks->block[blocks->count];
    high->item = &blocks->item[(size_t)blocks->count++ * BLOCK_ITEMS];
    high->next = low->next;
    low->next = high;
    high->count = BLOCK_ITEMS / 2;
    low->count = BLOCK_ITEMS - high->count;
    memcpy(high->item, low->item + low->count, high->count * sizeof(*high->item));
    sum_up(low);
    sum_up(high);
}

/* The last block that begins at offset or below, else the first. */
static struct block *block_at(struct block *block, size_t offset)
{
    while (block->next && block->next->offset <= offset) {
        block = block->next;
    }
    return block;
}

/* Inserts item behind those of the same offset. */
static void insert(struct blocks *blocks, struct placed item)
{
    struct block *block = block_at(blocks->block, item.offset);
    if (block->count == BLOCK_ITEMS) {
        split(blocks, block);
        block = block_at(block, item.offset);
    }
    uint32_t i = block->count++;
    for (; i > 0 && block->item[i - 1].offset > item.offset; i--) {
        block->item[i] = block->item[i - 1];
    }
    block->item[i] = item;
    sum_up(block);
}

static enum ifd_code too_large(size_t limit_bytes, struct ifd_err *err)
{
    return ifd_fail(err, IFD_TOO_LARGE, "buffers need more than the limit of %zu bytes",
                    limit_bytes);
}

static enum ifd_code lay_out(struct ifd_layout_item *items, uint32_t count, size_t limit_bytes,
                             struct ranked *order, struct blocks *blocks, size_t *ret_total,
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
    for (uint32_t i = 0; i < count; i++) {
        struct ifd_layout_item *item = &items[order[i].index];
        if (order[i].bytes == 0) {
            item->offset = 0;
            continue;
        }
        const size_t offset = best_gap(blocks, item, order[i].bytes);
        size_t end = 0;
        if (!ifd_size_add(offset, order[i].bytes, &end) || end > limit_bytes) {
            return too_large(limit_bytes, err);
        }
        item->offset = offset;
        insert(blocks, (struct placed){offset, end, item->first, item->last});
        total = end > total ? end : total;
    }
    *ret_total = total;
    return IFD_OK;
}

enum ifd_code ifd_lay_out(struct ifd_layout_item *items, uint32_t count, size_t limit_bytes,
                          const struct ifd_alloc *alloc, size_t *ret_total, struct ifd_err *err)
{
    if (count == 0) {
        *ret_total = 0;
        return IFD_OK;
    }
    const size_t order_bytes = (size_t)count * sizeof(struct ranked);
    /* Only full blocks are split: each of several blocks is at least half full. */
    const size_t block_count = count / (BLOCK_ITEMS / 2) + 1;
    const size_t block_bytes = block_count * sizeof(struct block);
    const size_t item_bytes = block_count * BLOCK_ITEMS * sizeof(struct placed);
    struct ranked *order = ifd_acquire(alloc, order_bytes);
    struct blocks blocks = {.block = ifd_acquire(alloc, block_bytes),
                            .count = 1,
                            .item = ifd_acquire(alloc, item_bytes)};
    enum ifd_code code = IFD_OK;
    if (!order || !blocks.block || !blocks.item) {
        code = ifd_fail(err, IFD_NOMEM, "no memory to lay out %u buffers", count);
    } else {
        blocks.block[0] =
            (struct block){.first_min = UINT32_MAX, .room = SIZE_MAX, .item = blocks.item};
        code = lay_out(items, count, limit_bytes, order, &blocks, ret_total, err);
    }
    ifd_release(alloc, order, order_bytes);
    ifd_release(alloc, blocks.block, block_bytes);
    ifd_release(alloc, blocks.item, item_bytes);
    return code;
}
