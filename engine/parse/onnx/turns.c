/* Loops whose end, or whose shapes, data decides: each turn is a graph of its own. It ends with the
 * values that the next one begins with, and with whether there is one. A run hands them over, and
 * turns of the same shapes share a plan (engine/model/chain.c). */
#include <string.h>

#include "engine/parse/onnx/inner.h"

/* Values of a loop between two turns: those that are its own, then the carried ones. */
enum { GOES_ON, NUMBER, LIMIT, OWN };

/* Where the loop stands. */
struct place {
    const struct ifd_onnx_turns *turns;
    struct ifd_builder *b;
    uint32_t loop;
    uint32_t *value; /* OWN + carried */
    bool is_first;   /* no turn has been made */
};

bool ifd_onnx_has_turns(const struct ifd_onnx_build *build)
{
    return ifd_onnx_can_ask(build) && ifd_onnx_turn_value(build, build->loops, GOES_ON) != IFD_NONE;
}

/* The condition, and a number below the limit. */
static uint32_t goes_on(const struct place *p, uint32_t condition, uint32_t number)
{
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const uint32_t less[2] = {number, p->value[LIMIT]};
    const uint32_t both[2] = {ifd_build_node(p->b, IFD_OP_LESS, less, 2, &flag, NULL),
                              ifd_onnx_condition(p->b, condition)};
    return ifd_build_node(p->b, IFD_OP_LOGICAL_AND, both, 2, &flag, NULL);
}

static void begin(struct place *p)
{
    struct ifd_onnx_call *call = p->turns->call;
    const uint32_t condition = ifd_onnx_input(call, 1);
    p->is_first = true;
    p->value[NUMBER] = ifd_build_number(p->b, IFD_S64, 0);
    p->value[LIMIT] =
        p->turns->limit != IFD_NONE ? p->turns->limit : ifd_build_number(p->b, IFD_S64, 9e18);
    for (uint32_t i = 0; i < p->turns->carried; i++) {
        p->value[OWN + i] = ifd_onnx_input(call, 2 + i);
    }
    p->value[GOES_ON] = ifd_build_known(
        p->b, goes_on(p, condition != IFD_NONE ? condition : ifd_build_number(p->b, IFD_BOOL, 1),
                      p->value[NUMBER]));
}

static void take_place(struct place *p)
{
    const struct ifd_onnx_build *build = p->turns->call->build;
    for (uint32_t i = 0; i < OWN + p->turns->carried; i++) {
        p->value[i] = ifd_onnx_turn_value(build, p->loop, i);
        if (p->value[i] == IFD_NONE) {
            ifd_build_fail(p->b, IFD_INTERNAL, "value %u of a loop is lost", i);
        }
    }
}

/* ---- a turn ---- */

static void build_body(const struct place *p, uint32_t *next)
{
    const uint32_t carried = p->turns->carried;
    uint32_t *input = ifd_onnx_take(p->turns->call, (size_t)carried + 2);
    if (p->b->code != IFD_OK) {
        return;
    }
    input[0] = p->value[NUMBER];
    input[1] = p->value[GOES_ON];
    memcpy(input + 2, p->value + OWN, carried * sizeof(*input));
    ifd_onnx_build_inline(p->turns->call, p->turns->body, input, carried + 2, next);
    for (uint32_t i = 0; p->b->code == IFD_OK && i < p->turns->body->output_count; i++) {
        if (next[i] == IFD_NONE || ifd_onnx_is_list(next[i])) {
            ifd_build_fail(p->b, IFD_UNSUPPORTED, "output %u of a loop's body is a sequence", i);
        }
    }
}

static bool is_same(const struct ifd_value *x, const struct ifd_value *y)
{
    const struct ifd_shape *a = &x->desc.shape, *b = &y->desc.shape;
    return x->is_constant && y->is_constant && x->desc.dtype == y->desc.dtype &&
           a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0])) == 0 &&
           x->data.size == y->data.size &&
           (x->data.data == y->data.data || memcmp(x->data.data, y->data.data, x->data.size) == 0);
}

/* A constant stays one if the turn leaves it as it is, such as weights. */
static void mark_variables(const struct place *p, const uint32_t *value, bool *is_variable)
{
    const struct ifd_value *all = p->b->graph->value;
    for (uint32_t i = 0; i < OWN + p->turns->carried; i++) {
        is_variable[i] = all[value[i]].is_constant && !is_same(&all[value[i]], &all[p->value[i]]);
    }
}

/* The graph ends here. */
static void end_turn(const struct place *p, const uint32_t *next, uint32_t asked)
{
    const struct ifd_onnx_turns *turns = p->turns;
    struct ifd_onnx_build *build = turns->call->build;
    struct ifd_builder *b = p->b;
    const uint32_t count = OWN + turns->carried;
    uint32_t *value = ifd_onnx_take(turns->call, count);
    bool *is_variable = ifd_arena_take_array(b->graph->arena, count, sizeof(*is_variable));
    if (b->code != IFD_OK || !is_variable) {
        b->code = b->code == IFD_OK ? ifd_arena_fail(b->graph->arena, count, b->err) : b->code;
        return;
    }
    value[NUMBER] = ifd_build_with(b, IFD_OP_ADD, p->value[NUMBER], 1);
    value[LIMIT] = p->value[LIMIT];
    value[GOES_ON] = goes_on(p, next[0], value[NUMBER]);
    memcpy(value + OWN, next + 1, turns->carried * sizeof(*value));
    if (b->code != IFD_OK) {
        return;
    }
    mark_variables(p, value, is_variable);
    build->turn = (struct ifd_onnx_turn){.ends = true,
                                         .loop = p->loop,
                                         .asked = asked,
                                         .value = value,
                                         .is_variable = is_variable,
                                         .value_count = count,
                                         .result = next + 1 + turns->carried,
                                         .result_count = turns->list_count,
                                         .is_first = p->is_first};
    build->wanted = value[GOES_ON];
    build->room_count = 0;
    ifd_build_fail(b, IFD_UNSUPPORTED, "only a run finds whether a loop goes on");
}

