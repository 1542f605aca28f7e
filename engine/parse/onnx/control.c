/* If and Loop (Scan: scan.c). What is decided while the file is read is built in place: a loop
 * becomes its turns. Otherwise the graphs of the node become graphs of ours (inner.h). */
#include <string.h>

#include "engine/parse/onnx/inner.h"

/* ---- If ---- */

static void build_cond(struct ifd_onnx_call *call, uint32_t condition,
                       const struct ifd_onnx_graph *const branch[2])
{
    struct ifd_onnx_captures captures = {.call = call};
    struct ifd_cond_attrs attrs = {0};
    uint32_t *output = ifd_onnx_take(call, call->output_count);
    for (int k = 0; k < 2; k++) {
        ifd_onnx_capture(&captures, branch[k]);
    }
    for (int k = 0; k < 2 && call->b->code == IFD_OK; k++) {
        struct ifd_onnx_inner inner;
        ifd_onnx_begin_graph(call, captures.value, captures.count, &captures, &inner);
        ifd_onnx_build_inline(call, branch[k], NULL, 0, output);
        attrs.branch[k] = ifd_onnx_end_graph(call, &inner, output, call->output_count);
    }
    uint32_t *input = ifd_onnx_take(call, captures.count + (size_t)1);
    if (call->b->code != IFD_OK) {
        return;
    }
    input[0] = condition;
    memcpy(input + 1, captures.value ? captures.value : input, captures.count * sizeof(*input));
    ifd_onnx_add_node(call, IFD_OP_COND, &attrs, input, captures.count + 1, attrs.branch[0],
                      call->output);
}

void ifd_onnx_if(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const struct ifd_onnx_graph *branch[2] = {ifd_onnx_graph_of(call, "then_branch"),
                                              ifd_onnx_graph_of(call, "else_branch")};
    const uint32_t condition = ifd_onnx_condition(call->b, ifd_onnx_input(call, 0));
    bool is_true = false;
    for (int k = 0; k < 2 && call->b->code == IFD_OK; k++) {
        if (branch[k]->output_count != call->node->output_count) {
            ifd_build_fail(call->b, IFD_CORRUPT, "a branch has %u outputs, the node %u",
                           branch[k]->output_count, call->node->output_count);
        }
    }
    if (call->b->code != IFD_OK) {
        return;
    }
    const struct ifd_onnx_mark mark = ifd_onnx_mark_of(call);
    if (!ifd_onnx_is_known(call->b, condition, &is_true)) {
        build_cond(call, condition, branch);
        /* the branch that is not taken may be one for other shapes, or cannot be computed */
        call->build->is_stuck = call->build->is_stuck || call->b->code == IFD_UNSUPPORTED;
        if (!ifd_onnx_may_build_in_place(call)) {
            return;
        }
        ifd_onnx_go_back(call, &mark); /* the data says which one */
        (void)ifd_onnx_is_known(call->b, ifd_build_known(call->b, condition), &is_true);
    }
    ifd_onnx_build_inline(call, branch[is_true ? 0 : 1], NULL, 0, call->output);
}

/* ---- Loop ---- */

/* Of a loop that nothing but its limit ends: no run has time for more. */
#define LIMIT_MAX ((int64_t)1 << 32)

struct loop {
    struct ifd_onnx_call *call;
    const struct ifd_onnx_graph *body;
    uint32_t limit;               /* s64 scalar; IFD_NONE: none */
    uint32_t carried, list_count; /* values, lists of results */
    uint32_t *value;              /* turn, condition, values */
    uint32_t *next;               /* condition, values, results: outputs of the body */
    uint32_t *result;             /* [list][turn] */
    uint32_t turns;
    bool asks;      /* what is not known */
    bool is_steady; /* the body leaves the condition as it is, or makes it true */
};

static bool take_loop(struct loop *l)
{
    l->value = ifd_onnx_take(l->call, l->carried + (size_t)2);
    l->next = ifd_onnx_take(l->call, l->body->output_count + (size_t)1);
    return l->call->b->code == IFD_OK;
}

