/** Does a graph compute with the number of samples, or branch on it?
 *
 *  Shapes are numbers here, so what a file computes from them is a constant of one reading, made
 *  for its number of samples. Two readings that agree say the same for every number if all that
 *  reaches them is affine in it, a + b·n: two points make a line. So the constants that come from
 *  the size of the batch (ir/trace.h) are followed: each element is fixed, affine, or neither.
 *  Nodes that were computed are computed again for every number up to IFD_MAX_BATCH; whatever moves
 *  elements only, for three. What is neither may be dropped (the half of a dimension that nobody
 *  reads). If it reaches a node that stays, or decides what is built, the graph counts samples.
 *  Thread: as the graph. */
#ifndef INFERD_ENGINE_IR_COUNT_H
#define INFERD_ENGINE_IR_COUNT_H

#include "engine/ir/graph.h"

/** graph, other: readings of one file with different numbers of samples, traced, as the parser
 *  leaves them. True also where it is not certain. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_graph_counts_samples(const struct ifd_graph *graph,
                                                     const struct ifd_graph *other, bool *ret,
                                                     struct ifd_err *err);

#endif
