/** The engine: bytes of a model file in, an immutable model out; instances of it run.
 *
 *      struct ifd_engine *engine;  struct ifd_model *model;  struct ifd_instance *instance;
 *      ifd_engine_create(&(struct ifd_engine_options){.alloc = ifd_alloc_system()}, &engine, &err);
 *      ifd_model_load(engine, file, &(struct ifd_model_options){0}, &model, &err);
 *      ifd_instance_create(model, &(struct ifd_instance_options){.threads = 1}, &instance, &err);
 *      ifd_instance_run(instance, &io, 1, &err);
 *
 *  Every option struct may be zeroed: 0 means the default named beside the field. */
#ifndef INFERD_ENGINE_H
#define INFERD_ENGINE_H

#include "inferd/alloc.h"
#include "inferd/backend.h"
#include "inferd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ifd_engine;   /* opened backends; no model knows of another. Thread: any */
struct ifd_model;    /* immutable after load; shared by its instances. Thread: any */
struct ifd_instance; /* memory and threads for one run at a time. Thread: one at a time */

/* ---- engine ---- */

struct ifd_engine_options {
    const struct ifd_alloc *alloc;             /* system */
    const struct ifd_backend *const *backends; /* see backends/builtin.h; at least one */
    uint32_t backend_count;
    /** Folders whose shared objects (*.so) are opened as plugins; see ifd_backend_info for those
     *  that are not taken. A folder that cannot be read or that every user may write in is INVALID.
     *  The texts may go after ifd_engine_create. */
    const char *const *plugin_folders;
    uint32_t plugin_folder_count;
    /** Also those in ../lib/inferd/backends, seen from the program's folder, if it exists. */
    bool finds_plugins;
    /** Options of backends: "NAME:KEY=VALUE". INVALID if there is no such backend, or if it does
     *  not know the option. */
    const char *const *backend_options;
    uint32_t backend_option_count;
    uint32_t cpu_mask; /* features that may be used (enum ifd_cpu_flag); 0 = all that the CPU has */
    bool no_cpu_features; /* with cpu_mask 0: use none at all */
    /** exact: quantized results equal those of the reference kernels, bit for bit. fast: the
     *  fastest kernels. Neither: exact kernels in models where the backend expects them to cost
     *  less than a few percent. Both: INVALID. */
    bool exact, fast;
    uint32_t cores; /* that runs of all models share; 0 = those that the process may run on */
    /** Folder for packed weights, so that the next start of a model need not pack them. Made if its
     *  parent exists. Only this user may write in it. NULL: none. If it cannot be used, models load
     *  without it; ifd_model_info.cache says why. */
    const char *cache_folder;
    /** Limit of all files in it together. The least recently used go first; a file over the limit
     *  is not kept. Default 1 GiB: two of the largest networks or dozens of others, an eighth of
     *  the smallest storage of an edge box. */
    uint64_t cache_bytes;
    void (*debug)(void *context, const char *text);
    void *debug_context;
    /** A device with memory of its own was lost (reason), or works again (NULL). Meanwhile runs go
     *  to the next backends of their model, and the device is tried again with growing pauses. May
     *  be NULL. Thread: any. */
    void (*backend_changed)(void *context, const char *backend, const struct ifd_err *reason);
    /** The device of a plugin was opened after ifd_engine_create, or cannot be (reason). May be
     *  NULL. Thread: any. */
    void (*backend_opened)(void *context, const char *backend, const struct ifd_err *reason);
    void *backend_context; /* of both */
};

IFD_NODISCARD enum ifd_code ifd_engine_create(const struct ifd_engine_options *options,
                                              struct ifd_engine **ret_engine, struct ifd_err *err);
/** All models must be gone. NULL is fine. */
void ifd_engine_destroy(struct ifd_engine *engine);

/** Backends: those given, the plugins that were taken, then the files that were not. Texts live as
 *  long as the engine. */
struct ifd_backend_info {
    const char *name;    /* of a file that was not taken: the file's */
    const char *file;    /* path of the plugin; "" if it is built in */
    bool is_taken;       /* false: the file is no plugin for this engine */
    bool is_untried;     /* a plugin without options that nobody has asked for: it is not open */
    bool available;      /* its device is open */
    const char *reason;  /* why it cannot be; "" */
    bool degraded;       /* its device was lost, and does not work again yet */
    struct ifd_err lost; /* why the latest time, if it was ever lost */
    uint64_t failures;   /* times that it was lost */
};
uint32_t ifd_engine_backend_count(const struct ifd_engine *engine);
void ifd_engine_backend_info(const struct ifd_engine *engine, uint32_t index,
                             struct ifd_backend_info *ret);
