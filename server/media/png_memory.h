/** libspng with memory from an ifd_alloc. The library passes no context to its allocator, so the
 *  thread that opens a context uses and frees it, one at a time. */
#ifndef INFERD_SERVER_MEDIA_PNG_MEMORY_H
#define INFERD_SERVER_MEDIA_PNG_MEMORY_H

#include <spng.h>

#include "inferd/alloc.h"

/** A context of the library; NULL without memory. Release with spng_ctx_free. */
spng_ctx *ifd_png_open(const struct ifd_alloc *alloc, int flags);
/** Whether an allocation failed since ifd_png_open. */
bool ifd_png_memory_was_short(void);
/** Releases what the library gave away. */
void ifd_png_give(void *data);

#endif
