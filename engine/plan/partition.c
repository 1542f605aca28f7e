/* Groups nodes into partitions and puts them, and copies between memories, into the order in which
 * they run. */
#include "engine/plan/worth.h"

/* A file decides how many partitions there are: the time to weigh them stays linear. */
#define WEIGH_MOST 8

struct sweep {
    const struct ifd_graph *graph;
    const struct ifd_choice *choice; /* per node */
    bool *done;                      /* per node */
    struct ifd_plan *plan;
};

static bool is_ready(const struct sweep *s, const struct ifd_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t producer =
            node->input[i] == IFD_NONE ? IFD_NONE : s->graph->value[node->input[i]].producer;
        if (producer != IFD_NONE && !s->done[producer]) {
            return false;
        }
    }
    return true;
}

/* Takes every node of one backend that need not wait for another backend's nodes. Nodes are stored
 * in a runnable order, so one walk from the first open node finds them all, and groups form no
 * cycle. */
static void take_group(struct sweep *s, uint32_t first)
{
    const uint32_t backend = s->choice[first].backend;
    for (uint32_t n = first; n < s->graph->node_count; n++) {
        if (!s->done[n] && s->choice[n].backend == backend && is_ready(s, &s->graph->node[n])) {
            s->done[n] = true;
            s->plan->order[s->plan->node_count++] = n;
        }
    }
}

static void add_partitions(struct ifd_plan *plan, uint32_t backend, uint32_t first_node,
                           bool per_node)
{
    const uint32_t step = per_node ? 1 : plan->node_count - first_node;
    for (uint32_t n = first_node; n < plan->node_count; n += step) {
        plan->partition[plan->partition_count++] =
            (struct ifd_plan_partition){.backend = backend, .first_node = n, .node_count = step};
    }
}

static void group(struct sweep *s, const struct ifd_registry *registry)
{
    s->plan->node_count = s->plan->partition_count = 0;
    for (uint32_t n = 0; n < s->graph->node_count; n++) {
        s->done[n] = false;
    }
    for (uint32_t n = 0; n < s->graph->node_count; n++) {
        if (s->done[n]) {
            continue;
        }
        const uint32_t first_node = s->plan->node_count;
        take_group(s, n);
        const uint32_t backend = s->choice[n].backend;
        const bool per_node =
            backend == IFD_PLAN_CONTROL || registry->slot[backend].backend->per_node;
        add_partitions(s->plan, backend, first_node, per_node);
    }
}

static enum ifd_code take_lists(const struct ifd_graph *graph, struct ifd_arena *keep,
                                struct ifd_plan *plan, struct ifd_err *err)
{
    plan->order = ifd_arena_take_array(keep, graph->node_count, sizeof(*plan->order));
    plan->partition = ifd_arena_take_array(keep, graph->node_count, sizeof(*plan->partition));
    if (!plan->order || !plan->partition) {
        return ifd_arena_fail(keep, graph->node_count * sizeof(*plan->partition), err);
    }
    return IFD_OK;
}

static bool uses_device(const struct ifd_plan *plan, const struct ifd_registry *registry)
{
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        if (ifd_plan_memory_of(registry, plan->partition[p].backend)) {
            return true;
        }
    }
    return false;
}

/* Groups again until every partition on a device is worth its copies: moving one can make another
 * one unworthy. */
static enum ifd_code weigh(struct sweep *s, struct ifd_choice *choice,
                           struct ifd_registry *registry, struct ifd_arena *scratch,
                           struct ifd_err *err)
{
    struct ifd_worth worth;
    const enum ifd_code code = ifd_worth_init(&worth, s->graph, registry, choice, scratch, err);
    for (uint32_t i = 0, moved = 1; code == IFD_OK && i < WEIGH_MOST && moved > 0; i++) {
        moved = ifd_worth_move(&worth, s->plan);
        s->plan->unworthy_nodes += moved;
        group(s, registry);
    }
    return code;
}

static enum ifd_code group_afresh(const struct ifd_graph *graph,
                                  const struct ifd_plan_options *options, struct ifd_arena *scratch,
                                  struct ifd_plan *plan, struct ifd_err *err)
{
    struct ifd_choice *choice = ifd_arena_take_array(scratch, graph->node_count, sizeof(*choice));
    bool *done = ifd_arena_take_array(scratch, graph->node_count, sizeof(*done));
    if (!choice || !done) {
        return ifd_arena_fail(scratch, graph->node_count * sizeof(*choice), err);
    }
    const enum ifd_code code = ifd_plan_assign(graph, options, scratch, choice, err);
    if (code != IFD_OK) {
        return code;
    }
    struct sweep sweep = {.graph = graph, .choice = choice, .done = done, .plan = plan};
    group(&sweep, options->registry);
    return uses_device(plan, options->registry)
               ? weigh(&sweep, choice, options->registry, scratch, err)
               : IFD_OK;
}

static void share_groups(const struct ifd_plan *share_with, struct ifd_plan *plan)
{
    for (uint32_t n = 0; n < share_with->node_count; n++) {
        plan->order[n] = share_with->order[n];
    }
    plan->node_count = share_with->node_count;
    plan->unworthy_nodes = share_with->unworthy_nodes;
    for (uint32_t p = 0; p < share_with->partition_count; p++) {
        const struct ifd_plan_partition *from = &share_with->partition[p];
        if (from->task == IFD_PLAN_RUN) {
            plan->partition[plan->partition_count++] =
                (struct ifd_plan_partition){.backend = from->backend,
                                            .first_node = from->first_node,
                                            .node_count = from->node_count};
        }
    }
}

enum ifd_code ifd_plan_partition(const struct ifd_graph *graph,
                                 const struct ifd_plan_options *options, struct ifd_arena *keep,
                                 struct ifd_arena *scratch, struct ifd_plan *ret_plan,
                                 struct ifd_err *err)
{
    struct ifd_plan plan = {0};
    enum ifd_code code = take_lists(graph, keep, &plan, err);
    if (code == IFD_OK && options->share_with) {
        share_groups(options->share_with, &plan);
    } else if (code == IFD_OK) {
        code = group_afresh(graph, options, scratch, &plan, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    uint32_t *partition_of =
        ifd_arena_take_array(scratch, graph->node_count, sizeof(*partition_of));
    if (!partition_of) {
        return ifd_arena_fail(scratch, graph->node_count * sizeof(*partition_of), err);
    }
    for (uint32_t p = 0; p < plan.partition_count; p++) {
        for (uint32_t n = 0; n < plan.partition[p].node_count; n++) {
            partition_of[plan.order[plan.partition[p].first_node + n]] = p;
        }
    }
    struct ifd_transfer *transfer = NULL;
    struct ifd_lives lives;
    uint32_t transfers = 0;
    code = ifd_plan_transfers(graph, options->registry, keep, scratch, &plan, partition_of,
                              &transfer, &transfers, err);
    if (code == IFD_OK) {
        code = ifd_plan_lifetimes(graph, &plan, partition_of, transfer, transfers, scratch, &lives,
                                  err);
    }
    if (code == IFD_OK) {
        code = ifd_plan_values(graph, &lives, keep, &plan, err);
    }
    if (code == IFD_OK) {
        code = ifd_plan_name_transfers(&lives, transfer, transfers, keep, &plan, err);
    }
    if (code == IFD_OK) {
        code = ifd_plan_views(graph, options, &lives, keep, scratch, &plan, err);
    }
    if (code == IFD_OK) {
        *ret_plan = plan;
    }
    return code;
}
