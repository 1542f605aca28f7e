/* Results whose size the data decides. An operator needs content that is no constant; the graph
 * then ends before it (struct ifd_cut), a run computes the content, and reading goes on with the
 * same operator. Its own results lie in front of the cut if only their size is unknown (struct
 * ifd_tflite_room).
 *
 * Subgraphs have no place to go on from: the operator of the model's subgraph that names them is
 * built anew each time. Their questions have numbers, and those that a run has answered are found
 * among the values that reading goes on with. So are variables, as they were in front of the
 * operator. There is no cut behind an operator of a subgraph that fills a table. */
#include "engine/parse/cut.h"

#include <string.h>

#include "engine/parse/tflite/composite.h"

/* Ids of values: tensors by their number; behind these the answers, by the number of the question
 * and that of the result. */
#define ANSWER ((uint64_t)1 << 63)

static const struct ifd_desc s64 = {.dtype = IFD_S64};

static uint64_t answer_id(uint32_t question, uint32_t result)
{
    return ANSWER | (uint64_t)question << 8 | result;
}

/* The value of an answer, IFD_NONE if it is not known: none is while CALL_ONCE is read. */
static uint32_t find_answer(const struct ifd_tflite_build *b, uint32_t question, uint32_t result)
{
    const struct ifd_resume *resume = b->options->resume;
    const bool is_here = resume && b->resumed && b->node == resume->node;
    for (uint32_t i = 0; is_here && i < resume->value_count; i++) {
        if (resume->value[i].id == answer_id(question, result)) {
            return b->resumed[i];
        }
    }
    return IFD_NONE;
}

/* ---- questions ---- */

bool ifd_tflite_can_cut(const struct ifd_tflite_build *b)
{
    return b->graph == b->main && !b->fills_tables;
}

/* An operand of an operator of the model's subgraph: its tensor will be the constant. Behind other
 * questions it is none: a constant may make them needless, and their numbers would shift. */
static bool is_operand(const struct ifd_tflite_build *b, uint32_t value)
{
    const struct ifd_tflite_ints *input = &b->g->op[b->node].input;
    for (uint32_t i = 0; b->depth == 0 && b->asked == 0 && i < input->count; i++) {
        if (input->value[i] >= 0 && b->value_of[input->value[i]] == value) {
            return true;
        }
    }
    return false;
}

uint32_t ifd_tflite_ask(void *context, uint32_t value)
{
    struct ifd_tflite_build *b = context;
    if (!ifd_tflite_can_cut(b)) {
        b->is_stuck = true;
        return IFD_NONE;
    }
    const uint32_t question = is_operand(b, value) ? IFD_NONE : b->asked++;
    const uint32_t known = question == IFD_NONE ? IFD_NONE : find_answer(b, question, 0);
    if (known == IFD_NONE) {
        b->wanted = value;
        b->question = question;
        b->room_count = 0;
    }
    return known;
}

/* ---- results of the operator ---- */

bool ifd_tflite_is_found(struct ifd_tflite_build *b, uint32_t *ret, uint32_t count)
{
    bool is_found = ifd_tflite_can_cut(b);
    for (uint32_t i = 0; is_found && i < count; i++) {
        ret[i] = find_answer(b, b->asked, i);
        is_found = ret[i] != IFD_NONE;
    }
    b->asked += is_found ? 1 : 0;
    return is_found;
}

void ifd_tflite_cut(struct ifd_tflite_build *b, struct ifd_builder *builder, uint32_t size,
                    struct ifd_tflite_room *room, uint32_t count)
{
    const struct ifd_bytes content = ifd_build_content(builder, size);
    int64_t found = 0;
    if (content.size >= sizeof(found)) {
        memcpy(&found, content.data, sizeof(found));
        b->asked++;
        for (uint32_t i = 0; i < count; i++) {
            room[i].value = ifd_cut_front(builder, room[i].value, room[i].axis, found);
        }
    } else if (builder->code == IFD_OK) {
        ifd_build_fail(builder, IFD_UNSUPPORTED,
                       "the size of its result depends on data, behind tables of a subgraph");
        b->is_stuck = !ifd_tflite_can_cut(b);
        b->wanted = b->is_stuck ? IFD_NONE : size;
        b->question = b->asked;
        b->room_count = count;
        memcpy(b->room, room, count * sizeof(*room));
    }
}

