/** What graph.c and verify.c share. */
#ifndef INFERD_ENGINE_IR_GRAPH_IMPL_H
#define INFERD_ENGINE_IR_GRAPH_IMPL_H

#include "engine/ir/graph.h"

/** Runs the shape rule of a node and returns descriptions of its outputs without writing them to
 *  the graph. The node's indexes must be in range. ret_output: room for output_count. Scratch
 *  memory comes from the arena's allocator and is released here. Thread: any, while the graph is
 *  not written. */
IFD_NODISCARD enum ifd_code ifd_graph_infer_into(const struct ifd_graph *graph,
                                                 const struct ifd_node *node,
                                                 struct ifd_desc *ret_output, struct ifd_err *err);

/** Puts `CONV_2D (node 3, output "x"): ` in front of an error; the operator's name is the format's
 *  if there is one. */
void ifd_graph_prefix(const struct ifd_graph *graph, uint32_t node, struct ifd_err *err);

#endif
