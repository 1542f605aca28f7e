/* Graphs that a node brings with it: built in place, or as graphs of our own. */
#include "engine/parse/onnx/inner.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "engine/ir/trace.h"
#include "engine/ir/verify.h"

/* ---- values ---- */

/* Keeps what a callee reported. */
static bool passed(struct ifd_builder *b, enum ifd_code code)
{
    b->code = b->code == IFD_OK ? code : b->code;
    return b->code == IFD_OK;
}

uint32_t *ifd_onnx_take(struct ifd_onnx_call *call, size_t count)
{
    struct ifd_arena *arena = call->b->graph->arena;
    uint32_t *values = ifd_arena_take_array(arena, count, sizeof(*values));
    if (!values) {
        passed(call->b, ifd_arena_fail(arena, count * sizeof(*values), call->b->err));
    }
    return values;
}

uint32_t ifd_onnx_scalar(struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape.rank > 0 ? ifd_build_reshape(b, value, NULL, 0) : value;
}

bool ifd_onnx_is_known(const struct ifd_builder *b, uint32_t value, bool *ret_is_true)
{
    const struct ifd_bytes content = ifd_build_content(b, value);
    *ret_is_true = content.size > 0 && content.data[0] != 0;
    return content.size > 0;
}

uint32_t ifd_onnx_condition(struct ifd_builder *b, uint32_t value)
{
    const struct ifd_desc *desc = ifd_build_desc(b, value);
    size_t count = 0;
    if (b->code == IFD_OK &&
        (desc->dtype != IFD_BOOL || !ifd_shape_elements(&desc->shape, &count) || count != 1)) {
        return ifd_build_fail(b, IFD_CORRUPT, "a condition of %s %s, expected one bool",
                              ifd_dtype_name(desc->dtype), ifd_shape_text(&desc->shape).s);
    }
    return ifd_onnx_scalar(b, value);
}

const struct ifd_onnx_graph *ifd_onnx_graph_of(struct ifd_onnx_call *call, const char *name)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    if (!attr || !attr->graph) {
        ifd_build_fail(call->b, IFD_CORRUPT, "no graph \"%s\"", name);
        return NULL;
    }
    return attr->graph;
}

void ifd_onnx_build_inline(struct ifd_onnx_call *call, const struct ifd_onnx_graph *g,
                           const uint32_t *input, uint32_t input_count, uint32_t *ret_output)
{
    if (call->b->code == IFD_OK) {
        passed(call->b,
               ifd_onnx_inline(call->build, g, NULL, NULL, input, input_count, ret_output));
    }
}

/* ---- graphs of our own ---- */

static void capture(struct ifd_onnx_captures *c, struct ifd_str text)
{
    const uint32_t value = text.size > 0 ? ifd_onnx_lookup(c->call->build, text) : IFD_NONE;
    if (value == IFD_NONE || c->call->b->graph->value[value].is_constant) {
        return;
    }
    if (c->count == c->capacity) {
        const uint32_t capacity = c->capacity * 2 + 16;
        uint32_t *grown = ifd_onnx_take(c->call, capacity);
        if (!grown) {
            return;
        }
        memcpy(grown, c->value ? c->value : grown, c->count * sizeof(*grown));
        c->value = grown;
        c->capacity = capacity;
    }
    c->value[c->count++] = value;
}

static void capture_graph(struct ifd_onnx_captures *c, const struct ifd_onnx_graph *g)
{
    for (uint32_t i = 0; i < g->output_count; i++) {
        capture(c, g->output[i].name);
    }
    for (uint32_t n = 0; n < g->node_count; n++) {
        const struct ifd_onnx_node *node = &g->node[n];
        for (uint32_t i = 0; i < node->input_count; i++) {
            capture(c, node->input[i]);
        }
        for (uint32_t i = 0; i < node->attr_count; i++) {
            if (node->attr[i].graph) {
                capture_graph(c, node->attr[i].graph);
            }
        }
    }
}

