/** Values of a partition while its nodes become steps: their readers, and the memory they live in.
 *
 *  A value lives in a storage. Several values share one where an operator only moves elements
 *  between them (subtensors.h), or where a result may overwrite an input. The backend adds values
 *  and storages, says which steps touch them, and lays out scratch memory when all nodes are
 *  lowered. Thread: one at a time. */
#ifndef INFERD_BACKENDS_LOWERING_VALUES_H
#define INFERD_BACKENDS_LOWERING_VALUES_H

#include "backends/lowering/place.h"
#include "engine/base/arena.h"

/** A buffer that one or more values live in. */
struct ifd_low_storage {
    struct ifd_low_place place; /* scratch: offset is written by ifd_low_lay_out */
    size_t bytes;
    uint32_t first, last; /* steps between which it is alive; first is UINT32_MAX before any */
    uint32_t readers;     /* nodes not lowered yet that read it */
    bool is_copied;       /* a constant that was copied in the backend's form */
    uint32_t joined;      /* the storage that its values moved to; its own index: they live here */
    size_t at;            /* where in it */
};

struct ifd_low_value {
    const struct ifd_partition_value *view;
    uint32_t storage; /* may have been joined: ask ifd_low_storage_of, */
    size_t offset;    /* which also settles where in it */
    size_t bytes;
    size_t pitch; /* bytes from row to row (of the last dimension) where those lie apart, else 0 */
    bool is_read_apart;            /* all readers accept rows that lie apart */
    uint32_t consumers;            /* nodes that read it, plus one if it is an output */
    uint32_t reader, first_reader; /* the last and the first of those nodes */
    bool is_made;                  /* by a node that is lowered */
    uint32_t quantized[5]; /* its quantized forms that steps made, counted from 1; 0: not made */
    size_t quantized_elements[5]; /* of what has a scale of its own there */
};

struct ifd_lowering {
    const struct ifd_partition_view *view;
    struct ifd_arena *arena;     /* of the partition: what runs need */
    struct ifd_low_value *value; /* those of the view, then the backend's */
    uint32_t value_count, value_capacity;
    bool *node_done; /* per node: lowered, alone or fused into another */
    struct ifd_low_storage *storage;
    uint32_t storage_count, storage_capacity;
};

/** count × size zeroed bytes of the partition's arena, or NULL. */
void *ifd_low_params(struct ifd_lowering *lowering, size_t count, size_t size) IFD_NODISCARD;
/** Makes room for one more item in an array of the arena; the old array stays behind there. NULL
 *  without memory. */
void *ifd_low_grow(struct ifd_lowering *lowering, void *array, uint32_t count, uint32_t *capacity,
                   size_t size) IFD_NODISCARD;

/** Makes the view's values and their storages. view and arena are set. */
IFD_NODISCARD enum ifd_code ifd_low_make_values(struct ifd_lowering *lowering, struct ifd_err *err);
/** Counts readers: after values were joined (subtensors.h), before any node is lowered. */
void ifd_low_count_readers(struct ifd_lowering *lowering);

/** Adds a value of the backend: one step writes it, others read it. */
IFD_NODISCARD enum ifd_code ifd_low_add_value(struct ifd_lowering *lowering, size_t bytes,
                                              uint32_t *ret_value, struct ifd_err *err);
/** A storage of bytes in scratch, alive between two steps. */
IFD_NODISCARD enum ifd_code ifd_low_add_storage(struct ifd_lowering *lowering, size_t bytes,
                                                uint32_t first, uint32_t last,
                                                uint32_t *ret_storage, struct ifd_err *err);
/** The value moves to a new scratch storage of the same size; its first storage stays what it
 *  was. */
IFD_NODISCARD enum ifd_code ifd_low_move_inside(struct ifd_lowering *lowering, uint32_t value,
                                                struct ifd_low_place *ret_outside,
                                                struct ifd_err *err);

/** The storage that a value lives in: root of the union-find tree; compresses the path. */
static inline uint32_t ifd_low_storage_of(const struct ifd_lowering *lowering, uint32_t value)
{
    struct ifd_low_storage *storage = lowering->storage;
    struct ifd_low_value *v = &lowering->value[value];
    while (storage[v->storage].joined != v->storage) {
        struct ifd_low_storage *from = &storage[v->storage];
        const struct ifd_low_storage *to = &storage[from->joined];
        if (to->joined != from->joined) {
            from->at += to->at;
            from->joined = to->joined;
        }
        v->offset += from->at;
        v->storage = from->joined;
    }
    return v->storage;
}

/** Does a value fill its storage, without gaps? */
bool ifd_low_is_whole(const struct ifd_lowering *lowering, uint32_t value);

/** True if both are the same memory (a reshape that needs no step). */
bool ifd_low_same_place(const struct ifd_lowering *lowering, uint32_t a, uint32_t b);

/** Lets out live in the memory of in, if nobody reads it after the node that is being lowered.
 *  False, and nothing is changed, if somebody does, if sizes differ, or if either is bound outside.
 *  Before the step is added. */
bool ifd_low_in_place(struct ifd_lowering *lowering, uint32_t in, uint32_t out);

/** Do two values share memory? Rows that lie apart may be those between the other's. */
bool ifd_low_overlap(const struct ifd_lowering *lowering, uint32_t a, uint32_t b);

/** The node that alone reads a value that is no output, NULL otherwise: a candidate for fusing. Its
 *  index through ret_node. */
const struct ifd_partition_node *ifd_low_sole_reader(const struct ifd_lowering *lowering,
                                                     uint32_t value, uint32_t *ret_node);

/** Marks a node as taken along by the one that is being lowered. */
void ifd_low_fuse_node(struct ifd_lowering *lowering, uint32_t node);
/** Is the value made by a step, an input or a constant? */
bool ifd_low_is_ready(const struct ifd_lowering *lowering, uint32_t value);
/** The node is lowered, alone or fused: its results are made, its inputs have one reader less. */
void ifd_low_end_node(struct ifd_lowering *lowering, uint32_t node);

/** Step `step` reads or writes the storage. */
void ifd_low_touch(struct ifd_lowering *lowering, uint32_t storage, uint32_t step);
/** All steps first … last may read or write the storage. */
void ifd_low_stretch(struct ifd_lowering *lowering, uint32_t storage, uint32_t first,
                     uint32_t last);

/** Lays out all scratch storages that steps touch; two that are alive at the same step never
 *  overlap. alloc: for temporary memory. ret_bytes: of scratch. */
IFD_NODISCARD enum ifd_code ifd_low_lay_out(struct ifd_lowering *lowering,
                                            const struct ifd_alloc *alloc, size_t *ret_bytes,
                                            struct ifd_err *err);
/** Where a value lies; after the layout. */
struct ifd_low_place ifd_low_place_of(const struct ifd_lowering *lowering, uint32_t value);

#endif