static void start(struct loop *l)
{
    struct ifd_onnx_call *call = l->call;
    const uint32_t condition = ifd_onnx_input(call, 1);
    l->value[0] = ifd_build_number(call->b, IFD_S64, 0);
    l->value[1] = condition != IFD_NONE ? ifd_onnx_condition(call->b, condition)
                                        : ifd_build_number(call->b, IFD_BOOL, 1);
    for (uint32_t i = 0; i < l->carried; i++) {
        l->value[2 + i] = ifd_onnx_input(call, 2 + i);
        if (l->value[2 + i] == IFD_NONE) {
            ifd_build_fail(call->b, IFD_CORRUPT, "input %u is missing", 2 + i);
        }
    }
}

static bool keep_results(struct loop *l)
{
    if (l->turns % 64 == 0 && l->list_count > 0) {
        uint32_t *grown = ifd_onnx_take(l->call, (size_t)(l->turns + 64) * l->list_count);
        if (!grown) {
            return false;
        }
        memcpy(grown, l->result ? l->result : grown,
               (size_t)l->turns * l->list_count * sizeof(*grown));
        l->result = grown;
    }
    for (uint32_t i = 0; i < l->list_count; i++) {
        l->result[l->turns * l->list_count + i] = l->next[1 + l->carried + i];
    }
    l->turns++;
    return true;
}

/* One turn in place. False: it is not known whether there is one, or the builder has failed. A loop
 * that asks takes the answer from a run. */
static bool turn(struct loop *l, uint64_t limit, bool *ret_is_over)
{
    struct ifd_builder *b = l->call->b;
    bool goes_on = false;
    const uint32_t condition = l->asks ? ifd_build_known(b, l->value[1]) : l->value[1];
    if (!ifd_onnx_is_known(b, condition, &goes_on)) {
        return false;
    }
    *ret_is_over = !goes_on || l->turns >= limit;
    if (*ret_is_over) {
        return true;
    }
    l->value[0] = ifd_build_number(b, IFD_S64, l->turns);
    ifd_onnx_build_inline(l->call, l->body, l->value, l->carried + 2, l->next);
    if (b->code != IFD_OK || !keep_results(l)) {
        return false;
    }
    l->value[1] = ifd_onnx_condition(b, l->next[0]);
    memcpy(l->value + 2, l->next + 1, l->carried * sizeof(*l->value));
    return b->code == IFD_OK;
}

/* Builds a loop whose number of turns is known, turn by turn. False: it is not. */
static bool unroll(struct loop *l)
{
    struct ifd_onnx_build *build = l->call->build;
    struct ifd_builder *b = l->call->b;
    const struct ifd_onnx_mark mark = ifd_onnx_mark_of(l->call);
    const uint32_t known = l->asks ? ifd_build_known(b, l->limit) : l->limit;
    const struct ifd_bytes content = ifd_build_content(b, known);
    int64_t limit = INT64_MAX;
    bool is_over = false, goes_on = l->limit == IFD_NONE || content.size > 0;
    if (content.size >= sizeof(limit)) {
        memcpy(&limit, content.data, sizeof(limit));
    }
    l->turns = 0;
    while (goes_on && !is_over) {
        goes_on = turn(l, limit > 0 ? (uint64_t)limit : 0, &is_over);
    }
    if (is_over) {
        return true;
    }
    if (b->code == IFD_TOO_LARGE && build->is_exhausted && !l->asks) {
        b->code = IFD_OK; /* as a loop it is small; no other one is tried */
        build->keeps_loops = true;
        build->is_exhausted = false;
        build->nodes_left = ifd_parse_inlined_max(build->options);
    }
    if (b->code == IFD_OK) {
        ifd_onnx_go_back(l->call, &mark);
    }
    return false;
}

static struct ifd_onnx_turns turns_of(const struct loop *l)
{
    return (struct ifd_onnx_turns){.call = l->call,
                                   .body = l->body,
                                   .limit = l->limit,
                                   .carried = l->carried,
                                   .list_count = l->list_count};
}

