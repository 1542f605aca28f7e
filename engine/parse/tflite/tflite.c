/* A checked TFLite model → graph: values when an operator needs them, nodes in the file's order,
 * shapes inferred on the way. Nodes that compute shapes from known shapes are computed at once,
 * so that later shapes are known. */
#include "engine/parse/tflite/tflite.h"

#include <stdio.h>
#include <string.h>

#include "engine/ir/eval.h"
#include "engine/ir/shape.h"
#include "engine/ir/verify.h"
#include "engine/parse/tflite/tflite_build.h"

#define IDENTIFIER        "TFL3"
#define IDENTIFIER_OFFSET 4
#define FILE_ALIGN        8
#define COMPUTE_ELEMENTS  64 /* shape arithmetic is smaller than this */

bool ifd_tflite_sniff(struct ifd_bytes file)
{
    return file.size >= IDENTIFIER_OFFSET + strlen(IDENTIFIER) &&
           memcmp(file.data + IDENTIFIER_OFFSET, IDENTIFIER, strlen(IDENTIFIER)) == 0;
}

/* ---- values ---- */

static enum ifd_code check_usable(const struct ifd_tflite_build *b,
                                  const struct ifd_tflite_tensor *t, struct ifd_desc *ret)
{
    const char *why = NULL;
    struct ifd_bytes content = {0};
    if (t->custom_quantization) {
        why = "has a custom quantization";
    } else if (t->type == IFD_TFLITE_INT4 &&
               (!ifd_tflite_content(&b->model->buffer[t->buffer], b->file, &content) ||
                content.size == 0)) {
        why = "has 4-bit numbers that are not constant";
    } else if (!ifd_tflite_shape(&t->shape, &ret->shape)) {
        why = "has more than 8 dimensions";
    } else if (!ifd_tflite_dtype(t->type, &ret->dtype)) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "tensor " NAME_FORMAT " has type %d, which is not supported", t->name,
                        t->type);
    } else if (ret->dtype == IFD_STR) {
        why = "has type string";
    }
    if (why) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "tensor " NAME_FORMAT " %s, which is not supported", t->name, why);
    }
    return IFD_OK;
}

/* Zero points as 32-bit numbers. Those of weights are mostly all 0: these are shared. */
static enum ifd_code read_zero_points(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                      const int32_t **ret)
{
    struct ifd_arena *arena = b->graph->arena;
    bool is_zero = true;
    for (uint32_t i = 0; i < t->scale_count && is_zero; i++) {
        is_zero = ifd_tflite_zero_point(t, i) == 0;
    }
    if (is_zero && t->scale_count <= b->zero_count) {
        *ret = b->zeros;
        return IFD_OK;
    }
    int32_t *zero_point = ifd_arena_take_array(arena, t->scale_count, sizeof(*zero_point));
    if (!zero_point) {
        return ifd_arena_fail(arena, t->scale_count * sizeof(*zero_point), b->err);
    }
    if (is_zero) {
        b->zeros = zero_point;
        b->zero_count = t->scale_count;
    }
    for (uint32_t i = 0; i < t->scale_count && !is_zero; i++) {
        zero_point[i] = (int32_t)ifd_tflite_zero_point(t, i);
    }
    *ret = zero_point;
    return IFD_OK;
}

/* Scales stay in the file. Quantization of float tensors is ignored. */
static enum ifd_code read_quantization(struct ifd_tflite_build *b,
                                       const struct ifd_tflite_tensor *t, struct ifd_desc *desc)
{
    const int32_t *zero_point = NULL;
    if (t->scale_count == 0 || !(IFD_TFLITE_QUANTIZED & IFD_BIT(desc->dtype))) {
        return IFD_OK;
    }
    const enum ifd_code code = read_zero_points(b, t, &zero_point);
    if (code != IFD_OK) {
        return code;
    }
    desc->quant =
        (struct ifd_quant){.scale = t->scale, .zero_point = zero_point, .count = t->scale_count};
    if (t->scale_count > 1) {
        desc->quant.axis = (uint32_t)t->quantized_dimension;
    }
    return IFD_OK;
}

