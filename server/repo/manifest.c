/* The fields of a model config: one row each. */
#include "server/repo/manifest.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/repo/text.h"

#define TENSORS_MAX 1024

struct context {
    const char *file;
    struct ifd_arena *arena;
    const struct ifd_manifest_warnings *warnings;
    struct ifd_err *err;
};

/* Reads field f into at, which is the member that the row names. */
typedef enum ifd_code (*read_fn)(struct context *c, const struct ifd_text_field *f, void *at);

struct row {
    const char *name;
    read_fn read; /* NULL: known, but without effect here */
    size_t offset;
};

static enum ifd_code read_rows(struct context *c, const struct ifd_text_field *f,
                               const struct row *row, size_t rows, void *base);

#define READ_MESSAGE(c, f, rows, base)                                                             \
    read_rows(c, (f)->child, rows, sizeof(rows) / sizeof((rows)[0]), base)

/* ---- plain values ---- */

static enum ifd_code fail_value(struct context *c, const struct ifd_text_field *f,
                                const char *wanted)
{
    return ifd_fail(c->err, IFD_INVALID, "%s:%u: %s: \"%s\" is not %s", c->file, f->line, f->name,
                    f->kind == IFD_TEXT_MESSAGE ? "{…}" : f->text, wanted);
}

static enum ifd_code read_text(struct context *c, const struct ifd_text_field *f, void *at)
{
    if (f->kind == IFD_TEXT_MESSAGE) {
        return fail_value(c, f, "a text");
    }
    *(const char **)at = f->text;
    return IFD_OK;
}

static enum ifd_code read_bool(struct context *c, const struct ifd_text_field *f, void *at)
{
    bool is_true = strcmp(f->text, "true") == 0 || strcmp(f->text, "1") == 0;
    if (!is_true && strcmp(f->text, "false") != 0 && strcmp(f->text, "0") != 0) {
        return fail_value(c, f, "true or false");
    }
    *(bool *)at = is_true;
    return IFD_OK;
}

static enum ifd_code read_s64(struct context *c, const struct ifd_text_field *f, void *at)
{
    if (!ifd_str_s64(ifd_str(f->text), at)) {
        return fail_value(c, f, "a whole number");
    }
    return IFD_OK;
}

static enum ifd_code read_u64(struct context *c, const struct ifd_text_field *f, void *at)
{
    if (!ifd_str_u64(ifd_str(f->text), at)) {
        return fail_value(c, f, "a whole number of at least 0");
    }
    return IFD_OK;
}

static enum ifd_code read_u32(struct context *c, const struct ifd_text_field *f, void *at)
{
    uint64_t value = 0;
    if (!ifd_str_u64(ifd_str(f->text), &value) || value > INT32_MAX) {
        return fail_value(c, f, "a whole number between 0 and 2147483647");
    }
    *(uint32_t *)at = (uint32_t)value;
    return IFD_OK;
}

static enum ifd_code read_s32(struct context *c, const struct ifd_text_field *f, void *at)
{
    uint32_t value = 0;
    enum ifd_code code = read_u32(c, f, &value);
    if (!code) {
        *(int32_t *)at = (int32_t)value;
    }
    return code;
}

static enum ifd_code refuse(struct context *c, const struct ifd_text_field *f, void *at)
{
    (void)at;
    return ifd_fail(c->err, IFD_UNSUPPORTED, "%s:%u: %s is not supported", c->file, f->line,
                    f->name);
}

/* ---- tensors ---- */

static enum ifd_code read_dtype(struct context *c, const struct ifd_text_field *f, void *at)
{
    static const struct {
        const char *name;
        enum ifd_dtype dtype;
    } table[] = {
        {"TYPE_BOOL", IFD_BOOL},  {"TYPE_UINT8", IFD_U8},   {"TYPE_UINT16", IFD_U16},
        {"TYPE_UINT32", IFD_U32}, {"TYPE_UINT64", IFD_U64}, {"TYPE_INT8", IFD_S8},
        {"TYPE_INT16", IFD_S16},  {"TYPE_INT32", IFD_S32},  {"TYPE_INT64", IFD_S64},
        {"TYPE_FP16", IFD_F16},   {"TYPE_FP32", IFD_F32},   {"TYPE_FP64", IFD_F64},
        {"TYPE_STRING", IFD_STR}, {"TYPE_BF16", IFD_BF16},
    };
    struct ifd_manifest_tensor *tensor = at;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(f->text, table[i].name) == 0) {
            tensor->dtype = table[i].dtype;
            tensor->has_dtype = true;
            return IFD_OK;
        }
    }
    return fail_value(c, f, "a data type (TYPE_FP32, TYPE_UINT8, TYPE_INT32, TYPE_STRING …)");
}

