/** Compile time: a partition's nodes become steps. The context that every ops/ driver writes through.
 *
 *  Quantized 8-bit values inside a partition are stored in the machine's native form (kernels.h, Q8): s8 tensors that
 *  come in or go out on x86 are flipped by steps of their own at the border.
 *
 *  A driver asks for what it needs (where a value lies, packed memory, work memory, a step) and reports errors; the
 *  context lays out memory when all nodes are lowered. Thread: one at a time. */
#ifndef INFERD_BACKENDS_CPUACC_COMPILE_H
#define INFERD_BACKENDS_CPUACC_COMPILE_H

#include "backends/cpuacc/step.h"
#include "engine/base/arena.h"

/** A buffer that one or more values live in. */
struct ifd_acc_storage {
    struct ifd_acc_place place; /* scratch: offset is written by the layout */
    size_t bytes;
    uint32_t first, last; /* steps between which it is alive */
    uint32_t readers;     /* nodes not lowered yet that read it */
    bool is_native;       /* a constant that was copied into native form */
    uint32_t joined;      /* the storage that its values moved to; its own index: they live here */
    size_t at;            /* where in it */
};

struct ifd_acc_value {
    const struct ifd_partition_value *view;
    uint32_t storage; /* of one that may have been joined: ask ifd_acc_storage_of, */
    size_t offset;    /* which also settles where in it */
    size_t bytes;
    size_t pitch; /* bytes from row to row (of the last dimension) where those lie apart, else 0 */
    bool is_read_apart; /* all of its readers can do with that */
    uint32_t consumers; /* nodes that read it, plus one if it is an output of the partition */
    uint32_t reader, first_reader; /* the last and the first of those nodes */
    bool is_made;                  /* by a node that is lowered */
    uint32_t images[3]; /* its quantized forms (ops/dynamic.c), counted from 1; 0: not made */
};

/** Fills packed memory; run once per model, not again for partitions that share it. workspace: temporary memory of the
 *  size that the job asked for. */
typedef void (*ifd_acc_pack_fn)(const struct ifd_kernels *kernels, const void *params,
                                uint8_t *workspace, uint8_t *packed);

struct ifd_acc_pack_job {
    ifd_acc_pack_fn pack;
    const void *params;
    const void *source; /* see ifd_acc_add_pack */
    size_t offset, bytes;
    uint32_t step;
};

struct ifd_acc_lowering {
    const struct ifd_partition_view *view;
    const struct ifd_kernels *kernels;
    const struct ifd_host *host;
    bool
        exact; /* 8-bit results are those of the reference kernels: asked for, or cheap (rounding.c) */
    struct ifd_arena *arena; /* of the partition: parameters of steps live here */

    struct ifd_acc_value *value; /* those of the view, then the backend's own */
    uint32_t value_count, value_capacity;
    /* Per node: who runs it. Chosen once for all batch sizes, as it depends on weights, which may be gone by the second. */
    const struct ifd_acc_driver *const *driver;
    bool *node_done; /* per node: lowered, alone or fused into another */
    struct ifd_acc_storage *storage;
    uint32_t storage_count, storage_capacity;
    struct ifd_acc_step *step;
    /* per step and operand: the value, or the storage of its work memory; turned into places by the layout */
    struct ifd_acc_wiring *wiring;
    uint32_t step_count, step_capacity;
    struct ifd_acc_pack_job *job;
    uint32_t job_count, job_capacity;
    size_t packed_bytes;
    size_t spare_bytes;     /* so much more packed weights may take where it is hardly worth it */
    size_t workspace_bytes; /* the largest that a pack job wants */
    enum ifd_precision precision; /* the lowest of any product, and why it is not the view's */
    const char *precision_why_not;
};

/** Which values a step reads and writes, IFD_NO_VALUE where there is none, and what else the layout asks. */
struct ifd_acc_wiring {
    uint32_t in[IFD_ACC_STEP_INPUTS];
    uint32_t out;
    uint32_t work;       /* storage */
    size_t packed_bytes; /* of its weights */
};

/** The storage that a value lives in: the end of the way from its own one through those that were joined, which gets shorter
 *  with each walk. */
