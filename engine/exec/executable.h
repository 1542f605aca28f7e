/** A plan whose partitions are compiled: what a model runs at one batch size.
 *
 *  Immutable once built and shared by all instances of a model. Knows nothing of the graph.
 *  Thread: one at a time while it is built, any afterwards. */
#ifndef INFERD_ENGINE_EXEC_EXECUTABLE_H
#define INFERD_ENGINE_EXEC_EXECUTABLE_H

#include "engine/plan/plan.h"
#include "inferd/engine.h"

/** Position of a partition in the flat tables. */
struct ifd_executable_part {
    struct ifd_partition *compiled; /* NULL: a copy between memories */
    const char *copy_text;          /* of such a copy, for people: "host to gpu, 4096 bytes" */
    const struct ifd_backend *backend;
    struct ifd_partition_info info;
    uint32_t first_step;          /* index of its step 0 among all steps */
    uint32_t input_at, output_at; /* index of its slot 0 in an instance's pointer table */
};

struct ifd_executable {
    struct ifd_registry *registry;
    int64_t batch; /* samples of one run */
    struct ifd_plan plan;
    struct ifd_executable_part *part; /* plan.partition_count */
    uint32_t step_count;
    size_t constant_bytes; /* packed by its backends, shared ones excluded; in host memory */
    size_t device_bytes;   /* the same, in memory of devices */

    /** An instance keeps a table of pointers: one for each slot of each partition. */
    uint32_t table_count;
    const uint32_t *table_value; /* plan value of every entry */
    /** Entries that show value v: entry[entry_first[v] … entry_first[v + 1] - 1]. */
    const uint32_t *entry, *entry_first;
};

/** Compiles the partitions of a plan and lays out its memory.
 *
 *  plan:        from ifd_plan_partition, with its views; taken over.
 *  options:     with which it was made.
 *  share_with:  NULL, or the executable of the same model at another batch size, which outlives
 *               this one: backends share packed constants with it.
 *  arena:       of the executable: holds the plan and the tables.
 *  Errors:      a backend's error, prefixed by its name; TOO_LARGE (limit_bytes); NOMEM. Nothing is
 *               left on error. */
IFD_NODISCARD enum ifd_code ifd_executable_init(struct ifd_executable *executable,
                                                struct ifd_plan *plan, int64_t batch,
                                                const struct ifd_plan_options *options,
                                                const struct ifd_executable *share_with,
                                                size_t limit_bytes, struct ifd_arena *arena,
                                                struct ifd_err *err);

/** Releases the compiled partitions; the arena is the caller's. A zeroed executable is fine. */
void ifd_executable_finish(struct ifd_executable *executable);

/** Points a table to an arena of the host; to nothing where a device has the value. */
void ifd_executable_place(const struct ifd_executable *executable, void **pointer, uint8_t *arena);
/** Points the entries of a table that show a port to its memory. */
void ifd_executable_bind(const struct ifd_executable *executable, void **pointer,
                         void *const *input, void *const *output);
/** Copies the outputs that no partition makes: a constant, an input, an output named twice. */
void ifd_executable_copy_outputs(const struct ifd_executable *executable, void *const *input,
                                 void *const *output);

/** "host", or the kind of a device's memory. memory: as in ifd_plan_value. */
const char *ifd_executable_memory_kind(const struct ifd_executable *executable, uint32_t memory);

/** Describes a step. step: 0 … step_count-1. */
void ifd_executable_step(const struct ifd_executable *executable, uint32_t step,
                         struct ifd_plan_step *ret);

#endif
