/** The model behind inferd/engine.h: its graph, plans and description. */
#ifndef INFERD_ENGINE_MODEL_MODEL_H
#define INFERD_ENGINE_MODEL_MODEL_H

#include "engine/cache/weights.h"
#include "engine/engine.h"
#include "engine/exec/instance.h"
#include "engine/ir/graph.h"
#include "engine/opt/opt.h"
#include "engine/parse/parse.h"

/** The executable for one batch size, with the memory of its plan. */
struct ifd_model_plan {
    struct ifd_arena arena;
    struct ifd_executable executable;
};

/** What a second reading of a file with open dimensions says, in other sizes. */
struct ifd_model_probe {
    bool is_done;             /* the file can be read in other sizes */
    bool batch_is_free;       /* with more than one sample */
    struct ifd_shape *output; /* shapes of the outputs */
    double cost;              /* of all of them: bytes, elements and products */
};

struct ifd_model {
    struct ifd_engine *engine;
    struct ifd_arena arena;       /* graph, constants that had to be copied, ports */
    struct ifd_parse_kept kept;   /* of a root with open dimensions: for its variants */
    struct ifd_graph graph;       /* optimized, at the file's batch size */
    struct ifd_pass_report *pass; /* ifd_pass_count() */

    struct ifd_limits limits;
    uint32_t *preference; /* slots of the registry */
    uint32_t preference_count;
    uint32_t max_threads;
    bool no_optimize, releases_weights, keeps_state;
    const char *signature; /* NULL; in the arena, or that of the root of a variant */
    bool is_bound;         /* to the shapes of requests: a variant of another model (shapes.h) */
    bool is_shared;        /* one whose first dimension is the batch of several requests */
    struct ifd_bytes file;
    const struct ifd_external_file *external; /* in the arena, or that of the root of a variant */
    uint32_t external_count;
    /** For the variants of an instance, as in struct ifd_model_options. */
    size_t shape_bytes;
    enum ifd_code (*hold_shapes)(void *context, uint64_t *held, uint64_t bytes,
                                 struct ifd_err *err);
    void *hold_context;
    struct ifd_model_probe probe;
    enum ifd_precision precision; /* asked for */
    struct ifd_weights weights;   /* releases_weights */

    uint64_t cache_name;
    struct ifd_cache_entry cache_entry; /* plan[0] may use its parts */
    struct ifd_err cache_note;          /* info.cache */
    struct ifd_err taken_back;          /* info.taken_back */
    struct ifd_err unsized;             /* info.unsized */

    struct ifd_model_info info;
    struct ifd_model_info plan_info; /* info with the ports of plan[0], whose shapes are known */
    struct ifd_cut cut;              /* what comes behind plan[0], in other models (shapes.h) */
    /** Outputs whose type and rank are those of the run that ifd_model_find_results made. NULL:
     *  there was none. */
    const bool *is_found;
    /** Why the batch is not free: the first node or port that does not allow it. */
    struct ifd_err batch_why_not;
    struct ifd_mutex lock; /* plan[]: filled by ifd_instance_create, entries never change */
    /** plan[0]: batch 1, or the file's batch if it is not free. plan[i]: batch ifd_batch_size(i),
     *  made when an instance first needs it. */
    struct ifd_model_plan *plan[IFD_BATCH_PLANS];
    struct ifd_model_plan *spare_plan; /* as plan[0], without devices; NULL until it is needed */
};

/** Limits with the defaults in place of zeros. */
struct ifd_limits ifd_model_limits(const struct ifd_limits *wanted);

/** A model with an empty graph, which the caller fills with a parser or the builder of ir/graph.h.
 *  Errors: INVALID (options), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_model_create(struct ifd_engine *engine,
                                             const struct ifd_model_options *options,
                                             struct ifd_model **ret_model, struct ifd_err *err);

/** A variant of root for exactly these shapes of all inputs; if resume is not NULL, what follows
 *  behind a cut. is_shared: for any number of samples; UNSUPPORTED if they are not independent.
 *  limit_bytes: of an instance. root outlives it. Errors: as ifd_model_load. */
IFD_NODISCARD enum ifd_code ifd_model_bind(const struct ifd_model *root,
                                           const struct ifd_input_shape *shape,
                                           const struct ifd_resume *resume, bool is_shared,
                                           size_t limit_bytes, struct ifd_model **ret_model,
                                           struct ifd_err *err);

/** Describes the outputs that is_unknown names (it lives as long as the model) by a run of zeros,
 *  which has the file's limit of work, and whose loops end after *left_ns: it becomes less.
 *  Errors: UNSUPPORTED, NOMEM (results.c). */
IFD_NODISCARD enum ifd_code ifd_model_find_results(struct ifd_model *model, const bool *is_unknown,
                                                   uint64_t *left_ns, struct ifd_err *err);
/** Has the last variant of a chain the outputs that the root promises? Errors: UNSUPPORTED. */
IFD_NODISCARD enum ifd_code ifd_model_check_results(const struct ifd_model *root,
                                                    const struct ifd_model *variant,
                                                    struct ifd_err *err);

/** ifd_instance_create for the shapes of the model's plan. borrows_arena: as in struct
 *  ifd_instance_setup. */
IFD_NODISCARD enum ifd_code ifd_model_instantiate(struct ifd_model *model,
                                                  const struct ifd_instance_options *options,
                                                  bool borrows_arena,
                                                  struct ifd_instance **ret_instance,
                                                  struct ifd_err *err);

/** An instance of some of the model's plans. spare: taken over on success; NULL: none. */
IFD_NODISCARD enum ifd_code ifd_model_make_instance(
    struct ifd_model *model, const struct ifd_instance_options *options,
    const struct ifd_executable *const *executable, uint32_t executable_count, bool borrows_arena,
    struct ifd_spare *spare, struct ifd_instance **ret_instance, struct ifd_err *err);

/** Undoes ifd_model_instantiate. NULL is fine. */
void ifd_model_drop_instance(struct ifd_instance *instance);

/** Optimizes and plans the graph of a model; after OK the model is ready. parsed: names and
 *  metadata of the ports, in memory that lives as long as the model. Errors: TOO_LARGE,
 *  UNSUPPORTED, NOMEM; a backend's error. */
IFD_NODISCARD enum ifd_code ifd_model_build(struct ifd_model *model,
                                            const struct ifd_parsed *parsed, struct ifd_err *err);

#endif
