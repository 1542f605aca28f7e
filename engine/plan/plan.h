/** The plan of a graph: which backend computes which nodes, their order, and offsets in the arena.
 *
 *  A plan is made in two steps, since only a compiled partition knows how much scratch it needs:
 *      ifd_plan_partition   graph → partitions with views to compile (reads the graph)
 *      ifd_plan_memory      lifetimes + what compile() reported → offsets, one arena per memory
 *
 *  Memory 0 is the host's. A backend with memory of its own (ifd_backend.memory) that has a
 *  partition in the plan gets the next number; copies between memories are entries of the list of
 *  partitions (plan/transfer.c).
 *  The result is plain data that does not refer to the graph: the executor reads only this header.
 *  Thread: one at a time while it is made, any afterwards. */
#ifndef INFERD_ENGINE_PLAN_PLAN_H
#define INFERD_ENGINE_PLAN_PLAN_H

#include "engine/backend/registry.h"
#include "engine/base/arena.h"

struct ifd_graph;

/** A tensor that lives in an arena: a model input or output, or made by one partition and read by
 *  others. A value of the graph that is in several memories is one of these in each. */
struct ifd_plan_value {
    const char *name; /* lives as long as the model */
    size_t bytes;     /* 0: an input that nobody reads, too */
    /** Partitions between which it is alive, both included; outputs: last = partition_count. */
    uint32_t first, last;
    bool pinned;     /* a model input or output: no other value overwrites it */
    uint32_t memory; /* 0: host; else 1 + index in ifd_plan.device */
    uint32_t buffer; /* values computed in place share one */
    size_t offset;   /* in the arena of its memory */
};

enum ifd_plan_task {
    IFD_PLAN_RUN,   /* nodes that one backend computes in one run() or submit() */
    IFD_PLAN_WRITE, /* a copy of input 0 in host memory to output 0 in a device's */
    IFD_PLAN_READ   /* the other way; it goes on until a wait */
};

#define IFD_NO_PARTITION UINT32_MAX
/** In place of a slot in the registry: the executor runs the graphs that the partition's one node
 *  names, in host memory. */
#define IFD_PLAN_CONTROL (UINT32_MAX - 1)

struct ifd_plan_partition {
    enum ifd_plan_task task;
    uint32_t memory;                 /* RUN: that it computes in; WRITE, READ: the device's */
    uint32_t wait;                   /* a READ to wait for first, or IFD_NO_PARTITION; the others */
    uint32_t next_wait;              /* are linked through next_wait of the READs */
    uint32_t backend;                /* slot in the registry; WRITE, READ: the device's */
    const char *op_name;             /* of its first node; static */
    uint32_t first_node, node_count; /* range of ifd_plan.order */
    const uint32_t *input, *output;  /* plan values per binding slot */
    uint32_t input_count, output_count;
    size_t scratch_bytes, scratch_offset;
};

/** Where the content of a model output comes from. */
enum ifd_plan_source {
    IFD_PLAN_MADE,     /* a partition writes it */
    IFD_PLAN_CONSTANT, /* copied from .constant after the last partition */
    IFD_PLAN_INPUT,    /* copied from model input .source */
    IFD_PLAN_OUTPUT    /* copied from model output .source, which is the same value */
};

struct ifd_plan_output {
    uint32_t value; /* plan value with room for the content */
    enum ifd_plan_source kind;
    uint32_t source;
    const void *constant;
};

/** A device whose memory the plan uses. */
struct ifd_plan_device {
    uint32_t backend; /* slot in the registry */
    size_t arena_bytes;
};

struct ifd_plan {
    struct ifd_plan_device *device;
    uint32_t device_count;
    struct ifd_plan_partition *partition; /* in the order in which they run */
    uint32_t partition_count;
    struct ifd_plan_value *value;
    uint32_t value_count;
    uint32_t buffer_count;
    uint32_t *input; /* plan value per model input */
    uint32_t input_count;
    struct ifd_plan_output *output;
    uint32_t output_count;
    uint32_t *order; /* nodes of the graph as they run */
    uint32_t node_count;
    /** Nodes that are not on the device that takes them: copies would cost more than it saves. */
    uint32_t unworthy_nodes;
    size_t arena_bytes; /* of host memory */

    /** What the backend of each partition compiles. Gone when the executable is built. */
    struct ifd_partition_view *view;
};

struct ifd_plan_options {
    struct ifd_registry *registry;
    /** Slots of the registry; a node goes to the first that is available and takes it. */
    const uint32_t *preference;
    uint32_t preference_count;
    uint32_t max_threads;
    bool exact;
    enum ifd_precision precision;
    void (*release_constant)(void *context, const void *data); /* for the views */
    void *release_context;
    /** NULL, or the plan of the same nodes at another batch size, from which order and partitions
     *  are copied. */
    const struct ifd_plan *share_with;
};

/** Assigns every node to a backend (plan/assign.c, plan/worth.h) and groups neighbours: a partition
 *  has as many nodes of one backend as can run without waiting for another backend. Backends that
 *  are per_node get one partition per node.
 *
 *  ret_plan:  everything but offsets and arena_bytes. Its memory is in keep; its views are in
 *             scratch.
 *  Errors:    UNSUPPORTED names a node that no backend takes, and each backend's reason; TOO_LARGE,
 *             NOMEM. */
IFD_NODISCARD enum ifd_code ifd_plan_partition(const struct ifd_graph *graph,
                                               const struct ifd_plan_options *options,
                                               struct ifd_arena *keep, struct ifd_arena *scratch,
                                               struct ifd_plan *ret_plan, struct ifd_err *err);

/** Lays out the arena of each memory: values and each partition's scratch, in place where a
 *  partition can alias and its first input dies there. info has one entry per partition.
 *  Errors: TOO_LARGE (limit_bytes for each arena), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_plan_memory(struct ifd_plan *plan,
                                            const struct ifd_partition_info *info,
                                            size_t limit_bytes, const struct ifd_alloc *alloc,
                                            struct ifd_err *err);

#endif
