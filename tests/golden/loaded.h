/** What golden_run's two kinds of cases share: its options, and models loaded by them. */
#ifndef INFERD_TESTS_GOLDEN_LOADED_H
#define INFERD_TESTS_GOLDEN_LOADED_H

#include "inferd/engine.h"

#define NAMES_MAX 64
#define PORTS_MAX 64

struct golden_options {
    const char *shared;
    const char *backend[NAMES_MAX];
    uint32_t backend_count;
    const char *plugins; /* folder; NULL: none */
    const char *backend_option[NAMES_MAX];
    uint32_t backend_option_count;
    const char *model[NAMES_MAX];
    uint32_t model_count;
    const char *cpu[NAMES_MAX]; /* none: all that there is */
    uint32_t cpu_count;
    uint32_t threads;
    enum ifd_precision precision;
    enum ifd_precision rounding; /* of the weights as the model keeps them */
    bool is_fast, is_exact, is_seanet, no_optimize;
};

struct golden_loaded {
    struct ifd_bytes file;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    struct ifd_model_info info; /* without the states, which are behind the file's own ports */
    uint32_t state_count;
    struct ifd_tensor state[PORTS_MAX]; /* what the next step begins with */
};

/** Errors as of files, engine and model. Freed by golden_unload, after a failure too. */
IFD_NODISCARD enum ifd_code golden_load(const struct golden_options *options, const char *path,
                                        struct golden_loaded *ret, struct ifd_err *err);
void golden_unload(struct golden_loaded *l);

/** Makes l->instance for this batch size, in place of an earlier one. */
IFD_NODISCARD enum ifd_code golden_instantiate(const struct golden_options *options,
                                               struct golden_loaded *l, int64_t batch,
                                               struct ifd_err *err);

/** One run; input and output are the file's own ports. States come from the run before and go to
 *  the next. An output's data lives as long as the instance. */
IFD_NODISCARD enum ifd_code golden_infer(struct golden_loaded *l, const struct ifd_tensor *input,
                                         struct ifd_tensor *output, uint32_t batch,
                                         struct ifd_err *err);

/** A whole file, writable; freed by golden_free_file. */
IFD_NODISCARD enum ifd_code golden_read_file(const char *path, struct ifd_bytes *ret,
                                             struct ifd_err *err);
void golden_free_file(struct ifd_bytes file);

/** Exit status of the program where this file or folder is absent. */
int golden_skip(const char *path);

/** The one-operator models of golden/seanet_int16. Returns the exit status. */
int golden_run_seanet(const struct golden_options *options);

#endif
