/** Structural check of a graph, run after parsing and after every pass: indexes in range, one
 *  producer per value, nodes in a runnable order, inputs and outputs reachable, operand counts and
 *  types as the definitions demand, shape_inputs constant, stored shapes equal to those of the
 *  shape rules. The caller chooses the code of errors: INVALID after parsing, INTERNAL after a
 *  pass. Thread: any. */
#ifndef INFERD_ENGINE_IR_VERIFY_H
#define INFERD_ENGINE_IR_VERIFY_H

#include "engine/ir/graph.h"

IFD_NODISCARD enum ifd_code ifd_graph_verify(const struct ifd_graph *graph, enum ifd_code code,
                                             struct ifd_err *err);

#endif
