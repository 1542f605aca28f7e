/** The common part of all commands: a model loaded from a file, one instance, tensors of its
 *  inputs and outputs. */
#ifndef INFERD_ENGINE_TOOLS_SESSION_H
#define INFERD_ENGINE_TOOLS_SESSION_H

#include "engine/base/file.h"
#include "engine/tools/args.h"
#include "engine/tools/externals.h"
#include "engine/tools/tools.h"

struct ifd_session_options {
    const char *path;
    const char *backends;                /* "CpuAcc,CpuRef"; NULL: the engine's order */
    struct ifd_arg_list backend_paths;   /* folders of plugins */
    struct ifd_arg_list backend_options; /* "NAME:KEY=VALUE" */
    const char *cache_folder;            /* of packed weights; NULL: none */
    uint32_t cache_mb;                   /* limit of all its files; 0 = 1024 */
    const char *precision;               /* "bf16"; NULL: "f32" */
    const char *cpu_mask; /* "avx2,avx512"; NULL: all that the CPU has, "none": none */
    uint32_t threads;     /* 0 = 1 */
    /** 0: that of the input files; without files, the model file's. */
    uint32_t batch;
    /** Input files: "file" or "name=file", without names in the model's order. .npy, pictures
     *  (.jpg .jpeg .png, for image inputs), anything else is raw bytes. None, or one for each
     *  input. */
    struct ifd_arg_list inputs;
    bool needs_inputs; /* no input files is an error */
    bool exact, fast, no_optimize;
    bool keeps_weights; /* do not release packed weights */
};

/** Options that every command has, as rows of its table (args.h). */
#define IFD_SESSION_ARGS(options)                                                                  \
    {                                                                                              \
        "backend",                                                                                 \
        IFD_ARG_TEXT,                                                                              \
        &(options).backends,                                                                       \
        0,                                                                                         \
        0,                                                                                         \
        "LIST",                                                                                    \
        "backends in order of preference"},                                                        \
        {"backend-path",                                                                           \
         IFD_ARG_LIST,                                                                             \
         &(options).backend_paths,                                                                 \
         0,                                                                                        \
         0,                                                                                        \
         "DIR",                                                                                    \
         "load backends from the shared objects of this folder"},                                  \
        {"backend-option",                                                                         \
         IFD_ARG_LIST,                                                                             \
         &(options).backend_options,                                                               \
         0,                                                                                        \
         0,                                                                                        \
         "NAME:KEY=VALUE",                                                                         \
         "set an option of a backend"},                                                            \
        {"cpu",                                                                                    \
         IFD_ARG_TEXT,                                                                             \
         &(options).cpu_mask,                                                                      \
         0,                                                                                        \
         0,                                                                                        \
         "LIST",                                                                                   \
         "use only these CPU features; \"none\": none of them"},                                   \
        {"precision",                                                                              \
         IFD_ARG_TEXT,                                                                             \
         &(options).precision,                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         "NAME",                                                                                   \
         "f32 (default), bf16 or fp16: precision of factors in f32 multiplications"},              \
        {"cache-dir",                                                                              \
         IFD_ARG_TEXT,                                                                             \
         &(options).cache_folder,                                                                  \
         0,                                                                                        \
         0,                                                                                        \
         "DIR",                                                                                    \
         "keep packed weights here for the next start"},                                           \
        {"cache-size-mb",                                                                          \
         IFD_ARG_NUMBER,                                                                           \
         &(options).cache_mb,                                                                      \
         1,                                                                                        \
         1 << 20,                                                                                  \
         "MB",                                                                                     \
         "limit of all files there; the least recently used are deleted (1024)"},                  \
        {"threads",                                                                                \
         IFD_ARG_NUMBER,                                                                           \
         &(options).threads,                                                                       \
         1,                                                                                        \
         256,                                                                                      \
         "N",                                                                                      \
         "threads of one inference (1)"},                                                          \
        {"exact",                                                                                  \
         IFD_ARG_SWITCH,                                                                           \
         &(options).exact,                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "bit-exact kernels for quantized types (default: where they cost almost nothing)"},       \
    {                                                                                              \
        "fast", IFD_ARG_SWITCH, &(options).fast, 0, 0, NULL, "never bit-exact kernels"             \
    }

struct ifd_session {
    const struct ifd_alloc *alloc;
    struct ifd_file file;
    struct ifd_externals externals;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    const struct ifd_model_info *info;
    uint32_t batch;
    /** Per port. The session owns the inputs' memory, the instance the outputs'. */
    struct ifd_tensor *input, *output;
};

/** Sink that prints to stdout; context is not used. */
void ifd_session_print(void *context, const char *text, size_t size);

/** Checks the options without the model: unknown backends and CPU features, options that exclude
 *  each other. */
IFD_NODISCARD enum ifd_code ifd_session_check(const struct ifd_tool_host *host,
                                              const struct ifd_session_options *options,
                                              struct ifd_err *err);
/** Loads the model and fills its inputs; inputs without a file are zero. Errors are prefixed
 *  with the model's path. On error nothing is left; on success ifd_session_close releases
 *  everything. */
IFD_NODISCARD enum ifd_code ifd_session_open(const struct ifd_tool_host *host,
                                             const struct ifd_session_options *options,
                                             struct ifd_session *ret, struct ifd_err *err);
void ifd_session_close(struct ifd_session *session);

/** Fills the inputs with reproducible numbers: f32 in -1 … 1, integers of 8 and 16 bits over
 *  their range, others 0. */
void ifd_session_random_inputs(struct ifd_session *session, uint64_t seed);

IFD_NODISCARD enum ifd_code ifd_session_run(struct ifd_session *session, struct ifd_err *err);

#endif
