/** Packs buffers with lifetimes into one block of memory. Knows nothing of tensors: the planner uses it for the arena of a
 *  model, a backend may use it for the values inside a partition. Thread: any. */
#ifndef INFERD_ENGINE_BASE_LAYOUT_H
#define INFERD_ENGINE_BASE_LAYOUT_H

#include "inferd/alloc.h"
#include "inferd/status.h"

/** One buffer, alive from step first to step last (both included). */
struct ifd_layout_item {
    uint32_t first, last;
    size_t bytes;  /* 0 is fine: such an item gets an offset but no room of its own */
    size_t offset; /* written */
};

/** Gives every item an offset, a multiple of IFD_TENSOR_ALIGN, so that two items whose lifetimes overlap share no byte,
 *  and every item is followed by IFD_TENSOR_PAD bytes of the block, which nobody writes while it is alive.
 *
 *  Largest item first, each into the tightest gap that holds it, else the lowest gap's end. Deterministic: equal input
 *  gives equal offsets. Time is quadratic in the number of items that are alive together, some hundredth of it in all.
 *
 *  ret_total: bytes of the block, a multiple of IFD_TENSOR_ALIGN; 0 if no item has any.
 *  Memory:    scratch from alloc, nothing is kept.
 *  Errors:    TOO_LARGE if the block would exceed limit_bytes (named in the text); NOMEM. */
IFD_NODISCARD enum ifd_code ifd_lay_out(struct ifd_layout_item *items, uint32_t count,
                                        size_t limit_bytes, const struct ifd_alloc *alloc,
                                        size_t *ret_total, struct ifd_err *err);

#endif
