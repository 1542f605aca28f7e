/* The rewrites that passes share. */
#include "engine/opt/pass_impl.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/ir/shape.h"

void ifd_rewrite_drop_nodes(struct ifd_graph *graph, const bool *drop)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct ifd_node *node = &graph->node[n];
        for (uint32_t i = 0; i < node->output_count; i++) {
            struct ifd_value *value = &graph->value[node->output[i]];
            if (value->producer == n) {
                value->producer = drop[n] ? IFD_NONE : kept;
            }
        }
        if (!drop[n]) {
            graph->node[kept++] = *node;
        }
    }
    graph->node_count = kept;
}

static void renumber(uint32_t *list, uint32_t count, const uint32_t *map)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] != IFD_NONE) {
            list[i] = map[list[i]];
        }
    }
}

void ifd_rewrite_keep_values(struct ifd_graph *graph, const bool *keep, uint32_t *map)
{
    uint32_t kept = 0;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        map[v] = IFD_NONE;
        if (keep[v]) {
            map[v] = kept;
            graph->value[kept++] = graph->value[v];
        }
    }
    graph->value_count = kept;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        renumber(graph->node[n].input, graph->node[n].input_count, map);
        renumber(graph->node[n].output, graph->node[n].output_count, map);
    }
    renumber(graph->input, graph->input_count, map);
    renumber(graph->output, graph->output_count, map);
}

void ifd_rewrite_uses(struct ifd_graph *graph, const uint32_t *map)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            uint32_t v = graph->node[n].input[i];
            while (v != IFD_NONE && map[v] != v) {
                v = map[v];
            }
            graph->node[n].input[i] = v;
        }
    }
}

void ifd_rewrite_mark_io(const struct ifd_graph *graph, bool *ret_is_input, bool *ret_is_output)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ret_is_input[graph->input[i]] = true;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ret_is_output[graph->output[i]] = true;
    }
}

void ifd_rewrite_count_uses(const struct ifd_graph *graph, uint32_t *ret_uses)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            if (graph->node[n].input[i] != IFD_NONE) {
                ret_uses[graph->node[n].input[i]]++;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ret_uses[graph->output[i]]++;
    }
}

struct ifd_node *ifd_rewrite_producer(const struct ifd_graph *graph, uint32_t value)
{
    const uint32_t producer = value == IFD_NONE ? IFD_NONE : graph->value[value].producer;
    return producer == IFD_NONE ? NULL : &graph->node[producer];
}

void ifd_rewrite_store_instead(struct ifd_graph *graph, struct ifd_node *from,
                               const struct ifd_node *to)
{
    graph->value[from->output[0]].producer = IFD_NONE;
    from->output[0] = to->output[0];
    graph->value[from->output[0]].producer = (uint32_t)(from - graph->node);
}

/* ---- constants ---- */

const float *ifd_rewrite_floats(const struct ifd_graph *graph, uint32_t value, size_t *ret_count)
{
    const struct ifd_value *v = value == IFD_NONE ? NULL : &graph->value[value];
    if (!v || !v->is_constant || v->desc.dtype != IFD_F32 || v->data.size == 0) {
        return NULL;
    }
    *ret_count = v->data.size / sizeof(float);
    return (const float *)(const void *)v->data.data;
}

enum ifd_code ifd_rewrite_add_constant(struct ifd_graph *graph, uint32_t named_like,
                                       const struct ifd_desc *desc, void **ret_data,
                                       uint32_t *ret_value, struct ifd_err *err)
{
    size_t bytes = 0;
    if (!ifd_desc_bytes(desc, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "a constant of shape %s",
                        ifd_shape_text(&desc->shape).s);
    }
    uint8_t *data = ifd_arena_take_tensor(graph->arena, bytes);
    if (!data) {
        return ifd_arena_fail(graph->arena, bytes, err);
    }
    enum ifd_code code =
        ifd_graph_add_value(graph, graph->value[named_like].name, desc, ret_value, err);
    if (code == IFD_OK) {
        const struct ifd_bytes content = {.data = data, .size = bytes};
        code = ifd_graph_set_constant(graph, *ret_value, content, IFD_TENSOR_PAD, err);
    }
    *ret_data = data;
    return code;
}

enum ifd_code ifd_rewrite_add_floats(struct ifd_graph *graph, uint32_t named_like,
                                     const struct ifd_shape *shape, float **ret_data,
                                     uint32_t *ret_value, struct ifd_err *err)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = *shape};
    void *data = NULL;
    const enum ifd_code code =
        ifd_rewrite_add_constant(graph, named_like, &desc, &data, ret_value, err);
    *ret_data = data;
    return code;
}

