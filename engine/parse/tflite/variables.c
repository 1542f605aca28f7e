/* State of a model: variables that handles name (VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, first
 * written by CALL_ONCE) and variable tensors, which recurrent layers write themselves.
 *
 * While the graph is built, a variable is the value that it has at that point. What it has before
 * the first operator is a constant, or an input of the graph if sequences keep state; what it has
 * behind the last is an output then.
 *
 * A handle is a constant: the index of its variable. */
#include "engine/parse/tflite/variables.h"

#include <string.h>

#include "engine/ir/trace.h"

#define VARIABLES_MAX 1024

enum {
    CALL = 31,
    IF = 118,
    WHILE = 119,
    CALL_ONCE = 129,
    VAR_HANDLE = 142,
    READ_VARIABLE = 143,
    ASSIGN_VARIABLE = 144,
    COMPOSITE = 206,
    CASE = 209
};

static int32_t builtin_of(const struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    return b->model->opcode[op->opcode_index].builtin;
}

bool ifd_tflite_is_variable(const struct ifd_tflite_build *b, uint32_t index)
{
    const int32_t builtin = builtin_of(b, &b->g->op[index]);
    return builtin == CALL_ONCE || builtin == VAR_HANDLE || builtin == READ_VARIABLE ||
           builtin == ASSIGN_VARIABLE;
}

/* ---- the list ---- */

static enum ifd_code add(struct ifd_tflite_build *b, const struct ifd_tflite_variable *variable,
                         uint32_t *ret)
{
    if (!b->variable) {
        b->variable = ifd_arena_take_array(b->scratch, VARIABLES_MAX, sizeof(*b->variable));
        if (!b->variable) {
            return ifd_arena_fail(b->scratch, VARIABLES_MAX * sizeof(*b->variable), b->err);
        }
    }
    if (b->variable_count == VARIABLES_MAX) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "more than %d variables", VARIABLES_MAX);
    }
    *ret = b->variable_count++;
    b->variable[*ret] = *variable;
    struct ifd_tflite_variable *v = &b->variable[*ret];
    v->now = v->before = v->initial = v->given = IFD_NONE;
    return IFD_OK;
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* The variable of a VAR_HANDLE. */
static enum ifd_code find_named(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                                uint32_t *ret)
{
    const struct ifd_tflite_variable wanted = {.container = text_of(op->options->container),
                                               .name = text_of(op->options->shared_name)};
    for (uint32_t i = 0; i < b->variable_count; i++) {
        const struct ifd_tflite_variable *v = &b->variable[i];
        if (!v->subgraph && strcmp(v->name, wanted.name) == 0 &&
            strcmp(v->container, wanted.container) == 0) {
            *ret = i;
            return IFD_OK;
        }
    }
    return add(b, &wanted, ret);
}

/* The variable of a variable tensor of a subgraph. */
static enum ifd_code find_tensor(struct ifd_tflite_build *b, const struct ifd_tflite_subgraph *g,
                                 uint32_t tensor, uint32_t *ret)
{
    for (uint32_t i = 0; i < b->variable_count; i++) {
        if (b->variable[i].subgraph == g && b->variable[i].tensor == tensor) {
            *ret = i;
            return IFD_OK;
        }
    }
    return add(b,
               &(struct ifd_tflite_variable){.container = "",
                                             .name = g->tensor[tensor].name,
                                             .subgraph = g,
                                             .tensor = tensor,
                                             .is_assigned = true},
               ret);
}

/* ---- who writes variables ---- */

/* Adds the variables of a subgraph and notes which it writes; each reading of a file adds them in
 * the same order. handle: room for its tensors. A handle that comes from elsewhere may be any. */
