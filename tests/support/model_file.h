/** A model file that is loaded and run, for tests. Whatever the engine takes comes from an
 *  allocator that can fail, and must be back at the end. Thread: one at a time per object. */
#ifndef INFERD_TESTS_SUPPORT_MODEL_FILE_H
#define INFERD_TESTS_SUPPORT_MODEL_FILE_H

#include "inferd/engine.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

enum { MODEL_FILE_PORTS = 16 };

struct model_file_options {
    struct ifd_engine_options
        engine; /* without backends: CpuRef; alloc is set by model_file_open */
    struct ifd_model_options model;
    uint32_t threads; /* of the instance; default 1 */
    uint32_t batch;   /* samples of a run, if the model has a batch; default 1 */
};

struct model_file {
    struct fail_alloc fail;
    struct ifd_bytes content;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    const struct ifd_model_info *info;
    struct ifd_tensor in[MODEL_FILE_PORTS], out[MODEL_FILE_PORTS]; /* out: of the latest run */
    void *zeros[MODEL_FILE_PORTS];                                 /* of model_file_fill */
    int64_t batch;
    uint64_t deadline_ns; /* of a run; default: ifd_io's */
    struct ifd_err err;
};

/** Reads path and opens it; the test ends if that fails. NULL options are the defaults. */
void model_file_begin(struct model_file *f, const char *path,
                      const struct model_file_options *options);
void model_file_end(struct model_file *f);

/** The parts of begin and end, where opening may fail: read once; then any number of times set
 *  f->fail, open and, whatever it returned, close; forget at the end. Open returns IFD_UNSUPPORTED
 *  for more than MODEL_FILE_PORTS inputs or outputs. */
void model_file_read(struct model_file *f, const char *path);
IFD_NODISCARD enum ifd_code model_file_open(struct model_file *f,
                                            const struct model_file_options *options);
void model_file_close(struct model_file *f);
void model_file_forget(struct model_file *f);

/** Makes f->in zeros, for f->batch samples; open dimensions are those of the model's example. */
void model_file_fill(struct model_file *f);

/** Runs f->in into f->out, which is the instance's memory until the next run. */
IFD_NODISCARD enum ifd_code model_file_run(struct model_file *f);

/** Opens and runs path while the k-th request for memory is refused, k = 1, 2, …, until none is.
 *  Expects IFD_NOMEM of every round but the last, which succeeds. */
struct model_file_torture {
    const char *path;
    struct model_file_options options;
    enum ifd_code (*run)(struct model_file *f);
    bool goes_on;         /* later requests of a round are refused too */
    bool may_do_without;  /* a round may also succeed */
    long rounds_at_least; /* so that a test that allocates nothing fails */
};
void model_file_torture(const struct model_file_torture *how);

#endif
