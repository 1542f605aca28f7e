/* What a backend sees of its partition: nodes, values by role, slots. */
#include "engine/plan/plan_impl.h"

/* Work on one partition. local: per value of the graph, its index in the view plus 1; all 0 between
 * partitions. */
struct builder {
    const struct ifd_graph *graph;
    const struct ifd_lives *lives;
    uint32_t *local;
    struct ifd_plan_partition *partition;
    struct ifd_partition_value *value;
    uint32_t *graph_value; /* per value of the view */
    uint32_t *input, *output;
    struct ifd_partition_view view;
};

static uint32_t plan_value(const struct builder *b, uint32_t v)
{
    return ifd_life_in(b->lives, b->partition->memory, v)->plan_value;
}

static enum ifd_value_role role_of(const struct builder *b, uint32_t v, bool is_made_here)
{
    if (b->graph->value[v].is_constant) {
        return IFD_VALUE_CONSTANT;
    }
    if (!is_made_here) {
        return IFD_VALUE_INPUT;
    }
    return plan_value(b, v) == IFD_NONE ? IFD_VALUE_INTERNAL : IFD_VALUE_OUTPUT;
}

/* Index of a value of the graph in the view; appends it at its first appearance. Nodes are in a
 * runnable order, so the first appearance of a value that is made here is as an output. */
static uint32_t local_index(struct builder *b, uint32_t v, bool is_output)
{
    if (v == IFD_NONE) {
        return IFD_NO_VALUE;
    }
    if (b->local[v] != 0) {
        return b->local[v] - 1;
    }
    struct ifd_partition_value *value = &b->value[b->view.value_count];
    *value = (struct ifd_partition_value){.desc = b->graph->value[v].desc,
                                          .data = b->graph->value[v].data,
                                          .role = role_of(b, v, is_output)};
    if (value->role == IFD_VALUE_INPUT) {
        value->slot = b->view.input_count;
        b->input[b->view.input_count++] = plan_value(b, v);
    } else if (value->role == IFD_VALUE_OUTPUT) {
        value->slot = b->view.output_count;
        b->output[b->view.output_count++] = plan_value(b, v);
    }
    b->graph_value[b->view.value_count] = v;
    b->local[v] = ++b->view.value_count;
    return b->local[v] - 1;
}

static enum ifd_code build_node(struct builder *b, const struct ifd_node *node,
                                struct ifd_arena *scratch, struct ifd_partition_node *ret,
                                struct ifd_err *err)
{
    uint32_t *input = ifd_arena_take_array(scratch, node->input_count, sizeof(*input));
    uint32_t *output = ifd_arena_take_array(scratch, node->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(scratch, node->input_count * sizeof(*input), err);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        input[i] = local_index(b, node->input[i], false);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        output[i] = local_index(b, node->output[i], true);
    }
    ret->input_value = input;
    ret->output_value = output;
    return ifd_plan_node_view(b->graph, node, scratch, &ret->view, err);
}

static size_t operand_count(const struct ifd_graph *graph, const uint32_t *order, uint32_t count)
{
    size_t operands = 0;
    for (uint32_t n = 0; n < count; n++) {
        operands += graph->node[order[n]].input_count;
        operands += graph->node[order[n]].output_count;
    }
    return operands;
}

static enum ifd_code build(struct builder *b, const uint32_t *order, struct ifd_arena *keep,
                           struct ifd_arena *scratch, struct ifd_err *err)
{
    const size_t operands = operand_count(b->graph, order, b->partition->node_count);
    struct ifd_partition_node *node =
        ifd_arena_take_array(scratch, b->partition->node_count, sizeof(*node));
    b->value = ifd_arena_take_array(scratch, operands, sizeof(*b->value));
    b->graph_value = ifd_arena_take_array(scratch, operands, sizeof(*b->graph_value));
    b->input = ifd_arena_take_array(keep, operands, sizeof(*b->input));
    b->output = ifd_arena_take_array(keep, operands, sizeof(*b->output));
    if (!node || !b->value || !b->graph_value || !b->input || !b->output) {
        return ifd_arena_fail(scratch, operands * sizeof(*b->value), err);
    }
    b->view.node = node;
    b->view.node_count = b->partition->node_count;
    b->view.value = b->value;
    for (uint32_t n = 0; n < b->partition->node_count; n++) {
        const enum ifd_code code = build_node(b, &b->graph->node[order[n]], scratch, &node[n], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    for (uint32_t v = 0; v < b->view.value_count; v++) {
        b->local[b->graph_value[v]] = 0;
    }
    return IFD_OK;
}

enum ifd_code ifd_plan_views(const struct ifd_graph *graph, const struct ifd_plan_options *options,
                             const struct ifd_lives *lives, struct ifd_arena *keep,
                             struct ifd_arena *scratch, struct ifd_plan *plan, struct ifd_err *err)
{
    uint32_t *local = ifd_arena_take_array(scratch, graph->value_count, sizeof(*local));
    plan->view = ifd_arena_take_array(scratch, plan->partition_count, sizeof(*plan->view));
    if (!local || !plan->view) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*local), err);
    }
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        if (plan->partition[p].task != IFD_PLAN_RUN) {
            continue;
        }
        struct builder b = {.graph = graph,
                            .lives = lives,
                            .local = local,
                            .partition = &plan->partition[p],
                            .view = {.max_threads = options->max_threads,
                                     .exact = options->exact,
                                     .precision = options->precision,
                                     .release_constant = options->release_constant,
                                     .release_context = options->release_context}};
        const enum ifd_code code =
            build(&b, &plan->order[b.partition->first_node], keep, scratch, err);
        if (code != IFD_OK) {
            return code;
        }
        plan->view[p] = b.view;
        b.partition->op_name = ifd_op_def(b.view.node[0].view.op)->name;
        b.partition->input = b.input;
        b.partition->output = b.output;
        b.partition->input_count = b.view.input_count;
        b.partition->output_count = b.view.output_count;
    }
    return IFD_OK;
}
