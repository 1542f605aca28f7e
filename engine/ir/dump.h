/** Text forms of a graph: one line per input, constant, node and output for people, golden tests and bug reports; JSON
 *  for tools; dot for pictures. The same graph gives the same text on every machine. Thread: any on a graph that nobody
 *  writes. */
#ifndef INFERD_ENGINE_IR_DUMP_H
#define INFERD_ENGINE_IR_DUMP_H

#include "engine/ir/graph.h"
#include "inferd/engine.h"

/** Writes a graph through sink, in pieces. Names are escaped as in JSON, so that a hostile file cannot forge lines; a
 *  constant is shown as a hash of its content (32-bit FNV-1a). The graph must verify. */
void ifd_graph_dump(const struct ifd_graph *graph, enum ifd_dump_format format, ifd_sink_fn sink,
                    void *context);

#endif
