/* Results whose size the data decides. A translation asks for content that is no constant; the
 * graph then ends before its node (struct ifd_cut), a run computes the content, and reading goes on
 * with the same node. A node is translated anew each time: its questions have numbers, and those
 * that a run has answered are found among the values that reading goes on with. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"

/* Ids of values: names by their place in the sorted list; answers of the node by the number of the
 * question, and the number of the result. */
#define ANSWER ((uint64_t)1 << 63)
/* A name that is a sequence: its length as a constant (-1: absent), followed by its elements. */
#define LIST ((uint64_t)1 << 62)

static uint64_t answer_id(uint32_t question, uint32_t result)
{
    return ANSWER | (uint64_t)question << 8 | result;
}

/* The value of an answer, IFD_NONE if it is not known. */
static uint32_t find_answer(const struct ifd_onnx_build *build, uint32_t question, uint32_t result)
{
    const struct ifd_resume *resume = build->options->resume;
    for (uint32_t i = 0; resume && build->node == resume->node && i < resume->value_count; i++) {
        if (resume->value[i].id == answer_id(question, result)) {
            return build->resumed[i];
        }
    }
    return IFD_NONE;
}

/* ---- questions ---- */

/* Graphs of nodes that are not built in place run as a whole: nobody stops in the middle. */
static bool can_ask(const struct ifd_onnx_build *build)
{
    return !build->level->outer;
}

static void want(struct ifd_onnx_build *build, uint32_t value)
{
    const struct ifd_desc *desc = ifd_build_desc(&build->b, value);
    size_t bytes = 0;
    if (!ifd_desc_bytes(desc, &bytes) || bytes > IFD_CUT_BYTES) {
        ifd_build_fail(&build->b, IFD_UNSUPPORTED,
                       "content of %zu bytes decides a shape, limit %d for what is not constant",
                       bytes, IFD_CUT_BYTES);
        return;
    }
    build->wanted = value;
    build->room_count = 0;
    ifd_build_fail(&build->b, IFD_UNSUPPORTED, "content that only a run computes decides a shape");
}

uint32_t ifd_onnx_ask(void *context, uint32_t value)
{
    struct ifd_onnx_build *build = context;
    if (!can_ask(build)) {
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
    bool is_found = can_ask(build) && call->b->code == IFD_OK;
    for (uint32_t i = 0; is_found && i < count; i++) {
        ret[i] = find_answer(build, build->asked, i);
        is_found = ret[i] != IFD_NONE;
    }
    build->asked += is_found ? 1 : 0;
    return is_found;
}

/* The front of a constant. */
static uint32_t front_of(struct ifd_builder *b, uint32_t value, uint32_t axis, int64_t size)
{
    struct ifd_desc desc = *ifd_build_desc(b, value);
    struct ifd_bytes content = ifd_build_content(b, value);
    if (axis != IFD_NONE) {
        desc.shape.dim[axis] = size;
    }
    if (b->code == IFD_OK && !ifd_desc_bytes(&desc, &content.size)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "a result of size %lld", (long long)size);
    }
    return ifd_build_constant(b, &desc, content, IFD_TENSOR_PAD);
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
            value[i] = front_of(b, value[i], axis[i], found);
        }
        return;
    }
    if (!can_ask(build)) {
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
    struct ifd_cut *cut;
    uint32_t *output, output_count;
    uint32_t *output_of; /* per value: its number among the outputs, IFD_NONE */
};

static uint32_t input_number(const struct ifd_onnx_build *build, uint32_t value)
{
    uint32_t i = 0;
    while (i < build->graph_input_count && build->graph_input[i] != value) {
        i++;
    }
    return i;
}

static void add_value(struct cutting *c, uint64_t id, uint32_t value)
{
    const struct ifd_value *v = &c->build->b.graph->value[value];
    struct ifd_cut_value *to = &c->cut->value[c->cut->value_count++];
    *to = (struct ifd_cut_value){.id = id, .axis = IFD_NONE};
    if (v->is_constant) {
        to->source = IFD_CUT_CONSTANT;
        to->desc = v->desc;
        to->data = v->data;
    } else if (v->producer == IFD_NONE) {
        to->source = IFD_CUT_INPUT;
        to->index = input_number(c->build, value);
    } else {
        if (c->output_of[value] == IFD_NONE) {
            c->output_of[value] = c->output_count;
            c->output[c->output_count++] = value;
        }
        to->source = IFD_CUT_OUTPUT;
        to->index = c->output_of[value];
    }
}

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
    c->cut->value[c->cut->value_count++] =
        (struct ifd_cut_value){.id = LIST | name << 24,
                               .source = IFD_CUT_CONSTANT,
                               .desc = {.dtype = IFD_S64},
                               .data = {.data = (const uint8_t *)length, .size = sizeof(*length)},
                               .axis = IFD_NONE};
    for (uint32_t i = 0; i < list->count; i++) {
        add_value(c, LIST | name << 24 | (i + 1), list->value[i]);
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
        add_value(c, i, value);
        if (value == build->wanted && build->room_count == 0) {
            c->cut->value[c->cut->value_count - 1].alias = answer_id(build->asked - 1, 0);
        }
    }
}

/* Aliases of earlier questions of the same node. */
static void keep_aliases(struct cutting *c)
{
    const struct ifd_resume *resume = c->build->options->resume;
    if (!resume || resume->node != c->build->node) {
        return;
    }
    for (uint32_t i = 0; i < resume->value_count; i++) {
        for (uint32_t k = 0; resume->value[i].alias != 0 && k < c->cut->value_count; k++) {
            if (c->cut->value[k].id == resume->value[i].id) {
                c->cut->value[k].alias = resume->value[i].alias;
            }
        }
    }
}

