/** Two readings of one file, with other numbers of samples: do they compute the same with each
 *  sample? */
#ifndef INFERD_ENGINE_MODEL_READINGS_H
#define INFERD_ENGINE_MODEL_READINGS_H

#include "engine/ir/graph.h"

/** A file may compute with the number of its samples or branch on it; both are settled when it is
 *  read. a, b: as the parser leaves them, before any pass, with different numbers, both traced
 *  (ir/trace.h). They say the same for every number if they say the same for these two, and
 *  whatever the file computes from the number is affine in it (ir/count.h). *ret is false where it
 *  is not certain. What the batch rules of ir/batch.h say of each graph is not repeated here:
 *  shapes may differ. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_readings_compare(const struct ifd_graph *a,
                                                 const struct ifd_graph *b, bool *ret,
                                                 struct ifd_err *err);

#endif
