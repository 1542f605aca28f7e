/** The objects behind inferd/engine.h, for the files that make them: engine.c, model*.c, dump.c. */
#ifndef INFERD_ENGINE_ENGINE_IMPL_H
#define INFERD_ENGINE_ENGINE_IMPL_H

#include "engine/cache.h"
#include "engine/exec/instance.h"
#include "engine/ir/graph.h"
#include "engine/opt/opt.h"
#include "engine/parse/parse.h"
#include "engine/weights.h"

struct ifd_engine {
    const struct ifd_alloc *alloc;
    struct ifd_registry registry;
    struct ifd_cores cores;
    bool wants_cache;
    struct ifd_cache *cache; /* NULL: not wanted, or cache_why_not */
    struct ifd_err cache_why_not;
};

/** The executable for one batch size, with the memory of its plan. */
struct ifd_model_plan {
    struct ifd_arena arena;
    struct ifd_executable executable;
};

struct ifd_model {
    struct ifd_engine *engine;
    struct ifd_arena arena;       /* graph, constants that had to be copied, ports */
    struct ifd_graph graph;       /* optimized, at the file's batch size */
    struct ifd_pass_report *pass; /* ifd_pass_count() */

    struct ifd_limits limits;
    uint32_t *preference; /* slots of the registry */
    uint32_t preference_count;
    uint32_t max_threads;
    bool no_optimize, releases_weights;
    enum ifd_precision precision; /* asked for */
    struct ifd_weights weights;   /* releases_weights */

    uint64_t cache_name;
    struct ifd_cache_entry cache_entry; /* plan[0] may use its parts */
    struct ifd_err cache_note;          /* info.cache */

    struct ifd_model_info info;
    struct ifd_err
        batch_why_not;     /* if the batch is not free: the first thing that stands in the way */
    struct ifd_mutex lock; /* plan[]: filled by ifd_instance_create, entries never change */
    /** plan[0] is the one for batch 1 (or the file's, if the batch is not free); the others are made when an instance
     *  first wants batches of ifd_batch_size(i). */
    struct ifd_model_plan *plan[IFD_BATCH_PLANS];
};

/** A model with an empty graph, which the caller fills with a parser or the builder of ir/graph.h.
 *  Errors: INVALID (options), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_model_create(struct ifd_engine *engine,
                                             const struct ifd_model_options *options,
                                             struct ifd_model **ret_model, struct ifd_err *err);

/** Optimizes and plans the graph of a model; after OK the model is ready. parsed: names and metadata of the ports, in
 *  memory that lives as long as the model. */
IFD_NODISCARD enum ifd_code ifd_model_build(struct ifd_model *model,
                                            const struct ifd_parsed *parsed, struct ifd_err *err);

/* ---- model_ports.c ---- */

/** Ports, their batch, sizes of constants; of the optimized graph. Errors: TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_model_describe(struct ifd_model *model,
                                               const struct ifd_parsed *parsed,
                                               struct ifd_err *err);
/** What plan[0] adds to that. */
void ifd_model_describe_plan(struct ifd_model *model);

/* ---- model_plans.c ---- */

/** Makes plan[index], for a batch size; 0: as the file has it. Errors: what planning and backends say. */
IFD_NODISCARD enum ifd_code ifd_model_add_plan(struct ifd_model *model, uint32_t index,
                                               int64_t batch, struct ifd_err *err);
/** Makes the plans for batches up to max_batch that no instance has asked for before. Where a backend cannot make one any
 *  more, smaller ones do. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_model_complete_plans(struct ifd_model *model, uint32_t max_batch,
                                                     uint32_t *ret_count, struct ifd_err *err);
void ifd_model_destroy_plans(struct ifd_model *model);

/* ---- model_cache.c ---- */

/** Looks for packed weights of an earlier start. Whatever is wrong is a note. */
void ifd_model_find_cached(struct ifd_model *model, struct ifd_bytes file);
/** Shows them to the backends of a plan. */
void ifd_model_offer_cached(const struct ifd_model *model, const struct ifd_plan *plan);
/** Says what became of them, and keeps what was packed now. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_model_settle_cached(struct ifd_model *model, struct ifd_err *err);

#endif
