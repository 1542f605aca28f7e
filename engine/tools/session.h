/** What every command needs: a file loaded into a model with one instance, and tensors for its inputs and outputs. */
#ifndef INFERD_ENGINE_TOOLS_SESSION_H
#define INFERD_ENGINE_TOOLS_SESSION_H

#include "engine/base/file.h"
#include "engine/tools/args.h"
#include "engine/tools/tools.h"

struct ifd_session_options {
    const char *path;
    const char *backends;     /* "CpuAcc,CpuRef"; NULL: the engine's order */
    const char *cache_folder; /* of packed weights; NULL: none */
    uint32_t cache_mb;        /* of all its files; 0 = 1024 */
    const char *precision;    /* "bf16"; NULL: "f32" */
    const char *cpu_mask;     /* "avx2,avx512"; NULL: all that the CPU has, "none": none */
    uint32_t threads;         /* 0 = 1 */
    /** 0: as the files of the inputs have it; without files, as the model's file has it. */
    uint32_t batch;
    /** Contents of the inputs: "file" or "name=file", in the model's order if without name. .npy, pictures (.jpg .jpeg
     *  .png, for image inputs), anything else raw bytes. None or one for each input. */
    struct ifd_arg_list inputs;
    bool needs_inputs; /* none is an error */
    bool exact, fast, no_optimize;
    bool keeps_weights; /* also those that are packed: for looking at them */
};

/** Rows of a command's table (args.h) that every command has: how the model is to run. */
#define IFD_SESSION_ARGS(options)                                                                  \
    {                                                                                              \
        "backend",                                                                                 \
        IFD_ARG_TEXT,                                                                              \
        &(options).backends,                                                                       \
        0,                                                                                         \
        0,                                                                                         \
        "LIST",                                                                                    \
        "backends in order of preference"},                                                        \
        {"cpu",                                                                                    \
         IFD_ARG_TEXT,                                                                             \
         &(options).cpu_mask,                                                                      \
         0,                                                                                        \
         0,                                                                                        \
         "LIST",                                                                                   \
         "use only these CPU features (none: none)"},                                              \
        {"precision",                                                                              \
         IFD_ARG_TEXT,                                                                             \
         &(options).precision,                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         "NAME",                                                                                   \
         "f32 (default), bf16 or fp16: what products of f32 may be rounded to"},                   \
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
         "of all files there; those not used for longest go first (1024)"},                        \
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
         "bit-exact kernels for quantized types; default: in models where they cost next to "      \
         "nothing"},                                                                               \
    {                                                                                              \
        "fast", IFD_ARG_SWITCH, &(options).fast, 0, 0, NULL, "never mind single steps of rounding" \
    }

struct ifd_session {
    const struct ifd_alloc *alloc;
    struct ifd_file file;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    const struct ifd_model_info *info;
    uint32_t batch;
    struct ifd_tensor *input,
        *output; /* zeroed memory of ours, per port; output.data NULL: the instance's */
};

/** Sink that prints; context is not used. */
void ifd_session_print(void *context, const char *text, size_t size);

/** What is wrong with the options, whatever the model: unknown backends, CPU features, what excludes each other. */
IFD_NODISCARD enum ifd_code ifd_session_check(const struct ifd_tool_host *host,
                                              const struct ifd_session_options *options,
                                              struct ifd_err *err);
/** Inputs without a file are zero. Errors are prefixed with the model's path. On error nothing is left; on
 *  success ifd_session_close gives everything back. */
IFD_NODISCARD enum ifd_code ifd_session_open(const struct ifd_tool_host *host,
                                             const struct ifd_session_options *options,
                                             struct ifd_session *ret, struct ifd_err *err);
void ifd_session_close(struct ifd_session *session);

/** Fills the inputs with reproducible numbers: floats in -1 … 1, whole numbers over their range, indexes 0. */
void ifd_session_random_inputs(struct ifd_session *session, uint64_t seed);

IFD_NODISCARD enum ifd_code ifd_session_run(struct ifd_session *session, struct ifd_err *err);

#endif
