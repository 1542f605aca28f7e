/* A checked TFLite model → graph: nodes in the file's order, shapes inferred on the way. */
#include "engine/parse/tflite/tflite.h"

#include <stdio.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/ir/verify.h"
#include "engine/parse/tflite/tflite_build.h"

#define IDENTIFIER        "TFL3"
#define IDENTIFIER_OFFSET 4
#define FILE_ALIGN        8

bool ifd_tflite_sniff(struct ifd_bytes file)
{
    return file.size >= IDENTIFIER_OFFSET + strlen(IDENTIFIER) &&
           memcmp(file.data + IDENTIFIER_OFFSET, IDENTIFIER, strlen(IDENTIFIER)) == 0;
}
static enum ifd_code build_operators(struct ifd_tflite_build *b, uint32_t first)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, b->graph->arena->alloc, 0);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = first; code == IFD_OK && i < b->g->op_count; i++) {
        if (b->depth == 0 && b->graph == b->main) {
            b->node = i;
            b->asked = 0;
            ifd_tflite_note_variables(b);
        }
        code = ifd_tflite_build_operator(b, i, &scratch);
        ifd_arena_reset(&scratch);
    }
    ifd_arena_finish(&scratch);
    return code;
}

static enum ifd_code build_outputs(struct ifd_tflite_build *b, uint32_t *ret)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < b->g->output.count; i++) {
        code = ifd_tflite_value_of(b, b->g->output.value[i], &ret[i]);
    }
    return code;
}

/* ---- subgraphs ---- */

static enum ifd_code enter(struct ifd_tflite_build *b, uint32_t subgraph, uint32_t input_count,
                           uint32_t output_count, struct ifd_arena *scratch)
{
    if (subgraph >= b->model->subgraph_count) {
        return ifd_fail(b->err, IFD_CORRUPT, "subgraph %u of %u", subgraph,
                        b->model->subgraph_count);
    }
    const struct ifd_tflite_subgraph *g = &b->model->subgraph[subgraph];
    if (b->depth == IFD_TFLITE_DEPTH_MAX) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "subgraphs are nested more than %d deep",
                        IFD_TFLITE_DEPTH_MAX);
    }
    if (g->input.count != input_count || g->output.count != output_count) {
        return ifd_fail(b->err, IFD_CORRUPT,
                        "subgraph %u has %u inputs and %u outputs, expected %u and %u", subgraph,
                        g->input.count, g->output.count, input_count, output_count);
    }
    const enum ifd_code code =
        ifd_tflite_spend(b, 1 + g->tensor_count / IFD_TFLITE_OPERATOR_TENSORS);
    if (code != IFD_OK) {
        return code;
    }
    uint32_t *value_of = ifd_arena_take_array(scratch, g->tensor_count, sizeof(*value_of));
    if (!value_of) {
        return ifd_arena_fail(scratch, g->tensor_count * sizeof(*value_of), b->err);
    }
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        value_of[i] = IFD_NONE;
    }
    b->g = g;
    b->value_of = value_of;
    b->depth++;
    return IFD_OK;
}

enum ifd_code ifd_tflite_inline(struct ifd_tflite_build *b, uint32_t subgraph,
                                const uint32_t *input, uint32_t input_count, uint32_t *ret_output,
                                uint32_t output_count)
{
    const struct ifd_tflite_subgraph *outer = b->g;
    uint32_t *outer_value_of = b->value_of;
    const uint32_t outer_depth = b->depth;
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, b->graph->arena->alloc, 0);
    enum ifd_code code = enter(b, subgraph, input_count, output_count, &scratch);
    for (uint32_t i = 0; code == IFD_OK && i < input_count; i++) {
        b->value_of[b->g->input.value[i]] = input[i];
    }
    if (code == IFD_OK) {
        code = build_operators(b, 0);
    }
    if (code == IFD_OK) {
        code = build_outputs(b, ret_output);
    }
    b->g = outer;
    b->value_of = outer_value_of;
    b->depth = outer_depth;
    ifd_arena_finish(&scratch);
    return code;
}

