/* Follows the number of samples through the constants that a parser made of it. */
#include "engine/ir/batch.h"
#include "engine/ir/count_impl.h"
#include "engine/ir/trace.h"

#define ELEMENTS_MAX 1024     /* of a result that is followed; larger ones are no shapes */
#define WORK_MAX     2097152. /* elements that are computed; then nothing is certain any more */

/* ---- values ---- */

static void set_outputs(struct ifd_count *c, const struct ifd_node *node, enum ifd_count_kind kind)
{
    for (uint32_t o = 0; o < node->output_count; o++) {
        c->form[node->output[o]] = (struct ifd_count_form){.kind = kind};
    }
}

/* The shape of what has samples is [k n, …]. */
static enum ifd_code take_shape(struct ifd_count *c, const struct ifd_node *node,
                                struct ifd_err *err)
{
    const enum ifd_count_kind kind = ifd_count_form_of(c, node->input[0])->kind;
    const size_t rank = ifd_count_elements(c, node->output[0]);
    const bool is_scalar = c->graph->value[node->output[0]].desc.shape.rank == 0;
    const struct ifd_shape *of = &c->graph->value[node->input[0]].desc.shape;
    if (kind == IFD_COUNT_FIXED || kind == IFD_COUNT_NUMBERS ||
        (kind == IFD_COUNT_SAMPLES && is_scalar)) {
        set_outputs(c, node, IFD_COUNT_FIXED);
        return IFD_OK;
    }
    int64_t *slope = ifd_arena_take_array(c->arena, rank, sizeof(*slope));
    if (!slope) {
        return ifd_arena_fail(c->arena, rank * sizeof(*slope), err);
    }
    for (size_t i = 0; i < rank; i++) {
        slope[i] = kind == IFD_COUNT_OTHER ? IFD_COUNT_UNKNOWN : i == 0 ? of->dim[0] / c->batch : 0;
    }
    c->form[node->output[0]] = (struct ifd_count_form){.kind = IFD_COUNT_NUMBERS, .slope = slope};
    return IFD_OK;
}

/* ---- steps ---- */

static bool is_small(const struct ifd_count *c, const struct ifd_node *node)
{
    bool is = true;
    for (uint32_t o = 0; o < node->output_count; o++) {
        is = is && ifd_count_elements(c, node->output[o]) <= ELEMENTS_MAX &&
             c->graph->value[node->output[o]].desc.dtype != IFD_STR;
    }
    return is;
}

static bool has_elements(const struct ifd_count *c, const struct ifd_node *node)
{
    bool has = true;
    for (uint32_t o = 0; o < node->output_count; o++) {
        has = has && ifd_count_elements(c, node->output[o]) > 0;
    }
    return has;
}

static enum ifd_code take_computed(struct ifd_count *c, const struct ifd_node *node,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    bool is_fixed = true, is_other = c->has_read && c->read_source == node->source_index;
    if (def->reads_shape_only && has_elements(c, node)) {
        return take_shape(c, node, err);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const enum ifd_count_kind kind = ifd_count_form_of(c, node->input[i])->kind;
        const bool is_size = i < 32 && (def->shape_inputs & IFD_BIT(i)) != 0;
        is_fixed = is_fixed && kind == IFD_COUNT_FIXED;
        is_other = is_other || kind == IFD_COUNT_SAMPLES || kind == IFD_COUNT_OTHER ||
                   (kind != IFD_COUNT_FIXED && is_size);
    }
    if (is_other || is_fixed || !is_small(c, node)) {
        set_outputs(c, node, is_fixed && !is_other ? IFD_COUNT_FIXED : IFD_COUNT_OTHER);
        return IFD_OK;
    }
    if (!has_elements(c, node)) {
        set_outputs(c, node, IFD_COUNT_FIXED);
        return IFD_OK;
    }
    return ifd_count_compute(c, node, err);
}

static void take_read(struct ifd_count *c, const struct ifd_step *step)
{
    const struct ifd_count_form *form = ifd_count_form_of(c, step->read);
    if (form->kind == IFD_COUNT_OTHER || (form->kind == IFD_COUNT_NUMBERS && !step->as_sizes) ||
        ifd_count_has_unknown(c, step->read)) {
        c->is_found = true;
    }
    if (form->kind != IFD_COUNT_FIXED) {
        c->has_read = true;
        c->read_source = step->source_index;
    }
}

/* Does its dimension 0 grow with the number of samples, in both readings alike? What begins with
 * the batch in one may have as many elements by chance. */
static bool grows(const struct ifd_count *c, uint32_t value)
{
    const struct ifd_shape *a = &c->graph->value[value].desc.shape,
                           *b = &c->other->value[value].desc.shape;
    return a->rank > 0 && b->rank > 0 && a->dim[0] % c->batch == 0 &&
           b->dim[0] % c->other_batch == 0 && a->dim[0] / c->batch == b->dim[0] / c->other_batch;
}

/* Blocks of pictures become samples, or the other way round, before the layer between takes them
 * over: the other dimensions do not follow from dimension 0. */
static bool moves_blocks(const struct ifd_count *c, const struct ifd_node *node)
{
    return (node->op == IFD_OP_SPACE_TO_BATCH || node->op == IFD_OP_BATCH_TO_SPACE) &&
           c->batched[node->input[0]];
}

