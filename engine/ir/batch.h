/** Batch as a free dimension: finds out whether a graph treats samples along dimension 0
 *  independently, and rewrites it for another batch size. Follows enum ifd_batch_rule of every
 *  operator. Thread: any, on different graphs. */
#ifndef INFERD_ENGINE_IR_BATCH_H
#define INFERD_ENGINE_IR_BATCH_H

#include "engine/ir/graph.h"

/** Which inputs and outputs have the batch as dimension 0, and whether the graph allows another
 *  batch size than the file's. ret_input and ret_output have graph->input_count and output_count
 *  entries. why_not (may be NULL) names the first node that does not allow it. All shapes must be
 *  known. */
bool ifd_graph_batch_is_free(const struct ifd_graph *graph, bool *ret_input, bool *ret_output,
                             struct ifd_err *why_not);

/** One node's part of that, in the order of the graph. batched: per value; those of the node's
 *  outputs become true if samples are along their dimension 0. False: the node mixes samples. */
bool ifd_batch_spread(const struct ifd_graph *graph, const struct ifd_node *node, int64_t batch,
                      bool *batched);

/** Rewrites graph (a clone) for another batch: input shapes, attributes that name the batch, all
 *  inferred shapes. */
IFD_NODISCARD enum ifd_code ifd_graph_set_batch(struct ifd_graph *graph, int64_t batch,
                                                struct ifd_err *err);

#endif
