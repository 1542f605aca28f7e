/* Metadata, readiness and configuration of a model, with Triton's names. */
#include "api/http/handlers.h"

#include <stdio.h>
#include <string.h>

/* Pins the model, or answers why not. */
static const struct ifd_model_desc *acquire(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    enum ifd_code code = ifd_call_acquire(&call->core, &err);
    if (code != IFD_OK) {
        ifd_http_fail(call, code, &err);
        return NULL;
    }
    return ifd_http_ops(call)->describe(call->core.ref);
}

static void put_dims(struct ifd_json_out *out, const char *key, const struct ifd_shape *shape,
                     bool batched)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, '[');
    if (batched) {
        ifd_json_put_s64(out, IFD_DIM_ANY);
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        ifd_json_put_s64(out, shape->dim[i]);
    }
    ifd_json_end(out, ']');
}

/* ---- metadata ---- */

static void put_tensors(struct ifd_json_out *out, const char *key,
                        const struct ifd_tensor_info *info, uint32_t count, bool batched)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (info[i].is_hidden) {
            continue;
        }
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "name", info[i].name);
        ifd_json_member_text(out, "datatype", ifd_dtype_wire_name(info[i].dtype));
        put_dims(out, "shape", &info[i].shape, batched);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

/* All ready versions, or the one in the path. */
static void put_versions(struct ifd_json_out *out, const struct ifd_model_desc *desc, bool only_one)
{
    ifd_json_key(out, "versions");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->version_count && !only_one; i++) {
        ifd_json_put_text(out, desc->versions[i]);
    }
    if (only_one) {
        ifd_json_put_text(out, desc->version_text);
    }
    ifd_json_end(out, ']');
}

void ifd_handle_model_metadata(struct ifd_http_call *call)
{
    struct ifd_json_out out;
    const struct ifd_model_desc *desc = acquire(call);
    if (!desc) {
        return;
    }
    const bool batched = desc->max_batch_size > 0;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "name", desc->name);
    put_versions(&out, desc, call->core.version != 0);
    ifd_json_member_text(&out, "platform", desc->platform);
    put_tensors(&out, "inputs", desc->input, desc->input_count, batched);
    put_tensors(&out, "outputs", desc->output, desc->output_count, batched);
    ifd_json_end(&out, '}');
    ifd_http_json(call, 200, &out);
}

/* "Not ready" is 400, as clients of Triton expect; the body has the reason. */
void ifd_handle_model_ready(struct ifd_http_call *call)
{
    struct ifd_json_out out;
    struct ifd_err why = {0};
    bool is_ready = ifd_call_acquire(&call->core, &why) == IFD_OK;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "name", call->core.model.data);
    ifd_json_member_bool(&out, "ready", is_ready);
    if (!is_ready) {
        ifd_json_member_text(&out, "error", why.text);
    }
    ifd_json_end(&out, '}');
    ifd_http_json(call, is_ready ? 200 : 400, &out);
}

/* ---- config: the members of Triton's model_config.proto, defaults included ---- */

static void put_empty(struct ifd_json_out *out, const char *key, const char *brackets)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, brackets[0]);
    ifd_json_end(out, brackets[1]);
}

/* "TYPE_FP32"; BYTES are strings there. */
static void put_data_type(struct ifd_json_out *out, enum ifd_dtype dtype)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "TYPE_%s",
                   dtype == IFD_STR ? "STRING" : ifd_dtype_wire_name(dtype));
    ifd_json_member_text(out, "data_type", text);
}

static const char *format_name(enum ifd_tensor_format format)
{
    static const char *const names[] = {
#define X(id, name) name,
        IFD_TENSOR_FORMATS(X)
#undef X
    };
    return names[format];
}

static void put_reshape(struct ifd_json_out *out, const struct ifd_tensor_info *tensor)
{
    if (tensor->has_reshape) {
        ifd_json_key(out, "reshape");
        ifd_json_begin(out, '{');
        put_dims(out, "shape", &tensor->reshape, false);
        ifd_json_end(out, '}');
    }
}

