/** Description of a model version: its config (config.pbtxt or config.json) completed from its
 *  file.
 *
 *  The only description: server/repo reads it from config and file, server/serve adds picture rules
 *  and labels, the API prints it. Texts are never NULL, arrays lie in the version's arena.
 *  Immutable once the version serves, except the list of ready versions, which the loop thread
 *  keeps up to date. */
#ifndef INFERD_SERVER_MODEL_DESC_H
#define INFERD_SERVER_MODEL_DESC_H

#include "inferd/types.h"
#include "server/model/objects.h"
#include "server/model/picture.h"
#include "server/model/sound.h"

/** States of a version, and of a model that has none: X(id, label in metrics, text in the
 *  index). */
#define IFD_MODEL_STATES(X)                                                                        \
    X(LOADING, "loading", "LOADING")                                                               \
    X(READY, "ready", "READY")                                                                     \
    X(UNAVAILABLE, "unavailable", "UNAVAILABLE") /* a reason says why */                           \
    X(UNLOADING, "unloading", "UNLOADING")

#define X(id, label, text) IFD_MODEL_##id,
enum ifd_model_state { IFD_MODEL_STATES(X) IFD_MODEL_STATE_COUNT };
#undef X
/** Of a model that nobody tried to load. */
#define IFD_MODEL_UNKNOWN IFD_MODEL_STATE_COUNT

/** X(id, name in a config). */
#define IFD_TENSOR_FORMATS(X)                                                                      \
    X(NONE, "FORMAT_NONE")                                                                         \
    X(NHWC, "FORMAT_NHWC")                                                                         \
    X(NCHW, "FORMAT_NCHW")

#define X(id, name) IFD_FORMAT_##id,
enum ifd_tensor_format { IFD_TENSOR_FORMATS(X) IFD_FORMAT_COUNT };
#undef X

/** How a picture becomes the tensor of an image input: decoded to channels (1 or 3) of 0 … 255,
 *  resized to the input's height and width, then real = (pixel - mean[c]) / std[c]; a quantized
 *  input stores round(real / scale) + zero_point. fill are the pixels of a letterbox's bars. c
 *  counts the input's channels: of BGR, blue is the first. has_image is false where the input
 *  cannot be a picture. */
struct ifd_image_rule {
    bool has_image;
    uint32_t height, width, channels;
    bool channels_first;
    enum ifd_image_color color;
    enum ifd_image_resize resize;
    float fill[4], mean[4], std[4];
    bool has_region; /* what is shown unless a request says otherwise; else the whole picture */
    struct ifd_picture_region region;
};

/** An input or output as clients see it. shape is per request *without* the batch dimension if
 *  max_batch_size > 0, and whole otherwise; IFD_DIM_ANY where a request decides. */
struct ifd_tensor_info {
    const char *name;
    bool has_dtype, has_shape; /* known from the config, or from the file */
    enum ifd_dtype dtype;
    struct ifd_shape shape;
    bool has_reshape; /* the file has another shape: the config's `reshape`; see reshape.h */
    struct ifd_shape reshape;
    enum ifd_tensor_format format;
    bool optional;  /* inputs */
    bool is_hidden; /* the server's own: a state of a sequence; clients do not see it */
    struct ifd_image_rule image; /* inputs */
    struct ifd_sound_rule sound; /* inputs */
    float scale;                 /* quantized tensors: for pictures; 0 otherwise */
    int32_t zero_point;
    const char *const *labels; /* outputs; label_count 0 if there are none */
    uint32_t label_count;
    const char *label_filename; /* outputs: as in the config, "" if none */
    uint32_t line;              /* in the config; 0: only the file has it */
};

/** Most instances of a model, in all its groups together. */
#define IFD_INSTANCES_MAX 64

/** Largest rate_limiter.priority of a config. */
#define IFD_PRIORITY_MAX 1000

/** Instances run on the CPU. */
struct ifd_instance_group_info {
    const char *name;
    int32_t count;
    uint32_t priority; /* under load, 1/priority of the time of others; 0: the config has none */
    uint32_t gpu_line; /* where its kind is KIND_GPU; 0: it is not */
};

