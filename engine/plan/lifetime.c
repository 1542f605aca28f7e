/* Lifetimes of values in each memory, and which of them need room in an arena. */
#include "engine/ir/shape.h"
#include "engine/plan/plan_impl.h"

static enum ifd_code take_lives(uint32_t memory_count, uint32_t value_count,
                                struct ifd_arena *arena, struct ifd_lives *ret, struct ifd_err *err)
{
    const size_t count = (size_t)memory_count * value_count;
    *ret = (struct ifd_lives){.value_count = value_count};
    ret->life = ifd_arena_take_array(arena, count, sizeof(*ret->life));
    ret->home = ifd_arena_take_array(arena, value_count, sizeof(*ret->home));
    ret->is_used = ifd_arena_take_array(arena, value_count, sizeof(*ret->is_used));
    ret->is_used_outside = ifd_arena_take_array(arena, value_count, sizeof(*ret->is_used_outside));
    ret->is_output = ifd_arena_take_array(arena, value_count, sizeof(*ret->is_output));
    if (!ret->life || !ret->home || !ret->is_used || !ret->is_used_outside || !ret->is_output) {
        return ifd_arena_fail(arena, count * sizeof(*ret->life), err);
    }
    for (size_t i = 0; i < count; i++) {
        ret->life[i] = (struct ifd_value_life){.first = IFD_NONE, .plan_value = IFD_NONE};
    }
    return IFD_OK;
}

static void begin(struct ifd_value_life *life, uint32_t partition)
{
    life->first = life->last = partition;
}

static void extend(struct ifd_value_life *life, uint32_t partition)
{
    life->last = partition > life->last ? partition : life->last;
}

static void begin_values(const struct ifd_graph *graph, const struct ifd_plan *plan,
                         const uint32_t *partition_of, struct ifd_lives *lives)
{
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const uint32_t producer = graph->value[v].producer;
        const uint32_t first = producer == IFD_NONE ? 0 : partition_of[producer];
        lives->home[v] = producer == IFD_NONE ? 0 : plan->partition[first].memory;
        begin(ifd_life_in(lives, lives->home[v], v), first);
    }
}

static void begin_copies(const struct ifd_plan *plan, const struct ifd_transfer *transfer,
                         uint32_t count, struct ifd_lives *lives)
{
    for (uint32_t t = 0; t < count; t++) {
        const struct ifd_plan_partition *partition = &plan->partition[transfer[t].partition];
        const bool is_read = partition->task == IFD_PLAN_READ;
        const uint32_t from = is_read ? partition->memory : 0;
        const uint32_t to = is_read ? 0 : partition->memory;
        extend(ifd_life_in(lives, from, transfer[t].value), transfer[t].partition);
        begin(ifd_life_in(lives, to, transfer[t].value), transfer[t].partition);
        lives->is_used_outside[transfer[t].value] = true;
    }
}

enum ifd_code ifd_plan_lifetimes(const struct ifd_graph *graph, const struct ifd_plan *plan,
                                 const uint32_t *partition_of, const struct ifd_transfer *transfer,
                                 uint32_t transfer_count, struct ifd_arena *arena,
                                 struct ifd_lives *ret, struct ifd_err *err)
{
    const enum ifd_code code =
        take_lives(plan->device_count + 1, graph->value_count, arena, ret, err);
    if (code != IFD_OK) {
        return code;
    }
    begin_values(graph, plan, partition_of, ret);
    begin_copies(plan, transfer, transfer_count, ret);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const uint32_t p = partition_of[n];
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            const uint32_t v = graph->node[n].input[i];
            if (v == IFD_NONE) {
                continue;
            }
            const uint32_t producer = graph->value[v].producer;
            ret->is_used[v] = true;
            ret->is_used_outside[v] |= producer == IFD_NONE || partition_of[producer] != p;
            extend(ifd_life_in(ret, plan->partition[p].memory, v), p);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ret->is_output[graph->output[i]] = true;
        ifd_life_in(ret, 0, graph->output[i])->last = plan->partition_count;
    }
    return IFD_OK;
}

/* Where a partition makes it, and wherever it is copied to. A result without readers needs memory,
 * too: a backend writes it. */
static bool needs_room(const struct ifd_graph *graph, const struct ifd_lives *lives,
                       uint32_t memory, uint32_t v)
{
    if (ifd_life_in(lives, memory, v)->first == IFD_NONE || graph->value[v].is_constant) {
        return false;
    }
    if (graph->value[v].producer == IFD_NONE) {
        return memory != 0; /* an input: in host memory it has room already */
    }
    return lives->is_used_outside[v] || lives->is_output[v] || !lives->is_used[v];
}