static enum ifd_code note_writes(struct ifd_tflite_build *b, const struct ifd_tflite_subgraph *g,
                                 uint32_t *handle, bool *ret_writes_any)
{
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        uint32_t variable = 0;
        const enum ifd_code code =
            g->tensor[i].is_variable ? find_tensor(b, g, i, &variable) : IFD_OK;
        if (code != IFD_OK) {
            return code;
        }
        handle[i] = IFD_NONE;
    }
    for (uint32_t i = 0; i < g->op_count; i++) {
        const struct ifd_tflite_operator *op = &g->op[i];
        const int32_t builtin = builtin_of(b, op);
        if (builtin == VAR_HANDLE && op->output.count == 1) {
            const enum ifd_code code = find_named(b, op, &handle[op->output.value[0]]);
            if (code != IFD_OK) {
                return code;
            }
        } else if (builtin == ASSIGN_VARIABLE && op->input.count == 2 && op->input.value[0] >= 0) {
            const uint32_t variable = handle[op->input.value[0]];
            if (variable == IFD_NONE) {
                *ret_writes_any = true;
            } else {
                b->variable[variable].is_assigned = true;
            }
        }
    }
    return IFD_OK;
}

/* Subgraphs that g runs, CALL_ONCE aside, go to the end of the list. */
static void list_callees(const struct ifd_tflite_build *b, const struct ifd_tflite_subgraph *g,
                         bool *is_listed, uint32_t *list, uint32_t *count)
{
    for (uint32_t i = 0; i < g->op_count; i++) {
        const int32_t builtin = builtin_of(b, &g->op[i]);
        const struct ifd_tflite_options *o = g->op[i].options;
        const uint32_t names = builtin == IF || builtin == WHILE         ? 2
                               : builtin == CALL || builtin == COMPOSITE ? 1
                               : builtin == CASE                         ? o->ints.count
                                                                         : 0;
        for (uint32_t k = 0; k < names; k++) {
            const uint32_t callee = builtin == CASE ? (uint32_t)o->ints.value[k] : o->subgraph[k];
            if (callee < b->model->subgraph_count && !is_listed[callee]) {
                is_listed[callee] = true;
                list[(*count)++] = callee;
            }
        }
    }
}

/* ---- values ---- */

/* A variable's value is one of the main graph. */
static enum ifd_code check_graph(struct ifd_tflite_build *b,
                                 const struct ifd_tflite_variable *variable)
{
    if (b->graph != b->main) {
        b->is_stuck = true; /* it can be built in place where a run says the condition */
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "variable " NAME_FORMAT " in a branch or loop that the request decides",
                        variable->name);
    }
    return IFD_OK;
}

/* Makes a variable an input of the graph, which begins as a constant is. */
static enum ifd_code give(struct ifd_tflite_build *b, struct ifd_tflite_variable *variable,
                          uint32_t constant)
{
    const struct ifd_desc desc = b->graph->value[constant].desc;
    const struct ifd_bytes content = b->graph->value[constant].data;
    if (b->options->resume) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "variable " NAME_FORMAT
                        " is first read behind a place where data decides sizes",
                        variable->name);
    }
    uint8_t *copy = ifd_arena_take_tensor(b->graph->arena, content.size);
    if (!copy) {
        return ifd_arena_fail(b->graph->arena, content.size, b->err);
    }
    if (content.size > 0) {
        memcpy(copy, content.data, content.size); /* memory of the file may be released */
    }
    variable->begin = (struct ifd_bytes){.data = copy, .size = content.size};
    const enum ifd_code code =
        ifd_graph_add_value(b->graph, variable->name, &desc, &variable->given, b->err);
    variable->now = variable->given;
    variable->is_state = code == IFD_OK;
    variable->like = desc;
    return code;
}

enum ifd_code ifd_tflite_begin_tensor(struct ifd_tflite_build *b,
                                      struct ifd_tflite_variable *variable)
{
    uint32_t zeros = IFD_NONE;
    enum ifd_code code = ifd_tflite_add_constant(b, variable->tensor, &zeros);
    variable->now = zeros;
    if (code == IFD_OK && b->options->keeps_state) {
        code = give(b, variable, zeros);
    }
    return code;
}

enum ifd_code ifd_tflite_begin_named(struct ifd_tflite_build *b,
                                     struct ifd_tflite_variable *variable)
{
    if (variable->initial == IFD_NONE) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "variable " NAME_FORMAT " is read before anything is assigned to it",
                        variable->name);
    }
    variable->now = variable->initial;
    if (!b->options->keeps_state || !variable->is_assigned) {
        return IFD_OK;
    }
    if (!b->graph->value[variable->initial].is_constant) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "variable " NAME_FORMAT " does not begin as a constant", variable->name);
    }
    return give(b, variable, variable->initial);
}

