/* Compares a config with its model file. */
#include "server/repo/complete.h"

#include <stdio.h>
#include <string.h>

#include "server/model/reshape.h"

struct side {
    const char *word; /* "input", "output" */
    bool is_output;
    const struct ifd_port *port;
    uint32_t port_count;
    const struct ifd_tensor_info **tensor;
    uint32_t *count;
};

struct text {
    char s[200];
};

/* "[1,224,224,3]" */
static struct text shape_text(const struct ifd_shape *shape)
{
    struct text text = {.s = "["};
    size_t used = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        used += (size_t)snprintf(text.s + used, sizeof(text.s) - used, "%s%lld", d ? "," : "",
                                 (long long)shape->dim[d]);
    }
    (void)snprintf(text.s + used, sizeof(text.s) - used, "]");
    return text;
}

/* Shape of a port in the form of a config. */
static struct ifd_shape port_dims(const struct ifd_port *port, bool has_batch)
{
    struct ifd_shape dims = port->desc.shape;
    if (has_batch) {
        dims = (struct ifd_shape){.rank = dims.rank - 1};
        for (uint32_t d = 0; d < dims.rank; d++) {
            dims.dim[d] = port->desc.shape.dim[d + 1];
        }
    }
    return dims;
}

/* Dimension 0 of a port whose batch is free may be fixed or left open by a config without
 * max_batch_size. */
static bool dims_agree(const struct ifd_shape *config, const struct ifd_shape *file,
                       bool first_is_free)
{
    if (config->rank != file->rank) {
        return false;
    }
    for (uint32_t d = 0; d < file->rank; d++) {
        bool is_free = file->dim[d] == IFD_DIM_ANY || (d == 0 && first_is_free);
        if (!is_free && config->dim[d] != file->dim[d]) {
            return false;
        }
    }
    return true;
}

/* The port of a name: a tensor's, else a signature's. */
static const struct ifd_port *port_of(const struct side *side, const char *name)
{
    for (uint32_t i = 0; i < side->port_count; i++) {
        if (strcmp(side->port[i].name, name) == 0) {
            return &side->port[i];
        }
    }
    for (uint32_t i = 0; i < side->port_count; i++) {
        if (side->port[i].signature_name && strcmp(side->port[i].signature_name, name) == 0) {
            return &side->port[i];
        }
    }
    return NULL;
}

static const struct ifd_tensor_info *find(const struct ifd_tensor_info *tensor, uint32_t count,
                                          const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(tensor[i].name, name) == 0) {
            return &tensor[i];
        }
    }
    return NULL;
}

/* What the first entries of the config say of a port. */
static const struct ifd_tensor_info *entry_of(const struct side *side, uint32_t count,
                                              const struct ifd_port *port)
{
    for (uint32_t i = 0; i < count; i++) {
        if (port_of(side, (*side->tensor)[i].name) == port) {
            return &(*side->tensor)[i];
        }
    }
    return NULL;
}

static enum ifd_code fail_twice(const struct ifd_tensor_info *tensor, const char *word,
                                struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID, "config line %u: %s \"%s\" is listed twice", tensor->line,
                    word, tensor->name);
}

static enum ifd_code check_names(const struct side *side, struct ifd_err *err)
{
    for (uint32_t i = 0; i < *side->count; i++) {
        const char *name = (*side->tensor)[i].name;
        const struct ifd_port *port = port_of(side, name);
        if (!port) {
            return ifd_fail(err, IFD_INVALID,
                            "config line %u: the model has no %s \"%s\"; its first %s is \"%s\"",
                            (*side->tensor)[i].line, side->word, name, side->word,
                            side->port_count > 0 ? side->port[0].name : "");
        }
        if (entry_of(side, i, port)) {
            return fail_twice(&(*side->tensor)[i], side->word, err);
        }
    }
    return IFD_OK;
}

/* A config may leave every dimension of an output open: what is known of it may be more than the
 * file says. */
