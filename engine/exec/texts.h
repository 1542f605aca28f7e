/** Memory of the texts that a run makes: it grows, up to a limit. Thread: one at a time. */
#ifndef INFERD_ENGINE_EXEC_TEXTS_H
#define INFERD_ENGINE_EXEC_TEXTS_H

#include "inferd/alloc.h"
#include "inferd/op.h"

/** Bytes of all texts of a run. */
#define IFD_TEXTS_BYTES ((size_t)64 << 20)

struct ifd_text_store {
    struct ifd_texts base;
    const struct ifd_alloc *alloc;
    struct ifd_text_block *block; /* the newest, NULL: none */
    size_t bytes;                 /* of all blocks */
};

void ifd_text_store_init(struct ifd_text_store *store, const struct ifd_alloc *alloc);
/** Forgets all texts. */
void ifd_text_store_reset(struct ifd_text_store *store);
/** A zeroed one is fine. */
void ifd_text_store_finish(struct ifd_text_store *store);

#endif