enum ifd_code ifd_tflite_describe(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                  struct ifd_desc *ret)
{
    const enum ifd_code code = check_usable(b, t, ret);
    return code == IFD_OK ? read_quantization(b, t, ret) : code;
}

enum ifd_code ifd_tflite_add_value(struct ifd_tflite_build *b, uint32_t tensor, uint32_t *ret)
{
    const struct ifd_tflite_tensor *t = &b->g->tensor[tensor];
    struct ifd_desc desc = {0};
    enum ifd_code code = ifd_tflite_describe(b, t, &desc);
    if (code == IFD_OK) {
        code = ifd_graph_add_value(b->graph, t->name, &desc, ret, b->err);
    }
    if (code == IFD_OK) {
        b->value_of[tensor] = *ret;
    }
    return code;
}

enum ifd_code ifd_tflite_value_of(struct ifd_tflite_build *b, int32_t tensor, uint32_t *ret)
{
    if (tensor < 0) {
        *ret = IFD_NONE;
        return IFD_OK;
    }
    *ret = b->value_of[tensor];
    return *ret == IFD_NONE ? ifd_tflite_add_constant(b, (uint32_t)tensor, ret) : IFD_OK;
}

static enum ifd_code check_tensor_bytes(const struct ifd_tflite_build *b, uint32_t value)
{
    const struct ifd_value *v = &b->graph->value[value];
    if (!ifd_desc_fits(&v->desc, b->options->limits->tensor_bytes)) {
        return ifd_fail(b->err, IFD_TOO_LARGE,
                        "tensor " NAME_FORMAT " of %s %s has more than %zu bytes", v->name,
                        ifd_dtype_name(v->desc.dtype), ifd_shape_text(&v->desc.shape).s,
                        b->options->limits->tensor_bytes);
    }
    return IFD_OK;
}

/* ---- nodes ---- */

/* `CONV_2D (version 3, node 5, outputs "x", "y")` */
struct operator_text {
    char s[IFD_ERR_TEXT_BYTES];
};

static const char *name_of(const struct ifd_tflite_opcode *opcode)
{
    return opcode->custom[0] != '\0' ? opcode->custom : opcode->builtin_name;
}

static struct operator_text operator_text(const struct ifd_tflite_build *b, uint32_t node)
{
    const struct ifd_tflite_operator *op = &b->g->op[node];
    const struct ifd_tflite_opcode *opcode = &b->model->opcode[op->opcode_index];
    const char *name = name_of(opcode);
    struct operator_text text;
    size_t room = sizeof(text.s);
    size_t used = 0;
    int size = snprintf(text.s, room, "%.60s (version %d, node %u", name, opcode->version, node);
    for (uint32_t i = 0; size > 0 && i < op->output.count && used + (size_t)size < room / 2; i++) {
        used += (size_t)size;
        size = snprintf(text.s + used, room - used, "%s" NAME_FORMAT, i == 0 ? ", outputs " : ", ",
                        b->g->tensor[op->output.value[i]].name);
    }
    used += size > 0 ? (size_t)size : 0;
    if (used < room - 1) {
        snprintf(text.s + used, room - used, ")");
    }
    return text;
}

/* The other operators of the file that are not supported, each once: ", nor are A, B". */
static struct operator_text others_text(const struct ifd_tflite_build *b,
                                        const struct ifd_tflite_opcode *but)
{
    const struct ifd_tflite_opcode *opcode = b->model->opcode;
    struct operator_text text = {""};
    int used = 0;
    for (uint32_t i = 0; i < b->model->opcode_count && (size_t)used < sizeof(text.s); i++) {
        const char *name = name_of(&opcode[i]);
        bool is_told = name[0] == '\0' || strcmp(name, name_of(but)) == 0;
        for (uint32_t k = 0; k < i && !is_told; k++) {
            is_told = strcmp(name, name_of(&opcode[k])) == 0;
        }
        if (!is_told && !ifd_tflite_rule(&opcode[i])) {
            used += snprintf(text.s + used, sizeof(text.s) - (size_t)used, "%s%.60s",
                             used == 0 ? ", nor are " : ", ", name);
        }
    }
    return text;
}

