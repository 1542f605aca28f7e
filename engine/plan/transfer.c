/* Copies between the host's memory and devices', as entries of the list of partitions. Two devices
 * exchange values through the host. */
#include "engine/plan/plan_impl.h"

struct router {
    const struct ifd_graph *graph;
    const struct ifd_registry *registry;
    struct ifd_plan *plan;
    uint32_t *partition_of;    /* per node */
    uint32_t *home;            /* per value: memory in which it is made */
    bool *is_needed_elsewhere; /* per value: in another memory than home */
    bool *is_there;            /* [device][value]: was written */
    uint32_t *read;            /* per value: the READ that brings it to the host */
    struct ifd_plan_partition *out;
    uint32_t count;
    struct ifd_transfer *transfer;
    uint32_t transfer_count;
};

/* ---- devices ---- */

static uint32_t memory_of(const struct ifd_plan *plan, uint32_t backend)
{
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (plan->device[d].backend == backend) {
            return d + 1;
        }
    }
    return 0;
}

static enum ifd_code list_devices(const struct ifd_registry *registry, struct ifd_arena *keep,
                                  struct ifd_plan *plan, struct ifd_err *err)
{
    plan->device = ifd_arena_take_array(keep, registry->count, sizeof(*plan->device));
    if (!plan->device) {
        return ifd_arena_fail(keep, registry->count * sizeof(*plan->device), err);
    }
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        struct ifd_plan_partition *partition = &plan->partition[p];
        partition->wait = partition->next_wait = IFD_NO_PARTITION;
        const uint32_t backend = partition->backend;
        if (ifd_plan_memory_of(registry, backend) && memory_of(plan, backend) == 0) {
            plan->device[plan->device_count++] = (struct ifd_plan_device){.backend = backend};
        }
        partition->memory = memory_of(plan, backend);
    }
    return IFD_OK;
}

/* ---- copies ---- */

/* Values that cross memories. Constants never do: each backend keeps its own. */
static void find_needs(struct router *r)
{
    const struct ifd_graph *graph = r->graph;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const uint32_t producer = graph->value[v].producer;
        r->read[v] = IFD_NO_PARTITION;
        r->home[v] =
            producer == IFD_NONE ? 0 : r->plan->partition[r->partition_of[producer]].memory;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const uint32_t memory = r->plan->partition[r->partition_of[n]].memory;
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            const uint32_t v = graph->node[n].input[i];
            if (v != IFD_NONE && !graph->value[v].is_constant && r->home[v] != memory) {
                r->is_needed_elsewhere[v] = true;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        r->is_needed_elsewhere[graph->output[i]] |= r->home[graph->output[i]] != 0;
    }
}

/* Entry at reads the host's copy of v. Only the first one that does waits. */
static void wait_for(struct router *r, uint32_t at, uint32_t v)
{
    const uint32_t read = r->read[v];
    if (read != IFD_NO_PARTITION) {
        r->out[read].next_wait = r->out[at].wait;
        r->out[at].wait = read;
        r->read[v] = IFD_NO_PARTITION;
    }
}

static uint32_t add_copy(struct router *r, enum ifd_plan_task task, uint32_t memory, uint32_t v)
{
    r->transfer[r->transfer_count++] = (struct ifd_transfer){.partition = r->count, .value = v};
    r->out[r->count] = (struct ifd_plan_partition){.task = task,
                                                   .memory = memory,
                                                   .wait = IFD_NO_PARTITION,
                                                   .next_wait = IFD_NO_PARTITION,
                                                   .backend = r->plan->device[memory - 1].backend,
                                                   .op_name = "transfer"};
    return r->count++;
}

static void write_inputs(struct router *r, const struct ifd_node *node, uint32_t memory)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t v = node->input[i];
        if (v == IFD_NONE || r->graph->value[v].is_constant || r->home[v] == memory) {
            continue;
        }
        bool *is_there = &r->is_there[(size_t)(memory - 1) * r->graph->value_count + v];
        if (!*is_there) {
            wait_for(r, add_copy(r, IFD_PLAN_WRITE, memory, v), v);
            *is_there = true;
        }
    }
}

static void await_inputs(struct router *r, const struct ifd_node *node, uint32_t at)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE) {
            wait_for(r, at, node->input[i]);
        }
    }
}

static void read_outputs(struct router *r, const struct ifd_node *node, uint32_t memory)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t v = node->output[i];
        if (r->is_needed_elsewhere[v]) {
            r->read[v] = add_copy(r, IFD_PLAN_READ, memory, v);
        }
    }
}

