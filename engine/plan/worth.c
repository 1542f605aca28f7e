/* Compares what a device saves with what copies cost. */
#include "engine/plan/worth.h"

#include "engine/ir/shape.h"

/* A value that more nodes read is taken to cross in any case: the time to weigh stays linear. */
#define READERS_MOST 256

/* No partition: every node stays where it is. */
#define NOBODY UINT32_MAX

/* ---- lists ---- */

/* Counting sort of the readers by value. */
static void list_readers(struct ifd_worth *w)
{
    const struct ifd_graph *graph = w->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            const uint32_t v = graph->node[n].input[i];
            if (v != IFD_NONE) {
                w->reader_first[v + 2]++;
            }
        }
    }
    for (uint32_t v = 0; v < graph->value_count; v++) {
        w->reader_first[v + 2] += w->reader_first[v + 1];
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            const uint32_t v = graph->node[n].input[i];
            if (v != IFD_NONE) {
                w->reader[w->reader_first[v + 1]++] = n;
            }
        }
    }
}

static size_t count_reads(const struct ifd_graph *graph)
{
    size_t count = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        count += graph->node[n].input_count;
    }
    return count;
}

enum ifd_code ifd_worth_init(struct ifd_worth *worth, const struct ifd_graph *graph,
                             struct ifd_registry *registry, struct ifd_choice *choice,
                             struct ifd_arena *arena, struct ifd_err *err)
{
    const size_t values = graph->value_count, reads = count_reads(graph);
    struct ifd_worth w = {.graph = graph, .registry = registry, .choice = choice};
    w.reader = ifd_arena_take_array(arena, reads, sizeof(*w.reader));
    w.reader_first = ifd_arena_take_array(arena, values + 2, sizeof(*w.reader_first));
    w.is_output = ifd_arena_take_array(arena, values, sizeof(*w.is_output));
    w.group_of = ifd_arena_take_array(arena, graph->node_count, sizeof(*w.group_of));
    w.seen_value = ifd_arena_take_array(arena, values, sizeof(*w.seen_value));
    w.seen_memory = ifd_arena_take_array(arena, registry->count, sizeof(*w.seen_memory));
    if (!w.reader || !w.reader_first || !w.is_output || !w.group_of || !w.seen_value ||
        !w.seen_memory) {
        return ifd_arena_fail(arena, reads * sizeof(*w.reader), err);
    }
    list_readers(&w);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        w.is_output[graph->output[i]] = true;
    }
    *worth = w;
    return IFD_OK;
}

/* ---- copies ---- */

/* Backend of a node if partition `moved` goes to the next backends. */
static uint32_t backend_of(const struct ifd_worth *w, uint32_t node, uint32_t moved)
{
    return w->group_of[node] == moved ? w->choice[node].other : w->choice[node].backend;
}

static uint64_t copy_ns(const struct ifd_worth *w, uint32_t backend, uint32_t v)
{
    size_t bytes = 0;
    return ifd_desc_bytes(&w->graph->value[v].desc, &bytes)
               ? ifd_backend_slot_transfer_ns(&w->registry->slot[backend], bytes)
               : 0;
}

/* Time of the copies of v: off the device that makes it, and once to each device that reads it. */
static uint64_t copies_ns(struct ifd_worth *w, uint32_t v, uint32_t moved)
{
    const struct ifd_value *value = &w->graph->value[v];
    if (value->is_constant) {
        return 0;
    }
    const uint32_t maker =
        value->producer == IFD_NONE ? IFD_NONE : backend_of(w, value->producer, moved);
    const bool is_on_device = maker != IFD_NONE && ifd_plan_memory_of(w->registry, maker);
    bool leaves = w->is_output[v];
    uint64_t ns = 0;
    w->stamp++;
    for (uint32_t r = w->reader_first[v]; r < w->reader_first[v + 1]; r++) {
        const uint32_t reader = backend_of(w, w->reader[r], moved);
        if (is_on_device && reader == maker) {
            continue;
        }
        leaves = true;
        if (ifd_plan_memory_of(w->registry, reader) && w->seen_memory[reader] != w->stamp) {
            w->seen_memory[reader] = w->stamp;
            ns += copy_ns(w, reader, v);
        }
    }
    return ns + (is_on_device && leaves ? copy_ns(w, maker, v) : 0);
}

