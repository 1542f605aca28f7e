/* IF, WHILE, CALL, STABLEHLO_COMPOSITE (a call, too) and STABLEHLO_CASE. What is decided while the
 * file is read is built in place: a loop becomes its turns. Otherwise the subgraphs become graphs
 * of their own, which a node names. Where these would need content that only a run computes, or
 * shapes differ, they are built in place after all: runs say which branch, and whether there is one
 * more turn. */
#include "engine/ir/shape.h"
#include "engine/ir/trace.h"
#include "engine/ir/verify.h"
#include "engine/parse/tflite/tflite_build.h"

#include <string.h>

enum {
    CALL = 31,
    IF = 118,
    WHILE = 119,
    COMPOSITE = 206,
    CASE = 209
}; /* builtin operators of the format */

static int32_t builtin_of(const struct ifd_tflite_build *b, uint32_t index)
{
    return b->model->opcode[b->g->op[index].opcode_index].builtin;
}

bool ifd_tflite_is_control(const struct ifd_tflite_build *b, uint32_t index)
{
    const int32_t builtin = builtin_of(b, index);
    return builtin == CALL || builtin == IF || builtin == WHILE || builtin == COMPOSITE ||
           builtin == CASE;
}

/* An operator that names subgraphs, with values of its operands. */
struct control {
    struct ifd_tflite_build *b;
    const struct ifd_tflite_operator *op;
    const uint32_t *subgraph;
    uint32_t *input, *output;
    uint32_t input_count, output_count;
    bool asks; /* for conditions that are not known */
};

/* ---- what can be taken back ---- */

/* Where the graph ended: what was built behind it can go. */
struct mark {
    struct ifd_graph *next;
    uint32_t node_count, value_count, asked;
    const uint32_t *variable; /* of variables so far */
    uint32_t variable_count;
};

static enum ifd_code set_mark(const struct ifd_tflite_build *b, struct ifd_arena *scratch,
                              struct mark *ret)
{
    *ret = (struct mark){.next = b->main->next,
                         .node_count = b->graph->node_count,
                         .value_count = b->graph->value_count,
                         .asked = b->asked,
                         .variable_count = b->variable_count};
    return ifd_tflite_save_variables(b, scratch, &ret->variable);
}

static void go_back(struct ifd_tflite_build *b, struct mark mark)
{
    b->main->next = mark.next;
    ifd_graph_go_back(b->graph, mark.node_count, mark.value_count);
    b->asked = mark.asked;
    if (b->graph == b->main) { /* variables are values of this one */
        ifd_tflite_restore_variables(b, mark.variable, mark.variable_count, mark.value_count);
    }
}

/* Can what failed as a graph of its own be built in place? Forgets the failure then. */
static bool may_build_in_place(struct control *c, enum ifd_code code, struct mark mark)
{
    struct ifd_tflite_build *b = c->b;
    if (code == IFD_OK || !b->is_stuck || !ifd_tflite_can_cut(b)) {
        return false;
    }
    go_back(b, mark);
    b->is_stuck = false;
    c->asks = true;
    return true;
}

/* ---- conditions ---- */

static enum ifd_code check_condition(const struct control *c, uint32_t value)
{
    const struct ifd_desc *desc = &c->b->graph->value[value].desc;
    if (desc->dtype != IFD_BOOL) {
        return ifd_fail(c->b->err, IFD_CORRUPT, "a condition of type %s, expected bool",
                        ifd_dtype_name(desc->dtype));
    }
    return IFD_OK;
}

static bool is_true_in(const struct ifd_graph *graph, uint32_t value)
{
    const struct ifd_value *v = &graph->value[value];
    return v->is_constant && v->data.size > 0 && v->data.data[0] != 0;
}

/* Is it known while the file is read, or has a run found it? */
static bool is_known(const struct control *c, uint32_t value, bool *ret_is_true)
{
    const bool asks = c->asks && !c->b->graph->value[value].is_constant;
    const uint32_t known = asks ? ifd_tflite_ask(c->b, value) : value;
    const struct ifd_value *v = &c->b->graph->value[known != IFD_NONE ? known : value];
    ifd_trace_read(c->b->graph, known != IFD_NONE ? known : value, false, IFD_NONE);
    *ret_is_true = v->is_constant && v->data.size > 0 && v->data.data[0] != 0;
    return v->is_constant && v->data.size > 0;
}