/** Opens the device of a plugin that nobody has asked for, as a model does that names it.
 *  UNAVAILABLE with the reason if it is absent (ifd_backend_info tells, too); else as
 *  ifd_engine_check_backend. */
enum ifd_code ifd_engine_open_backend(struct ifd_engine *engine, const char *name,
                                      struct ifd_err *err);
/** OK, or UNAVAILABLE with the reason of the first degraded backend. */
IFD_NODISCARD enum ifd_code ifd_engine_check_health(const struct ifd_engine *engine,
                                                    struct ifd_err *err);
/** OK if the engine has a backend of that name, available or not. Else INVALID names those that
 *  there are, and why files were not taken. */
IFD_NODISCARD enum ifd_code ifd_engine_check_backend(const struct ifd_engine *engine,
                                                     const char *name, struct ifd_err *err);
const struct ifd_cpu *ifd_engine_cpu(const struct ifd_engine *engine);

/* ---- model ---- */

/** What a hostile file may cost; 0 is the default beside the field, and an error names the limit.
 *  Besides the file, a loaded model keeps at most 8 times the file and 64 MiB (copied and folded
 *  constants). */
struct ifd_limits {
    size_t file_bytes;    /* none */
    uint32_t nodes;       /* 100,000 */
    uint32_t values;      /* 400,000 */
    uint32_t node_inputs; /* 4,096 */
    size_t tensor_bytes;  /* 2 GiB - 1: one tensor */
    size_t arena_bytes;   /* 4 GiB - 1: all that one instance holds */
};

/** Most files that constants of a model may lie in. */
#define IFD_EXTERNAL_FILES_MAX 4096

/** A file beside the model's, which constants of an ONNX file name and lie in. */
struct ifd_external_file {
    const char *name; /* as in the model's file: a path from its folder */
    struct ifd_bytes content;
};

struct ifd_external_names {
    const char *const *name;
    uint32_t count;
};

/** The shape of the input of this name, or else of this signature_name; IFD_DIM_ANY where a request
 *  decides. */
struct ifd_input_shape {
    const char *name;
    struct ifd_shape shape;
};

struct ifd_model_options {
    /** The files of ifd_model_externals, with their content, which must stay as file does. */
    const struct ifd_external_file *external;
    uint32_t external_count;
    /** Names of backends in order of preference ("CpuAcc", "CpuRef"); a node goes to the first that
     *  takes it. NULL: the engine's order, plugins last. A name that the engine does not know is an
     *  error. */
    const char *const *backends;
    uint32_t backend_count;
    struct ifd_limits limits; /* per field: 0 = default */
    uint32_t max_threads;     /* largest team of any instance; default 1 */
    bool no_optimize;         /* keep the graph as the file has it, foldable constants aside */
    /** Default F32. Where the hardware cannot, gemms run in f32: see ifd_model_info. INVALID in an
     *  engine with exact. */
    enum ifd_precision precision;
    /** Memory of weights goes back to the system once a backend has packed them. Pages of file are
     *  included and read as zeros then: for callers that do not use file any more. */
    bool releases_weights;
    /** Shapes that the caller knows better than the file. A number binds a dimension that the file
     *  leaves open. IFD_DIM_ANY opens a dimension behind the first that the file fixes. What else
     *  differs from the file is ignored: ifd_model_info says what holds. An input for which an ONNX
     *  file has a value, too, is a constant unless it is named here (ifd_port.value). */
    const struct ifd_input_shape *input_shape;
    uint32_t input_shape_count;
    /** Variables of the file (a recurrent layer's, a streaming model's) become ports: each is an
     *  input and an output behind the file's own (ifd_model_info.state_count), and the caller hands
     *  the output of one run to the input of the next of the same sequence. The batch is 1 then.
     *  Else every run begins with what the file has. */
    bool keeps_state;
    /** The signature of a TFLite file whose subgraph is the model; INVALID if the file has none of
     *  this name. NULL: the first subgraph. Other formats have none. */
    const char *signature;
    /** Memory that one instance may take for the shapes of its requests, in a model with open
     *  dimensions. Default 256 MiB, or eight times the file where that is more. */
    size_t shape_bytes;
    /** Asked before an instance takes such memory, and told when it gives some back: changes *held
     *  to bytes, or fails. NULL: no bound besides shape_bytes. Thread: any. */
    enum ifd_code (*hold_shapes)(void *context, uint64_t *held, uint64_t bytes,
                                 struct ifd_err *err);
    void *hold_context;
};

/** Names of the files beside the model's that its constants lie in: those of an untrusted file,
 *  so the caller checks that they stay in a folder. fn is called once, unless there are none or an
 *  error is found; what it gets lives as long as the call. Returns its error. */