/* The coordinates of the elements that are not 0, [n, rank]. */
void ifd_composite_where(struct ifd_composite *c)
{
    const struct ifd_non_zero_attrs attrs = {.by_element = true};
    const struct ifd_desc output[2] = {s64, s64};
    struct ifd_tflite_room room = {.axis = 0};
    uint32_t found[2];
    if (!ifd_composite_has_inputs(c, 1) || ifd_tflite_is_found(c->build, c->output, 1)) {
        return;
    }
    ifd_build_nodes(c->b, IFD_OP_NON_ZERO, c->input, 1, output, 2, &attrs, found);
    room.value = found[0];
    ifd_tflite_cut(c->build, c->b, found[1], &room, 1);
    c->output[0] = room.value;
}

/* The different elements, in the order in which they first appear, and for each element the number
 * of its own. */
void ifd_composite_unique(struct ifd_composite *c)
{
    enum { VALUES, FIRST, INVERSE, COUNTS, COUNT, OUTPUTS };
    if (!ifd_composite_has_inputs(c, 1)) {
        return;
    }
    const struct ifd_unique_attrs attrs = {.is_sorted = false};
    const struct ifd_desc x = *ifd_build_desc(c->b, c->input[0]);
    const struct ifd_desc output[OUTPUTS] = {
        {.dtype = x.dtype, .quant = x.quant}, s64, s64, s64, s64};
    struct ifd_tflite_room room[2] = {{.axis = 0}, {.axis = IFD_NONE}};
    uint32_t found[OUTPUTS], known[2];
    if (ifd_tflite_is_found(c->build, known, 2)) {
        room[0].value = known[0];
        room[1].value = known[1];
    } else {
        ifd_build_nodes(c->b, IFD_OP_UNIQUE, c->input, 1, output, OUTPUTS, &attrs, found);
        room[0].value = found[VALUES];
        room[1].value = found[INVERSE];
        ifd_tflite_cut(c->build, c->b, found[COUNT], room, 2);
    }
    c->output[0] = room[0].value;
    if (c->output_count > 1) {
        c->output[1] = ifd_build_cast(c->b, room[1].value, ifd_composite_output(c, 1).dtype);
    }
}

/* ---- what operators behind the cut need ---- */

static void mark_tensors(const struct ifd_tflite_build *b, const struct ifd_tflite_ints *tensors,
                         bool *used)
{
    for (uint32_t i = 0; i < tensors->count; i++) {
        const int32_t tensor = tensors->value[i];
        used[tensor < 0 ? b->g->tensor_count : (uint32_t)tensor] = true;
    }
}

static bool is_in_file(const struct ifd_tflite_build *b, uint32_t tensor)
{
    struct ifd_bytes content = {0};
    return b->graph->value[b->value_of[tensor]].is_constant &&
           ifd_tflite_has_content(b, tensor, &content);
}

static void add_tensors(const struct ifd_tflite_build *b, struct ifd_cutter *cutter,
                        const bool *used, uint32_t wanted)
{
    for (uint32_t t = 0; t < b->g->tensor_count; t++) {
        if (!used[t] || b->value_of[t] == IFD_NONE || is_in_file(b, t)) {
            continue;
        }
        const bool is_wanted = b->question == IFD_NONE && b->value_of[t] == b->wanted;
        ifd_cut_add(cutter, t, is_wanted ? wanted : b->value_of[t])->is_wanted = is_wanted;
    }
}

/* Of earlier questions of the same node, and of this one. */
static void add_answers(const struct ifd_tflite_build *b, struct ifd_cutter *cutter,
                        uint32_t wanted)
{
    const struct ifd_resume *resume = b->options->resume;
    for (uint32_t i = 0; resume && b->node == resume->node && i < resume->value_count; i++) {
        if ((resume->value[i].id & ANSWER) != 0) {
            (void)ifd_cut_add(cutter, resume->value[i].id, b->resumed[i]);
        }
    }
    if (b->room_count == 0 && b->question != IFD_NONE) {
        ifd_cut_add(cutter, answer_id(b->question, 0), wanted)->is_wanted = true;
    }
    for (uint32_t i = 0; i < b->room_count; i++) {
        ifd_cut_add(cutter, answer_id(b->question, i), b->room[i].value)->axis = b->room[i].axis;
    }
}