static enum ifd_code fail_unknown(const struct control *c)
{
    return ifd_fail(c->b->err, IFD_UNSUPPORTED,
                    "a condition that only a run computes decides a shape");
}

/* ---- graphs of their own ---- */

static enum ifd_code take_inputs(const struct control *c, const struct ifd_graph *outer,
                                 const uint32_t *input, uint32_t count, uint32_t *ret)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        const struct ifd_value *value = &outer->value[input[i]];
        code = ifd_graph_add_value(c->b->graph, value->name, &value->desc, &ret[i], c->b->err);
    }
    return code;
}

/* Builds a subgraph as a graph whose inputs are like these values of the outer one. */
static enum ifd_code build_graph(const struct control *c, uint32_t subgraph, const uint32_t *input,
                                 uint32_t input_count, uint32_t output_count,
                                 const struct ifd_graph **ret)
{
    struct ifd_tflite_build *b = c->b;
    struct ifd_graph *outer = b->graph;
    struct ifd_arena *arena = outer->arena;
    struct ifd_graph *graph = ifd_arena_take(arena, sizeof(*graph));
    uint32_t *inner = ifd_arena_take_array(arena, input_count, sizeof(*inner));
    uint32_t *output = ifd_arena_take_array(arena, output_count, sizeof(*output));
    if (!graph || !inner || !output) {
        return ifd_arena_fail(arena, sizeof(*graph), b->err);
    }
    ifd_graph_init(graph, arena);
    graph->main = b->main;
    b->graph = graph;
    enum ifd_code code = ifd_tflite_spend(b, IFD_TFLITE_GRAPH_OPERATORS);
    if (code == IFD_OK) {
        code = take_inputs(c, outer, input, input_count, inner);
    }
    if (code == IFD_OK) {
        code = ifd_tflite_inline(b, subgraph, inner, input_count, output, output_count);
    }
    b->graph = outer;
    if (code == IFD_OK) {
        code = ifd_graph_set_io(graph, inner, input_count, output, output_count, b->err);
    }
    if (code == IFD_OK) {
        code = ifd_graph_verify(graph, IFD_INVALID, b->err);
    }
    graph->next = b->main->next;
    b->main->next = graph;
    *ret = graph;
    return code;
}

/* A node whose outputs are like those of a graph. */
static enum ifd_code add_node(const struct control *c, enum ifd_op op, const void *attrs,
                              const struct ifd_graph *like)
{
    struct ifd_tflite_build *b = c->b;
    struct ifd_node *node = NULL;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < c->output_count; i++) {
        const struct ifd_desc *desc = &like->value[like->output[i]].desc;
        code = ifd_graph_add_value(b->graph, b->g->tensor[c->op->output.value[i]].name, desc,
                                   &c->output[i], b->err);
    }
    if (code == IFD_OK) {
        code = ifd_graph_add_node(b->graph, op, c->input, c->input_count, c->output,
                                  c->output_count, &node, b->err);
    }
    if (code != IFD_OK) {
        return code;
    }
    memcpy((void *)(uintptr_t)node->attrs, attrs, ifd_op_def(op)->attrs_bytes);
    node->source_index = (uint32_t)(c->op - b->g->op);
    node->source_name = b->model->opcode[c->op->opcode_index].builtin_name;
    code = ifd_graph_infer_node(b->graph, b->graph->node_count - 1, b->err);
    b->is_stuck = b->is_stuck || code != IFD_OK; /* shapes differ or change */
    return code;
}

/* ---- WHILE ---- */

/* One turn: carries the values through the body while the condition is true. */
static enum ifd_code turn(const struct control *c, uint32_t *carried, uint32_t *next,
                          bool *ret_is_known, bool *ret_goes_on)
{
    uint32_t condition = IFD_NONE;
    enum ifd_code code =
        ifd_tflite_inline(c->b, c->subgraph[0], carried, c->input_count, &condition, 1);
    if (code == IFD_OK) {
        code = check_condition(c, condition);
    }
    if (code != IFD_OK) {
        return code;
    }
    *ret_is_known = is_known(c, condition, ret_goes_on);
    if (*ret_is_known && *ret_goes_on) {
        code =
            ifd_tflite_inline(c->b, c->subgraph[1], carried, c->input_count, next, c->input_count);
        memcpy(carried, next, c->input_count * sizeof(*carried));
    }
    return code;
}