static enum ifd_code find_rule(const struct ifd_tflite_build *b, uint32_t node,
                               const struct ifd_tflite_rule **ret)
{
    const struct ifd_tflite_operator *op = &b->g->op[node];
    const struct ifd_tflite_opcode *opcode = &b->model->opcode[op->opcode_index];
    const struct ifd_tflite_rule *rule = ifd_tflite_rule(opcode);
    if (!rule && opcode->builtin_name[0] == '\0') {
        return ifd_fail(b->err, IFD_UNSUPPORTED, "operator number %d%s is not supported",
                        opcode->builtin, operator_text(b, node).s);
    }
    if (!rule) {
        return ifd_fail(b->err, IFD_UNSUPPORTED, "operator %s is not supported%s",
                        operator_text(b, node).s, others_text(b, opcode).s);
    }
    if (opcode->version > rule->max_version) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "operator %s is newer than version %d, the last supported",
                        operator_text(b, node).s, rule->max_version);
    }
    *ret = rule;
    return IFD_OK;
}

static enum ifd_code check_rule(const struct ifd_tflite_build *b,
                                const struct ifd_tflite_operator *op,
                                const struct ifd_tflite_rule *rule)
{
    if (rule->options != 0 && op->options_type != 0 && op->options_type != rule->options) {
        return ifd_fail(b->err, IFD_CORRUPT, "options of type %d, expected %d", op->options_type,
                        rule->options);
    }
    if (op->input.count < rule->min_inputs || op->input.count > rule->max_inputs) {
        return ifd_fail(b->err, IFD_CORRUPT, "%u inputs, expected %s", op->input.count,
                        ifd_count_text(rule->min_inputs, rule->max_inputs).s);
    }
    if (op->output.count == 0) {
        return ifd_fail(b->err, IFD_CORRUPT, "no outputs");
    }
    return IFD_OK;
}

struct operands {
    uint32_t *input; /* all inputs in the file */
    uint32_t *kept;  /* inputs of our operator, in order */
    uint32_t *output;
    uint32_t kept_count;
};

/* As in LiteRT, a sum or product of quantized numbers has their type, whatever the file says. */
static enum ifd_code follow_operands(struct ifd_tflite_build *b,
                                     const struct ifd_tflite_operator *op,
                                     const struct ifd_tflite_rule *rule, const struct operands *o)
{
    const bool follows = rule->op == IFD_OP_ADD || rule->op == IFD_OP_SUB || rule->op == IFD_OP_MUL;
    if (!follows || o->input[0] == IFD_NONE) {
        return IFD_OK;
    }
    const enum ifd_dtype dtype = b->graph->value[o->input[0]].desc.dtype;
    struct ifd_desc *desc = &b->graph->value[o->output[0]].desc;
    const bool is_quantized = dtype == IFD_U8 || dtype == IFD_S8 || dtype == IFD_S16;
    if (!is_quantized || desc->dtype != IFD_F32) {
        return IFD_OK;
    }
    desc->dtype = dtype;
    return read_quantization(b, &b->g->tensor[op->output.value[0]], desc);
}