static void take_results(struct loop *l)
{
    struct ifd_onnx_call *call = l->call;
    for (uint32_t i = 0; i < call->output_count && i < l->carried; i++) {
        call->output[i] = l->value[2 + i];
    }
    if (l->turns == 0 && l->carried < call->output_count) {
        const struct ifd_onnx_turns turns = turns_of(l);
        ifd_onnx_no_results(&turns, l->value + 2);
        return;
    }
    uint32_t *list = ifd_onnx_take(call, l->turns + (size_t)1);
    for (uint32_t i = 0; list && l->carried + i < call->output_count; i++) {
        for (uint32_t t = 0; t < l->turns; t++) {
            list[t] = l->result[t * l->list_count + i];
        }
        call->output[l->carried + i] = ifd_onnx_stack(call, list, l->turns, 0);
    }
}

/* Inputs of the node: turn, condition, values, limit, captured ones. */
static uint32_t *node_inputs(struct loop *l, const struct ifd_onnx_captures *captures,
                             uint32_t *ret_count)
{
    struct ifd_builder *b = l->call->b;
    const uint32_t fixed = l->carried + 3;
    uint32_t *input = ifd_onnx_take(l->call, (size_t)fixed + captures->count);
    if (b->code == IFD_OK) {
        memcpy(input, l->value, (l->carried + 2) * sizeof(*input));
        input[fixed - 1] = l->limit != IFD_NONE ? l->limit : ifd_build_number(b, IFD_S64, 9e18);
        memcpy(input + fixed, captures->value ? captures->value : input,
               captures->count * sizeof(*input));
    }
    *ret_count = fixed + captures->count;
    return input;
}

static const struct ifd_graph *build_condition(struct loop *l, const uint32_t *input,
                                               uint32_t count,
                                               const struct ifd_onnx_captures *captures)
{
    struct ifd_builder *b = l->call->b;
    struct ifd_onnx_inner inner;
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    ifd_onnx_begin_graph(l->call, input, count, captures, &inner);
    uint32_t output = IFD_NONE;
    if (b->code == IFD_OK) {
        const uint32_t less[2] = {inner.input[0], inner.input[l->carried + 2]};
        const uint32_t both[2] = {ifd_build_node(b, IFD_OP_LESS, less, 2, &flag, NULL),
                                  inner.input[1]};
        output = ifd_build_node(b, IFD_OP_LOGICAL_AND, both, 2, &flag, NULL);
    }
    return ifd_onnx_end_graph(l->call, &inner, &output, 1);
}

static const struct ifd_graph *build_body(struct loop *l, const uint32_t *input, uint32_t count,
                                          const struct ifd_onnx_captures *captures)
{
    struct ifd_builder *b = l->call->b;
    struct ifd_onnx_inner inner;
    ifd_onnx_begin_graph(l->call, input, count, captures, &inner);
    if (b->code == IFD_OK) {
        ifd_onnx_build_inline(l->call, l->body, inner.input, l->carried + 2, l->next);
        l->value[0] = ifd_build_with(b, IFD_OP_ADD, inner.input[0], 1);
        l->value[1] = ifd_onnx_condition(b, l->next[0]);
        memcpy(l->value + 2, l->next + 1, l->carried * sizeof(*l->value));
    }
    if (b->code == IFD_OK) {
        bool is_true = false;
        (void)ifd_onnx_is_known(b, l->value[1], &is_true);
        l->is_steady = is_true || l->value[1] == inner.input[1];
    }
    return ifd_onnx_end_graph(l->call, &inner, l->value, l->carried + 2);
}

/* input: of the node. A loop that runs until its limit must have one that a run may reach. */
static void check_end(const struct loop *l, const uint32_t *input)
{
    struct ifd_builder *b = l->call->b;
    const struct ifd_bytes content = ifd_build_content(b, input[l->carried + 2]);
    int64_t limit = 0;
    bool is_true = false;
    (void)ifd_onnx_is_known(b, input[1], &is_true);
    if (content.size >= sizeof(limit)) {
        memcpy(&limit, content.data, sizeof(limit));
    }
    if (l->is_steady && is_true && limit > LIMIT_MAX) {
        ifd_build_fail(b, IFD_TOO_LARGE,
                       "a loop of %lld turns, since its condition stays true; at most %lld",
                       (long long)limit, (long long)LIMIT_MAX);
    }
}