static struct ifd_shape output_dims(const struct ifd_shape *config, struct ifd_shape known)
{
    for (uint32_t d = 0; d < known.rank && d < config->rank; d++) {
        known.dim[d] = config->dim[d] == IFD_DIM_ANY ? IFD_DIM_ANY : known.dim[d];
    }
    return known;
}

static enum ifd_code complete_tensor(const struct side *side, const struct ifd_port *port,
                                     bool has_batch, struct ifd_tensor_info *tensor,
                                     struct ifd_err *err)
{
    struct ifd_shape dims = port_dims(port, has_batch);
    if (tensor->has_dtype && tensor->dtype != port->desc.dtype) {
        return ifd_fail(err, IFD_INVALID, "config line %u: %s \"%s\" has type %s, the file says %s",
                        tensor->line, side->word, port->name, ifd_dtype_wire_name(tensor->dtype),
                        ifd_dtype_wire_name(port->desc.dtype));
    }
    bool first_is_free = !has_batch && port->batched;
    const struct ifd_shape *given = ifd_file_shape(tensor);
    const struct ifd_shape wanted = side->is_output ? output_dims(given, dims) : dims;
    if (tensor->has_shape && !dims_agree(given, &wanted, first_is_free)) {
        return ifd_fail(err, IFD_INVALID, "config line %u: %s \"%s\" has %s %s, the file says %s%s",
                        tensor->line, side->word, port->name,
                        tensor->has_reshape ? "reshape" : "dims", shape_text(given).s,
                        shape_text(&dims).s, has_batch ? " behind the batch dimension" : "");
    }
    if (tensor->optional && (!port->value.data || has_batch)) {
        return ifd_fail(err, IFD_INVALID, "config line %u: %s \"%s\" is optional, %s", tensor->line,
                        side->word, port->name,
                        has_batch ? "with max_batch_size" : "the file needs it");
    }
    tensor->dtype = port->desc.dtype;
    tensor->shape = tensor->has_shape ? tensor->shape : dims;
    tensor->has_dtype = tensor->has_shape = true;
    if (port->desc.quant.count == 1) {
        tensor->scale = port->desc.quant.scale[0];
        tensor->zero_point = port->desc.quant.zero_point[0];
    }
    return IFD_OK;
}

static enum ifd_code complete_side(const struct side *side, bool has_batch, struct ifd_arena *arena,
                                   struct ifd_err *err)
{
    enum ifd_code code = check_names(side, err);
    struct ifd_tensor_info *all = ifd_arena_take_array(arena, side->port_count, sizeof(*all));
    if (!code && !all) {
        code = ifd_arena_fail(arena, side->port_count * sizeof(*all), err);
    }
    for (uint32_t i = 0; i < side->port_count && !code; i++) {
        const struct ifd_port *port = &side->port[i];
        const struct ifd_tensor_info *given = entry_of(side, *side->count, port);
        all[i] =
            given ? *given : (struct ifd_tensor_info){.name = port->name, .label_filename = ""};
        const bool has_open_first =
            port->desc.shape.rank > 0 && port->desc.shape.dim[0] == IFD_DIM_ANY;
        if (has_batch && !port->batched && !has_open_first) {
            return ifd_fail(err, IFD_INVALID,
                            "max_batch_size needs a batch dimension in every tensor; %s \"%s\" %s "
                            "has none",
                            side->word, port->name, shape_text(&port->desc.shape).s);
        }
        code = complete_tensor(side, port, has_batch, &all[i], err);
    }
    if (!code) {
        *side->tensor = all;
        *side->count = side->port_count;
    }
    return code;
}

/* ---- sequences ---- */

static bool is_open(const struct ifd_shape *shape)
{
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dim[d] == IFD_DIM_ANY) {
            return true;
        }
    }
    return false;
}

