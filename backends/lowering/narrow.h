/** Values of f32 that are stored in a narrower type between steps. Thread: one at a time per
 *  lowering. */
#ifndef INFERD_BACKENDS_LOWERING_NARROW_H
#define INFERD_BACKENDS_LOWERING_NARROW_H

#include "backends/lowering/values.h"

/** What a backend's nodes can do. node: of the lowering's view. */
struct ifd_low_narrow {
    enum ifd_dtype dtype; /* the narrower type */
    const void *context;
    /** Does it widen what it reads and narrow what it writes, each operand for itself? */
    bool (*converts)(const void *context, uint32_t node);
    /** Does it know the size of elements only? Then all its floats must be of one type. */
    bool (*moves)(const void *context, uint32_t node);
};

/** A value is narrow if it may be, if it stays inside of the partition, and if all nodes that make
 *  or read it can do that. is_narrow: per value of the view, whether it may be, then whether it is.
 *  Lowering gets a view of its own, in the arena, in which the type of these values is the narrower
 *  one; nodes that move elements see it, other nodes keep f32 in their descriptions. Before values
 *  are made. */
IFD_NODISCARD enum ifd_code ifd_low_narrow_values(struct ifd_lowering *lowering,
                                                  const struct ifd_low_narrow *narrow,
                                                  bool *is_narrow, uint32_t *ret_count,
                                                  struct ifd_err *err);

#endif
