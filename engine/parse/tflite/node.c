/* One operator of a TFLite model as a node. What computes shapes from known shapes is computed at
 * once, so that later shapes are known. */
#include <stdio.h>
#include <string.h>

#include "engine/ir/eval.h"
#include "engine/ir/shape.h"
#include "engine/ir/trace.h"
#include "engine/parse/tflite/tflite_build.h"

#define COMPUTE_ELEMENTS 64 /* shape arithmetic is smaller than this */

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

/* Why there is no rule. */
static const char *why_not(const struct ifd_tflite_opcode *opcode)
{
    static const struct {
        const char *name, *why;
    } reasons[] = {
        {"RANDOM_STANDARD_NORMAL", ": each run of it has other results"},
        {"RANDOM_UNIFORM", ": each run of it has other results"},
        {"MULTINOMIAL", ": each run of it has other results"},
        {"STABLEHLO_RNG_BIT_GENERATOR", ": random numbers are the client's to send"},
        {"LSH_PROJECTION", ": its hash of bytes is that of one library, on one byte order"},
        {"SKIP_GRAM", ": it makes texts of texts; the client can send them"},
        {"CONCAT_EMBEDDINGS", ": LiteRT does not compute it either"},
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (strcmp(opcode->builtin_name, reasons[i].name) == 0) {
            return reasons[i].why;
        }
    }
    return "";
}

/* Of flags the largest and the sum are any of them, the smallest and the product all of them. */
static const struct ifd_tflite_rule *rule_of_flags(const struct ifd_tflite_build *b,
                                                   const struct ifd_tflite_operator *op,
                                                   const struct ifd_tflite_rule *rule)
{
    enum { ANY = 91, ALL = 140 }; /* of the format */
    const int32_t first = op->input.count > 0 ? op->input.value[0] : -1;
    const bool is_any = rule->op == IFD_OP_REDUCE_MAX || rule->op == IFD_OP_REDUCE_SUM;
    const bool is_all = rule->op == IFD_OP_REDUCE_MIN || rule->op == IFD_OP_REDUCE_PROD;
    enum ifd_dtype dtype = IFD_DTYPE_COUNT;
    if ((!is_any && !is_all) || first < 0 || !ifd_tflite_dtype(b->g->tensor[first].type, &dtype) ||
        dtype != IFD_BOOL) {
        return rule;
    }
    const struct ifd_tflite_opcode opcode = {.builtin = is_any ? ANY : ALL};
    return ifd_tflite_rule(&opcode);
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
        return ifd_fail(b->err, IFD_UNSUPPORTED, "operator %s is not supported%s%s",
                        operator_text(b, node).s, why_not(opcode), others_text(b, opcode).s);
    }
    if (opcode->version > rule->max_version) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "operator %s is newer than version %d, the last supported",
                        operator_text(b, node).s, rule->max_version);
    }
    *ret = rule_of_flags(b, op, rule);
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

/* Operators whose result has in LiteRT the type of their first input, whatever the file says. */
static bool follows_input(enum ifd_op op)
{
    return op == IFD_OP_ADD || op == IFD_OP_SUB || op == IFD_OP_MUL || op == IFD_OP_DIV ||
           op == IFD_OP_MINIMUM || op == IFD_OP_MAXIMUM || op == IFD_OP_SQUARED_DIFFERENCE ||
           op == IFD_OP_NEG;
}

/* Quantizers leave floats behind operators that they do not know. */
static enum ifd_code follow_operands(struct ifd_tflite_build *b,
                                     const struct ifd_tflite_operator *op,
                                     const struct ifd_tflite_rule *rule, const struct operands *o)
{
    if (!follows_input(rule->op) || o->input[0] == IFD_NONE) {
        return IFD_OK;
    }
    const enum ifd_dtype dtype = b->graph->value[o->input[0]].desc.dtype;
    struct ifd_desc *desc = &b->graph->value[o->output[0]].desc;
    const bool is_quantized = dtype == IFD_U8 || dtype == IFD_S8 || dtype == IFD_S16;
    if (!is_quantized || desc->dtype != IFD_F32) {
        return IFD_OK;
    }
    desc->dtype = dtype;
    return ifd_tflite_read_quantization(b, &b->g->tensor[op->output.value[0]], desc);
}

/* Does LiteRT ignore the zero points of a layer's weights of s8? */
static bool ignores_zero_points(const struct ifd_tflite_build *b,
                                const struct ifd_tflite_rule *rule, const struct operands *o)
{
    const bool is_any = rule->op == IFD_OP_DEPTHWISE_CONV2D || rule->op == IFD_OP_TRANSPOSE_CONV2D;
    const bool is_hybrid = (rule->op == IFD_OP_CONV2D || rule->op == IFD_OP_FULLY_CONNECTED) &&
                           o->kept_count > 0 && o->kept[0] != IFD_NONE &&
                           b->graph->value[o->kept[0]].desc.dtype == IFD_F32;
    return (is_any || is_hybrid) && o->kept_count > 1 && o->kept[1] != IFD_NONE;
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
    if (code == IFD_OK && ignores_zero_points(b, rule, &o)) {
        code = ifd_tflite_without_zero_points(b, &o.kept[1]);
    }
    *ret = o;
    return code;
}