static inline uint32_t ifd_acc_storage_of(const struct ifd_acc_lowering *lowering, uint32_t value)
{
    struct ifd_acc_storage *storage = lowering->storage;
    struct ifd_acc_value *v = &lowering->value[value];
    while (storage[v->storage].joined != v->storage) {
        struct ifd_acc_storage *from = &storage[v->storage];
        const struct ifd_acc_storage *to = &storage[from->joined];
        if (to->joined != from->joined) {
            from->at += to->at;
            from->joined = to->joined;
        }
        v->offset += from->at;
        v->storage = from->joined;
    }
    return v->storage;
}

/** Is a value all that its storage holds? */
static inline bool ifd_acc_is_whole(const struct ifd_acc_lowering *lowering, uint32_t value)
{
    const uint32_t storage = ifd_acc_storage_of(lowering, value);
    const struct ifd_acc_value *v = &lowering->value[value];
    return v->offset == 0 && v->pitch == 0 && v->bytes == lowering->storage[storage].bytes;
}

/** Adds a step that reads in[0 … count-1] and writes out (values). params from ifd_acc_params. The pointer is valid until
 *  the next step is added. */
IFD_NODISCARD enum ifd_code ifd_acc_add_step(struct ifd_acc_lowering *lowering, ifd_acc_step_fn run,
                                             const void *params, const uint32_t *in, uint32_t count,
                                             uint32_t out, struct ifd_acc_step **ret_step,
                                             struct ifd_err *err);

/** A value of the backend's own, of bytes bytes: written by one step and read by others. */
IFD_NODISCARD enum ifd_code ifd_acc_add_value(struct ifd_acc_lowering *lowering, size_t bytes,
                                              uint32_t *ret_value, struct ifd_err *err);

/** Gives the newest step bytes of work memory per thread. */
IFD_NODISCARD enum ifd_code ifd_acc_add_work(struct ifd_acc_lowering *lowering,
                                             size_t bytes_per_thread, struct ifd_err *err);

/** Reserves bytes of packed memory that pack will fill, with workspace_bytes of temporary memory; the newest step's packed
 *  offset is set to it.
 *
 *  source: the content of the constant that is packed. Nothing but pack may read it: its memory may be gone when the
 *  partition runs. Two jobs of the same pack, source and bytes yield the same content: partitions for several batch sizes
 *  share it, so what is packed should not depend on the batch. */
IFD_NODISCARD enum ifd_code ifd_acc_add_pack(struct ifd_acc_lowering *lowering, const void *source,
                                             size_t bytes, size_t workspace_bytes,
                                             ifd_acc_pack_fn pack, const void *params,
                                             struct ifd_err *err);

/** Lets out live in the memory of in, which nobody reads behind the node that is being lowered. False, and nothing is
 *  changed, where that is not so, or the sizes differ, or either is bound outside. Before the step is added. */
bool ifd_acc_in_place(struct ifd_acc_lowering *lowering, uint32_t in, uint32_t out);

/** True if both are the same memory (a reshape that needs no step). */
bool ifd_acc_same_place(const struct ifd_acc_lowering *lowering, uint32_t a, uint32_t b);

/** Lets values live inside of others where an operator would only move them from one to the other; before any node is lowered. In
 *  parts.c. */
void ifd_acc_join_parts(struct ifd_acc_lowering *lowering);

/** The node that alone reads a value that is no output, NULL otherwise: a candidate for fusing. Its index through
 *  ret_node. */
const struct ifd_partition_node *ifd_acc_sole_reader(const struct ifd_acc_lowering *lowering,
                                                     uint32_t value, uint32_t *ret_node);

/** Marks a node as taken along by the one that is being lowered. */
void ifd_acc_fuse_node(struct ifd_acc_lowering *lowering, uint32_t node);

/** Has the value been made by a step, or is it an input or constant? */
bool ifd_acc_is_ready(const struct ifd_acc_lowering *lowering, uint32_t value);

/** count × size zeroed bytes of the partition's arena, or NULL. */
void *ifd_acc_params(struct ifd_acc_lowering *lowering, size_t count, size_t size) IFD_NODISCARD;

/** Names the newest step; format as printf's. */
void ifd_acc_name_step(struct ifd_acc_lowering *lowering, const char *kernel, uint64_t macs,
                       const char *format, ...) IFD_PRINTF(4, 5);

