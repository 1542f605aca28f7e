/** Text forms of a graph: one line per input, constant, node and output for people, golden tests
 *  and bug reports; JSON for tools; dot for pictures. The same graph gives the same text on every
 *  machine. Thread: any, while the graph is not written. */
#ifndef INFERD_ENGINE_IR_DUMP_H
#define INFERD_ENGINE_IR_DUMP_H

#include "engine/ir/graph.h"
#include "inferd/engine.h"

/** Writes a graph through sink. Names are escaped as in JSON, so that a hostile file cannot forge
 *  lines. A constant is shown as a hash of its content (32-bit FNV-1a). The graph must verify. */
void ifd_graph_dump(const struct ifd_graph *graph, enum ifd_dump_format format, ifd_sink_fn sink,
                    void *context);

#endif