/* ---- inputs and outputs ---- */

static bool is_given(const struct ifd_tflite_build *b, const char *name)
{
    bool is = false;
    for (uint32_t i = 0; i < b->options->shape_count; i++) {
        is = is || strcmp(b->options->shape[i].name, name) == 0;
    }
    return is;
}

/* What the options call an input: a tensor's name goes before that of a signature. */
static const char *name_in_options(const struct ifd_tflite_build *b, uint32_t index)
{
    const struct ifd_tflite_ints *input = &b->input;
    const char *own = b->g->tensor[input->value[index]].name;
    const char *name = ifd_tflite_signature_name(b, input, false, index);
    bool may_be = name && is_given(b, name) && !is_given(b, own);
    for (uint32_t i = 0; may_be && i < input->count; i++) {
        may_be = strcmp(b->g->tensor[input->value[i]].name, name) != 0;
    }
    return may_be ? name : own;
}

/* A dimension is open where the signature or the shape says -1. */
static void decide_shape(struct ifd_tflite_build *b, uint32_t index, struct ifd_value *value,
                         struct ifd_shape *ret_declared)
{
    const uint32_t tensor = (uint32_t)b->input.value[index];
    const struct ifd_shape example = value->desc.shape;
    struct ifd_shape file = ifd_tflite_declared(&b->g->tensor[tensor], &example);
    if (b->options->keeps_state && file.rank > 0 && file.dim[0] == IFD_DIM_ANY) {
        file.dim[0] = 1; /* a state is that of one sample */
    }
    ifd_parse_input_shape(b->options, name_in_options(b, index), &file, &example, ret_declared,
                          &value->desc.shape);
    ifd_parse_note_open(&file, ret_declared, b->parsed);
}

/* As LiteRT has it, an input with content is a constant. */
static enum ifd_code find_inputs(struct ifd_tflite_build *b)
{
    const struct ifd_tflite_ints *all = &b->g->input;
    int32_t *input = ifd_arena_take_array(b->scratch, all->count, sizeof(*input));
    struct ifd_bytes content = {0};
    if (!input) {
        return ifd_arena_fail(b->scratch, all->count * sizeof(*input), b->err);
    }
    b->input.value = input;
    for (uint32_t i = 0; i < all->count; i++) {
        if (!ifd_tflite_has_content(b, (uint32_t)all->value[i], &content)) {
            input[b->input.count++] = all->value[i];
        }
    }
    return IFD_OK;
}

static enum ifd_code build_inputs(struct ifd_tflite_build *b)
{
    const struct ifd_tflite_ints *input = &b->input;
    uint32_t *ret = ifd_arena_take_array(b->scratch, input->count, sizeof(*ret));
    b->main_input = ret;
    b->declared = ifd_arena_take_array(b->scratch, input->count, sizeof(*b->declared));
    if (!ret || !b->declared) {
        return ifd_arena_fail(b->scratch, input->count * sizeof(*b->declared), b->err);
    }
    for (uint32_t i = 0; i < input->count; i++) {
        enum ifd_code code = ifd_tflite_add_value(b, (uint32_t)input->value[i], &ret[i]);
        if (code != IFD_OK) {
            return code;
        }
        struct ifd_value *v = &b->graph->value[ret[i]];
        decide_shape(b, i, v, &b->declared[i]);
        code = ifd_tflite_check_bytes(b, ret[i]);
        if (code != IFD_OK) {
            return code;
        }
        b->main_input_count++;
    }
    return IFD_OK;
}

/* Inputs and outputs of the graph: the file's, and behind them the states; behind a cut the states
 * are among the inputs already. */
