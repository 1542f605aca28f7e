/** The plugin ABI: what a backend gives the engine, and what the engine gives a backend.
 *
 *  A backend computes partitions (groups of neighbouring nodes) on one kind of device. It sees
 *  nodes, constants and shapes; it never sees a file, a graph, a request or a socket. Built-in
 *  backends (backends/builtin.c) and plugins (shared objects that export ifd_backend_query and have
 *  no undefined symbol of ours) use the same header.
 *
 *  Life: open → for every model: cost per node, compile per partition → run, many times, from many
 *  threads, each with its own binding → release → close.
 *
 *  A backend computes in host memory, by run(). A device with memory of its own brings struct
 *  ifd_memory_ops instead of run(). Every instance of a model has a context on it, with memory and
 *  a queue, in which its partitions are bound once. In every run the engine writes what the device
 *  needs, submits the partitions, and reads what the host needs. The engine plans these transfers.
 *
 *  A struct that may grow holds its size ("bytes"). It grows at the end only. A reader that finds a
 *  smaller size uses the defaults named here. */
#ifndef INFERD_BACKEND_H
#define INFERD_BACKEND_H

#include "inferd/machine.h"
#include "inferd/op.h"
#include "inferd/op_attrs.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IFD_BACKEND_ABI 6u

/** Seen outside a shared object that is built with -fvisibility=hidden. */
#define IFD_EXPORT __attribute__((visibility("default")))

/** What a user told this backend: --backend-option NAME:KEY=VALUE. */
struct ifd_backend_option {
    const char *key, *value;
};

/** Services of the engine for one backend, valid until close() returns. Functions may be called
 *  from any thread. A plugin needs no other function of inferd. */
struct ifd_host {
    uint32_t bytes; /* sizeof(struct ifd_host) of the engine */
    const struct ifd_alloc *alloc;
    struct ifd_cpu cpu;
    /** Bit-exact kernels are asked for: quantized results equal those of the reference kernels. */
    bool exact;
    bool fast; /* bit-exact kernels are declined, even where they cost next to nothing */
    /** A line for people, below the default log level; may be NULL. Thread: any. */
    void (*debug)(void *context, const char *text);
    void *debug_context;
    /** In the order of the command line. open() refuses a key or a value that it does not know with
     *  INVALID; the engine is not made then. */
    const struct ifd_backend_option *option;
    uint32_t option_count;
    /** ifd_op_def: name, reference kernel and traits of an operator. */
    const struct ifd_op_def *(*op_def)(enum ifd_op op);
    /** ifd_fail: fills err (if not NULL) and returns code. */
    enum ifd_code (*fail)(struct ifd_err *err, enum ifd_code code, const char *format, ...)
        IFD_PRINTF(3, 4);
};

/** One node. Operands and results carry descriptions with all dimensions known. */
struct ifd_node_view {
    const char *name; /* name of its first output in the file; for messages only */
    enum ifd_op op;
    const void *attrs;
    const struct ifd_operand *input;
    uint32_t input_count;
    const struct ifd_desc *output;
    uint32_t output_count;
};

/** Index of a value inside a partition view; IFD_NO_VALUE for an absent optional input. */
#define IFD_NO_VALUE UINT32_MAX

enum ifd_value_role {
    IFD_VALUE_CONSTANT, /* .data is its content */
    IFD_VALUE_INPUT,    /* produced outside, bound at run */
    IFD_VALUE_OUTPUT,   /* produced inside, wanted outside, bound at run (also readable inside) */
    IFD_VALUE_INTERNAL  /* produced and consumed inside: the backend decides where it lives */
};

struct ifd_partition_value {
    struct ifd_desc desc;
    /** CONSTANT only: aligned to the element's size, padded, valid until release() of every
     *  partition of this model. */
    struct ifd_bytes data;
    enum ifd_value_role role;
    uint32_t slot; /* INPUT, OUTPUT: position in ifd_binding.input / .output */
};

/** A partition's node: node view plus, per operand, the index of its value. */
struct ifd_partition_node {
    struct ifd_node_view view;
    const uint32_t *input_value;
    const uint32_t *output_value;
};

/** A partition: nodes in an order in which they can run. All memory belongs to the engine.
 *  Constants, attrs, names and the arrays of quantizations stay until the partition is released;
 *  the rest is gone when compile() returns. */