/* ---- partitions ---- */

/* What moving a partition changes. */
struct change {
    uint64_t device_ns, other_ns; /* of its nodes */
    uint64_t before_ns, after_ns; /* of copies */
    bool has_neighbours;          /* partitions of other backends that it trades with */
};

static void add_value(struct ifd_worth *w, uint32_t v, uint32_t group, struct change *change)
{
    const uint32_t producer = w->graph->value[v].producer;
    const uint32_t readers = w->reader_first[v + 1] - w->reader_first[v];
    if (w->seen_value[v] == group + 1 || readers > READERS_MOST) {
        return;
    }
    w->seen_value[v] = group + 1;
    change->before_ns += copies_ns(w, v, NOBODY);
    change->after_ns += copies_ns(w, v, group);
    change->has_neighbours |= producer != IFD_NONE && w->group_of[producer] != group;
    for (uint32_t r = w->reader_first[v]; r < w->reader_first[v + 1]; r++) {
        change->has_neighbours |= producer != IFD_NONE && w->group_of[producer] == group &&
                                  w->group_of[w->reader[r]] != group;
    }
}

static void add_node(struct ifd_worth *w, uint32_t n, uint32_t group, struct change *change)
{
    const struct ifd_node *node = &w->graph->node[n];
    change->device_ns += w->choice[n].cost_ns;
    change->other_ns += w->choice[n].other_ns;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE && !w->graph->value[node->input[i]].is_constant) {
            add_value(w, node->input[i], group, change);
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        add_value(w, node->output[i], group, change);
    }
}

static bool can_move(const struct ifd_worth *w, const uint32_t *node, uint32_t count)
{
    bool can = ifd_plan_memory_of(w->registry, w->choice[node[0]].backend) != NULL;
    for (uint32_t i = 0; can && i < count; i++) {
        can = w->choice[node[i]].other != IFD_NONE;
    }
    return can;
}

/* The device's time counts up to that of the copies: a partition that takes longer stays by
 * preference, even on a slow device. */
static bool pays(const struct change *change)
{
    if (change->after_ns >= change->before_ns) {
        return false;
    }
    const uint64_t spared = change->before_ns - change->after_ns;
    const uint64_t counted = change->device_ns < spared ? change->device_ns : spared;
    return change->other_ns < spared + counted;
}

static bool move_if_cheaper(struct ifd_worth *w, const uint32_t *node, uint32_t count,
                            uint32_t group)
{
    struct change change = {0};
    if (!can_move(w, node, count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        add_node(w, node[i], group, &change);
    }
    if (!change.has_neighbours || !pays(&change)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct ifd_choice *choice = &w->choice[node[i]];
        *choice = (struct ifd_choice){
            .backend = choice->other, .cost_ns = choice->other_ns, .other = IFD_NONE};
    }
    return true;
}

uint32_t ifd_worth_move(struct ifd_worth *worth, const struct ifd_plan *plan)
{
    const struct ifd_graph *graph = worth->graph;
    uint32_t moved = 0;
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        for (uint32_t n = 0; n < plan->partition[p].node_count; n++) {
            worth->group_of[plan->order[plan->partition[p].first_node + n]] = p;
        }
    }
    for (uint32_t v = 0; v < graph->value_count; v++) {
        worth->seen_value[v] = 0;
    }
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        const uint32_t count = plan->partition[p].node_count;
        moved += move_if_cheaper(worth, &plan->order[plan->partition[p].first_node], count, p)
                     ? count
                     : 0;
    }
    return moved;
}