/* An input that decides the shape of the result, and is no constant, is wanted. */
static enum ifd_code check_shape_inputs(const struct ifd_tflite_build *b,
                                        const struct ifd_tflite_rule *rule,
                                        const struct operands *o, uint32_t *ret_wanted)
{
    const uint32_t wanted = ifd_op_def(rule->op)->shape_inputs;
    for (uint32_t i = 0; i < o->kept_count && i < 32; i++) {
        const uint32_t value = o->kept[i];
        if ((wanted & IFD_BIT(i)) != 0 && value != IFD_NONE &&
            !b->graph->value[value].is_constant) {
            *ret_wanted = value;
            return ifd_fail(b->err, IFD_UNSUPPORTED,
                            "input %u " NAME_FORMAT
                            " decides the output's shape and is not constant",
                            i, b->graph->value[value].name);
        }
    }
    return IFD_OK;
}

/* An input that the rule reads, and is no constant, is wanted. */
static enum ifd_code read_attributes(const struct ifd_tflite_build *b,
                                     const struct ifd_tflite_operator *op,
                                     const struct ifd_tflite_rule *rule,
                                     const struct operands *operands, struct ifd_node *node,
                                     uint32_t *ret_wanted)
{
    const struct ifd_tflite_call call = {.graph = b->graph,
                                         .def = ifd_op_def(rule->op),
                                         .attrs = (void *)node->attrs, /* not yet shared */
                                         .op = op,
                                         .input = operands->input,
                                         .input_count = op->input.count,
                                         .output_count = op->output.count,
                                         .wanted = ret_wanted};
    return rule->read ? rule->read(&call, b->err) : IFD_OK;
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
        code = ifd_tflite_check_bytes(b, n->output[i]);
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
    ifd_graph_go_back(b->graph, node_count, value_count);
    for (uint32_t i = 0; i < op->input.count + op->output.count; i++) {
        const bool is_input = i < op->input.count;
        const int32_t t = is_input ? op->input.value[i] : op->output.value[i - op->input.count];
        if (t >= 0 && b->value_of[t] != IFD_NONE && b->value_of[t] >= value_count) {
            b->value_of[t] = IFD_NONE;
        }
    }
}

static enum ifd_code try_node(struct ifd_tflite_build *b, uint32_t index,
                              const struct ifd_tflite_rule *rule, struct ifd_arena *scratch,
                              uint32_t *ret_wanted)
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
        code = check_shape_inputs(b, rule, &operands, ret_wanted);
    }
    if (code == IFD_OK) {
        code = ifd_graph_add_node(b->graph, rule->op, operands.kept, operands.kept_count,
                                  operands.output, op->output.count, &node, b->err);
    }
    if (code == IFD_OK) {
        const struct ifd_tflite_opcode *opcode = &b->model->opcode[op->opcode_index];
        node->source_index = index;
        node->source_name = rule->custom ? rule->custom : opcode->builtin_name;
        code = read_attributes(b, op, rule, &operands, node, ret_wanted);
    }
    if (code != IFD_OK) {
        take_back(b, op, node_count, value_count);
    }
    return code;
}

/* Operands whose value is wanted become what a run has found. False: none has. */
static bool learn(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op, uint32_t wanted)
{
    const uint32_t known = ifd_tflite_ask(b, wanted);
    for (uint32_t i = 0; known != IFD_NONE && i < op->input.count; i++) {
        const int32_t t = op->input.value[i];
        if (t >= 0 && b->value_of[t] == wanted) {
            b->value_of[t] = known;
        }
    }
    return known != IFD_NONE;
}

static enum ifd_code build_node(struct ifd_tflite_build *b, uint32_t index,
                                const struct ifd_tflite_rule *rule, struct ifd_arena *scratch)
{
    enum ifd_code code = IFD_OK;
    bool is_new = true;
    while (is_new) {
        uint32_t wanted = IFD_NONE;
        code = try_node(b, index, rule, scratch, &wanted);
        is_new = code != IFD_OK && wanted != IFD_NONE && learn(b, &b->g->op[index], wanted);
    }
    return code;
}

enum ifd_code ifd_tflite_spend(struct ifd_tflite_build *b, uint32_t operators)
{
    b->is_exhausted = b->is_exhausted || b->operators_left < operators;
    if (b->is_exhausted) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "subgraphs become more than %u operators",
                        ifd_parse_inlined_max(b->options));
    }
    b->operators_left -= operators;
    return IFD_OK;
}

enum ifd_code ifd_tflite_build_operator(struct ifd_tflite_build *b, uint32_t index,
                                        struct ifd_arena *scratch)
{
    const struct ifd_tflite_rule *rule = NULL;
    const enum ifd_code spent = b->depth > 0 ? ifd_tflite_spend(b, 1) : IFD_OK;
    if (spent != IFD_OK) {
        return spent;
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