static void put_input_configs(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "input");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->input_count; i++) {
        const struct ifd_tensor_info *input = &desc->input[i];
        if (input->is_hidden) {
            continue;
        }
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "name", input->name);
        put_data_type(out, input->dtype);
        ifd_json_member_text(out, "format", format_name(input->format));
        put_dims(out, "dims", &input->shape, false);
        put_reshape(out, input);
        ifd_json_member_bool(out, "is_shape_tensor", false);
        ifd_json_member_bool(out, "allow_ragged_batch", false);
        ifd_json_member_bool(out, "optional", input->optional);
        ifd_json_member_bool(out, "is_non_linear_format_io", false);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void put_output_configs(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "output");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->output_count; i++) {
        const struct ifd_tensor_info *output = &desc->output[i];
        if (output->is_hidden) {
            continue;
        }
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "name", output->name);
        put_data_type(out, output->dtype);
        put_dims(out, "dims", &output->shape, false);
        put_reshape(out, output);
        ifd_json_member_text(out, "label_filename",
                             output->label_filename ? output->label_filename : "");
        ifd_json_member_bool(out, "is_shape_tensor", false);
        ifd_json_member_bool(out, "is_non_linear_format_io", false);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void put_version_policy(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "version_policy");
    ifd_json_begin(out, '{');
    if (desc->version_policy == IFD_POLICY_ALL) {
        put_empty(out, "all", "{}");
    } else if (desc->version_policy == IFD_POLICY_LATEST) {
        ifd_json_key(out, "latest");
        ifd_json_begin(out, '{');
        ifd_json_member_u64(out, "num_versions", desc->policy_latest_count);
        ifd_json_end(out, '}');
    } else {
        ifd_json_key(out, "specific");
        ifd_json_begin(out, '{');
        ifd_json_key(out, "versions");
        ifd_json_begin(out, '[');
        for (uint32_t i = 0; i < desc->policy_version_count; i++) {
            ifd_json_put_s64(out, desc->policy_versions[i]);
        }
        ifd_json_end(out, ']');
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, '}');
}

static void put_pinned_memory(struct ifd_json_out *out, const char *key)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, '{');
    ifd_json_member_bool(out, "enable", false);
    ifd_json_end(out, '}');
}

static void put_optimization(struct ifd_json_out *out)
{
    ifd_json_key(out, "optimization");
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "priority", "PRIORITY_DEFAULT");
    put_pinned_memory(out, "input_pinned_memory");
    put_pinned_memory(out, "output_pinned_memory");
    ifd_json_member_u64(out, "gather_kernel_buffer_threshold", 0);
    ifd_json_member_bool(out, "eager_batching", false);
    ifd_json_end(out, '}');
}

static void put_queue_policy(struct ifd_json_out *out, const char *key,
                             const struct ifd_queue_policy_info *policy)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "timeout_action", policy->reject ? "REJECT" : "DELAY");
    ifd_json_member_u64(out, "default_timeout_microseconds", policy->default_timeout_us);
    ifd_json_member_bool(out, "allow_timeout_override", policy->allow_timeout_override);
    ifd_json_member_u64(out, "max_queue_size", policy->max_queue_size);
    ifd_json_end(out, '}');
}

static void put_control(struct ifd_json_out *out, const struct ifd_control_info *control)
{
    static const char *const kinds[] = {
        [IFD_CONTROL_START] = "CONTROL_SEQUENCE_START",
        [IFD_CONTROL_END] = "CONTROL_SEQUENCE_END",
        [IFD_CONTROL_READY] = "CONTROL_SEQUENCE_READY",
        [IFD_CONTROL_ID] = "CONTROL_SEQUENCE_CORRID",
    };
    const enum ifd_dtype dtype = control->tensor.dtype;
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "kind", kinds[control->kind]);
    if (control->kind == IFD_CONTROL_ID) {
        put_data_type(out, dtype);
    } else {
        ifd_json_key(out, dtype == IFD_F32    ? "fp32_false_true"
                          : dtype == IFD_BOOL ? "bool_false_true"
                                              : "int32_false_true");
        ifd_json_begin(out, '[');
        for (int i = 0; i < 2; i++) {
            if (dtype == IFD_BOOL) {
                ifd_json_put_bool(out, control->value[i] != 0);
            } else if (dtype == IFD_F32) {
                ifd_json_put_rounded(out, control->value[i], 6);
            } else {
                ifd_json_put_s64(out, (int64_t)control->value[i]);
            }
        }
        ifd_json_end(out, ']');
    }
    ifd_json_end(out, '}');
}

static void put_controls(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "control_input");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->control_count; i++) {
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "name", desc->control[i].tensor.name);
        ifd_json_key(out, "control");
        ifd_json_begin(out, '[');
        put_control(out, &desc->control[i]);
        ifd_json_end(out, ']');
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void put_sequences(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    if (!desc->has_sequences) {
        return;
    }
    ifd_json_key(out, "sequence_batching");
    ifd_json_begin(out, '{');
    ifd_json_key(out, "max_sequence_idle_microseconds");
    ifd_json_put_u64(out, desc->max_sequence_idle_us);
    ifd_json_key(out, "state");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->state_count; i++) {
        const struct ifd_tensor_info *input = &desc->input[desc->state[i].input];
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "input_name", input->name);
        ifd_json_member_text(out, "output_name", desc->state[i].output_name);
        put_data_type(out, input->dtype);
        put_dims(out, "dims", &input->shape, false);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
    put_controls(out, desc);
    put_empty(out, "direct", "{}");
    ifd_json_end(out, '}');
}