/* Input and output of a state are one tensor of one size, which the config may name, too. */
static enum ifd_code check_state(const struct ifd_state_info *state,
                                 const struct ifd_tensor_info *input,
                                 const struct ifd_tensor_info *output, struct ifd_err *err)
{
    const struct ifd_tensor_info *given = &state->tensor;
    if (input->is_hidden || output->is_hidden) {
        return ifd_fail(err, IFD_INVALID, "config line %u: a tensor is of two states", given->line);
    }
    const bool is_same = input->dtype == output->dtype && input->dtype != IFD_STR &&
                         dims_agree(&input->shape, &output->shape, false) &&
                         (!given->has_dtype || given->dtype == input->dtype) &&
                         (!given->has_shape || dims_agree(&given->shape, &input->shape, false));
    if (!is_same || is_open(&input->shape)) {
        return ifd_fail(err, IFD_INVALID,
                        "config line %u: state of input \"%s\" %s %s and output \"%s\" %s %s: "
                        "expected the same, of fixed size",
                        given->line, input->name, ifd_dtype_wire_name(input->dtype),
                        shape_text(&input->shape).s, output->name,
                        ifd_dtype_wire_name(output->dtype), shape_text(&output->shape).s);
    }
    return IFD_OK;
}

static void hide(const struct ifd_model_desc *manifest, const struct ifd_state_info *state)
{
    ((struct ifd_tensor_info *)(uintptr_t)&manifest->input[state->input])->is_hidden = true;
    ((struct ifd_tensor_info *)(uintptr_t)&manifest->output[state->output])->is_hidden = true;
}

/* Adds the variables of the file, behind the states of the config, which may name some of them. */
static void add_variables(struct ifd_model_desc *manifest, const struct ifd_model_info *info,
                          struct ifd_state_info *state)
{
    for (uint32_t i = 0; i < info->state_count; i++) {
        const uint32_t input = info->input_count - info->state_count + i;
        const uint32_t output = info->output_count - info->state_count + i;
        uint32_t k = 0;
        while (k < manifest->state_count && state[k].input != input) {
            k++;
        }
        if (k == manifest->state_count) {
            state[k] = (struct ifd_state_info){.tensor = manifest->input[input],
                                               .output_name = manifest->output[output].name,
                                               .input = input,
                                               .output = output};
            hide(manifest, &state[k]);
            manifest->state_count++;
        }
        state[k].begin = info->input[input].begin;
    }
}

/* Finds the tensors of all states and hides them. */
static enum ifd_code complete_states(struct ifd_model_desc *manifest,
                                     const struct ifd_model_info *info, struct ifd_arena *arena,
                                     struct ifd_err *err)
{
    struct ifd_state_info *state = ifd_arena_take_array(
        arena, (size_t)manifest->state_count + info->state_count, sizeof(*state));
    enum ifd_code code = state ? IFD_OK : ifd_arena_fail(arena, sizeof(*state), err);
    for (uint32_t i = 0; i < manifest->state_count && !code; i++) {
        state[i] = manifest->state[i];
        const struct ifd_tensor_info *input =
            find(manifest->input, manifest->input_count, state[i].tensor.name);
        const struct ifd_tensor_info *output =
            find(manifest->output, manifest->output_count, state[i].output_name);
        if (!input || !output) {
            return ifd_fail(err, IFD_INVALID, "config line %u: the model has no %s \"%.80s\"",
                            state[i].tensor.line, input ? "output" : "input",
                            input ? state[i].output_name : state[i].tensor.name);
        }
        code = check_state(&state[i], input, output, err);
        state[i].input = (uint32_t)(input - manifest->input);
        state[i].output = (uint32_t)(output - manifest->output);
        hide(manifest, &state[i]);
    }
    if (!code) {
        add_variables(manifest, info, state);
    }
    manifest->state = state;
    return code;
}

