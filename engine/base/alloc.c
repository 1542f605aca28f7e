/* The system allocator and checked size arithmetic: the only file that calls malloc. */
#include "inferd/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define HUGE_BYTES_MIN  (HUGE_PAGE_BYTES / 5 * 4)

/* Files, weights and arenas are written once and read from end to end. Huge pages cost them one
 * fault per 2 MiB instead of 512, and fewer TLB misses. The last page is huge, too, if that adds
 * a quarter at most. A system without huge pages ignores the advice. */
static void *huge_acquire(size_t size)
{
    size_t whole = size / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (size - whole >= HUGE_PAGE_BYTES - size / 4 && whole <= SIZE_MAX - HUGE_PAGE_BYTES) {
        whole += HUGE_PAGE_BYTES;
    }
    void *ptr = NULL;
    if (posix_memalign(&ptr, HUGE_PAGE_BYTES, whole > size ? whole : size) != 0) {
        return NULL;
    }
    (void)madvise(ptr, whole, MADV_HUGEPAGE);
    return ptr;
}

static void *system_acquire(void *context, size_t size, size_t align)
{
    (void)context;
    if (align <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    if (size >= HUGE_BYTES_MIN && align <= HUGE_PAGE_BYTES) {
        return huge_acquire(size);
    }
    void *ptr = NULL;
    return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

static void system_release(void *context, void *ptr, size_t size)
{
    (void)context;
    (void)size;
    free(ptr);
}

const struct ifd_alloc *ifd_alloc_system(void)
{
    static const struct ifd_alloc alloc = {.acquire = system_acquire, .release = system_release};
    return &alloc;
}

void *ifd_acquire(const struct ifd_alloc *alloc, size_t size)
{
    return size ? alloc->acquire(alloc->context, size, _Alignof(max_align_t)) : NULL;
}

void *ifd_acquire_zeroed(const struct ifd_alloc *alloc, size_t count, size_t size)
{
    size_t bytes = 0;
    if (!ifd_size_mul(count, size, &bytes)) {
        return NULL;
    }
    void *ptr = ifd_acquire(alloc, bytes);
    if (ptr) {
        memset(ptr, 0, bytes);
    }
    return ptr;
}

void *ifd_acquire_tensor(const struct ifd_alloc *alloc, size_t size)
{
    size_t bytes = 0;
    if (!ifd_size_add(size, IFD_TENSOR_PAD, &bytes)) {
        return NULL;
    }
    uint8_t *ptr = alloc->acquire(alloc->context, bytes, IFD_TENSOR_ALIGN);
    if (ptr) {
        memset(ptr + size, 0, IFD_TENSOR_PAD);
    }
    return ptr;
}

void ifd_release(const struct ifd_alloc *alloc, void *ptr, size_t size)
{
    if (ptr) {
        alloc->release(alloc->context, ptr, size);
    }
}

void ifd_release_tensor(const struct ifd_alloc *alloc, void *ptr, size_t size)
{
    if (ptr) {
        alloc->release(alloc->context, ptr, size + IFD_TENSOR_PAD);
    }
}

void ifd_populate_pages(void *ptr, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)ptr % page;
    (void)madvise((uint8_t *)ptr - before, before + size, MADV_POPULATE_WRITE);
#else
    (void)ptr;
    (void)size;
#endif
}

size_t ifd_discard_pages(void *ptr, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)ptr;
    const uintptr_t first = (begin + page - 1) / page * page, last = (begin + size) / page * page;
    if (first >= last) {
        return 0;
    }
    uint8_t *at = (uint8_t *)ptr + (first - begin);
    /* MADV_REMOVE frees pages of a memfd, MADV_DONTNEED those of the heap. An emulated kernel
     * may report success for the first without doing it. */
    const bool was_file = madvise(at, last - first, MADV_REMOVE) == 0;
    return madvise(at, last - first, MADV_DONTNEED) == 0 || was_file ? last - first : 0;
}

bool ifd_size_mul(size_t a, size_t b, size_t *ret)
{
    size_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *ret = product;
    return true;
}

bool ifd_size_add(size_t a, size_t b, size_t *ret)
{
    size_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *ret = sum;
    return true;
}

bool ifd_size_align(size_t a, size_t align, size_t *ret)
{
    size_t sum = 0;
    if (!ifd_size_add(a, align - 1, &sum)) {
        return false;
    }
    *ret = sum & ~(align - 1);
    return true;
}