static enum ifd_code read_dim(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest_tensor *tensor = at;
    int64_t dim = 0;
    if (!ifd_str_s64(ifd_str(f->text), &dim) || (dim < 1 && dim != IFD_DIM_ANY)) {
        return fail_value(c, f, "a dimension (1 or more, or -1)");
    }
    if (tensor->dims.rank == IFD_MAX_RANK) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "%s:%u: more than %d dimensions", c->file, f->line,
                        IFD_MAX_RANK);
    }
    tensor->dims.dim[tensor->dims.rank++] = dim;
    tensor->has_dims = true;
    return IFD_OK;
}

static enum ifd_code read_format(struct context *c, const struct ifd_text_field *f, void *at)
{
    static const char *const names[] = {"FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(f->text, names[i]) == 0) {
            *(enum ifd_manifest_format *)at = (enum ifd_manifest_format)i;
            return IFD_OK;
        }
    }
    return fail_value(c, f, "FORMAT_NONE, FORMAT_NHWC or FORMAT_NCHW");
}

static const struct row tensor_rows[] = {
    {"name", read_text, offsetof(struct ifd_manifest_tensor, name)},
    {"data_type", read_dtype, 0},
    {"dims", read_dim, 0},
    {"format", read_format, offsetof(struct ifd_manifest_tensor, format)},
    {"optional", read_bool, offsetof(struct ifd_manifest_tensor, is_optional)},
    {"label_filename", read_text, offsetof(struct ifd_manifest_tensor, label_filename)},
    {"reshape", refuse, 0},
    {"is_shape_tensor", NULL, 0},
    {"allow_ragged_batch", NULL, 0},
    {"is_non_linear_format_io", NULL, 0},
};

/* Room for one more element; count grows by one. The array doubles when its count reaches a power of two. */
static void *append(struct context *c, void *array, uint32_t *count, size_t size)
{
    if ((*count & (*count - 1)) == 0) {
        void *grown = ifd_arena_take_array(c->arena, *count > 0 ? (size_t)*count * 2 : 1, size);
        if (!grown) {
            return NULL;
        }
        if (*count > 0) {
            memcpy(grown, array, *count * size);
        }
        array = grown;
    }
    (*count)++;
    return array;
}

static enum ifd_code read_tensor(struct context *c, const struct ifd_text_field *f,
                                 struct ifd_manifest_tensor **array, uint32_t *count)
{
    if (f->kind != IFD_TEXT_MESSAGE) {
        return fail_value(c, f, "a message");
    }
    if (*count == TENSORS_MAX) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "%s:%u: more than %d tensors", c->file, f->line,
                        TENSORS_MAX);
    }
    struct ifd_manifest_tensor *grown = append(c, *array, count, sizeof(**array));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(**array), c->err);
    }
    *array = grown;
    struct ifd_manifest_tensor *tensor = &grown[*count - 1];
    *tensor = (struct ifd_manifest_tensor){.name = "", .label_filename = "", .line = f->line};
    enum ifd_code code = READ_MESSAGE(c, f, tensor_rows, tensor);
    if (!code && tensor->name[0] == '\0') {
        code = ifd_fail(c->err, IFD_INVALID, "%s:%u: %s has no name", c->file, f->line, f->name);
    }
    return code;
}

static enum ifd_code read_input(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    return read_tensor(c, f, &m->input, &m->input_count);
}

static enum ifd_code read_output(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    return read_tensor(c, f, &m->output, &m->output_count);
}

/* ---- version policy ---- */

static const struct row latest_rows[] = {
    {"num_versions", read_u32, offsetof(struct ifd_manifest, latest_count)},
};