/* ---- results ---- */

/* What the file says of an output of the body: sizes that it leaves open are 0. */
static void describe_as_declared(struct ifd_builder *b, const struct ifd_onnx_port *port,
                                 struct ifd_desc *ret)
{
    *ret = (struct ifd_desc){.shape = {.rank = port->has_shape ? port->dim_count : 0}};
    if (!port->is_tensor || !ifd_onnx_dtype(port->type, &ret->dtype) ||
        ret->shape.rank > IFD_MAX_RANK) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "a list of no results, whose shape is not known");
        return;
    }
    for (uint32_t d = 0; d < ret->shape.rank; d++) {
        ret->shape.dim[d] = port->dim[d] > 0 ? port->dim[d] : 0;
    }
}

/* The body says what the elements would be, or the file does where the body needs what only a run
 * finds. Nothing of it stays. */
static void describe_elements(const struct place *p, uint32_t *next, struct ifd_desc *ret)
{
    struct ifd_onnx_call *call = p->turns->call;
    struct ifd_onnx_build *build = call->build;
    const struct ifd_onnx_mark mark = ifd_onnx_mark_of(call);
    const uint32_t first = 1 + p->turns->carried;
    build->unrolling++;
    build_body(p, next);
    build->unrolling--;
    const bool is_built = p->b->code == IFD_OK;
    for (uint32_t i = 0; is_built && i < p->turns->list_count; i++) {
        ret[i] = *ifd_build_desc(p->b, next[first + i]);
    }
    if (p->b->code == IFD_NOMEM) {
        return;
    }
    ifd_onnx_go_back(call, &mark);
    for (uint32_t i = 0; !is_built && p->b->code == IFD_OK && i < p->turns->list_count; i++) {
        describe_as_declared(p->b, &p->turns->body->output[first + i], &ret[i]);
    }
}

static void make_empty_lists(const struct place *p, uint32_t *next)
{
    struct ifd_onnx_call *call = p->turns->call;
    const uint32_t count = p->turns->list_count;
    struct ifd_desc *desc = ifd_arena_take_array(p->b->graph->arena, count, sizeof(*desc));
    if (!desc) {
        p->b->code = ifd_arena_fail(p->b->graph->arena, count * sizeof(*desc), p->b->err);
        return;
    }
    describe_elements(p, next, desc);
    for (uint32_t i = 0;
         p->b->code == IFD_OK && i < count && p->turns->carried + i < call->output_count; i++) {
        struct ifd_desc list = {.dtype = desc[i].dtype, .shape = {.rank = desc[i].shape.rank + 1}};
        if (list.shape.rank > IFD_MAX_RANK) {
            ifd_build_fail(p->b, IFD_TOO_LARGE, "a list of %u dimensions", list.shape.rank);
            return;
        }
        memcpy(list.shape.dim + 1, desc[i].shape.dim,
               desc[i].shape.rank * sizeof(list.shape.dim[0]));
        call->output[p->turns->carried + i] =
            ifd_build_constant(p->b, &list, (struct ifd_bytes){(const uint8_t *)"", 0}, 0);
    }
}

void ifd_onnx_no_results(const struct ifd_onnx_turns *turns, const uint32_t *carried)
{
    struct ifd_onnx_call *call = turns->call;
    struct place p = {.turns = turns, .b = call->b, .is_first = true};
    uint32_t *next = ifd_onnx_take(call, turns->body->output_count + (size_t)1);
    p.value = ifd_onnx_take(call, turns->carried + (size_t)OWN);
    if (call->b->code != IFD_OK) {
        return;
    }
    p.value[NUMBER] = ifd_build_number(p.b, IFD_S64, 0);
    p.value[GOES_ON] = ifd_build_number(p.b, IFD_BOOL, 1);
    memcpy(p.value + OWN, carried, turns->carried * sizeof(*carried));
    make_empty_lists(&p, next);
}

static void give_results(const struct place *p, uint32_t *next)
{
    struct ifd_onnx_call *call = p->turns->call;
    const uint32_t carried = p->turns->carried;
    for (uint32_t i = 0; i < call->output_count; i++) {
        call->output[i] = i < carried   ? p->value[OWN + i]
                          : p->is_first ? IFD_NONE
                                        : ifd_onnx_turn_value(call->build, p->loop, OWN + i);
    }
    if (p->is_first && call->output_count > carried) {
        make_empty_lists(p, next);
    }
}

void ifd_onnx_next_turn(const struct ifd_onnx_turns *turns)
{
    struct ifd_onnx_call *call = turns->call;
    struct ifd_onnx_build *build = call->build;
    struct place p = {.turns = turns, .b = call->b, .loop = build->loops};
    const uint32_t asked = build->asked;
    bool is_true = false;
    uint32_t *next = ifd_onnx_take(call, turns->body->output_count + (size_t)1);
    p.value = ifd_onnx_take(call, turns->carried + (size_t)OWN);
    if (call->b->code != IFD_OK) {
        return;
    }
    if (ifd_onnx_has_turns(build)) {
        take_place(&p);
    } else {
        begin(&p);
    }
    build->loops++;
    if (call->b->code != IFD_OK) {
        return;
    }
    (void)ifd_onnx_is_known(call->b, p.value[GOES_ON], &is_true);
    if (!is_true) {
        give_results(&p, next);
        return;
    }
    build_body(&p, next);
    if (call->b->code == IFD_OK) {
        end_turn(&p, next, asked);
    }
}
