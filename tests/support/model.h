/** Models of hand-built graphs: an engine with CpuRef (and optionally the fake backend before it),
 *  without a file. */
#ifndef INFERD_TESTS_SUPPORT_MODEL_H
#define INFERD_TESTS_SUPPORT_MODEL_H

#include "engine/model/model.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/graph.h"

/** Options of an engine whose backends are Fake and CpuRef, or CpuRef alone; an engine of them. */
struct ifd_engine_options test_engine_options(bool with_fake);
IFD_NODISCARD enum ifd_code test_engine(const struct ifd_alloc *alloc, bool with_fake,
                                        struct ifd_engine **ret_engine, struct ifd_err *err);

/** The engine takes this machine for one with that CPU; before a model is made. */
void test_engine_set_cpu(struct ifd_engine *engine, const struct ifd_cpu *cpu);

/** Optimizes and plans what the test has put into model->graph; ports are named after the
 *  values. */
IFD_NODISCARD enum ifd_code test_model_build(struct ifd_model *model, struct ifd_err *err);

/** A model of a graph that the test builds, over an allocator that can fail. Every function ends
 *  the test if something fails.
 *
 *      graph_model_begin(&m, NULL, 1);
 *      … nodes into m.model->graph …
 *      graph_model_plan(&m, 0);
 *      … m.instance …
 *      graph_model_end(&m);                  expects that all memory is back */
struct graph_model {
    struct fail_alloc fail;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
};
/** options: the allocator is set here; NULL: CpuRef alone. */
void graph_model_begin(struct graph_model *m, const struct ifd_engine_options *options,
                       uint32_t max_threads);
/** The graph is complete: plans it, and makes the instance. */
void graph_model_plan(struct graph_model *m, uint32_t max_batch);
void graph_model_end(struct graph_model *m);

/** One graph on one backend, from engine to results. Every function ends the test if something
 *  fails.
 *
 *      struct test_run_options options = {.backend = &ifd_backend_cpuacc};
 *      struct test_run run = test_run_open(&options);
 *      … nodes into run.model->graph …
 *      test_run_plan(&run, 0);
 *      … content into run.in …
 *      test_run_once(&run);
 *      … run.out …
 *      test_run_close(&run); */
struct test_run_options {
    const struct ifd_backend *backend;
    bool falls_back;                  /* CpuRef runs what backend does not take */
    struct ifd_engine_options engine; /* backends and allocator apart */
    struct ifd_model_options model;
    size_t l2_bytes; /* of the second-level cache; 0: this machine's caches */
    size_t l3_bytes; /* of the third-level cache beside it */
};

enum { TEST_RUN_OUTPUTS = 24 };

struct test_run {
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;           /* with as many threads as the model may have */
    struct ifd_tensor in;                    /* of input 0, for batch samples; zeros */
    uint32_t batch;                          /* samples that the instance is for */
    struct ifd_tensor out[TEST_RUN_OUTPUTS]; /* of the latest run, in the instance's memory */
};

struct test_run test_run_open(const struct test_run_options *options);
/** The same; where options->backend has no device, the test is skipped. */
struct test_run test_run_open_device(const struct test_run_options *options);
/** Makes the input of a complete graph, for batch samples; 0: as the graph has it. Before it is
 *  planned, if content is wanted for the interpreter. */
void test_run_input(struct test_run *run, uint32_t batch);
/** The graph is complete: plans it, makes the instance, and the input if that is not there yet. */
void test_run_plan(struct test_run *run, uint32_t max_batch);
/** Runs the first samples of the input. */
IFD_NODISCARD enum ifd_code test_run_try(struct test_run *run, uint32_t batch, struct ifd_err *err);
/** Runs all of them; they must succeed. */
void test_run_once(struct test_run *run);
/** From now on nobody comes to help the thread that runs. */
void test_run_alone(struct test_run *run);
/** Steps of the plan whose kernel has this name. */
uint32_t test_run_count(const struct test_run *run, const char *kernel);
void test_run_close(struct test_run *run);

/** A tensor of f32 in memory that is aligned and padded. Give back with ifd_release_tensor(system,
 *  data, bytes). */
struct ifd_tensor test_tensor_f32(struct ifd_shape shape);

#endif
