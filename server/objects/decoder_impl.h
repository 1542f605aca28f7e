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
    bool are_labels_ours;   /* a list of ours, not the config's or the file's */
    bool are_labels_listed; /* by the parameter `labels` */
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
/** A copy of made, a decoder's plan of size bytes that begins with a struct ifd_plan, in the arena;
 *  the roles are set. */
IFD_NODISCARD enum ifd_code ifd_setup_plan(struct ifd_setup *setup, const void *made, size_t size,
                                           struct ifd_plan **ret, struct ifd_err *err);
/** The decoder reads one output: the first, if nobody names another. */
void ifd_setup_one_role(struct ifd_setup *setup);
/** Reads how scores become 0 … 1 from the parameter called key; softmax only where it has_softmax.
 *  Leaves *ret if nobody says it. */
IFD_NODISCARD enum ifd_code ifd_setup_activation(const struct ifd_setup *setup, const char *key,
                                                 bool has_softmax, uint32_t *ret,
                                                 struct ifd_err *err);
/** The model has class_count classes (IFD_DIM_ANY: unknown). Our own lists of labels that have
 *  another length are dropped. Errors: INVALID (the config lists more or fewer, with both
 *  numbers). */
IFD_NODISCARD enum ifd_code ifd_setup_classes(struct ifd_setup *setup, int64_t class_count,
                                              struct ifd_err *err);
/** Takes the names of keypoints from the parameter `keypoint_names` and our skeleton for them.
 *  Errors: INVALID (more or fewer names than keypoints, with both numbers), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_setup_keypoints(struct ifd_setup *setup, uint32_t count,
                                                struct ifd_err *err);
/** Whether outputs that are maps have their channels first: the parameter `output_layout` (hwc,
 *  chw), else as the picture. */
IFD_NODISCARD enum ifd_code ifd_setup_layout(const struct ifd_setup *setup,
                                             bool *ret_channels_first, struct ifd_err *err);

/** Pixels for one of the numbers of boxes or points that a network has decoded itself: the
 *  parameter `box_unit`, "pixels" or "input" (1 is the width or height of the input). Without it
 *  "input" for TFLite files and "pixels" for others, as exporters write them. */
IFD_NODISCARD enum ifd_code ifd_setup_unit(const struct ifd_setup *setup, float *ret_x,
                                           float *ret_y, struct ifd_err *err);

/* ---- for decode ---- */

/** Whether a client wants this class. */
bool ifd_options_want(const struct ifd_object_options *options, uint32_t index);

#endif
