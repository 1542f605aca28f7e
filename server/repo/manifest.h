/** A model's config: what config.pbtxt or config.json says, with the names and meanings of Triton's model_config.proto.
 *
 *  Fields without a meaning here are named in a warning; fields whose meaning would be lost (ensembles, sequences, reshape)
 *  are an error. What the config leaves out is filled in from the model file later (complete.h). Thread: any. */
#ifndef INFERD_SERVER_REPO_MANIFEST_H
#define INFERD_SERVER_REPO_MANIFEST_H

#include "engine/base/arena.h"

enum ifd_manifest_format { IFD_MANIFEST_NONE, IFD_MANIFEST_NHWC, IFD_MANIFEST_NCHW };

struct ifd_manifest_tensor {
    const char *name;
    bool has_dtype, has_dims, is_optional;
    enum ifd_dtype dtype;
    struct ifd_shape dims; /* without the batch dimension if max_batch_size > 0 */
    enum ifd_manifest_format format;
    const char *label_filename; /* "" */
    uint32_t line;              /* in the config; 0: from the file */
};

/** Instances of a model, those of all its groups together, at most. */
#define IFD_INSTANCES_MAX 64

struct ifd_manifest_group {
    const char *name;
    int32_t count;
};

struct ifd_manifest_parameter {
    const char *key, *value;
};

struct ifd_manifest_queue_policy {
    bool timeout_rejects; /* else DELAY */
    uint64_t default_timeout_us;
    bool allow_timeout_override;
    uint32_t max_queue_size; /* 0: the server's default */
};

struct ifd_manifest_level_policy {
    uint32_t priority; /* 1 … priority_levels */
    struct ifd_manifest_queue_policy policy;
};

enum ifd_manifest_fill { IFD_MANIFEST_ZEROS, IFD_MANIFEST_RANDOM, IFD_MANIFEST_FILE };

/** An input of a warm-up sample. tensor: name, dtype and dims, all of them known and without the batch dimension. */
struct ifd_manifest_warm_input {
    struct ifd_manifest_tensor tensor; /* first: the reader of its fields goes on behind it */
    enum ifd_manifest_fill fill;
    const char *file; /* below the model's folder warmup */
};

/** A request that is made count times before the model serves. */
struct ifd_manifest_warm_up {
    const char *name;
    uint32_t batch_size, count;
    struct ifd_manifest_warm_input *input;
    uint32_t input_count;
};

enum ifd_manifest_policy { IFD_MANIFEST_LATEST, IFD_MANIFEST_ALL, IFD_MANIFEST_SPECIFIC };

/** Texts are never NULL; arrays lie in the arena that was given to the reader. */
struct ifd_manifest {
    const char *name, *platform, *backend, *default_model_filename;
    int32_t max_batch_size;
    struct ifd_manifest_tensor *input, *output;
    uint32_t input_count, output_count;

    enum ifd_manifest_policy policy;
    uint32_t latest_count;
    int64_t *version;
    uint32_t version_count;

    struct ifd_manifest_group *group;
    uint32_t group_count;
    struct ifd_manifest_parameter *parameter;
    uint32_t parameter_count;

    struct ifd_manifest_warm_up *warm_up;
    uint32_t warm_up_count;

    bool dynamic_batching, preserve_ordering;
    int32_t *preferred_batch_size; /* ascending */
    uint32_t preferred_count;
    uint64_t max_queue_delay_us;
    uint32_t priority_levels, default_priority_level;

    struct ifd_manifest_queue_policy queue_policy;
    struct ifd_manifest_level_policy *level_policy; /* of single priorities, instead of it */
    uint32_t level_policy_count;
};

/** Hears what is odd in a config, one sentence a time. */
struct ifd_manifest_warnings {
    void (*warn)(void *context, const char *text);
    void *context;
};

/** Defaults: what a model without a config has. */
void ifd_manifest_init(struct ifd_manifest *manifest);

/** Reads text (file_name names it in messages) over the defaults.
 *  Errors: CORRUPT, INVALID (a value out of range), UNSUPPORTED, TOO_LARGE, NOMEM; all with the line. */
IFD_NODISCARD enum ifd_code ifd_manifest_read(struct ifd_str text, const char *file_name,
                                              struct ifd_arena *arena,
                                              const struct ifd_manifest_warnings *warnings,
                                              struct ifd_manifest *ret, struct ifd_err *err);

/** Value of a parameter; NULL if it is not there. */
const char *ifd_manifest_parameter(const struct ifd_manifest *manifest, const char *key);

#endif
