/* The fields of a model config: one row each. Those of its tensors are in manifest_tensor.c. */
#include "server/repo/manifest_impl.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/model/parameters.h"

/* ---- version policy ---- */

static const struct ifd_field_row latest_rows[] = {
    {"num_versions", ifd_field_u32, offsetof(struct ifd_model_desc, policy_latest_count)},
};

static enum ifd_code read_latest(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_model_desc *m = at;
    m->version_policy = IFD_POLICY_LATEST;
    enum ifd_code code = IFD_READ_MESSAGE(c, f, latest_rows, m);
    return !code && m->policy_latest_count == 0 ? ifd_field_fail(c, f, "1 version or more") : code;
}

static enum ifd_code read_all(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    ((struct ifd_model_desc *)at)->version_policy = IFD_POLICY_ALL;
    return ifd_field_message(c, f, NULL, 0, at);
}

static enum ifd_code read_version(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_model_desc *m = at;
    int64_t *grown =
        ifd_field_append(c, m->policy_versions, &m->policy_version_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->policy_versions = grown;
    return ifd_field_s64(c, f, &grown[m->policy_version_count - 1]);
}

static const struct ifd_field_row specific_rows[] = {{"versions", read_version, IFD_FIELD_EACH}};

static enum ifd_code read_specific(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    ((struct ifd_model_desc *)at)->version_policy = IFD_POLICY_SPECIFIC;
    return IFD_READ_MESSAGE(c, f, specific_rows, at);
}

static const struct ifd_field_row policy_rows[] = {
    {"latest", read_latest, 0}, {"all", read_all, 0}, {"specific", read_specific, 0}};

static enum ifd_code read_policy(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    if (f->child && f->child->next) {
        return ifd_field_fail(c, f, "one of latest, all and specific");
    }
    return IFD_READ_MESSAGE(c, f, policy_rows, at);
}

/* ---- instances and parameters ---- */

/* Backends decide where a model runs, whatever the kind says. */
static enum ifd_code read_kind(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    static const char *const kinds[] = {"KIND_AUTO", "KIND_CPU", "KIND_MODEL"};
    struct ifd_instance_group_info *group = at;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(f->text, kinds[i]) == 0) {
            return IFD_OK;
        }
    }
    if (strcmp(f->text, "KIND_GPU") != 0) {
        return ifd_field_fail(c, f, "KIND_AUTO, KIND_CPU, KIND_GPU or KIND_MODEL");
    }
    group->gpu_line = f->line;
    return IFD_OK;
}

static void warn_of_gpus(struct ifd_fields *c, const struct ifd_model_desc *m)
{
    const char *backends = ifd_desc_parameter(m, "backends");
    for (uint32_t i = 0; i < m->instance_group_count && !(backends && strstr(backends, "Gpu"));
         i++) {
        const struct ifd_text_field field = {.name = "kind", .line = m->instance_group[i].gpu_line};
        if (field.line > 0) {
            ifd_field_warn(c, &field,
                           "is KIND_GPU, which has no effect here; what runs the model on a GPU: "
                           "parameters { key: \"backends\" value { string_value: "
                           "\"GpuAcc,CpuAcc,CpuRef\" } }");
        }
    }
}

static enum ifd_code read_priority(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    uint32_t priority = 0;
    const enum ifd_code code = ifd_field_u32(c, f, &priority);
    if (!code && priority > IFD_PRIORITY_MAX) {
        return ifd_fail(c->err, IFD_INVALID, "%s:%u: priority %u is more than %d", c->file, f->line,
                        priority, IFD_PRIORITY_MAX);
    }
    *(uint32_t *)at = priority > 0 ? priority : 1; /* as Triton reads 0 */
    return code;
}

static const struct ifd_field_row limiter_rows[] = {
    {"priority", read_priority, offsetof(struct ifd_instance_group_info, priority)},
    {"resources", NULL, 0},
};

static enum ifd_code read_limiter(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return IFD_READ_MESSAGE(c, f, limiter_rows, at);
}

static const struct ifd_field_row group_rows[] = {
    {"name", ifd_field_text, offsetof(struct ifd_instance_group_info, name)},
    {"kind", read_kind, 0},
    {"count", ifd_field_s32, offsetof(struct ifd_instance_group_info, count)},
    {"gpus", NULL, 0},
    {"secondary_devices", NULL, 0},
    {"profile", NULL, 0},
    {"passive", NULL, 0},
    {"host_policy", NULL, 0},
    {"rate_limiter", read_limiter, 0},
};

