/* Batch as a free dimension: which values have samples along dimension 0, and the graph at another
 * batch size. Knows operators by their batch rule and the names of their attributes only. */
#include "engine/ir/batch.h"

#include <string.h>

#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "inferd/engine.h"

/* ---- attributes by name ---- */

static const void *field(const struct ifd_node *node, const char *name, enum ifd_attr_kind kind)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    for (uint32_t i = 0; i < def->attr_count; i++) {
        if (def->attrs[i].kind == kind && strcmp(def->attrs[i].name, name) == 0) {
            return (const char *)node->attrs + def->attrs[i].offset;
        }
    }
    return NULL;
}

/* First number of a list; otherwise if there is no list of this name or it is empty. */
static int64_t first_of(const struct ifd_node *node, const char *name, int64_t otherwise)
{
    const struct ifd_ints *ints = field(node, name, IFD_ATTR_INTS);
    return ints && ints->count > 0 ? ints->value[0] : otherwise;
}

/* A number; 0 if the operator has no attribute of this name. */
static int32_t mask_of(const struct ifd_node *node, const char *name)
{
    const int32_t *mask = field(node, name, IFD_ATTR_INT);
    return mask ? *mask : 0;
}

/* ---- which values are batched ---- */

struct spread {
    const struct ifd_graph *graph;
    int64_t batch; /* as the graph has it */
    bool *batched; /* per value */
};

static bool is_batched(const struct spread *s, const struct ifd_node *node, uint32_t i)
{
    return i < node->input_count && node->input[i] != IFD_NONE && s->batched[node->input[i]];
}

static const struct ifd_shape *shape_of(const struct spread *s, uint32_t value)
{
    return &s->graph->value[value].desc.shape;
}

static bool leads_with_batch(const struct spread *s, uint32_t value)
{
    const struct ifd_shape *shape = shape_of(s, value);
    return shape->rank > 0 && shape->dim[0] == s->batch;
}

/* Samples whose scales differ are no samples. */
static bool has_scales_of_samples(const struct spread *s, uint32_t value)
{
    const struct ifd_quant *quant = &s->graph->value[value].desc.quant;
    return quant->count > 1 && quant->axis == 0;
}

static bool is_only_batched(const struct spread *s, const struct ifd_node *node, uint32_t input)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i != input && is_batched(s, node, i)) {
            return false;
        }
    }
    return is_batched(s, node, input);
}

/* A layer whose range of all samples decides how each is quantized (rounds_even). */
static bool quantizes_whole(const struct spread *s, const struct ifd_node *node)
{
    const bool *rounds_even = field(node, "rounds_even", IFD_ATTR_BOOL);
    return rounds_even && *rounds_even && node->input_count > 1 &&
           s->graph->value[node->input[0]].desc.dtype == IFD_F32 &&
           s->graph->value[node->input[1]].desc.dtype != IFD_F32;
}

static bool allows_sample(const struct spread *s, const struct ifd_node *node)
{
    return is_only_batched(s, node, 0) && !quantizes_whole(s, node);
}

/* Has the shape in input 0 a first number that can be replaced? The shape rule compares it with
 * the batch. */
static bool allows_sized(const struct spread *s, const struct ifd_node *node)
{
    const struct ifd_value *size = &s->graph->value[node->input[0]];
    return is_only_batched(s, node, 2) && size->is_constant && size->data.data &&
           size->data.size >= ifd_dtype_bytes(size->desc.dtype);
}

/* An input that begins with the batch is a state before the first step, perhaps: it would not grow.
 */
static bool allows_sequence(const struct spread *s, const struct ifd_node *node)
{
    const bool *time_major = field(node, "time_major", IFD_ATTR_BOOL);
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE && leads_with_batch(s, node->input[i])) {
            return false;
        }
    }
    return !(time_major && *time_major) && allows_sample(s, node);
}

/* Batched inputs have the output's rank, so that their dimensions 0 align; the others broadcast
 * into every sample. */
static bool allows_elementwise(const struct spread *s, const struct ifd_node *node)
{
    const uint32_t rank = shape_of(s, node->output[0])->rank;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] == IFD_NONE) {
            continue;
        }
        const struct ifd_shape *shape = shape_of(s, node->input[i]);
        if (is_batched(s, node, i) ? shape->rank != rank
                                   : shape->rank == rank && shape->dim[0] != 1) {
            return false;
        }
    }
    return true;
}

