/* Bump arena over a list of blocks. */
#include "engine/base/arena.h"

#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ITEM_PER_BLOCK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ITEM_PER_BLOCK 1
#endif
#endif
#ifndef ARENA_ITEM_PER_BLOCK
#define ARENA_ITEM_PER_BLOCK 0
#endif

#define ARENA_ITEM_ALIGN  _Alignof(max_align_t)
#define ARENA_BLOCK_BYTES ((size_t)64 * 1024)

struct ifd_arena_block {
    struct ifd_arena_block *next;
    size_t size; /* of the whole block, this header included */
    size_t used;
};

void ifd_arena_init(struct ifd_arena *arena, const struct ifd_alloc *alloc, size_t cap_bytes)
{
    *arena = (struct ifd_arena){.alloc = alloc, .cap_bytes = cap_bytes};
}

static void release_blocks(struct ifd_arena *arena, struct ifd_arena_block *block)
{
    while (block) {
        struct ifd_arena_block *next = block->next;
        arena->alloc->release(arena->alloc->context, block, block->size);
        block = next;
    }
}

void ifd_arena_finish(struct ifd_arena *arena)
{
    release_blocks(arena, arena->blocks);
    arena->blocks = NULL;
    arena->used_bytes = 0;
}

size_t ifd_arena_held_bytes(const struct ifd_arena *arena)
{
    size_t bytes = 0;
    for (const struct ifd_arena_block *block = arena->blocks; block; block = block->next) {
        bytes += block->size;
    }
    return bytes;
}

bool ifd_arena_holds(const struct ifd_arena *arena, const void *data, size_t *ret_readable)
{
    for (const struct ifd_arena_block *block = arena->blocks; block; block = block->next) {
        const uintptr_t at = (uintptr_t)data, begin = (uintptr_t)block;
        if (at >= begin && at - begin < block->used) {
            *ret_readable = block->used - (at - begin);
            return true;
        }
    }
    return false;
}

void ifd_arena_reset(struct ifd_arena *arena)
{
    struct ifd_arena_block *block = arena->blocks;
    arena->used_bytes = 0;
    if (!block) {
        return;
    }
    if (ARENA_ITEM_PER_BLOCK) {
        ifd_arena_finish(arena);
        return;
    }
    release_blocks(arena, block->next);
    block->next = NULL;
    block->used = sizeof(*block);
}

/* Offset of the next item in block, or SIZE_MAX if size bytes do not fit. align: a power of two. */
static size_t fit(const struct ifd_arena_block *block, size_t size, size_t align)
{
    const size_t left = block->size - block->used;
    const size_t gap = (size_t)(0 - ((uintptr_t)block + block->used)) & (align - 1);
    return gap <= left && size <= left - gap ? block->used + gap : SIZE_MAX;
}

static struct ifd_arena_block *add_block(struct ifd_arena *arena, size_t size, size_t align)
{
    size_t bytes = 0;
    if (!ifd_size_add(size, sizeof(struct ifd_arena_block) + align, &bytes)) {
        return NULL;
    }
    if (!ARENA_ITEM_PER_BLOCK && bytes < ARENA_BLOCK_BYTES) {
        bytes = ARENA_BLOCK_BYTES;
    }
    struct ifd_arena_block *block = ifd_acquire(arena->alloc, bytes);
    if (block) {
        *block =
            (struct ifd_arena_block){.next = arena->blocks, .size = bytes, .used = sizeof(*block)};
        arena->blocks = block;
    }
    return block;
}

/* Not zeroed. */
static void *take(struct ifd_arena *arena, size_t size, size_t align)
{
    if (arena->cap_bytes != 0 &&
        (arena->used_bytes > arena->cap_bytes || size > arena->cap_bytes - arena->used_bytes)) {
        return NULL;
    }
    struct ifd_arena_block *block = arena->blocks;
    size_t offset = block && !ARENA_ITEM_PER_BLOCK ? fit(block, size, align) : SIZE_MAX;
    if (offset == SIZE_MAX) {
        block = add_block(arena, size, align);
        if (!block) {
            return NULL;
        }
        offset = fit(block, size, align);
    }
    block->used = offset + size;
    arena->used_bytes += size;
    return (uint8_t *)block + offset;
}

void *ifd_arena_take(struct ifd_arena *arena, size_t size)
{
    void *item = take(arena, size ? size : 1, ARENA_ITEM_ALIGN);
    return item ? memset(item, 0, size) : NULL;
}

void *ifd_arena_take_array(struct ifd_arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    return ifd_size_mul(count, size, &bytes) ? ifd_arena_take(arena, bytes) : NULL;
}

void *ifd_arena_take_tensor(struct ifd_arena *arena, size_t size)
{
    void *item = ifd_arena_take_room(arena, size);
    return item ? memset(item, 0, size) : NULL;
}

void *ifd_arena_take_room(struct ifd_arena *arena, size_t size)
{
    size_t bytes = 0;
    uint8_t *item =
        ifd_size_add(size, IFD_TENSOR_PAD, &bytes) ? take(arena, bytes, IFD_TENSOR_ALIGN) : NULL;
    if (item) {
        memset(item + size, 0, IFD_TENSOR_PAD);
    }
    return item;
}

char *ifd_arena_text(struct ifd_arena *arena, const char *text, size_t size)
{
    size_t bytes = 0;
    char *copy = ifd_size_add(size, 1, &bytes) ? ifd_arena_take(arena, bytes) : NULL;
    if (copy && size) {
        memcpy(copy, text, size);
    }
    return copy;
}

enum ifd_code ifd_arena_fail(const struct ifd_arena *arena, size_t size, struct ifd_err *err)
{
    size_t total = 0;
    if (arena->cap_bytes != 0 &&
        (!ifd_size_add(arena->used_bytes, size, &total) || total > arena->cap_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "%zu bytes on top of %zu exceed the limit of %zu bytes",
                        size, arena->used_bytes, arena->cap_bytes);
    }
    return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes", size);
}