static enum ifd_code take_operands(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                                   const struct ifd_tflite_rule *rule, struct ifd_arena *scratch,
                                   struct operands *ret)
{
    struct operands o = {
        .input = ifd_arena_take_array(scratch, op->input.count, sizeof(*o.input)),
        .kept = ifd_arena_take_array(scratch, op->input.count, sizeof(*o.kept)),
        .output = ifd_arena_take_array(scratch, op->output.count, sizeof(*o.output)),
    };
    if (!o.input || !o.kept || !o.output) {
        return ifd_arena_fail(scratch, op->input.count * sizeof(*o.input), b->err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < op->input.count; i++) {
        const bool is_operand = i >= 32 || (rule->operands & IFD_BIT(i)) != 0;
        code = ifd_tflite_value_of(b, op->input.value[i], &o.input[i]);
        if (is_operand) {
            o.kept[o.kept_count++] = o.input[i];
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < op->output.count; i++) {
        code = ifd_tflite_add_value(b, (uint32_t)op->output.value[i], &o.output[i]);
    }
    if (code == IFD_OK) {
        code = follow_operands(b, op, rule, &o);
    }
    *ret = o;
    return code;
}

/* An input that decides the shape of the result, and is no constant. */
static enum ifd_code check_shape_inputs(struct ifd_tflite_build *b,
                                        const struct ifd_tflite_rule *rule,
                                        const struct operands *o)
{
    const uint32_t wanted = ifd_op_def(rule->op)->shape_inputs;
    for (uint32_t i = 0; i < o->kept_count && i < 32; i++) {
        const uint32_t value = o->kept[i];
        if ((wanted & IFD_BIT(i)) != 0 && value != IFD_NONE &&
            !b->graph->value[value].is_constant) {
            b->wanted = ifd_tflite_can_cut(b) ? value : IFD_NONE;
            return ifd_fail(b->err, IFD_UNSUPPORTED,
                            "input %u " NAME_FORMAT
                            " decides the output's shape and is not constant",
                            i, b->graph->value[value].name);
        }
    }
    return IFD_OK;
}

/* What the rule lacks, a run behind a cut can find. */
static enum ifd_code read_attributes(struct ifd_tflite_build *b,
                                     const struct ifd_tflite_operator *op,
                                     const struct ifd_tflite_rule *rule,
                                     const struct operands *operands, struct ifd_node *node)
{
    uint32_t wanted = IFD_NONE;
    const struct ifd_tflite_call call = {.graph = b->graph,
                                         .def = ifd_op_def(rule->op),
                                         .attrs = (void *)node->attrs, /* not yet shared */
                                         .op = op,
                                         .input = operands->input,
                                         .input_count = op->input.count,
                                         .output_count = op->output.count,
                                         .wanted = &wanted};
    const enum ifd_code code = rule->read ? rule->read(&call, b->err) : IFD_OK;
    if (code != IFD_OK && ifd_tflite_can_cut(b)) {
        b->wanted = wanted;
    }
    return code;
}

/* Few integers from few integers, as in computations of shapes and in conditions of loops. */
static bool is_shape_arithmetic(const struct ifd_graph *graph, const struct ifd_node *node)
{
    size_t total = 0;
    for (uint32_t i = 0; i < node->output_count + node->input_count; i++) {
        bool is_output = i < node->output_count;
        uint32_t value = is_output ? node->output[i] : node->input[i - node->output_count];
        if (value == IFD_NONE || (!is_output && node->op == IFD_OP_SHAPE)) {
            continue;
        }
        const struct ifd_desc *desc = &graph->value[value].desc;
        size_t count = 0;
        if ((desc->dtype != IFD_S32 && desc->dtype != IFD_S64 && desc->dtype != IFD_BOOL) ||
            !ifd_shape_elements(&desc->shape, &count) || count > COMPUTE_ELEMENTS) {
            return false;
        }
        total += count;
    }
    return total <= 4 * COMPUTE_ELEMENTS;
}

static enum ifd_code finish_node(struct ifd_tflite_build *b, uint32_t node)
{
    enum ifd_code code = ifd_graph_infer_node(b->graph, node, b->err);
    const struct ifd_node *n = &b->graph->node[node];
    for (uint32_t i = 0; code == IFD_OK && i < n->output_count; i++) {
        code = check_tensor_bytes(b, n->output[i]);
    }
    bool done = false;
    if (code == IFD_OK && (b->is_initializing || is_shape_arithmetic(b->graph, n))) {
        const size_t limit = b->is_initializing ? b->options->limits->tensor_bytes
                                                : COMPUTE_ELEMENTS * sizeof(int64_t);
        code = ifd_graph_compute_node(b->graph, node, limit, &done, b->err);
    }
    if (done) {
        b->graph->node_count--; /* it was the last one */
    }
    return code;
}

/* The graph as it was before an operator that failed. */
static void take_back(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                      uint32_t node_count, uint32_t value_count)
{
    b->graph->node_count = node_count;
    b->graph->value_count = value_count;
    for (uint32_t i = 0; i < op->input.count + op->output.count; i++) {
        const bool is_input = i < op->input.count;
        const int32_t t = is_input ? op->input.value[i] : op->output.value[i - op->input.count];
        if (t >= 0 && b->value_of[t] != IFD_NONE && b->value_of[t] >= value_count) {
            b->value_of[t] = IFD_NONE;
        }
    }
}

static enum ifd_code build_node(struct ifd_tflite_build *b, uint32_t index,
                                const struct ifd_tflite_rule *rule, struct ifd_arena *scratch)
{
    const struct ifd_tflite_operator *op = &b->g->op[index];
    struct operands operands = {0};
    struct ifd_node *node = NULL;
    const uint32_t node_count = b->graph->node_count, value_count = b->graph->value_count;
    enum ifd_code code = check_rule(b, op, rule);
    if (code == IFD_OK) {
        code = take_operands(b, op, rule, scratch, &operands);
    }
    if (code == IFD_OK) {
        code = check_shape_inputs(b, rule, &operands);
    }
    if (code == IFD_OK) {
        code = ifd_graph_add_node(b->graph, rule->op, operands.kept, operands.kept_count,
                                  operands.output, op->output.count, &node, b->err);
    }
    if (code == IFD_OK) {
        const struct ifd_tflite_opcode *opcode = &b->model->opcode[op->opcode_index];
        node->source_index = index;
        node->source_name = rule->custom ? rule->custom : opcode->builtin_name;
        code = read_attributes(b, op, rule, &operands, node);
    }
    if (code != IFD_OK) {
        take_back(b, op, node_count, value_count);
    }
    return code;
}

static enum ifd_code build_operator(struct ifd_tflite_build *b, uint32_t index,
                                    struct ifd_arena *scratch)
{
    const struct ifd_tflite_rule *rule = NULL;
    b->is_exhausted = b->is_exhausted || (b->depth > 0 && b->operators_left == 0);
    b->operators_left -= b->depth > 0 && b->operators_left > 0;
    if (b->is_exhausted && b->depth > 0) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "subgraphs become more than %d operators",
                        IFD_TFLITE_INLINED_MAX);
    }
    const bool is_control = ifd_tflite_is_control(b, index);
    const bool is_composite = ifd_tflite_is_composite(b, index);
    const bool is_variable = ifd_tflite_is_variable(b, index);
    const bool is_node = !is_control && !is_composite && !is_variable;
    enum ifd_code code = is_node ? find_rule(b, index, &rule) : IFD_OK;
    if (code != IFD_OK) {
        return code;
    }
    code = is_control     ? ifd_tflite_build_control(b, index, scratch)
           : is_composite ? ifd_tflite_build_composite(b, index, scratch)
           : is_variable  ? ifd_tflite_build_variable(b, index)
                          : build_node(b, index, rule, scratch);
    if (code != IFD_OK) {
        ifd_err_prefix(b->err, "operator %s", operator_text(b, index).s);
        return code;
    }
    return is_node ? finish_node(b, b->graph->node_count - 1) : IFD_OK; /* names the node */
}

