/** Lays out buffers with lifetimes in one block of memory. Thread: any. */
#ifndef INFERD_ENGINE_BASE_LAYOUT_H
#define INFERD_ENGINE_BASE_LAYOUT_H

#include "inferd/alloc.h"
#include "inferd/status.h"

/** One buffer, alive from step first to step last (both included). */
struct ifd_layout_item {
    uint32_t first, last;
    size_t bytes;  /* 0 is fine: the item gets an offset but no room */
    size_t offset; /* result */
};

/** Gives every item an offset, a multiple of IFD_TENSOR_ALIGN. Items whose lifetimes overlap
 *  share no byte. Every item is followed by IFD_TENSOR_PAD bytes of the block, which nobody
 *  writes while it is alive.
 *
 *  Largest item first, each into the tightest gap that holds it, else behind all live items.
 *  Deterministic: equal input gives equal offsets. Time is quadratic in the number of items that
 *  are alive together, with a small factor.
 *
 *  ret_total: bytes of the block, a multiple of IFD_TENSOR_ALIGN; 0 if all items are empty.
 *  Memory:    scratch from alloc, nothing is kept.
 *  Errors:    TOO_LARGE if the block would exceed limit_bytes (named in the text); NOMEM. */
IFD_NODISCARD enum ifd_code ifd_lay_out(struct ifd_layout_item *items, uint32_t count,
                                        size_t limit_bytes, const struct ifd_alloc *alloc,
                                        size_t *ret_total, struct ifd_err *err);

#endif