static enum ifd_code read_latest(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    m->policy = IFD_MANIFEST_LATEST;
    enum ifd_code code = READ_MESSAGE(c, f, latest_rows, m);
    return !code && m->latest_count == 0 ? fail_value(c, f, "1 version or more") : code;
}

static enum ifd_code read_all(struct context *c, const struct ifd_text_field *f, void *at)
{
    (void)c;
    (void)f;
    ((struct ifd_manifest *)at)->policy = IFD_MANIFEST_ALL;
    return IFD_OK;
}

static enum ifd_code read_version(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    int64_t *grown = append(c, m->version, &m->version_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->version = grown;
    return read_s64(c, f, &grown[m->version_count - 1]);
}

static const struct row specific_rows[] = {{"versions", read_version, 0}};

static enum ifd_code read_specific(struct context *c, const struct ifd_text_field *f, void *at)
{
    ((struct ifd_manifest *)at)->policy = IFD_MANIFEST_SPECIFIC;
    return READ_MESSAGE(c, f, specific_rows, at);
}

static const struct row policy_rows[] = {
    {"latest", read_latest, 0}, {"all", read_all, 0}, {"specific", read_specific, 0}};

static enum ifd_code read_policy(struct context *c, const struct ifd_text_field *f, void *at)
{
    return READ_MESSAGE(c, f, policy_rows, at);
}

/* ---- instances and parameters ---- */

static const struct row group_rows[] = {
    {"name", read_text, offsetof(struct ifd_manifest_group, name)},
    {"kind", read_text, offsetof(struct ifd_manifest_group, kind)},
    {"count", read_s32, offsetof(struct ifd_manifest_group, count)},
    {"gpus", NULL, 0},
    {"secondary_devices", NULL, 0},
    {"profile", NULL, 0},
    {"passive", NULL, 0},
    {"host_policy", NULL, 0},
    {"rate_limiter", NULL, 0},
};

static enum ifd_code read_group(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    struct ifd_manifest_group *grown = append(c, m->group, &m->group_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->group = grown;
    struct ifd_manifest_group *group = &grown[m->group_count - 1];
    *group = (struct ifd_manifest_group){.name = "", .kind = "KIND_CPU", .count = 1};
    enum ifd_code code = READ_MESSAGE(c, f, group_rows, group);
    if (!code && (group->count < 1 || group->count > 64)) {
        code = ifd_fail(c->err, IFD_INVALID, "%s:%u: count %d is not between 1 and 64", c->file,
                        f->line, group->count);
    }
    return code;
}

/* A map: entries { key: "k" value: … } of protocol buffers, or JSON's { "k": … }. */
static enum ifd_code read_entries(struct context *c, const struct ifd_text_field *f, void *at,
                                  enum ifd_code (*add)(struct context *c, void *at, const char *key,
                                                       const struct ifd_text_field *value))
{
    const struct ifd_text_field *key = NULL, *value = NULL;
    if (f->kind != IFD_TEXT_MESSAGE) {
        return fail_value(c, f, "a message");
    }
    for (const struct ifd_text_field *k = f->child; k; k = k->next) {
        key = strcmp(k->name, "key") == 0 && k->kind != IFD_TEXT_MESSAGE ? k : key;
        value = strcmp(k->name, "value") == 0 ? k : value;
    }
    if (key && value) {
        return add(c, at, key->text, value);
    }
    enum ifd_code code = IFD_OK;
    for (const struct ifd_text_field *k = f->child; k && !code; k = k->next) {
        code = add(c, at, k->name, k);
    }
    return code;
}

static const struct row value_rows[] = {{"string_value", read_text, 0}};

static enum ifd_code add_parameter(struct context *c, void *at, const char *key,
                                   const struct ifd_text_field *value)
{
    struct ifd_manifest *m = at;
    struct ifd_manifest_parameter *grown =
        append(c, m->parameter, &m->parameter_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->parameter = grown;
    struct ifd_manifest_parameter *parameter = &grown[m->parameter_count - 1];
    *parameter = (struct ifd_manifest_parameter){.key = key, .value = ""};
    if (value->kind != IFD_TEXT_MESSAGE) {
        parameter->value = value->text;
        return IFD_OK;
    }
    return READ_MESSAGE(c, value, value_rows, &parameter->value);
}

static enum ifd_code read_parameter(struct context *c, const struct ifd_text_field *f, void *at)
{
    return read_entries(c, f, at, add_parameter);
}

/* ---- batching ---- */

static enum ifd_code read_timeout_action(struct context *c, const struct ifd_text_field *f,
                                         void *at)
{
    bool is_reject = strcmp(f->text, "REJECT") == 0;
    if (!is_reject && strcmp(f->text, "DELAY") != 0) {
        return fail_value(c, f, "REJECT or DELAY");
    }
    *(bool *)at = is_reject;
    return IFD_OK;
}

#define QUEUE_MEMBER(member) offsetof(struct ifd_manifest_queue_policy, member)
static const struct row queue_rows[] = {
    {"timeout_action", read_timeout_action, QUEUE_MEMBER(timeout_rejects)},
    {"default_timeout_microseconds", read_u64, QUEUE_MEMBER(default_timeout_us)},
    {"allow_timeout_override", read_bool, QUEUE_MEMBER(allow_timeout_override)},
    {"max_queue_size", read_u32, QUEUE_MEMBER(max_queue_size)},
};
#undef QUEUE_MEMBER

static enum ifd_code read_queue(struct context *c, const struct ifd_text_field *f, void *at)
{
    return READ_MESSAGE(c, f, queue_rows, at);
}

static enum ifd_code add_level(struct context *c, void *at, const char *key,
                               const struct ifd_text_field *value)
{
    struct ifd_manifest *m = at;
    uint64_t priority = 0;
    if (!ifd_str_u64(ifd_str(key), &priority) || priority == 0 || priority > UINT32_MAX) {
        return ifd_fail(c->err, IFD_INVALID, "%s:%u: \"%.40s\" is not a priority level", c->file,
                        value->line, key);
    }
    for (uint32_t i = 0; i < m->level_policy_count; i++) {
        if (m->level_policy[i].priority == priority) {
            return ifd_fail(c->err, IFD_INVALID, "%s:%u: priority level %u has two policies",
                            c->file, value->line, m->level_policy[i].priority);
        }
    }
    struct ifd_manifest_level_policy *grown =
        append(c, m->level_policy, &m->level_policy_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->level_policy = grown;
    struct ifd_manifest_level_policy *level = &grown[m->level_policy_count - 1];
    *level = (struct ifd_manifest_level_policy){.priority = (uint32_t)priority,
                                                .policy = {.timeout_rejects = true}};
    return value->kind == IFD_TEXT_MESSAGE ? read_queue(c, value, &level->policy)
                                           : fail_value(c, value, "a message");
}

static enum ifd_code read_level(struct context *c, const struct ifd_text_field *f, void *at)
{
    return read_entries(c, f, at, add_level);
}

static enum ifd_code read_preferred(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    int32_t value = 0;
    enum ifd_code code = read_s32(c, f, &value);
    if (code) {
        return code;
    }
    int32_t *grown = append(c, m->preferred_batch_size, &m->preferred_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->preferred_batch_size = grown;
    uint32_t at_index = m->preferred_count - 1;
    for (; at_index > 0 && grown[at_index - 1] > value; at_index--) {
        grown[at_index] = grown[at_index - 1];
    }
    grown[at_index] = value;
    return IFD_OK;
}

static const struct row batching_rows[] = {
    {"preferred_batch_size", read_preferred, 0},
    {"max_queue_delay_microseconds", read_u64, offsetof(struct ifd_manifest, max_queue_delay_us)},
    {"preserve_ordering", read_bool, offsetof(struct ifd_manifest, preserve_ordering)},
    {"priority_levels", read_u32, offsetof(struct ifd_manifest, priority_levels)},
    {"default_priority_level", read_u32, offsetof(struct ifd_manifest, default_priority_level)},
    {"default_queue_policy", read_queue, offsetof(struct ifd_manifest, queue_policy)},
    {"priority_queue_policy", read_level, 0},
};

static enum ifd_code read_batching(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    m->dynamic_batching = true;
    enum ifd_code code = READ_MESSAGE(c, f, batching_rows, at);
    for (uint32_t i = 0; i < m->level_policy_count && !code; i++) {
        if (m->level_policy[i].priority > m->priority_levels) {
            code = ifd_fail(c->err, IFD_INVALID,
                            "%s:%u: priority_queue_policy of level %u: priority_levels is %u",
                            c->file, f->line, m->level_policy[i].priority, m->priority_levels);
        }
    }
    return code;
}

/* ---- warm-up ---- */

static enum ifd_code read_fill(struct context *c, const struct ifd_text_field *f,
                               struct ifd_manifest_warm_input *input, enum ifd_manifest_fill fill)
{
    bool is_so = false;
    enum ifd_code code = read_bool(c, f, &is_so);
    input->fill = is_so ? fill : input->fill;
    return code;
}

static enum ifd_code read_zeros(struct context *c, const struct ifd_text_field *f, void *at)
{
    return read_fill(c, f, at, IFD_MANIFEST_ZEROS);
}

static enum ifd_code read_random(struct context *c, const struct ifd_text_field *f, void *at)
{
    return read_fill(c, f, at, IFD_MANIFEST_RANDOM);
}

static enum ifd_code read_data_file(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest_warm_input *input = at;
    input->fill = IFD_MANIFEST_FILE;
    return read_text(c, f, &input->file);
}

static const struct row warm_input_rows[] = {
    {"data_type", read_dtype, 0},           {"dims", read_dim, 0},
    {"zero_data", read_zeros, 0},           {"random_data", read_random, 0},
    {"input_data_file", read_data_file, 0},
};

static enum ifd_code add_warm_input(struct context *c, void *at, const char *key,
                                    const struct ifd_text_field *value)
{
    struct ifd_manifest_warm_up *warm_up = at;
    struct ifd_manifest_warm_input *grown =
        append(c, warm_up->input, &warm_up->input_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    warm_up->input = grown;
    struct ifd_manifest_warm_input *input = &grown[warm_up->input_count - 1];
    *input = (struct ifd_manifest_warm_input){
        .tensor = {.name = key, .label_filename = "", .line = value->line}, .file = ""};
    if (value->kind != IFD_TEXT_MESSAGE) {
        return fail_value(c, value, "a message");
    }
    enum ifd_code code = READ_MESSAGE(c, value, warm_input_rows, input);
    for (uint32_t d = 0; d < input->tensor.dims.rank && !code; d++) {
        if (input->tensor.dims.dim[d] < 1) {
            code = fail_value(c, value, "a sample: its dims must be 1 or more");
        }
    }
    return code || input->tensor.has_dtype ? code : fail_value(c, value, "a sample: no data_type");
}

static enum ifd_code read_warm_input(struct context *c, const struct ifd_text_field *f, void *at)
{
    return read_entries(c, f, at, add_warm_input);
}

#define WARM_MEMBER(member) offsetof(struct ifd_manifest_warm_up, member)
static const struct row warm_up_rows[] = {
    {"name", read_text, WARM_MEMBER(name)},
    {"batch_size", read_u32, WARM_MEMBER(batch_size)},
    {"count", read_u32, WARM_MEMBER(count)},
    {"inputs", read_warm_input, 0},
};
#undef WARM_MEMBER

static enum ifd_code read_warm_up(struct context *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_manifest *m = at;
    struct ifd_manifest_warm_up *grown = append(c, m->warm_up, &m->warm_up_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->warm_up = grown;
    struct ifd_manifest_warm_up *warm_up = &grown[m->warm_up_count - 1];
    *warm_up = (struct ifd_manifest_warm_up){.name = "", .batch_size = 1, .count = 1};
    enum ifd_code code = f->kind == IFD_TEXT_MESSAGE ? READ_MESSAGE(c, f, warm_up_rows, warm_up)
                                                     : fail_value(c, f, "a message");
    if (!code && (warm_up->count > 100000 || warm_up->batch_size == 0)) {
        code = ifd_fail(c->err, IFD_INVALID,
                        "%s:%u: model_warmup: batch_size is 1 or more, count at most 100000",
                        c->file, f->line);
    }
    return code;
}

/* ---- the rest ---- */

static enum ifd_code read_decoupled(struct context *c, const struct ifd_text_field *f, void *at)
{
    bool is_decoupled = false;
    enum ifd_code code = read_bool(c, f, &is_decoupled);
    return !code && is_decoupled ? refuse(c, f, at) : code;
}

static const struct row transaction_rows[] = {{"decoupled", read_decoupled, 0}};

static enum ifd_code read_transaction(struct context *c, const struct ifd_text_field *f, void *at)
{
    return READ_MESSAGE(c, f, transaction_rows, at);
}

/* ---- the whole ---- */

static const struct row model_rows[] = {
    {"name", read_text, offsetof(struct ifd_manifest, name)},
    {"platform", read_text, offsetof(struct ifd_manifest, platform)},
    {"backend", read_text, offsetof(struct ifd_manifest, backend)},
    {"default_model_filename", read_text, offsetof(struct ifd_manifest, default_model_filename)},
    {"max_batch_size", read_s32, offsetof(struct ifd_manifest, max_batch_size)},
    {"input", read_input, 0},
    {"output", read_output, 0},
    {"version_policy", read_policy, 0},
    {"instance_group", read_group, 0},
    {"parameters", read_parameter, 0},
    {"dynamic_batching", read_batching, 0},
    {"model_transaction_policy", read_transaction, 0},
    {"sequence_batching", refuse, 0},
    {"ensemble_scheduling", refuse, 0},
    {"optimization", NULL, 0},
    {"response_cache", NULL, 0},
    {"model_warmup", read_warm_up, 0},
    {"cc_model_filenames", NULL, 0},
    {"metric_tags", NULL, 0},
    {"model_metrics", NULL, 0},
    {"model_operations", NULL, 0},
    {"model_repository_agents", NULL, 0},
    {"batch_input", NULL, 0},
    {"batch_output", NULL, 0},
    {"runtime", NULL, 0},
};

static void warn(struct context *c, const struct ifd_text_field *f, const char *what)
{
    char text[IFD_ERR_TEXT_BYTES];
    (void)snprintf(text, sizeof(text), "%s:%u: field \"%.100s\" %s", c->file, f->line, f->name,
                   what);
    if (c->warnings) {
        c->warnings->warn(c->warnings->context, text);
    }
}

static enum ifd_code read_rows(struct context *c, const struct ifd_text_field *f,
                               const struct row *row, size_t rows, void *base)
{
    enum ifd_code code = IFD_OK;
    for (; f && !code; f = f->next) {
        size_t i = 0;
        while (i < rows && strcmp(f->name, row[i].name) != 0) {
            i++;
        }
        if (i == rows) {
            warn(c, f, "is unknown");
        } else if (!row[i].read) {
            warn(c, f, "has no effect here");
        } else {
            code = row[i].read(c, f, (char *)base + row[i].offset);
        }
    }
    return code;
}

void ifd_manifest_init(struct ifd_manifest *manifest)
{
    *manifest = (struct ifd_manifest){.name = "",
                                      .platform = "",
                                      .backend = "",
                                      .default_model_filename = "",
                                      .latest_count = 1,
                                      .queue_policy.timeout_rejects = true};
}

enum ifd_code ifd_manifest_read(struct ifd_str text, const char *file_name, struct ifd_arena *arena,
                                const struct ifd_manifest_warnings *warnings,
                                struct ifd_manifest *ret, struct ifd_err *err)
{
    struct context c = {.file = file_name, .arena = arena, .warnings = warnings, .err = err};
    const struct ifd_text_field *first = NULL;
    struct ifd_manifest manifest;
    ifd_manifest_init(&manifest);
    enum ifd_code code = ifd_text_parse(text, file_name, arena, &first, err);
    if (!code) {
        code =
            read_rows(&c, first, model_rows, sizeof(model_rows) / sizeof(model_rows[0]), &manifest);
    }
    if (!code) {
        *ret = manifest;
    }
    return code;
}

const char *ifd_manifest_parameter(const struct ifd_manifest *manifest, const char *key)
{
    for (uint32_t i = 0; i < manifest->parameter_count; i++) {
        if (strcmp(manifest->parameter[i].key, key) == 0) {
            return manifest->parameter[i].value;
        }
    }
    return NULL;
}