static void add_answers(struct cutting *c)
{
    const struct ifd_onnx_build *build = c->build;
    const struct ifd_resume *resume = build->options->resume;
    for (uint32_t i = 0; resume && build->node == resume->node && i < resume->value_count; i++) {
        if ((resume->value[i].id & ANSWER) != 0) {
            add_value(c, resume->value[i].id, build->resumed[i]);
        }
    }
    if (build->room_count == 0) {
        c->cut->value[c->cut->value_count++] =
            (struct ifd_cut_value){.id = answer_id(build->asked - 1, 0),
                                   .source = IFD_CUT_OUTPUT,
                                   .axis = IFD_NONE,
                                   .is_wanted = true};
    }
    for (uint32_t i = 0; i < build->room_count; i++) {
        add_value(c, answer_id(build->asked, i), build->room[i].value);
        c->cut->value[c->cut->value_count - 1].axis = build->room[i].axis;
    }
}

static enum ifd_code take_cut(struct cutting *c, size_t most, struct ifd_arena *arena,
                              const bool *used)
{
    struct ifd_onnx_build *build = c->build;
    struct ifd_graph *graph = build->b.graph;
    c->cut->value = ifd_arena_take_array(arena, most, sizeof(*c->cut->value));
    c->output = ifd_arena_take_array(arena, most + 1, sizeof(*c->output));
    c->output_of = ifd_arena_take_array(build->scratch, graph->value_count, sizeof(*c->output_of));
    if (!c->cut->value || !c->output || !c->output_of) {
        return ifd_arena_fail(arena, most * sizeof(*c->cut->value), build->err);
    }
    memset(c->output_of, 0xff, graph->value_count * sizeof(*c->output_of));
    c->output[c->output_count++] = build->wanted;
    c->output_of[build->wanted] = 0;
    add_names(c, used);
    add_answers(c);
    keep_aliases(c);
    return build->b.code;
}

/* The wanted value is output 0, and made by a node. */
static enum ifd_code own_wanted(struct ifd_onnx_build *build)
{
    struct ifd_builder *b = &build->b;
    const uint32_t named = build->wanted;
    if (b->graph->value[named].producer == IFD_NONE) {
        const struct ifd_shape shape = b->graph->value[named].desc.shape;
        build->wanted = ifd_build_reshape(b, named, shape.dim, shape.rank);
    }
    return b->code;
}

enum ifd_code ifd_onnx_make_cut(struct ifd_onnx_build *build, struct ifd_cut *ret)
{
    const struct ifd_onnx_scope *scope = build->scope;
    const struct ifd_resume *resume = build->options->resume;
    struct ifd_cut cut = {.is_cut = true, .node = build->node};
    struct cutting c = {.build = build, .cut = &cut};
    bool *used = ifd_arena_take_array(build->scratch, scope->name_count + 1, sizeof(*used));
    if (!used) {
        return ifd_arena_fail(build->scratch, scope->name_count, build->err);
    }
    build->b.code = IFD_OK;
    *build->err = (struct ifd_err){0};
    mark_used(scope, scope->g, build->node, used);
    enum ifd_code code = own_wanted(build);
    if (code == IFD_OK) {
        size_t most = scope->name_count + IFD_ONNX_ROOMS + 1 + (resume ? resume->value_count : 0);
        for (size_t i = 0; i < scope->name_count; i++) {
            most += ifd_onnx_list(build, scope->name[i].value)->count;
        }
        code = take_cut(&c, most, build->b.graph->arena, used);
    }
    if (code == IFD_OK) {
        code = ifd_graph_set_io(build->b.graph, build->graph_input, build->graph_input_count,
                                c.output, c.output_count, build->err);
    }
    *ret = cut;
    return code;
}

/* ---- going on ---- */

static bool copy_quant(struct ifd_arena *arena, struct ifd_quant *quant)
{
    if (quant->count == 0) {
        return true;
    }
    float *scale = ifd_arena_take_array(arena, quant->count, sizeof(*scale));
    int32_t *zero = ifd_arena_take_array(arena, quant->count, sizeof(*zero));
    if (!scale || !zero) {
        return false;
    }
    memcpy(scale, quant->scale, quant->count * sizeof(*scale));
    memcpy(zero, quant->zero_point, quant->count * sizeof(*zero));
    quant->scale = scale;
    quant->zero_point = zero;
    return true;
}

/* A constant of the file is used in place. */
static size_t readable_after(const struct ifd_onnx_build *build, struct ifd_bytes data)
{
    const uintptr_t at = (uintptr_t)data.data, file = (uintptr_t)build->file.data;
    const bool is_inside = at >= file && at - file <= build->file.size;
    return is_inside ? build->file.size - (at - file) - data.size : 0;
}

static enum ifd_code take_value(struct ifd_onnx_build *build, const struct ifd_resume_value *from,
                                uint32_t *ret)
{
    struct ifd_graph *graph = build->b.graph;
    struct ifd_desc desc = from->desc;
    if (!copy_quant(graph->arena, &desc.quant)) {
        return ifd_arena_fail(graph->arena, desc.quant.count * sizeof(float), build->err);
    }
    const char *name = "";
    struct ifd_onnx_text text;
    if ((from->id & ANSWER) == 0 && from->id < build->scope->name_count) {
        text = ifd_onnx_text(build->scope->name[from->id].text);
        name = text.s;
    }
    enum ifd_code code = ifd_graph_add_value(graph, name, &desc, ret, build->err);
    if (code == IFD_OK && from->is_constant) {
        return ifd_graph_set_constant(graph, *ret, from->data, readable_after(build, from->data),
                                      build->err);
    }
    if (code == IFD_OK) {
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