static bool names_dimension_0(const struct ifd_node *node, const struct ifd_shape *shape)
{
    const int32_t *axis = field(node, "axis", IFD_ATTR_INT);
    const struct ifd_ints *axes = field(node, "axes", IFD_ATTR_INTS);
    const int64_t from_end = -(int64_t)shape->rank;
    if (axis && (*axis == 0 || *axis == from_end)) {
        return true;
    }
    if (axes && axes->count == 0) {
        return true; /* an empty list may mean every dimension */
    }
    for (uint32_t i = 0; axes && i < axes->count; i++) {
        if (axes->value[i] == 0 || axes->value[i] == from_end) {
            return true;
        }
    }
    /* Without an axis attribute the operator works along the last dimension. */
    return !axis && !axes && shape->rank == 1;
}

/* Operators of any number of inputs (concat, pack) need all of them batched, others only the first.
 * A negative axis counts from the end of the input or of the output, whichever has more dimensions
 * (pack adds one). Indices that differ between samples (gather) fit one batch size only. */
static bool allows_axis(const struct spread *s, const struct ifd_node *node)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    if (def->max_inputs == IFD_OP_VARIADIC) {
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!is_batched(s, node, i)) {
                return false;
            }
        }
    } else if (!allows_sample(s, node)) {
        return false;
    }
    const struct ifd_shape *input = shape_of(s, node->input[0]);
    const struct ifd_shape *output = shape_of(s, node->output[0]);
    const bool adds = def->max_inputs == IFD_OP_VARIADIC && output->rank > input->rank;
    return !names_dimension_0(node, adds ? output : input) && mask_of(node, "batch_dims") == 0;
}

/* Does the window of dimension 0 end at any batch with the last sample? One that ends elsewhere
 * cuts larger batches. */
static bool ends_with_batch(const struct spread *s, const struct ifd_node *node)
{
    const int64_t end = first_of(node, "end", s->batch);
    return (mask_of(node, "end_mask") & 1) != 0 || end == s->batch || end >= IFD_MAX_BATCH;
}

/* Dimension 0 is neither cut, padded, reversed, added nor removed. */
static bool allows_slice(const struct spread *s, const struct ifd_node *node)
{
    const int64_t size = first_of(node, "size", -1);
    const bool begins_at_0 =
        first_of(node, "begin", 0) == 0 || (mask_of(node, "begin_mask") & 1) != 0;
    const int32_t special = mask_of(node, "ellipsis_mask") | mask_of(node, "new_axis_mask") |
                            mask_of(node, "shrink_axis_mask");
    return allows_sample(s, node) && leads_with_batch(s, node->output[0]) && begins_at_0 &&
           ends_with_batch(s, node) && (size == -1 || size == s->batch) &&
           first_of(node, "strides", 1) == 1 && first_of(node, "before", 0) == 0 &&
           first_of(node, "after", 0) == 0 && (special & 1) == 0;
}

static bool allows_rule(const struct spread *s, const struct ifd_node *node)
{
    switch (ifd_op_def(node->op)->batch) {
    case IFD_BATCH_NEVER:
        return false;
    case IFD_BATCH_SAMPLE:
        return allows_sample(s, node);
    case IFD_BATCH_ELEMENTWISE:
        return allows_elementwise(s, node);
    case IFD_BATCH_AXIS:
        return allows_axis(s, node);
    case IFD_BATCH_RESHAPE:
        return allows_sample(s, node);
    case IFD_BATCH_SLICE:
        return allows_slice(s, node);
    case IFD_BATCH_TRANSPOSE:
        return allows_sample(s, node) && first_of(node, "perm", -1) == 0;
    case IFD_BATCH_SIZED:
        return allows_sized(s, node);
    case IFD_BATCH_SEQUENCE:
        return allows_sequence(s, node);
    }
    return false;
}

/* A node whose shape comes from a constant input has a fixed batch. The parser makes attributes of
 * these inputs where it can. */
static bool shape_is_constant_input(const struct ifd_node *node)
{
    const uint32_t shape_inputs = ifd_op_def(node->op)->shape_inputs;
    for (uint32_t i = 0; i < node->input_count && i < 32; i++) {
        if ((shape_inputs & IFD_BIT(i)) != 0 && node->input[i] != IFD_NONE) {
            return true;
        }
    }
    return false;
}

static bool spread_node(struct spread *s, const struct ifd_node *node)
{
    bool any = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        any |= is_batched(s, node, i);
    }
    if (!any) {
        return true;
    }
    if (shape_is_constant_input(node) || !allows_rule(s, node)) {
        return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!leads_with_batch(s, node->output[i]) || has_scales_of_samples(s, node->output[i])) {
            return false;
        }
        s->batched[node->output[i]] = true;
    }
    return true;
}