enum ifd_code ifd_tflite_read_state(struct ifd_tflite_build *b, int32_t tensor, uint32_t *ret)
{
    uint32_t index = 0;
    if (tensor < 0 || !b->g->tensor[tensor].is_variable) {
        return ifd_tflite_value_of(b, tensor, ret);
    }
    enum ifd_code code = find_tensor(b, b->g, (uint32_t)tensor, &index);
    if (code == IFD_OK) {
        code = check_graph(b, &b->variable[index]);
    }
    if (code == IFD_OK && b->variable[index].now == IFD_NONE) {
        code = ifd_tflite_begin_tensor(b, &b->variable[index]);
    }
    *ret = code == IFD_OK ? b->variable[index].now : IFD_NONE;
    return code;
}

enum ifd_code ifd_tflite_write_state(struct ifd_tflite_build *b, int32_t tensor, uint32_t value)
{
    uint32_t index = 0;
    if (tensor < 0 || !b->g->tensor[tensor].is_variable) {
        return IFD_OK;
    }
    const enum ifd_code code = find_tensor(b, b->g, (uint32_t)tensor, &index);
    if (code == IFD_OK) {
        b->variable[index].now = value;
    }
    return code;
}

/* ---- operators ---- */

static enum ifd_code check_counts(const struct ifd_tflite_build *b,
                                  const struct ifd_tflite_operator *op, uint32_t inputs,
                                  uint32_t outputs)
{
    if (op->input.count != inputs || op->output.count != outputs) {
        return ifd_fail(b->err, IFD_CORRUPT, "%u inputs and %u outputs, expected %u and %u",
                        op->input.count, op->output.count, inputs, outputs);
    }
    return IFD_OK;
}

static enum ifd_code build_handle(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    uint32_t variable = 0, value = IFD_NONE;
    const struct ifd_desc desc = {.dtype = IFD_S32};
    enum ifd_code code = check_counts(b, op, 0, 1);
    if (code == IFD_OK) {
        code = find_named(b, op, &variable);
    }
    if (code == IFD_OK) {
        code = ifd_graph_add_value(b->graph, b->variable[variable].name, &desc, &value, b->err);
    }
    if (code == IFD_OK) {
        const struct ifd_bytes content = {.data = (const uint8_t *)&variable,
                                          .size = sizeof(variable)};
        code = ifd_graph_set_constant(b->graph, value, content, 0, b->err);
    }
    if (code == IFD_OK) {
        b->value_of[op->output.value[0]] = value;
    }
    return code;
}

/* The variable that input 0 is a handle of. */
static enum ifd_code find_variable(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                                   struct ifd_tflite_variable **ret)
{
    uint32_t value = IFD_NONE, index = UINT32_MAX;
    const enum ifd_code code = ifd_tflite_value_of(b, op->input.value[0], &value);
    if (code != IFD_OK) {
        return code;
    }
    if (value != IFD_NONE && b->graph->value[value].data.size == sizeof(index)) {
        ifd_trace_read(b->graph, value, false, IFD_NONE);
        memcpy(&index, b->graph->value[value].data.data, sizeof(index));
    }
    if (index >= b->variable_count || b->variable[index].subgraph) {
        return ifd_fail(b->err, IFD_UNSUPPORTED, "input 0 is no handle that the file decides");
    }
    *ret = &b->variable[index];
    return check_graph(b, *ret);
}

static enum ifd_code build_read(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    struct ifd_tflite_variable *variable = NULL;
    enum ifd_code code = check_counts(b, op, 1, 1);
    if (code == IFD_OK) {
        code = find_variable(b, op, &variable);
    }
    if (code == IFD_OK && variable->now == IFD_NONE) {
        code = ifd_tflite_begin_named(b, variable);
    }
    if (code == IFD_OK) {
        b->value_of[op->output.value[0]] = variable->now;
    }
    return code;
}

