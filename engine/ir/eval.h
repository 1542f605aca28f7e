/** Computes nodes while a graph is built: shape arithmetic in a parser, constant folding in the
 *  optimizer. Thread: one at a time per graph. */
#ifndef INFERD_ENGINE_IR_EVAL_H
#define INFERD_ENGINE_IR_EVAL_H

#include "engine/ir/graph.h"

/** True if all inputs of a node are constant, or it reads shapes only and the shape of input 0 is
 *  known. */
bool ifd_graph_is_computable(const struct ifd_graph *graph, const struct ifd_node *node);

/** Elements and products that the reference kernel of a node reads or writes, at most. */
double ifd_node_work(const struct ifd_graph *graph, const struct ifd_node *node);

/** What one run computes with the reference kernels, at most: elements and products, those of
 *  branches and of one turn of each loop included. */
double ifd_graph_work(const struct ifd_graph *graph);

/** Computes a computable node with its reference kernel and makes its outputs constants. *ret_done
 *  is false, and nothing is changed, if the node is not computable, the kernel refuses the data, an
 *  output is larger than limit_bytes or than half of what the arena has left, or the model has had
 *  enough computed (graph.work_limit: elements and products), so that a small file takes no long
 *  time. The outputs' shapes must be inferred. The node is not their producer any more; the caller
 *  drops it.
 *
 *  Memory:  contents from the graph's arena; scratch from its allocator, released here.
 *  Errors:  NOMEM, TOO_LARGE (arena cap). */
IFD_NODISCARD enum ifd_code ifd_graph_compute_node(struct ifd_graph *graph, uint32_t node,
                                                   size_t limit_bytes, bool *ret_done,
                                                   struct ifd_err *err);

/** A call of the reference kernel of a computable node on its constants, which the caller may
 *  replace; everything in scratch. Errors: NOMEM, TOO_LARGE. */
IFD_NODISCARD enum ifd_code ifd_graph_prepare_call(const struct ifd_graph *graph,
                                                   const struct ifd_node *node,
                                                   struct ifd_arena *scratch,
                                                   struct ifd_ref_call *ret, struct ifd_err *err);

#endif