static enum ifd_code build_operators(struct ifd_tflite_build *b, uint32_t first)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, b->graph->arena->alloc, 0);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = first; code == IFD_OK && i < b->g->op_count; i++) {
        b->node = b->depth == 0 && b->graph == b->main ? i : b->node;
        code = build_operator(b, i, &scratch);
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

/* A dimension is open where the signature or the shape says -1. */
static void decide_shape(struct ifd_tflite_build *b, uint32_t tensor, struct ifd_value *value,
                         struct ifd_shape *ret_declared)
{
    const struct ifd_shape example = value->desc.shape;
    struct ifd_shape file = ifd_tflite_declared(&b->g->tensor[tensor], &example);
    if (b->options->keeps_state && file.rank > 0 && file.dim[0] == IFD_DIM_ANY) {
        file.dim[0] = 1; /* a state is that of one sample */
    }
    ifd_parse_input_shape(b->options, value->name, &file, &example, ret_declared,
                          &value->desc.shape);
    ifd_parse_note_open(&file, ret_declared, b->parsed);
}

static enum ifd_code build_inputs(struct ifd_tflite_build *b)
{
    const struct ifd_tflite_ints *input = &b->g->input;
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
        decide_shape(b, (uint32_t)input->value[i], v, &b->declared[i]);
        code = check_tensor_bytes(b, ret[i]);
        if (code != IFD_OK) {
            return code;
        }
        struct ifd_bytes content = {0};
        const uint32_t buffer = b->g->tensor[input->value[i]].buffer;
        if (buffer < b->model->buffer_count &&
            ifd_tflite_content(&b->model->buffer[buffer], b->file, &content) && content.size > 0) {
            return ifd_fail(b->err, IFD_UNSUPPORTED,
                            "input " NAME_FORMAT " of the model is a constant", v->name);
        }
        b->main_input_count++;
    }
    return IFD_OK;
}

