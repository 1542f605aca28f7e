/* Results whose size the data decides. A translation asks for content that is no constant; the
 * graph then ends before its node (struct ifd_cut), a run computes the content, and reading goes on
 * with the same node. A node is translated anew each time: its questions have numbers, and those
 * that a run has answered are found among the values that reading goes on with. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/cut.h"
#include "engine/parse/onnx/onnx_build.h"

/* Ids of values: names by their place in the sorted list; answers of the node by the number of the
 * question, and the number of the result. */
#define ANSWER ((uint64_t)1 << 63)
/* A name that is a sequence: its length as a constant (-1: absent), followed by its elements. */
#define LIST ((uint64_t)1 << 62)
/* Of a loop that goes turn by turn. */
#define TURN ((uint64_t)1 << 61)

static uint64_t turn_id(uint32_t loop, uint32_t index)
{
    return TURN | (uint64_t)loop << 32 | index;
}

static uint64_t answer_id(uint32_t question, uint32_t result)
{
    return ANSWER | (uint64_t)question << 8 | result;
}

/* A value of the node where reading goes on, IFD_NONE if it is not known. */
static uint32_t find_resumed(const struct ifd_onnx_build *build, uint64_t id)
{
    const struct ifd_resume *resume = build->options->resume;
    for (uint32_t i = 0; resume && build->node == resume->node && i < resume->value_count; i++) {
        if (resume->value[i].id == id) {
            return build->resumed[i];
        }
    }
    return IFD_NONE;
}

static uint32_t find_answer(const struct ifd_onnx_build *build, uint32_t question, uint32_t result)
{
    return find_resumed(build, answer_id(question, result));
}

uint32_t ifd_onnx_turn_value(const struct ifd_onnx_build *build, uint32_t loop, uint32_t index)
{
    return find_resumed(build, turn_id(loop, index));
}

/* ---- questions ---- */

bool ifd_onnx_can_ask(const struct ifd_onnx_build *build)
{
    return !build->level->outer && build->unrolling == 0;
}

static void want(struct ifd_onnx_build *build, uint32_t value)
{
    ifd_cut_check(&build->b, value);
    if (build->b.code == IFD_OK) {
        build->wanted = value;
        build->room_count = 0;
        ifd_build_fail(&build->b, IFD_UNSUPPORTED,
                       "content that only a run computes decides a shape");
    }
}

uint32_t ifd_onnx_ask(void *context, uint32_t value)
{
    struct ifd_onnx_build *build = context;
    if (!ifd_onnx_can_ask(build)) {
        build->is_stuck = true;
        return IFD_NONE;
    }
    const uint32_t known = find_answer(build, build->asked++, 0);
    if (known == IFD_NONE) {
        want(build, value);
    }
    return known;
}

bool ifd_onnx_is_found(struct ifd_onnx_call *call, uint32_t *ret, uint32_t count)
{
    struct ifd_onnx_build *build = call->build;
    bool is_found = ifd_onnx_can_ask(build) && call->b->code == IFD_OK;
    for (uint32_t i = 0; is_found && i < count; i++) {
        ret[i] = find_answer(build, build->asked, i);
        is_found = ret[i] != IFD_NONE;
    }
    build->asked += is_found ? 1 : 0;
    return is_found;
}

void ifd_onnx_cut(struct ifd_onnx_call *call, uint32_t size, uint32_t *value, const uint32_t *axis,
                  uint32_t count)
{
    struct ifd_onnx_build *build = call->build;
    struct ifd_builder *b = call->b;
    const struct ifd_bytes content = ifd_build_content(b, size);
    int64_t found = 0;
    if (content.size >= sizeof(found)) {
        memcpy(&found, content.data, sizeof(found));
        build->asked++;
        for (uint32_t i = 0; i < count; i++) {
            value[i] = ifd_cut_front(b, value[i], axis[i], found);
        }
        return;
    }
    if (!ifd_onnx_can_ask(build)) {
        build->is_stuck = true;
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "the size of a result depends on data in a graph that runs as a whole");
        return;
    }
    if (b->code == IFD_OK) {
        want(build, size);
        for (uint32_t i = 0; i < count; i++) {
            build->room[i] = (struct ifd_onnx_room){.value = value[i], .axis = axis[i]};
        }
        build->room_count = count;
    }
}

/* ---- what nodes behind the cut need ---- */

/* Names in scope that a graph uses, also by the graphs of its nodes: they see through. */
static void mark_used(const struct ifd_onnx_scope *scope, const struct ifd_onnx_graph *g,
                      uint32_t first_node, bool *used)
{
    for (uint32_t i = 0; i < g->output_count; i++) {
        const struct ifd_onnx_name *name = ifd_onnx_find(scope, g->output[i].name);
        used[name ? name - scope->name : 0] |= name != NULL;
    }
    for (uint32_t n = first_node; n < g->node_count; n++) {
        const struct ifd_onnx_node *node = &g->node[n];
        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct ifd_onnx_name *name = ifd_onnx_find(scope, node->input[i]);
            used[name ? name - scope->name : 0] |= name != NULL;
        }
        for (uint32_t i = 0; i < node->attr_count; i++) {
            if (node->attr[i].graph) {
                mark_used(scope, node->attr[i].graph, 0, used);
            }
        }
    }
}

