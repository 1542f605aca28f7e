/* A version's manifest and file as the API describes them. */
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/serve/picture.h"
#include "server/repo/labels.h"
#include "server/serve/served.h"

static enum ifd_code load_labels(struct ifd_version *version,
                                 const struct ifd_manifest_tensor *tensor,
                                 const struct ifd_port *port, struct ifd_tensor_info *info,
                                 struct ifd_err *err)
{
    if (tensor->label_filename[0] == '\0') {
        info->labels = port ? port->labels : NULL;
        info->label_count = port ? port->label_count : 0;
        return IFD_OK;
    }
    if (!ifd_folder_is_inside(ifd_str(tensor->label_filename))) {
        return ifd_fail(err, IFD_INVALID, "label_filename \"%.100s\" leaves the model's folder",
                        tensor->label_filename);
    }
    return ifd_labels_read(version->source, tensor->label_filename, &version->arena, &info->labels,
                           &info->label_count, err);
}

static struct ifd_tensor_info plain_info(const struct ifd_manifest_tensor *tensor,
                                         const struct ifd_port *port)
{
    static const enum ifd_tensor_format formats[] = {IFD_FORMAT_NONE, IFD_FORMAT_NHWC,
                                                     IFD_FORMAT_NCHW};
    struct ifd_tensor_info info = {.name = tensor->name,
                                   .dtype = tensor->dtype,
                                   .shape = tensor->dims,
                                   .format = formats[tensor->format],
                                   .optional = tensor->is_optional,
                                   .label_filename = tensor->label_filename};
    if (port && port->desc.quant.count == 1) {
        info.scale = port->desc.quant.scale[0];
        info.zero_point = port->desc.quant.zero_point[0];
    }
    return info;
}