/* Inputs and outputs of the graph: the file's, and behind them the states. */
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
    const enum ifd_code code = ifd_tflite_take_states(b, b->state);
    if (code != IFD_OK) {
        return code;
    }
    uint32_t *all_outputs = value + inputs + states;
    memcpy(value, b->main_input, inputs * sizeof(*value));
    memcpy(all_outputs, output, outputs * sizeof(*value));
    for (uint32_t i = 0; i < states; i++) {
        value[inputs + i] = b->state[i].input;
        all_outputs[outputs + i] = b->state[i].output;
    }
    return ifd_graph_set_io(b->graph, value, inputs + states, all_outputs, outputs + states,
                            b->err);
}

/* Of the whole model, or of what follows behind a cut. */
static enum ifd_code begin_graph(struct ifd_tflite_build *b)
{
    if (b->options->resume) {
        return ifd_tflite_take_resumed(b);
    }
    const enum ifd_code code = build_inputs(b);
    return code == IFD_OK ? ifd_tflite_find_variables(b) : code;
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
    if (!b->value_of || !b->aligned) {
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
    for (uint32_t i = 0; b->declared && i < g->input.count; i++) {
        parsed->input[i].desc.shape = b->declared[i];
    }
    for (uint32_t i = 0; !parsed->cut.is_cut && i < g->output.count; i++) {
        const struct ifd_shape *shape = &b->graph->value[b->graph->output[i]].desc.shape;
        parsed->output[i].desc.shape = ifd_tflite_declared(&g->tensor[g->output.value[i]], shape);
    }
    for (uint32_t i = 0; i < parsed->state_count; i++) {
        const struct ifd_shape shape = b->graph->value[b->state[i].input].desc.shape;
        parsed->input[g->input.count + i].desc.shape = shape;
        parsed->output[g->output.count + i].desc.shape = shape;
    }
}

/* The subgraph that is the model. */
static enum ifd_code choose_subgraph(const struct ifd_tflite_model *model, const char *signature,
                                     const struct ifd_tflite_subgraph **ret, struct ifd_err *err)
{
    char list[IFD_ERR_TEXT_BYTES / 2] = "";
    size_t used = 0;
    *ret = &model->subgraph[0];
    if (!signature) {
        return IFD_OK;
    }
    for (uint32_t i = 0; i < model->signature_count; i++) {
        const struct ifd_tflite_signature *s = &model->signature[i];
        if (strcmp(s->key, signature) == 0) {
            *ret = &model->subgraph[s->subgraph];
            return IFD_OK;
        }
        if (used < sizeof(list)) {
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s" NAME_FORMAT,
                                     i > 0 ? ", " : "", s->key);
        }
    }
    return ifd_fail(err, IFD_INVALID, "the model has no signature " NAME_FORMAT "; it has %s",
                    signature, model->signature_count > 0 ? list : "none");
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
    const struct ifd_tflite_subgraph *g = NULL;
    if (code == IFD_OK) {
        code = choose_subgraph(&model, options->signature, &g, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_tflite_build b = {.model = &model,
                                 .g = g,
                                 .operators_left = IFD_TFLITE_INLINED_MAX,
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