static enum ifd_code set_ports(struct ifd_tflite_build *b, const uint32_t *output)
{
    const uint32_t inputs = b->main_input_count, outputs = b->g->output.count;
    const uint32_t states = ifd_tflite_state_count(b);
    uint32_t *value = ifd_arena_take_array(
        b->scratch, (size_t)inputs + outputs + 2 * (size_t)states, sizeof(*value));
    b->state = ifd_arena_take_array(b->scratch, states, sizeof(*b->state));
    if (!value || !b->state) {
        return ifd_arena_fail(b->scratch, states * sizeof(*b->state), b->err);
    }
    const enum ifd_code code = ifd_tflite_take_states(b, true, b->state);
    if (code != IFD_OK) {
        return code;
    }
    const uint32_t given = b->options->resume ? 0 : states;
    uint32_t *all_outputs = value + inputs + states;
    memcpy(value, b->main_input, inputs * sizeof(*value));
    memcpy(all_outputs, output, outputs * sizeof(*value));
    for (uint32_t i = 0; i < states; i++) {
        value[inputs + i] = b->state[i].input;
        all_outputs[outputs + i] = b->state[i].output;
    }
    return ifd_graph_set_io(b->graph, value, inputs + given, all_outputs, outputs + states, b->err);
}

/* Of the whole model, or of what follows behind a cut. */
static enum ifd_code begin_graph(struct ifd_tflite_build *b)
{
    const bool resumes = b->options->resume != NULL;
    enum ifd_code code = resumes ? IFD_OK : find_inputs(b);
    code = code == IFD_OK && !resumes ? build_inputs(b) : code;
    code = code == IFD_OK ? ifd_tflite_find_variables(b) : code;
    return code == IFD_OK && resumes ? ifd_tflite_take_resumed(b) : code;
}

static enum ifd_code end_graph(struct ifd_tflite_build *b)
{
    const uint32_t count = b->g->output.count;
    uint32_t *output = ifd_arena_take_array(b->scratch, count, sizeof(*output));
    if (!output) {
        return ifd_arena_fail(b->scratch, count * sizeof(*output), b->err);
    }
    if (count == 0) {
        return ifd_fail(b->err, IFD_UNSUPPORTED, "the model has no outputs");
    }
    const enum ifd_code code = build_outputs(b, output);
    return code == IFD_OK ? set_ports(b, output) : code;
}

static enum ifd_code build_graph(struct ifd_tflite_build *b)
{
    const struct ifd_tflite_subgraph *g = b->g;
    struct ifd_arena *scratch = b->scratch;
    b->value_of = ifd_arena_take_array(scratch, g->tensor_count, sizeof(*b->value_of));
    b->aligned = ifd_arena_take_array(scratch, b->model->buffer_count, sizeof(*b->aligned));
    b->texts = ifd_arena_take_array(scratch, b->model->buffer_count, sizeof(*b->texts));
    b->wide = ifd_arena_take_array(scratch, b->model->buffer_count, sizeof(*b->wide));
    if (!b->value_of || !b->aligned || !b->texts || !b->wide) {
        return ifd_arena_fail(scratch, g->tensor_count * sizeof(*b->value_of), b->err);
    }
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        b->value_of[i] = IFD_NONE;
    }
    enum ifd_code code = begin_graph(b);
    if (code == IFD_OK) {
        code = build_operators(b, b->options->resume ? b->options->resume->node : 0);
        code = code == IFD_OK ? end_graph(b) : ifd_tflite_make_cut(b, code, &b->parsed->cut);
    }
    return code == IFD_OK ? ifd_graph_verify(b->graph, IFD_INVALID, b->err) : code;
}

/* FlatBuffers need aligned numbers. Mapped files are aligned; a file in odd memory is copied. */
static enum ifd_code align_file(struct ifd_arena *arena, struct ifd_bytes *file,
                                struct ifd_err *err)
{
    if ((uintptr_t)file->data % FILE_ALIGN == 0) {
        return IFD_OK;
    }
    uint8_t *copy = ifd_arena_take_tensor(arena, file->size);
    if (!copy) {
        return ifd_arena_fail(arena, file->size, err);
    }
    memcpy(copy, file->data, file->size);
    file->data = copy;
    return IFD_OK;
}

