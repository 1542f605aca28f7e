/* The graph's builder: dense arrays in the model's arena. Checks indexes; verify.c checks order,
 * types and shapes. */
#include "engine/ir/graph.h"

#include <string.h>

#include "engine/ir/attrs.h"
#include "engine/ir/graph_impl.h"
#include "engine/ir/shape.h"

#define FEW 16 /* operands that live on the stack; more come from the allocator */

void ifd_graph_init(struct ifd_graph *graph, struct ifd_arena *arena)
{
    *graph = (struct ifd_graph){.arena = arena};
}

/* Room for one more item. The old array stays in the arena; doubling bounds what stays by the size
 * of the new one. */
static enum ifd_code grow(struct ifd_arena *arena, void **items, uint32_t count, uint32_t *capacity,
                          size_t item_bytes, struct ifd_err *err)
{
    if (count < *capacity) {
        return IFD_OK;
    }
    if (*capacity > UINT32_MAX / 2 - 1) {
        return ifd_fail(err, IFD_TOO_LARGE, "graph: more than %u items", *capacity);
    }
    uint32_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *grown = ifd_arena_take_array(arena, wanted, item_bytes);
    if (!grown) {
        return ifd_arena_fail(arena, (size_t)wanted * item_bytes, err);
    }
    if (count > 0) {
        memcpy(grown, *items, (size_t)count * item_bytes);
    }
    *items = grown;
    *capacity = wanted;
    return IFD_OK;
}

enum ifd_code ifd_graph_add_value(struct ifd_graph *graph, const char *name,
                                  const struct ifd_desc *desc, uint32_t *ret_index,
                                  struct ifd_err *err)
{
    void *items = graph->value;
    enum ifd_code code = grow(graph->arena, &items, graph->value_count, &graph->value_capacity,
                              sizeof(*graph->value), err);
    if (code != IFD_OK) {
        return code;
    }
    graph->value = items;

    size_t name_bytes = strlen(name);
    const char *copy = "";
    if (name_bytes > 0) {
        copy = ifd_arena_text(graph->arena, name, name_bytes);
        if (!copy) {
            return ifd_arena_fail(graph->arena, name_bytes, err);
        }
    }
    graph->value[graph->value_count] =
        (struct ifd_value){.name = copy, .desc = *desc, .producer = IFD_NONE};
    *ret_index = graph->value_count++;
    return IFD_OK;
}

/* Any byte but 0 is true, and kernels know 1 only. */
static bool has_other_flags(const struct ifd_desc *desc, struct ifd_bytes data)
{
    uint8_t bits = 0;
    for (size_t i = 0; desc->dtype == IFD_BOOL && i < data.size; i++) {
        bits |= data.data[i];
    }
    return bits > 1;
}

enum ifd_code ifd_graph_set_constant(struct ifd_graph *graph, uint32_t value, struct ifd_bytes data,
                                     size_t readable_after, struct ifd_err *err)
{
    if (value >= graph->value_count) {
        return ifd_fail(err, IFD_INVALID, "constant %u of %u values", value, graph->value_count);
    }
    struct ifd_value *v = &graph->value[value];
    size_t wanted = 0;
    if (!ifd_desc_bytes(&v->desc, &wanted) || wanted != data.size) {
        return ifd_fail(err, IFD_INVALID, "constant \"%s\": %zu bytes do not fit %s %s", v->name,
                        data.size, ifd_dtype_name(v->desc.dtype), ifd_shape_text(&v->desc.shape).s);
    }
    if (v->producer != IFD_NONE) {
        return ifd_fail(err, IFD_INVALID, "constant \"%s\" is made by node %u", v->name,
                        v->producer);
    }
    bool aligned = data.data && (uintptr_t)data.data % ifd_dtype_bytes(v->desc.dtype) == 0;
    const bool has_others = has_other_flags(&v->desc, data);
    if (!aligned || has_others || readable_after < IFD_TENSOR_PAD) {
        uint8_t *copy = ifd_arena_take_tensor(graph->arena, data.size);
        if (!copy) {
            return ifd_arena_fail(graph->arena, data.size, err);
        }
        if (data.size > 0) {
            memcpy(copy, data.data, data.size);
        }
        for (size_t i = 0; has_others && i < data.size; i++) {
            copy[i] = copy[i] != 0;
        }
        data.data = copy;
    }
    v->data = data;
    v->is_constant = true;
    return IFD_OK;
}