/* Builds a loop whose number of turns is known, turn by turn. */
static enum ifd_code unroll(const struct control *c, struct ifd_arena *scratch, bool *ret_is_done)
{
    struct ifd_tflite_build *b = c->b;
    struct mark before;
    uint32_t *next = ifd_arena_take_array(scratch, c->input_count, sizeof(*next));
    bool known = true, goes_on = true;
    enum ifd_code code = next ? set_mark(b, scratch, &before)
                              : ifd_arena_fail(scratch, c->input_count * sizeof(*next), b->err);
    memcpy(c->output, c->input, c->input_count * sizeof(*c->input));
    while (code == IFD_OK && known && goes_on) {
        code = turn(c, c->output, next, &known, &goes_on);
    }
    *ret_is_done = code == IFD_OK && known;
    if (c->asks) {
        return code == IFD_OK && !known ? fail_unknown(c) : code;
    }
    if (code == IFD_TOO_LARGE && b->is_exhausted) {
        code = IFD_OK; /* as a loop it is small; no other one is tried */
        b->keeps_loops = true;
        b->is_exhausted = false;
        b->operators_left = ifd_parse_inlined_max(b->options);
    }
    if (code == IFD_OK && !*ret_is_done) {
        go_back(b, before);
    }
    return code;
}

/* Is the condition true in front of the loop and in every turn, whatever the data is? */
static bool never_ends(const struct control *c, const struct ifd_loop_attrs *attrs)
{
    const struct ifd_graph *condition = attrs->condition, *body = attrs->body;
    const uint32_t flag = condition->output[0];
    bool is_true = is_true_in(condition, flag);
    for (uint32_t i = 0; i < c->input_count && !is_true; i++) { /* handed on from turn to turn */
        is_true = condition->input[i] == flag && is_true_in(c->b->graph, c->input[i]) &&
                  (body->output[i] == body->input[i] || is_true_in(body, body->output[i]));
    }
    return is_true;
}

static enum ifd_code build_loop(const struct control *c)
{
    struct ifd_loop_attrs attrs = {0};
    const uint32_t count = c->input_count;
    enum ifd_code code = build_graph(c, c->subgraph[0], c->input, count, 1, &attrs.condition);
    if (code == IFD_OK) {
        code = build_graph(c, c->subgraph[1], c->input, count, count, &attrs.body);
    }
    if (code == IFD_OK && never_ends(c, &attrs)) {
        return ifd_fail(c->b->err, IFD_TOO_LARGE, "a loop whose condition stays true");
    }
    return code == IFD_OK ? add_node(c, IFD_OP_LOOP, &attrs, attrs.body) : code;
}

static enum ifd_code build_while(struct control *c, struct ifd_arena *scratch)
{
    struct mark before;
    bool is_done = false;
    if (c->output_count != c->input_count) {
        return ifd_fail(c->b->err, IFD_CORRUPT, "%u inputs and %u outputs, expected as many",
                        c->input_count, c->output_count);
    }
    enum ifd_code code = set_mark(c->b, scratch, &before);
    if (code == IFD_OK && !c->b->keeps_loops) {
        code = unroll(c, scratch, &is_done);
    }
    if (code != IFD_OK || is_done) {
        return code;
    }
    c->b->is_stuck = false;
    code = build_loop(c);
    return may_build_in_place(c, code, before) ? unroll(c, scratch, &is_done) : code;
}

/* ---- IF ---- */

static enum ifd_code build_cond(const struct control *c)
{
    struct ifd_cond_attrs attrs = {0};
    enum ifd_code code = IFD_OK;
    for (int k = 0; code == IFD_OK && k < 2; k++) {
        code = build_graph(c, c->subgraph[k], c->input + 1, c->input_count - 1, c->output_count,
                           &attrs.branch[k]);
    }
    return code == IFD_OK ? add_node(c, IFD_OP_COND, &attrs, attrs.branch[0]) : code;
}

static enum ifd_code build_branch(const struct control *c, bool is_true)
{
    return ifd_tflite_inline(c->b, c->subgraph[is_true ? 0 : 1], c->input + 1, c->input_count - 1,
                             c->output, c->output_count);
}