/** Native zero point of a quantized 8-bit tensor, and the byte that flips between its type and the native form. */
int32_t ifd_acc_zero(const struct ifd_desc *desc);
uint8_t ifd_acc_flip(enum ifd_dtype dtype);
bool ifd_acc_is_q8(enum ifd_dtype dtype);

/** Bound of an activation in steps of a quantized output, cut off at lowest and highest. In single precision, as the reference
 *  has it: where it lies half way between two steps, double gives the other one. */
int32_t ifd_acc_bound(float real, float scale, int32_t zero, int32_t lowest, int32_t highest);
/** Native clamp bounds that an activation means for an output. False for an activation that is not a clamp. */
bool ifd_acc_clamp_q8(int32_t activation, const struct ifd_desc *output, int32_t *ret_min,
                      int32_t *ret_max);
bool ifd_acc_clamp_f32(int32_t activation, float *ret_min, float *ret_max);

/** Lets value live inside of the concatenation along the last dimension that alone reads it, if there is one that allows it:
 *  its rows are then *stride elements apart, which is left as it is otherwise. Before the step that makes it is added. In
 *  ops/move.c. */
bool ifd_acc_take_slice(struct ifd_acc_lowering *lowering, uint32_t value, size_t *stride);

/** Adds a step that makes every element of a q8 value another, as the reference kernel of a node has it that reads in and
 *  writes out (of any shapes that hold 256 elements). The number of elements is that of value from. In ops/unary.c. */
IFD_NODISCARD enum ifd_code ifd_acc_add_table(struct ifd_acc_lowering *lowering,
                                              const struct ifd_node_view *node, uint32_t from,
                                              uint32_t to, struct ifd_err *err);

struct ifd_acc_move; /* ops/copy.h */

/** A driver: one row per operator in ops/op_list.inc. It gets only nodes that it takes. */
struct ifd_acc_driver {
    /** Can it run this node? If not, says why in reason (may be NULL). */
    bool (*takes)(const struct ifd_node_view *node, struct ifd_err *reason);
    IFD_NODISCARD enum ifd_code (*lower)(struct ifd_acc_lowering *lowering,
                                         const struct ifd_partition_node *node,
                                         struct ifd_err *err);
    /** Operators that do nothing but move elements: their i-th copy; false behind the last one. NULL: others. */
    bool (*move)(const struct ifd_node_view *node, uint32_t i, struct ifd_acc_move *ret);
    /** Can it read the rows of input i where they lie further apart than they are long? NULL: no. */
    bool (*reads_apart)(const struct ifd_node_view *node, uint32_t i);
};

/** Who runs a node: its operator's driver, or the reference kernel as a step (ops/reference.c). NULL, with a reason (which may
 *  be NULL), if neither takes it. */
const struct ifd_acc_driver *ifd_acc_driver(const struct ifd_node_view *node,
                                            struct ifd_err *reason);

/** The one that was chosen for a node of lowering->view; never NULL. */
static inline const struct ifd_acc_driver *ifd_acc_driver_of(
    const struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node)
{
    return lowering->driver[node - lowering->view->node];
}

/** Bytes of a core's second-level cache, or what is small enough to be true where that is not known. */
static inline size_t ifd_acc_cache_bytes(const struct ifd_host *host)
{
    return host->cpu.l2_bytes ? host->cpu.l2_bytes : 256 * 1024;
}

/** A storage of bytes in scratch, alive between two steps. */
IFD_NODISCARD enum ifd_code ifd_acc_add_storage(struct ifd_acc_lowering *lowering, size_t bytes,
                                                uint32_t first, uint32_t last,
                                                uint32_t *ret_storage, struct ifd_err *err);

/** The nodes of lowering->view in the order in which they are to be lowered, in the arena; NULL without memory. In order.c. */
const uint32_t *ifd_acc_order_nodes(struct ifd_acc_lowering *lowering);

/** Are 8-bit results to be those of the reference kernels? In rounding.c. */
bool ifd_acc_rounds_exactly(const struct ifd_acc_lowering *lowering);

/** Lowers all nodes, lays out scratch, resolves places. ret_scratch is what a run needs. */
IFD_NODISCARD enum ifd_code ifd_acc_lower(struct ifd_acc_lowering *lowering, size_t *ret_scratch,
                                          struct ifd_err *err);

#endif