bool ifd_rewrite_has_room(const struct ifd_graph *graph, size_t bytes)
{
    const size_t half = graph->arena->cap_bytes / 2;
    return half == 0 ||
           (graph->arena->used_bytes <= half && bytes <= half - graph->arena->used_bytes);
}

bool ifd_rewrite_is_per_channel(const struct ifd_graph *graph, uint32_t constant,
                                const struct ifd_shape *tensor)
{
    const struct ifd_shape *shape = &graph->value[constant].desc.shape;
    size_t count = 0;
    if (!ifd_shape_elements(shape, &count) || shape->rank > tensor->rank) {
        return false;
    }
    return count == 1 || (tensor->rank > 0 && shape->dim[shape->rank - 1] == (int64_t)count &&
                          tensor->dim[tensor->rank - 1] == (int64_t)count);
}

/* ---- attributes ---- */

void *ifd_rewrite_own_attrs(struct ifd_graph *graph, struct ifd_node *node)
{
    const size_t bytes = ifd_op_def(node->op)->attrs_bytes;
    void *attrs = ifd_arena_take(graph->arena, bytes);
    if (attrs) {
        memcpy(attrs, node->attrs, bytes);
        node->attrs = attrs;
    }
    return attrs;
}

enum ifd_code ifd_rewrite_to_reshape(struct ifd_graph *graph, struct ifd_node *node,
                                     struct ifd_err *err)
{
    const struct ifd_shape *shape = &graph->value[node->output[0]].desc.shape;
    struct ifd_reshape_attrs *attrs = ifd_arena_take(graph->arena, sizeof(*attrs));
    if (!attrs) {
        return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
    }
    attrs->shape.count = shape->rank;
    memcpy(attrs->shape.value, shape->dim, shape->rank * sizeof(shape->dim[0]));
    node->op = IFD_OP_RESHAPE;
    node->attrs = attrs;
    return IFD_OK;
}

size_t ifd_rewrite_activation_offset(enum ifd_op op)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    for (uint32_t i = 0; def->applies_activation && i < def->attr_count; i++) {
        if (strcmp(def->attrs[i].name, "activation") == 0) {
            return def->attrs[i].offset;
        }
    }
    return SIZE_MAX;
}

int32_t ifd_rewrite_activation(const struct ifd_node *node)
{
    const size_t at = ifd_rewrite_activation_offset(node->op);
    int32_t activation = IFD_ACT_NONE;
    if (at != SIZE_MAX) {
        memcpy(&activation, (const uint8_t *)node->attrs + at, sizeof(activation));
    }
    return activation;
}

/* The only number that one of two operands is. */
static const float *one_number(const struct ifd_graph *graph, const struct ifd_node *node)
{
    for (uint32_t i = 0; node->input_count == 2 && i < 2; i++) {
        size_t count = 0;
        const float *number = ifd_rewrite_floats(graph, node->input[i], &count);
        if (number && count == 1) {
            return number;
        }
    }
    return NULL;
}

bool ifd_rewrite_keeps_quant(const struct ifd_graph *graph, const struct ifd_node *node)
{
    return ifd_quant_same(&graph->value[node->input[0]].desc.quant,
                          &graph->value[node->output[0]].desc.quant);
}

bool ifd_rewrite_clamps(const struct ifd_graph *graph, const struct ifd_node *node, float *ret_min,
                        float *ret_max)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    return def->bounds && def->bounds(node->attrs, one_number(graph, node), ret_min, ret_max);
}

static bool activation_bounds(int32_t activation, float *ret_min, float *ret_max)
{
    *ret_min = activation == IFD_ACT_RELU_N1_TO_1 ? -1.0f : 0.0f;
    *ret_max = activation == IFD_ACT_RELU6          ? 6.0f
               : activation == IFD_ACT_RELU_N1_TO_1 ? 1.0f
                                                    : INFINITY;
    return activation == IFD_ACT_RELU || activation == IFD_ACT_RELU6 ||
           activation == IFD_ACT_RELU_N1_TO_1;
}

bool ifd_rewrite_bounds(const struct ifd_graph *graph, const struct ifd_node *node, float *ret_min,
                        float *ret_max)
{
    if (graph->value[node->output[0]].desc.dtype != IFD_F32) {
        return false;
    }
    return ifd_op_def(node->op)->bounds
               ? ifd_rewrite_clamps(graph, node, ret_min, ret_max)
               : activation_bounds(ifd_rewrite_activation(node), ret_min, ret_max);
}