/* Finds the inputs of all controls, of one element, and hides them. */
static enum ifd_code complete_controls(struct ifd_model_desc *manifest, struct ifd_arena *arena,
                                       struct ifd_err *err)
{
    struct ifd_control_info *control =
        ifd_arena_take_array(arena, manifest->control_count, sizeof(*control));
    if (!control) {
        return ifd_arena_fail(arena, manifest->control_count * sizeof(*control), err);
    }
    for (uint32_t i = 0; i < manifest->control_count; i++) {
        control[i] = manifest->control[i];
        const struct ifd_tensor_info *given = &control[i].tensor;
        const struct ifd_tensor_info *input =
            find(manifest->input, manifest->input_count, given->name);
        bool is_one = input && input->dtype == given->dtype && !input->is_hidden;
        for (uint32_t d = 0; is_one && d < input->shape.rank; d++) {
            is_one = input->shape.dim[d] == 1;
        }
        if (!is_one) {
            return ifd_fail(err, IFD_INVALID,
                            "config line %u: control input \"%.80s\" of one %s: %s%s %s",
                            given->line, given->name, ifd_dtype_wire_name(given->dtype),
                            !input             ? "the model has no such input"
                            : input->is_hidden ? "it has another use, "
                                               : "the file has ",
                            input ? ifd_dtype_wire_name(input->dtype) : "",
                            input ? shape_text(&input->shape).s : "");
        }
        control[i].input = (uint32_t)(input - manifest->input);
        ((struct ifd_tensor_info *)(uintptr_t)input)->is_hidden = true;
    }
    manifest->control = control;
    return IFD_OK;
}

enum ifd_code ifd_manifest_complete(struct ifd_model_desc *manifest,
                                    const struct ifd_model_info *info, struct ifd_arena *arena,
                                    struct ifd_err *err)
{
    const struct side input = {
        "input", false, info->input, info->input_count, &manifest->input, &manifest->input_count};
    const struct side output = {"output",          true,
                                info->output,      info->output_count,
                                &manifest->output, &manifest->output_count};
    bool has_batch = manifest->max_batch_size > 0;
    if (manifest->max_batch_size > IFD_MAX_BATCH) {
        return ifd_fail(err, IFD_TOO_LARGE, "max_batch_size %d is more than %d",
                        manifest->max_batch_size, IFD_MAX_BATCH);
    }
    enum ifd_code code = complete_side(&input, has_batch, arena, err);
    if (!code) {
        code = complete_side(&output, has_batch, arena, err);
    }
    if (!code) {
        code = complete_states(manifest, info, arena, err);
    }
    return code ? code : complete_controls(manifest, arena, err);
}

/* Checks tensor index of a model without a file. */
static enum ifd_code check_described(const struct ifd_tensor_info *tensor, uint32_t index,
                                     const char *word, struct ifd_err *err)
{
    if (!tensor[index].has_dtype || !tensor[index].has_shape) {
        return ifd_fail(err, IFD_INVALID, "config line %u: %s \"%s\" needs data_type and dims",
                        tensor[index].line, word, tensor[index].name);
    }
    return find(tensor, index, tensor[index].name) ? fail_twice(&tensor[index], word, err) : IFD_OK;
}

enum ifd_code ifd_manifest_complete_identity(struct ifd_model_desc *manifest, struct ifd_err *err)
{
    if (manifest->input_count == 0 || manifest->output_count == 0 ||
        manifest->output_count > manifest->input_count) {
        return ifd_fail(err, IFD_INVALID,
                        "backend \"identity\" needs a config with at least one output and as many "
                        "inputs; it has %u inputs and %u outputs",
                        manifest->input_count, manifest->output_count);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < manifest->input_count && !code; i++) {
        code = check_described(manifest->input, i, "input", err);
    }
    for (uint32_t i = 0; i < manifest->output_count && !code; i++) {
        const struct ifd_tensor_info *in = &manifest->input[i], *out = &manifest->output[i];
        code = check_described(manifest->output, i, "output", err);
        if (!code && (in->dtype != out->dtype || !dims_agree(&out->shape, &in->shape, false))) {
            code = ifd_fail(err, IFD_INVALID, "output \"%s\" %s %s is not like input \"%s\" %s %s",
                            out->name, ifd_dtype_wire_name(out->dtype), shape_text(&out->shape).s,
                            in->name, ifd_dtype_wire_name(in->dtype), shape_text(&in->shape).s);
        }
    }
    return code;
}