static enum ifd_code read_group(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_model_desc *m = at;
    struct ifd_instance_group_info *grown =
        ifd_field_append(c, m->instance_group, &m->instance_group_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->instance_group = grown;
    struct ifd_instance_group_info *group = &grown[m->instance_group_count - 1];
    *group = (struct ifd_instance_group_info){.name = "", .count = 1};
    enum ifd_code code = IFD_READ_MESSAGE(c, f, group_rows, group);
    if (code) {
        return code;
    }
    int64_t all = 0;
    for (uint32_t i = 0; i < m->instance_group_count; i++) {
        all += grown[i].count;
    }
    return group->count >= 1 && all <= IFD_INSTANCES_MAX
               ? IFD_OK
               : ifd_fail(c->err, IFD_INVALID,
                          "%s:%u: count %d makes %lld instances, 1 to %d are possible", c->file,
                          f->line, group->count, (long long)all, IFD_INSTANCES_MAX);
}

static const struct ifd_field_row value_rows[] = {{"string_value", ifd_field_text, 0}};

static enum ifd_code add_parameter(struct ifd_fields *c, void *at, const char *key,
                                   const struct ifd_text_field *value)
{
    struct ifd_model_desc *m = at;
    if (ifd_desc_parameter(m, key)) {
        return ifd_fail(c->err, IFD_INVALID, "%s:%u: parameter \"%.100s\" twice", c->file,
                        value->line, key);
    }
    struct ifd_parameter_info *grown =
        ifd_field_append(c, m->parameter, &m->parameter_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->parameter = grown;
    struct ifd_parameter_info *parameter = &grown[m->parameter_count - 1];
    *parameter = (struct ifd_parameter_info){.key = key, .value = ""};
    if (value->kind != IFD_TEXT_MESSAGE) {
        parameter->value = value->text;
        return IFD_OK;
    }
    return IFD_READ_MESSAGE(c, value, value_rows, &parameter->value);
}

static enum ifd_code read_parameter(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return ifd_field_entries(c, f, at, add_parameter);
}

/* ---- batching ---- */

static enum ifd_code read_timeout_action(struct ifd_fields *c, const struct ifd_text_field *f,
                                         void *at)
{
    bool is_reject = strcmp(f->text, "REJECT") == 0;
    if (!is_reject && strcmp(f->text, "DELAY") != 0) {
        return ifd_field_fail(c, f, "REJECT or DELAY");
    }
    *(bool *)at = is_reject;
    return IFD_OK;
}

#define QUEUE_MEMBER(member) offsetof(struct ifd_queue_policy_info, member)
static const struct ifd_field_row queue_rows[] = {
    {"timeout_action", read_timeout_action, QUEUE_MEMBER(reject)},
    {"default_timeout_microseconds", ifd_field_u64, QUEUE_MEMBER(default_timeout_us)},
    {"allow_timeout_override", ifd_field_bool, QUEUE_MEMBER(allow_timeout_override)},
    {"max_queue_size", ifd_field_u32, QUEUE_MEMBER(max_queue_size)},
};
#undef QUEUE_MEMBER

static enum ifd_code read_queue(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return IFD_READ_MESSAGE(c, f, queue_rows, at);
}

static enum ifd_code add_level(struct ifd_fields *c, void *at, const char *key,
                               const struct ifd_text_field *value)
{
    struct ifd_model_desc *m = at;
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
    struct ifd_level_policy_info *grown =
        ifd_field_append(c, m->level_policy, &m->level_policy_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->level_policy = grown;
    struct ifd_level_policy_info *level = &grown[m->level_policy_count - 1];
    *level =
        (struct ifd_level_policy_info){.priority = (uint32_t)priority, .policy = {.reject = true}};
    return read_queue(c, value, &level->policy);
}

static enum ifd_code read_level(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return ifd_field_entries(c, f, at, add_level);
}

static enum ifd_code read_preferred(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_model_desc *m = at;
    int32_t value = 0;
    enum ifd_code code = ifd_field_s32(c, f, &value);
    if (code) {
        return code;
    }
    int32_t *grown = ifd_field_append(c, m->preferred_batch_size, &m->preferred_batch_size_count,
                                      sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->preferred_batch_size = grown;
    uint32_t at_index = m->preferred_batch_size_count - 1;
    for (; at_index > 0 && grown[at_index - 1] > value; at_index--) {
        grown[at_index] = grown[at_index - 1];
    }
    grown[at_index] = value;
    return IFD_OK;
}

static const struct ifd_field_row batching_rows[] = {
    {"preferred_batch_size", read_preferred, IFD_FIELD_EACH},
    {"max_queue_delay_microseconds", ifd_field_u64,
     offsetof(struct ifd_model_desc, max_queue_delay_us)},
    {"preserve_ordering", ifd_field_bool, offsetof(struct ifd_model_desc, preserve_ordering)},
    {"priority_levels", ifd_field_u32, offsetof(struct ifd_model_desc, priority_levels)},
    {"default_priority_level", ifd_field_u32,
     offsetof(struct ifd_model_desc, default_priority_level)},
    {"default_queue_policy", read_queue, offsetof(struct ifd_model_desc, queue_policy)},
    {"priority_queue_policy", read_level, IFD_FIELD_EACH},
};

static enum ifd_code read_batching(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_model_desc *m = at;
    m->dynamic_batching = true;
    enum ifd_code code = IFD_READ_MESSAGE(c, f, batching_rows, at);
    for (uint32_t i = 0; i < m->level_policy_count && !code; i++) {
        if (m->level_policy[i].priority > m->priority_levels) {
            code = ifd_fail(c->err, IFD_INVALID,
                            "%s:%u: priority_queue_policy of level %u: priority_levels is %u",
                            c->file, f->line, m->level_policy[i].priority, m->priority_levels);
        }
    }
    return code;
}

/* Checks that need all fields. */
static enum ifd_code check_batching(const struct ifd_model_desc *m, const char *file_name,
                                    struct ifd_err *err)
{
    for (uint32_t i = 0; i < m->preferred_batch_size_count; i++) {
        if (m->preferred_batch_size[i] < 1 || m->preferred_batch_size[i] > m->max_batch_size) {
            return ifd_fail(err, IFD_INVALID,
                            "%s: preferred_batch_size %d is not between 1 and max_batch_size, %d",
                            file_name, m->preferred_batch_size[i], m->max_batch_size);
        }
    }
    if (m->default_priority_level > m->priority_levels) {
        return ifd_fail(err, IFD_INVALID, "%s: default_priority_level %u: priority_levels is %u",
                        file_name, m->default_priority_level, m->priority_levels);
    }
    return IFD_OK;
}

/* ---- the rest ---- */

static const struct ifd_field_row transaction_rows[] = {{"decoupled", ifd_field_refuse_true, 0}};

static enum ifd_code read_transaction(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at)
{
    return IFD_READ_MESSAGE(c, f, transaction_rows, at);
}

/* ---- the whole ---- */

static const struct ifd_field_row model_rows[] = {
    {"name", ifd_field_text, offsetof(struct ifd_model_desc, name)},
    {"platform", ifd_field_text, offsetof(struct ifd_model_desc, platform)},
    {"backend", ifd_field_text, offsetof(struct ifd_model_desc, backend)},
    {"default_model_filename", ifd_field_text,
     offsetof(struct ifd_model_desc, default_model_filename)},
    {"max_batch_size", ifd_field_s32, offsetof(struct ifd_model_desc, max_batch_size)},
    {"input", ifd_manifest_read_input, IFD_FIELD_EACH},
    {"output", ifd_manifest_read_output, IFD_FIELD_EACH},
    {"version_policy", read_policy, 0},
    {"instance_group", read_group, IFD_FIELD_EACH},
    {"parameters", read_parameter, IFD_FIELD_EACH},
    {"dynamic_batching", read_batching, 0},
    {"model_transaction_policy", read_transaction, 0},
    {"sequence_batching", ifd_manifest_read_sequences, 0},
    {"ensemble_scheduling", ifd_field_refuse, 0},
    {"optimization", NULL, 0},
    {"response_cache", NULL, 0},
    {"model_warmup", ifd_manifest_read_warm_up, IFD_FIELD_EACH},
    {"cc_model_filenames", NULL, 0},
    {"metric_tags", NULL, 0},
    {"model_metrics", NULL, 0},
    {"model_operations", NULL, 0},
    {"model_repository_agents", ifd_field_refuse, 0}, /* they check or change files */
    {"batch_input", NULL, 0},
    {"batch_output", NULL, 0},
    {"runtime", NULL, 0},
};

void ifd_manifest_init(struct ifd_model_desc *manifest)
{
    *manifest = (struct ifd_model_desc){.name = "",
                                        .platform = "",
                                        .backend = "",
                                        .default_model_filename = "",
                                        .policy_latest_count = 1,
                                        .max_sequence_idle_us = 1000000,
                                        .max_sequences = 256,
                                        .queue_policy.reject = true};
}

enum ifd_code ifd_manifest_read(struct ifd_str text, const char *file_name, struct ifd_arena *arena,
                                const struct ifd_manifest_warnings *warnings,
                                struct ifd_model_desc *ret, struct ifd_err *err)
{
    struct ifd_fields c = {.file = file_name, .arena = arena, .warnings = warnings, .err = err};
    const struct ifd_text_field *first = NULL;
    struct ifd_model_desc manifest;
    ifd_manifest_init(&manifest);
    enum ifd_code code = ifd_text_parse(text, file_name, arena, &first, err);
    if (!code) {
        code = ifd_field_rows(&c, first, model_rows, sizeof(model_rows) / sizeof(model_rows[0]),
                              &manifest);
    }
    if (!code) {
        code = check_batching(&manifest, file_name, err);
    }
    if (!code) {
        warn_of_gpus(&c, &manifest);
        *ret = manifest;
    }
    return code;
}
