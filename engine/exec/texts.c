/* Memory of the texts that a run makes, in blocks. The first block stays for the next run. */
#include "engine/exec/texts.h"

#include "engine/base/arena.h"

#define BLOCK_BYTES ((size_t)64 << 10)

struct ifd_text_block {
    struct ifd_text_block *next;
    size_t bytes, used; /* of data */
    char data[];
};

static void release(struct ifd_text_store *store, struct ifd_text_block *block)
{
    store->bytes -= block->bytes;
    ifd_release(store->alloc, block, sizeof(*block) + block->bytes);
}

static enum ifd_code take(struct ifd_texts *texts, size_t bytes, char **ret_text,
                          struct ifd_err *err)
{
    struct ifd_text_store *store = (struct ifd_text_store *)texts;
    struct ifd_text_block *block = store->block;
    if (!block || block->bytes - block->used < bytes) {
        const size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        if (size > IFD_TEXTS_BYTES - store->bytes) {
            return ifd_fail(err, IFD_TOO_LARGE,
                            "a text of %zu bytes: those of a run take more than %zu", bytes,
                            IFD_TEXTS_BYTES);
        }
        block = ifd_acquire(store->alloc, sizeof(*block) + size);
        if (!block) {
            return ifd_fail(err, IFD_NOMEM, "no memory for a text of %zu bytes", bytes);
        }
        *block = (struct ifd_text_block){.next = store->block, .bytes = size};
        store->block = block;
        store->bytes += size;
    }
    *ret_text = block->data + block->used;
    block->used += bytes;
    return IFD_OK;
}

void ifd_text_store_init(struct ifd_text_store *store, const struct ifd_alloc *alloc)
{
    *store = (struct ifd_text_store){.base = {.take = take}, .alloc = alloc};
}

void ifd_text_store_reset(struct ifd_text_store *store)
{
    while (store->block && (store->block->next || store->block->bytes > BLOCK_BYTES)) {
        struct ifd_text_block *block = store->block;
        store->block = block->next;
        release(store, block);
    }
    if (store->block) {
        store->block->used = 0;
    }
}

void ifd_text_store_finish(struct ifd_text_store *store)
{
    while (store->block) {
        struct ifd_text_block *block = store->block;
        store->block = block->next;
        release(store, block);
    }
}
