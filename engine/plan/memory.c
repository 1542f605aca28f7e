/* Offsets in the arenas: decides which values are computed in place, then lays out the buffers. */
#include "engine/base/layout.h"
#include "engine/plan/plan_impl.h"

/* A partition that can alias takes over the buffer of its first input if this is the input's last
 * use, and the input is no port or constant. */
static bool in_place(const struct ifd_plan *plan, uint32_t p, const struct ifd_partition_info *info)
{
    const struct ifd_plan_partition *partition = &plan->partition[p];
    if (partition->task != IFD_PLAN_RUN || !info->can_alias || partition->input_count == 0 ||
        partition->output_count == 0) {
        return false;
    }
    const struct ifd_plan_value *input = &plan->value[partition->input[0]];
    const struct ifd_plan_value *output = &plan->value[partition->output[0]];
    return input->last == p && !input->pinned && input->bytes == output->bytes;
}

/* In the order of the run: a value whose buffer is taken over has one by then. Values that no
 * partition makes (inputs, copied outputs) come last. */
static void choose_buffers(struct ifd_plan *plan, const struct ifd_partition_info *info)
{
    for (uint32_t v = 0; v < plan->value_count; v++) {
        plan->value[v].buffer = IFD_NONE;
    }
    plan->buffer_count = 0;
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        const struct ifd_plan_partition *partition = &plan->partition[p];
        for (uint32_t i = 0; i < partition->output_count; i++) {
            struct ifd_plan_value *output = &plan->value[partition->output[i]];
            output->buffer = i == 0 && in_place(plan, p, &info[p])
                                 ? plan->value[partition->input[0]].buffer
                                 : plan->buffer_count++;
        }
    }
    for (uint32_t v = 0; v < plan->value_count; v++) {
        if (plan->value[v].buffer == IFD_NONE) {
            plan->value[v].buffer = plan->buffer_count++;
        }
    }
}

/* Items 0 … buffer_count-1 are the buffers, the rest is each partition's scratch; those of other
 * memories have no bytes. */
static void fill_items(const struct ifd_plan *plan, uint32_t memory, struct ifd_layout_item *items)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        items[b] = (struct ifd_layout_item){.first = UINT32_MAX};
    }
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const struct ifd_plan_value *value = &plan->value[v];
        struct ifd_layout_item *item = &items[value->buffer];
        item->first = value->first < item->first ? value->first : item->first;
        item->last = value->last > item->last ? value->last : item->last;
        item->bytes = value->memory == memory ? value->bytes : 0;
    }
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        const struct ifd_plan_partition *partition = &plan->partition[p];
        items[plan->buffer_count + p] = (struct ifd_layout_item){
            .first = p,
            .last = p,
            .bytes = partition->memory == memory ? partition->scratch_bytes : 0};
    }
}

static void take_offsets(struct ifd_plan *plan, uint32_t memory,
                         const struct ifd_layout_item *items)
{
    for (uint32_t v = 0; v < plan->value_count; v++) {
        if (plan->value[v].memory == memory) {
            plan->value[v].offset = items[plan->value[v].buffer].offset;
        }
    }
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        if (plan->partition[p].memory == memory) {
            plan->partition[p].scratch_offset = items[plan->buffer_count + p].offset;
        }
    }
}

enum ifd_code ifd_plan_memory(struct ifd_plan *plan, const struct ifd_partition_info *info,
                              size_t limit_bytes, const struct ifd_alloc *alloc,
                              struct ifd_err *err)
{
    choose_buffers(plan, info);
    for (uint32_t p = 0; p < plan->partition_count; p++) {
        plan->partition[p].scratch_bytes = info[p].scratch_bytes;
    }
    const uint32_t count = plan->buffer_count + plan->partition_count;
    if (count == 0) {
        plan->arena_bytes = 0;
        return IFD_OK;
    }
    const size_t items_bytes = (size_t)count * sizeof(struct ifd_layout_item);
    struct ifd_layout_item *items = ifd_acquire(alloc, items_bytes);
    if (!items) {
        return ifd_fail(err, IFD_NOMEM, "no memory to plan %u buffers", count);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t m = 0; code == IFD_OK && m <= plan->device_count; m++) {
        size_t *arena_bytes = m == 0 ? &plan->arena_bytes : &plan->device[m - 1].arena_bytes;
        fill_items(plan, m, items);
        code = ifd_lay_out(items, count, limit_bytes, alloc, arena_bytes, err);
        if (code == IFD_OK) {
            take_offsets(plan, m, items);
        }
    }
    ifd_release(alloc, items, items_bytes);
    return code;
}
