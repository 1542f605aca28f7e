/** What a decoder gets and does. A decoder is a row of decoder_list.inc. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_DECODER_IMPL_H
#define INFERD_SERVER_OBJECTS_DECODER_IMPL_H

#include "server/objects/objects.h"
#include "server/objects/parameters_impl.h"
#include "server/objects/values_impl.h"

/** Most outputs that a decoder reads. */
#define IFD_ROLES_MAX 8

/** A model while its meaning is read. */
struct ifd_setup {
    const struct ifd_model_desc *desc;
    struct ifd_arena *arena;
    /** Outputs in the decoder's order: named by the parameter `outputs_used`, or else found by
     *  prepare. A dimension that is not known is IFD_DIM_ANY. */
    uint32_t role[IFD_ROLES_MAX];
    uint32_t role_count;
    bool are_roles_named;
    struct ifd_meaning *meaning;
};

/** One decoding. */
struct ifd_decoding {
    const struct ifd_meaning *meaning;
    const void *plan;
    struct ifd_values value[IFD_ROLES_MAX]; /* by role */
    const struct ifd_object_options *options;
    const struct ifd_picture_view *view;
    struct ifd_arena *arena;
    struct ifd_objects *ret;
};

/** A plan begins with the outputs that are read. */
struct ifd_plan {
    uint32_t role[IFD_ROLES_MAX];
    uint32_t role_count;
};

struct ifd_decoder {
    const char *name;
    enum ifd_model_task task;
    uint32_t role_count; /* outputs that it may read, at most */
    /** Finds its outputs, reads its parameters, compares them with the outputs' forms, and returns
     *  a plan in the version's arena. */
    enum ifd_code (*prepare)(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err);
    enum ifd_code (*decode)(const struct ifd_decoding *decoding, struct ifd_err *err);
};

/** X(id): ifd_decoder_<id> is defined in a file of its own. */
#define X(id) extern const struct ifd_decoder ifd_decoder_##id;
#include "server/objects/decoder_list.inc"
#undef X

/* ---- for prepare ---- */

/** Form of an output without its batch dimension. */
struct ifd_shape ifd_setup_shape(const struct ifd_setup *setup, uint32_t output);
/** Elements of an output of one sample; IFD_DIM_ANY if a dimension is not known. */
int64_t ifd_setup_count(const struct ifd_setup *setup, uint32_t output);
const char *ifd_setup_name(const struct ifd_setup *setup, uint32_t role);
/** size zeroed bytes that begin with a struct ifd_plan; NULL without memory. */
IFD_NODISCARD enum ifd_code ifd_setup_plan(struct ifd_setup *setup, size_t size,
                                           struct ifd_plan **ret, struct ifd_err *err);
/** Takes the labels of an output. More or fewer labels than classes: INVALID with both numbers.
 *  Without labels, ours for that many classes, if we have some. */
IFD_NODISCARD enum ifd_code ifd_setup_labels(struct ifd_setup *setup, int64_t class_count,
                                             struct ifd_err *err);

/* ---- for decode ---- */

/** Whether a client wants this class. */
bool ifd_options_want(const struct ifd_object_options *options, uint32_t index);

#endif