/* A copy of indexes of values; IFD_NONE is allowed where inputs are optional. */
static enum ifd_code copy_indexes(struct ifd_graph *graph, const char *what, const uint32_t *from,
                                  uint32_t count, bool optional, uint32_t **ret,
                                  struct ifd_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (from[i] >= graph->value_count && !(optional && from[i] == IFD_NONE)) {
            return ifd_fail(err, IFD_INVALID, "%s %u is value %u of %u", what, i, from[i],
                            graph->value_count);
        }
    }
    uint32_t *copy = ifd_arena_take_array(graph->arena, count, sizeof(*copy));
    if (!copy) {
        return ifd_arena_fail(graph->arena, (size_t)count * sizeof(*copy), err);
    }
    if (count > 0) {
        memcpy(copy, from, (size_t)count * sizeof(*copy));
    }
    *ret = copy;
    return IFD_OK;
}

static enum ifd_code claim_outputs(struct ifd_graph *graph, uint32_t node, const uint32_t *output,
                                   uint32_t count, struct ifd_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ifd_value *v = &graph->value[output[i]];
        if (v->producer != IFD_NONE || v->is_constant) {
            /* undo: a refused node leaves nothing behind */
            for (uint32_t k = 0; k < i; k++) {
                graph->value[output[k]].producer = IFD_NONE;
            }
            return ifd_fail(err, IFD_INVALID, "output \"%s\" of node %u is already %s", v->name,
                            node, v->is_constant ? "a constant" : "made by another node");
        }
        v->producer = node;
    }
    return IFD_OK;
}

enum ifd_code ifd_graph_add_node(struct ifd_graph *graph, enum ifd_op op, const uint32_t *input,
                                 uint32_t input_count, const uint32_t *output,
                                 uint32_t output_count, struct ifd_node **ret_node,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    if (!def) {
        return ifd_fail(err, IFD_INVALID, "no operator %d", (int)op);
    }
    void *items = graph->node;
    enum ifd_code code = grow(graph->arena, &items, graph->node_count, &graph->node_capacity,
                              sizeof(*graph->node), err);
    if (code != IFD_OK) {
        return code;
    }
    graph->node = items;

    struct ifd_node node = {.op = op,
                            .input_count = input_count,
                            .output_count = output_count,
                            .source_index = IFD_NONE,
                            .source_name = def->name};
    code = copy_indexes(graph, "input", input, input_count, true, &node.input, err);
    if (code == IFD_OK) {
        code = copy_indexes(graph, "output", output, output_count, false, &node.output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    if (def->attrs_bytes > 0) {
        void *attrs = ifd_arena_take(graph->arena, def->attrs_bytes);
        if (!attrs) {
            return ifd_arena_fail(graph->arena, def->attrs_bytes, err);
        }
        ifd_attrs_defaults(def, attrs);
        node.attrs = attrs;
    }
    code = claim_outputs(graph, graph->node_count, node.output, output_count, err);
    if (code != IFD_OK) {
        return code;
    }
    graph->node[graph->node_count] = node;
    *ret_node = &graph->node[graph->node_count++];
    return IFD_OK;
}

enum ifd_code ifd_graph_set_io(struct ifd_graph *graph, const uint32_t *input, uint32_t input_count,
                               const uint32_t *output, uint32_t output_count, struct ifd_err *err)
{
    uint32_t *inputs = NULL;
    uint32_t *outputs = NULL;
    enum ifd_code code =
        copy_indexes(graph, "graph input", input, input_count, false, &inputs, err);
    if (code == IFD_OK) {
        code = copy_indexes(graph, "graph output", output, output_count, false, &outputs, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    graph->input = inputs;
    graph->input_count = input_count;
    graph->output = outputs;
    graph->output_count = output_count;
    return IFD_OK;
}

void ifd_graph_operands(const struct ifd_graph *graph, const struct ifd_node *node,
                        struct ifd_operand *ret_operands)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] == IFD_NONE) {
            ret_operands[i] = (struct ifd_operand){0};
            continue;
        }
        const struct ifd_value *v = &graph->value[node->input[i]];
        ret_operands[i] = (struct ifd_operand){.desc = &v->desc, .data = v->data};
    }
}

