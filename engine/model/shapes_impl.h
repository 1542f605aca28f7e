/** What the parts of shapes.h share: variants (shapes.c), their keys (key.c) and the run that goes
 *  through them (chain.c). */
#ifndef INFERD_ENGINE_MODEL_SHAPES_IMPL_H
#define INFERD_ENGINE_MODEL_SHAPES_IMPL_H

#include "engine/base/buf.h"
#include "engine/base/mac.h"
#include "engine/model/kept.h"
#include "engine/model/shapes.h"

/* Memory for the tensors of the variant that runs, and of those whose results are read. */
struct ifd_shared_block {
    struct ifd_shared_block *next;
    uint8_t *data;
    size_t bytes;
};

/* A model at certain shapes, with its instance. */
struct ifd_link {
    const struct ifd_model *model;
    struct ifd_instance *instance;
    struct ifd_tensor *input; /* behind a cut; NULL: the caller's */
    struct ifd_tensor *made;  /* in front of a cut: the graph's outputs; else NULL */
    uint64_t *sum;            /* in front of a cut: of large constants, per value of it */
};

struct ifd_variant {
    struct ifd_link link;
    struct ifd_model *model;
    uint8_t *key; /* what is read (key.c) */
    size_t key_bytes;
    uint64_t key_sum;
    size_t bytes;
    bool shares_not; /* of one request: a shared one was tried in its shapes */
    uint64_t used;   /* number of the step that used it last */
};

struct ifd_shapes_of {
    struct ifd_shapes base;
    const struct ifd_alloc *alloc;
    struct ifd_model *model;
    struct ifd_link example;       /* its instance is not owned: for the example shapes */
    struct ifd_input_shape *asked; /* per input: of the variant that is being made */
    uint32_t max_batch;
    bool is_shared;      /* it is for any number of samples up to max_batch */
    uint32_t refusals;   /* trials in a row that found no shared variant; at most 6 */
    uint32_t chances;    /* requests that might have begun a trial */
    bool is_denied;      /* hold_shapes refused memory in the present run */
    struct ifd_buf key;  /* of what runs next; begins with the shapes of the inputs */
    uint64_t key_sum;    /* of it */
    size_t shapes_bytes; /* of that beginning */
    uint8_t mac_key[IFD_MAC_KEY_BYTES];
    const struct ifd_io *io; /* of the present run; likewise the next ones */
    uint32_t io_count;
    struct ifd_link present; /* what runs */
    uint32_t chain, made;    /* variants that it went through, that it had to make */
    double work, work_limit; /* of all that it makes, as of ifd_graph_work; limit 0: none */
    uint64_t deadline_ns;    /* of it; without one, of its loops; 0: no loop has turned */
    struct ifd_variant *variant;
    uint32_t count, capacity;
    struct ifd_kept kept;
    struct ifd_tensor *live; /* of the present run: what the next variant reads; NULL: not known */
    uint32_t live_count;
    size_t bytes; /* of all variants */
    struct ifd_shared_block *shared;
    size_t shared_bytes;
    uint64_t held;  /* of all that and of what is kept, by hold_shapes */
    uint64_t steps; /* variants that ran so far */
};

/** The variant for the present key, NULL if there is none. */
struct ifd_variant *ifd_variant_find(struct ifd_shapes_of *shapes);
/** Makes it. Errors: INVALID, TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_variant_add(struct ifd_shapes_of *shapes,
                                            const struct ifd_resume *resume,
                                            struct ifd_variant **ret, struct ifd_err *err);
/** Makes room for so much, in variants (0 or 1) or in what is kept: the least recently used ones
 *  go, but not the one whose results are read. Errors: TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_variants_make_room(struct ifd_shapes_of *shapes, size_t bytes,
                                                   uint32_t variants, struct ifd_err *err);
/** Bytes of all that the limit counts. */
size_t ifd_variants_bytes(const struct ifd_shapes_of *shapes);
/** Does a tensor begin in memory, which may be NULL? */
bool ifd_tensor_lies_in(const struct ifd_tensor *tensor, const uint8_t *memory, size_t bytes);
/** Copies the tensors of live that lie in an instance's memory, which a run overwrites. Errors:
 *  TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_variants_rescue(struct ifd_shapes_of *shapes,
                                                const struct ifd_instance *instance,
                                                struct ifd_err *err);

/* shared.c */
/** Has the instance memory for its next run in which nothing lies that is read? Gives it some;
 *  nothing where it has its own. Errors: TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_shared_lend(struct ifd_shapes_of *shapes,
                                            struct ifd_instance *instance, struct ifd_err *err);
/** Outputs that an earlier run set are NULL again: another variant has the memory now. */
void ifd_shared_forget(const struct ifd_shapes_of *shapes, const struct ifd_io *io,
                       uint32_t io_count);
void ifd_shared_finish(struct ifd_shapes_of *shapes);

/* chain.c */
enum ifd_code ifd_chain_first(struct ifd_shapes *self, const struct ifd_io *io, uint32_t io_count,
                              struct ifd_instance **ret, struct ifd_io *ret_io,
                              struct ifd_err *err);
enum ifd_code ifd_chain_next(struct ifd_shapes *self, const struct ifd_io *io,
                             struct ifd_instance **ret, struct ifd_io *ret_io, struct ifd_err *err);

/* key.c */
/** Of the first part of a run: the shapes of its inputs, also noted in asked. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_key_begin(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                                          struct ifd_err *err);
/** Of a part behind a cut, which begins with that. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_key_resume(struct ifd_shapes_of *shapes,
                                           const struct ifd_resume *resume, struct ifd_err *err);
/** Fills link->sum. */
void ifd_link_sum(const struct ifd_shapes_of *shapes, struct ifd_link *link);

#endif
