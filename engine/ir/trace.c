/* Notes of what happened while a graph was built. */
#include "engine/ir/trace.h"

#include <string.h>

void ifd_trace_begin(struct ifd_trace *trace, struct ifd_graph *graph)
{
    *trace = (struct ifd_trace){0};
    ifd_arena_init(&trace->arena, graph->arena->alloc, 0);
    graph->trace = trace;
}

void ifd_trace_end(struct ifd_trace *trace, struct ifd_graph *graph)
{
    graph->trace = NULL;
    ifd_arena_finish(&trace->arena);
    *trace = (struct ifd_trace){0};
}

static void add(struct ifd_trace *trace, const struct ifd_step *step)
{
    if (trace->count == trace->capacity) {
        const uint32_t wanted = trace->capacity < UINT32_MAX / 4 ? trace->capacity * 2 + 64 : 0;
        struct ifd_step *grown =
            wanted > 0 ? ifd_arena_take_array(&trace->arena, wanted, sizeof(*grown)) : NULL;
        if (!grown) {
            trace->is_lost = true;
            return;
        }
        if (trace->count > 0) {
            memcpy(grown, trace->step, trace->count * sizeof(*grown));
        }
        trace->step = grown;
        trace->capacity = wanted;
    }
    trace->step[trace->count++] = *step;
}

void ifd_trace_computed(const struct ifd_graph *graph, const struct ifd_node *node)
{
    if (graph->trace) {
        add(graph->trace, &(const struct ifd_step){.node = *node,
                                                   .read = IFD_NONE,
                                                   .source_index = node->source_index,
                                                   .node_count = graph->node_count - 1,
                                                   .value_count = graph->value_count});
    }
}

static void note_read(const struct ifd_graph *graph, uint32_t value, bool as_sizes,
                      uint32_t source_index, uint32_t node_count)
{
    if (graph->trace && value < graph->value_count &&
        (as_sizes || graph->value[value].is_constant)) {
        add(graph->trace, &(const struct ifd_step){.read = value,
                                                   .as_sizes = as_sizes,
                                                   .source_index = source_index,
                                                   .node_count = node_count,
                                                   .value_count = graph->value_count});
    }
}

void ifd_trace_read(const struct ifd_graph *graph, uint32_t value, bool as_sizes,
                    uint32_t source_index)
{
    note_read(graph, value, as_sizes, source_index, graph->node_count);
}

void ifd_trace_read_attribute(const struct ifd_graph *graph, uint32_t value, bool as_sizes)
{
    const uint32_t last = graph->node_count - 1;
    note_read(graph, value, as_sizes, graph->node[last].source_index, last);
}

enum ifd_code ifd_trace_check(const struct ifd_trace *trace, enum ifd_code code,
                              struct ifd_err *err)
{
    return trace->is_lost ? ifd_fail(err, IFD_NOMEM, "no memory for %u steps", trace->count) : code;
}

void ifd_graph_go_back(struct ifd_graph *graph, uint32_t node_count, uint32_t value_count)
{
    struct ifd_trace *trace = graph->trace;
    while (trace && trace->count > 0 && trace->step[trace->count - 1].value_count > value_count) {
        trace->count--;
    }
    graph->node_count = node_count;
    graph->value_count = value_count;
}