static void route(struct router *r, const struct ifd_plan_partition *partition)
{
    const uint32_t *order = &r->plan->order[partition->first_node];
    const struct ifd_node *node = r->graph->node;
    const uint32_t memory = partition->memory;
    for (uint32_t n = 0; memory > 0 && n < partition->node_count; n++) {
        write_inputs(r, &node[order[n]], memory);
    }
    const uint32_t at = r->count++;
    r->out[at] = *partition;
    for (uint32_t n = 0; n < partition->node_count; n++) {
        r->partition_of[order[n]] = at;
        if (memory == 0) {
            await_inputs(r, &node[order[n]], at);
        }
    }
    for (uint32_t n = 0; memory > 0 && n < partition->node_count; n++) {
        read_outputs(r, &node[order[n]], memory);
    }
}

static enum ifd_code take_lists(struct router *r, struct ifd_arena *scratch, struct ifd_err *err)
{
    const size_t values = r->graph->value_count, devices = r->plan->device_count;
    const size_t copies = values * (devices + 1);
    r->home = ifd_arena_take_array(scratch, values, sizeof(*r->home));
    r->is_needed_elsewhere = ifd_arena_take_array(scratch, values, sizeof(*r->is_needed_elsewhere));
    r->is_there = ifd_arena_take_array(scratch, values * devices, sizeof(*r->is_there));
    r->read = ifd_arena_take_array(scratch, values, sizeof(*r->read));
    r->transfer = ifd_arena_take_array(scratch, copies, sizeof(*r->transfer));
    r->out = ifd_arena_take_array(scratch, copies + r->plan->partition_count, sizeof(*r->out));
    if (!r->home || !r->is_needed_elsewhere || !r->is_there || !r->read || !r->transfer ||
        !r->out) {
        return ifd_arena_fail(scratch, copies * sizeof(*r->out), err);
    }
    return IFD_OK;
}

static enum ifd_code keep_partitions(struct router *r, struct ifd_arena *keep, struct ifd_err *err)
{
    struct ifd_plan_partition *kept = ifd_arena_take_array(keep, r->count, sizeof(*kept));
    if (!kept) {
        return ifd_arena_fail(keep, r->count * sizeof(*kept), err);
    }
    for (uint32_t p = 0; p < r->count; p++) {
        kept[p] = r->out[p];
    }
    r->plan->partition = kept;
    r->plan->partition_count = r->count;
    return IFD_OK;
}

enum ifd_code ifd_plan_transfers(const struct ifd_graph *graph, const struct ifd_registry *registry,
                                 struct ifd_arena *keep, struct ifd_arena *scratch,
                                 struct ifd_plan *plan, uint32_t *partition_of,
                                 struct ifd_transfer **ret_transfer, uint32_t *ret_count,
                                 struct ifd_err *err)
{
    struct router r = {
        .graph = graph, .registry = registry, .plan = plan, .partition_of = partition_of};
    enum ifd_code code = list_devices(registry, keep, plan, err);
    if (code == IFD_OK && plan->device_count > 0) {
        code = take_lists(&r, scratch, err);
        if (code == IFD_OK) {
            find_needs(&r);
            for (uint32_t p = 0; p < plan->partition_count; p++) {
                route(&r, &plan->partition[p]);
            }
            code = keep_partitions(&r, keep, err);
        }
    }
    *ret_transfer = r.transfer;
    *ret_count = r.transfer_count;
    return code;
}

enum ifd_code ifd_plan_name_transfers(const struct ifd_lives *lives,
                                      const struct ifd_transfer *transfer, uint32_t count,
                                      struct ifd_arena *keep, struct ifd_plan *plan,
                                      struct ifd_err *err)
{
    uint32_t *value = ifd_arena_take_array(keep, 2 * (size_t)count, sizeof(*value));
    if (!value) {
        return ifd_arena_fail(keep, 2 * (size_t)count * sizeof(*value), err);
    }
    for (uint32_t t = 0; t < count; t++, value += 2) {
        struct ifd_plan_partition *partition = &plan->partition[transfer[t].partition];
        const bool is_read = partition->task == IFD_PLAN_READ;
        const uint32_t from = is_read ? partition->memory : 0;
        const uint32_t to = is_read ? 0 : partition->memory;
        value[0] = ifd_life_in(lives, from, transfer[t].value)->plan_value;
        value[1] = ifd_life_in(lives, to, transfer[t].value)->plan_value;
        partition->input = &value[0];
        partition->output = &value[1];
        partition->input_count = partition->output_count = 1;
    }
    return IFD_OK;
}
