/* Lifetimes of values, and which of them need room in the arena. */
#include "engine/ir/shape.h"
#include "engine/plan/plan_impl.h"

enum ifd_code ifd_plan_lifetimes(const struct ifd_graph *graph, const uint32_t *partition_of,
                                 uint32_t partition_count, struct ifd_arena *arena,
                                 struct ifd_value_life **ret_life, struct ifd_err *err)
{
    struct ifd_value_life *life = ifd_arena_take_array(arena, graph->value_count, sizeof(*life));
    if (!life) {
        return ifd_arena_fail(arena, graph->value_count * sizeof(*life), err);
    }
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const uint32_t producer = graph->value[v].producer;
        life[v].first = producer == IFD_NONE ? 0 : partition_of[producer];
        life[v].last = life[v].first;
        life[v].plan_value = IFD_NONE;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            const uint32_t v = graph->node[n].input[i];
            if (v == IFD_NONE) {
                continue;
            }
            life[v].used = true;
            life[v].used_outside |=
                partition_of[n] != life[v].first || graph->value[v].producer == IFD_NONE;
            life[v].last = partition_of[n] > life[v].last ? partition_of[n] : life[v].last;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        life[graph->output[i]].is_output = true;
        life[graph->output[i]].last = partition_count;
    }
    *ret_life = life;
    return IFD_OK;
}

/* A result without readers needs memory, too: a backend writes it. */
static bool needs_room(const struct ifd_value *value, const struct ifd_value_life *life)
{
    return value->producer != IFD_NONE && (life->used_outside || life->is_output || !life->used);
}

static enum ifd_code add_value(struct ifd_plan *plan, const struct ifd_value *value, uint32_t first,
                               uint32_t last, bool pinned, uint32_t *ret_index, struct ifd_err *err)
{
    size_t bytes = 0;
    if (!ifd_desc_bytes(&value->desc, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "tensor \"%s\" of shape %s has more bytes than fit memory", value->name,
                        ifd_shape_text(&value->desc.shape).s);
    }
    *ret_index = plan->value_count;
    plan->value[plan->value_count++] = (struct ifd_plan_value){
        .name = value->name, .bytes = bytes, .first = first, .last = last, .pinned = pinned};
    return IFD_OK;
}

static enum ifd_code add_inputs(const struct ifd_graph *graph, struct ifd_value_life *life,
                                struct ifd_plan *plan, struct ifd_err *err)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const uint32_t v = graph->input[i];
        const enum ifd_code code =
            add_value(plan, &graph->value[v], 0, life[v].last, true, &life[v].plan_value, err);
        if (code != IFD_OK) {
            return code;
        }
        plan->input[i] = life[v].plan_value;
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
static enum ifd_code add_output(const struct ifd_graph *graph, const struct ifd_value_life *life,
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
        *output = (struct ifd_plan_output){.kind = IFD_PLAN_MADE, .value = life[v].plan_value};
        return IFD_OK;
    }
    return add_value(plan, value, 0, plan->partition_count, true, &output->value, err);
}

enum ifd_code ifd_plan_values(const struct ifd_graph *graph, struct ifd_value_life *life,
                              struct ifd_arena *keep, struct ifd_plan *plan, struct ifd_err *err)
{
    uint32_t count = graph->input_count + graph->output_count;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        count += needs_room(&graph->value[v], &life[v]) ? 1 : 0;
    }
    plan->value = ifd_arena_take_array(keep, count, sizeof(*plan->value));
    plan->input = ifd_arena_take_array(keep, graph->input_count, sizeof(*plan->input));
    plan->output = ifd_arena_take_array(keep, graph->output_count, sizeof(*plan->output));
    if (!plan->value || !plan->input || !plan->output) {
        return ifd_arena_fail(keep, count * sizeof(*plan->value), err);
    }
    plan->input_count = graph->input_count;
    plan->output_count = graph->output_count;
    enum ifd_code code = add_inputs(graph, life, plan, err);
    for (uint32_t v = 0; code == IFD_OK && v < graph->value_count; v++) {
        if (needs_room(&graph->value[v], &life[v])) {
            code = add_value(plan, &graph->value[v], life[v].first, life[v].last, life[v].is_output,
                             &life[v].plan_value, err);
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < graph->output_count; i++) {
        code = add_output(graph, life, i, plan, err);
    }
    return code;
}