IFD_NODISCARD enum ifd_code ifd_model_externals(
    struct ifd_bytes file, const struct ifd_alloc *alloc,
    enum ifd_code (*fn)(void *context, const struct ifd_external_names *names, struct ifd_err *err),
    void *context, struct ifd_err *err);

/** Reads, verifies, optimizes and plans a model (the format is found by its content).
 *
 *  file must stay readable and unchanged until ifd_model_destroy: constants are used in place.
 *  Errors: CORRUPT (breaks its format), UNSUPPORTED (names operator, version, node, tensors),
 *  TOO_LARGE (names the limit), INVALID (options), NOMEM. Nothing is left behind on error. */
IFD_NODISCARD enum ifd_code ifd_model_load(struct ifd_engine *engine, struct ifd_bytes file,
                                           const struct ifd_model_options *options,
                                           struct ifd_model **ret_model, struct ifd_err *err);
/** All its instances must be gone. NULL is fine. */
void ifd_model_destroy(struct ifd_model *model);

/** An input or output of a model. Pointers live as long as the model. */
struct ifd_port {
    const char *name;
    /** What the signature of a TFLite file calls it; NULL. */
    const char *signature_name;
    /** As in the file: a batch is often 1. IFD_DIM_ANY where a request decides. */
    struct ifd_desc desc;
    /** desc.shape, with a size that works in each open dimension (but: ifd_model_info.unsized). */
    struct ifd_shape example;
    /** Dimension 0 is the batch: 1 … IFD_MAX_BATCH at run time. */
    bool batched;
    /** From the file's metadata, if it has any: */
    const char *description; /* NULL */
    bool has_normalization;  /* image inputs: real = (pixel - mean[c]) / std[c], pixel 0 … 255 */
    float mean[4], std[4];
    uint32_t normalization_count; /* 1 or the number of channels */
    const char *const *labels;    /* outputs: label of class i, or NULL */
    uint32_t label_count;
    struct ifd_bytes begin; /* an input that is a state: its content when a sequence begins */
    /** The file has a value for the input, of the example's shape, for requests that leave it out.
     *  data is NULL if it has none. */
    struct ifd_bytes value;
};

struct ifd_model_info {
    const char *format; /* "tflite" */
    uint32_t format_version;
    const char *description; /* may be empty */
    /** For people: the names in a TFLite file that ifd_model_options.signature can choose from; ""
     *  if there is at most one. */
    const char *signatures;
    uint32_t input_count, output_count;
    const struct ifd_port *input, *output;
    /** As many of the last inputs and outputs are states: output output_count - k becomes input
     *  input_count - k of the next run. 0 without ifd_model_options.keeps_state. */
    uint32_t state_count;
    /** All ports are batched and the graph treats samples independently: requests can share a run.
     *  Otherwise a run of batch n is n runs of batch 1 inside one call. */
    bool batch_is_free;
    /** Some port has an open dimension, or data decides sizes of results. An instance plans the
     *  model for the shapes of a request when it meets them first, and keeps the plans of the
     *  latest ones (shape_bytes). If batch_is_free, requests share a run whose shapes are equal
     *  behind dimension 0; else no port is batched. */
    bool has_open_dims;
    /** How long a run takes depends on data: a loop turns as often as they say. */
    bool has_loops;
    /** Its outputs may hold texts of the run, which last until the next one of the instance. */
    bool makes_texts;
    size_t constant_bytes; /* weights in the file and packed ones */
    size_t packed_bytes;   /* of these, the packed ones: memory beside the file */
    size_t released_bytes; /* went back to the system (releases_weights); not in constant_bytes */
    size_t arena_bytes;    /* per instance at batch 1 */
    size_t device_bytes;   /* packed weights in memory of devices; not in the figures above */
    const char *cache;     /* for people: what the cache of packed weights did; "" without one */
    bool is_from_cache;    /* nothing was packed */
    bool exact;            /* quantized results are bit-equal to the reference kernels' */
    /** The lowest precision of any gemm at batch 1. precision_why_not: why it is not
     *  ifd_model_options.precision; "" if it is. */
    enum ifd_precision precision;
    const char *precision_why_not;
    /** For people: what a device took, could not compile, and left to the next backend; the last of
     *  it. "" if there was nothing. */
    const char *taken_back;
    /** For people: why the model could not be computed in any of the sizes that were tried in its
     *  open dimensions. It is planned when a request brings sizes, and the examples of its ports
     *  are none. "" if sizes were found. */
    const char *unsized;
    uint32_t node_count, step_count;
};