static enum ifd_code build_if(struct control *c, struct ifd_arena *scratch)
{
    struct mark before;
    bool is_true = false;
    if (c->input_count == 0 || c->input[0] == IFD_NONE) {
        return ifd_fail(c->b->err, IFD_CORRUPT, "no condition");
    }
    enum ifd_code code = check_condition(c, c->input[0]);
    if (code == IFD_OK) {
        code = set_mark(c->b, scratch, &before);
    }
    if (code != IFD_OK) {
        return code;
    }
    if (is_known(c, c->input[0], &is_true)) {
        return build_branch(c, is_true);
    }
    c->b->is_stuck = false;
    code = build_cond(c);
    if (!may_build_in_place(c, code, before)) {
        return code;
    }
    return is_known(c, c->input[0], &is_true) ? build_branch(c, is_true) : fail_unknown(c);
}

/* ---- STABLEHLO_CASE ---- */

/* The branch that the first input numbers, the last one if there is none. It is built in place: a
 * run says which it is. */
static enum ifd_code build_case(const struct control *c)
{
    struct ifd_tflite_build *b = c->b;
    const struct ifd_tflite_ints *branch = &c->op->options->ints;
    if (c->input_count == 0 || branch->count == 0) {
        return ifd_fail(b->err, IFD_CORRUPT, "%u inputs, %u branches", c->input_count,
                        branch->count);
    }
    const bool is_constant = b->graph->value[c->input[0]].is_constant;
    const uint32_t known = is_constant ? c->input[0] : ifd_tflite_ask(b, c->input[0]);
    if (known == IFD_NONE) {
        return fail_unknown(c);
    }
    const struct ifd_value *number = &b->graph->value[known];
    int32_t i = 0;
    ifd_trace_read(b->graph, known, false, IFD_NONE);
    if (number->desc.dtype != IFD_S32 || number->data.size != sizeof(i)) {
        return ifd_fail(b->err, IFD_CORRUPT, "the number of a branch is %s %s, expected one s32",
                        ifd_dtype_name(number->desc.dtype), ifd_shape_text(&number->desc.shape).s);
    }
    memcpy(&i, number->data.data, sizeof(i));
    const uint32_t at = i >= 0 && (uint32_t)i < branch->count ? (uint32_t)i : branch->count - 1;
    return ifd_tflite_inline(b, (uint32_t)branch->value[at], c->input + 1, c->input_count - 1,
                             c->output, c->output_count);
}

/* ---- all ---- */

static enum ifd_code take_operands(struct control *c, const struct ifd_tflite_operator *op,
                                   struct ifd_arena *scratch)
{
    struct ifd_tflite_build *b = c->b;
    c->input = ifd_arena_take_array(scratch, op->input.count, sizeof(*c->input));
    c->output = ifd_arena_take_array(scratch, op->output.count, sizeof(*c->output));
    if (!c->input || !c->output) {
        return ifd_arena_fail(scratch, op->input.count * sizeof(*c->input), b->err);
    }
    for (uint32_t i = 0; i < op->input.count; i++) {
        const enum ifd_code code = ifd_tflite_value_of(b, op->input.value[i], &c->input[i]);
        if (code != IFD_OK) {
            return code;
        }
        if (c->input[i] == IFD_NONE) {
            return ifd_fail(b->err, IFD_CORRUPT, "input %u is missing", i);
        }
    }
    c->input_count = op->input.count;
    c->output_count = op->output.count;
    return IFD_OK;
}

enum ifd_code ifd_tflite_build_control(struct ifd_tflite_build *b, uint32_t index,
                                       struct ifd_arena *scratch)
{
    const struct ifd_tflite_operator *op = &b->g->op[index];
    const int32_t builtin = builtin_of(b, index);
    struct control c = {.b = b, .op = op, .subgraph = op->options->subgraph};
    enum ifd_code code = take_operands(&c, op, scratch);
    if (code != IFD_OK) {
        return code;
    }
    if (builtin == WHILE) {
        code = build_while(&c, scratch);
    } else if (builtin == IF) {
        code = build_if(&c, scratch);
    } else if (builtin == CASE) {
        code = build_case(&c);
    } else {
        code =
            ifd_tflite_inline(b, c.subgraph[0], c.input, c.input_count, c.output, c.output_count);
    }
    for (uint32_t i = 0; code == IFD_OK && i < op->output.count; i++) {
        b->value_of[op->output.value[i]] = c.output[i];
    }
    return code;
}