/* A cut while it is made. */
struct cutting {
    struct ifd_onnx_build *build;
    struct ifd_cutter cutter;
};

static void add_list(struct cutting *c, uint64_t name, uint32_t value)
{
    const struct ifd_onnx_list *list = ifd_onnx_list(c->build, value);
    struct ifd_arena *arena = c->build->b.graph->arena;
    int64_t *length = ifd_arena_take(arena, sizeof(*length));
    if (!length) {
        c->build->b.code = ifd_arena_fail(arena, sizeof(*length), c->build->err);
        return;
    }
    *length = list->is_absent ? -1 : (int64_t)list->count;
    struct ifd_cut *cut = c->cutter.cut;
    cut->value[cut->value_count++] =
        (struct ifd_cut_value){.id = LIST | name << 24,
                               .source = IFD_CUT_CONSTANT,
                               .desc = {.dtype = IFD_S64},
                               .data = {.data = (const uint8_t *)length, .size = sizeof(*length)},
                               .axis = IFD_NONE};
    for (uint32_t i = 0; i < list->count; i++) {
        (void)ifd_cut_add(&c->cutter, LIST | name << 24 | (i + 1), list->value[i]);
    }
}

static void add_names(struct cutting *c, const bool *used)
{
    const struct ifd_onnx_build *build = c->build;
    for (size_t i = 0; i < build->scope->name_count; i++) {
        const uint32_t value = build->scope->name[i].value;
        if (!used[i] || value == IFD_NONE) {
            continue;
        }
        if (ifd_onnx_is_list(value)) {
            add_list(c, i, value);
            continue;
        }
        struct ifd_cut_value *to = ifd_cut_add(&c->cutter, i, value);
        if (value == build->wanted && build->room_count == 0 && !build->turn.ends) {
            to->alias = answer_id(build->asked - 1, 0);
        }
    }
}

/* Does it hold behind the cut? What was asked in a turn that ends is forgotten, and so are the
 * loops within. */
static bool is_kept(const struct ifd_onnx_build *build, uint64_t id)
{
    const struct ifd_onnx_turn *turn = &build->turn;
    if ((id & ANSWER) != 0) {
        return !turn->ends || (id & ~ANSWER) >> 8 < turn->asked;
    }
    return (id & (LIST | TURN)) == TURN && (!turn->ends || (id & ~TURN) >> 32 < turn->loop);
}

/* Aliases of earlier questions of the same node. */
static void keep_aliases(struct cutting *c)
{
    const struct ifd_resume *resume = c->build->options->resume;
    struct ifd_cut *cut = c->cutter.cut;
    if (!resume || resume->node != c->build->node) {
        return;
    }
    for (uint32_t i = 0; i < resume->value_count; i++) {
        const uint64_t alias = resume->value[i].alias;
        for (uint32_t k = 0; is_kept(c->build, alias) && k < cut->value_count; k++) {
            if (cut->value[k].id == resume->value[i].id) {
                cut->value[k].alias = alias;
            }
        }
    }
}

/* What the next turn begins with. */
static void add_turn(struct cutting *c)
{
    const struct ifd_onnx_turn *turn = &c->build->turn;
    ifd_cut_add(&c->cutter, turn_id(turn->loop, 0), c->build->wanted)->is_wanted = true;
    for (uint32_t i = 1; i < turn->value_count; i++) {
        ifd_cut_add(&c->cutter, turn_id(turn->loop, i), turn->value[i])->is_variable =
            turn->is_variable[i];
    }
    for (uint32_t i = 0; i < turn->result_count; i++) {
        ifd_cut_add(&c->cutter, turn_id(turn->loop, turn->value_count + i), turn->result[i])->list =
            turn->is_first ? IFD_CUT_LIST_BEGINS : IFD_CUT_LIST_GROWS;
    }
}

static void add_answers(struct cutting *c)
{
    const struct ifd_onnx_build *build = c->build;
    const struct ifd_resume *resume = build->options->resume;
    for (uint32_t i = 0; resume && build->node == resume->node && i < resume->value_count; i++) {
        if (is_kept(build, resume->value[i].id)) {
            (void)ifd_cut_add(&c->cutter, resume->value[i].id, build->resumed[i]);
        }
    }
    if (build->turn.ends) {
        add_turn(c);
        return;
    }
    if (build->room_count == 0) {
        ifd_cut_add(&c->cutter, answer_id(build->asked - 1, 0), build->wanted)->is_wanted = true;
    }
    for (uint32_t i = 0; i < build->room_count; i++) {
        ifd_cut_add(&c->cutter, answer_id(build->asked, i), build->room[i].value)->axis =
            build->room[i].axis;
    }
}