static void put_dynamic_batching(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    if (!desc->dynamic_batching) {
        return;
    }
    ifd_json_key(out, "dynamic_batching");
    ifd_json_begin(out, '{');
    ifd_json_key(out, "preferred_batch_size");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->preferred_batch_size_count; i++) {
        ifd_json_put_s64(out, desc->preferred_batch_size[i]);
    }
    ifd_json_end(out, ']');
    ifd_json_member_u64(out, "max_queue_delay_microseconds", desc->max_queue_delay_us);
    ifd_json_member_bool(out, "preserve_ordering", desc->preserve_ordering);
    ifd_json_member_u64(out, "priority_levels", desc->priority_levels);
    ifd_json_member_u64(out, "default_priority_level", desc->default_priority_level);
    put_queue_policy(out, "default_queue_policy", &desc->queue_policy);
    ifd_json_key(out, "priority_queue_policy");
    ifd_json_begin(out, '{');
    for (uint32_t i = 0; i < desc->level_policy_count; i++) {
        char priority[16];
        (void)snprintf(priority, sizeof(priority), "%u", desc->level_policy[i].priority);
        put_queue_policy(out, priority, &desc->level_policy[i].policy);
    }
    ifd_json_end(out, '}');
    ifd_json_end(out, '}');
}

static void put_warm_input(struct ifd_json_out *out, const struct ifd_warm_input_info *input)
{
    ifd_json_key(out, input->tensor.name);
    ifd_json_begin(out, '{');
    put_data_type(out, input->tensor.dtype);
    put_dims(out, "dims", &input->tensor.shape, false);
    if (input->fill == IFD_WARM_FILE) {
        ifd_json_member_text(out, "input_data_file", input->file);
    } else {
        ifd_json_member_bool(out, input->fill == IFD_WARM_RANDOM ? "random_data" : "zero_data",
                             true);
    }
    ifd_json_end(out, '}');
}

static void put_warm_ups(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "model_warmup");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->warm_up_count; i++) {
        const struct ifd_warm_up_info *warm_up = &desc->warm_up[i];
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "name", warm_up->name);
        ifd_json_member_u64(out, "batch_size", warm_up->batch_size);
        ifd_json_key(out, "inputs");
        ifd_json_begin(out, '{');
        for (uint32_t k = 0; k < warm_up->input_count; k++) {
            put_warm_input(out, &warm_up->input[k]);
        }
        ifd_json_end(out, '}');
        ifd_json_member_u64(out, "count", warm_up->count);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void put_rate_limiter(struct ifd_json_out *out, const struct ifd_instance_group_info *group)
{
    if (group->priority > 0) {
        ifd_json_key(out, "rate_limiter");
        ifd_json_begin(out, '{');
        put_empty(out, "resources", "[]");
        ifd_json_member_u64(out, "priority", group->priority);
        ifd_json_end(out, '}');
    }
}

static void put_instance_groups(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "instance_group");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < desc->instance_group_count; i++) {
        const struct ifd_instance_group_info *group = &desc->instance_group[i];
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "name", group->name);
        ifd_json_member_text(out, "kind", "KIND_CPU");
        ifd_json_member_s64(out, "count", group->count);
        put_empty(out, "gpus", "[]");
        put_empty(out, "secondary_devices", "[]");
        put_empty(out, "profile", "[]");
        ifd_json_member_bool(out, "passive", false);
        ifd_json_member_text(out, "host_policy", "");
        put_rate_limiter(out, group);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void put_parameters(struct ifd_json_out *out, const struct ifd_model_desc *desc)
{
    ifd_json_key(out, "parameters");
    ifd_json_begin(out, '{');
    for (uint32_t i = 0; i < desc->parameter_count; i++) {
        ifd_json_key(out, desc->parameter[i].key);
        ifd_json_begin(out, '{');
        ifd_json_member_text(out, "string_value", desc->parameter[i].value);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, '}');
}

void ifd_handle_model_config(struct ifd_http_call *call)
{
    struct ifd_json_out out;
    const struct ifd_model_desc *desc = acquire(call);
    if (!desc) {
        return;
    }
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "name", desc->name);
    ifd_json_member_text(&out, "platform", ""); /* "backend" has it, as in Triton's answers */
    ifd_json_member_text(&out, "backend", desc->backend);
    ifd_json_member_text(&out, "runtime", "");
    put_version_policy(&out, desc);
    ifd_json_member_s64(&out, "max_batch_size", desc->max_batch_size);
    put_input_configs(&out, desc);
    put_output_configs(&out, desc);
    put_empty(&out, "batch_input", "[]");
    put_empty(&out, "batch_output", "[]");
    put_optimization(&out);
    put_dynamic_batching(&out, desc);
    put_sequences(&out, desc);
    put_instance_groups(&out, desc);
    ifd_json_member_text(&out, "default_model_filename", desc->default_model_filename);
    put_empty(&out, "cc_model_filenames", "{}");
    put_empty(&out, "metric_tags", "{}");
    put_parameters(&out, desc);
    put_warm_ups(&out, desc);
    ifd_json_end(&out, '}');
    ifd_http_json(call, 200, &out);
}