/* The graph's inputs, with the states behind them. */
static enum ifd_code take_inputs(struct ifd_tflite_build *b, struct ifd_cutter *cutter)
{
    const uint32_t inputs = b->main_input_count, states = ifd_tflite_state_count(b);
    uint32_t *input = ifd_arena_take_array(b->scratch, (size_t)inputs + states, sizeof(*input));
    b->state = ifd_arena_take_array(b->scratch, states, sizeof(*b->state));
    if (!input || !b->state) {
        return ifd_arena_fail(b->scratch, states * sizeof(*b->state), b->err);
    }
    memcpy(input, b->main_input, inputs * sizeof(*input));
    cutter->input = input;
    cutter->input_count = inputs;
    const enum ifd_code code = ifd_tflite_take_states(b, false, b->state);
    for (uint32_t i = 0; i < states && !b->options->resume; i++) {
        input[cutter->input_count++] = b->state[i].input;
    }
    return code;
}

static enum ifd_code take_cut(struct ifd_tflite_build *b, struct ifd_cut *cut)
{
    struct ifd_cutter cutter = {.graph = b->graph, .cut = cut};
    struct ifd_builder builder;
    enum ifd_code code = ifd_tflite_settle_variables(b);
    if (code == IFD_OK) {
        code = take_inputs(b, &cutter);
    }
    if (code != IFD_OK) {
        return code;
    }
    ifd_builder_init(&builder, b->graph, b->options->limits->tensor_bytes, b->err);
    ifd_cut_check(&builder, b->wanted);
    const uint32_t wanted = builder.code == IFD_OK ? ifd_cut_own(&builder, b->wanted) : IFD_NONE;
    bool *used = ifd_arena_take_array(b->scratch, (size_t)b->g->tensor_count + 1, sizeof(*used));
    if (builder.code != IFD_OK || !used) {
        return used ? builder.code : ifd_arena_fail(b->scratch, b->g->tensor_count, b->err);
    }
    mark_tensors(b, &b->g->output, used);
    for (uint32_t i = b->node; i < b->g->op_count; i++) {
        mark_tensors(b, &b->g->op[i].input, used);
    }
    const struct ifd_resume *resume = b->options->resume;
    const size_t most = (size_t)b->g->tensor_count + b->variable_count + IFD_TFLITE_ROOMS + 1;
    code = ifd_cut_begin(&cutter, b->scratch, most + (resume ? resume->value_count : 0), wanted,
                         b->err);
    if (code == IFD_OK) {
        add_tensors(b, &cutter, used, wanted);
        add_answers(b, &cutter, wanted);
        ifd_tflite_cut_variables(b, &cutter);
        code = ifd_cut_end(&cutter, b->err);
    }
    return code;
}

enum ifd_code ifd_tflite_make_cut(struct ifd_tflite_build *b, enum ifd_code code,
                                  struct ifd_cut *ret)
{
    if (code != IFD_UNSUPPORTED || b->wanted == IFD_NONE || !ifd_tflite_can_cut(b)) {
        return code;
    }
    *b->err = (struct ifd_err){0};
    *ret = (struct ifd_cut){.is_cut = true, .node = b->node};
    return take_cut(b, ret);
}

/* ---- going on ---- */

enum ifd_code ifd_tflite_take_resumed(struct ifd_tflite_build *b)
{
    const struct ifd_resume *resume = b->options->resume;
    b->resumed = ifd_arena_take_array(b->scratch, resume->value_count, sizeof(*b->resumed));
    b->main_input = ifd_arena_take_array(b->scratch, resume->value_count, sizeof(*b->main_input));
    if (!b->resumed || !b->main_input) {
        return ifd_arena_fail(b->scratch, resume->value_count * sizeof(*b->resumed), b->err);
    }
    for (uint32_t i = 0; i < resume->value_count; i++) {
        const struct ifd_resume_value *from = &resume->value[i];
        const bool is_tensor = from->id < b->g->tensor_count;
        enum ifd_code code = ifd_resume_take(b->graph, b->file, b->options->kept,
                                             is_tensor ? b->g->tensor[from->id].name : "", from,
                                             &b->resumed[i], b->err);
        if (code == IFD_OK) {
            code = ifd_tflite_resume_variable(b, from->id, b->resumed[i]);
        }
        if (code != IFD_OK) {
            return code;
        }
        if (is_tensor) {
            b->value_of[from->id] = b->resumed[i];
        }
        if (!from->is_constant) {
            b->main_input[b->main_input_count++] = b->resumed[i];
        }
    }
    return IFD_OK;
}