/* Shapes of the ports as the file has them. */
static void declare_shapes(const struct ifd_tflite_build *b)
{
    struct ifd_parsed *parsed = b->parsed;
    const struct ifd_tflite_subgraph *g = b->g;
    for (uint32_t i = 0; i < b->input.count; i++) {
        parsed->input[i].desc.shape = b->declared[i];
    }
    for (uint32_t i = 0; !parsed->cut.is_cut && i < g->output.count; i++) {
        const struct ifd_shape *shape = &b->graph->value[b->graph->output[i]].desc.shape;
        parsed->output[i].desc.shape = ifd_tflite_declared(&g->tensor[g->output.value[i]], shape);
    }
    for (uint32_t i = 0; i < parsed->state_count; i++) {
        const struct ifd_shape shape = b->state[i].like.shape;
        if (!b->options->resume) {
            parsed->input[b->input.count + i].desc.shape = shape;
        }
        parsed->result[g->output.count + i].desc.shape = shape;
    }
}

/* The signature that was asked for; without a name one of the first subgraph, NULL if none is. */
static enum ifd_code choose_signature(const struct ifd_tflite_model *model, const char *name,
                                      const struct ifd_tflite_signature **ret, struct ifd_err *err)
{
    char list[IFD_ERR_TEXT_BYTES / 2] = "";
    *ret = NULL;
    for (uint32_t i = 0; i < model->signature_count; i++) {
        const struct ifd_tflite_signature *s = &model->signature[i];
        if (name ? strcmp(s->key, name) == 0 : s->subgraph == 0) {
            *ret = s;
            return IFD_OK;
        }
    }
    if (!name) {
        return IFD_OK;
    }
    ifd_tflite_list_signatures(model, list, sizeof(list));
    return ifd_fail(err, IFD_INVALID, "the model has no signature " NAME_FORMAT "; it has %s", name,
                    model->signature_count > 0 ? list : "none");
}

/* What the graph keeps lies in its arena or in the file; the reader's structs go with scratch. */
static enum ifd_code parse(struct ifd_bytes file, const struct ifd_parse_options *options,
                           struct ifd_graph *graph, struct ifd_arena *scratch,
                           struct ifd_parsed *ret, struct ifd_err *err)
{
    struct ifd_tflite_model model;
    enum ifd_code code = align_file(graph->arena, &file, err);
    if (code == IFD_OK) {
        code = ifd_tflite_read(file, options->limits, scratch, &model, err);
    }
    if (code == IFD_OK) {
        code = ifd_tflite_check(&model, file, options->limits, scratch, err);
    }
    const struct ifd_tflite_signature *signature = NULL;
    if (code == IFD_OK) {
        code = choose_signature(&model, options->signature, &signature, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_tflite_build b = {.model = &model,
                                 .g = &model.subgraph[signature ? signature->subgraph : 0],
                                 .signature = signature,
                                 .operators_left = ifd_parse_inlined_max(options),
                                 .file = file,
                                 .options = options,
                                 .graph = graph,
                                 .main = graph,
                                 .scratch = scratch,
                                 .copy_bytes_left = file.size,
                                 .wanted = IFD_NONE,
                                 .parsed = ret,
                                 .err = err};
    code = build_graph(&b);
    if (code == IFD_OK) {
        code = ifd_tflite_ports(&b, ret);
    }
    if (code == IFD_OK) {
        declare_shapes(&b);
    }
    return code;
}

enum ifd_code ifd_tflite_parse(struct ifd_bytes file, const struct ifd_parse_options *options,
                               struct ifd_graph *graph, struct ifd_parsed *ret, struct ifd_err *err)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, graph->arena->alloc, options->limits->arena_bytes);
    const enum ifd_code code = parse(file, options, graph, &scratch, ret, err);
    ifd_arena_finish(&scratch);
    return code;
}