static void build_loop(struct loop *l)
{
    struct ifd_builder *b = l->call->b;
    struct ifd_onnx_captures captures = {.call = l->call};
    uint32_t count = 0;
    if (l->list_count > 0) {
        l->call->build->is_stuck = true;
        ifd_build_fail(b, IFD_UNSUPPORTED, "a list of as many results as the data decides");
        return;
    }
    start(l);
    for (uint32_t i = 0; i < l->carried; i++) {
        if (ifd_onnx_is_list(l->value[2 + i])) {
            l->call->build->is_stuck = true;
            ifd_build_fail(b, IFD_UNSUPPORTED, "a sequence goes from turn to turn");
            return;
        }
    }
    ifd_onnx_capture(&captures, l->body);
    const uint32_t *input = node_inputs(l, &captures, &count);
    struct ifd_loop_attrs attrs = {0};
    if (b->code == IFD_OK) {
        attrs.condition = build_condition(l, input, count, &captures);
    }
    if (b->code == IFD_OK) {
        attrs.body = build_body(l, input, count, &captures);
    }
    if (b->code == IFD_OK) {
        check_end(l, input);
    }
    uint32_t *output = ifd_onnx_take(l->call, l->carried + (size_t)2);
    if (b->code == IFD_OK) {
        ifd_onnx_add_node(l->call, IFD_OP_LOOP, &attrs, input, count, attrs.body, output);
        memcpy(l->call->output, output + 2, l->call->output_count * sizeof(*output));
    }
}

static bool carries_sequences(const struct loop *l)
{
    for (uint32_t i = 0; i < l->carried; i++) {
        if (ifd_onnx_is_list(l->value[2 + i])) {
            return true;
        }
    }
    return false;
}

/* Neither in place nor as a graph of its own: a run makes it turn by turn, so that shapes may
 * change and content may be asked for. With sequences it is built in place as far as it is known.
 */
static void ask_for_turns(struct loop *l, const struct ifd_onnx_mark *mark)
{
    const struct ifd_onnx_turns turns = turns_of(l);
    ifd_onnx_go_back(l->call, mark);
    start(l);
    if (!carries_sequences(l)) {
        ifd_onnx_next_turn(&turns);
        return;
    }
    l->asks = true;
    if (unroll(l)) {
        take_results(l);
    }
}

void ifd_onnx_loop(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct loop l = {.call = call, .body = ifd_onnx_graph_of(call, "body")};
    const uint32_t inputs = call->node->input_count;
    if (call->b->code != IFD_OK) {
        return;
    }
    l.carried = inputs > 2 ? inputs - 2 : 0;
    l.limit = ifd_onnx_input(call, 0);
    if (l.limit != IFD_NONE) {
        l.limit = ifd_onnx_scalar(call->b, ifd_build_cast(call->b, l.limit, IFD_S64));
    }
    if (l.body->input_count != l.carried + 2 || l.body->output_count < l.carried + 1 ||
        call->output_count > l.body->output_count - 1) {
        ifd_build_fail(call->b, IFD_CORRUPT, "a body of %u inputs and %u outputs for %u values",
                       l.body->input_count, l.body->output_count, l.carried);
        return;
    }
    l.list_count = l.body->output_count - 1 - l.carried;
    if (!take_loop(&l)) {
        return;
    }
    struct ifd_onnx_build *build = call->build;
    const struct ifd_onnx_mark mark = ifd_onnx_mark_of(call);
    if (ifd_onnx_has_turns(build)) {
        ask_for_turns(&l, &mark);
        return;
    }
    start(&l);
    const uint32_t asks_nothing = carries_sequences(&l) ? 0 : 1;
    build->unrolling += asks_nothing;
    const bool is_unrolled = !build->keeps_loops && unroll(&l);
    build->unrolling -= asks_nothing;
    if (is_unrolled) {
        take_results(&l);
        return;
    }
    if (call->b->code == IFD_OK) {
        build_loop(&l);
    }
    if (ifd_onnx_may_build_in_place(call)) {
        ask_for_turns(&l, &mark); /* such as values whose shapes change from turn to turn */
    }
}