bool ifd_batch_spread(const struct ifd_graph *graph, const struct ifd_node *node, int64_t batch,
                      bool *batched)
{
    struct spread s = {.graph = graph, .batch = batch, .batched = batched};
    return spread_node(&s, node);
}

static bool spread_inputs(struct spread *s, struct ifd_err *why_not)
{
    const struct ifd_graph *graph = s->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct ifd_value *value = &graph->value[graph->input[i]];
        if (value->desc.shape.rank == 0 || value->desc.shape.dim[0] != s->batch || s->batch < 1) {
            ifd_fail(why_not, IFD_UNSUPPORTED,
                     "input \"%s\" of shape %s does not begin with the batch", value->name,
                     ifd_shape_text(&value->desc.shape).s);
            return false;
        }
        if (has_scales_of_samples(s, graph->input[i])) {
            ifd_fail(why_not, IFD_UNSUPPORTED, "input \"%s\" has a scale for each sample",
                     value->name);
            return false;
        }
        s->batched[graph->input[i]] = true;
    }
    return graph->input_count > 0;
}

/* Fills s->batched; false at the first node that mixes samples. */
static bool spread(struct spread *s, struct ifd_err *why_not)
{
    if (!spread_inputs(s, why_not)) {
        return false;
    }
    for (uint32_t n = 0; n < s->graph->node_count; n++) {
        const struct ifd_node *node = &s->graph->node[n];
        if (!spread_node(s, node)) {
            ifd_fail(why_not, IFD_UNSUPPORTED,
                     "node %u (%s) \"%s\" does not treat samples one by one", n,
                     ifd_op_def(node->op)->name, s->graph->value[node->output[0]].name);
            return false;
        }
    }
    return true;
}

static int64_t batch_of(const struct ifd_graph *graph)
{
    if (graph->input_count == 0 || graph->value[graph->input[0]].desc.shape.rank == 0) {
        return 0;
    }
    return graph->value[graph->input[0]].desc.shape.dim[0];
}

bool ifd_graph_batch_is_free(const struct ifd_graph *graph, bool *ret_input, bool *ret_output,
                             struct ifd_err *why_not)
{
    struct spread s = {.graph = graph,
                       .batch = batch_of(graph),
                       .batched =
                           ifd_arena_take_array(graph->arena, graph->value_count, sizeof(bool))};
    if (!s.batched) {
        ifd_arena_fail(graph->arena, graph->value_count, why_not);
        return false;
    }
    bool is_free = spread(&s, why_not);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ret_input[i] = s.batched[graph->input[i]];
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ret_output[i] = s.batched[graph->output[i]];
        if (is_free && !ret_output[i]) {
            ifd_fail(why_not, IFD_UNSUPPORTED, "output \"%s\" does not depend on the samples",
                     graph->value[graph->output[i]].name);
            is_free = false;
        }
    }
    return is_free;
}

/* ---- another batch size ---- */

/* Sets the first number of a list in a copy of the attributes. */
static enum ifd_code set_first(struct ifd_node *node, void *attrs, const char *name, int64_t value,
                               struct ifd_err *err)
{
    const struct ifd_ints *ints = field(node, name, IFD_ATTR_INTS);
    if (!ints || ints->count == 0 || ints->value[0] == -1) {
        return IFD_OK;
    }
    struct ifd_ints changed = *ints;
    changed.value[0] = value;
    return ifd_attrs_set_ints(ifd_op_def(node->op), attrs, name, changed.value, changed.count, err);
}

/* A slice that takes dimension 0 whole at any batch: its window begins at 0 and has no end. */
static enum ifd_code open_window(struct ifd_node *node, void *attrs, int64_t batch,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    enum ifd_code code = set_first(node, attrs, "size", batch, err);
    if (code == IFD_OK && field(node, "end_mask", IFD_ATTR_INT)) {
        code = ifd_attrs_set_int(def, attrs, "begin_mask", mask_of(node, "begin_mask") | 1, err);
    }
    if (code == IFD_OK && field(node, "end_mask", IFD_ATTR_INT)) {
        code = ifd_attrs_set_int(def, attrs, "end_mask", mask_of(node, "end_mask") | 1, err);
    }
    return code;
}