enum ifd_code ifd_onnx_make_cut(struct ifd_onnx_build *build, struct ifd_cut *ret)
{
    const struct ifd_onnx_scope *scope = build->scope;
    const struct ifd_resume *resume = build->options->resume;
    struct ifd_cut cut = {.is_cut = true, .is_turn = build->turn.ends, .node = build->node};
    struct cutting c = {.build = build,
                        .cutter = {.graph = build->b.graph,
                                   .input = build->graph_input,
                                   .input_count = build->graph_input_count,
                                   .cut = &cut}};
    bool *used = ifd_arena_take_array(build->scratch, scope->name_count + 1, sizeof(*used));
    if (!used) {
        return ifd_arena_fail(build->scratch, scope->name_count, build->err);
    }
    build->b.code = IFD_OK;
    *build->err = (struct ifd_err){0};
    mark_used(scope, scope->g, build->node, used);
    build->wanted = ifd_cut_own(&build->b, build->wanted);
    size_t most = scope->name_count + IFD_ONNX_ROOMS + 1 + (resume ? resume->value_count : 0) +
                  build->turn.value_count + build->turn.result_count;
    for (size_t i = 0; i < scope->name_count; i++) {
        most += ifd_onnx_list(build, scope->name[i].value)->count;
    }
    enum ifd_code code = build->b.code;
    if (code == IFD_OK) {
        code = ifd_cut_begin(&c.cutter, build->scratch, most, build->wanted, build->err);
    }
    if (code == IFD_OK) {
        add_names(&c, used);
        add_answers(&c);
        keep_aliases(&c);
        code = build->b.code == IFD_OK ? ifd_cut_end(&c.cutter, build->err) : build->b.code;
    }
    *ret = cut;
    return code;
}

/* ---- going on ---- */

/* The file, or the one beside it, that content lies in. */
static struct ifd_bytes file_of(const struct ifd_onnx_build *build, const uint8_t *data)
{
    for (uint32_t i = 0; i < build->options->external_count; i++) {
        const struct ifd_bytes content = build->options->external[i].content;
        if (data >= content.data && data < content.data + content.size) {
            return content;
        }
    }
    return build->file;
}

static enum ifd_code take_value(struct ifd_onnx_build *build, const struct ifd_resume_value *from,
                                uint32_t *ret)
{
    struct ifd_onnx_text text = {""};
    if ((from->id & ANSWER) == 0 && from->id < build->scope->name_count) {
        text = ifd_onnx_text(build->scope->name[from->id].text);
    }
    const enum ifd_code code = ifd_resume_take(build->b.graph, file_of(build, from->data.data),
                                               build->options->kept, text.s, from, ret, build->err);
    if (code == IFD_OK && !from->is_constant) {
        build->graph_input[build->graph_input_count++] = *ret;
    }
    return code;
}

/* A sequence whose length is entry i; its elements follow. */
static enum ifd_code take_list(struct ifd_onnx_build *build, uint32_t i)
{
    const struct ifd_resume *resume = build->options->resume;
    const uint64_t name = (resume->value[i].id & ~LIST) >> 24;
    int64_t length = -1;
    if (resume->value[i].data.size == sizeof(length)) {
        memcpy(&length, resume->value[i].data.data, sizeof(length));
    }
    if (name >= build->scope->name_count || length > (int64_t)(resume->value_count - i - 1)) {
        return ifd_fail(build->err, IFD_INTERNAL, "a sequence of %lld", (long long)length);
    }
    build->scope->name[name].value = ifd_onnx_add_list(
        build, build->resumed + i + 1, length > 0 ? (uint32_t)length : 0, length < 0);
    return build->b.code;
}

enum ifd_code ifd_onnx_take_resumed(struct ifd_onnx_build *build)
{
    const struct ifd_resume *resume = build->options->resume;
    struct ifd_arena *arena = build->scratch;
    build->resumed = ifd_arena_take_array(arena, resume->value_count, sizeof(*build->resumed));
    build->graph_input =
        ifd_arena_take_array(arena, resume->value_count, sizeof(*build->graph_input));
    build->input =
        ifd_arena_take_array(build->b.graph->arena, resume->value_count, sizeof(*build->input));
    if (!build->resumed || !build->graph_input || !build->input) {
        return ifd_arena_fail(arena, resume->value_count * sizeof(*build->input), build->err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < resume->value_count; i++) {
        const struct ifd_resume_value *from = &resume->value[i];
        code = take_value(build, from, &build->resumed[i]);
        if (code == IFD_OK && (from->id & ANSWER) == 0 && from->id < build->scope->name_count) {
            build->scope->name[from->id].value = build->resumed[i];
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < resume->value_count; i++) {
        const uint64_t id = resume->value[i].id;
        if ((id & (ANSWER | LIST)) == LIST && (id & 0xffffff) == 0) {
            code = take_list(build, i);
        }
    }
    return code;
}

void ifd_onnx_learn(struct ifd_onnx_build *build)
{
    const struct ifd_resume *resume = build->options->resume;
    if (!resume || build->node != resume->node) {
        return;
    }
    for (uint32_t i = 0; i < resume->value_count; i++) {
        for (uint32_t k = 0; resume->value[i].alias != 0 && k < resume->value_count; k++) {
            if (resume->value[k].id == resume->value[i].alias) {
                build->scope->name[resume->value[i].id].value = build->resumed[k];
            }
        }
    }
}
