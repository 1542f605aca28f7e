/* The structural check of a graph. Shape rules check what operators demand of their operands. */
#include "engine/ir/verify.h"

#include "engine/ir/graph_impl.h"
#include "engine/ir/shape.h"

#define FEW 16

static enum ifd_code check_quant(const struct ifd_value *v, uint32_t index, enum ifd_code code,
                                 struct ifd_err *err)
{
    const struct ifd_quant *q = &v->desc.quant;
    if (q->count == 0) {
        return IFD_OK;
    }
    if (!q->scale || !q->zero_point) {
        return ifd_fail(err, code, "value %u \"%s\": quantization without parameters", index,
                        v->name);
    }
    if (q->count > 1 && (q->axis >= v->desc.shape.rank || v->desc.shape.dim[q->axis] != q->count)) {
        return ifd_fail(err, code, "value %u \"%s\": %u scales along axis %u of %s", index, v->name,
                        q->count, q->axis, ifd_shape_text(&v->desc.shape).s);
    }
    return IFD_OK;
}

static enum ifd_code check_value(const struct ifd_graph *graph, uint32_t index, enum ifd_code code,
                                 struct ifd_err *err)
{
    const struct ifd_value *v = &graph->value[index];
    if (!v->name) {
        return ifd_fail(err, code, "value %u has no name", index);
    }
    if (ifd_dtype_bytes(v->desc.dtype) == 0 || v->desc.shape.rank > IFD_MAX_RANK) {
        return ifd_fail(err, code, "value %u \"%s\": type %d, rank %u", index, v->name,
                        (int)v->desc.dtype, v->desc.shape.rank);
    }
    for (uint32_t d = 0; d < v->desc.shape.rank; d++) {
        if (v->desc.shape.dim[d] < IFD_DIM_ANY) {
            return ifd_fail(err, code, "value %u \"%s\": shape %s", index, v->name,
                            ifd_shape_text(&v->desc.shape).s);
        }
    }
    if (v->producer != IFD_NONE && (v->producer >= graph->node_count || v->is_constant)) {
        return ifd_fail(err, code, "value %u \"%s\": producer %u of %u nodes%s", index, v->name,
                        v->producer, graph->node_count,
                        v->is_constant ? ", and it is a constant" : "");
    }
    if (v->is_constant) {
        size_t bytes = 0;
        if (!ifd_desc_bytes(&v->desc, &bytes) || bytes != v->data.size) {
            return ifd_fail(err, code, "constant %u \"%s\": %zu bytes do not fit %s %s", index,
                            v->name, v->data.size, ifd_dtype_name(v->desc.dtype),
                            ifd_shape_text(&v->desc.shape).s);
        }
        if (!v->data.data || (uintptr_t)v->data.data % ifd_dtype_bytes(v->desc.dtype) != 0) {
            return ifd_fail(err, code, "constant %u \"%s\" is not aligned", index, v->name);
        }
    } else if (v->data.size != 0) {
        return ifd_fail(err, code, "value %u \"%s\" has content but is not a constant", index,
                        v->name);
    }
    return check_quant(v, index, code, err);
}

/* Inputs exist before the first node runs; seen[] marks values that exist so far. */
static enum ifd_code check_inputs(const struct ifd_graph *graph, bool *seen, enum ifd_code code,
                                  struct ifd_err *err)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        uint32_t index = graph->input[i];
        if (index >= graph->value_count) {
            return ifd_fail(err, code, "graph input %u is value %u of %u", i, index,
                            graph->value_count);
        }
        const struct ifd_value *v = &graph->value[index];
        if (v->is_constant || v->producer != IFD_NONE || seen[index]) {
            return ifd_fail(err, code, "graph input %u \"%s\" is %s", i, v->name,
                            v->is_constant ? "a constant"
                                           : (seen[index] ? "listed twice" : "made by a node"));
        }
        seen[index] = true;
    }
    return IFD_OK;
}

static enum ifd_code check_operands(const struct ifd_graph *graph, const struct ifd_node *node,
                                    const bool *seen, enum ifd_code code, struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t index = node->input[i];
        if (index == IFD_NONE) {
            if (i < def->min_inputs) {
                return ifd_fail(err, code, "input %u is absent", i);
            }
            continue;
        }
        if (index >= graph->value_count) {
            return ifd_fail(err, code, "input %u is value %u of %u", i, index, graph->value_count);
        }
        const struct ifd_value *v = &graph->value[index];
        if (!v->is_constant && !seen[index]) {
            return ifd_fail(err, code, "input %u \"%s\" is not made before this node", i, v->name);
        }
        if (i < 32 && (def->shape_inputs & IFD_BIT(i)) && !v->is_constant) {
            return ifd_fail(err, code == IFD_INTERNAL ? code : IFD_UNSUPPORTED,
                            "input %u \"%s\" decides the shape and is not constant", i, v->name);
        }
    }
    if (node->input_count > 0 && node->input[0] != IFD_NONE) {
        enum ifd_dtype dtype = graph->value[node->input[0]].desc.dtype;
        if (!(def->dtypes & IFD_BIT(dtype))) {
            return ifd_fail(err, code == IFD_INTERNAL ? code : IFD_UNSUPPORTED,
                            "type %s is not supported", ifd_dtype_name(dtype));
        }
    }
    return IFD_OK;
}

