/** What one run at a time works on: the arena, the pointer tables, the thread team. Only for engine/exec and engine.c;
 *  the public face is in inferd/engine.h. Thread: one at a time per object. */
#ifndef INFERD_ENGINE_EXEC_INSTANCE_H
#define INFERD_ENGINE_EXEC_INSTANCE_H

#include "engine/base/pace.h"
#include "engine/base/team.h"
#include "engine/exec/executable.h"

/** Batch sizes that a model whose batch is free is planned for: every size up to IFD_BATCH_DENSE, and the powers of two
 *  above. A larger batch in between runs as a few runs of the sizes that add up to it (45 = 32 + 13), so that no sample
 *  is computed for nothing and no plan is made while a request waits. */
#define IFD_BATCH_DENSE 16
#define IFD_BATCH_PLANS 24 /* 1 … 16, 32, 64 … IFD_MAX_BATCH */

/** Size number index of that list. */
int64_t ifd_batch_size(uint32_t index);

/** What an instance needs of its model. */
struct ifd_instance_setup {
    const struct ifd_alloc *alloc;
    const struct ifd_model_info *info;              /* ports; lives as long as the model */
    const struct ifd_executable *const *executable; /* by growing batch, from 1 on; copied */
    uint32_t executable_count;
    uint32_t threads, max_batch;
    struct ifd_cores *cores; /* of the engine: shared by all instances */
    size_t limit_bytes;
};

/** One executable: where its partitions read and write, and how many threads it is run with. */
struct ifd_instance_table {
    const struct ifd_executable *executable;
    void **pointer; /* executable->table_count */
    struct ifd_pace pace;
};

struct ifd_instance {
    const struct ifd_alloc *alloc;
    const struct ifd_model_info *info;
    struct ifd_instance_table table[IFD_BATCH_PLANS];
    uint32_t table_count;
    uint32_t max_batch;
    struct ifd_team *team;
    struct ifd_cores *cores;
    atomic_bool is_alone; /* the last run was for one thread: nobody need wake for the next */

    uint8_t *arena; /* for the largest executable */
    size_t arena_bytes;
    void **pointers; /* all tables' */
    size_t pointers_bytes;

    /** Results of a batch that takes several runs, for callers that bring no memory; NULL if that cannot happen. */
    uint8_t *store;
    size_t store_bytes;
    size_t *store_offset; /* per output */

    void **input, **output; /* per port: where the present run reads and writes it */
    bool is_split;          /* the present batch takes several runs */

    bool profile;
    uint64_t *step_ns; /* per step of table[0] */
};

IFD_NODISCARD enum ifd_code ifd_instance_init(struct ifd_instance *instance,
                                              const struct ifd_instance_setup *setup,
                                              struct ifd_err *err);
/** A zeroed or half-built instance is fine. */
void ifd_instance_finish(struct ifd_instance *instance);

/** Bytes of one sample of a port: all of it, if it has no batch dimension. Checked when the model was loaded. */
size_t ifd_port_sample_bytes(const struct ifd_port *port);

#endif