static enum ifd_code build_assign(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    struct ifd_tflite_variable *variable = NULL;
    uint32_t value = IFD_NONE;
    enum ifd_code code = check_counts(b, op, 2, 0);
    if (code == IFD_OK) {
        code = find_variable(b, op, &variable);
    }
    if (code == IFD_OK) {
        code = ifd_tflite_value_of(b, op->input.value[1], &value);
    }
    if (code == IFD_OK && value == IFD_NONE) {
        code = ifd_fail(b->err, IFD_CORRUPT, "input 1 is missing");
    }
    if (code == IFD_OK) {
        variable->now = value;
    }
    return code;
}

/* What the subgraph leaves in variables is how they begin. It runs once in the life of a state. */
static enum ifd_code build_once(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    const uint32_t subgraph = op->options->subgraph[0];
    enum ifd_code code = check_counts(b, op, 0, 0);
    if (code != IFD_OK || (subgraph < b->model->subgraph_count && b->is_initialized[subgraph])) {
        return code;
    }
    const bool was_initializing = b->is_initializing;
    b->is_initializing = true;
    code = ifd_tflite_inline(b, subgraph, NULL, 0, NULL, 0);
    b->is_initializing = was_initializing;
    if (code != IFD_OK) {
        return code;
    }
    b->is_initialized[subgraph] = true;
    for (uint32_t i = 0; i < b->variable_count; i++) {
        struct ifd_tflite_variable *v = &b->variable[i];
        if (!v->subgraph && v->given == IFD_NONE && v->now != IFD_NONE) {
            v->initial = v->now;
            v->now = IFD_NONE;
        }
    }
    return code;
}

/* Every CALL_ONCE that the model can reach, wherever it stands: it has no inputs, and behind a cut
 * nobody would know what those in front of it did. */
static enum ifd_code begin_variables(struct ifd_tflite_build *b, const uint32_t *subgraph,
                                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_tflite_subgraph *g = &b->model->subgraph[subgraph[i]];
        for (uint32_t n = 0; n < g->op_count; n++) {
            const bool is_once = builtin_of(b, &g->op[n]) == CALL_ONCE;
            const enum ifd_code code = is_once ? build_once(b, &g->op[n]) : IFD_OK;
            if (code != IFD_OK) {
                ifd_err_prefix(b->err, "CALL_ONCE (subgraph %u, node %u)", subgraph[i], n);
                return code;
            }
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_tflite_build_variable(struct ifd_tflite_build *b, uint32_t index)
{
    const struct ifd_tflite_operator *op = &b->g->op[index];
    switch (builtin_of(b, op)) {
    case VAR_HANDLE:
        return build_handle(b, op);
    case READ_VARIABLE:
        return build_read(b, op);
    case ASSIGN_VARIABLE:
        return build_assign(b, op);
    default:
        return build_once(b, op);
    }
}

enum ifd_code ifd_tflite_find_variables(struct ifd_tflite_build *b)
{
    const struct ifd_tflite_model *model = b->model;
    uint32_t tensors = 0;
    for (uint32_t i = 0; i < model->subgraph_count; i++) {
        const uint32_t count = model->subgraph[i].tensor_count;
        tensors = count > tensors ? count : tensors;
    }
    uint32_t *handle = ifd_arena_take_array(b->scratch, tensors, sizeof(*handle));
    uint32_t *list = ifd_arena_take_array(b->scratch, model->subgraph_count, sizeof(*list));
    bool *is_listed = ifd_arena_take_array(b->scratch, model->subgraph_count, sizeof(*is_listed));
    b->is_initialized =
        ifd_arena_take_array(b->scratch, model->subgraph_count, sizeof(*b->is_initialized));
    if (!handle || !list || !is_listed || !b->is_initialized) {
        return ifd_arena_fail(b->scratch, tensors * sizeof(*handle), b->err);
    }
    bool writes_any = false;
    enum ifd_code code = IFD_OK;
    uint32_t count = 1;
    list[0] = (uint32_t)(b->g - model->subgraph); /* the model */
    is_listed[list[0]] = true;
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        const struct ifd_tflite_subgraph *g = &model->subgraph[list[i]];
        list_callees(b, g, is_listed, list, &count);
        code = note_writes(b, g, handle, &writes_any);
    }
    for (uint32_t i = 0; writes_any && i < b->variable_count; i++) {
        b->variable[i].is_assigned = true;
    }
    return code == IFD_OK ? begin_variables(b, list, count) : code;
}