static enum ifd_code check_results(const struct ifd_graph *graph, uint32_t index, bool *seen,
                                   enum ifd_code code, struct ifd_err *err)
{
    const struct ifd_node *node = &graph->node[index];
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t value = node->output[i];
        if (value >= graph->value_count) {
            return ifd_fail(err, code, "output %u is value %u of %u", i, value, graph->value_count);
        }
        if (graph->value[value].producer != index || seen[value]) {
            return ifd_fail(err, code, "output %u \"%s\" has another producer", i,
                            graph->value[value].name);
        }
        seen[value] = true;
    }
    return IFD_OK;
}

static enum ifd_code check_shapes(const struct ifd_graph *graph, const struct ifd_node *node,
                                  enum ifd_code code, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = graph->arena->alloc;
    struct ifd_desc few[FEW];
    struct ifd_desc *many = NULL;
    if (node->output_count > FEW) {
        many = ifd_acquire_zeroed(alloc, node->output_count, sizeof(*many));
        if (!many) {
            return ifd_fail(err, IFD_NOMEM, "no memory for %u outputs", node->output_count);
        }
    }
    struct ifd_desc *output = many ? many : few;
    enum ifd_code got = ifd_graph_infer_into(graph, node, output, err);
    for (uint32_t i = 0; got == IFD_OK && i < node->output_count; i++) {
        const struct ifd_value *v = &graph->value[node->output[i]];
        if (!ifd_shape_equal(&output[i].shape, &v->desc.shape)) {
            got =
                ifd_fail(err, code, "output %u \"%s\" has shape %s, the rule gives %s", i, v->name,
                         ifd_shape_text(&v->desc.shape).s, ifd_shape_text(&output[i].shape).s);
        }
    }
    ifd_release(alloc, many, node->output_count * sizeof(*many));
    return got;
}

static enum ifd_code check_node(const struct ifd_graph *graph, uint32_t index, bool *seen,
                                enum ifd_code code, struct ifd_err *err)
{
    const struct ifd_node *node = &graph->node[index];
    const struct ifd_op_def *def = ifd_op_def(node->op);
    if (!def) {
        return ifd_fail(err, code, "node %u: no operator %d", index, (int)node->op);
    }
    if (node->input_count < def->min_inputs ||
        (def->max_inputs != IFD_OP_VARIADIC && node->input_count > def->max_inputs)) {
        return ifd_fail(err, code, "%u inputs, expected %s", node->input_count,
                        ifd_count_text(def->min_inputs, def->max_inputs).s);
    }
    if (node->output_count == 0 ||
        (def->outputs != IFD_OP_VARIADIC && node->output_count != def->outputs)) {
        const uint32_t least = def->outputs == IFD_OP_VARIADIC ? 1 : def->outputs;
        return ifd_fail(err, code, "%u outputs, expected %s", node->output_count,
                        ifd_count_text(least, def->outputs).s);
    }
    if (def->attrs_bytes > 0 && !node->attrs) {
        return ifd_fail(err, code, "no attributes");
    }
    enum ifd_code got = check_operands(graph, node, seen, code, err);
    if (got == IFD_OK) {
        got = check_results(graph, index, seen, code, err);
    }
    return got == IFD_OK ? check_shapes(graph, node, code, err) : got;
}

static enum ifd_code check_outputs(const struct ifd_graph *graph, const bool *seen,
                                   enum ifd_code code, struct ifd_err *err)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t index = graph->output[i];
        if (index >= graph->value_count) {
            return ifd_fail(err, code, "graph output %u is value %u of %u", i, index,
                            graph->value_count);
        }
        if (!seen[index] && !graph->value[index].is_constant) {
            return ifd_fail(err, code, "graph output %u \"%s\" is made by no node", i,
                            graph->value[index].name);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_graph_verify(const struct ifd_graph *graph, enum ifd_code code,
                               struct ifd_err *err)
{
    const struct ifd_alloc *alloc = graph->arena->alloc;
    size_t seen_bytes = (size_t)graph->value_count + 1;
    bool *seen = ifd_acquire_zeroed(alloc, seen_bytes, sizeof(*seen));
    if (!seen) {
        return ifd_fail(err, IFD_NOMEM, "no memory to check %u values", graph->value_count);
    }
    enum ifd_code got = IFD_OK;
    for (uint32_t i = 0; got == IFD_OK && i < graph->value_count; i++) {
        got = check_value(graph, i, code, err);
    }
    if (got == IFD_OK) {
        got = check_inputs(graph, seen, code, err);
    }
    for (uint32_t i = 0; got == IFD_OK && i < graph->node_count; i++) {
        got = check_node(graph, i, seen, code, err);
        if (got != IFD_OK) {
            ifd_graph_prefix(graph, i, err);
        }
    }
    if (got == IFD_OK) {
        got = check_outputs(graph, seen, code, err);
    }
    ifd_release(alloc, seen, seen_bytes * sizeof(*seen));
    return got;
}