/** Key and string value of the config's `parameters`. */
struct ifd_parameter_info {
    const char *key, *value;
};

enum ifd_version_policy { IFD_POLICY_LATEST, IFD_POLICY_ALL, IFD_POLICY_SPECIFIC };

enum ifd_warm_fill { IFD_WARM_ZEROS, IFD_WARM_RANDOM, IFD_WARM_FILE };

/** An input of a warm-up sample. */
struct ifd_warm_input_info {
    struct ifd_tensor_info tensor; /* name, dtype and shape, without the batch dimension; first */
    enum ifd_warm_fill fill;
    const char *file; /* below the model's folder warmup */
};

/** A request of the config's model_warmup, made count times before the version serves. */
struct ifd_warm_up_info {
    const char *name;
    uint32_t batch_size, count, input_count;
    const struct ifd_warm_input_info *input;
};

struct ifd_queue_policy_info {
    bool reject; /* timeout_action: REJECT, else DELAY */
    uint64_t default_timeout_us;
    bool allow_timeout_override;
    uint32_t max_queue_size; /* 0: the server's default */
};

struct ifd_level_policy_info {
    uint32_t priority; /* 1 … priority_levels; 1 first */
    struct ifd_queue_policy_info policy;
};

/** A state of a sequence: an output of one request is an input of the next. */
struct ifd_state_info {
    struct ifd_tensor_info tensor; /* name: of the input; first */
    const char *output_name;
    uint32_t input, output; /* of the description; set when it is complete */
    struct ifd_bytes begin; /* before the first request; {NULL, 0}: zeros */
};

/** What an input that the server fills tells the model of a request of a sequence: that it starts
 *  or ends one, that there is one, its id. */
enum ifd_control_kind {
    IFD_CONTROL_START,
    IFD_CONTROL_END,
    IFD_CONTROL_READY,
    IFD_CONTROL_ID,
};

struct ifd_control_info {
    struct ifd_tensor_info tensor; /* name: of the input; first */
    enum ifd_control_kind kind;
    bool is_read;    /* while the config is read */
    double value[2]; /* of no and yes; value_count 0 for an id */
    uint32_t value_count;
    uint32_t input; /* of the description; set when it is complete */
};

struct ifd_model_desc {
    const char *name;
    int64_t version;
    const char *version_text;
    const char *platform;        /* "tflite_inferd": metadata's platform */
    const char *backend;         /* "tflite", "identity", … */
    const char *const *versions; /* all ready versions of the model, ascending, as text */
    uint32_t version_count;

    int32_t max_batch_size; /* 0: no batch dimension */
    /* Most pictures of a request if max_batch_size is 0 and the file has batches of one, which run
     * one after the other; 0: it has no batches. */
    uint32_t picture_batch;
    const struct ifd_tensor_info *input, *output;
    uint32_t input_count, output_count;
    bool has_reshapes; /* one of them, at least */

    const struct ifd_meaning *meaning; /* of the outputs; NULL if nobody says it */

    const char *default_model_filename;
    enum ifd_version_policy version_policy;
    uint32_t policy_latest_count;
    const int64_t *policy_versions;
    uint32_t policy_version_count;
    const struct ifd_instance_group_info *instance_group;
    uint32_t instance_group_count;
    const struct ifd_parameter_info *parameter;
    uint32_t parameter_count;

    bool dynamic_batching;
    const int32_t *preferred_batch_size; /* ascending */
    uint32_t preferred_batch_size_count;
    uint64_t max_queue_delay_us;
    bool preserve_ordering;
    bool has_sequences;
    uint64_t max_sequence_idle_us;
    uint32_t max_sequences; /* at a time */
    const struct ifd_state_info *state;
    uint32_t state_count;
    const struct ifd_control_info *control;
    uint32_t control_count;
    uint32_t priority_levels, default_priority_level;
    struct ifd_queue_policy_info queue_policy;
    const struct ifd_level_policy_info *level_policy; /* of some levels, instead of queue_policy */
    uint32_t level_policy_count;
    const struct ifd_warm_up_info *warm_up;
    uint32_t warm_up_count;
};

#endif
