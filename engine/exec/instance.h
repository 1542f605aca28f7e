/** An instance: the arena and the pointer tables of one run at a time. For
 *  engine/exec and engine/model; others use inferd/engine.h. Thread: one at a time per object. */
#ifndef INFERD_ENGINE_EXEC_INSTANCE_H
#define INFERD_ENGINE_EXEC_INSTANCE_H

#include "engine/base/pace.h"
#include "engine/base/team.h"
#include "engine/exec/device.h"
#include "engine/exec/texts.h"

/** Batch sizes for which a model with a free batch is planned: every size up to IFD_BATCH_DENSE,
 *  and the powers of two above. Another size takes several runs (45 = 32 + 13): no sample is
 *  padding, and no request waits for a plan. */
#define IFD_BATCH_DENSE 16
#define IFD_BATCH_PLANS 24 /* 1 … 16, 32, 64 … IFD_MAX_BATCH */

/** Entry index of that list. */
int64_t ifd_batch_size(uint32_t index);

/** What an instance gets from its model. */
struct ifd_instance_setup {
    const struct ifd_alloc *alloc;
    const struct ifd_model_info *info;              /* ports; lives as long as the model */
    const struct ifd_executable *const *executable; /* by batch, ascending, first 1; copied */
    uint32_t executable_count;
    struct ifd_spare *spare; /* NULL: none */
    uint32_t threads, max_batch;
    const struct ifd_team *team; /* of the engine: shared by all instances; NULL with 1 thread */
    struct ifd_cores *cores;     /* of the engine, too */
    size_t limit_bytes;
    bool borrows_arena; /* no memory for tensors and results: ifd_instance_place comes before each
                         * run */
};

/** Of an instance whose model has open dimensions: finds the instances that run one after the other
 *  for the shapes of io, and what each reads and writes (engine/model/shapes.c). Several requests
 *  share the first, which is the only one. next is called when the one before has run; *ret is NULL
 *  if it was the last. Errors: INVALID, TOO_LARGE, DEADLINE, NOMEM. */
struct ifd_shapes {
    enum ifd_code (*first)(struct ifd_shapes *self, const struct ifd_io *io, uint32_t io_count,
                           struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err);
    enum ifd_code (*next)(struct ifd_shapes *self, const struct ifd_io *io,
                          struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err);
};

/** Of an instance that uses devices: makes the instance that runs the model without them, once
 *  (engine/model/spare.c). Errors: those of planning. */
struct ifd_spare {
    enum ifd_code (*get)(struct ifd_spare *self, struct ifd_instance **ret, struct ifd_err *err);
};

/** Of one executable: where its partitions read and write, and how many threads its runs take. */
struct ifd_instance_table {
    const struct ifd_executable *executable;
    void **pointer;           /* executable->table_count; of values in host memory */
    struct ifd_bound **bound; /* per partition, and NULL if there are no devices */
    uint64_t *fence;          /* per partition: of the last READ; NULL if there are no devices */
    struct ifd_pace pace;
};

struct ifd_instance {
    const struct ifd_alloc *alloc;
    const struct ifd_model_info *info;
    struct ifd_instance_table table[IFD_BATCH_PLANS];
    uint32_t table_count;
    uint32_t max_batch;
    struct ifd_team team; /* a part of the engine's */
    struct ifd_cores *cores;
    struct ifd_shapes *shapes; /* NULL: runs the shapes of info */
    atomic_bool is_alone;      /* the last run had one thread: no worker is woken for the next */

    struct ifd_spare *spare; /* NULL: no device is used, or nobody else can compute the model */
    struct ifd_instance_device *device; /* NULL: no device is used, or all are given up */
    uint32_t device_count;

    uint8_t *arena;     /* for the largest executable */
    bool populates;     /* the next run makes it resident */
    bool borrows_arena; /* it is not the instance's own, nor is the store behind it */
    size_t arena_bytes;
    size_t borrowed_bytes; /* both, with what is between them; 0 if they are its own */
    void **pointers;       /* all tables' */
    size_t pointers_bytes;

    /** Results of a batch that takes several runs, for callers that bring no memory; NULL if
     *  max_batch takes one run. */
    uint8_t *store;
    size_t store_bytes;
    size_t *store_offset; /* per output */

    void **input, **output; /* per port: where the present run reads and writes it */
    bool is_split;          /* the present batch takes several runs */

    struct ifd_text_store texts; /* that the last run made */

    bool profile;
    uint64_t *step_ns; /* per step of table[0]; behind them what it has not */
};

IFD_NODISCARD enum ifd_code ifd_instance_init(struct ifd_instance *instance,
                                              const struct ifd_instance_setup *setup,
                                              struct ifd_err *err);
/** Gives an instance memory to borrow, of ifd_acquire_tensor: borrowed_bytes, until it is given
 *  other memory. */
void ifd_instance_place(struct ifd_instance *instance, uint8_t *memory);
/** A zeroed or half-built instance is fine. */
void ifd_instance_finish(struct ifd_instance *instance);

/** Bytes of one sample of a port; of all of it if it has no batch dimension. Cannot overflow:
 *  checked at load. */
size_t ifd_port_sample_bytes(const struct ifd_port *port);

#endif