struct ifd_partition_view {
    const struct ifd_partition_node *node;
    uint32_t node_count;
    const struct ifd_partition_value *value;
    uint32_t value_count;
    uint32_t input_count, output_count; /* slots */
    uint32_t max_threads; /* largest team that will run it: scratch must suffice for it */
    /** Bit-exact kernels for quantized types: the host's wish, or an operator of the model decides
     *  (ifd_op_def.decides). */
    bool exact;
    /** Of f32 gemms, as the model's owner allows; tensors inside of a partition may be stored in
     *  it, too. */
    enum ifd_precision precision;
    /** ifd_partition_info.packed of an earlier start, in which the same program compiled the same
     *  nodes and constants for the same CPU; or empty. To be used in place of packing. Stays until
     *  release() of every partition of this model. */
    struct ifd_bytes packed;
    /** May be NULL. Tells the engine that a constant is packed: neither this partition nor one that
     *  shares with it reads its content again. data: of a constant in .value. Its memory may go
     *  back to the system at once. */
    void (*release_constant)(void *context, const void *data);
    void *release_context;
};

struct ifd_device;    /* the backend's own: an opened device */
struct ifd_partition; /* the backend's own: compiled, immutable, shared by threads */

/** What the engine must know of a compiled partition. */
struct ifd_partition_info {
    /** Per running instance, aligned to IFD_TENSOR_ALIGN, content undefined before each run; in the
     *  memory that the partition computes in. */
    size_t scratch_bytes;
    uint32_t step_count;   /* for describe() and profiles; ≥ 1 */
    size_t constant_bytes; /* packed weights that this partition holds, shared ones excluded */
    /** Packed weights that may be kept for the next start (view.packed); they hold no pointers.
     *  Empty: nothing. */
    struct ifd_bytes packed;
    /** Output slot 0 may be bound to the memory of input slot 0 (same bytes). */
    bool can_alias;
    /** Quantized results equal those of the reference kernels, asked for or not. */
    bool exact;
    /** The lowest precision of its f32 gemms. precision_why_not: what hardware or backend lack for
     *  view.precision (static); NULL if they lack nothing. */
    enum ifd_precision precision;
    const char *precision_why_not;
};

/** A step inside a partition, for `inspect` and profiles. Text is static or lives as long as the
 *  partition. */
struct ifd_step_info {
    const char *name;   /* "conv2d+relu6", with what was fused */
    const char *kernel; /* "gemm_s8 14x32 avx512vnni" */
    const char *output; /* name of the value that it makes */
    uint64_t macs;      /* multiply-accumulates of one run, 0 if not a meaningful figure */
    const char *why; /* why this kernel: "winograd 0.46, lines 1.00"; NULL: there was no choice */
};

/** One run. Everything belongs to the engine and is exclusive to this call until run() returns. */
struct ifd_binding {
    const void *const *input; /* per input slot; aligned and padded */
    /** Per output slot; aligned and padded; overlaps an input only if can_alias. */
    void *const *output;
    void *scratch;
    const struct ifd_team *team;
    uint64_t *step_ns;        /* NULL, or step_count counters to which each step adds its time */
    uint64_t (*now_ns)(void); /* clock for step_ns */
    uint64_t deadline_ns;     /* of this clock, for loops; 0: none */
    struct ifd_texts *texts;  /* for texts that the partition makes */
    /** Loops ask it between turns; true: nobody wants the results, the run ends with CANCELLED.
     *  NULL: somebody does. */
    bool (*is_over)(const void *context);
    const void *is_over_context;
};

/* ---- a device with memory of its own ---- */

struct ifd_context; /* the backend's own: memory and queue of one instance */
struct ifd_bound;   /* the backend's own: a partition at fixed places of a context */

/** Where a bound partition reads and writes: offsets in the memory of its context, multiples of
 *  IFD_TENSOR_ALIGN, each followed by IFD_TENSOR_PAD bytes that may be read. */
struct ifd_places {
    const size_t *input, *output; /* per slot; an output overlaps an input only if can_alias */
    size_t scratch;               /* ifd_partition_info.scratch_bytes */
};

/** What is put into the queue of a context is done in that order, and has no end before wait():
 *  fences count it, 1, 2, 3 … A call that fails with UNAVAILABLE says that the device is lost: the
 *  engine computes the run with the next backend of the model, and tries this one again later with
 *  a new context. Thread: one at a time per context, any thread; contexts and runs of several
 *  instances at once. Only context_create and bind may allocate. */
struct ifd_memory_ops {
    uint32_t bytes;   /* sizeof(struct ifd_memory_ops) */
    const char *kind; /* "gpu": static, for people and metrics */

    /** Time to move this many bytes between host and device, either way, waking included.
     *  Thread: one at a time per device, with cost(). */
    uint64_t (*transfer_ns)(struct ifd_device *device, size_t bytes);

