/* libspng's memory over an ifd_alloc. */
#include "server/media/png_memory.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* In front of each block. */
struct head {
    size_t bytes; /* with this header */
    alignas(max_align_t) uint8_t data[];
};

/* The library passes no context to its allocator. One thread handles a picture from begin to end,
 * so a variable of the thread is the context. */
static _Thread_local struct png_memory {
    const struct ifd_alloc *alloc;
    bool is_short; /* an allocation failed */
} png_memory;

static void *take(size_t size)
{
    size_t bytes = 0;
    struct head *head = NULL;
    if (ifd_size_add(size, sizeof(*head), &bytes)) {
        head = ifd_acquire(png_memory.alloc, bytes);
    }
    if (!head) {
        png_memory.is_short = true;
        return NULL;
    }
    head->bytes = bytes;
    return head->data;
}

static struct head *head_of(void *data)
{
    return (struct head *)(void *)((uint8_t *)data - offsetof(struct head, data));
}

static void *take_zeroed(size_t count, size_t size)
{
    size_t bytes = 0;
    void *data = ifd_size_mul(count, size, &bytes) ? take(bytes) : NULL;
    return data ? memset(data, 0, bytes) : NULL;
}

void ifd_png_give(void *data)
{
    if (data) {
        ifd_release(png_memory.alloc, head_of(data), head_of(data)->bytes);
    }
}

static void *resize(void *data, size_t size)
{
    void *next = take(size);
    if (next && data) {
        const size_t old = head_of(data)->bytes - sizeof(struct head);
        memcpy(next, data, old < size ? old : size);
        ifd_png_give(data);
    }
    return next;
}

spng_ctx *ifd_png_open(const struct ifd_alloc *alloc, int flags)
{
    struct spng_alloc memory = {
        .malloc_fn = take, .realloc_fn = resize, .calloc_fn = take_zeroed, .free_fn = ifd_png_give};
    png_memory = (struct png_memory){.alloc = alloc};
    return spng_ctx_new2(&memory, flags);
}

bool ifd_png_memory_was_short(void)
{
    return png_memory.is_short;
}
