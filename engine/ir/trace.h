/** What happened while a graph was built: which nodes were computed and dropped, and which content
 *  a parser read to decide what it builds. ir/count.h asks what of it follows from the number of
 *  samples. Thread: one at a time, as the graph. */
#ifndef INFERD_ENGINE_IR_TRACE_H
#define INFERD_ENGINE_IR_TRACE_H

#include "engine/ir/graph.h"

struct ifd_step {
    struct ifd_node node; /* that was computed; its outputs are constants. Of a read: zeros */
    uint32_t read;        /* the value whose content or shape was read, or IFD_NONE */
    bool as_sizes;        /* its numbers are sizes and ends of what is built next */
    uint32_t source_index;
    uint32_t node_count, value_count; /* of the graph before */
};

struct ifd_trace {
    struct ifd_arena arena;
    struct ifd_step *step;
    uint32_t count, capacity;
    bool is_lost; /* there was no memory for all */
};

/** From now on the graph is traced; trace outlives its building. */
void ifd_trace_begin(struct ifd_trace *trace, struct ifd_graph *graph);
/** Ends it and releases the steps. */
void ifd_trace_end(struct ifd_trace *trace, struct ifd_graph *graph);

/** The last node of the graph was computed. Nothing happens if nobody traces the graph, here and
 *  below. */
void ifd_trace_computed(const struct ifd_graph *graph, const struct ifd_node *node);
/** Content of a constant was read for the nodes of source_index; or, as_sizes, that or the shape of
 *  any value. */
void ifd_trace_read(const struct ifd_graph *graph, uint32_t value, bool as_sizes,
                    uint32_t source_index);
/** The same for the attributes of the last node, which is not finished. */
void ifd_trace_read_attribute(const struct ifd_graph *graph, uint32_t value, bool as_sizes);

/** What building ended with; NOMEM if not all was noted. */
IFD_NODISCARD enum ifd_code ifd_trace_check(const struct ifd_trace *trace, enum ifd_code code,
                                            struct ifd_err *err);

/** Takes back what was built since the graph had so many nodes and values. */
void ifd_graph_go_back(struct ifd_graph *graph, uint32_t node_count, uint32_t value_count);

#endif