enum ifd_code ifd_graph_infer_into(const struct ifd_graph *graph, const struct ifd_node *node,
                                   struct ifd_desc *ret_output, struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    const struct ifd_alloc *alloc = graph->arena->alloc;
    struct ifd_operand few[FEW];
    struct ifd_operand *many = NULL;
    if (node->input_count > FEW) {
        many = ifd_acquire_zeroed(alloc, node->input_count, sizeof(*many));
        if (!many) {
            return ifd_fail(err, IFD_NOMEM, "no memory for %u operands", node->input_count);
        }
    }
    struct ifd_operand *operands = many ? many : few;
    ifd_graph_operands(graph, node, operands);
    for (uint32_t i = 0; i < node->output_count; i++) {
        ret_output[i] = graph->value[node->output[i]].desc;
    }
    const struct ifd_infer in = {.def = def,
                                 .attrs = node->attrs,
                                 .input = operands,
                                 .input_count = node->input_count,
                                 .output_count = node->output_count};
    enum ifd_code code = def->infer(&in, ret_output, err);
    ifd_release(alloc, many, node->input_count * sizeof(*many));
    return code;
}

void ifd_graph_prefix(const struct ifd_graph *graph, uint32_t node, struct ifd_err *err)
{
    const struct ifd_node *n = &graph->node[node];
    bool named = n->output_count > 0 && n->output[0] < graph->value_count;
    ifd_err_prefix(err, "%.60s (node %u, output \"%.60s\")", n->source_name,
                   n->source_index == IFD_NONE ? node : n->source_index,
                   named ? graph->value[n->output[0]].name : "");
}

enum ifd_code ifd_graph_infer_node(struct ifd_graph *graph, uint32_t node, struct ifd_err *err)
{
    const struct ifd_node *n = &graph->node[node];
    const struct ifd_alloc *alloc = graph->arena->alloc;
    struct ifd_desc few[FEW];
    struct ifd_desc *many = NULL;
    if (n->output_count > FEW) {
        many = ifd_acquire_zeroed(alloc, n->output_count, sizeof(*many));
        if (!many) {
            return ifd_fail(err, IFD_NOMEM, "no memory for %u outputs", n->output_count);
        }
    }
    struct ifd_desc *output = many ? many : few;
    enum ifd_code code = ifd_graph_infer_into(graph, n, output, err);
    if (code == IFD_OK) {
        for (uint32_t i = 0; i < n->output_count; i++) {
            graph->value[n->output[i]].desc.shape = output[i].shape;
        }
    } else {
        ifd_graph_prefix(graph, node, err);
    }
    ifd_release(alloc, many, n->output_count * sizeof(*many));
    return code;
}

static bool copy_array(struct ifd_arena *arena, const void *from, size_t count, size_t item_bytes,
                       void **ret)
{
    void *copy = ifd_arena_take_array(arena, count, item_bytes);
    if (copy && count > 0) {
        memcpy(copy, from, count * item_bytes);
    }
    *ret = copy;
    return copy;
}

static bool clone_node(struct ifd_node *node, struct ifd_arena *arena)
{
    void *input = NULL;
    void *output = NULL;
    if (!copy_array(arena, node->input, node->input_count, sizeof(*node->input), &input) ||
        !copy_array(arena, node->output, node->output_count, sizeof(*node->output), &output)) {
        return false;
    }
    node->input = input;
    node->output = output;
    return true;
}

enum ifd_code ifd_graph_clone(const struct ifd_graph *graph, struct ifd_arena *arena,
                              struct ifd_graph *ret_graph, struct ifd_err *err)
{
    struct ifd_graph clone = *graph;
    clone.arena = arena;
    clone.value_capacity = graph->value_count;
    clone.node_capacity = graph->node_count;
    void *value = NULL;
    void *node = NULL;
    void *input = NULL;
    void *output = NULL;
    bool ok =
        copy_array(arena, graph->value, graph->value_count, sizeof(*graph->value), &value) &&
        copy_array(arena, graph->node, graph->node_count, sizeof(*graph->node), &node) &&
        copy_array(arena, graph->input, graph->input_count, sizeof(*graph->input), &input) &&
        copy_array(arena, graph->output, graph->output_count, sizeof(*graph->output), &output);
    clone.value = value;
    clone.node = node;
    clone.input = input;
    clone.output = output;
    for (uint32_t i = 0; ok && i < clone.node_count; i++) {
        ok = clone_node(&clone.node[i], arena);
    }
    if (!ok) {
        return ifd_arena_fail(arena, sizeof(*graph->value) * graph->value_count, err);
    }
    *ret_graph = clone;
    return IFD_OK;
}