static enum ifd_code scale_attrs(struct ifd_graph *graph, struct ifd_node *node, int64_t batch,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    if ((def->batch != IFD_BATCH_RESHAPE && def->batch != IFD_BATCH_SLICE) ||
        def->attrs_bytes == 0) {
        return IFD_OK;
    }
    void *attrs = ifd_arena_take(graph->arena, def->attrs_bytes);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, def->attrs_bytes, err);
    }
    memcpy(attrs, node->attrs, def->attrs_bytes);
    const enum ifd_code code = def->batch == IFD_BATCH_RESHAPE
                                   ? set_first(node, attrs, "shape", batch, err)
                                   : open_window(node, attrs, batch, err);
    node->attrs = attrs;
    return code;
}

/* The constant shape in input 0, with another first number, becomes a value of its own: others may
 * read it, too. */
static enum ifd_code scale_size(struct ifd_graph *graph, struct ifd_node *node, int64_t batch,
                                struct ifd_err *err)
{
    const struct ifd_value old = graph->value[node->input[0]];
    const bool is_narrow = old.desc.dtype == IFD_S32;
    if (is_narrow && batch > INT32_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "batch of %lld", (long long)batch);
    }
    const int32_t narrow = (int32_t)batch;
    uint8_t *data = ifd_arena_take_tensor(graph->arena, old.data.size);
    uint32_t *input = ifd_arena_take_array(graph->arena, node->input_count, sizeof(*input));
    if (!data || !input) {
        return ifd_arena_fail(graph->arena, old.data.size, err);
    }
    memcpy(data, old.data.data, old.data.size);
    memcpy(data, is_narrow ? (const void *)&narrow : &batch,
           is_narrow ? sizeof(narrow) : sizeof(batch));
    memcpy(input, node->input, node->input_count * sizeof(*input));
    node->input = input;
    const enum ifd_code code = ifd_graph_add_value(graph, old.name, &old.desc, &input[0], err);
    return code == IFD_OK
               ? ifd_graph_set_constant(graph, input[0], (struct ifd_bytes){data, old.data.size},
                                        IFD_TENSOR_PAD, err)
               : code;
}

/* Shape rules must agree with batch rules: dimension 0 is the new batch, and nothing else has
 * changed. */
static enum ifd_code check_output(const struct ifd_graph *graph, uint32_t value,
                                  const struct ifd_shape *before, int64_t batch,
                                  struct ifd_err *err)
{
    const struct ifd_shape *after = &graph->value[value].desc.shape;
    if (after->dim[0] != batch || !ifd_shape_equal_except(before, after, 0)) {
        return ifd_fail(err, IFD_INTERNAL, "value \"%s\" of shape %s becomes %s with batch %lld",
                        graph->value[value].name, ifd_shape_text(before).s, ifd_shape_text(after).s,
                        (long long)batch);
    }
    return IFD_OK;
}

static enum ifd_code scale_node(struct ifd_graph *graph, uint32_t n, const bool *batched,
                                int64_t batch, struct ifd_err *err)
{
    struct ifd_node *node = &graph->node[n];
    if (!batched[node->output[0]]) {
        return IFD_OK;
    }
    struct ifd_shape *before =
        ifd_arena_take_array(graph->arena, node->output_count, sizeof(*before));
    if (!before) {
        return ifd_arena_fail(graph->arena, node->output_count * sizeof(*before), err);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        before[i] = graph->value[node->output[i]].desc.shape;
    }
    enum ifd_code code = ifd_op_def(node->op)->batch == IFD_BATCH_SIZED
                             ? scale_size(graph, node, batch, err)
                             : scale_attrs(graph, node, batch, err);
    if (code == IFD_OK) {
        code = ifd_graph_infer_node(graph, n, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < node->output_count; i++) {
        code = check_output(graph, node->output[i], &before[i], batch, err);
    }
    return code;
}

enum ifd_code ifd_graph_set_batch(struct ifd_graph *graph, int64_t batch, struct ifd_err *err)
{
    struct spread s = {.graph = graph,
                       .batch = batch_of(graph),
                       .batched =
                           ifd_arena_take_array(graph->arena, graph->value_count, sizeof(bool))};
    if (!s.batched) {
        return ifd_arena_fail(graph->arena, graph->value_count, err);
    }
    if (batch < 1) {
        return ifd_fail(err, IFD_INVALID, "batch of %lld, expected 1 or more", (long long)batch);
    }
    struct ifd_err why_not = {0};
    if (!spread(&s, &why_not)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "the batch is not free: %s", why_not.text);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        graph->value[graph->input[i]].desc.shape.dim[0] = batch;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const enum ifd_code code = scale_node(graph, n, s.batched, batch, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}