#define IFD_MAX_BATCH 4096

const struct ifd_model_info *ifd_model_info(const struct ifd_model *model);

/* ---- instance ---- */

struct ifd_instance_options {
    /** Default 1; at most ifd_model_options.max_threads. A run takes as many as cores are free when
     *  it begins, at least one, and fewer where runs were faster with fewer. Results do not depend
     *  on it. */
    uint32_t threads;
    /** Default 1. Memory for batches up to this is taken at creation, so that run allocates
     *  nothing. */
    uint32_t max_batch;
};

IFD_NODISCARD enum ifd_code ifd_instance_create(struct ifd_model *model,
                                                const struct ifd_instance_options *options,
                                                struct ifd_instance **ret_instance,
                                                struct ifd_err *err);
void ifd_instance_destroy(struct ifd_instance *instance); /* NULL is fine */

/** One caller's tensors in a run, in the model's order, all with the same dimension 0 = batch.
 *
 *  input:  data, bytes, dtype and shape must fit the model's ports.
 *  output: dtype and shape are written. If data is NULL (or what the last run of this instance
 *          set), it is set to memory of the instance that stays until the next run; else the
 *          result is written there (capacity ≥ bytes needed, otherwise TOO_LARGE). Outputs that
 *          are not wanted are neither written nor copied.
 *  No output may overlap an input or another output. */
struct ifd_io {
    const struct ifd_tensor *input;
    struct ifd_tensor *output;
    const bool *output_wanted; /* NULL: all */
    int64_t batch;             /* ≥ 1; 1 for models without a batch dimension */
    /** Monotonic: a loop that still turns then ends the run with DEADLINE, if that is so for every
     *  caller of a batch. 0: when it has turned for 10 s. */
    uint64_t deadline_ns;
    /** Asked between the turns of loops and the parts of a run; true: the run ends with CANCELLED,
     *  if that is so for every caller of a batch. NULL: never. */
    bool (*is_over)(const void *context);
    const void *is_over_context;
};

/** Runs io_count requests as one batch; their batches add up to at most max_batch. More than one
 *  request needs a model whose batch_is_free. Allocates nothing, but for texts that the model
 *  makes: those of an output last until the next run.
 *  Errors: INVALID (wrong count, type, shape, size: names the tensor), TOO_LARGE, DEADLINE,
 *  CANCELLED, a backend's error. Outputs in the caller's memory are undefined then. */
IFD_NODISCARD enum ifd_code ifd_instance_run(struct ifd_instance *instance, const struct ifd_io *io,
                                             uint32_t io_count, struct ifd_err *err);

/** A run will come soon (the header of a request is there): wakes sleeping workers. Thread: any,
 *  also during a run. */
void ifd_instance_expect(const struct ifd_instance *instance);
/** No run will come soon: workers give up their cores. Thread: any, also during a run. */
void ifd_instance_rest(const struct ifd_instance *instance);

/** Bytes that this instance holds in host memory, and in memory of devices. */
size_t ifd_instance_bytes(const struct ifd_instance *instance);
size_t ifd_instance_device_bytes(const struct ifd_instance *instance);

/* ---- looking inside (inspect, bench) ---- */

/** One step of the plan at batch 1. Text lives as long as the model. */
struct ifd_plan_step {
    struct ifd_step_info step;
    const char *backend;
    uint32_t partition;
    /** Of its first output; bytes is 0 if the output lives inside the backend. */
    size_t arena_offset, arena_bytes;
};

uint32_t ifd_model_step_count(const struct ifd_model *model);
void ifd_model_step(const struct ifd_model *model, uint32_t index, struct ifd_plan_step *ret);

/** ifd_instance_profile(instance, true) sets the time of every step to 0 and begins to measure.
 *  Devices are waited for behind each step. What has other steps at the batch of a run than at 1 is
 *  timed as a whole, in its first step. count must be ifd_model_step_count(). */
void ifd_instance_profile(struct ifd_instance *instance, bool on);
void ifd_instance_step_ns(const struct ifd_instance *instance, uint64_t *ret_ns, uint32_t count);

/** Text form of the model: the graph after optimization, the plan, the memory map. PASSES: only
 *  what each pass of the optimizer did. sink gets chunks of text without NUL. */
enum ifd_dump_format { IFD_DUMP_TEXT, IFD_DUMP_JSON, IFD_DUMP_DOT, IFD_DUMP_PASSES };
IFD_NODISCARD enum ifd_code ifd_model_dump(const struct ifd_model *model,
                                           enum ifd_dump_format format, ifd_sink_fn sink,
                                           void *context, struct ifd_err *err);

#ifdef __cplusplus
}
#endif
#endif