static int compare_values(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void ifd_onnx_capture(struct ifd_onnx_captures *c, const struct ifd_onnx_graph *g)
{
    uint32_t kept = 0;
    capture_graph(c, g);
    if (c->count > 0) {
        qsort(c->value, c->count, sizeof(*c->value), compare_values);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        if (i == 0 || c->value[i] != c->value[i - 1]) {
            c->value[kept++] = c->value[i];
        }
    }
    c->count = kept;
}

void ifd_onnx_begin_graph(struct ifd_onnx_call *call, const uint32_t *like, uint32_t count,
                          const struct ifd_onnx_captures *captures, struct ifd_onnx_inner *inner)
{
    struct ifd_builder *b = call->b;
    struct ifd_graph *outer = b->graph;
    struct ifd_graph *graph = ifd_arena_take(outer->arena, sizeof(*graph));
    *inner = (struct ifd_onnx_inner){.outer = outer,
                                     .nhwc = b->nhwc,
                                     .nhwc_count = b->nhwc_count,
                                     .outer_level = call->build->level,
                                     .input = ifd_onnx_take(call, count),
                                     .input_count = count};
    if (!graph || !inner->input) {
        passed(b, ifd_arena_fail(outer->arena, sizeof(*graph), b->err));
        return;
    }
    if (!passed(b, ifd_onnx_spend(call->build, IFD_ONNX_GRAPH_NODES))) {
        return;
    }
    ifd_graph_init(graph, outer->arena);
    graph->main = call->build->main;
    for (uint32_t i = 0; i < count && b->code == IFD_OK; i++) {
        const struct ifd_value *value = &outer->value[like[i]];
        passed(b, ifd_graph_add_value(graph, value->name, &value->desc, &inner->input[i], b->err));
    }
    inner->level = (struct ifd_onnx_level){.outer = inner->outer_level,
                                           .graph = graph,
                                           .captured = captures->value,
                                           .input = inner->input + count - captures->count,
                                           .captured_count = captures->count};
    call->build->level = &inner->level;
    b->graph = graph;
    b->nhwc = NULL;
    b->nhwc_count = 0;
}

const struct ifd_graph *ifd_onnx_end_graph(struct ifd_onnx_call *call, struct ifd_onnx_inner *inner,
                                           const uint32_t *output, uint32_t count)
{
    struct ifd_builder *b = call->b;
    struct ifd_graph *graph = inner->level.graph, *main = call->build->main;
    if (b->code == IFD_OK) {
        passed(b, ifd_graph_set_io(graph, inner->input, inner->input_count, output, count, b->err));
    }
    if (b->code == IFD_OK && passed(b, ifd_graph_verify(graph, IFD_INVALID, b->err))) {
        graph->next = main->next;
        main->next = graph;
    }
    call->build->level = inner->outer_level;
    b->graph = inner->outer;
    b->nhwc = inner->nhwc;
    b->nhwc_count = inner->nhwc_count;
    return graph;
}

void ifd_onnx_add_node(struct ifd_onnx_call *call, enum ifd_op op, const void *attrs,
                       const uint32_t *input, uint32_t input_count, const struct ifd_graph *like,
                       uint32_t *output)
{
    struct ifd_arena *arena = call->b->graph->arena;
    struct ifd_desc *desc = ifd_arena_take_array(arena, like->output_count, sizeof(*desc));
    if (!desc) {
        passed(call->b, ifd_arena_fail(arena, like->output_count * sizeof(*desc), call->b->err));
        return;
    }
    for (uint32_t i = 0; i < like->output_count; i++) {
        desc[i] = like->value[like->output[i]].desc;
    }
    ifd_build_nodes(call->b, op, input, input_count, desc, like->output_count, attrs, output);
    call->build->is_stuck = call->b->code != IFD_OK; /* shapes differ or change */
}

struct ifd_onnx_mark ifd_onnx_mark_of(const struct ifd_onnx_call *call)
{
    const struct ifd_graph *graph = call->b->graph;
    return (struct ifd_onnx_mark){.next = call->build->main->next,
                                  .node_count = graph->node_count,
                                  .value_count = graph->value_count,
                                  .asked = call->build->asked,
                                  .loops = call->build->loops};
}

void ifd_onnx_go_back(struct ifd_onnx_call *call, const struct ifd_onnx_mark *mark)
{
    struct ifd_builder *b = call->b;
    b->code = IFD_OK;
    ifd_graph_go_back(b->graph, mark->node_count, mark->value_count);
    call->build->main->next = mark->next;
    call->build->asked = mark->asked;
    call->build->loops = mark->loops;
    call->build->is_stuck = false;
    for (uint32_t v = mark->value_count; v < b->nhwc_count; v++) {
        b->nhwc[v] = IFD_NONE;
    }
}

bool ifd_onnx_may_build_in_place(const struct ifd_onnx_call *call)
{
    const struct ifd_onnx_build *build = call->build;
    const enum ifd_code code = call->b->code;
    return (code == IFD_INVALID ||
            (build->is_stuck && (code == IFD_UNSUPPORTED || code == IFD_CORRUPT))) &&
           build->wanted == IFD_NONE && ifd_onnx_can_ask(build);
}

uint32_t ifd_onnx_stack(struct ifd_onnx_call *call, const uint32_t *value, uint32_t count,
                        uint32_t axis)
{
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)axis};
    for (uint32_t i = 0; i < count; i++) {
        if (ifd_onnx_is_list(value[i])) {
            ifd_build_fail(call->b, IFD_CORRUPT, "what turn %u gives is a sequence, not a tensor",
                           i + 1);
            return IFD_NONE;
        }
    }
    return ifd_build_node(call->b, IFD_OP_PACK, value, count, NULL, &attrs);
}
