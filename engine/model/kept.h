/** What a run keeps between the parts of a model that data divides: content whose memory another
 *  part takes over, and the lists that turns of a loop make. Thread: that of the instance. */
#ifndef INFERD_ENGINE_MODEL_KEPT_H
#define INFERD_ENGINE_MODEL_KEPT_H

#include "inferd/alloc.h"
#include "inferd/engine.h"

struct ifd_kept_block {
    uint8_t *data;
    size_t bytes;
};

/** Elements of one shape, one behind the other, each followed by its texts. */
struct ifd_kept_list {
    uint64_t id;
    enum ifd_dtype dtype;
    struct ifd_shape shape; /* of an element */
    size_t element_bytes;   /* without its texts */
    uint8_t *data;
    int64_t count;
    size_t bytes, capacity;
};

struct ifd_kept {
    const struct ifd_alloc *alloc;
    struct ifd_kept_block *block;
    struct ifd_kept_list *list;
    size_t block_count, block_capacity, list_count, list_capacity;
    size_t bytes; /* of all blocks and lists */
};

/** Releases everything; the object can be used again. */
void ifd_kept_clear(struct ifd_kept *kept);

/** Memory that a copy of a tensor takes, with its texts; SIZE_MAX: too much. */
size_t ifd_kept_bytes_of(const struct ifd_tensor *tensor);
/** Copies the content of a tensor, which then lies in a block with its texts. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_kept_copy(struct ifd_kept *kept, struct ifd_tensor *tensor,
                                          struct ifd_err *err);
/** Releases the blocks that none of the tensors lies in. */
void ifd_kept_sweep(struct ifd_kept *kept, const struct ifd_tensor *tensor, size_t count);

/** Memory that appending an element takes. */
size_t ifd_kept_growth(const struct ifd_kept *kept, uint64_t id, bool begins,
                       const struct ifd_tensor *element);
/** Adds an element to a list. begins: to an empty one. Errors: INVALID (another shape than those
 *  before), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_kept_append(struct ifd_kept *kept, uint64_t id, bool begins,
                                            const struct ifd_tensor *element, struct ifd_err *err);
/** The list as a tensor with one dimension more, which lies in a block. The list is gone. Errors:
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_kept_take(struct ifd_kept *kept, uint64_t id,
                                          struct ifd_tensor *ret, struct ifd_err *err);

#endif