static enum ifd_code add_value(struct ifd_plan *plan, const struct ifd_value *value,
                               struct ifd_plan_value place, uint32_t *ret_index,
                               struct ifd_err *err)
{
    size_t bytes = 0;
    if (!ifd_desc_bytes(&value->desc, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "tensor \"%s\" of shape %s has more bytes than fit memory", value->name,
                        ifd_shape_text(&value->desc.shape).s);
    }
    place.name = value->name;
    place.bytes = bytes;
    *ret_index = plan->value_count;
    plan->value[plan->value_count++] = place;
    return IFD_OK;
}

/* One that nobody reads has no room: a part of a model that data divides hands such inputs on. */
static enum ifd_code add_inputs(const struct ifd_graph *graph, struct ifd_lives *lives,
                                struct ifd_plan *plan, struct ifd_err *err)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const uint32_t v = graph->input[i];
        struct ifd_value_life *life = ifd_life_in(lives, 0, v);
        const struct ifd_plan_value place = {.last = life->last, .pinned = true};
        const enum ifd_code code = add_value(plan, &graph->value[v], place, &life->plan_value, err);
        if (code != IFD_OK) {
            return code;
        }
        plan->input[i] = life->plan_value;
        if (!lives->is_used[v] && !lives->is_output[v]) {
            plan->value[life->plan_value].bytes = 0;
        }
    }
    return IFD_OK;
}

static uint32_t index_of(const uint32_t *list, uint32_t count, uint32_t wanted)
{
    uint32_t i = 0;
    while (i < count && list[i] != wanted) {
        i++;
    }
    return i;
}

/* An output that is a constant, an input or another output is copied after the last partition, into
 * room of its own. */
static enum ifd_code add_output(const struct ifd_graph *graph, const struct ifd_lives *lives,
                                uint32_t i, struct ifd_plan *plan, struct ifd_err *err)
{
    const uint32_t v = graph->output[i];
    const struct ifd_value *value = &graph->value[v];
    struct ifd_plan_output *output = &plan->output[i];
    const uint32_t twin = index_of(graph->output, i, v);
    if (value->is_constant) {
        *output = (struct ifd_plan_output){.kind = IFD_PLAN_CONSTANT, .constant = value->data.data};
    } else if (twin < i) {
        *output = (struct ifd_plan_output){.kind = IFD_PLAN_OUTPUT, .source = twin};
    } else if (value->producer == IFD_NONE) {
        *output = (struct ifd_plan_output){.kind = IFD_PLAN_INPUT,
                                           .source = index_of(graph->input, graph->input_count, v)};
    } else {
        *output = (struct ifd_plan_output){.kind = IFD_PLAN_MADE,
                                           .value = ifd_life_in(lives, 0, v)->plan_value};
        return IFD_OK;
    }
    const struct ifd_plan_value place = {.last = plan->partition_count, .pinned = true};
    return add_value(plan, value, place, &output->value, err);
}

static enum ifd_code add_made(const struct ifd_graph *graph, struct ifd_lives *lives,
                              uint32_t memory, uint32_t v, struct ifd_plan *plan,
                              struct ifd_err *err)
{
    struct ifd_value_life *life = ifd_life_in(lives, memory, v);
    const struct ifd_plan_value place = {.first = life->first,
                                         .last = life->last,
                                         .pinned = memory == 0 && lives->is_output[v],
                                         .memory = memory};
    return add_value(plan, &graph->value[v], place, &life->plan_value, err);
}

static uint32_t count_values(const struct ifd_graph *graph, const struct ifd_lives *lives,
                             uint32_t memories)
{
    uint32_t count = graph->input_count + graph->output_count;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        for (uint32_t m = 0; m < memories; m++) {
            count += needs_room(graph, lives, m, v) ? 1 : 0;
        }
    }
    return count;
}

enum ifd_code ifd_plan_values(const struct ifd_graph *graph, struct ifd_lives *lives,
                              struct ifd_arena *keep, struct ifd_plan *plan, struct ifd_err *err)
{
    const uint32_t memories = plan->device_count + 1, count = count_values(graph, lives, memories);
    plan->value = ifd_arena_take_array(keep, count, sizeof(*plan->value));
    plan->input = ifd_arena_take_array(keep, graph->input_count, sizeof(*plan->input));
    plan->output = ifd_arena_take_array(keep, graph->output_count, sizeof(*plan->output));
    if (!plan->value || !plan->input || !plan->output) {
        return ifd_arena_fail(keep, count * sizeof(*plan->value), err);
    }
    plan->input_count = graph->input_count;
    plan->output_count = graph->output_count;
    enum ifd_code code = add_inputs(graph, lives, plan, err);
    for (uint32_t v = 0; code == IFD_OK && v < graph->value_count; v++) {
        for (uint32_t m = 0; code == IFD_OK && m < memories; m++) {
            if (needs_room(graph, lives, m, v)) {
                code = add_made(graph, lives, m, v, plan, err);
            }
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < graph->output_count; i++) {
        code = add_output(graph, lives, i, plan, err);
    }
    return code;
}