static enum ifd_code describe_tensors(struct ifd_version *version, struct ifd_model_desc *desc,
                                      struct ifd_err *err)
{
    const struct ifd_manifest *m = &version->manifest;
    const struct ifd_model_info *file = version->engine ? ifd_model_info(version->engine) : NULL;
    struct ifd_arena *arena = &version->arena;
    struct ifd_tensor_info *input = ifd_arena_take_array(arena, m->input_count, sizeof(*input));
    struct ifd_tensor_info *output = ifd_arena_take_array(arena, m->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(arena, m->input_count * sizeof(*input), err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < m->input_count && !code; i++) {
        const struct ifd_port *port = file ? &file->input[i] : NULL;
        input[i] = plain_info(&m->input[i], port);
        code = ifd_picture_rule(m, &m->input[i], port, m->max_batch_size > 0, &input[i].image, err);
        if (input[i].image.has_image && input[i].format == IFD_FORMAT_NONE) {
            input[i].format = IFD_FORMAT_NHWC;
        }
    }
    for (uint32_t i = 0; i < m->output_count && !code; i++) {
        const struct ifd_port *port = file ? &file->output[i] : NULL;
        output[i] = plain_info(&m->output[i], port);
        code = load_labels(version, &m->output[i], port, &output[i], err);
    }
    desc->input = input;
    desc->output = output;
    desc->input_count = m->input_count;
    desc->output_count = m->output_count;
    return code;
}

static enum ifd_code describe_groups(struct ifd_version *version, struct ifd_model_desc *desc,
                                     struct ifd_err *err)
{
    const struct ifd_manifest *m = &version->manifest;
    struct ifd_arena *arena = &version->arena;
    uint32_t count = m->group_count > 0 ? m->group_count : 1;
    size_t name_size = strlen(version->name) + 12;
    struct ifd_instance_group_info *group = ifd_arena_take_array(arena, count, sizeof(*group));
    if (!group) {
        return ifd_arena_fail(arena, count * sizeof(*group), err);
    }
    group[0] = (struct ifd_instance_group_info){.name = "", .kind = "KIND_CPU", .count = 1};
    for (uint32_t i = 0; i < count; i++) {
        if (i < m->group_count) {
            group[i] = (struct ifd_instance_group_info){
                .name = m->group[i].name, .kind = "KIND_CPU", .count = m->group[i].count};
        }
        char *name = ifd_arena_take(arena, name_size);
        if (!name) {
            return ifd_arena_fail(arena, name_size, err);
        }
        (void)snprintf(name, name_size, "%s_%u", version->name, i);
        group[i].name = group[i].name[0] ? group[i].name : name;
    }
    desc->instance_group = group;
    desc->instance_group_count = count;
    return IFD_OK;
}

static enum ifd_code describe_parameters(struct ifd_version *version, struct ifd_model_desc *desc,
                                         struct ifd_err *err)
{
    const struct ifd_manifest *m = &version->manifest;
    struct ifd_parameter_info *parameter =
        ifd_arena_take_array(&version->arena, m->parameter_count, sizeof(*parameter));
    if (!parameter) {
        return ifd_arena_fail(&version->arena, m->parameter_count * sizeof(*parameter), err);
    }
    for (uint32_t i = 0; i < m->parameter_count; i++) {
        parameter[i] =
            (struct ifd_parameter_info){.key = m->parameter[i].key, .value = m->parameter[i].value};
    }
    desc->parameter = parameter;
    desc->parameter_count = m->parameter_count;
    return IFD_OK;
}

static struct ifd_queue_policy_info policy_of(const struct ifd_manifest_queue_policy *policy)
{
    return (struct ifd_queue_policy_info){.reject = policy->timeout_rejects,
                                          .default_timeout_us = policy->default_timeout_us,
                                          .allow_timeout_override = policy->allow_timeout_override,
                                          .max_queue_size = policy->max_queue_size};
}

static enum ifd_code describe_levels(struct ifd_version *version, struct ifd_model_desc *desc,
                                     struct ifd_err *err)
{
    const struct ifd_manifest *m = &version->manifest;
    struct ifd_level_policy_info *level =
        ifd_arena_take_array(&version->arena, m->level_policy_count, sizeof(*level));
    if (!level) {
        return ifd_arena_fail(&version->arena, m->level_policy_count * sizeof(*level), err);
    }
    for (uint32_t i = 0; i < m->level_policy_count; i++) {
        level[i] = (struct ifd_level_policy_info){.priority = m->level_policy[i].priority,
                                                  .policy = policy_of(&m->level_policy[i].policy)};
    }
    desc->level_policy = level;
    desc->level_policy_count = m->level_policy_count;
    return IFD_OK;
}

static enum ifd_code describe_warm_up(struct ifd_version *version,
                                      const struct ifd_manifest_warm_up *from,
                                      struct ifd_warm_up_info *ret, struct ifd_err *err)
{
    static const enum ifd_warm_fill fills[] = {IFD_WARM_ZEROS, IFD_WARM_RANDOM, IFD_WARM_FILE};
    struct ifd_warm_input_info *input =
        ifd_arena_take_array(&version->arena, from->input_count, sizeof(*input));
    if (!input) {
        return ifd_arena_fail(&version->arena, from->input_count * sizeof(*input), err);
    }
    for (uint32_t i = 0; i < from->input_count; i++) {
        input[i] = (struct ifd_warm_input_info){.name = from->input[i].tensor.name,
                                                .file = from->input[i].file,
                                                .dtype = from->input[i].tensor.dtype,
                                                .shape = from->input[i].tensor.dims,
                                                .fill = fills[from->input[i].fill]};
    }
    *ret = (struct ifd_warm_up_info){.name = from->name,
                                     .batch_size = from->batch_size,
                                     .count = from->count,
                                     .input = input,
                                     .input_count = from->input_count};
    return IFD_OK;
}

static enum ifd_code describe_warm_ups(struct ifd_version *version, struct ifd_model_desc *desc,
                                       struct ifd_err *err)
{
    const struct ifd_manifest *m = &version->manifest;
    struct ifd_warm_up_info *warm_up =
        ifd_arena_take_array(&version->arena, m->warm_up_count, sizeof(*warm_up));
    enum ifd_code code =
        warm_up ? IFD_OK
                : ifd_arena_fail(&version->arena, m->warm_up_count * sizeof(*warm_up), err);
    for (uint32_t i = 0; i < m->warm_up_count && !code; i++) {
        code = describe_warm_up(version, &m->warm_up[i], &warm_up[i], err);
    }
    desc->warm_up = warm_up;
    desc->warm_up_count = m->warm_up_count;
    return code;
}

static void describe_batching(const struct ifd_manifest *m, struct ifd_model_desc *desc)
{
    desc->dynamic_batching = m->dynamic_batching;
    desc->preferred_batch_size = m->preferred_batch_size;
    desc->preferred_batch_size_count = m->preferred_count;
    desc->max_queue_delay_us = m->max_queue_delay_us;
    desc->preserve_ordering = m->preserve_ordering;
    desc->priority_levels = m->priority_levels;
    desc->default_priority_level = m->default_priority_level;
    desc->queue_policy = policy_of(&m->queue_policy);
    desc->policy_latest_count = m->latest_count;
    desc->policy_versions = m->version;
    desc->policy_version_count = m->version_count;
}

enum ifd_code ifd_describe(struct ifd_version *version, struct ifd_model_desc *ret,
                           struct ifd_err *err)
{
    const struct ifd_manifest *m = &version->manifest;
    struct ifd_model_desc desc = {
        .name = version->name,
        .version = version->number,
        .version_text = version->number_text,
        .platform = version->engine ? "tflite_inferd" : "identity",
        .backend = m->backend,
        .max_batch_size = m->max_batch_size,
        .default_model_filename = m->default_model_filename,
    };
    static const enum ifd_version_policy policies[] = {IFD_POLICY_LATEST, IFD_POLICY_ALL,
                                                       IFD_POLICY_SPECIFIC};
    desc.version_policy = policies[m->policy];
    describe_batching(m, &desc);
    enum ifd_code code = describe_tensors(version, &desc, err);
    if (!code) {
        code = describe_groups(version, &desc, err);
    }
    if (!code) {
        code = describe_parameters(version, &desc, err);
    }
    if (!code) {
        code = describe_levels(version, &desc, err);
    }
    if (!code) {
        code = describe_warm_ups(version, &desc, err);
    }
    if (!code) {
        *ret = desc;
    }
    return code;
}