/* Marks outputs whose dimension 0 alone follows from the number of samples. */
static bool spread(struct ifd_count *c, const struct ifd_node *node)
{
    int64_t rows = c->batch;
    for (uint32_t i = node->input_count; i > 0; i--) {
        const uint32_t value = node->input[i - 1];
        rows = value != IFD_NONE && c->batched[value] ? c->graph->value[value].desc.shape.dim[0]
                                                      : rows;
    }
    if (moves_blocks(c, node)) {
        c->batched[node->output[0]] = true;
        return true;
    }
    return ifd_batch_spread(c->graph, node, rows, c->batched);
}

static void take_node(struct ifd_count *c, const struct ifd_node *node)
{
    bool is_other = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = node->input[i];
        const struct ifd_count_form *form = ifd_count_form_of(c, value);
        is_other = is_other || form->kind == IFD_COUNT_OTHER;
        if (form->kind != IFD_COUNT_FIXED &&
            (c->graph->value[value].is_constant
                 ? form->kind == IFD_COUNT_OTHER || ifd_count_has_unknown(c, value)
                 : ifd_op_def(node->op)->reads_shape_only)) {
            c->is_found = true;
        }
    }
    if (is_other || !spread(c, node)) {
        set_outputs(c, node, IFD_COUNT_OTHER);
        return;
    }
    for (uint32_t o = 0; o < node->output_count; o++) {
        const bool has_samples = c->batched[node->output[o]];
        if (has_samples && !grows(c, node->output[o])) {
            c->batched[node->output[o]] = false;
            c->form[node->output[o]] = (struct ifd_count_form){.kind = IFD_COUNT_OTHER};
            continue;
        }
        c->form[node->output[o]] =
            (struct ifd_count_form){.kind = has_samples ? IFD_COUNT_SAMPLES : IFD_COUNT_FIXED};
    }
}

static enum ifd_code walk(struct ifd_count *c, struct ifd_err *err)
{
    const struct ifd_graph *graph = c->graph;
    const struct ifd_trace *trace = graph->trace;
    enum ifd_code code = IFD_OK;
    uint32_t n = 0;
    for (uint32_t s = 0; code == IFD_OK && !c->is_found && s < trace->count; s++) {
        const struct ifd_step *step = &trace->step[s];
        for (; n < step->node_count && n < graph->node_count; n++) {
            take_node(c, &graph->node[n]);
        }
        if (step->read == IFD_NONE) {
            code = take_computed(c, &step->node, err);
        } else {
            take_read(c, step);
        }
    }
    for (; code == IFD_OK && !c->is_found && n < graph->node_count; n++) {
        take_node(c, &graph->node[n]);
    }
    return code;
}

/* Values that have one index are the same in both readings then. */
static bool are_alike(const struct ifd_graph *a, const struct ifd_graph *b)
{
    bool are = a->value_count == b->value_count && a->trace->count == b->trace->count;
    for (uint32_t s = 0; are && s < a->trace->count; s++) {
        const struct ifd_step *of_a = &a->trace->step[s], *of_b = &b->trace->step[s];
        are = of_a->read == of_b->read && of_a->node_count == of_b->node_count &&
              of_a->value_count == of_b->value_count && of_a->node.op == of_b->node.op;
    }
    return are;
}

static int64_t batch_of(const struct ifd_graph *graph)
{
    const struct ifd_shape *first =
        graph->input_count > 0 ? &graph->value[graph->input[0]].desc.shape : NULL;
    return first && first->rank > 0 ? first->dim[0] : 0;
}

static void begin(struct ifd_count *c)
{
    const struct ifd_graph *graph = c->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const uint32_t value = graph->input[i];
        const struct ifd_shape *shape = &graph->value[value].desc.shape;
        c->batched[value] = shape->rank > 0 && shape->dim[0] == c->batch && grows(c, value);
        c->form[value].kind = c->batched[value] ? IFD_COUNT_SAMPLES : IFD_COUNT_OTHER;
    }
}

enum ifd_code ifd_graph_counts_samples(const struct ifd_graph *graph, const struct ifd_graph *other,
                                       bool *ret, struct ifd_err *err)
{
    struct ifd_arena arena;
    if (batch_of(graph) < 1 || batch_of(other) < 1 || !are_alike(graph, other)) {
        *ret = true;
        return IFD_OK;
    }
    ifd_arena_init(&arena, graph->arena->alloc, 0);
    struct ifd_count c = {
        .graph = graph,
        .other = other,
        .batch = batch_of(graph),
        .other_batch = batch_of(other),
        .arena = &arena,
        .work_left = WORK_MAX,
        .batched = ifd_arena_take_array(&arena, graph->value_count, sizeof(*c.batched)),
        .form = ifd_arena_take_array(&arena, graph->value_count, sizeof(*c.form))};
    enum ifd_code code = c.batched && c.form
                             ? IFD_OK
                             : ifd_arena_fail(&arena, graph->value_count * sizeof(*c.form), err);
    if (code == IFD_OK) {
        begin(&c);
        code = walk(&c, err);
    }
    ifd_arena_finish(&arena);
    if (code == IFD_OK) {
        *ret = c.is_found;
    }
    return code;
}
