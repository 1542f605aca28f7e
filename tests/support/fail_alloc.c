/* Torture allocator. */
#include "tests/support/fail_alloc.h"

#include "tests/support/test.h"

#include <stdint.h>
#include <string.h>

/* In front of every item: what was asked for, so that release can be checked. */
struct head {
    size_t size, offset;
    uint64_t magic;
};
#define HEAD_MAGIC 0x1badb0020ddba11aull

static void *acquire(void *context, size_t size, size_t align)
{
    struct fail_alloc *fail = context;
    long number = atomic_fetch_add(&fail->requests, 1) + 1;
    long fail_at = atomic_load(&fail->fail_at);
    bool is_due = fail_at < 0 || (fail_at != 0 && number == fail_at) ||
                  (fail_at != 0 && number > fail_at && atomic_load(&fail->goes_on));
    if (is_due && fail->instead) {
        fail->instead();
    } else if (is_due) {
        atomic_store(&fail->failed, true);
        return NULL;
    }
    size_t offset = sizeof(struct head);
    if (!ifd_size_align(offset, align, &offset)) {
        return NULL;
    }
    const struct ifd_alloc *system = ifd_alloc_system();
    uint8_t *block = system->acquire(system->context, offset + size, align < 16 ? 16 : align);
    if (!block) {
        return NULL;
    }
    memset(block, 0xAA, offset + size);
    *(struct head *)(void *)(block + offset - sizeof(struct head)) =
        (struct head){.size = size, .offset = offset, .magic = HEAD_MAGIC};
    atomic_fetch_add(&fail->live, 1);
    atomic_fetch_add(&fail->live_bytes, (long)size);
    return block + offset;
}

static void release(void *context, void *ptr, size_t size)
{
    struct fail_alloc *fail = context;
    struct head *head = (struct head *)(void *)((uint8_t *)ptr - sizeof(struct head));
    REQUIRE(head->magic == HEAD_MAGIC);
    EXPECT_INT(size, head->size);
    atomic_fetch_sub(&fail->live, 1);
    atomic_fetch_sub(&fail->live_bytes, (long)head->size);
    size_t offset = head->offset;
    size_t whole = offset + head->size;
    uint8_t *block = (uint8_t *)ptr - offset;
    memset(block, 0x55, whole);
    const struct ifd_alloc *system = ifd_alloc_system();
    system->release(system->context, block, whole);
}

void fail_alloc_init(struct fail_alloc *fail, long fail_at)
{
    memset(fail, 0, sizeof(*fail));
    fail->alloc = (struct ifd_alloc){.context = fail, .acquire = acquire, .release = release};
    atomic_store(&fail->fail_at, fail_at);
}

void fail_alloc_arm(struct fail_alloc *fail, long fail_at, bool goes_on)
{
    atomic_store(&fail->fail_at, 0);
    atomic_store(&fail->requests, 0);
    atomic_store(&fail->failed, false);
    atomic_store(&fail->goes_on, goes_on);
    atomic_store(&fail->fail_at, fail_at);
}

void fail_alloc_finish(struct fail_alloc *fail)
{
    EXPECT_INT(atomic_load(&fail->live), 0);
    EXPECT_INT(atomic_load(&fail->live_bytes), 0);
}