    /** Memory of bytes, content undefined, and a queue. Errors: NOMEM, UNAVAILABLE. */
    enum ifd_code (*context_create)(struct ifd_device *device, size_t bytes,
                                    struct ifd_context **ret_context, struct ifd_err *err);
    void (*context_destroy)(struct ifd_context *context); /* NULL is fine; nothing is bound */

    /** The places stay until unbind: arguments can be set and commands recorded here. places itself
     *  is gone when bind returns. The partition outlives what is bound. */
    enum ifd_code (*bind)(struct ifd_context *context, struct ifd_partition *partition,
                          const struct ifd_places *places, struct ifd_bound **ret_bound,
                          struct ifd_err *err);
    void (*unbind)(struct ifd_context *context, struct ifd_bound *bound);

    /** Puts a copy of host memory to offset into the queue. from may change when it returns. */
    enum ifd_code (*write)(struct ifd_context *context, size_t offset, const void *from,
                           size_t bytes, struct ifd_err *err);
    /** Puts a run of a partition into the queue. step_ns: NULL, or step_count counters, to which
     *  each step has added its time when wait() returns. */
    enum ifd_code (*submit)(struct ifd_context *context, struct ifd_bound *bound, uint64_t *step_ns,
                            struct ifd_err *err);
    /** Puts a copy to host memory into the queue. to is written between this call and the end of
     *  wait(*ret_fence). */
    enum ifd_code (*read)(struct ifd_context *context, size_t offset, void *to, size_t bytes,
                          uint64_t *ret_fence, struct ifd_err *err);
    /** Returns when everything up to this fence is done; UINT64_MAX: everything. Errors of what was
     *  put into the queue may show here. After an error nothing is in the queue any more. */
    enum ifd_code (*wait)(struct ifd_context *context, uint64_t fence, struct ifd_err *err);
};

struct ifd_backend {
    uint32_t abi;     /* IFD_BACKEND_ABI */
    uint32_t bytes;   /* sizeof(struct ifd_backend) */
    const char *name; /* "CpuAcc": unique, letters and digits */

    /** The engine makes one partition of each node (the backend neither fuses nor plans):
     *  CpuRef. */
    bool per_node;

    /** Opens the device. UNAVAILABLE with a reason if there is none; INVALID: an option. */
    enum ifd_code (*open)(const struct ifd_host *host, struct ifd_device **ret_device,
                          struct ifd_err *err);

    /** 0: cannot run this node; reason (may be NULL) says why. Otherwise its time in ns, as
     *  estimated. A node goes to the first backend of the model's list that takes it; the estimates
     *  decide only whether a partition on a device with memory of its own is worth its transfers.
     *  Thread: one at a time per device. */
    uint32_t (*cost)(struct ifd_device *device, const struct ifd_node_view *node,
                     struct ifd_err *reason);

    /** Prepares a partition: packs weights, chooses kernels, lays out scratch.
     *
     *  share_with: NULL, or a partition that this backend compiled from the same nodes and
     *  constants for another batch size; it outlives the new partition. The backend should share
     *  its packed constants instead of packing again. It must where their sources are released; if
     *  it cannot, UNSUPPORTED: there is no plan for that batch size then.
     *  UNSUPPORTED without share_with: it cannot compute a node that it took, and cost() says 0 for
     *  such nodes from now on. The engine gives them to the next backend of the model's list.
     *  Thread: one at a time per device. */
    enum ifd_code (*compile)(struct ifd_device *device, const struct ifd_partition_view *view,
                             struct ifd_partition *share_with, struct ifd_partition **ret_partition,
                             struct ifd_partition_info *ret_info, struct ifd_err *err);

    /** Computes in host memory. Allocates nothing, logs nothing, keeps nothing. NULL with memory.
     *  Thread: any, several at a time on one partition with different bindings. */
    enum ifd_code (*run)(struct ifd_partition *partition, const struct ifd_binding *binding,
                         struct ifd_err *err);

    /** Describes step 0 … step_count-1. Optional (NULL): the engine describes the nodes instead. */
    void (*describe)(struct ifd_partition *partition, uint32_t step, struct ifd_step_info *ret);

    void (*release)(struct ifd_partition *partition); /* NULL is fine */
    void (*close)(struct ifd_device *device);         /* NULL is fine; no partition is left */

    /** NULL: it computes in host memory. */
    const struct ifd_memory_ops *memory;
};

/** The one symbol that a plugin exports: its descriptor, which stays as long as the plugin is
 *  loaded, or NULL if it cannot serve an engine of host_abi. Only plugins define it. */
IFD_EXPORT const struct ifd_backend *ifd_backend_query(uint32_t host_abi);
typedef const struct ifd_backend *(*ifd_backend_query_fn)(uint32_t host_abi);

#ifdef __cplusplus
}
#endif
#endif
